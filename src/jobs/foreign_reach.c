/* Where a sandbox is: asked of the control plane, which answers for a paused one too and
 * wakes none. */
#include "foreign_priv.h"

#include <cct/util/str.h>
#include <stdlib.h>

int reach_refusal(const struct sandbox *row, struct err *e)
{
    if (!row)
        return err_set(e, ERR_NOTFOUND, "the sandbox is not in the list any more");
    if (row->state == SB_PAUSED)
        return err_set(e, ERR_CONFLICT, "the sandbox is paused: resume it first");
    if (row->state == SB_CREATING || !row->sandbox_id)
        return err_set(e, ERR_CONFLICT, "the sandbox is being created");
    if (!core_row_live(row))
        return err_set(e, ERR_NOTFOUND, "the sandbox is gone");
    return 0;
}

static void on_get(void *ctx, const struct e2b_result *res)
{
    struct reach *r = ctx;
    const struct e2b_account *a = e2b_account_of(r->client);
    struct err e = res->err;
    struct envd *envd = NULL;
    char *url;

    r->call = 0;
    if (!e.code && !res->n)
        err_set(&e, ERR_PROTO, "the service did not tell where the sandbox is");
    if (e.code == ERR_NOTFOUND || (!e.code && !str_eq(res->v[0].state, "running")))
        core_poll_soon(r->j, 0); /* what we believe of it is old */
    if (!e.code && str_eq(res->v[0].state, "paused"))
        err_set(&e, ERR_CONFLICT, "the sandbox is paused: resume it first");
    if (!e.code) {
        url = e2b_sandbox_url(a, res->v[0].sandbox_id, res->v[0].domain, &e);
        if (url) {
            struct envd_target t = {.base_url = url,
                                    .sandbox_id = res->v[0].sandbox_id,
                                    .token = res->v[0].token};
            envd = envd_new(r->j->o.net, &t);
        }
        free(url);
    }
    r->fn(r->ctx, envd, envd ? NULL : &e);
}

int reach_ask(struct reach *r, struct jobs *j, uint64_t row, int give_up_ms, reach_fn fn,
              void *ctx, struct err *e)
{
    const struct sandbox *s = jobs_row(j, row);
    struct e2b_call_opts o = {.give_up_ms = give_up_ms};
    int rc = reach_refusal(s, e);

    if (rc)
        return rc;
    if (!j->e2b) {
        *e = j->priv->account_err;
        return e->code ? e->code : err_set(e, ERR_CONFLICT, "no account is known yet");
    }
    *r = (struct reach){.j = j, .client = j->e2b, .row = row, .fn = fn, .ctx = ctx};
    r->call = e2b_get(j->e2b, s->sandbox_id, &o, on_get, r);
    return 0;
}

void reach_cancel(struct reach *r)
{
    if (r->call)
        core_call_cancel(r->j, r->client, r->call);
    r->call = 0;
}
