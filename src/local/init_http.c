/* Routes of the init, who may use them, and the shapes of its answers. */
#include "envd.h"
#include <cct/local/files_parse.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/buffer.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *envd_header(struct evhttp_request *req, const char *name)
{
    return evhttp_find_header(evhttp_request_get_input_headers(req), name);
}

static void set_type(struct evhttp_request *req, const char *type)
{
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", type);
}

static void send_buf(struct evhttp_request *req, int status, const char *type, struct buf *body)
{
    set_type(req, type);
    evbuffer_add(evhttp_request_get_output_buffer(req), body->p, body->len);
    buf_release(body);
    evhttp_send_reply(req, status, NULL, NULL);
}

void envd_reply_json(struct evhttp_request *req, int status, struct buf *body)
{
    send_buf(req, status, "application/json", body);
}

void envd_reply_empty(struct evhttp_request *req, int status)
{
    evhttp_send_reply(req, status, NULL, NULL);
}

void envd_reply_error(struct evhttp_request *req, int status, const char *fmt, ...)
{
    struct buf text = BUF_INIT, b = BUF_INIT;
    struct jw w;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_i64(&w, "code", status);
    jw_str(&w, "message", buf_str(&text));
    jw_end(&w);
    buf_release(&text);
    envd_reply_json(req, status, &b);
}

void envd_rpc_error(struct evhttp_request *req, enum connect_code code, const char *fmt, ...)
{
    struct buf text = BUF_INIT, b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    connect_error_json(&b, code, buf_str(&text));
    buf_release(&text);
    envd_reply_json(req, connect_code_http(code), &b);
}

void envd_stream_error(struct evhttp_request *req, enum connect_code code, const char *fmt, ...)
{
    struct buf text = BUF_INIT, json = BUF_INIT, b = BUF_INIT;
    unsigned char head[CONNECT_HEAD_BYTES];
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    connect_end_json(&json, code, buf_str(&text));
    connect_head(head, CONNECT_FLAG_END, json.len);
    buf_add(&b, head, sizeof(head));
    buf_add(&b, json.p, json.len);
    buf_release(&text);
    buf_release(&json);
    send_buf(req, 200, "application/connect+json", &b);
}

char *envd_query(struct evhttp_request *req, const char *name, bool *bad)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *q = uri != NULL ? evhttp_uri_get_query(uri) : NULL;
    return q != NULL ? files_query(q, name, bad) : NULL;
}

bool envd_user_known(const struct envd *e, const char *name)
{
    return str_eq(name, e->user) || str_eq(name, "root") || str_eq(name, "user");
}

bool envd_user(struct envd *e, struct evhttp_request *req, char *dst, size_t size)
{
    bool bad = false;
    char *q = envd_query(req, "username", &bad);
    const char *auth = envd_header(req, "Authorization");
    str_copy(dst, size, e->user);
    if (q != NULL && *q != '\0') {
        bad |= !str_copy(dst, size, q);
    } else if (auth != NULL && evutil_ascii_strncasecmp(auth, "Basic ", 6) == 0) {
        size_t len;
        char *plain = b64_decode(auth + 6, strlen(auth + 6), &len);
        if (plain != NULL && plain[0] != ':' && plain[0] != '\0') {
            plain[strcspn(plain, ":")] = '\0';
            bad |= !str_copy(dst, size, plain);
        }
        bad |= plain == NULL;
        free(plain);
    }
    free(q);
    return !bad && envd_user_known(e, dst);
}

static bool token_ok(const struct envd *e, const char *given)
{
    if (e->token[0] == '\0')
        return true;
    return given != NULL && digest_equal(given, strlen(given), e->token, strlen(e->token));
}

/* --- control: only on the socket, only for the provider ------------------- */

static void ctl_deadline(struct envd *e, struct evhttp_request *req)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t len = evbuffer_get_length(in);
    struct err err = {0};
    struct cJSON *j = json_parse((const char *)evbuffer_pullup(in, -1), len, &err);
    int64_t ms = json_i64(j, "deadline", -1);
    json_free(j);
    if (ms < 0) {
        envd_reply_error(req, 400, "deadline is no time in milliseconds");
        return;
    }
    e->deadline_ms = ms;
    event_active(e->dead_man, EV_TIMEOUT, 0); /* it may have passed already */
    envd_reply_empty(req, 204);
}

