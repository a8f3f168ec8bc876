/* Finding the local provider. */
#include <cct/jobs/local.h>

#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/pidstat.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "cc-tui-local"
enum { ADDRESS_BYTES = 64 << 10 };

extern char **environ;

void local_provider_release(struct local_provider *p)
{
    secret_free(p->key);
    memset(p, 0, sizeof(*p));
}

static bool is_port(int64_t n)
{
    return n > 0 && n < 65536;
}

bool local_provider_parse(const char *text, size_t len, struct local_provider *p)
{
    struct cJSON *root = json_parse(text, len, NULL);
    const char *key = json_str(root, "apiKey", "");
    int64_t pid = json_i64(root, "pid", 0), control = json_i64(root, "controlPort", 0),
            traffic = json_i64(root, "trafficPort", 0);
    bool ok = json_i64(root, "version", 0) >= 1 && pid > 1 && pid <= INT32_MAX &&
              is_port(control) && is_port(traffic) && *key;

    memset(p, 0, sizeof(*p));
    if (ok)
        *p = (struct local_provider){.pid = (int)pid,
                                     .start_ticks = (uint64_t)json_i64(root, "startTicks", 0),
                                     .control = (int)control,
                                     .traffic = (int)traffic,
                                     .unsafe = json_bool(root, "unsafe", false),
                                     .private_net = strcmp(json_str(root, "network", ""),
                                                           "private") == 0,
                                     .key = secret_new_token(key, strlen(key))};
    if (ok && !str_copy(p->limits, sizeof(p->limits), json_str(root, "limits", "")))
        p->limits[0] = '\0';
    json_free(root);
    return ok;
}

int local_provider_find(const char *runtime_dir, struct local_provider *p, struct err *e)
{
    struct err fe = {0};
    size_t len = 0;
    char *dir = runtime_dir ? xstrdup(runtime_dir) : fs_place(FS_RUNTIME, &fe);
    char *path = dir ? fs_join(dir, "local.json") : NULL;
    char *text = path ? fs_read(path, ADDRESS_BYTES, true, &len, &fe) : NULL;
    int rc = 0;

    memset(p, 0, sizeof(*p));
    if (!text && fe.code != ERR_NOTFOUND)
        rc = err_set(e, fe.code, "%s", fe.text);
    else if (!text)
        rc = ERR_NOTFOUND;
    else if (!local_provider_parse(text, len, p))
        rc = err_set(e, ERR_CORRUPT, "'%s' is no address file of the local provider", path);
    else if (pidstat_start(p->pid) != p->start_ticks)
        rc = ERR_NOTFOUND; /* left by one that was killed */
    if (rc == ERR_NOTFOUND)
        err_set(e, rc, "no local provider is running; start it with 'cc-tui local start'");
    if (rc != 0)
        local_provider_release(p);
    if (text)
        secret_wipe(text, len);
    free(text);
    free(path);
    free(dir);
    return rc;
}

char *local_provider_program(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
        char *path = fs_join(self, PROGRAM);
        if (slash && access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return xstrdup(PROGRAM);
}

char **local_provider_env(void)
{
    static const char *const keep[] = {
        "PATH=",         "HOME=",        "USER=", "LOGNAME=", "LANG=",         "LC_",
        "TZ=",           "TMPDIR=",      "XDG_",  "CC_TUI_",  "ASAN_OPTIONS=", "UBSAN_OPTIONS=",
        "TSAN_OPTIONS=", "LSAN_OPTIONS="};
    size_t n = 0, have = 0;

    while (environ && environ[n])
        n++;
    char **env = xcalloc(n + 1, sizeof(*env));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof(keep) / sizeof(keep[0]); k++)
            if (str_starts(environ[i], keep[k])) {
                env[have++] = environ[i];
                break;
            }
    return env;
}
