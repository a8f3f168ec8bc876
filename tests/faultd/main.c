/* Arguments of faultd; see faultd.h. */
#include "conn.h"
#include "jail.h"
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum { NAMES_MAX = 32 };

struct args {
    const char *listen, *to, *control, *config, *tls_dir, *names[NAMES_MAX];
    size_t n_names;
    int64_t sandboxes, paused;
    bool listen6, h1;
};

static int64_t number(const char *name, const char *v, int64_t max)
{
    int64_t n;

    if (!str_to_i64(v, 0, max, &n))
        die("faultd: %s needs a number, not '%s'", name, v);
    return n;
}

static void option(struct args *a, struct plane *p, const char *name, const char *v)
{
    const char *dash;

    if (str_eq(name, "--listen"))
        a->listen = v;
    else if (str_eq(name, "--to"))
        a->to = v;
    else if (str_eq(name, "--control"))
        a->control = v;
    else if (str_eq(name, "--config"))
        a->config = v;
    else if (str_eq(name, "--tls-dir"))
        a->tls_dir = v;
    else if (str_eq(name, "--name") && a->n_names < NAMES_MAX)
        a->names[a->n_names++] = v;
    else if (str_eq(name, "--streams"))
        p->streams = number(name, v, 1000000);
    else if (str_eq(name, "--sandboxes"))
        a->sandboxes = number(name, v, 100000);
    else if (str_eq(name, "--paused"))
        a->paused = number(name, v, 100000);
    else if (str_eq(name, "--seed"))
        p->seed = (uint64_t)number(name, v, INT64_MAX);
    else if (str_eq(name, "--page"))
        p->page = number(name, v, 100);
    else if (str_eq(name, "--cap"))
        p->cap = number(name, v, 100000);
    else if (str_eq(name, "--key"))
        p->key = xstrdup(v);
    else if (str_eq(name, "--delay") && (dash = strchr(v, '-'))) {
        char *lo = xstrndup(v, (size_t)(dash - v));
        p->delay_min = number(name, lo, 600000);
        p->delay_max = number(name, dash + 1, 600000);
    } else
        die("faultd: unknown option '%s'; see tests/faultd/faultd.h", name);
}

static bool flag(struct args *a, const char *name)
{
    bool *at = str_eq(name, "--listen6") ? &a->listen6 : str_eq(name, "--h1") ? &a->h1 : NULL;

    if (at)
        *at = true;
    return at != NULL;
}

static int serve(const struct args *a, struct plane *p)
{
    SSL_CTX *tls = a->tls_dir ? tls_context(a->tls_dir, a->names, a->n_names, a->h1) : NULL;
    struct fill fill = {.ttl = 3600};
    char why[128];
    int port;

    p->tls = tls != NULL;
    plane_fill(p, a->sandboxes, a->paused, &fill);
    if (a->config && !script_config(p, a->config, strlen(a->config), why, sizeof(why)))
        die("faultd: --config: %s", why);
    port = conn_listen(p, (int)number("--listen", a->listen, 65535), a->listen6, tls);
    printf("%s:%d\n", tls ? "https://localhost" : "http://127.0.0.1", port);
    fflush(stdout);
    loop_run();
    return 0;
}

int main(int argc, char **argv)
{
    struct args a = {.listen = "0"};
    bool proxy = argc > 1 && str_eq(argv[1], "proxy");
    struct plane p;

    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && str_eq(argv[1], "probe")) {
        char why[256];
        bool ok = jail_possible(why, sizeof(why));
        puts(ok ? "sandboxes can run processes here" : why);
        return !ok;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test that dies takes it along */
    fs_raise_nofile();
    plane_init(&p);
    for (int i = proxy ? 2 : 1; i < argc; i++) {
        if (flag(&a, argv[i]))
            continue;
        if (i + 1 >= argc)
            die("faultd: %s needs a value", argv[i]);
        option(&a, &p, argv[i], argv[i + 1]);
        i++;
    }
    if (!proxy)
        return serve(&a, &p);
    if (!a.to || !a.control)
        die("faultd proxy: --to HOST:PORT and --control PORT|PATH are needed");
    return proxy_run(a.listen, a.to, a.control);
}