static void ctl_pause(struct envd *e, struct evhttp_request *req)
{
    if (e->paused_mono == 0) {
        e->paused_mono = clock_mono_ms();
        envd_tree_signal(e, SIGSTOP);
    }
    envd_reply_empty(req, 204);
}

static void ctl_resume(struct envd *e, struct evhttp_request *req)
{
    if (e->paused_mono != 0) {
        int64_t pause_ms = clock_mono_ms() - e->paused_mono;
        e->paused_mono = 0;
        envd_process_shift(e, pause_ms);
        envd_tree_signal(e, SIGCONT);
    }
    envd_reply_empty(req, 204);
}

/* --- envd's REST part ----------------------------------------------------- */

static void get_health(struct envd *e, struct evhttp_request *req)
{
    (void)e;
    envd_reply_empty(req, 204);
}

static void get_envs(struct envd *e, struct evhttp_request *req)
{
    struct buf b = BUF_INIT;
    char *text = json_is_object(e->env) ? json_text(e->env) : NULL;
    buf_adds(&b, text != NULL ? text : "{}");
    free(text);
    envd_reply_json(req, 200, &b);
}

enum guard { OPEN, TOKEN, CONTROL, READ_FILE, WRITE_FILE };
static const struct route {
    const char *path;
    enum evhttp_cmd_type method;
    enum guard guard;
    void (*handle)(struct envd *, struct evhttp_request *);
} routes[] = {
    {"/health", EVHTTP_REQ_GET, OPEN, get_health},
    {"/metrics", EVHTTP_REQ_GET, TOKEN, envd_metrics},
    {"/envs", EVHTTP_REQ_GET, TOKEN, get_envs},
    {"/files", EVHTTP_REQ_GET, READ_FILE, envd_files_get},
    {"/files", EVHTTP_REQ_POST, WRITE_FILE, envd_files_post},
    {"/cc/deadline", EVHTTP_REQ_POST, CONTROL, ctl_deadline},
    {"/cc/pause", EVHTTP_REQ_POST, CONTROL, ctl_pause},
    {"/cc/resume", EVHTTP_REQ_POST, CONTROL, ctl_resume},
    {"/cc/stats", EVHTTP_REQ_GET, CONTROL, envd_stats},
};

static bool guard_ok(struct envd *e, struct evhttp_request *req, enum guard g)
{
    const char *control = envd_header(req, "X-CC-Control");
    switch (g) {
    case OPEN:
        return true;
    case CONTROL:
        return control != NULL && token_ok(e, control);
    case READ_FILE:
        return token_ok(e, envd_header(req, "X-Access-Token")) ||
               envd_files_signed(e, req, "read");
    case WRITE_FILE:
        return token_ok(e, envd_header(req, "X-Access-Token")) ||
               envd_files_signed(e, req, "write");
    case TOKEN:
        break;
    }
    return token_ok(e, envd_header(req, "X-Access-Token"));
}

/* --- Connect -------------------------------------------------------------- */

#define PROCESS "/process.Process/"
#define FILESYSTEM "/filesystem.Filesystem/"

enum kind { UNARY, STREAM, CLIENT_STREAM };
static const struct {
    const char *path;
    enum kind kind;
} rpcs[] = {
    {PROCESS "Start", STREAM},
    {PROCESS "Connect", STREAM},
    {PROCESS "List", UNARY},
    {PROCESS "SendInput", UNARY},
    {PROCESS "StreamInput", CLIENT_STREAM},
    {PROCESS "CloseStdin", UNARY},
    {PROCESS "SendSignal", UNARY},
    {PROCESS "Update", UNARY},
    {FILESYSTEM "Stat", UNARY},
    {FILESYSTEM "ListDir", UNARY},
    {FILESYSTEM "MakeDir", UNARY},
    {FILESYSTEM "Move", UNARY},
    {FILESYSTEM "Remove", UNARY},
    {FILESYSTEM "WatchDir", STREAM},
    {FILESYSTEM "CreateWatcher", UNARY},
    {FILESYSTEM "GetWatcherEvents", UNARY},
    {FILESYSTEM "RemoveWatcher", UNARY},
};

