/* The data plane's front: which sandbox is meant, may it be reached, what is asked. */
#include "data.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVD_PORT = 49983 };

/* ---- which sandbox ---- */

/* "49983-<id>.<domain>" */
static bool from_host(const struct exchange *x, char *id, size_t size, int64_t *port)
{
    char host[256], *dash, *dot;

    if (!header_value(x->req.head, "Host", host, sizeof(host)))
        return false;
    dash = strchr(host, '-');
    dot = strchr(host, '.');
    if (!dash || !dot || dash > dot)
        return false;
    *dash = *dot = '\0';
    return str_to_i64(host, 1, 65535, port) && str_copy(id, size, dash + 1);
}

bool data_addressed(const struct exchange *x, char *id, size_t size, int64_t *port)
{
    char text[16];

    if (!header_value(x->req.head, "E2b-Sandbox-Id", id, size))
        return from_host(x, id, size, port);
    *port = 0;
    if (header_value(x->req.head, "E2b-Sandbox-Port", text, sizeof(text)))
        str_to_i64(text, 1, 65535, port);
    return true;
}

/* What E2B's proxy says in front of a sandbox. */
static void proxy_says(struct exchange *x, int status, const char *id, int64_t port,
                       const char *message)
{
    struct jw w;

    x->a.status = status;
    jw_init(&w, &x->a.body);
    jw_obj(&w, NULL);
    jw_str(&w, "sandboxId", id);
    jw_str(&w, "message", message);
    jw_i64(&w, "code", status);
    if (port)
        jw_i64(&w, "port", port);
    jw_end(&w);
}

static struct data *data_of(struct plane *p, struct box *b)
{
    if (!b->data) {
        b->data = xcalloc(1, sizeof(*b->data));
        b->data->plane = p;
        b->data->box = b;
        b->data->next_fake = 100000;
    }
    return b->data;
}

struct jail *data_jail(struct data *d, char *why, size_t size)
{
    if (!d->jail)
        d->jail = jail_new(proc_exited, d, why, size);
    return d->jail;
}

void data_pause(struct box *b)
{
    if (!b->data)
        return;
    proc_cut_all(b->data);
    if (b->data->jail)
        jail_signal(b->data->jail, -1, SIGSTOP);
}

void data_resume(struct box *b)
{
    if (b->data && b->data->jail)
        jail_signal(b->data->jail, -1, SIGCONT);
}

void data_free(struct data *d)
{
    if (!d)
        return;
    proc_cut_all(d);
    proc_free_all(d);
    jail_free(d->jail);
    free(d);
}

/* ---- what is asked ---- */

static void metrics(struct exchange *x)
{
    x->a.status = 200;
    buf_addf(&x->a.body,
             "{\"ts\":%lld,\"cpu_count\":2,\"cpu_used_pct\":12.5,\"mem_total\":1073741824,"
             "\"mem_used\":268435456,\"mem_cache\":1048576,\"mem_total_mib\":1024,"
             "\"mem_used_mib\":256,\"disk_used\":104857600,\"disk_total\":1073741824}",
             (long long)(clock_wall_ms() / 1000));
}

static bool token_ok(const struct exchange *x, const struct box *b)
{
    char token[64];

    return header_value(x->req.head, "X-Access-Token", token, sizeof(token)) &&
           str_starts(token, "ea_") && str_eq(token + 3, b->id);
}

static void inside(struct data *d, struct exchange *x)
{
    const char *path = x->req.path;
    bool get = str_eq(x->req.method, "GET"), post = str_eq(x->req.method, "POST");

    if (str_eq(path, "/health") && get) {
        x->a.status = 204;
    } else if (!token_ok(x, d->box)) {
        x->a.status = 401;
        buf_adds(&x->a.body,
                 "{\"code\":401,\"message\":\"the access token is missing or wrong\"}");
    } else if (str_eq(path, "/metrics") && get) {
        metrics(x);
    } else if (str_eq(path, "/envs") && get) {
        rpc_answer(x, d->box->env ? d->box->env : "{}");
    } else if (str_eq(path, "/files") && get) {
        files_get(d, x);
    } else if (str_eq(path, "/files") && post) {
        files_post(d, x);
    } else if (str_starts(path, "/process.Process/") && post) {
        proc_route(d, x, path + strlen("/process.Process/"));
    } else if (str_starts(path, "/filesystem.Filesystem/") && post) {
        files_route(d, x, path + strlen("/filesystem.Filesystem/"));
    } else {
        x->a.status = 404;
        buf_addf(&x->a.body, "{\"message\":\"no such route\",\"code\":404}");
    }
}

bool data_route(struct exchange *x)
{
    struct plane *p = x->plane;
    struct box *b;
    char id[64];
    int64_t port = 0;

    if (!data_addressed(x, id, sizeof(id), &port))
        return false;
    b = plane_find(p, id, strlen(id));
    if (b && !b->running && b->auto_resume) {
        b->running = true; /* traffic wakes it, and it costs again */
        data_resume(b);
    }
    if (!port)
        proxy_says(x, 400, id, 0, "the port of the sandbox is missing");
    else if (!b || !b->running)
        proxy_says(x, 502, id, 0, "the sandbox was not found");
    else if (port != ENVD_PORT)
        proxy_says(x, 502, id, port, "the sandbox is running but nothing listens on the port");
    else
        inside(data_of(p, b), x);
    return true;
}
