/* Every process below the init: how to signal and how to count them. In a pid
 * namespace that is everybody; without one the init is a subreaper, so whatever
 * it or its children started still leads back to it by parent ids. */
#include "envd.h"
#include <cct/util/arr.h>
#include <cct/util/pidstat.h>
#include <cct/util/str.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TREE_DEPTH 256
#define PSS_MAX 64     /* processes whose shared memory is looked at: it takes time */
#define TREE_ROUNDS 16 /* a fork may slip between reading and killing: look again */

struct entry {
    pid_t pid, ppid;
    int64_t ticks, rss_pages;
    char state;
    bool below;
};
struct tree {
    ARR(struct entry) a;
};

static bool stat_read(pid_t pid, struct entry *en)
{
    struct pidstat s;
    if (!pidstat_read(pid, &s))
        return false;
    *en = (struct entry){.pid = pid, .ppid = s.parent, .ticks = s.ticks + s.waited_ticks,
                         .rss_pages = s.rss_pages, .state = s.state};
    return true;
}

static void tree_read(struct envd *e, struct tree *all)
{
    DIR *d = opendir("/proc");
    if (d == NULL) {
        envd_log(e, "cannot read /proc: %s", strerror(errno));
        return;
    }
    struct dirent *de;
    while ((de = readdir(d)) != NULL) {
        struct entry en;
        int64_t pid;
        if (str_to_i64(de->d_name, 1, INT32_MAX, &pid) && stat_read((pid_t)pid, &en))
            *ARR_PUSH(&all->a) = en;
    }
    closedir(d);
    pid_t self = getpid();
    bool more = true;
    while (more) { /* as deep as the tree is, usually 3 rounds */
        more = false;
        for (size_t i = 0; i < all->a.n; i++) {
            struct entry *en = &all->a.v[i];
            if (en->below || en->pid == self)
                continue;
            bool below = e->isolated || en->ppid == self;
            for (size_t k = 0; !below && k < all->a.n; k++)
                below = all->a.v[k].below && all->a.v[k].pid == en->ppid;
            if (below)
                en->below = more = true;
        }
    }
}

bool envd_tree_has(const struct envd *e, pid_t pid)
{
    if (e->isolated)
        return true; /* no others can be seen */
    for (int depth = 0; pid > 1 && depth < TREE_DEPTH; depth++) {
        struct pidstat s;
        if (pid == getpid())
            return true;
        if (!pidstat_read(pid, &s))
            return false;
        pid = s.parent;
    }
    return false;
}

void envd_tree_signal(struct envd *e, int sig)
{
    if (e->isolated) {
        kill(-1, sig); /* ESRCH: nobody there */
        return;
    }
    for (int round = 0; round < TREE_ROUNDS; round++) {
        struct tree all = {ARR_INIT};
        size_t fresh = 0;
        tree_read(e, &all);
        for (size_t i = 0; i < all.a.n; i++) {
            struct entry *en = &all.a.v[i];
            bool done = en->state == 'Z' || (sig == SIGSTOP && en->state == 'T');
            if (en->below && !done && kill(en->pid, sig) == 0)
                fresh++;
        }
        ARR_RELEASE(&all.a);
        if (fresh == 0 || sig == SIGCONT)
            break;
    }
}

/* "Pss:" of smaps_rollup in bytes, -1 when the kernel does not tell. */
static int64_t pss_read(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "\nPss:");
    long long kb;
    return at != NULL && sscanf(at + 5, " %lld", &kb) == 1 ? (int64_t)kb << 10 : -1;
}

void envd_tree_usage(struct envd *e, int64_t *ticks, int64_t *mem)
{
    struct tree all = {ARR_INIT};
    size_t n = 0;
    *ticks = *mem = 0;
    tree_read(e, &all);
    for (size_t i = 0; i < all.a.n; i++) {
        if (!all.a.v[i].below)
            continue;
        *ticks += all.a.v[i].ticks;
        if (all.a.v[i].state != 'Z')
            n++;
        int64_t pss = n <= PSS_MAX ? pss_read(all.a.v[i].pid) : -1;
        *mem += pss >= 0 ? pss : all.a.v[i].rss_pages * sysconf(_SC_PAGESIZE);
    }
    ARR_RELEASE(&all.a);
}
