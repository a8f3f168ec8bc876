/* Agent sessions over a network that breaks: see the header. */
#include "chaosbed.h"
#include "netbed.h"

#include <cct/e2b.h>
#include <cct/envd.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULTD_KEY "e2b_0123456789abcdef0123456789abcdef01234f2a"
#define EMIT                                                                      \
    "emit() { i=0; while [ $i -lt $2 ]; do i=$((i+1)); echo \"<$1-$i>\"; " \
    "[ -z \"$3\" ] || sleep $3; done; }"

uint64_t chaos_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void chaosbed_do(struct faultd *proxy, const char *fmt, ...)
{
    struct buf line = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&line, fmt, ap);
    va_end(ap);
    if (!faultd_command(proxy, buf_str(&line), NULL, 0))
        die("the proxy refused: %s", buf_str(&line));
    buf_release(&line);
}

/* --- past the proxies ------------------------------------------------------------ */

/* A client of the test's own, on the straight way to the provider. */
struct direct {
    struct netbed *net;
    struct e2b *e2b;
    struct envd *envd;
    const struct e2b_account *account;
    struct chaosbed *bed;
    const char *id;
    char *path;
    struct err err;
};

static void open_direct(void *ctx)
{
    struct direct *d = ctx;

    d->e2b = e2b_new(d->net->net, d->account);
}

static void close_direct(void *ctx)
{
    struct direct *d = ctx;

    envd_free(d->envd);
    e2b_free(d->e2b);
}

static void on_found(void *ctx, const struct e2b_result *r)
{
    struct direct *d = ctx;
    struct envd_target t = {.base_url = d->account->sandbox_url, .sandbox_id = d->id};

    d->err = r->err;
    if (!r->err.code && r->n) {
        t.token = r->v[0].token;
        d->envd = envd_new(d->net->net, &t);
    }
    bed_tick(d->net);
}

static void find(void *ctx)
{
    struct direct *d = ctx;
    struct e2b_call_opts o = {0};

    e2b_get(d->e2b, d->id, &o, on_found, d);
}

static void on_bytes(void *ctx, const struct envd_result *r)
{
    struct direct *d = ctx;

    d->err = r->err;
    if (!r->err.code)
        buf_add(&d->bed->truth, r->body, r->len);
    bed_tick(d->net);
}

static void read_on(void *ctx)
{
    struct direct *d = ctx;

    envd_read(d->envd, d->path, d->bed->truth.len, 0, on_bytes, d);
}

static void kill_box(void *ctx)
{
    struct direct *d = ctx;
    struct e2b_call_opts o = {0};

    e2b_kill(d->e2b, d->id, &o, on_found, d);
}

static bool on_its_own(struct direct *d, void (*fn)(void *ctx), struct err *e)
{
    bed_reset(d->net);
    bed_run(d->net, fn, d);
    if (!bed_wait(d->net, 1, 60000))
        err_set(&d->err, ERR_TIMEOUT, "no answer on the straight way");
    if (d->err.code && e)
        *e = d->err;
    return d->err.code == 0;
}

bool chaosbed_tls_possible(void)
{
    const char *b = getenv("B");
    char *cmd = xasprintf("%s/faultd probe >/dev/null 2>&1", b ? b : "build/asan");
    bool ok = system(cmd) == 0;

    free(cmd);
    return ok;
}

/* --- life ------------------------------------------------------------------------ */

static bool link_ok(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->link == LINK_OK;
}

