/* The slow part of a build, on a thread of its own: the recipe and its files are read and
 * hashed, archives packed. */
#include "builds_priv.h"

#include <cct/util/fs.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct build_work *build_work_new(struct jobs *j, const struct tbuild *row, const struct kv *args)
{
    struct build_work *w = xcalloc(1, sizeof(*w));

    w->j = j;
    w->mq = net_mq(j->o.net);
    w->archive = -1;
    w->where = xstrdup(row->recipe);
    w->tool = xstrdup(row->tool);
    w->args = kv_dup(args);
    recipe_init(&w->recipe);
    return w;
}

/* --- on the thread -------------------------------------------------------------------- */

static int hash_step(struct build_work *w, size_t i, const struct recipe_ignore *g)
{
    struct recipe_step *s = &w->recipe.steps.v[i];
    int rc;

    if (strcmp(s->type, "COPY") != 0)
        return 0;
    if (!w->recipe.folder)
        return err_set(&w->err, ERR_INVALID, "the recipe has no folder to copy \"%.80s\" from",
                       s->args[0]);
    rc = recipe_files_find(&w->files[i], w->recipe.folder, s->args[0], g, &w->stop, &w->err);
    if (rc == 0)
        rc = recipe_files_hash(&w->files[i], w->recipe.folder, s->args[0], s->args[1], s->hash,
                               &w->stop, &w->err);
    return rc && s->line ? err_wrap(&w->err, "line %d", s->line) : rc;
}

static void read_recipe(struct build_work *w)
{
    struct recipe_ignore g = {ARR_INIT};
    int rc = recipe_load(&w->recipe, w->where, w->tool, w->args, &w->err);

    if (rc == 0 && w->recipe.folder)
        rc = recipe_ignore_load(&g, w->recipe.folder, &w->err);
    if (rc == 0)
        w->files = xcalloc(w->recipe.steps.n + 1, sizeof(*w->files));
    for (size_t i = 0; rc == 0 && i < w->recipe.steps.n; i++)
        rc = hash_step(w, i, &g);
    recipe_ignore_release(&g);
}

static void pack(struct build_work *w)
{
    w->archive = fs_temp(&w->err);
    if (w->archive >= 0)
        recipe_files_pack(&w->files[w->pack], w->recipe.folder, w->archive, &w->archive_len,
                          &w->stop, &w->err);
}

static void work_main(void *arg)
{
    struct build_work *w = arg;
    struct cmd *c = cmd_new(CMD_BUILD_WORKED, 0);

    c->id = w->turn;
    if (w->pack == SIZE_MAX)
        read_recipe(w);
    else
        pack(w);
    mq_post(w->mq, MQ_NORMAL, &c->m);
}

/* --- on the net thread ------------------------------------------------------------------ */

int build_work_start(struct build_work *w, size_t step, struct err *e)
{
    w->pack = step;
    w->turn = ++builds_all(w->j)->turns;
    err_clear(&w->err);
    w->running = thread_start(&w->thread, THREAD_WORK, "build", work_main, w) == 0;
    return w->running ? 0
                      : err_set(e, ERR_IO, "the files cannot be read: no thread for it; try again");
}

void build_work_join(struct build_work *w)
{
    if (w->running)
        pthread_join(w->thread, NULL);
    w->running = false;
}

void build_work_leave(struct build_work *w)
{
    if (!w || !w->running) {
        build_work_free(w);
        return;
    }
    __atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
    *ARR_PUSH(&builds_all(w->j)->leaving) = w;
}

void build_work_free(struct build_work *w)
{
    if (!w)
        return;
    __atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
    build_work_join(w);
    if (w->archive >= 0)
        close(w->archive);
    for (size_t i = 0; w->files && i < w->recipe.steps.n; i++)
        recipe_files_release(&w->files[i]);
    free(w->files);
    recipe_release(&w->recipe);
    build_args_free(w->args);
    free(w->where);
    free(w->tool);
    free(w);
}
