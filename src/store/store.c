/* The db thread: requests come by a queue, writes are gathered so that many share one
 * commit, answers leave after the commit. */
#include "store_priv.h"

#include <cct/model/pair.h>
#include <cct/model/tbuild.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOW_END_MS = 2000, /* of an end, then it is said that the disk is waited for */
    GATHER_MS = 50, /* bulk writes wait at most this long after a commit */
    GATHER_ROWS = 500,
    GATHER_BYTES = 4 << 20,
    PRUNE_DELAY_MS = 5000, /* after opening */
    SEARCH_DELAY_MS = 2000,
    PRUNE_EVERY_MS = 6 * 3600 * 1000,
};

enum how {
    HOW_READ,
    HOW_BULK,  /* may wait for more of its kind */
    HOW_WRITE, /* committed with what waits, at once */
    HOW_FULL   /* the same, and on the disk before the answer */
};

static const struct {
    enum how how;
    enum st_type answer;
    st_op_fn *run;
} ops[] = {
    [OP_SANDBOXES] = {HOW_READ, ST_SANDBOXES, st_op_sandboxes},
    [OP_OWNED] = {HOW_READ, ST_SANDBOXES, st_op_owned},
    [OP_PUT_SANDBOX] = {HOW_WRITE, ST_SANDBOXES, st_op_put_sandbox},
    [OP_DEL_SANDBOX] = {HOW_WRITE, ST_OK, st_op_del_sandbox},
    [OP_RUN_OPEN] = {HOW_WRITE, ST_RUN, st_op_run_open},
    [OP_APPEND] = {HOW_BULK, ST_APPENDED, st_op_append},
    [OP_RUN_END] = {HOW_WRITE, ST_RUN, st_op_run_end},
    [OP_EVENTS] = {HOW_READ, ST_EVENTS, st_op_events},
    [OP_EVENTS_SUMMED] = {HOW_READ, ST_EVENTS, st_op_events_summed},
    [OP_RAW] = {HOW_READ, ST_RAW, st_op_raw},
    [OP_MESSAGE_ADD] = {HOW_FULL, ST_MESSAGE, st_op_message_add},
    [OP_MESSAGES_ADD] = {HOW_FULL, ST_MESSAGES, st_op_messages_add},
    [OP_MESSAGES] = {HOW_READ, ST_MESSAGES, st_op_messages},
    [OP_MESSAGE] = {HOW_READ, ST_MESSAGE, st_op_message},
    [OP_MESSAGE_CLAIM] = {HOW_WRITE, ST_MESSAGE, st_op_message_claim},
    [OP_MESSAGE_UNCLAIM] = {HOW_WRITE, ST_OK, st_op_message_unclaim},
    [OP_MESSAGE_STATE] = {HOW_FULL, ST_MESSAGE, st_op_message_state},
    [OP_ANSWER_ADD] = {HOW_FULL, ST_ANSWERS, st_op_answer_add},
    [OP_ANSWER_SENT] = {HOW_WRITE, ST_ANSWERS, st_op_answer_sent},
    [OP_ANSWERS] = {HOW_READ, ST_ANSWERS, st_op_answers},
    [OP_LEASE] = {HOW_WRITE, ST_LEASE, st_op_lease},
    [OP_LEASE_DROP] = {HOW_WRITE, ST_OK, st_op_lease_drop},
    [OP_INTENT_ADD] = {HOW_FULL, ST_INTENTS, st_op_intent_add},
    [OP_INTENT_DONE] = {HOW_WRITE, ST_OK, st_op_intent_done},
    [OP_INTENTS] = {HOW_READ, ST_INTENTS, st_op_intents},
    [OP_LOG_ADD] = {HOW_BULK, ST_OK, st_op_log_add},
    [OP_LOG] = {HOW_READ, ST_EVLOG, st_op_log},
    [OP_START] = {HOW_READ, ST_OK, st_op_start},
    [OP_START_PUT] = {HOW_FULL, ST_OK, st_op_start_put},
    [OP_PAIR] = {HOW_READ, ST_PAIR, st_op_pair},
    [OP_PAIR_PUT] = {HOW_FULL, ST_PAIR, st_op_pair_put},
    [OP_KEYS] = {HOW_READ, ST_KEYS, st_op_keys},
    [OP_PROJECT] = {HOW_WRITE, ST_PROJECT, st_op_project},
    [OP_PROJECT_RENAME] = {HOW_WRITE, ST_OK, st_op_project_rename},
    [OP_PROJECT_FOLDER] = {HOW_WRITE, ST_OK, st_op_project_folder},
    [OP_PROJECTS] = {HOW_READ, ST_PROJECTS, st_op_projects},
    [OP_PROJECT_PUT] = {HOW_FULL, ST_OK, st_op_project_put},
    [OP_PROJECT_DEL] = {HOW_FULL, ST_OK, st_op_project_del},
    [OP_PROJECT_USED] = {HOW_WRITE, ST_OK, st_op_project_used},
    [OP_PROJECT_VAR] = {HOW_FULL, ST_OK, st_op_project_var},
    [OP_PROJECT_VAR_DEL] = {HOW_FULL, ST_OK, st_op_project_var_del},
    [OP_PRESET] = {HOW_FULL, ST_OK, st_op_preset},
    [OP_FILTER] = {HOW_FULL, ST_OK, st_op_filter},
    [OP_VAULT_PUT] = {HOW_FULL, ST_OK, st_op_vault_put},
    [OP_KEY_PUT] = {HOW_FULL, ST_OK, st_op_key_put},
    [OP_KEY_DEL] = {HOW_FULL, ST_OK, st_op_key_del},
    [OP_SEARCH] = {HOW_READ, ST_HITS, st_op_search},
    [OP_RUNS] = {HOW_READ, ST_RUNS, st_op_runs},
    [OP_SIGHTINGS] = {HOW_BULK, ST_OK, st_op_sightings},
    [OP_LEDGER] = {HOW_READ, ST_LEDGER, st_op_ledger},
    [OP_LEDGER_FORGET] = {HOW_WRITE, ST_OK, st_op_ledger_forget},
    [OP_DOUBTS] = {HOW_READ, ST_DOUBTS, st_op_doubts},
    [OP_RUNS_TOLD] = {HOW_WRITE, ST_OK, st_op_runs_told},
    [OP_BUDGET_TOLD] = {HOW_WRITE, ST_BUDGET, st_op_budget_told},
    [OP_BUILDS] = {HOW_READ, ST_BUILDS, st_op_builds},
    [OP_BUILD_PUT] = {HOW_WRITE, ST_BUILDS, st_op_build_put},
    [OP_BUILD_DEL] = {HOW_WRITE, ST_OK, st_op_build_del},
    [OP_PRUNE] = {HOW_READ, ST_OK, NULL},
};

