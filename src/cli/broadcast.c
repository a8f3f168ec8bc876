/* cc-tui send to several: one message, a receipt for each. */
#include "cli_priv.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLE_MS = 5000, INTERRUPT_MS = 15000 };

struct mail {
    struct cli_app a; /* first: what waits gets it by that */
    ARR(uint64_t) ids;
    uint64_t req;
    size_t left;      /* of its messages, when last counted */
};

static bool can_take(const struct sandbox *s)
{
    return !s->foreign && s->session && (s->state == SB_RUNNING || s->state == SB_CREATING) &&
           !s->unlisted;
}

/* Who is named twice, by name and by id, gets it once. */
static void add_receiver(struct mail *m, uint64_t id)
{
    for (size_t i = 0; i < m->ids.n; i++)
        if (m->ids.v[i] == id)
            return;
    *ARR_PUSH(&m->ids) = id;
}

/* All that are named, or none: a wrong name must not leave half of it sent. */
static int collect(struct mail *m, int n)
{
    const struct cli *c = m->a.c;
    const struct model *model = app_model(m->a.app);
    int status = CLI_OK;

    for (size_t i = 0; cli_has(c, CLI_ALL) && i < model->n_sandboxes; i++) {
        const struct sandbox *s = &model->sandboxes[i];
        if (can_take(s) && str_eq(s->project, c->project ? c->project : "default"))
            add_receiver(m, s->id);
    }
    for (int i = 0; i < n; i++) {
        struct err e = {0};
        const struct sandbox *s = cli_app_find(&m->a, c->args[i], &e);
        if (s)
            add_receiver(m, s->id);
        else
            status = cli_fail(&e);
    }
    if (status != CLI_OK)
        cli_say(c, "nothing was sent");
    else if (!m->ids.n)
        cli_say(c, "no sandbox of the project can take a message: nothing was sent");
    return status;
}

/* --- what became of it ------------------------------------------------------------- */

static const struct receipt *receipts(const struct mail *m, size_t *n)
{
    const struct broadcast *b = model_broadcast(app_model(m->a.app), m->req);
    *n = b ? b->n : 0;
    return b ? b->v : NULL;
}

static enum msg_state state_of(const struct mail *m, const struct receipt *r, const char **why)
{
    const struct message *msg = model_message(app_model(m->a.app), r->message);
    *why = r->message ? msg ? msg->error : NULL : r->error;
    return !r->message ? MSG_FAILED : msg ? msg->state : MSG_QUEUED;
}

static size_t count_left(const struct mail *m, size_t *n)
{
    const struct receipt *r = receipts(m, n);
    const char *why;
    size_t left = 0;
    for (size_t i = 0; i < *n; i++) {
        enum msg_state st = state_of(m, &r[i], &why);
        left += st != MSG_QUEUED && st != MSG_SENT;
    }
    return left;
}

static bool moved_on(struct cli_app *a)
{
    struct mail *m = (struct mail *)a;
    size_t n, left = count_left(m, &n);
    return left != m->left || left == n;
}

/* As long as it goes on: once we are gone nobody may be there to hand them over. */
static int settle(struct mail *m, struct err *e)
{
    int ms = cli_has(m->a.c, CLI_NOW) ? INTERRUPT_MS : SETTLE_MS, rc;
    size_t n;

    for (size_t i = 0; i < m->ids.n; i++)
        app_follow(m->a.app, m->ids.v[i]);
    do {
        m->left = count_left(m, &n);
        rc = m->left < n ? cli_app_until(&m->a, moved_on, ms, e) : 0;
    } while (rc == 0 && m->left < n);
    if (rc != ERR_TIMEOUT)
        return rc;
    err_clear(e);
    return 0;
}

static const char *id_of(const struct mail *m, uint64_t sandbox, const char *name)
{
    const struct sandbox *s = model_sandbox(app_model(m->a.app), sandbox);
    return s && s->sandbox_id ? s->sandbox_id : name ? name : "-";
}

static void print_json(const struct mail *m)
{
    struct buf b = BUF_INIT;
    struct jw w;
    size_t n;
    const struct receipt *r = receipts(m, &n);
    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < n; i++) {
        const char *why;
        enum msg_state st = state_of(m, &r[i], &why);
        jw_obj(&w, NULL);
        jw_str(&w, "sandboxID", id_of(m, r[i].sandbox, r[i].name));
        jw_str(&w, "name", r[i].name ? r[i].name : "");
        jw_str(&w, "state", msg_state_name(st));
        if (why)
            jw_str(&w, "error", why);
        else
            jw_null(&w, "error");
        jw_end(&w);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static int report(const struct mail *m)
{
    size_t n, bad = 0;
    const struct receipt *r = receipts(m, &n);

    for (size_t i = 0; i < n; i++) {
        const char *why, *id = id_of(m, r[i].sandbox, r[i].name);
        enum msg_state st = state_of(m, &r[i], &why);
        bool failed = st == MSG_FAILED || st == MSG_UNCONFIRMED || st == MSG_CANCELLED;
        bad += failed;
        if (failed)
            cli_tell("%s: %s", id, why ? why : msg_state_name(st));
        else if (!cli_json(m->a.c))
            cli_say(m->a.c, st == MSG_QUEUED ? "queued for %s: cc-tui sends it when it runs and "
                                               "the agent is idle"
                                             : "sent to %s", id);
    }
    if (cli_json(m->a.c))
        print_json(m);
    return !bad ? CLI_OK : bad < n ? CLI_SOME_FAILED : CLI_FAILED;
}

static int dry_run(const struct mail *m)
{
    for (size_t i = 0; i < m->ids.n; i++) {
        const struct sandbox *s = model_sandbox(app_model(m->a.app), m->ids.v[i]);
        cli_say(m->a.c, "would send it: %s %s", s->sandbox_id ? s->sandbox_id : "-",
                s->name ? s->name : "");
    }
    return CLI_OK;
}

int cli_broadcast(struct cli *c, int n, const char *text)
{
    struct mail m = {0};
    struct err e = {0};
    int status = CLI_OK;

    if (cli_app_open(&m.a, c, &e) != 0)
        return cli_fail(&e);
    if (cli_app_known(&m.a, &e) != 0)
        status = cli_app_fail(&m.a, &e);
    else
        status = collect(&m, n);
    if (status == CLI_OK && cli_has(c, CLI_DRY_RUN)) {
        status = dry_run(&m);
    } else if (status == CLI_OK && m.ids.n) {
        int how = (n > 1 || cli_has(c, CLI_ALL) ? SEND_FILL : 0) |
                  (cli_has(c, CLI_NOW) ? SEND_NOW : 0);
        m.req = app_broadcast(m.a.app, m.ids.v, m.ids.n, text, how);
        int rc = cli_app_wait(&m.a, m.req, &e);
        if (rc == ERR_CONFLICT && model_broadcast(app_model(m.a.app), m.req)) {
            err_clear(&e); /* what some cannot take stands in their receipts */
            rc = 0;
        }
        if (rc == 0)
            rc = settle(&m, &e);
        if (rc != 0 && m.a.signal)
            cli_say(c, "not waiting any longer; what is queued stays so");
        status = rc == 0 ? report(&m) : cli_app_fail(&m.a, &e);
    }
    ARR_RELEASE(&m.ids);
    cli_app_close(&m.a);
    return status;
}
