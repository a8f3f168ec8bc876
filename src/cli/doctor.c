/* cc-tui doctor: what this machine allows, and what to do where it does not. */
#include "cli_priv.h"

#include <cct/jobs/local.h>
#include <cct/keys.h>
#include <cct/util/arr.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum grade { D_OK, D_WARN, D_FAIL };
static const char *const grades[] = {"ok", "warn", "FAIL"};

struct finding {
    const char *what;
    enum grade grade;
    char *text;
};
#define LOCAL_MAX 16
struct doctor {
    const struct cli *c;
    char *names[LOCAL_MAX]; /* of what the local provider found */
    size_t n_names;
    ARR(struct finding) v;
};

static void find(struct doctor *d, const char *what, enum grade g, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void find(struct doctor *d, const char *what, enum grade g, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    struct finding *f = ARR_PUSH(&d->v);
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    *f = (struct finding){what, g, buf_detach(&b, NULL)};
}

/* Output of `cc-tui-local probe --json`; its status, or negative. */
static int probe(char *out, size_t size, struct err *e)
{
    char *program = local_provider_program(), **env = local_provider_env();
    const char *argv[] = {program, "probe", "--json", NULL};
    posix_spawn_file_actions_t fa;
    int fds[2], status = 0;
    size_t have = 0;
    ssize_t n;
    pid_t pid;

    *out = '\0';
    int rc = pipe2(fds, O_CLOEXEC) == 0 ? 0 : errno;
    if (rc == 0) {
        posix_spawn_file_actions_init(&fa);
        posix_spawn_file_actions_adddup2(&fa, fds[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&fa, fds[1], STDERR_FILENO);
        rc = posix_spawnp(&pid, program, &fa, NULL, (char *const *)(uintptr_t)argv, env);
        posix_spawn_file_actions_destroy(&fa);
        close(fds[1]);
        while (rc == 0 && have + 1 < size &&
               (n = read(fds[0], out + have, size - 1 - have)) > 0)
            have += (size_t)n;
        out[have] = '\0';
        close(fds[0]);
    }
    if (rc != 0) {
        errno = rc;
        rc = err_sys(e, 0, "'%s' cannot be started", program);
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        rc = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    free(env);
    free(program);
    return rc;
}

static void look_local(struct doctor *d)
{
    struct err e = {0};
    char text[8192];
    int rc = probe(text, sizeof(text), &e);
    struct cJSON *list = rc >= 0 ? json_parse(text, strlen(text), NULL) : NULL;

    if (rc < 0)
        find(d, "local sandboxes", D_WARN, "%s; install it beside cc-tui", e.text);
    else if (!json_is_array(list))
        find(d, "local sandboxes", D_WARN, "%s", str_trim(text));
    for (const struct cJSON *f = json_first(list); f; f = json_next(f)) {
        const char *status = json_str(f, "status", "");
        /* the cloud works all the same: no failure of the whole */
        d->names[d->n_names] = xasprintf("local %s", json_str(f, "what", "?"));
        find(d, d->names[d->n_names++], strcmp(status, "ok") == 0 ? D_OK : D_WARN, "%s",
             json_str(f, "text", ""));
        if (d->n_names == LOCAL_MAX)
            break;
    }
    json_free(list);
    struct local_provider p;
    err_clear(&e);
    rc = local_provider_find(NULL, &p, &e);
    if (rc == 0)
        find(d, "local provider", p.unsafe ? D_WARN : D_OK, "runs, pid %d%s", p.pid,
             p.unsafe ? ", NOT ISOLATED" : "");
    else
        find(d, "local provider", rc == ERR_NOTFOUND ? D_OK : D_WARN, "%s",
             rc == ERR_NOTFOUND ? "not running; it is started when it is needed" : e.text);
    if (rc == 0)
        local_provider_release(&p);
}

static void look_terminal(struct doctor *d)
{
    struct err e = {0};
    const char *term = getenv("TERM"), *codeset = nl_langinfo(CODESET);
    int colors = d->c->host->term_colors(&e);

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        find(d, "terminal", D_WARN,
             "stdin or stdout is none; the screen needs both, 'cc-tui --plain' does not");
    else if (term && strcmp(term, "dumb") == 0)
        find(d, "terminal", D_WARN,
             "TERM is dumb; the screen needs a real one, 'cc-tui --plain' and the commands "
             "do not");
    else if (colors < 0)
        find(d, "terminal", D_WARN, "%s", e.text);
    else
        find(d, "terminal", D_OK, "%s, %d colours", term, colors);
    if (strcmp(codeset, "UTF-8") == 0)
        find(d, "characters", D_OK, "UTF-8");
    else
        find(d, "characters", D_WARN,
             "%s; lines and glyphs are drawn in ASCII; set LANG to a "
             "UTF-8 locale such as C.UTF-8",
             codeset);
}

static void look_config(struct doctor *d)
{
    struct config *cfg = d->c->config;

    cli_config_look(d->c);
    find(d, "configuration", cfg->n_notes ? D_WARN : D_OK, "%s%s%s%s%s",
         d->c->user_file ? d->c->user_file : "no user file",
         d->c->user_file && access(d->c->user_file, F_OK) != 0 ? " (not there)" : "",
         d->c->project_file ? " and " : "", d->c->project_file ? d->c->project_file : "",
         cfg->n_notes ? "; problems follow" : "");
    for (size_t i = 0; i < cfg->n_notes; i++)
        find(d, "configuration", D_WARN, "%s", cfg->notes[i]);
}

/* Made as the program itself would make it, and a file in it. */
static void look_folder(struct doctor *d, const char *what, const char *given,
                        enum fs_place place)
{
    struct err e = {0};
    char *dir = given ? xstrdup(given) : fs_place(place, &e);
    char *file = dir ? xasprintf("%s/.doctor-%d", dir, (int)getpid()) : NULL;

    if (!dir || fs_mkdir_private(dir, &e) != 0 || fs_write_private(file, "x", 1, &e) != 0)
        find(d, what, D_FAIL, "%s", e.text);
    else
        find(d, what, D_OK, "%s can be written", dir);
    if (file)
        unlink(file);
    free(file);
    free(dir);
}

static void look_memory(struct doctor *d)
{
    bool locked = secrets_memory_locked();

    find(d, "memory lock", locked ? D_OK : D_WARN, "%s",
         locked ? "keys cannot be swapped out"
                : "refused, so keys may be swapped out; raise RLIMIT_MEMLOCK (ulimit -l)");
}

/* Where calls go, when that is not E2B's own. Only hosts: a URL may hold a password. */
static void look_address(struct doctor *d)
{
    static const char *const names[] = {"E2B_DOMAIN", "E2B_API_URL", "E2B_SANDBOX_URL"};
    struct buf b = BUF_INIT;
    char *api = keys_api();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *v = getenv(names[i]), *at = v ? strrchr(v, '@') : NULL;
        if (v && *v)
            buf_addf(&b, "%s%s=%s", b.len ? ", " : "", names[i], at ? at + 1 : v);
    }
    if (b.len && !(keys_api_is_own(api) && !getenv("E2B_SANDBOX_URL")))
        find(d, "E2B address", D_WARN, "not E2B's own: %s", buf_str(&b));
    else
        find(d, "E2B address", D_OK, "%s, E2B's own", api);
    buf_release(&b);
    free(api);
}

static void look_stored(struct doctor *d, struct cli_app *a)
{
    bool good;
    char *kept = cli_keys_protection(a, &good);
    const struct keys_at *at = app_keys(a->app);

    find(d, "stored keys", good ? D_OK : D_WARN, "%zu; %s", at->stored ? at->stored->n : 0, kept);
    free(kept);
}

static void look_key(struct doctor *d)
{
    struct err e = {0};
    struct key_found k;
    struct cli_app a;

    if (cli_app_open_keys(&a, d->c, false, &e) != 0) {
        find(d, "E2B key", D_WARN, "%s", e.text);
        return;
    }
    keys_choose(app_keys(a.app), &k, &e);
    if (e.code != 0)
        find(d, "E2B key", D_WARN, "%s", e.text);
    if (k.source != KEY_NONE)
        find(d, "E2B key", D_OK, "%s from %s%s%s", k.mask, key_source_name(k.source),
             k.hidden ? ", " : "", k.hidden ? k.hidden : "");
    else if (e.code == 0)
        find(d, "E2B key", D_OK,
             "none; the local provider is used. For the cloud set E2B_API_KEY, run cc-tui keys "
             "add e2b, or log in with the E2B CLI");
    look_stored(d, &a);
    look_memory(d);
    key_found_release(&k);
    cli_app_close(&a);
}

static void look_curl(struct doctor *d)
{
    void *lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (lib)
        find(d, "libcurl", D_OK, "present");
    else
        find(d, "libcurl", D_FAIL,
             "libcurl.so.4 cannot be loaded; install the package libcurl4");
    if (lib)
        dlclose(lib);
}

static void print_json(const struct doctor *d)
{
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < d->v.n; i++) {
        jw_obj(&w, NULL);
        jw_str(&w, "what", d->v.v[i].what);
        jw_str(&w, "status", d->v.v[i].grade == D_FAIL ? "fail" : grades[d->v.v[i].grade]);
        jw_str(&w, "text", d->v.v[i].text);
        jw_end(&w);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

int cli_doctor(struct cli *c)
{
    struct doctor d = {.c = c};
    bool failed = false;

    look_terminal(&d);
    look_local(&d);
    look_config(&d);
    look_folder(&d, "data folder", c->value[CLI_DATA_DIR], FS_DATA);
    look_folder(&d, "state folder", NULL, FS_STATE);
    look_folder(&d, "runtime folder", NULL, FS_RUNTIME);
    look_address(&d);
    look_key(&d);
    look_curl(&d);
    if (cli_json(c))
        print_json(&d);
    for (size_t i = 0; i < d.v.n; i++) {
        const struct finding *f = &d.v.v[i];
        failed |= f->grade == D_FAIL;
        if (!cli_json(c) && !(cli_has(c, CLI_QUIET) && f->grade == D_OK))
            cli_out("%-4s  %-20s  %s\n", grades[f->grade], f->what, f->text);
        free(f->text);
    }
    ARR_RELEASE(&d.v);
    for (size_t i = 0; i < d.n_names; i++)
        free(d.names[i]);
    return failed ? CLI_FAILED : CLI_OK;
}