/* Where the provider is; what trusts it stands in the environment. */
static bool start_provider(struct chaosbed *b, bool tls, struct err *e)
{
    const char *args[] = {"--key", FAULTD_KEY, NULL};

    if (tls) {
        b->fake = faultd_start_tls(args);
        setenv("SSL_CERT_FILE", faultd_ca(b->fake), 1);
        b->account = (struct e2b_account){.api_url = xstrdup(faultd_url(b->fake)),
                                          .sandbox_url = xstrdup(faultd_url(b->fake)),
                                          .domain = xstrdup("e2b.app"),
                                          .key = secret_new(FAULTD_KEY, strlen(FAULTD_KEY)),
                                          .source = xstrdup("a test")};
    } else {
        b->local = localbed_new();
        if (!b->local)
            return err_set(e, ERR_UNSUPPORTED, "no local provider can be started here") == 0;
        localbed_account(b->local, &b->account);
    }
    b->api = faultd_proxy(b->account.api_url);
    b->data = faultd_proxy(b->account.sandbox_url);
    setenv("E2B_API_KEY", tls ? FAULTD_KEY : b->local->key, 1);
    setenv("E2B_API_URL", faultd_url(b->api), 1);
    setenv("E2B_SANDBOX_URL", faultd_url(b->data), 1);
    return true;
}

struct chaosbed *chaosbed_new(bool tls, const struct app_opts *o, struct err *e)
{
    struct chaosbed *b = xcalloc(1, sizeof(*b));
    struct direct *d = xcalloc(1, sizeof(*d));

    b->direct = d;
    if (!start_provider(b, tls, e)) {
        free(d);
        free(b);
        return NULL;
    }
    *d = (struct direct){.net = bed_new(NULL), .account = &b->account, .bed = b};
    bed_run(d->net, open_direct, d);
    b->app = appbed_new();
    setenv("HOME", b->app->root, 1);
    appbed_open(b->app, o);
    if (appbed_wait(b->app, link_ok, NULL))
        return b;
    err_set(e, ERR_NETWORK, "the provider behind the proxy was never reached: %s",
            app_model(b->app->app)->link_text ? app_model(b->app->app)->link_text : "no word");
    chaosbed_free(b);
    return NULL;
}

void chaosbed_free(struct chaosbed *b)
{
    if (!b)
        return;
    if (b->direct->id) /* a provider that stops waits long for those that live */
        on_its_own(b->direct, kill_box, NULL);
    appbed_free(b->app);
    bed_run(b->direct->net, close_direct, b->direct);
    bed_free(b->direct->net);
    free(b->direct->path);
    free(b->direct);
    faultd_stop(b->api);
    faultd_stop(b->data);
    faultd_stop(b->fake);
    localbed_free(b->local);
    e2b_account_release(&b->account);
    free(b->sandbox_id);
    buf_release(&b->raw);
    buf_release(&b->truth);
    free(b);
}

bool chaosbed_ended(struct chaosbed *b, const uint64_t *req, size_t n, int64_t ms, struct err *e)
{
    int64_t until = clock_mono_ms() + ms;

    for (size_t i = 0; i < n; i++) {
        while (!b->app->ended[req[i]] && clock_mono_ms() < until) {
            struct pollfd p = {app_fd(b->app->app), POLLIN, 0};

            poll(&p, 1, 50);
            app_drain(b->app->app, 8);
        }
        if (!b->app->ended[req[i]]) {
            err_set(e, ERR_TIMEOUT, "request %d of %zu did not end within %lld ms", (int)i + 1, n,
                    (long long)ms);
            return false;
        }
        if (b->app->codes[req[i]]) {
            err_set(e, b->app->codes[req[i]], "request %d of %zu failed: %s", (int)i + 1, n,
                    b->app->last_error);
            return false;
        }
    }
    return true;
}

static bool find_sandbox(struct chaosbed *b, struct err *e)
{
    const struct sandbox *r = model_sandbox(app_model(b->app->app), b->row);

    if (!r || !r->sandbox_id || !r->session)
        return err_set(e, ERR_NOTFOUND, "the new session's sandbox is not known") == 0;
    b->sandbox_id = xstrdup(r->sandbox_id);
    b->direct->id = b->sandbox_id;
    b->direct->path = xasprintf(".cc-tui/%s/out.log", r->session);
    return on_its_own(b->direct, find, e);
}

static void on_raw(void *ctx, const char *data, size_t len)
{
    struct chaosbed *b = ctx;

    buf_add(&b->raw, data, len);
}

bool chaosbed_truth(struct chaosbed *b, struct err *e)
{
    return on_its_own(b->direct, read_on, e);
}

