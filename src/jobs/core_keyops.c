/* Changes of the vault: add, remove, another protection, a folder's yes. Each is a few
 * steps; a step ends with an answer of the store and a fresh look at the rows, so that
 * what another cc-tui did meanwhile is seen. Nothing is ever stored in clear: what cannot
 * be sealed is refused. */
#include "core_keys.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES 3

struct keyop {
    struct keys *k;
    enum cmd_type type;
    uint64_t req_id;
    char *provider;
    char *name;          /* of a secret variable; the provider is ST_VARIABLE */
    bool project;        /* level */
    struct secret *key;  /* to be stored; the new passphrase of CMD_KEY_PROTECT */
    bool looking;        /* waits for the rows */
    bool done;           /* the rows that come now are the last step */
    int tries;
    char *file_uid;      /* key file that was written for a head not committed yet */
    char *old_uid;       /* key file that nothing needs afterwards */
};

static void step(struct keyop *op);

static const char *api_of(const struct keyop *op)
{
    if (op->name)
        return op->name;
    return str_eq(op->provider, "e2b") ? op->k->api : "";
}

static void unlink_file(const struct keyop *op, const char *uid)
{
    char *path = uid ? vault_file_path(op->k->j->o.config_dir, uid) : NULL;

    if (path && unlink(path) != 0 && access(path, F_OK) == 0)
        jobs_say(op->k->j, 1, 0, "the old key file '%s' cannot be removed; nothing needs it", path);
    free(path);
}

static void op_free(struct keyop *op)
{
    jobs_store_forget(op->k->j, op);
    if (op->k->stretch_for == op)
        op->k->stretch_for = NULL;
    secret_free(op->key);
    free(op->provider);
    free(op->name);
    free(op->file_uid);
    free(op->old_uid);
    free(op);
}

static void end(struct keyop *op, const struct err *e)
{
    struct keys *k = op->k;

    for (size_t i = 0; i < k->ops.n; i++)
        if (k->ops.v[i] == op) {
            ARR_REMOVE(&k->ops, i);
            break;
        }
    if (e)
        unlink_file(op, op->file_uid);
    else
        unlink_file(op, op->old_uid);
    jobs_done(k->j, op->req_id, e, 0);
    op_free(op);
}

static void look(struct keyop *op, bool last)
{
    op->looking = true;
    op->done = last;
    keys_look(op->k, true);
}

static void on_told(void *ctx, struct st_reply *r)
{
    (void)r;
    end(ctx, NULL);
}

/* Main has asked for the rows before this is asked: whoever waits for the end sees them. */
static void end_told(struct keyop *op)
{
    struct jobs *j = op->k->j;

    core_projects_look(j); /* a variable, or the first row of a project */
    store_keys(j->o.store, NULL, NULL, op->k->stored->vault.revision,
               jobs_store(j, on_told, op, op));
}

void keyop_rows(struct keys *k, const struct err *e)
{
    for (size_t i = 0; i < k->ops.n; i++) {
        struct keyop *op = k->ops.v[i];
        if (!op->looking)
            continue;
        op->looking = false;
        if (e)
            end(op, e);
        else if (op->done)
            end_told(op);
        else
            step(op);
        return; /* the list has changed; each has a look of its own */
    }
}

/* The one who was slower begins again with what the other has made. */
static void on_change(void *ctx, struct st_reply *r)
{
    struct keyop *op = ctx;

    if (r->err.code == ERR_CONFLICT && ++op->tries < TRIES) {
        unlink_file(op, op->file_uid);
        free(op->file_uid);
        op->file_uid = NULL;
        look(op, false);
    } else if (r->err.code) {
        end(op, &r->err);
    } else {
        free(op->file_uid);
        op->file_uid = NULL;
        look(op, true);
    }
}

/* A part of the work is done: look, and go on. */
static void on_part(void *ctx, struct st_reply *r)
{
    struct keyop *op = ctx;

    free(op->file_uid);
    op->file_uid = NULL;
    if (r->err.code)
        end(op, &r->err);
    else
        look(op, false);
}

/* --- the head ------------------------------------------------------------------------- */

