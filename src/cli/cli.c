/* Running a command, and how commands tell and ask. */
#include "cli_priv.h"

#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*const functions[])(struct cli *c) = {[CLI_CMD_SCREEN] = NULL,
#define CLI_ROW(id, fn, name, aliases, args, least, most, flags, help) [CLI_CMD_##id] = fn,
                                                  CLI_COMMANDS(CLI_ROW)
#undef CLI_ROW
};

bool cli_can_ask(const struct cli *c)
{
    const struct cli_shared *sh = cli_shared();

    if (sh)
        return !cli_has(c, CLI_NO_INPUT) && sh->input(sh->ctx) >= 0;
    return !cli_has(c, CLI_NO_INPUT) && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static bool is_yes(char *line)
{
    const char *word = str_trim(line);

    return str_eq_nocase(word, "y") || str_eq_nocase(word, "yes");
}

static bool ask_between(const char *question)
{
    const struct cli_shared *sh = cli_shared();
    char *all = xasprintf("%s Type y to do it; anything else is no.", question);
    char *line = sh->ask(sh->ctx, all);
    bool yes = line && is_yes(line);

    free(line);
    free(all);
    return yes;
}

bool cli_ask_number(const char *question, size_t n)
{
    const struct cli_shared *sh = cli_shared();
    char *all = xasprintf("%s Type the number %zu to do it; anything else is no.", question, n);
    char *line = sh->ask(sh->ctx, all);
    int64_t typed;
    bool yes = line && str_to_i64(str_trim(line), 0, INT32_MAX, &typed) && (size_t)typed == n;

    free(line);
    free(all);
    return yes;
}

bool cli_ask(const char *question)
{
    char answer[16];
    if (cli_shared())
        return ask_between(question);
    cli_err("%s [y/N] ", question);
    fflush(stderr);
    if (!fgets(answer, sizeof(answer), stdin))
        return false;
    return is_yes(answer);
}

bool cli_color(const struct cli *c)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE"),
               *term = getenv("TERM");
    if (cli_has(c, CLI_NO_COLOR) || (no && *no))
        return false;
    if (force && *force && strcmp(force, "0") != 0)
        return true;
    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

char *cli_text_arg(const char *arg, struct err *e)
{
    struct buf b = BUF_INIT_MAX(LIM_MESSAGE_BYTES);
    char piece[4096];
    ssize_t n;

    if (strcmp(arg, "-") != 0) {
        if (strlen(arg) <= LIM_MESSAGE_BYTES)
            return xstrdup(arg);
        err_set(e, ERR_INVALID, "the text is longer than %u bytes", LIM_MESSAGE_BYTES);
        return NULL;
    }
    if (cli_shared()) {
        err_set(e, ERR_INVALID, "'-' is no text here: stdin is where these lines come from");
        return NULL;
    }
    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_sys(e, ERR_IO, "stdin cannot be read");
            break;
        }
        if (buf_add(&b, piece, (size_t)n) != 0) {
            err_set(e, ERR_INVALID, "the text on stdin is longer than %u bytes",
                    LIM_MESSAGE_BYTES);
            break;
        }
    }
    if (n == 0 && b.len && memchr(b.p, '\0', b.len)) {
        err_set(e, ERR_INVALID, "the text on stdin has a NUL byte");
        n = -1;
    }
    if (n != 0) {
        buf_release(&b);
        return NULL;
    }
    if (b.len && b.p[b.len - 1] == '\n')
        buf_truncate(&b, b.len - 1);
    return buf_detach(&b, NULL);
}

char *cli_text_file(const char *path, struct err *e)
{
    size_t len = 0;
    char *text = fs_read(path, LIM_MESSAGE_BYTES, false, &len, e);

    if (text && strlen(text) != len) {
        err_set(e, ERR_INVALID, "there is a NUL byte in '%.200s': it is no text", path);
        free(text);
        return NULL;
    }
    return text;
}

/* --- help, version, completion ---------------------------------------------------- */

int cli_help(struct cli *c)
{
    struct err e = {0};
    const char *argv[4] = {"cc-tui"};
    int argc = 1;
    for (int i = 0; i < c->n_args && argc < 3; i++)
        argv[argc++] = c->args[i];
    argv[argc++] = "--help";
    struct cli asked;
    int rc = cli_parse(&asked, argc, argv, &e);
    if (rc == 0) {
        char *text = cli_help_text(asked.cmd, asked.group);
        cli_out("%s", text);
        free(text);
    }
    cli_release(&asked);
    return rc == 0 ? CLI_OK : cli_fail(&e);
}

#ifndef CCT_VERSION
#define CCT_VERSION "unknown"
#endif

int cli_version(struct cli *c)
{
    if (cli_json(c))
        cli_out("{\"version\":\"%s\"}\n", CCT_VERSION);
    else
        cli_out("cc-tui %s\n", CCT_VERSION);
    return CLI_OK;
}

int cli_completion(struct cli *c)
{
    char *text = cli_completion_text(c->args[0]);
    if (!text)
        return cli_usage("completion is there for bash, zsh and fish, not for '%.60s'",
                         c->args[0]);
    cli_out_bytes(text, strlen(text));
    free(text);
    return CLI_OK;
}

/* --- running ---------------------------------------------------------------------- */

/* Who read our pipe is gone. */
static bool reader_gone(int error)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return error == EPIPE || (error == 0 && poll(&p, 1, 0) == 1 && p.revents & POLLERR);
}

/* What could not be written is a failure, too; a reader that went away is not worth a
 * word: we end as a program does that writes into a closed pipe. */
static int finish(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (cli_out_stopped())
        return cli_out_status(status);
    int error = errno; /* 0 when an earlier write failed */
    if (reader_gone(error)) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGPIPE);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        raise(SIGPIPE);
    }
    cli_tell("the output cannot be written%s%s", error ? ": " : "",
            error ? strerror(error) : "");
    return status == CLI_OK ? CLI_FAILED : status;
}

int cli_call(struct cli *c)
{
    return functions[c->cmd](c);
}

int cli_run(struct cli *c)
{
    if (cli_has(c, CLI_HELP)) {
        char *text = cli_help_text(c->cmd, c->group);
        cli_out("%s", text);
        free(text);
        return finish(CLI_OK);
    }
    return finish(cli_call(c));
}