bool chaosbed_kill(struct chaosbed *b, struct err *e)
{
    return on_its_own(b->direct, kill_box, e);
}

bool chaosbed_read(struct chaosbed *b, struct err *e)
{
    uint64_t req = app_raw(b->app->app, b->row, b->raw.len, false, on_raw, b);

    return chaosbed_ended(b, &req, 1, 60000, e) && on_its_own(b->direct, read_on, e);
}

/* --- a session ------------------------------------------------------------------- */

bool chaosbed_session(struct chaosbed *b, struct err *e)
{
    struct app_create c = {.tool = "shell", .timeout_s = 3600};
    uint64_t req = app_create(b->app->app, &c, true);

    if (appbed_finish(b->app, req) != 0) {
        *e = b->app->err;
        return false;
    }
    b->row = b->app->sandbox;
    if (!find_sandbox(b, e))
        return false;
    app_follow(b->app->app, b->row);
    req = app_send(b->app->app, b->row, EMIT, true);
    return chaosbed_ended(b, &req, 1, 60000, e);
}

/* --- judging --------------------------------------------------------------------- */

static int count_in(const char *hay, size_t len, const char *needle)
{
    size_t n = strlen(needle);
    const char *end = hay + len, *p = hay;
    int found = 0;

    while (p && p < end && (p = memmem(p, (size_t)(end - p), needle, n))) {
        found++;
        p += n;
    }
    return found;
}

/* Lines of the newest page; the screen's copy may come a moment after the bytes. */
static int count_shown(struct chaosbed *b, const char *needle)
{
    const struct transcript *t = model_transcript(app_model(b->app->app), b->row);
    int found = 0;

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind != ITEM_USER && t->v[i].text)
            found += count_in(t->v[i].text, t->v[i].text_len, needle);
    return found;
}

struct shown {
    struct chaosbed *b;
    const char *line;
};

static bool is_shown(struct appbed *a, const void *arg)
{
    const struct shown *w = arg;

    (void)a;
    return count_shown(w->b, w->line) > 0;
}

bool chaosbed_lines(struct chaosbed *b, const char *tag, int n, struct err *e)
{
    for (int i = 1; i <= n; i++) {
        char line[64];
        int log, kept, shown;
        struct shown w;

        snprintf(line, sizeof(line), "<%s-%d>", tag, i);
        log = count_in(buf_str(&b->truth), b->truth.len, line);
        kept = count_in(buf_str(&b->raw), b->raw.len, line);
        w = (struct shown){b, line};
        appbed_wait(b->app, is_shown, &w);
        shown = count_shown(b, line);
        if (log == 1 && kept == 1 && shown == 1)
            continue;
        err_set(e, ERR_CONFLICT, "%s: %d times in the agent's log, %d times stored, %d times shown",
                line, log, kept, shown);
        return false;
    }
    return true;
}

bool chaosbed_same(struct chaosbed *b, struct err *e)
{
    size_t n = b->raw.len < b->truth.len ? b->raw.len : b->truth.len, i = 0;

    while (i < n && b->raw.p[i] == b->truth.p[i])
        i++;
    if (i == n && b->raw.len == b->truth.len)
        return true;
    err_set(e, ERR_CONFLICT, "stored and real bytes differ at %zu (stored %zu, real %zu)", i,
            b->raw.len, b->truth.len);
    return false;
}

void chaosbed_explain(const struct chaosbed *b, int seed)
{
    const struct model *m = app_model(b->app->app);
    const struct sandbox *r = model_sandbox(m, b->row);

    fprintf(stderr, "# seed %d: link %d, state %d, agent %d\n", seed, (int)m->link,
            r ? (int)r->state : -1, r ? (int)r->agent : -1);
    for (size_t i = m->n_messages > 12 ? m->n_messages - 12 : 0; i < m->n_messages; i++)
        fprintf(stderr, "# message in state %d: %.40s\n", (int)m->messages[i].state,
                m->messages[i].text);
    for (size_t i = m->n_events > 8 ? m->n_events - 8 : 0; i < m->n_events; i++)
        fprintf(stderr, "# said: %s\n", m->events[i].text);
}
