/* The sandbox's PID 1: reads its configuration, serves envd's data plane on the
 * inherited socket, reaps every child, and ends everything at its deadline even
 * when the provider never speaks again. As an ordinary process (isolated:false)
 * it does the same for the processes below it. */
#include "envd.h"
#include "envd_job.h"
#include "init_notes.h"
#include <cct/local/init.h>
#include <cct/local/signals.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG_MAX (1u << 20)
#define DEAD_MAN_STEP_MS 5000 /* timers stand still while the machine sleeps: look again */

void envd_log(struct envd *e, const char *fmt, ...)
{
    if (e->log_fd < 0)
        return;
    struct buf b = BUF_INIT_MAX(4096);
    va_list ap;
    va_start(ap, fmt);
    buf_addf(&b, "init %s: ", e->sandbox_id);
    buf_addv(&b, fmt, ap);
    buf_addc(&b, '\n');
    va_end(ap);
    if (write(e->log_fd, buf_str(&b), b.len) < 0)
        e->log_fd = -1; /* the provider is gone, and with it its log */
    buf_release(&b);
}

static struct cJSON *config_read(struct err *err)
{
    struct buf b = BUF_INIT_MAX(CONFIG_MAX);
    struct cJSON *j = NULL;
    for (;;) {
        char tmp[4096];
        ssize_t n = read(INIT_CONFIG_FD, tmp, sizeof(tmp));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_sys(err, ERR_IO, "cannot read the configuration from descriptor %d",
                    INIT_CONFIG_FD);
            goto out;
        }
        if (n == 0)
            break;
        if (buf_add(&b, tmp, (size_t)n) != 0) {
            err_set(err, ERR_LIMIT, "the configuration is larger than %u bytes", CONFIG_MAX);
            goto out;
        }
    }
    j = json_parse(buf_str(&b), b.len, err);
out:
    close(INIT_CONFIG_FD);
    buf_release(&b);
    return j;
}

/* Fields of the configuration that are used all the time. */
static void config_apply(struct envd *e)
{
    const struct cJSON *c = e->config;
    e->sandbox_id = xstrdup(json_str(c, "sandboxID", ""));
    e->token = xstrdup(json_str(c, "token", ""));
    e->user = xstrdup(json_str(c, "user", "user"));
    e->home = xstrdup(json_str(c, "home", "/home/user"));
    e->workdir = xstrdup(json_str(c, "workdir", e->home));
    e->env = json_get(c, "envVars");
    /* Outside a pid namespace kill(-1) would reach the whole machine. */
    e->isolated = json_bool(c, "isolated", true) && getpid() == 1;
    e->deadline_ms = json_i64(c, "deadline", 0);
    int64_t upload = json_i64(c, "uploadMax", ENVD_UPLOAD_MAX);
    e->upload_max = upload > 0 ? (uint64_t)upload : 0;
    e->log_fd = (int)json_i64(c, "logFd", -1);
    e->cgroup_fd = (int)json_i64(c, "cgroupFd", -1);
    e->cpu_limit = json_i64(c, "cpuLimit", 0);
    e->mem_limit = json_i64(c, "memLimit", 0);
    if (e->log_fd >= 0)
        fcntl(e->log_fd, F_SETFD, FD_CLOEXEC);
}

static void signals_set(void)
{
    struct sigaction sa = {.sa_handler = SIG_IGN};
    signals_default();
    sigaction(SIGPIPE, &sa, NULL); /* errors of the call say it instead */
    sigaction(SIGXFSZ, &sa, NULL);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct envd *e = arg;
    int status;
    pid_t pid;
    (void)fd;
    (void)what;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        envd_process_reaped(e, pid, status);
}

static void on_term(evutil_socket_t fd, short what, void *arg)
{
    struct envd *e = arg;
    (void)fd;
    (void)what;
    event_base_loopbreak(e->base);
}

static void on_dead_man(evutil_socket_t fd, short what, void *arg)
{
    struct envd *e = arg;
    (void)fd;
    (void)what;
    int64_t left = DEAD_MAN_STEP_MS;
    if (e->deadline_ms > 0 && e->deadline_ms - clock_boot_ms() < left)
        left = e->deadline_ms - clock_boot_ms();
    if (left <= 0) {
        envd_log(e, "deadline passed, ending the sandbox");
        event_base_loopbreak(e->base);
        return;
    }
    struct timeval tv = {left / 1000, (left % 1000) * 1000};
    event_add(e->dead_man, &tv);
}

static int run(struct envd *e)
{
    struct event *chld = evsignal_new(e->base, SIGCHLD, on_child, e);
    struct event *term = evsignal_new(e->base, SIGTERM, on_term, e);
    struct event *intr = evsignal_new(e->base, SIGINT, on_term, e);
    int rc = 1;
    e->dead_man = evtimer_new(e->base, on_dead_man, e);
    if (event_add(chld, NULL) != 0 || event_add(term, NULL) != 0 ||
        event_add(intr, NULL) != 0) {
        envd_log(e, "cannot watch signals: %s", strerror(errno));
        goto out;
    }
    e->http = http_srv_new_fd(e->base, INIT_LISTEN_FD, envd_route, e);
    http_srv_on_head(e->http, envd_admit);
    http_srv_limits(e->http, ENVD_CONNS_MAX, ENVD_BODY_MAX);
    on_dead_man(-1, 0, e);
    envd_samples_start(e);
    event_base_dispatch(e->base);
    rc = 0;
out:
    envd_tree_signal(e, SIGKILL);
    envd_process_free_all(e);
    envd_watch_free_all(e);
    envd_job_free_all(e);
    envd_samples_stop(e);
    envd_notes_free();
    http_srv_free(e->http);
    event_free(chld);
    event_free(term);
    event_free(intr);
    event_free(e->dead_man);
    return rc;
}

int init_main(void)
{
    struct envd e = {.log_fd = -1, .files = {.fd = -1}, .started_ms = clock_wall_ms()};
    struct err err = {0};
    int rc = 1;

    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "sandbox-init");
    signals_set();
    close_range(INIT_LISTEN_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC); /* whatever was left open */
    e.config = config_read(&err);
    if (e.config == NULL) {
        fprintf(stderr, "sandbox-init: %s\n", err.text);
        close(INIT_LISTEN_FD);
        return 1;
    }
    config_apply(&e);
    if (fs_root_init(&e.files, e.isolated ? NULL : e.home, &err) != 0) {
        envd_log(&e, "%s", err.text);
        goto out;
    }
    if (digest_init() != 0) {
        envd_log(&e, "libsodium does not start");
        goto out;
    }
    fs_raise_nofile();
    if (!e.isolated)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    e.base = event_base_new();
    if (e.base == NULL) {
        envd_log(&e, "libevent does not start: %s", strerror(errno));
        goto out;
    }
    rc = run(&e);
    event_base_free(e.base);
out:
    fs_root_release(&e.files);
    json_free(e.config);
    free(e.sandbox_id);
    free(e.token);
    free(e.user);
    free(e.home);
    free(e.workdir);
    return rc;
}
