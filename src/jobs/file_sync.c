/* Bringing a download to the disk: on a slow one it takes seconds, which the net thread has not. */
#include "file_priv.h"

#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file_sync {
    struct mq *mq;
    uint64_t id;
    pthread_t thread;
    int fd;           /* its own */
    bool whole;
    int error;        /* errno, 0 = well; the thread's until it has ended */
    struct filejob *w; /* NULL: nobody waits any more */
    void (*fn)(struct filejob *w, const struct err *e);
};

static void sync_now(struct file_sync *s)
{
    int rc;

    do
        rc = s->whole ? syncfs(s->fd) : fsync(s->fd);
    while (rc != 0 && errno == EINTR);
    s->error = rc != 0 && errno != EINVAL && errno != ENOSYS ? errno : 0;
}

static void work_main(void *arg)
{
    struct file_sync *s = arg;
    struct cmd *c = cmd_new(CMD_FILE_SYNCED, 0);

    c->id = s->id;
    sync_now(s);
    mq_post(s->mq, MQ_NORMAL, &c->m);
}

static void end(struct file_sync *s)
{
    struct err e = {0};

    close(s->fd);
    if (s->error) {
        errno = s->error;
        err_sys(&e, ERR_IO, "cannot bring it to the disk");
    }
    if (s->w)
        s->fn(s->w, &e);
    free(s);
}

void file_sync(struct filejob *w, int fd, bool whole, void (*fn)(struct filejob *w, const struct err *e))
{
    struct jobs *j = w->j;
    struct file_sync *s = xcalloc(1, sizeof(*s));

    *s = (struct file_sync){.mq = net_mq(j->o.net), .id = ++j->priv->next_sync, .whole = whole,
                            .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .w = w, .fn = fn};
    if (s->fd >= 0 && thread_start(&s->thread, THREAD_WORK, "sync", work_main, s) == 0) {
        *ARR_PUSH(&j->priv->syncs) = s;
        return;
    }
    sync_now(s); /* no thread, or no descriptor: that is told as any other trouble */
    end(s);
}

void file_sync_forget(struct filejob *w)
{
    for (size_t i = 0; i < w->j->priv->syncs.n; i++)
        if (w->j->priv->syncs.v[i]->w == w)
            w->j->priv->syncs.v[i]->w = NULL;
}

void file_sync_done(struct jobs *j, uint64_t id)
{
    for (size_t i = 0; i < j->priv->syncs.n; i++) {
        struct file_sync *s = j->priv->syncs.v[i];

        if (s->id != id)
            continue;
        ARR_REMOVE(&j->priv->syncs, i);
        pthread_join(s->thread, NULL); /* it has said that it ends */
        end(s);
        return;
    }
}

void file_sync_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->syncs.n; i++) {
        struct file_sync *s = j->priv->syncs.v[i];

        pthread_join(s->thread, NULL);
        close(s->fd);
        free(s);
    }
    ARR_RELEASE(&j->priv->syncs);
}
