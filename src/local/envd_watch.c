/* WatchDir, a stream of what happens in a folder, and its polling form:
 * CreateWatcher, GetWatcherEvents, RemoveWatcher. */
#include "envd.h"
#include <cct/local/watch.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define WATCHERS_MAX 128     /* of one sandbox, streams and polled ones */
#define KEEPALIVE_S 90       /* when the client names no interval */
#define QUEUE_MAX (4u << 20) /* bytes of events that one poll may find waiting */
#define NFS_MAGIC 0x6969     /* names that <linux/magic.h> lacks in places */
#define SMB2_MAGIC 0xfe534d42u
#define CIFS_MAGIC 0xff534d42u

/* One watch and who gets its events: a stream (req) or a queue that is polled. */
struct watcher {
    struct envd *e;
    struct watcher *next, **link;
    struct watch *watch; /* NULL once it has ended */
    char *path;
    bool with_entry;
    /* a stream */
    struct http_req *req;
    struct event *keepalive, *timeout;
    int64_t keepalive_ms, sent_mono;
    /* polled */
    char id[24];
    struct buf queue; /* events, each with a comma behind */
    char *error;      /* why it ended, NULL while it goes on */
};

static void watcher_free(struct watcher *w)
{
    *w->link = w->next;
    if (w->next != NULL)
        w->next->link = w->link;
    w->e->nwatchers--;
    watch_free(w->watch);
    if (w->keepalive != NULL)
        event_free(w->keepalive);
    if (w->timeout != NULL)
        event_free(w->timeout);
    buf_release(&w->queue);
    free(w->error);
    free(w->path);
    free(w);
}

/* --- the stream ----------------------------------------------------------- */

static void send_envelope(struct watcher *w, unsigned flags, const char *json, size_t len)
{
    unsigned char head[CONNECT_HEAD_BYTES];
    struct iovec pieces[2] = {{head, sizeof(head)}, {(void *)(uintptr_t)json, len}};
    connect_head(head, flags, len);
    http_stream_send(w->req, pieces, 2);
    w->sent_mono = clock_mono_ms();
}

/* Ends the stream and the watcher. */
static void stream_end(struct watcher *w, enum connect_code code, const char *message)
{
    struct buf b = BUF_INIT;
    struct http_req *req = w->req;
    connect_end_json(&b, code, message);
    send_envelope(w, CONNECT_FLAG_END, b.p, b.len);
    buf_release(&b);
    watcher_free(w);
    http_stream_end(req);
}

static void on_close(struct http_req *req, void *arg)
{
    watcher_free(arg);
    http_stream_end(req);
}

static void on_drained(struct http_req *req, void *arg)
{
    struct watcher *w = arg;
    (void)req;
    if (w->watch != NULL)
        watch_resume(w->watch);
}

static void keepalive_arm(struct watcher *w, int64_t ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    evtimer_add(w->keepalive, &tv);
}