static void head_new(struct st_vault *v, const struct secret *data_key)
{
    unsigned char proof[VAULT_PROOF_BYTES];

    rand_id(v->uid, sizeof(v->uid) - 1);
    vault_proof(data_key, v->uid, proof);
    v->proof = xmalloc(sizeof(proof));
    memcpy(v->proof, proof, sizeof(proof));
    v->proof_len = sizeof(proof);
}

static void head_wrap(struct st_vault *v, const struct vault_kdf *kdf,
                      const struct secret *stretched, const struct secret *data_key)
{
    v->passphrase = true;
    v->ops = kdf->ops;
    v->mem = kdf->mem;
    v->salt = xmalloc(sizeof(kdf->salt));
    memcpy(v->salt, kdf->salt, sizeof(kdf->salt));
    v->salt_len = sizeof(kdf->salt);
    v->sealed = xmalloc(VAULT_WRAPPED_BYTES);
    v->sealed_len = VAULT_WRAPPED_BYTES;
    vault_wrap(stretched, kdf, v->uid, data_key, (unsigned char *)v->sealed);
}

/* Every row under a new data key: an old copy of the key file opens nothing any more. */
static int seal_rows(struct keyop *op, struct st_keys *to, const struct secret *data_key,
                     struct err *e)
{
    const struct st_keys *from = op->k->stored;

    to->v = xcalloc(from->n + 1, sizeof(*to->v));
    for (size_t i = 0; i < from->n; i++) {
        const struct st_key *row = &from->v[i];
        struct secret *key = keys_open(row, op->k->data_key, e);
        if (!key)
            return e->code;
        keys_seal(&to->v[i], data_key, row->project, row->provider, row->api, key);
        to->v[i].created_at = row->created_at;
        to->n++;
        secret_free(key);
    }
    return 0;
}

/* A new head: by the stretched passphrase, else by a key file. `next` gets the answer. */
static void put_head(struct keyop *op, const struct vault_kdf *kdf,
                     const struct secret *stretched, jobs_store_fn next)
{
    struct keys *k = op->k;
    struct st_keys *head = xcalloc(1, sizeof(*head));
    struct secret *data_key = vault_new_key();
    struct err e = {0};
    int rc;

    head->vault.revision = k->stored->vault.revision;
    head_new(&head->vault, data_key);
    rc = seal_rows(op, head, data_key, &e);
    if (rc == 0 && stretched) {
        head_wrap(&head->vault, kdf, stretched, data_key);
    } else if (rc == 0) {
        rc = vault_file_write(k->j->o.config_dir, head->vault.uid, data_key, &e);
        op->file_uid = rc == 0 ? xstrdup(head->vault.uid) : NULL;
        if (rc != 0)
            err_wrap(&e, "nothing is stored, as the key file cannot be written");
    }
    secret_free(data_key);
    if (rc == 0) {
        store_vault_put(k->j->o.store, head, jobs_store(k->j, next, op, op));
    } else {
        st_keys_free(head);
        end(op, &e);
    }
}

/* --- the steps --------------------------------------------------------------------------- */

static void add(struct keyop *op)
{
    struct keys *k = op->k;
    struct st_key row;
    struct err e = {0};

    if (!op->name && keys_api_check(api_of(op), &e) != 0) {
        end(op, &e);
        return;
    }
    if (op->project && !k->stored->project) {
        store_project(k->j->o.store, jobs_project(k->j),
                      jobs_store(k->j, on_part, op, op));
        return;
    }
    if (!*k->stored->vault.uid) {
        put_head(op, NULL, NULL, on_part);
        return;
    }
    if (!k->data_key) {
        end(op, &k->locked);
        return;
    }
    keys_seal(&row, k->data_key, op->project ? k->stored->project : NULL, op->provider, api_of(op),
              op->key);
    store_key_put(k->j->o.store, k->stored->vault.uid, &row,
                  jobs_store(k->j, on_change, op, op));
    st_key_release(&row);
}

