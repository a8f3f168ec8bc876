/* The archives of a build: which of them the service lacks, packed one after the other, sent
 * side by side. */
#include "builds_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 3, GIVE_UP_MS = 60000, PROGRESS_MS = 300 };
static const struct e2b_call_opts opts = {.give_up_ms = GIVE_UP_MS};

static void go_on(struct build_run *b);

/* --- progress -------------------------------------------------------------------------- */

static void add_up(struct build_run *b)
{
    b->row->sent = b->row->total = 0;
    b->row->files_done = 0;
    for (size_t i = 0; i < b->uploads.n; i++) {
        struct upload *u = b->uploads.v[i];

        if (u->state == UP_SENDS) {
            int64_t sent = e2b_sent(u->client, u->call);
            u->sent = sent > u->bytes ? u->bytes : sent;
        }
        b->row->sent += u->state == UP_DONE ? u->bytes : u->sent;
        b->row->total += u->bytes;
        b->row->files_done += u->state == UP_DONE;
    }
    b->row->files = (int)b->uploads.n;
}

static void on_progress(void *ctx)
{
    struct build_run *b = ctx;
    int64_t before = b->row->sent;

    b->timer = 0;
    add_up(b);
    if (b->row->sent != before)
        builds_row_changed(b, false);
    for (size_t i = 0; i < b->uploads.n && !b->timer; i++)
        if (b->uploads.v[i]->state == UP_SENDS)
            b->timer = net_timer(b->j->o.net, PROGRESS_MS, on_progress, b);
}

/* --- one archive ------------------------------------------------------------------------- */

static void forget_link(struct upload *u)
{
    free(u->url);
    kv_free(u->headers);
    u->url = NULL;
    u->headers = NULL;
}

static void on_link(void *ctx, const struct e2b_result *r)
{
    struct upload *u = ctx;

    u->call = 0;
    if (r->err.code) {
        build_fail(u->b, &r->err);
        return;
    }
    forget_link(u);
    if (r->file->present || !r->file->url) {
        u->state = UP_DONE;
    } else {
        u->state = UP_WAITS;
        u->url = xstrdup(r->file->url);
        u->headers = kv_dup(r->file->headers);
    }
    go_on(u->b);
}

static void ask(struct upload *u)
{
    struct build_run *b = u->b;

    u->state = UP_ASK;
    u->client = b->j->e2b;
    u->call = e2b_build_file(u->client, b->row->template_id, u->hash, &opts, on_link, u);
}

static void on_sent(void *ctx, const struct e2b_result *r)
{
    struct upload *u = ctx;
    struct build_run *b = u->b;

    u->call = 0;
    if (r->err.code) {
        u->sent = 0;
        if (++u->tries < TRIES && r->err.code != ERR_PERM && b->j->e2b) { /* by a new link */
            build_note(b, "warn", "the upload failed, trying again: %s", r->err.text);
            ask(u);
            return;
        }
        build_fail(b, &r->err);
        return;
    }
    u->state = UP_DONE;
    u->sent = u->bytes;
    go_on(b);
}

static void send(struct upload *u, struct build_work *w)
{
    struct e2b_file f = {false, u->url, u->headers};

    u->state = UP_SENDS;
    u->bytes = (int64_t)w->archive_len;
    u->client = u->b->j->e2b;
    u->call = e2b_upload(u->client, &f, w->archive, w->archive_len, on_sent, u);
    w->archive = -1;
    if (!u->b->timer)
        u->b->timer = net_timer(u->b->j->o.net, PROGRESS_MS, on_progress, u->b);
}

void build_files_packed(struct build_run *b)
{
    struct build_work *w = b->work;

    for (size_t i = 0; i < b->uploads.n; i++) {
        struct upload *u = b->uploads.v[i];

        if (u->state != UP_PACKS)
            continue;
        if (w->err.code) {
            build_fail(b, &w->err);
            return;
        }
        if (!b->j->e2b) {
            build_fail(b, &b->j->priv->account_err);
            return;
        }
        build_note(b, "info", "uploading \"%.80s\": %zu files, %llu bytes packed",
                   w->recipe.steps.v[u->step].args[0], w->files[u->step].v.n,
                   (unsigned long long)w->archive_len);
        send(u, w);
    }
    go_on(b);
}

/* --- all of them -------------------------------------------------------------------------- */

static void go_on(struct build_run *b)
{
    size_t in_hand = 0, done = 0;
    struct err e = {0};

    if (b->over)
        return;
    for (size_t i = 0; i < b->uploads.n; i++) {
        enum up_state s = b->uploads.v[i]->state;

        in_hand += s == UP_SENDS || s == UP_PACKS;
        done += s == UP_DONE;
    }
    add_up(b);
    builds_row_changed(b, false);
    if (done == b->uploads.n) {
        build_files_done(b);
        return;
    }
    for (size_t i = 0; i < b->uploads.n && in_hand < BUILD_UPLOADS && !b->work->running; i++) {
        struct upload *u = b->uploads.v[i];

        if (u->state != UP_WAITS)
            continue;
        if (build_work_start(b->work, u->step, &e) != 0) {
            build_fail(b, &e);
            return;
        }
        u->state = UP_PACKS;
        in_hand++;
    }
}

void build_files_begin(struct build_run *b)
{
    const struct recipe *r = &b->work->recipe;
    size_t n;

    for (size_t i = 0; i < r->steps.n; i++) {
        bool known = !r->steps.v[i].hash[0];
        struct upload *u;

        for (size_t k = 0; k < b->uploads.n && !known; k++)
            known = str_eq(b->uploads.v[k]->hash, r->steps.v[i].hash);
        if (known)
            continue;
        u = *ARR_PUSH(&b->uploads) = xcalloc(1, sizeof(*u));
        u->b = b;
        u->step = i;
        memcpy(u->hash, r->steps.v[i].hash, sizeof(u->hash));
    }
    n = b->uploads.n;
    for (size_t i = 0; i < n && !b->over; i++)
        ask(b->uploads.v[i]);
    if (!n)
        build_files_done(b);
}

void build_files_release(struct build_run *b)
{
    for (size_t i = 0; i < b->uploads.n; i++) {
        core_call_cancel(b->j, b->uploads.v[i]->client, b->uploads.v[i]->call);
        forget_link(b->uploads.v[i]);
        free(b->uploads.v[i]);
    }
    ARR_RELEASE(&b->uploads);
}
