/* Tries the whole start of a sandbox in a child and turns a refusal into one
 * sentence with what to do. A clone() that succeeds proves nothing: on some
 * systems only the id map or a mount is refused. */
#include <cct/local/ns.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>

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

#define PROBE_MS 5000

static bool sysctl_is(const char *path, const char *value)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n > 0)
        text[n] = '\0';
    return strcmp(str_trim(text), value) == 0;
}

void ns_apparmor_profile(struct buf *b, const char *exe)
{
    buf_addf(b,
             "# /etc/apparmor.d/cc-tui-local, then: apparmor_parser -r "
             "/etc/apparmor.d/cc-tui-local\n"
             "abi <abi/4.0>,\ninclude <tunables/global>\n"
             "profile cc-tui-local \"%s\" flags=(unconfined) {\n  userns,\n}\n",
             exe);
}

/* What the user can do about it, from the host's switches. */
static const char *advice(int sys)
{
    if (sysctl_is("/proc/sys/user/max_user_namespaces", "0") || sys == ENOSPC)
        return "as root: sysctl -w user.max_user_namespaces=15000";
    if (geteuid() != 0 && sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
        return "as root: sysctl -w kernel.unprivileged_userns_clone=1";
    if (geteuid() != 0 &&
        sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
        return "AppArmor restricts user namespaces here: as root, install the profile that "
               "'cc-tui-local probe --profile' prints";
    if (access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0)
        return "start the container with --security-opt seccomp=unconfined --security-opt "
               "apparmor=unconfined --security-opt systempaths=unconfined";
    return "a container needs --security-opt seccomp=unconfined, apparmor=unconfined and "
           "systempaths=unconfined; a host needs user namespaces (sysctl "
           "user.max_user_namespaces)";
}

static int refusal(struct err *e, const char *cause, int sys)
{
    char text[256];
    str_copy(text, sizeof(text), cause);
    return err_set(e, ERR_UNSUPPORTED,
                   "this system does not let cc-tui make isolated sandboxes: %s; %s", text,
                   advice(sys));
}

static bool await(int fd, int64_t deadline)
{
    struct pollfd pfd = {fd, POLLIN, 0};
    int64_t left = deadline - clock_mono_ms();
    return left > 0 && poll(&pfd, 1, (int)left) != 0;
}

static void read_status(int fd, char *text, size_t size, int64_t deadline)
{
    size_t have = 0;
    while (await(fd, deadline)) {
        ssize_t n = read(fd, text + have, size - 1 - have);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    text[have] = '\0';
}

int ns_probe(const char *exe, struct err *e)
{
    struct ns_spec s = {.id = "probe",
                        .exe = exe,
                        .config_fd = -1,
                        .listen_fd = -1,
                        .isolated = true,
                        .internet = true,
                        .probe = true};
    struct ns_child child;
    struct err first = {0};
    if (ns_start(&s, &child, &first) != 0) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        return refusal(e, first.text, first.sys);
    }
    char text[256];
    int64_t deadline = clock_mono_ms() + PROBE_MS;
    read_status(child.status_fd, text, sizeof(text), deadline);
    close(child.status_fd);
    bool ended = await(child.pidfd, deadline);
    syscall(SYS_pidfd_send_signal, child.pidfd, SIGKILL, NULL, 0);
    close(child.pidfd);
    int status = 0;
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (text[0])
        return refusal(e, text, 0);
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
                   "'%s' does not run inside a sandbox, which sees only /usr, /opt and the "
                   "program itself; its libraries must be there and the file readable by all",
                   exe);
}
