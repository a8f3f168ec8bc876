/* Secrets from a person or a program: never by an argument, never shown, from the first
 * byte on in locked memory. */
#include "cli_priv.h"

#include <cct/secrets/secret.h>
#include <cct/util/str.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { SECRET_MAX = 8192, CTRL_C = 3, CTRL_D = 4, CTRL_H = 8, CTRL_U = 21, DEL = 127 };

extern char **environ;

/* What is being typed or read. */
struct typed {
    struct secret *room;
    char *p;
    size_t len;
};

static void typed_init(struct typed *t)
{
    t->room = secret_new_bytes(NULL, SECRET_MAX);
    t->p = (char *)(uintptr_t)secret_value(t->room);
    t->len = 0;
}

static struct secret *typed_take(struct typed *t, bool ok)
{
    struct secret *s = ok ? secret_new_bytes(t->p, t->len) : NULL;

    secret_free(t->room);
    return s;
}

static bool blank(const struct typed *t)
{
    for (size_t i = 0; i < t->len; i++)
        if ((unsigned char)t->p[i] > ' ')
            return false;
    return true;
}

static bool more_waits(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* One byte of the terminal: 1 = the line is complete, 0 = go on, else a code. */
static int take_byte(struct typed *t, int fd, char c, struct err *e)
{
    switch ((unsigned char)c) {
    case CTRL_C:
        return err_set(e, ERR_CANCELLED, "called off");
    case CTRL_D:
        return t->len ? 1 : err_set(e, ERR_CANCELLED, "called off");
    case '\r':
    case '\n': /* a paste may begin with an empty line */
        return !(blank(t) && more_waits(fd));
    case CTRL_H:
    case DEL:
        t->len -= t->len > 0;
        return 0;
    case CTRL_U:
        t->len = 0;
        return 0;
    default:
        if (t->len == SECRET_MAX)
            return err_set(e, ERR_INVALID, "that is too long");
        t->p[t->len++] = c;
        return 0;
    }
}

static int type_line(struct typed *t, int fd, int sigfd, struct err *e)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = sigfd, .events = POLLIN}};
        char c;
        int rc;

        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return err_sys(e, ERR_IO, "the terminal cannot be read");
        if (p[1].revents) /* delivered when the terminal is itself again */
            return err_set(e, ERR_CANCELLED, "interrupted");
        if (!p[0].revents)
            continue;
        ssize_t n = read(fd, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, ERR_CANCELLED, "called off");
        rc = take_byte(t, fd, c, e);
        if (rc != 0)
            return rc == 1 ? 0 : rc;
    }
}

struct secret *cli_secret_prompt(const char *prompt, struct err *e)
{
    struct termios was, quiet;
    struct typed t;
    sigset_t set, old;
    int rc, sigfd, fd = STDIN_FILENO;

    if (tcgetattr(fd, &was) != 0) {
        err_sys(e, ERR_INVALID, "nobody can be asked here");
        return NULL;
    }
    sigemptyset(&set);
    for (size_t i = 0; i < 4; i++)
        sigaddset(&set, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    quiet = was;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    typed_init(&t);
    /* what was typed ahead was shown: it is no secret. Then who is asked may type */
    rc = tcsetattr(fd, TCSAFLUSH, &quiet) == 0 ? 0 : err_sys(e, ERR_IO, "the echo cannot be stopped");
    cli_err("%s", prompt);
    fflush(stderr);
    if (rc == 0)
        rc = type_line(&t, fd, sigfd, e);
    tcsetattr(fd, TCSAFLUSH, &was);
    cli_err("\n");
    if (sigfd >= 0)
        close(sigfd);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return typed_take(&t, rc == 0);
}

struct secret *cli_secret_read(int fd, struct err *e)
{
    struct typed t;
    int rc = 0;

