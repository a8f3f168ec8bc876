/* Files of this machine that a new sandbox wants: its file of variables and its skills. They
 * are read on a thread of their own, for main must not wait for a disk; its message to main is
 * the work itself, with what came of it. A form has them looked at, a create takes them in. */
#include "app_priv.h"

#include <cct/jobs/skills.h>
#include <cct/model/env_file.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MSG_FILES = 0x600, WAIT_MS = 2000 };

struct files {
    struct msg m; /* first */
    struct mq *events;
    pthread_t thread;
    char *env_file, *env_path; /* as it was said, and where that is; or NULL */
    char **skills;             /* ends with NULL */
    ARR(struct cmd *) creates; /* that wait for them; none: a look */
    /* what came of it */
    struct kv *env;
    struct buf tar;
    const char *field;
    struct err err;
};

static void files_free(struct msg *m)
{
    struct files *f = (struct files *)m;

    for (size_t i = 0; i < f->creates.n; i++)
        msg_free(&f->creates.v[i]->m);
    ARR_RELEASE(&f->creates);
    keys_env_free(f->env);
    str_list_free(f->skills);
    buf_release(&f->tar);
    free(f->env_file);
    free(f->env_path);
    free(f);
}

/* NULL: it wants none. */
static struct files *files_new(const struct app *a, const struct app_create *c)
{
    const char **skills = app_skills_of(a, c);
    bool env = c->env_file && *c->env_file;
    struct files *f = NULL;
    size_t n = 0;

    if (env || *skills) {
        f = xcalloc(1, sizeof(*f));
        msg_init(&f->m, MSG_FILES, sizeof(*f), files_free);
        f->events = a->events;
        f->env_file = env ? xstrdup(c->env_file) : NULL;
        f->env_path = env ? app_own_path(c->env_file) : NULL;
        while (skills[n])
            n++;
        f->skills = xcalloc(n + 1, sizeof(*f->skills));
        for (size_t i = 0; i < n; i++)
            f->skills[i] = app_own_path(skills[i]);
    }
    free(skills);
    return f;
}

static bool same(const struct files *a, const struct files *b)
{
    size_t i = 0;

    if (!a || !b || !str_eq(a->env_file, b->env_file))
        return false;
    while (a->skills[i] && b->skills[i] && str_eq(a->skills[i], b->skills[i]))
        i++;
    return !a->skills[i] && !b->skills[i];
}

/* --- the thread --------------------------------------------------------------------------- */

static void read_env(struct files *f)
{
    size_t len = 0;
    char *text = fs_read(f->env_path, ENV_FILE_BYTES, false, &len, &f->err);

    f->env = text ? env_file_parse(text, len, f->env_file, &f->err) : NULL;
    if (text)
        secret_wipe(text, len);
    free(text);
    f->field = f->env ? NULL : "env_file";
}

static void files_main(void *arg)
{
    struct files *f = arg;

    if (f->env_path)
        read_env(f);
    if (!f->err.code && *f->skills && skills_pack((const char *const *)f->skills, &f->tar, &f->err))
        f->field = "skills";
    mq_post(f->events, MQ_NORMAL, &f->m); /* main's from here on */
}

static int start(struct app *a, struct files *f, struct err *e)
{
    if (thread_start(&f->thread, THREAD_WORK, "files", files_main, f) != 0)
        return err_set(e, ERR_IO, "the files cannot be read: no thread can be started; try again");
    *ARR_PUSH(&a->reading) = f;
    return 0;
}

/* The thread has posted and ends. */
static void ended(struct app *a, struct files *f)
{
    pthread_join(f->thread, NULL);
    for (size_t i = 0; i < a->reading.n; i++)
        if (a->reading.v[i] == f)
            ARR_REMOVE(&a->reading, i);
}

/* --- a look ------------------------------------------------------------------------------- */

void app_files_forget(struct app *a)
{
    if (a->prepared.files)
        msg_free(&a->prepared.files->m);
    a->prepared.files = NULL;
}

/* Of what is in the file its names alone are kept. */
static void keep(struct app *a, struct files *f)
{
    static char set[] = "set";

    for (struct kv *v = f->env; v && v->k; v++) {
        bool any = v->v && *v->v;

        if (v->v)
            secret_wipe(v->v, strlen(v->v));
        free(v->v);
        v->v = xstrdup(any ? set : "");
    }
    buf_release(&f->tar);
    app_files_forget(a);
    a->prepared.files = f;
}

