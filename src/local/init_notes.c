/* The ring of log entries; each is kept as the JSON text it will be sent as. */
#include "init_notes.h"
#include "envd.h"
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 1000u
#define NOTES_BYTES_MAX (256u << 10)
#define MESSAGE_MAX 512u
#define VALUE_MAX 256u

static struct notes {
    struct note {
        int64_t ms;
        char *json;
        size_t len;
    } ring[NOTES_MAX];
    size_t first, n, bytes;
    int64_t last_ms;
} notes;

static void drop_oldest(void)
{
    struct note *at = &notes.ring[notes.first];
    notes.bytes -= at->len;
    free(at->json);
    at->json = NULL;
    notes.first = (notes.first + 1) % NOTES_MAX;
    notes.n--;
}

static void write_note(struct buf *b, int64_t ms, enum note_level level, const char *logger,
                       const struct note_field *fields, size_t n, struct buf *text)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_i64(&w, "ts", ms);
    jw_str(&w, "level", names[level]);
    jw_strn(&w, "message", text->p, text->len < MESSAGE_MAX ? text->len : MESSAGE_MAX);
    jw_obj(&w, "fields");
    jw_str(&w, "logger", logger);
    for (size_t i = 0; i < n; i++)
        if (fields[i].value != NULL)
            jw_strn(&w, fields[i].name, fields[i].value, strnlen(fields[i].value, VALUE_MAX));
    jw_end(&w);
    jw_end(&w);
}

void envd_note(enum note_level level, const char *logger, const struct note_field *fields,
               size_t n, const char *fmt, ...)
{
    struct buf text = BUF_INIT, b = BUF_INIT;
    int64_t now = clock_wall_ms();
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    /* always odd: the provider's own entries have the even times (ctl_logs.c) */
    notes.last_ms = (now | 1) > notes.last_ms ? now | 1 : notes.last_ms + 2;
    write_note(&b, notes.last_ms, level, logger, fields, n, &text);
    buf_release(&text);
    while (notes.n > 0 && (notes.n == NOTES_MAX || notes.bytes + b.len > NOTES_BYTES_MAX))
        drop_oldest();
    struct note *at = &notes.ring[(notes.first + notes.n++) % NOTES_MAX];
    at->ms = notes.last_ms;
    at->json = buf_detach(&b, &at->len);
    notes.bytes += at->len;
}

void envd_notes_free(void)
{
    while (notes.n > 0)
        drop_oldest();
}

void envd_notes_get(struct envd *e, struct http_req *req)
{
    int64_t start = envd_query_number(req, "start", 0);
    (void)e;
    struct buf b = BUF_INIT;
    buf_adds(&b, "{\"entries\":[");
    bool comma = false;
    for (size_t i = 0; i < notes.n; i++) {
        const struct note *at = &notes.ring[(notes.first + i) % NOTES_MAX];
        if (at->ms < start)
            continue;
        if (comma)
            buf_addc(&b, ',');
        comma = true;
        buf_add(&b, at->json, at->len);
    }
    buf_adds(&b, "]}");
    envd_reply_json(req, 200, &b);
}
