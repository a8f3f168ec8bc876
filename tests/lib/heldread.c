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

struct rule {
    struct sock_filter v[WORDS];
    int n;
};

static void load(struct rule *r, uint32_t at)
{
    r->v[r->n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
}

/* What must be so of that which was loaded, else the next rule counts. */
static void when(struct rule *r, uint16_t test, uint32_t k)
{
    r->v[r->n++] = (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | test), k, 0, 0);
}

static int end_rule(struct rule *r, const struct heldread *h, struct sock_filter *f)
{
    uint32_t end = h->error ? SECCOMP_RET_ERRNO | (uint32_t)h->error : SECCOMP_RET_USER_NOTIF;

    r->v[r->n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, end);
    for (int i = 0; i < r->n; i++) {
        if (BPF_CLASS(r->v[i].code) == BPF_JMP)
            r->v[i].jf = (uint8_t)(r->n - i - 1);
        f[i] = r->v[i];
    }
    return r->n;
}

static void begin_rule(struct rule *r, uint32_t call)
{
    r->n = 0;
    load(r, offsetof(struct seccomp_data, nr));
    when(r, BPF_JEQ, call);
}

static int add_rules(struct sock_filter *f, const struct heldread *h)
{
    struct rule r;
    int n = 0;

    begin_rule(&r, h->syncs ? SYS_fsync : h->opens ? SYS_openat : SYS_pread64);
    if (h->syncs) {
        n = end_rule(&r, h, f);
        begin_rule(&r, SYS_fdatasync);
    } else if (h->opens) {
        load(&r, low(2));
        when(&r, BPF_JSET, h->opens);
    } else {
        if (h->fd >= 0) {
            load(&r, low(0));
            when(&r, BPF_JEQ, (uint32_t)h->fd);
        }
        if (h->len) {
            load(&r, low(2));
            when(&r, BPF_JEQ, h->len);
        }
        load(&r, low(3));
        when(&r, BPF_JGE, h->from);
    }
    return n + end_rule(&r, h, f + n);
}

bool heldread_install(const struct heldread *v, int n)
{
    struct sock_filter f[1 + MOST * WORDS];
    int len = 0, holds;

    for (int i = 0; i < n && i < MOST; i++)
        len += add_rules(f + len, &v[i]);
    f[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {(unsigned short)len, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    holds = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
    return holds >= 0 && fcntl(holds, F_SETFD, 0) == 0; /* what is executed keeps it, too */
}