static void on_keepalive(evutil_socket_t fd, short what, void *arg)
{
    static const char json[] = "{\"keepalive\":{}}";
    struct watcher *w = arg;
    (void)fd;
    (void)what;
    int64_t quiet = clock_mono_ms() - w->sent_mono;
    if (quiet >= w->keepalive_ms) {
        send_envelope(w, 0, json, sizeof(json) - 1);
        quiet = 0;
    }
    keepalive_arm(w, w->keepalive_ms - quiet);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    stream_end(arg, CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
}

static void stream_open(struct watcher *w, struct http_req *req, int64_t timeout_ms)
{
    static const char start[] = "{\"start\":{}}";
    int64_t every = KEEPALIVE_S;
    const char *asked = envd_header(req, "Keepalive-Ping-Interval");
    if (asked != NULL && !str_to_i64(asked, 1, 86400, &every))
        every = KEEPALIVE_S;
    w->req = req;
    w->keepalive_ms = every * 1000;
    http_req_watch(req, on_close, on_drained, w);
    http_stream_begin(req, 200, ENVD_STREAM_TYPE);
    w->keepalive = evtimer_new(w->e->base, on_keepalive, w);
    keepalive_arm(w, w->keepalive_ms);
    if (timeout_ms > 0) {
        struct timeval tv = {timeout_ms / 1000, (timeout_ms % 1000) * 1000};
        w->timeout = evtimer_new(w->e->base, on_timeout, w);
        evtimer_add(w->timeout, &tv);
    }
    send_envelope(w, 0, start, sizeof(start) - 1);
}

/* --- events --------------------------------------------------------------- */

/* {"name","type","entry"?}. What was removed or has left its name has no entry:
 * whatever is there now is something else. */
static void event_json(struct watcher *w, struct buf *b, enum watch_event type,
                       const char *name)
{
    struct jw jw;
    jw_init(&jw, b);
    jw_obj(&jw, NULL);
    jw_str(&jw, "name", name);
    jw_str(&jw, "type", watch_event_name(type));
    if (w->with_entry && type != WATCH_REMOVE && type != WATCH_RENAME) {
        struct buf entry = BUF_INIT;
        struct jw ew;
        bool itself = str_eq(name, ".");
        char *path =
            itself ? xstrdup(w->path) : fs_join(str_eq(w->path, "/") ? "" : w->path, name);
        const char *slash = strrchr(path, '/');
        jw_init(&ew, &entry);
        if (envd_fs_entry(w->e, &ew, slash[1] != '\0' ? slash + 1 : path, path) == 0)
            jw_raw(&jw, "entry", buf_str(&entry));
        buf_release(&entry);
        free(path);
    }
    jw_end(&jw);
}

/* The reader of a queue is not slow, it is away: no more is kept for it. */
static void queue_full(struct watcher *w)
{
    watch_free(w->watch);
    w->watch = NULL;
    w->error = xstrdup("more changes happened than were fetched: some are lost, make a new "
                       "watcher");
}

static void on_event(void *arg, enum watch_event type, const char *name)
{
    struct watcher *w = arg;
    struct buf b = BUF_INIT;
    if (w->req == NULL) {
        event_json(w, &w->queue, type, name);
        buf_addc(&w->queue, ',');
        if (w->queue.len > QUEUE_MAX)
            queue_full(w);
        return;
    }
    buf_adds(&b, "{\"filesystem\":");
    event_json(w, &b, type, name);
    buf_addc(&b, '}');
    send_envelope(w, 0, b.p, b.len);
    buf_release(&b);
    if (http_stream_unsent(w->req) > ENVD_UNSENT_MAX)
        watch_pause(w->watch);
}

static void on_end(void *arg, enum watch_end why, const char *text)
{
    struct watcher *w = arg;
    if (w->req != NULL) {
        stream_end(w, why == WATCH_GONE ? CONNECT_OK : CONNECT_INTERNAL, text);
        return;
    }
    watch_free(w->watch);
    w->watch = NULL;
    if (why != WATCH_GONE) /* that was an event; there is nothing to add to it */
        w->error = xstrdup(text);
}

static const struct watch_ops ops = {on_event, on_end};

/* --- starting one --------------------------------------------------------- */

static bool is_network(const struct envd *e, const char *path)
{
    struct statfs fs;
    int fd = fs_root_open(&e->files, path, O_PATH, 0);
    int rc = fd >= 0 ? fstatfs(fd, &fs) : -1;
    if (fd >= 0)
        close(fd);
    if (rc != 0)
        return false;
    switch ((unsigned)fs.f_type) {
    case NFS_MAGIC:
    case SMB_SUPER_MAGIC:
    case SMB2_MAGIC:
    case CIFS_MAGIC:
    case FUSE_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

static enum connect_code refuse(char why[600], enum connect_code code, const char *text,
                                const char *path)
{
    snprintf(why, 600, "%s: '%.400s'", text, path);
    return code;
}

/* A watcher for what the message asks, at the head of the list; CONNECT_OK, or the
 * code with the reason in `why`. */
static enum connect_code watcher_new(struct envd *e, const char *user, const struct cJSON *in,
                                     struct watcher **out, char why[600])
{
    struct err err = {0};
    const char *asked = json_str(in, "path", "");
    char *path = envd_fs_path_of(e, user, asked[0] != '\0' ? asked : e->workdir);
    enum connect_code code = CONNECT_OK;
    if (path == NULL)
        return refuse(why, CONNECT_INVALID_ARGUMENT, "this is another user's home", asked);
    if (e->nwatchers >= WATCHERS_MAX)
        code = refuse(why, CONNECT_RESOURCE_EXHAUSTED,
                      "128 folders are watched already, end another watch first", path);
    else if (!json_bool(in, "allowNetworkMounts", false) && is_network(e, path))
        code = refuse(
            why, CONNECT_INVALID_ARGUMENT,
            "a folder on a network mount tells little; allow it to watch all the same", path);
    if (code != CONNECT_OK) {
        free(path);
        return code;
    }
    struct watcher *w = xcalloc(1, sizeof(*w));
    w->watch =
        watch_new(e->base, &e->files, path, json_bool(in, "recursive", false), &ops, w, &err);
    if (w->watch == NULL) {
        code = err.sys == EMFILE || err.sys == ENOSPC || err.sys == ENFILE
                   ? CONNECT_RESOURCE_EXHAUSTED
                   : envd_fs_code(envd_fs_looked(err.sys));
        if (err.sys == EXDEV || err.sys == ENOTDIR)
            refuse(why, code,
                   err.sys == EXDEV ? envd_fs_reason(envd_fs_looked(EXDEV))
                                    : "path is no directory",
                   path);
        else
            str_copy(why, 600, err.text);
        free(path);
        free(w);
        return code;
    }
    w->e = e;
    w->path = path;
    w->with_entry = json_bool(in, "includeEntry", false);
    w->next = e->watchers;
    w->link = &e->watchers;
    if (w->next != NULL)
        w->next->link = &w->next;
    e->watchers = w;
    e->nwatchers++;
    *out = w;
    return CONNECT_OK;
}

/* --- requests ------------------------------------------------------------- */

void envd_watch_dir(struct envd *e, struct http_req *req, const struct cJSON *in,
                    int64_t timeout_ms)
{
    char user[64], why[600] = "";
    struct watcher *w;
    if (!envd_user(e, req, user, sizeof(user))) {
        envd_stream_error(req, CONNECT_UNAUTHENTICATED, "invalid username: '%.60s'", user);
        return;
    }
    enum connect_code code = watcher_new(e, user, in, &w, why);
    if (code != CONNECT_OK)
        envd_stream_error(req, code, "%s", why);
    else
        stream_open(w, req, timeout_ms);
}

static void do_create(struct envd *e, struct http_req *req, const char *user,
                      const struct cJSON *in)
{
    char why[600] = "";
    struct watcher *w;
    struct buf b = BUF_INIT;
    enum connect_code code = watcher_new(e, user, in, &w, why);
    if (code != CONNECT_OK) {
        envd_rpc_error(req, code, "%s", why);
        return;
    }
    w->id[0] = 'w';
    rand_id(w->id + 1, 20);
    buf_addf(&b, "{\"watcherId\":\"%s\"}", w->id);
    envd_reply_json(req, 200, &b);
}

static void do_get(struct http_req *req, struct watcher *w)
{
    struct buf b = BUF_INIT;
    if (w->error != NULL) {
        envd_rpc_error(req, CONNECT_INTERNAL, "%s", w->error);
        return;
    }
    if (w->queue.len > 0)
        buf_truncate(&w->queue, w->queue.len - 1);
    buf_addf(&b, "{\"events\":[");
    buf_add(&b, w->queue.p, w->queue.len);
    buf_adds(&b, "]}");
    buf_release(&w->queue);
    envd_reply_json(req, 200, &b);
}

void envd_watch_rpc(struct envd *e, struct http_req *req, const char *user, const char *method,
                    const struct cJSON *in)
{
    struct buf b = BUF_INIT;
    if (str_eq(method, "CreateWatcher")) {
        do_create(e, req, user, in);
        return;
    }
    const char *id = json_str(in, "watcherId", "");
    struct watcher *w = e->watchers;
    while (w != NULL && (w->id[0] == '\0' || !str_eq(w->id, id)))
        w = w->next;
    if (w == NULL) {
        envd_rpc_error(req, CONNECT_NOT_FOUND, "watcher with id '%.60s' not found", id);
    } else if (str_eq(method, "GetWatcherEvents")) {
        do_get(req, w);
    } else {
        watcher_free(w);
        buf_adds(&b, "{}");
        envd_reply_json(req, 200, &b);
    }
}

void envd_watch_free_all(struct envd *e)
{
    while (e->watchers != NULL) {
        if (e->watchers->req != NULL)
            stream_end(e->watchers, CONNECT_UNAVAILABLE, "the sandbox is ending");
        else
            watcher_free(e->watchers);
    }
}
