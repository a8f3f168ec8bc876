/* cc-tui decode: a recorded stream of an agent as events, one JSON object a line. */
#include "cli_priv.h"

#include <cct/agent/decode.h>
#include <cct/config/tools.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SIGNAL = 64 };

/* "INT", "SIGINT" or "2"; 0 when it is no signal. */
static int signal_number(const char *name)
{
    int64_t n;
    if (str_to_i64(name, 1, MAX_SIGNAL, &n))
        return (int)n;
    if (str_starts(name, "SIG"))
        name += 3;
    for (int s = 1; s < NSIG; s++) {
        const char *abbrev = sigabbrev_np(s);
        if (abbrev && str_eq_nocase(abbrev, name))
            return s;
    }
    return 0;
}

const struct agent_adapter *cli_adapter(const char *name, struct err *e)
{
    struct tools *tools = tools_new();
    const struct tool *t = tools_find(tools, name);
    const struct agent_adapter *a = agent_adapter_find(t ? t->adapter : name);
    if (!a) {
        const char *names[64];
        size_t n = 0;
        for (; n < 64 && (t = tools_at(tools, n)); n++)
            names[n] = t->name;
        int near = str_nearest(name, names, n);
        err_set(e, ERR_INVALID, "unknown tool '%.60s'%s%s%s", name,
                near < 0 ? "" : " (did you mean '", near < 0 ? "" : names[near],
                near < 0 ? "" : "'?)");
    }
    tools_free(tools);
    return a;
}

/* The last bytes of the file, as text. */
static char *read_tail(const char *path, struct err *e)
{
    char tail[LIM_STDERR_TAIL + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        err_sys(e, 0, "cannot read '%s'", path);
        return NULL;
    }
    off_t end = lseek(fd, 0, SEEK_END);
    off_t at = end > (off_t)LIM_STDERR_TAIL ? end - (off_t)LIM_STDERR_TAIL : 0;
    ssize_t n = pread(fd, tail, LIM_STDERR_TAIL, at);
    if (n < 0)
        err_sys(e, 0, "cannot read '%s'", path);
    close(fd);
    return n < 0 ? NULL : xstrndup(tail, (size_t)n);
}

int cli_decode(struct cli *c)
{
    struct err e = {0};
    int64_t code = AGENT_NO_EXIT;
    int sig = 0;

    if (!cli_has(c, CLI_TOOL))
        return cli_usage("'decode' wants --tool TOOL; see cc-tui decode --help");
    const struct agent_adapter *a = cli_adapter(c->value[CLI_TOOL], &e);
    if (!a)
        return cli_fail(&e);
    if (cli_has(c, CLI_EXIT_CODE) && !str_to_i64(c->value[CLI_EXIT_CODE], -1, 255, &code))
        return cli_usage("'--exit-code' is a number from 0 to 255, or -1 when it is not known");
    if (cli_has(c, CLI_SIGNAL)) {
        sig = signal_number(c->value[CLI_SIGNAL]);
        if (!sig)
            return cli_usage("'--signal' is a name such as INT, not '%.60s'",
                             c->value[CLI_SIGNAL]);
        code = code == AGENT_NO_EXIT ? -1 : code;
    }
    char *tail = NULL;
    if (cli_has(c, CLI_STDERR_FILE)) {
        tail = read_tail(c->value[CLI_STDERR_FILE], &e);
        if (!tail)
            return cli_fail(&e);
    }
    int rc = agent_decode_fd(a, STDIN_FILENO, (int)code, sig, tail, stdout, &e);
    free(tail);
    if (rc != 0 && ferror(stdout))
        return CLI_FAILED; /* told, or not, at the end */
    return rc == 0 ? CLI_OK : cli_fail(&e);
}
