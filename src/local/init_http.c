/* Routes of the init, who may use them, and the shapes of its answers. */
#include "envd.h"
#include "init_notes.h"
#include <cct/local/files_parse.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PROCESS "/process.Process/"
#define FILESYSTEM "/filesystem.Filesystem/"

const char *envd_header(struct http_req *req, const char *name)
{
    return http_req_header(req, name);
}

static void send_buf(struct http_req *req, int status, const char *type, struct buf *body)
{
    http_reply_bytes(req, status, type, body->p, body->len);
    buf_release(body);
}

void envd_reply_json(struct http_req *req, int status, struct buf *body)
{
    send_buf(req, status, "application/json", body);
}

void envd_reply_empty(struct http_req *req, int status)
{
    http_reply_bytes(req, status, NULL, NULL, 0);
}

/* What the file service could not do. A file that is not there is mostly a
 * question, not a fault. */
static void note_refusal(const struct http_req *req, int status, const char *why)
{
    const char *call = strrchr(req->path, '/');
    const struct note_field fields[] = {{"call", call != NULL ? call + 1 : req->path}};
    enum note_level level = status >= 500 ? NOTE_ERROR : NOTE_WARN;
    envd_note(status == 404 || status == 401 ? NOTE_DEBUG : level, "files", fields, 1,
              "%s refused: %s", fields[0].value, why);
}

void envd_reply_error(struct http_req *req, int status, const char *fmt, ...)
{
    struct buf text = BUF_INIT, b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    if (str_starts(req->path, "/files"))
        note_refusal(req, status, buf_str(&text));
    http_error_json(&b, status, buf_str(&text));
    buf_release(&text);
    envd_reply_json(req, status, &b);
}

void envd_rpc_error(struct http_req *req, enum connect_code code, const char *fmt, ...)
{
    struct buf text = BUF_INIT, b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    if (str_starts(req->path, FILESYSTEM))
        note_refusal(req, connect_code_http(code), buf_str(&text));
    connect_error_json(&b, code, buf_str(&text));
    buf_release(&text);
    envd_reply_json(req, connect_code_http(code), &b);
}

void envd_stream_error(struct http_req *req, enum connect_code code, const char *fmt, ...)
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
    send_buf(req, 200, ENVD_STREAM_TYPE, &b);
}

char *envd_query(struct http_req *req, const char *name, bool *bad)
{
    return files_query(req->query, name, bad);
}

int64_t envd_query_number(struct http_req *req, const char *name, int64_t def)
{
    bool bad = false;
    char *text = envd_query(req, name, &bad);
    int64_t v = def;
    if (text != NULL && !str_to_i64(text, 0, INT64_MAX, &v))
        v = def;
    free(text);
    return v;
}

bool envd_user_known(const struct envd *e, const char *name)
{
    return str_eq(name, e->user) || str_eq(name, "root") || str_eq(name, "user");
}