/* --- requests and answers as messages --------------------------------------------------- */

static void free_lists(struct st_reply *r)
{
    for (size_t i = 0; i < r->n_sandboxes; i++)
        sandbox_release(&r->sandboxes[i]);
    for (size_t i = 0; i < r->n_events; i++)
        free(r->events[i].json);
    for (size_t i = 0; i < r->n_messages; i++)
        message_release(&r->messages[i]);
    for (size_t i = 0; i < r->n_log; i++)
        free(r->log[i].text);
    for (size_t i = 0; i < r->n_answers; i++)
        free(r->answers[i].text);
    for (size_t i = 0; i < r->n_doubts; i++)
        free(r->doubts[i].sandbox_id);
    for (size_t i = 0; i < r->n_hits; i++)
        st_hit_release(&r->hits[i]);
    for (size_t i = 0; i < r->n_builds; i++)
        tbuild_release(&r->builds[i]);
    for (size_t i = 0; i < r->n_intents; i++) {
        free(r->intents[i].project);
        free(r->intents[i].target);
    }
}

static void free_reply(struct msg *m)
{
    struct st_reply *r = (struct st_reply *)m;
    free_lists(r);
    message_release(&r->msg);
    free(r->text);
    free(r->sandboxes);
    free(r->events);
    free(r->raw);
    free(r->messages);
    free(r->log);
    free(r->intents);
    free(r->answers);
    free(r->hits);
    free(r->doubts);
    free(r->builds);
    free(r->runs);
    st_keys_free(r->keys);
    st_projects_free(r->projects);
    pair_free(r->pair);
    ledger_report_free(r->report);
    free(r);
}

