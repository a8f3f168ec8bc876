/* See the header. */
#include <cct/util/pidstat.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The name in front may hold anything: fields count from the last ')'. */
bool pidstat_read(pid_t pid, struct pidstat *s)
{
    char path[32], text[1024];
    long long user, sys, waited_user, waited_sys, rss;
    unsigned long long start;
    int fd, parent;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *p = strrchr(text, ')');
    if (!p || sscanf(p + 1,
                     " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld %*d %*d %*d "
                     "%*d %llu %*u %lld",
                     &s->state, &parent, &user, &sys, &waited_user, &waited_sys, &start,
                     &rss) != 8)
        return false;
    s->parent = parent;
    s->ticks = user + sys;
    s->waited_ticks = waited_user + waited_sys;
    s->start = start;
    s->rss_pages = rss;
    return true;
}

static bool has_not_ended(const struct pidstat *s)
{
    return s->state != 'Z' && s->state != 'X';
}

bool pidstat_lives(pid_t pid)
{
    struct pidstat s;

    return pidstat_read(pid, &s) && has_not_ended(&s);
}

uint64_t pidstat_start(pid_t pid)
{
    struct pidstat s;

    return pidstat_read(pid, &s) && has_not_ended(&s) ? s.start : 0;
}