bool envd_user(struct envd *e, struct http_req *req, char *dst, size_t size)
{
    bool bad = false;
    char *q = envd_query(req, "username", &bad);
    const char *auth = envd_header(req, "Authorization");
    str_copy(dst, size, e->user);
    if (q != NULL && *q != '\0') {
        bad |= !str_copy(dst, size, q);
    } else if (auth != NULL && strncasecmp(auth, "Basic ", 6) == 0) {
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

static void ctl_deadline(struct envd *e, struct http_req *req)
{
    struct err err = {0};
    struct cJSON *j = json_parse(buf_str(&req->body), req->body.len, &err);
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

/* {"memory":false}: all processes are ended, as by a reboot. */
static void end_unless_kept(struct envd *e, struct http_req *req)
{
    struct cJSON *j = json_parse(buf_str(&req->body), req->body.len, NULL);
    if (!json_bool(j, "memory", true))
        envd_tree_signal(e, SIGKILL);
    json_free(j);
}

static void ctl_pause(struct envd *e, struct http_req *req)
{
    if (e->paused_mono == 0) {
        struct cJSON *j = json_parse(buf_str(&req->body), req->body.len, NULL);
        e->stopped = e->ungrouped || !json_bool(j, "frozen", false);
        json_free(j);
        e->paused_mono = clock_mono_ms();
        end_unless_kept(e, req);
        if (e->stopped)
            envd_tree_signal(e, SIGSTOP);
    }
    envd_reply_empty(req, 204);
}

static void ctl_resume(struct envd *e, struct http_req *req)
{
    if (e->paused_mono != 0) {
        int64_t pause_ms = clock_mono_ms() - e->paused_mono;
        e->paused_mono = 0;
        end_unless_kept(e, req);
        envd_process_shift(e, pause_ms);
        if (e->stopped)
            envd_tree_signal(e, SIGCONT);
    }
    envd_reply_empty(req, 204);
}

/* --- envd's REST part ----------------------------------------------------- */

static void get_health(struct envd *e, struct http_req *req)
{
    (void)e;
    envd_reply_empty(req, 204);
}

static void get_envs(struct envd *e, struct http_req *req)
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
    const char *method;
    enum guard guard;
    void (*handle)(struct envd *, struct http_req *);
    bool early; /* when the head is there: it takes the body itself */
} routes[] = {
    {"/health", "GET", OPEN, get_health, false},
    {"/metrics", "GET", TOKEN, envd_metrics, false},
    {"/envs", "GET", TOKEN, get_envs, false},
    {"/files", "GET", READ_FILE, envd_files_get, false},
    {"/files", "POST", WRITE_FILE, envd_files_post, true},
    {"/files/compose", "POST", TOKEN, envd_files_compose, false},
    {"/cc/deadline", "POST", CONTROL, ctl_deadline, false},
    {"/cc/pause", "POST", CONTROL, ctl_pause, false},
    {"/cc/resume", "POST", CONTROL, ctl_resume, false},
    {"/cc/port", "POST", CONTROL, envd_port, false},
    {"/cc/metrics", "GET", CONTROL, envd_samples_get, false},
    {"/cc/sample", "POST", CONTROL, envd_samples_take, false},
    {"/cc/logs", "GET", CONTROL, envd_notes_get, false},
};

static bool guard_ok(struct envd *e, struct http_req *req, enum guard g)
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

enum kind { UNARY, STREAM, CLIENT_STREAM };
static const struct rpc {
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

static void rpc_unary(struct envd *e, struct http_req *req, const char *path, const char *body,
                      size_t len)
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

static void rpc_stream(struct envd *e, struct http_req *req, const char *path, const char *body,
                       size_t len)
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
        envd_watch_dir(e, req, in, timeout_ms);
    json_free(in);
}

/* --- the way of a request -------------------------------------------------- */

static const struct route *route_find(const struct http_req *req, bool *known)
{
    const char *method = req->is_head ? "GET" : req->method;
    *known = false;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (!str_eq(req->path, routes[i].path))
            continue;
        *known = true;
        if (str_eq(routes[i].method, method))
            return &routes[i];
    }
    return NULL;
}

static const struct rpc *rpc_find(const struct http_req *req)
{
    for (size_t i = 0; i < sizeof(rpcs) / sizeof(rpcs[0]); i++)
        if (str_eq(req->path, rpcs[i].path))
            return &rpcs[i];
    return NULL;
}

void envd_admit(struct http_req *req, void *envd)
{
    struct envd *e = envd;
    bool known;
    const struct route *route = route_find(req, &known);
    const struct rpc *rpc = route == NULL ? rpc_find(req) : NULL;
    const char *want =
        rpc != NULL && rpc->kind == UNARY ? "application/json" : ENVD_STREAM_TYPE;
    if (!guard_ok(e, req, route != NULL ? route->guard : TOKEN))
        envd_reply_error(req, 401, "the access token or signature is missing or wrong");
    else if (route != NULL && route->early)
        route->handle(e, req);
    else if (route != NULL)
        return;
    else if (known || (rpc != NULL && !str_eq(req->method, "POST")))
        envd_reply_empty(req, 405);
    else if (rpc == NULL)
        envd_reply_error(req, 404, "there is nothing at \"%.200s\"", req->path);
    else if (!connect_type_is(envd_header(req, "Content-Type"), want))
        envd_reply_empty(req, 415);
    else if (rpc->kind == CLIENT_STREAM)
        envd_process_stream_input(e, req);
}

void envd_route(struct http_req *req, void *envd)
{
    struct envd *e = envd;
    bool known;
    const struct route *route = route_find(req, &known);
    const struct rpc *rpc = route == NULL ? rpc_find(req) : NULL;
    const char *body = buf_str(&req->body);
    if (route != NULL)
        route->handle(e, req);
    else if (rpc != NULL && rpc->kind == UNARY)
        rpc_unary(e, req, rpc->path, body, req->body.len);
    else if (rpc != NULL)
        rpc_stream(e, req, rpc->path, body, req->body.len);
}