struct st_reply *st_reply_new(enum st_type t, uint64_t req_id)
{
    struct st_reply *r = xcalloc(1, sizeof(*r));
    msg_init(&r->m, t, sizeof(*r), free_reply);
    r->m.req_id = req_id;
    return r;
}

static void send_reply(struct mq *mq, struct st_reply *r)
{
    size_t bytes = sizeof(*r) + r->raw_len + r->n_sandboxes * sizeof(*r->sandboxes);
    for (size_t i = 0; i < r->n_events; i++)
        bytes += r->events[i].len + sizeof(r->events[i]);
    r->m.bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    if (mq)
        mq_post(mq, MQ_NORMAL, &r->m);
    else
        msg_free(&r->m);
}

/* --- the db thread --------------------------------------------------------------------------
 */

static void done_with(struct store *s, struct st_req *q)
{
    atomic_fetch_sub(&s->pending, (int64_t)q->m.bytes);
    atomic_fetch_sub(&s->requests, 1);
    msg_free(&q->m);
}

/* Kept for who asks for keys: none is not the same as lost. */
static void note_trouble(struct store *s, const struct st_reply *r)
{
    char *aside;

    if (r->readonly)
        return;
    str_set(&s->trouble, r->text);
    aside = s->trouble ? NULL : st_aside(s);
    if (aside)
        s->trouble = xasprintf("the database was damaged: the old file is kept as '%s'", aside);
    free(aside);
}

/* Damage met at work. What waits for an answer has got it; row ids of the old file are
 * unknown in the new one. */
static void after_damage(struct store *s)
{
    struct st_reply *r = st_reply_new(ST_OPENED, 0);
    st_rollback(s);
    st_open_again(s, r);
    note_trouble(s, r);
    send_reply(s->opened, r);
}

static void tell_trouble(struct store *s, const struct err *e)
{
    struct st_reply *r = st_reply_new(ST_TROUBLE, 0);
    r->err = *e;
    send_reply(s->opened, r);
}

static struct st_reply *run_op(struct store *s, struct st_req *q)
{
    struct st_reply *r = st_reply_new(ops[q->m.type].answer, q->to.req_id);
    int rc = q->m.type == OP_APPEND ? 0 : st_settle(s, &r->err);
    if (rc == 0)
        rc = ops[q->m.type].run(s, q, r);
    if (rc != 0 && r->err.code == 0)
        r->err.code = rc;
    r->readonly = s->readonly;
    return r;
}

static void refuse(struct store *s, struct st_req *q, const struct err *e)
{
    struct st_reply *r = st_reply_new(ops[q->m.type].answer, q->to.req_id);
    r->err = *e;
    r->readonly = s->readonly;
    send_reply(q->to.mq, r);
    done_with(s, q);
}

/* Requests [from, to) of the batch in one transaction. On failure nothing is kept and *e
 * says why; the answer of the request that failed stays, as it may tell more. */
static int attempt(struct store *s, size_t from, size_t to, struct err *e)
{
    int rc = st_begin(s, s->batch_full, e);
    size_t i = from;
    for (; rc == 0 && i < to; i++) {
        s->answers[i] = run_op(s, s->batch[i]);
        rc = s->answers[i]->err.code;
    }
    if (rc == 0)
        rc = st_settle(s, e);
    else if (i > from)
        *e = s->answers[i - 1]->err;
    if (rc == 0)
        return st_commit(s, e);
    st_unsettle(s);
    st_rollback(s);
    return rc;
}

static void drop_answers(struct store *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (s->answers[i])
            msg_free(&s->answers[i]->m);
        s->answers[i] = NULL;
    }
}

/* e: why these failed, NULL = they are committed. */
static void deliver(struct store *s, size_t from, size_t to, const struct err *e)
{
    for (size_t i = from; i < to; i++) {
        struct st_reply *r = s->answers[i];
        s->answers[i] = NULL;
        if (r && e && r->err.code == 0)
            r->err = *e;
        if (r) {
            send_reply(s->batch[i]->to.mq, r);
            done_with(s, s->batch[i]);
        } else {
            refuse(s, s->batch[i], e);
        }
    }
}