    typed_init(&t);
    for (;;) {
        ssize_t n = read(fd, t.p + t.len, SECRET_MAX - t.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = err_sys(e, ERR_INVALID, "the descriptor %d cannot be read", fd);
        if (n <= 0)
            break;
        t.len += (size_t)n;
        if (t.len == SECRET_MAX) {
            rc = err_set(e, ERR_INVALID, "what comes from descriptor %d is too long", fd);
            break;
        }
    }
    return typed_take(&t, rc == 0);
}

struct secret *cli_secret_command(const char *command, struct err *e)
{
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t fa;
    struct secret *s = NULL;
    int fds[2], status = 0, rc;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        err_sys(e, ERR_IO, "the command cannot be run");
        return NULL;
    }
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, fds[1], STDOUT_FILENO);
    rc = posix_spawn(&pid, "/bin/sh", &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    close(fds[1]);
    if (rc == 0)
        s = cli_secret_read(fds[0], e);
    close(fds[0]);
    if (rc != 0) {
        errno = rc;
        err_sys(e, ERR_IO, "the command cannot be run");
        return NULL;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (s && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        secret_free(s);
        s = NULL;
        err_set(e, ERR_INVALID, "the command failed (status %d), so nothing is stored",
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return s;
}

struct secret *cli_secret_from(const struct cli *c, const char *prompt, struct err *e)
{
    if (cli_has(c, CLI_COMMAND))
        return cli_secret_command(c->value[CLI_COMMAND], e);
    if (!isatty(STDIN_FILENO))
        return cli_secret_read(STDIN_FILENO, e);
    if (cli_can_ask(c))
        return cli_secret_prompt(prompt, e);
    err_set(e, ERR_INVALID, "it cannot be asked for here; give it on stdin or by --command");
    return NULL;
}

/* Out of our own argument memory, which /proc shows. */
int cli_refuse_secret_argument(struct cli *c, int first, const char *how)
{
    for (int i = first; i < c->n_args; i++)
        secret_wipe((char *)(uintptr_t)c->args[i], strlen(c->args[i]));
    return cli_usage("a key is never given as an argument: every user of this machine can read "
                     "arguments, and your shell keeps them. Take it out of the shell's history, "
                     "better make a new key; then run 'cc-tui %s' and paste it when "
                     "asked, or give it on stdin or by --command", how);
}

/* --- passphrases --------------------------------------------------------------------- */

/* Without the line's end; an empty one protects nothing. */
static struct secret *as_passphrase(struct secret *take, struct err *e)
{
    size_t len = take ? secret_len(take) : 0;
    struct secret *s = NULL;

    if (!take)
        return NULL;
    while (len && (secret_value(take)[len - 1] == '\n' || secret_value(take)[len - 1] == '\r'))
        len--;
    if (len)
        s = secret_new_bytes(secret_value(take), len);
    else
        err_set(e, ERR_INVALID, "the passphrase is empty");
    secret_free(take);
    return s;
}

static struct secret *from_fd(const struct cli *c, struct err *e)
{
    int64_t fd;

    if (str_to_i64(c->value[CLI_PASSPHRASE_FD], 0, 1 << 20, &fd))
        return as_passphrase(cli_secret_read((int)fd, e), e);
    err_set(e, ERR_INVALID, "'--passphrase-fd' is the number of a descriptor, not a passphrase");
    return NULL;
}

int cli_passphrase(const struct cli *c, struct app_opts *o, struct err *e)
{
    if (c->cmd == CLI_CMD_KEYS_PROTECT) /* has a use of its own for it */
        return 0;
    if (cli_has(c, CLI_PASSPHRASE_FD))
        o->passphrase = from_fd(c, e);
    else if (!cli_has(c, CLI_UNLOCK))
        return 0;
    else if (!cli_can_ask(c))
        return err_set(e, ERR_INVALID, "'--unlock' cannot ask here; use --passphrase-fd");
    else
        o->passphrase = as_passphrase(cli_secret_prompt("passphrase of the vault: ", e), e);
    return o->passphrase ? 0 : e->code;
}

static bool same(const struct secret *a, const struct secret *b)
{
    return secret_len(a) == secret_len(b) &&
           memcmp(secret_value(a), secret_value(b), secret_len(a)) == 0;
}

/* A line of its own in front of the new one is the passphrase in force. */
static struct secret *two_lines(const struct cli *c, struct secret **old, struct err *e)
{
    struct secret *all = from_fd(c, e), *fresh;
    const char *lf = all ? memchr(secret_value(all), '\n', secret_len(all)) : NULL;
    size_t n = lf ? (size_t)(lf - secret_value(all)) : 0;

    if (!lf)
        return all;
    *old = secret_new_bytes(secret_value(all), n);
    fresh = as_passphrase(secret_new_bytes(lf + 1, secret_len(all) - n - 1), e);
    secret_free(all);
    return fresh;
}

struct secret *cli_new_passphrase(const struct cli *c, struct secret **old, struct err *e)
{
    struct secret *one, *two;

    *old = NULL;
    if (cli_has(c, CLI_PASSPHRASE_FD))
        return two_lines(c, old, e);
    if (!cli_can_ask(c)) {
        err_set(e, ERR_INVALID, "a new passphrase cannot be asked for here; give it by "
                "--passphrase-fd");
        return NULL;
    }
    one = as_passphrase(cli_secret_prompt("new passphrase: ", e), e);
    two = one ? as_passphrase(cli_secret_prompt("the same again: ", e), e) : NULL;
    if (one && two && !same(one, two)) {
        err_set(e, ERR_INVALID, "the two are not the same; nothing was changed");
        secret_free(one);
        one = NULL;
    } else if (!two) {
        secret_free(one);
        one = NULL;
    }
    secret_free(two);
    return one;
}
