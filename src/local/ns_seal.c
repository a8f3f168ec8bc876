/* Rights the sandbox starts without. The order matters: the bounding set needs a
 * capability that is gone after the change of ids. */
#include <cct/local/ns.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

/* System calls no agent needs and that reach deep into the kernel. */
static const int denied[] = {
    SCMP_SYS(bpf),
    SCMP_SYS(add_key),
    SCMP_SYS(keyctl),
    SCMP_SYS(request_key),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(acct),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(reboot),
    SCMP_SYS(quotactl),
    SCMP_SYS(syslog),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(vhangup),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(move_pages),
    SCMP_SYS(nfsservctl),
};
/* These answer "not there", which makes libraries take their other way. */
static const int absent[] = {
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(userfaultfd),
};

static int add_rules(scmp_filter_ctx ctx)
{
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
        if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0) != 0)
            return -1;
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), absent[i], 0) != 0)
            return -1;
    /* a user may set the limits of all its processes: not those of the init */
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1,
                            SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, 1));
}

static const char *load_seccomp(void)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (!ctx) {
        errno = ENOMEM;
        return "seccomp filter";
    }
    if (seccomp_arch_native() == SCMP_ARCH_X86_64)
        seccomp_arch_add(ctx, SCMP_ARCH_X86); /* 32-bit programs under the same rules */
    int rc = add_rules(ctx);
    if (rc == 0)
        rc = seccomp_load(ctx);
    if (rc < -1)
        errno = -rc;
    seccomp_release(ctx);
    return rc == 0 ? NULL : "seccomp filter";
}

/* Landlock as of Linux 6.12, which not every <linux/landlock.h> knows yet. */
struct scope {
    uint64_t files, network, scoped;
};
#define SCOPE_ABSTRACT_SOCKETS 1u

/* Unix sockets without a file are found by whoever shares the network: on the host's, those of
 * a desktop, which do what anybody with the user's own id asks. Among themselves the sandbox's
 * programs keep theirs. An older kernel refuses to make the rule. */
static const char *scope_sockets(void)
{
    struct scope want = {.scoped = SCOPE_ABSTRACT_SOCKETS};
    int fd = (int)syscall(SYS_landlock_create_ruleset, &want, sizeof(want), 0);
    if (fd < 0)
        return errno == ENOSYS || errno == EOPNOTSUPP || errno == E2BIG || errno == EPERM
                   ? NULL
                   : "scope of the sockets";
    long rc = syscall(SYS_landlock_restrict_self, fd, 0);
    int saved = errno;
    close(fd);
    errno = saved;
    return rc == 0 ? NULL : "scope of the sockets";
}

static const char *drop_ids(void)
{
    /* an ordinary user cannot, and keeps only groups it had anyway */
    if (setgroups(0, NULL) != 0 && ns_ids()->full)
        return "drop of the groups";
    if (setresgid(NS_USER_ID, NS_USER_ID, NS_USER_ID) != 0 ||
        setresuid(NS_USER_ID, NS_USER_ID, NS_USER_ID) != 0)
        return "change to the sandbox's user";
    return NULL;
}

static const char *drop_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof(none));
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0 ? NULL : "drop of the capabilities";
}

static void limit(int what, rlim_t soft, rlim_t hard)
{
    struct rlimit now, want = {soft, hard};
    if (getrlimit((__rlimit_resource_t)what, &now) != 0)
        return;
    if (want.rlim_max > now.rlim_max)
        want.rlim_max = now.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    setrlimit((__rlimit_resource_t)what, &want);
}

/* Since 5.14 the processes of a user are counted in each user namespace apart. */
static bool counts_apart(void)
{
    struct utsname u;
    int major = 0, minor = 0;
    return uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 14));
}

void ns_limit(bool isolated)
{
    if (isolated && counts_apart())
        limit(RLIMIT_NPROC, NS_PROCESSES, NS_PROCESSES);
    limit(RLIMIT_NOFILE, 16384, 65536);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_FSIZE, NS_FILE_MAX, NS_FILE_MAX);
}

const char *ns_seal(void)
{
    for (int cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
            if (errno == EINVAL)
                break; /* past the last capability of this kernel */
            return "drop of the bounding set";
        }
    const char *step = drop_ids();
    if (!step)
        step = drop_capabilities();
    if (step)
        return step;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return "no new privileges";
    step = scope_sockets();
    if (!step)
        step = load_seccomp();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return step;
}
