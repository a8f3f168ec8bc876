/* The provider's side of a private network; see the header. */
#include <cct/local/init.h>
#include <cct/local/ns.h>
#include <cct/local/privnet.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TUN "/dev/net/tun"
#define PROBE_MS 15000

char *privnet_program(void)
{
    const char *path = getenv("PATH");
    if (!path || !*path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*path) {
        size_t n = strcspn(path, ":");
        char *file = xasprintf("%.*s/pasta", (int)n, path);
        if (file[0] == '/' && access(file, X_OK) == 0)
            return file;
        free(file);
        path += n + (path[n] == ':');
    }
    return NULL;
}

/* --- names ---------------------------------------------------------------------- */

static bool is_loopback(const char *address)
{
    return str_starts(address, "127.") || strcmp(address, "::1") == 0;
}

/* The address when it is a line "nameserver ADDRESS". */
static bool is_nameserver(const char *line, size_t len, char *address, size_t size)
{
    static const char word[] = "nameserver";
    size_t n = sizeof(word) - 1;
    if (len <= n || strncmp(line, word, n) != 0 || (line[n] != ' ' && line[n] != '\t'))
        return false;
    line += n;
    while (*line == ' ' || *line == '\t')
        line++;
    snprintf(address, size, "%.*s", (int)strcspn(line, " \t\r\n#;"), line);
    return true;
}

bool privnet_resolv(const char *host, struct buf *out)
{
    bool usable = false;
    char address[64];
    while (*host) {
        size_t n = strcspn(host, "\n");
        if (!is_nameserver(host, n, address, sizeof(address))) {
            buf_addf(out, "%.*s\n", (int)n, host);
        } else if (!is_loopback(address)) {
            buf_addf(out, "nameserver %s\n", address);
            usable = true;
        }
        host += n + (host[n] == '\n');
    }
    if (!usable)
        buf_addf(out, "nameserver " PRIVNET_DNS "\n");
    return !usable;
}

/* --- start ------------------------------------------------------------------------ */

static void become_keeper(char *const argv[], int pidfd, int said)
{
    char *envp[] = {NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high[3] = {fcntl(null, F_DUPFD_CLOEXEC, 20), fcntl(said, F_DUPFD_CLOEXEC, 20),
                   fcntl(pidfd, F_DUPFD_CLOEXEC, 20)};
    setsid();
    if (high[0] < 0 || high[1] < 0 || high[2] < 0 || dup2(high[0], 0) < 0 ||
        dup2(high[1], 1) < 0 || dup2(high[0], 2) < 0 || dup2(high[2], PRIVNET_PID_FD) < 0)
        _exit(126);
    syscall(SYS_close_range, PRIVNET_PID_FD + 1u, ~0u, 0);
    execve(argv[0], argv, envp);
    _exit(127);
}

int privnet_start(const char *exe, const char *id, int pidfd, bool forward_dns, int *fd,
                  struct err *e)
{
    char self[] = PRIVNET_KEEPER, forward[] = "forward", direct[] = "direct";
    char *program = privnet_program(), *path = xstrdup(exe), *name = xstrdup(id);
    char *argv[] = {path, self, name, program, forward_dns ? forward : direct, NULL};
    int said[2], rc = 0;
    if (!program) {
        rc =
            err_set(e, ERR_UNSUPPORTED, "the program pasta is gone; install the package passt");
    } else if (pipe2(said, O_CLOEXEC) != 0) {
        rc = err_sys(e, 0, "cannot make a pipe");
    } else {
        pid_t keeper = fork();
        if (keeper == 0)
            become_keeper(argv, pidfd, said[1]);
        if (keeper < 0)
            rc = err_sys(e, 0, "cannot fork");
        close(said[1]);
        if (rc != 0)
            close(said[0]);
        else
            fcntl(said[0], F_SETFL, O_NONBLOCK);
        *fd = rc == 0 ? said[0] : -1;
    }
    free(program);
    free(path);
    free(name);
    return rc;
}

/* --- probe ------------------------------------------------------------------------ */

static void read_said(int fd, char *text, size_t size)
{
    int64_t end = clock_mono_ms() + PROBE_MS, left = PROBE_MS;
    size_t have = 0;
    struct pollfd p = {fd, POLLIN, 0};
    while (left > 0 && poll(&p, 1, (int)left) != 0) {
        ssize_t n = read(fd, text + have, size - 1 - have);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            break;
        have += n > 0 ? (size_t)n : 0;
        left = end - clock_mono_ms();
    }
    text[have] = '\0';
}

static int look_at_tun(struct err *e)
{
    if (access(TUN, R_OK | W_OK) == 0)
        return 0;
    if (errno == ENOENT)
        return err_set(e, ERR_UNSUPPORTED,
                       "a private network needs " TUN
                       ", which is not there; as root: modprobe tun");
    return err_set(e, ERR_UNSUPPORTED,
                   "a private network needs " TUN ", which cannot be opened (%s); as root: "
                   "chmod 666 " TUN,
                   strerror(errno));
}

int privnet_probe(const char *exe, struct err *e)
{
    char text[400] = "", *program = privnet_program();
    int pidfd = -1, fd = -1;
    bool there = program != NULL;
    free(program);
    if (!there)
        return err_set(e, ERR_UNSUPPORTED,
                       "a private network needs the program pasta; install the package passt");
    int rc = look_at_tun(e);
    pid_t pid = rc == 0 ? ns_hold(&pidfd, e) : -1;
    if (pid < 0)
        return e->code;
    rc = privnet_start(exe, "probe", pidfd, false, &fd, e);
    if (rc == 0) {
        read_said(fd, text, sizeof(text));
        close(fd);
        if (strcmp(text, "ok") != 0)
            rc = err_set(e, ERR_UNSUPPORTED, "a private network cannot be made here: %s",
                         *text ? text : "its process ended at once");
    }
    kill(pid, SIGKILL);
    close(pidfd);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) /* the keeper ends with it */
        continue;
    return rc;
}