static void remove_it(struct keyop *op)
{
    struct keys *k = op->k;
    const char *project = op->project ? k->stored->project : NULL;
    const struct st_key *row, *other;
    struct err e = {0};

    row = op->project && !project ? NULL : keys_row(k->stored, project, op->provider, api_of(op));
    other = op->project && !project ? NULL : keys_row(k->stored, project, op->provider, NULL);
    if (row) {
        store_key_del(k->j->o.store, project, op->provider, api_of(op),
                      jobs_store(k->j, on_change, op, op));
        return;
    }
    if (other)
        err_set(&e, ERR_NOTFOUND, "no %s of %s is stored for %.80s; there is one for %.80s: set "
                "E2B_API_URL to that to remove it", op->project ? "project key" : "user key",
                op->provider, api_of(op), other->api);
    else
        err_set(&e, ERR_NOTFOUND, "no %s of %s is stored", op->project ? "project key" : "user key",
                op->provider);
    end(op, &e);
}

static void trust(struct keyop *op)
{
    struct keys *k = op->k;
    struct err e = {0};

    if (!core_project_folder(k->j)) {
        err_set(&e, ERR_INVALID, "no .cc-tui of this folder chooses a project: there is nothing to "
                "trust");
        end(op, &e);
    } else if (!k->stored->project) {
        store_project(k->j->o.store, jobs_project(k->j), jobs_store(k->j, on_part, op, op));
    } else {
        store_project_folder(k->j->o.store, k->stored->project, core_project_folder(k->j),
                             jobs_store(k->j, on_change, op, op));
    }
}

static void protect(struct keyop *op)
{
    struct keys *k = op->k;
    struct vault_kdf kdf;
    struct err e = {0};

    if (*k->stored->vault.uid && !k->data_key) {
        end(op, &k->locked);
        return;
    }
    free(op->old_uid);
    op->old_uid = *k->stored->vault.uid && !k->stored->vault.passphrase
                      ? xstrdup(k->stored->vault.uid) : NULL;
    if (!op->key) {
        put_head(op, NULL, NULL, on_change);
        return;
    }
    vault_kdf_new(&kdf);
    if (keys_stretch(k, &kdf, op->key, op, &e) != 0)
        end(op, &e);
}

void keyop_stretched(struct keyop *op, const struct vault_kdf *kdf, struct secret *key,
                     const char *error)
{
    struct keys *k = op->k;
    struct err e = {0};

    if (!key) {
        err_set(&e, ERR_FULL, "%s", error);
        end(op, &e);
        return;
    }
    secret_free(k->passphrase); /* opens what comes back */
    k->passphrase = secret_dup(op->key);
    put_head(op, kdf, key, on_change);
}

static void step(struct keyop *op)
{
    struct keys *k = op->k;
    struct err e = {0};

    if (!k->stored) {
        e = k->read_err;
        if (!e.code)
            err_set(&e, ERR_IO, "the stored keys cannot be read");
        end(op, &e);
    } else if (op->type == CMD_KEY_ADD || op->type == CMD_PROJECT_SECRET) {
        add(op);
    } else if (op->type == CMD_KEY_RM) {
        remove_it(op);
    } else if (op->type == CMD_KEY_TRUST) {
        trust(op);
    } else {
        protect(op);
    }
}

void keyop_start(struct keys *k, struct cmd *c)
{
    struct keyop *op;
    struct err e = {0};

    if (k->j->o.readonly) {
        core_done_err(k->j, c->m.req_id, 0, ERR_PERM, "no key is changed: this cc-tui only reads");
        return;
    }
    if (c->m.type == CMD_PROJECT_SECRET &&
        core_variable_check(c->text2, secret_len(c->key), &e) != 0) {
        jobs_done(k->j, c->m.req_id, &e, 0);
        return;
    }
    op = xcalloc(1, sizeof(*op));
    op->k = k;
    op->type = (enum cmd_type)c->m.type;
    op->req_id = c->m.req_id;
    op->provider = xstrdup(op->type == CMD_PROJECT_SECRET ? ST_VARIABLE : c->text);
    op->name = op->type == CMD_PROJECT_SECRET ? xstrdup(c->text2) : NULL;
    op->project = c->on || op->name;
    op->key = c->key;
    c->key = NULL;
    *ARR_PUSH(&k->ops) = op;
    step(op);
}

void keyop_release(struct keys *k)
{
    for (size_t i = 0; i < k->ops.n; i++)
        op_free(k->ops.v[i]);
    ARR_RELEASE(&k->ops);
}
