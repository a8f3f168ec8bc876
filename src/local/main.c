/* cc-tui-local: the embedded sandbox provider. Subcommands, one table. */
#include <cct/local/doctor.h>
#include <cct/local/init.h>
#include <cct/local/ns.h>
#include <cct/local/pkg_refusal.h>
#include <cct/local/privnet.h>
#include <cct/local/serve.h>
#include <cct/util/str.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CCT_VERSION
#define CCT_VERSION "unknown"
#endif

static const char usage[] =
    "usage: cc-tui-local COMMAND [options]\n"
    "  serve         start the local sandbox provider (cc-tui does this itself)\n"
    "  stop          end it and all of its sandboxes\n"
    "  status        say whether it runs, and where\n"
    "  probe         try what this machine allows, and say what to do where it does not\n"
    "  demo-agent    the built-in agent, which has no model behind it\n"
    "options of serve, stop and status:\n"
    "  --state-dir D    where sandboxes keep their files (absolute path)\n"
    "  --runtime-dir D  where sockets and the address file are (absolute path)\n"
    "options of serve:\n"
    "  --unsafe         plain processes without any isolation\n"
    "  --net N          host: sandboxes share this machine's network; private: each has its\n"
    "                   own, with a way out (needs pasta of the package passt) (host)\n"
    "  --foreground     do not detach\n"
    "  --idle-exit S    end after S seconds without sandboxes and clients (60)\n"
    "  --max-running N  refuse more running sandboxes (64)\n"
    "options of probe:\n"
    "  --state-dir D    try templates in this folder\n"
    "  --json           print an array of what, status and text\n"
    "  --profile        print an AppArmor profile for this program's path\n";

static int bad_usage(const char *what)
{
    fprintf(stderr, "cc-tui-local: unknown argument '%s'; see cc-tui-local --help\n", what);
    return 2;
}

static bool take_number(const char *text, int *out)
{
    int64_t n;
    if (!str_to_i64(text, 1, 100000, &n))
        return false;
    *out = (int)n;
    return true;
}

static bool take_net(const char *text, bool *private_net)
{
    *private_net = strcmp(text, "private") == 0;
    return *private_net || strcmp(text, "host") == 0;
}

/* The value of option `name` at argv[*i], as the next argument or after '='. */
static const char *option_value(int argc, char **argv, int *i, const char *name)
{
    size_t len = strlen(name);
    if (strncmp(argv[*i], name, len) != 0)
        return NULL;
    if (argv[*i][len] == '=')
        return argv[*i] + len + 1;
    if (argv[*i][len] != '\0' || *i + 1 >= argc)
        return NULL;
    return argv[++*i];
}

/* NULL when all was understood, else the argument that was not. */
static const char *parse_serve(int argc, char **argv, struct serve_opts *o)
{
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i], *v;
        bool ok = true;
        if (strcmp(arg, "--unsafe") == 0)
            o->unsafe = true;
        else if (strcmp(arg, "--foreground") == 0)
            o->foreground = true;
        else if ((v = option_value(argc, argv, &i, "--state-dir")) != NULL)
            o->state_dir = v;
        else if ((v = option_value(argc, argv, &i, "--runtime-dir")) != NULL)
            o->runtime_dir = v;
        else if ((v = option_value(argc, argv, &i, "--net")) != NULL)
            ok = take_net(v, &o->private_net);
        else if ((v = option_value(argc, argv, &i, "--idle-exit")) != NULL)
            ok = take_number(v, &o->idle_exit_s);
        else if ((v = option_value(argc, argv, &i, "--max-running")) != NULL)
            ok = take_number(v, &o->max_running);
        else
            ok = false;
        if (!ok)
            return arg;
    }
    return NULL;
}

static int with_opts(int argc, char **argv, int (*fn)(const struct serve_opts *))
{
    struct serve_opts o = {0};
    const char *bad = parse_serve(argc, argv, &o);
    return bad ? bad_usage(bad) : fn(&o);
}

static int cmd_serve(int argc, char **argv)
{
    return with_opts(argc, argv, serve_main);
}

static int cmd_stop(int argc, char **argv)
{
    return with_opts(argc, argv, serve_stop);
}

static int cmd_status(int argc, char **argv)
{
    return with_opts(argc, argv, serve_status);
}

static int cmd_probe(int argc, char **argv)
{
    char *exe = ns_own_path();
    if (!exe) {
        fprintf(stderr, "cc-tui-local: cannot find the path of this program\n");
        return 1;
    }
    const char *state = NULL, *bad = NULL;
    bool profile = false, json = false;
    for (int i = 0; i < argc && !bad; i++) {
        const char *arg = argv[i], *v = option_value(argc, argv, &i, "--state-dir");
        profile |= strcmp(arg, "--profile") == 0;
        json |= strcmp(arg, "--json") == 0;
        if (v)
            state = v;
        else if (strcmp(arg, "--profile") != 0 && strcmp(arg, "--json") != 0)
            bad = arg;
    }
    int rc = 0;
    if (bad) {
        rc = bad_usage(bad);
    } else if (profile) {
        struct buf b = BUF_INIT;
        ns_apparmor_profile(&b, exe);
        fputs(buf_str(&b), stdout);
        buf_release(&b);
    } else {
        rc = doctor_print(exe, state, json);
    }
    free(exe);
    return rc;
}

static int cmd_init(int argc, char **argv)
{
    /* the id is there for who looks at the process table */
    return argc > 1 ? bad_usage(argv[1]) : init_main();
}

static int cmd_is_root(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return geteuid() == 0 ? 0 : 3;
}

static int cmd_as_root(int argc, char **argv)
{
    return argc < 1 ? bad_usage("") : init_as_root(argv);
}

static int cmd_agent(int argc, char **argv)
{
    return demo_agent_main(argc, argv);
}

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("cc-tui-local %s\n", CCT_VERSION);
    return 0;
}

static int cmd_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs(usage, stdout);
    return 0;
}

static const struct command {
    const char *name;
    int (*fn)(int argc, char **argv);
} commands[] = {
    {"serve", cmd_serve},
    {"stop", cmd_stop},
    {"status", cmd_status},
    {"probe", cmd_probe},
    {"sandbox-init", cmd_init},
    {INIT_AS_ROOT, cmd_as_root},
    {PRIVNET_KEEPER, privnet_main},
    {INIT_IS_ROOT, cmd_is_root},
    {"demo-agent", cmd_agent},
    {"--version", cmd_version},
    {"--help", cmd_help},
    {"-h", cmd_help},
    {"help", cmd_help},
};

int main(int argc, char **argv)
{
    const char *self = argc > 0 ? strrchr(argv[0], '/') : NULL;
    self = self ? self + 1 : argc > 0 ? argv[0] : "";
    signal(SIGCHLD, SIG_DFL); /* else no process tells how it ended */
    signal(SIGXFSZ, SIG_IGN); /* a log that may not grow ends nothing; the write says it */
    if (strcmp(self, "demo-agent") == 0)
        return cmd_agent(argc - 1, argv + 1);
    if (pkg_refusal_is(self))
        return pkg_refusal_main(self, argc - 1, argv + 1);
    if (argc < 2) {
        fputs(usage, stderr);
        return 2;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].fn(argc - 2, argv + 2);
    return bad_usage(argv[1]);
}
