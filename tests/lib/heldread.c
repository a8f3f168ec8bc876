/* A filter for system calls: nobody answers those that are to be held. */
#include "heldread.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 8, WORDS = 10 };

/* Lower half of an argument: descriptors, lengths and offsets of tests have no other. */
static uint32_t low(int arg)
{
    size_t at = offsetof(struct seccomp_data, args) + (size_t)arg * sizeof(uint64_t);

    return (uint32_t)(at + (__BYTE_ORDER == __BIG_ENDIAN ? sizeof(uint32_t) : 0));
}

static int add_rule(struct sock_filter *f, const struct heldread *h)
{
    uint32_t end = h->error ? SECCOMP_RET_ERRNO | (uint32_t)h->error : SECCOMP_RET_USER_NOTIF;
    struct sock_filter rule[WORDS];
    int n = 0;

    rule[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    rule[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                             h->opens ? SYS_openat : SYS_pread64, 0, 0);
    if (h->opens) {
        rule[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(2));
        rule[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, h->opens, 0, 0);
    }
    if (h->fd >= 0 && !h->opens) {
        rule[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(0));
        rule[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)h->fd, 0, 0);
    }
    if (h->len && !h->opens) {
        rule[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(2));
        rule[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, h->len, 0, 0);
    }
    if (!h->opens) {
        rule[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(3));
        rule[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, h->from, 0, 0);
    }
    rule[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, end);
    for (int i = 0; i < n; i++) {
        if (BPF_CLASS(rule[i].code) == BPF_JMP)
            rule[i].jf = (uint8_t)(n - i - 1); /* on to the next rule */
        f[i] = rule[i];
    }
    return n;
}

bool heldread_install(const struct heldread *v, int n)
{
    struct sock_filter f[1 + MOST * WORDS];
    int len = 0, holds;

    for (int i = 0; i < n && i < MOST; i++)
        len += add_rule(f + len, &v[i]);
    f[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {(unsigned short)len, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    holds = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
    return holds >= 0 && fcntl(holds, F_SETFD, 0) == 0; /* what is executed keeps it, too */
}
