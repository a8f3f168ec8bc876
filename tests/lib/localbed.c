/* A local provider of a test's own. */
#include "localbed.h"
#include "tmpdir.h"

#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const struct localbed *l, const char *command, const char *option)
{
    const char *b = getenv("B");
    char *exe = xasprintf("%s/cc-tui-local", b ? b : "build/asan");
    char *state = xasprintf("%s/state", l->root), *rt = xasprintf("%s/run", l->root);
    int st = -1;
    pid_t pid = fork();

    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        sigset_t none;

        sigemptyset(&none); /* a test may have blocked what the provider needs */
        sigprocmask(SIG_SETMASK, &none, NULL);
        dup2(null, 1);
        dup2(null, 2);
        execl(exe, exe, command, "--state-dir", state, "--runtime-dir", rt, option,
              (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, &st, 0);
    free(exe);
    free(state);
    free(rt);
    return WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

static bool read_address(struct localbed *l)
{
    char *path = xasprintf("%s/run/local.json", l->root), *text;
    struct cJSON *j;
    size_t len;

    text = fs_read(path, 1 << 16, true, &len, NULL);
    free(path);
    if (!text)
        return false;
    j = json_parse(text, len, NULL);
    l->control = (int)json_i64(j, "controlPort", 0);
    l->traffic = (int)json_i64(j, "trafficPort", 0);
    l->pid = (pid_t)json_i64(j, "pid", 0);
    str_copy(l->key, sizeof(l->key), json_str(j, "apiKey", ""));
    json_free(j);
    free(text);
    return l->control && l->traffic;
}

bool localbed_start(struct localbed *l)
{
    const char *option = l->private_net ? "--net=private" : l->isolated ? NULL : "--unsafe";

    return run(l, "serve", option) == 0 && read_address(l);
}

static struct localbed *bed_new(bool isolated, bool private_net)
{
    struct localbed *l = xcalloc(1, sizeof(*l));

    str_copy(l->root, sizeof(l->root), "/tmp/cct-local.XXXXXX");
    if (!mkdtemp(l->root))
        die("no scratch folder");
    l->isolated = isolated;
    l->private_net = private_net;
    if (localbed_start(l))
        return l;
    localbed_free(l);
    return NULL;
}

struct localbed *localbed_new_unsafe(void)
{
    return bed_new(false, false);
}

struct localbed *localbed_new_private(void)
{
    return bed_new(true, true);
}

struct localbed *localbed_new(void)
{
    struct localbed *l = bed_new(true, false);
    return l ? l : bed_new(false, false);
}

void localbed_kill(struct localbed *l)
{
    int64_t until = clock_mono_ms() + 5000;

    kill(l->pid, SIGKILL);
    while (kill(l->pid, 0) == 0 && clock_mono_ms() < until)
        poll(NULL, 0, 5);
}

void localbed_free(struct localbed *l)
{
    if (!l)
        return;
    run(l, "stop", NULL);
    tmpdir_remove(l->root);
    free(l);
}

int localbed_entries(const struct localbed *l, const char *folder)
{
    char *path = xasprintf("%s/%s", l->root, folder);
    DIR *d = opendir(path);
    struct dirent *de;
    int n = 0;

    while (d && (de = readdir(d)) != NULL)
        n += de->d_name[0] != '.';
    if (d)
        closedir(d);
    free(path);
    return n;
}

void localbed_account(const struct localbed *l, struct e2b_account *a)
{
    *a = (struct e2b_account){
        .api_url = xasprintf("http://127.0.0.1:%d", l->control),
        .sandbox_url = xasprintf("http://127.0.0.1:%d", l->traffic),
        .domain = xstrdup("local"),
        .key = secret_new(l->key, strlen(l->key)),
        .source = xstrdup("local provider"),
        .local = true,
    };
}