/* Together; if one spoils it, each by itself, so that only the guilty one fails. */
static void flush(struct store *s)
{
    struct err e = {0};
    size_t n = s->n_batch;
    if (n == 0)
        return;
    int rc = attempt(s, 0, n, &e);
    if (rc == 0) {
        deliver(s, 0, n, NULL);
    } else if (n == 1 || rc == ERR_BUSY || rc == ERR_CORRUPT) {
        if (n > 1)
            drop_answers(s, 0, n);
        deliver(s, 0, n, &e);
    } else {
        drop_answers(s, 0, n);
        for (size_t i = 0; i < n; i++) {
            rc = attempt(s, i, i + 1, &e);
            deliver(s, i, i + 1, rc == 0 ? NULL : &e);
        }
    }
    s->n_batch = s->batch_rows = s->batch_bytes = 0;
    s->batch_now = s->batch_full = false;
    s->last_commit = clock_mono_ms();
    if (rc == ERR_CORRUPT)
        after_damage(s);
}

/* Nothing that was deleted can be in what these leave in the log. */
static bool is_light(uint32_t op)
{
    return op == OP_SIGHTINGS || op == OP_LOG_ADD || op == OP_PUT_SANDBOX;
}

static void add_to_batch(struct store *s, struct st_req *q)
{
    if (s->n_batch == s->cap_batch) {
        s->cap_batch = s->cap_batch ? s->cap_batch * 2 : 128;
        s->batch = xrealloc(s->batch, s->cap_batch * sizeof(struct st_req *));
        s->answers = xrealloc(s->answers, s->cap_batch * sizeof(struct st_reply *));
    }
    s->answers[s->n_batch] = NULL;
    s->batch[s->n_batch++] = q;
    s->batch_rows += 1 + (q->append ? q->append->n_events : 0);
    s->batch_bytes += q->m.bytes;
    s->heavy |= !is_light(q->m.type);
    s->batch_now |= ops[q->m.type].how != HOW_BULK;
    s->batch_full |= ops[q->m.type].how == HOW_FULL;
    if (s->batch_rows >= GATHER_ROWS || s->batch_bytes >= GATHER_BYTES)
        flush(s);
}

static void read_now(struct store *s, struct st_req *q)
{
    flush(s);
    if (mq_closed(s->in)) { /* nobody is there for the answer */
        struct err e;
        err_set(&e, ERR_CANCELLED, "the database is not asked any more: the program ends");
        refuse(s, q, &e);
        return;
    }
    struct st_reply *r = run_op(s, q);
    bool damaged = r->err.code == ERR_CORRUPT;
    send_reply(q->to.mq, r);
    done_with(s, q);
    if (damaged)
        after_damage(s);
}

static void begin_prune(struct store *s, struct st_to to)
{
    s->prune.active = true;
    if (!to.mq)
        return;
    size_t n = s->prune.n_waiting;
    s->prune.waiting = xrealloc(s->prune.waiting, (n + 1) * sizeof(*s->prune.waiting));
    s->prune.waiting[n] = to;
    s->prune.n_waiting = n + 1;
}

static void handle(struct store *s, struct st_req *q)
{
    if (q->m.type == OP_PRUNE) {
        flush(s);
        begin_prune(s, q->to);
        done_with(s, q);
    } else if (ops[q->m.type].how == HOW_READ) {
        read_now(s, q);
    } else if (s->readonly) {
        struct err e;
        err_set(&e, ERR_UNSUPPORTED,
                "cannot store anything: the database '%s' was written by a newer cc-tui",
                s->path);
        refuse(s, q, &e);
    } else {
        add_to_batch(s, q);
    }
}

static void prune_on(struct store *s)
{
    struct err e = {0};
    s->heavy = true;
    if (st_prune_step(s, &e))
        return;
    for (size_t i = 0; i < s->prune.n_waiting; i++) {
        struct st_reply *r = st_reply_new(ST_OK, s->prune.waiting[i].req_id);
        r->err = e;
        send_reply(s->prune.waiting[i].mq, r);
    }
    bool told = s->prune.n_waiting > 0 || e.code == ERR_BUSY; /* a process that writes goes on */
    s->prune.n_waiting = 0;
    s->prune.active = false;
    s->prune.next_ms = clock_mono_ms() + PRUNE_EVERY_MS;
    if (e.code == ERR_CORRUPT) {
        after_damage(s);
    } else if (e.code && !told) {
        err_wrap(&e, "what is old enough to go stays for some hours");
        tell_trouble(s, &e);
    }
}

