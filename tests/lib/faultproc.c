/* faultd as a child process: its first line says where it listens. */
#include "faultproc.h"
#include <arpa/inet.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ARGS_MAX = 32 };

struct faultd {
    pid_t pid;
    char url[64];
    char control[64]; /* the proxy's socket, or "" */
    char *tls_dir;    /* made by faultd_start_tls */
    char *ca;
};

static struct faultd *start(const char *const *args, size_t n)
{
    struct faultd *f = xcalloc(1, sizeof(*f));
    const char *dir = getenv("B"), *argv[ARGS_MAX + 2] = {"faultd"};
    char *path = xasprintf("%s/faultd", dir ? dir : "build/debug");
    posix_spawn_file_actions_t fa;
    int out[2];
    FILE *in;

    for (size_t i = 0; i < n && i < ARGS_MAX; i++)
        argv[i + 1] = args[i];
    if (pipe2(out, O_CLOEXEC))
        die("test: %s", strerror(errno));
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    if (posix_spawn(&f->pid, path, &fa, NULL, (char *const *)(void *)argv, environ) != 0)
        die("test: cannot start %s", path);
    posix_spawn_file_actions_destroy(&fa);
    close(out[1]);
    in = fdopen(out[0], "r");
    if (!in || !fgets(f->url, sizeof(f->url), in))
        die("test: %s said nothing", path);
    fclose(in);
    f->url[strcspn(f->url, "\n")] = '\0';
    free(path);
    return f;
}

struct faultd *faultd_start(const char *const *args)
{
    size_t n = 0;

    while (args && args[n])
        n++;
    return start(args, n);
}

struct faultd *faultd_start_tls(const char *const *args)
{
    char dir[] = "/tmp/cct-faultd-XXXXXX";
    const char *all[ARGS_MAX] = {"--tls-dir", dir};
    struct faultd *f;
    size_t n = 2;

    if (!mkdtemp(dir))
        die("test: cannot make a folder: %s", strerror(errno));
    for (; args && *args && n < ARGS_MAX; args++)
        all[n++] = *args;
    f = start(all, n);
    f->tls_dir = xstrdup(dir);
    f->ca = xasprintf("%s/ca.pem", dir);
    return f;
}

const char *faultd_ca(const struct faultd *f)
{
    return f->ca;
}

struct faultd *faultd_proxy(const char *url)
{
    static int count;
    char control[64], to[32];
    const char *args[] = {"proxy", "--to", to, "--control", control};
    unsigned long port = strtoul(strrchr(url, ':') + 1, NULL, 10);
    struct faultd *f;

    snprintf(to, sizeof(to), "127.0.0.1:%lu", port);
    snprintf(control, sizeof(control), "/tmp/cct-faultd-%d-%d", (int)getpid(), count++);
    f = start(args, 5);
    str_copy(f->control, sizeof(f->control), control);
    if (str_starts(url, "https:")) { /* TLS passes through */
        port = strtoul(strrchr(f->url, ':') + 1, NULL, 10);
        snprintf(f->url, sizeof(f->url), "https://localhost:%lu", port);
    }
    return f;
}

const char *faultd_url(const struct faultd *f)
{
    return f->url;
}

static bool read_all(int fd, struct buf *b)
{
    char room[16384];
    ssize_t n;

    while ((n = recv(fd, room, sizeof(room), 0)) > 0)
        buf_add(b, room, (size_t)n);
    return n == 0;
}

char *faultd_http(const struct faultd *f, const char *method, const char *path,
                  const char *body)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct buf b = BUF_INIT;
    const char *text;
    char *answer = NULL;

    a.sin_port = htons((uint16_t)strtoul(strrchr(f->url, ':') + 1, NULL, 10));
    buf_addf(&b, "%s %s HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_of_another_client\r\n"
                 "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             method, path, body ? strlen(body) : 0, body ? body : "");
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
        send(fd, b.p, b.len, MSG_NOSIGNAL) == (ssize_t)b.len) {
        buf_clear(&b);
        if (read_all(fd, &b) && str_starts(buf_str(&b), "HTTP/1.1 2") &&
            (text = strstr(b.p, "\r\n\r\n")))
            answer = xstrdup(text + 4);
    }
    buf_release(&b);
    close(fd);
    return answer;
}

bool faultd_config(const struct faultd *f, const char *json)
{
    char *answer = faultd_http(f, "POST", "/_faultd/config", json);

    free(answer);
    return answer != NULL;
}

bool faultd_command(const struct faultd *f, const char *line, char *answer, size_t size)
{
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[128] = "";
    ssize_t n = -1;

    str_copy(u.sun_path, sizeof(u.sun_path), f->control);
    if (connect(fd, (struct sockaddr *)&u, sizeof(u)) == 0 && dprintf(fd, "%s\n", line) > 0)
        n = recv(fd, text, sizeof(text) - 1, 0);
    close(fd);
    if (answer)
        str_copy(answer, size, text);
    return n > 0 && !str_starts(text, "unknown");
}

bool faultd_can_run(void)
{
    static const char *const args[] = {"probe"};
    struct faultd *f = start(args, 1);
    int status;
    bool ok =
        waitpid(f->pid, &status, 0) == f->pid && WIFEXITED(status) && !WEXITSTATUS(status);

    if (!ok)
        fprintf(stderr, "# %s\n", f->url); /* what it said */
    free(f);
    return ok;
}

int faultd_pid(const struct faultd *f)
{
    return f->pid;
}

void faultd_stop(struct faultd *f)
{
    if (!f)
        return;
    kill(f->pid, SIGTERM);
    waitpid(f->pid, NULL, 0);
    if (f->control[0])
        unlink(f->control);
    if (f->tls_dir) {
        char *key = xasprintf("%s/ca.key", f->tls_dir);
        unlink(f->ca);
        unlink(key);
        rmdir(f->tls_dir);
        free(key);
    }
    free(f->tls_dir);
    free(f->ca);
    free(f);
}

struct faultd *faultd_serve(const char *const *args)
{
    struct faultd *f = faultd_start(args);

    if (!f)
        die("test: faultd does not start");
    setenv("E2B_API_URL", faultd_url(f), 1);
    setenv("E2B_SANDBOX_URL", faultd_url(f), 1);
    return f;
}

static struct cJSON *read_log(const struct faultd *f, const char *path)
{
    char *text = faultd_http(f, "GET", path, NULL);
    struct cJSON *j;

    j = text ? json_parse(text, strlen(text), NULL) : NULL;
    if (!j)
        die("test: faultd does not tell what it was asked");
    free(text);
    return j;
}

struct faultd_asked faultd_asked(const struct faultd *f, const char *method, const char *path)
{
    struct cJSON *j = read_log(f, "/_faultd/log");
    struct faultd_asked a = {0};

    for (const struct cJSON *r = json_first(json_get(j, "requests")); r; r = json_next(r)) {
        int64_t at = json_i64(r, "ms", 0);

        if (fnmatch(method, json_str(r, "method", ""), 0) != 0 ||
            fnmatch(path, json_str(r, "path", ""), 0) != 0)
            continue;
        a.first = a.n++ ? a.first : at;
        a.last = at;
    }
    json_free(j);
    return a;
}

int64_t faultd_left(const struct faultd *f)
{
    struct cJSON *j = read_log(f, "/_faultd/log?brief");
    int64_t n = json_i64(j, "running", -1) + json_i64(j, "paused", -1);

    json_free(j);
    return n;
}

bool faultd_has_ipv6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}