static bool is_looking(const struct app *a)
{
    for (size_t i = 0; i < a->reading.n; i++)
        if (!a->reading.v[i]->creates.n)
            return true;
    return false;
}

bool app_look_at_files(struct app *a, const struct app_create *c, bool anew)
{
    struct files *f = files_new(a, c);
    struct err e = {0};
    bool known = !f || (!anew && same(a->prepared.files, f));

    if (!known)
        app_files_forget(a);
    if (known || is_looking(a) || start(a, f, &e) != 0) { /* one at a time */
        if (f && e.code) {
            f->err = e;
            f->field = f->env_file ? "env_file" : "skills";
            keep(a, f);
            return true;
        }
        if (f)
            msg_free(&f->m);
        return known;
    }
    return false;
}

static const struct files *looked_at(const struct app *a, const struct app_create *c)
{
    struct files *f = files_new(a, c);
    bool known = same(a->prepared.files, f);

    if (f)
        msg_free(&f->m);
    return known ? a->prepared.files : NULL;
}

int app_files_check(const struct app *a, const struct app_create *c, const char **field,
                    struct err *e)
{
    const struct files *f = looked_at(a, c);

    if (!f || !f->err.code)
        return 0;
    *field = f->field;
    *e = f->err;
    return e->code;
}

struct kv *app_given_env(const struct app *a, const struct app_create *c, bool *unread)
{
    const struct files *f = c->env_file && *c->env_file ? looked_at(a, c) : NULL;

    *unread = c->env_file && *c->env_file && (!f || f->err.code);
    return app_join_env(f ? f->env : NULL, c->env);
}

/* --- creates ------------------------------------------------------------------------------ */

static void refuse(struct app *a, uint64_t req, const struct err *why)
{
    struct ev_done *d = ev_new(EV_DONE);

    d->m.req_id = req;
    d->err = *why;
    mq_post(a->events, MQ_NORMAL, &d->m);
}

/* What the file gives is known only now, so its keys are looked at again. */
static int fill(struct app *a, struct cmd_create *q, const struct files *f, struct err *e)
{
    struct kv *env;

    if (f->err.code) {
        *e = f->err;
        return e->code;
    }
    env = app_join_env(f->env, q->env);
    keys_env_free(q->env);
    q->env = env;
    if (f->tar.len) {
        q->skills = xmalloc(f->tar.len);
        memcpy(q->skills, f->tar.p, f->tar.len);
        q->skills_len = f->tar.len;
    }
    return f->env_file ? app_check_keys_of(a, q, e) : 0;
}

static void post_creates(struct app *a, struct files *f)
{
    for (size_t i = 0; i < f->creates.n; i++) {
        struct cmd *c = f->creates.v[i];
        struct err e = {0};

        if (fill(a, c->create, f, &e) == 0) {
            app_post(a, c);
        } else {
            refuse(a, c->m.req_id, &e);
            msg_free(&c->m);
        }
    }
    f->creates.n = 0;
}

void app_files_post(struct app *a, const struct app_create *c, struct cmd *const *take, size_t n)
{
    struct files *f = files_new(a, c);
    struct err e = {0};

    for (size_t i = 0; !f && i < n; i++)
        app_post(a, take[i]);
    if (!f)
        return;
    for (size_t i = 0; i < n; i++)
        *ARR_PUSH(&f->creates) = take[i];
    if (start(a, f, &e) == 0)
        return;
    f->err = e;
    post_creates(a, f);
    msg_free(&f->m);
}

/* --- life --------------------------------------------------------------------------------- */

bool app_files_take(struct app *a, struct msg **m)
{
    struct files *f = (struct files *)*m;

    if ((*m)->type != MSG_FILES)
        return false;
    ended(a, f);
    if (f->creates.n) {
        post_creates(a, f);
    } else {
        keep(a, f);
        *m = NULL;
    }
    return true;
}

bool app_files_stop(struct app *a)
{
    size_t keep_n = 0;

    for (size_t i = 0; i < a->reading.n; i++)
        if (!thread_join_ms(a->reading.v[i]->thread, WAIT_MS))
            a->reading.v[keep_n++] = a->reading.v[i];
    a->reading.n = keep_n;
    return keep_n == 0;
}

void app_files_release(struct app *a)
{
    app_files_forget(a);
    ARR_RELEASE(&a->reading);
}