static int64_t earliest(const struct store *s)
{
    int64_t t = s->check_ms < s->prune.next_ms ? s->check_ms : s->prune.next_ms;
    int64_t log = st_log_due(s);

    t = s->search_ms < t ? s->search_ms : t;
    return log < t ? log : t;
}

/* Work for the time when nobody waits; the time of the next such work comes back. */
static int64_t idle_work(struct store *s, int64_t now)
{
    if (s->prune.active) {
        prune_on(s);
        return now;
    }
    if (now >= s->prune.next_ms) {
        begin_prune(s, (struct st_to){NULL, 0});
        return now;
    }
    if (!mq_closed(s->in) && now >= s->search_ms) {
        struct err e = {0};
        s->heavy = true;
        if (st_search_step(s, &e) == ERR_CORRUPT)
            after_damage(s);
    } else if (!mq_closed(s->in) && now >= s->check_ms) {
        struct err e = {0};
        if (st_check_step(s, &e) == ERR_CORRUPT)
            after_damage(s);
    } else if (now >= st_log_due(s)) {
        struct err e = {0};
        int rc = st_log_step(s, &e);
        if (rc == ERR_CORRUPT)
            after_damage(s);
        else if (rc != 0)
            tell_trouble(s, &e);
    }
    return earliest(s);
}

static int wait_ms(int64_t until)
{
    int64_t left = until - clock_mono_ms();
    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static void db_main(void *arg)
{
    struct store *s = arg;
    struct st_reply *r = st_reply_new(ST_OPENED, 0);
    st_open(s, r);
    note_trouble(s, r);
    send_reply(s->opened, r);
    s->prune.next_ms = clock_mono_ms() + PRUNE_DELAY_MS;
    s->search_ms = clock_mono_ms() + SEARCH_DELAY_MS; /* what an earlier life has left */
    for (;;) {
        int64_t until = s->n_batch ? s->last_commit + GATHER_MS : idle_work(s, clock_mono_ms());
        mq_wait(s->in, wait_ms(until));
        bool closed = mq_closed(s->in);
        struct msg *m = mq_take(s->in);
        if (!m && closed)
            break;
        for (struct msg *next; m; m = next) {
            next = m->next;
            handle(s, (struct st_req *)m);
        }
        if (s->batch_now || clock_mono_ms() >= s->last_commit + GATHER_MS)
            flush(s);
    }
    flush(s);
    while (s->prune.n_waiting > 0)
        prune_on(s);
    st_close(s);
}

/* --- the interface ---------------------------------------------------------------------------
 */

struct store *store_start(const struct store_opts *o, struct mq *reply, struct err *e)
{
    struct store *s = xcalloc(1, sizeof(*s));
    /* nobody reads SQLite's counts of memory, and each allocation takes a lock for them;
     * refused (and no harm) once a store has run */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    s->in = mq_new(LIM_QUEUE_BYTES);
    s->opened = reply;
    s->dir = xstrdup(o->dir);
    s->path = o->dir ? fs_join(o->dir, "cc-tui.db") : NULL;
    s->retention_days = o->retention_days;
    s->max_bytes = o->max_bytes;
    s->vacuum = o->vacuum;
    s->slow_end = o->slow_end;
    s->full_sync = true;
    s->log_fd = -1;
    s->last_commit = clock_mono_ms() - GATHER_MS;
    if (thread_start(&s->thread, THREAD_DB, "db", db_main, s) == 0)
        return s;
    err_set(e, ERR_IO, "cannot start the database's thread: too many threads or no memory");
    mq_free(s->in);
    free(s->dir);
    free(s->path);
    free(s->trouble);
    free(s);
    return NULL;
}

void store_stop(struct store *s)
{
    if (!s)
        return;
    mq_close(s->in);
    while (!thread_join_ms(s->thread, SLOW_END_MS)) {
        if (s->slow_end)
            s->slow_end();
        s->slow_end = NULL;
    }
    mq_free(s->in);
    buf_release(&s->open_run.raw);
    free(s->batch);
    free(s->answers);
    free(s->prune.waiting);
    free(s->dir);
    free(s->path);
    free(s->trouble);
    free(s);
}

bool store_busy(struct store *s)
{
    return atomic_load(&s->pending) > (int64_t)LIM_QUEUE_BYTES;
}
