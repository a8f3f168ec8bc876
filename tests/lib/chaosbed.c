/* Agent sessions over a network that breaks: see the header. */
#include "chaosbed.h"
#include "plainhttp.h"

#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* --- life ------------------------------------------------------------------------ */

static struct faultd *proxy_to(int port)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
    return faultd_proxy(url);
}

static bool link_ok(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->link == LINK_OK;
}

struct chaosbed *chaosbed_new(const struct app_opts *o, struct err *e)
{
    struct chaosbed *b = xcalloc(1, sizeof(*b));

    b->local = localbed_new();
    if (!b->local) {
        err_set(e, ERR_UNSUPPORTED, "no local provider can be started here");
        free(b);
        return NULL;
    }
    b->api = proxy_to(b->local->control);
    b->data = proxy_to(b->local->traffic);
    b->app = appbed_new();
    setenv("HOME", b->app->root, 1);
    setenv("E2B_API_KEY", b->local->key, 1);
    setenv("E2B_API_URL", faultd_url(b->api), 1);
    setenv("E2B_SANDBOX_URL", faultd_url(b->data), 1);
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
    struct plainhttp a;
    char *path;

    if (!b)
        return;
    if (b->sandbox_id) { /* a provider that stops waits long for those that live */
        path = xasprintf("/sandboxes/%s", b->sandbox_id);
        a = plainhttp_control(b->local, "DELETE", path, NULL);
        buf_release(&a.raw);
        free(path);
    }
    appbed_free(b->app);
    faultd_stop(b->api);
    faultd_stop(b->data);
    localbed_free(b->local);
    free(b->sandbox_id);
    free(b->token);
    free(b->session);
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

/* --- past the proxies ------------------------------------------------------------ */

static struct plainhttp ask(int port, const char *line, const char *headers)
{
    struct buf text = BUF_INIT;
    struct plainhttp a;

    buf_addf(&text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%s\r\n", line, port,
             headers);
    a = plainhttp_exchange(port, text.p, text.len);
    buf_release(&text);
    return a;
}

static bool find_sandbox(struct chaosbed *b)
{
    const struct sandbox *r = model_sandbox(app_model(b->app->app), b->row);
    struct plainhttp a;
    struct cJSON *j;
    char *path;

    if (!r || !r->sandbox_id || !r->session)
        return false;
    b->sandbox_id = xstrdup(r->sandbox_id);
    b->session = xstrdup(r->session);
    path = xasprintf("/sandboxes/%s/connect", b->sandbox_id);
    a = plainhttp_control(b->local, "POST", path, "{\"timeout\":900}");
    free(path);
    j = json_parse(a.body, a.body_len, NULL);
    b->token = xstrdup(json_str(j, "envdAccessToken", ""));
    json_free(j);
    buf_release(&a.raw);
    return a.status == 200;
}

static bool read_truth(struct chaosbed *b, struct err *e)
{
    struct buf headers = BUF_INIT;
    char *line = xasprintf("/files?path=.cc-tui/%s/out.log", b->session);
    struct plainhttp a;
    bool ok;

    buf_addf(&headers,
             "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n"
             "Range: bytes=%zu-\r\n",
             b->sandbox_id, b->token, b->truth.len);
    a = ask(b->local->traffic, line, buf_str(&headers));
    ok = a.status == 206 || a.status == 416;
    if (a.status == 206)
        buf_add(&b->truth, a.body, a.body_len);
    else if (!ok)
        err_set(e, ERR_IO, "the agent's log cannot be read: status %d: %.100s", a.status, a.body);
    buf_release(&a.raw);
    buf_release(&headers);
    free(line);
    return ok;
}

static void on_raw(void *ctx, const char *data, size_t len)
{
    struct chaosbed *b = ctx;

    buf_add(&b->raw, data, len);
}

bool chaosbed_read(struct chaosbed *b, struct err *e)
{
    uint64_t req = app_raw(b->app->app, b->row, b->raw.len, false, on_raw, b);

    return chaosbed_ended(b, &req, 1, 60000, e) && read_truth(b, e);
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
    if (!find_sandbox(b)) {
        err_set(e, ERR_NOTFOUND, "the new session's sandbox is not known");
        return false;
    }
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