static void rpc_unary(struct envd *e, struct evhttp_request *req, const char *path,
                      const char *body, size_t len)
{
    int64_t timeout_ms;
    struct err err = {0};
    const char *coding = envd_header(req, "Content-Encoding");
    if (!connect_timeout_parse(envd_header(req, "Connect-Timeout-Ms"), &timeout_ms)) {
        envd_rpc_error(req, CONNECT_INVALID_ARGUMENT, "Connect-Timeout-Ms is no time");
        return;
    }
    if (timeout_ms == 0) {
        envd_rpc_error(req, CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
        return;
    }
    if (coding != NULL && strcmp(coding, "identity") != 0) {
        envd_rpc_error(req, CONNECT_UNIMPLEMENTED, "compression \"%s\" is not supported",
                       coding);
        return;
    }
    struct cJSON *in = json_parse(body, len, &err);
    if (!json_is_object(in))
        envd_rpc_error(req, CONNECT_INVALID_ARGUMENT, "the message is no JSON object: %s",
                       err.text);
    else if (str_starts(path, PROCESS))
        envd_process_rpc(e, req, path + strlen(PROCESS), in);
    else
        envd_fs_rpc(e, req, path + strlen(FILESYSTEM), in);
    json_free(in);
}

static void rpc_stream(struct envd *e, struct evhttp_request *req, const char *path,
                       const char *body, size_t len)
{
    int64_t timeout_ms;
    struct connect_frame f;
    const char *why = "";
    struct err err = {0};
    if (!connect_timeout_parse(envd_header(req, "Connect-Timeout-Ms"), &timeout_ms)) {
        envd_stream_error(req, CONNECT_INVALID_ARGUMENT, "Connect-Timeout-Ms is no time");
        return;
    }
    if (timeout_ms == 0) {
        envd_stream_error(req, CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
        return;
    }
    enum connect_code code = connect_request_body(body, len, &f, &why);
    if (code != CONNECT_OK) {
        envd_stream_error(req, code, "%s", why);
        return;
    }
    struct cJSON *in = json_parse(f.body, f.len, &err);
    if (!json_is_object(in))
        envd_stream_error(req, CONNECT_INVALID_ARGUMENT, "the message is no JSON object: %s",
                          err.text);
    else if (str_eq(path, PROCESS "Start"))
        envd_process_start(e, req, in, timeout_ms);
    else if (str_eq(path, PROCESS "Connect"))
        envd_process_connect(e, req, in, timeout_ms);
    else
        envd_stream_error(req, CONNECT_UNIMPLEMENTED,
                          "watching a folder is not possible here; list it again instead");
    json_free(in);
}

static bool rpc_route(struct envd *e, struct evhttp_request *req, const char *path)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    const char *type = envd_header(req, "Content-Type");
    for (size_t i = 0; i < sizeof(rpcs) / sizeof(rpcs[0]); i++) {
        if (!str_eq(path, rpcs[i].path))
            continue;
        const char *want =
            rpcs[i].kind == UNARY ? "application/json" : "application/connect+json";
        size_t len = evbuffer_get_length(in);
        if (evhttp_request_get_command(req) != EVHTTP_REQ_POST) {
            envd_reply_empty(req, 405);
        } else if (!connect_type_is(type, want)) {
            envd_reply_empty(req, 415);
        } else if (len > LIM_JSON_BYTES) {
            envd_reply_empty(req, 413);
        } else {
            const char *body = len > 0 ? (const char *)evbuffer_pullup(in, -1) : "";
            if (rpcs[i].kind == UNARY)
                rpc_unary(e, req, path, body, len);
            else if (rpcs[i].kind == STREAM)
                rpc_stream(e, req, path, body, len);
            else
                envd_process_stream_input(e, req, body, len);
        }
        return true;
    }
    return false;
}

void envd_route(struct evhttp_request *req, void *envd)
{
    struct envd *e = envd;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
    bool known = false;
    if (path == NULL)
        path = "";
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (!str_eq(path, routes[i].path))
            continue;
        known = true;
        if (routes[i].method != evhttp_request_get_command(req))
            continue;
        if (guard_ok(e, req, routes[i].guard))
            routes[i].handle(e, req);
        else
            envd_reply_error(req, 401, "the access token or signature is missing or wrong");
        return;
    }
    if (!guard_ok(e, req, TOKEN))
        envd_reply_error(req, 401, "the access token is missing or wrong");
    else if (known)
        envd_reply_empty(req, 405);
    else if (!rpc_route(e, req, path))
        envd_reply_error(req, 404, "there is nothing at \"%.200s\"", path);
}
