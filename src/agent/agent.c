/* The decoder's core: lines out of bytes, the place of every event, the end of
 * the process, the table of adapters. */
#include "agent_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_HEAD 64           /* bytes kept of a line that is left out */
#define KEEP_BYTES (16u << 10) /* a bigger line buffer is given back */
#define MANY_LINES 16          /* fewer go out one by one */

struct agent_dec {
    const struct agent_adapter *a;
    void *state;
    agent_event_fn fn;
    agent_lines_fn lines_fn; /* may be NULL */
    void *ctx;
    uint64_t pos; /* next unread byte */
    uint64_t line_off, line_no, turn_off;
    uint32_t index;
    int64_t time_ms;
    struct buf pend; /* begin of a line whose end has not come */
    bool skipping;   /* that line is too long */
    char head[LONG_HEAD];
    bool cut, busy, exit_place;
};

static const struct agent_adapter *const adapters[] = {
    &agent_claude,  &agent_codex,  &agent_opencode, &agent_opencode_serve, &agent_pi,
    &agent_pi_json, &agent_gemini, &agent_qwen,     &agent_shell,
    &agent_pair,
};

const struct agent_adapter *agent_adapter_at(size_t i)
{
    return i < sizeof(adapters) / sizeof(adapters[0]) ? adapters[i] : NULL;
}

const struct agent_adapter *agent_adapter_find(const char *name)
{
    const struct agent_adapter *a;

    for (size_t i = 0; (a = agent_adapter_at(i)); i++)
        if (str_eq(a->name, name))
            return a;
    return NULL;
}

struct agent_dec *agent_dec_new(const struct agent_adapter *a, uint64_t offset,
                                agent_event_fn fn, void *ctx)
{
    struct agent_dec *d = xcalloc(1, sizeof(*d));

    d->a = a;
    d->state = a->state_new();
    d->fn = fn;
    d->ctx = ctx;
    d->pos = d->line_off = d->turn_off = offset;
    d->line_no = 1;
    buf_init(&d->pend, LIM_LINE_BYTES + 1);
    return d;
}

void agent_dec_free(struct agent_dec *d)
{
    if (!d)
        return;
    d->a->state_free(d->state);
    buf_release(&d->pend);
    free(d);
}

uint64_t agent_dec_turn_offset(const struct agent_dec *d)
{
    return d->turn_off;
}
uint64_t agent_dec_offset(const struct agent_dec *d)
{
    return d->pos;
}
uint64_t agent_dec_line(const struct agent_dec *d)
{
    return d->exit_place ? d->pos : d->line_off;
}
bool agent_dec_busy(const struct agent_dec *d)
{
    return d->busy;
}
bool agent_dec_cut(const struct agent_dec *d)
{
    return d->cut;
}
void agent_dec_set_time(struct agent_dec *d, int64_t ms)
{
    d->time_ms = ms;
}
void agent_dec_skip(struct agent_dec *d)
{
    d->index++;
}

void agent_dec_emit(struct agent_dec *d, struct agent_event *ev)
{
    ev->offset = d->line_off;
    ev->index = d->index++;
    ev->raw_line = d->line_no;
    if (!ev->time_ms)
        ev->time_ms = d->time_ms;
    if (ev->kind == AGENT_TURN_BEGIN) {
        d->busy = true;
        d->turn_off = d->line_off;
    } else if (ev->kind == AGENT_TURN_END) {
        d->busy = false;
    }
    d->fn(d->ctx, ev);
}

void agent_dec_place(struct agent_dec *d, uint64_t offset)
{
    if (offset == d->line_off && !d->exit_place)
        return;
    if (offset != d->line_off)
        d->line_no++;
    agent_dec_place_within(d, offset);
}

void agent_dec_place_within(struct agent_dec *d, uint64_t offset)
{
    d->line_off = offset;
    d->index = 0;
    d->time_ms = 0;
    d->exit_place = false;
}

void agent_dec_lines(struct agent_dec *d, agent_lines_fn fn)
{
    d->lines_fn = fn;
}

bool agent_dec_takes_lines(const struct agent_dec *d)
{
    return d->lines_fn != NULL;
}

bool agent_dec_emit_lines(struct agent_dec *d, const char *s, size_t len, size_t n)
{
    struct agent_lines l = {d->line_off, d->line_no, s, len, n};

    if (n < MANY_LINES || d->index || !d->lines_fn(d->ctx, &l))
        return false;
    d->line_no += n - 1; /* and the next place one more */
    agent_dec_place(d, d->line_off + len);
    return true;
}

void agent_dec_place_exit(struct agent_dec *d)
{
    if (d->exit_place)
        return;
    /* the last byte read: no later line begins there */
    d->line_off = d->pos ? d->pos - 1 : 0;
    d->index = AGENT_EXIT_INDEX;
    d->time_ms = 0;
    d->exit_place = true;
}

bool agent_dec_dropped(struct agent_dec *d, const char *head, size_t len)
{
    return d->a->dropped && d->a->dropped(d->state, d, head, len);
}

static void too_long(struct agent_dec *d)
{
    char text[128];

    if (agent_dec_dropped(d, d->head, LONG_HEAD))
        return;
    snprintf(text, sizeof(text), "line too long: %.1f MB left out, the raw log has them",
             (double)(d->pos - d->line_off) / 1e6);
    agent_line_notice(d, AGENT_WARN, text);
}

/* d->pos is already behind the line. */
static void end_line(struct agent_dec *d, const char *s, size_t len)
{
    if (d->skipping)
        too_long(d);
    else
        d->a->line(d->state, d, s, len);
    d->skipping = false;
    if (d->pend.cap > KEEP_BYTES)
        buf_release(&d->pend);
    else
        buf_clear(&d->pend);
    agent_dec_place(d, d->pos);
}

static void feed_lines(struct agent_dec *d, const char *data, size_t len)
{
    while (len) {
        const char *nl = memchr(data, '\n', len);
        size_t n = nl ? (size_t)(nl - data) : len;
        size_t used = nl ? n + 1 : n;

        if (!d->skipping && d->pend.len + n > LIM_LINE_BYTES) {
            size_t had = d->pend.len < LONG_HEAD ? d->pend.len : LONG_HEAD;

            d->skipping = true;
            if (had)
                memcpy(d->head, d->pend.p, had);
            memcpy(d->head + had, data, LONG_HEAD - had); /* there are more than the limit */
            buf_release(&d->pend);
        }
        /* a line that lies whole in `data` is read where it is */
        if (!d->skipping && (!nl || d->pend.len))
            buf_add(&d->pend, data, n);
        d->pos += used;
        if (nl) {
            if (d->pend.len)
                end_line(d, d->pend.p, d->pend.len);
            else
                end_line(d, data, n);
        }
        data += used;
        len -= used;
    }
}

void agent_dec_read_to(struct agent_dec *d, uint64_t offset)
{
    d->pos = offset;
}

void agent_dec_feed(struct agent_dec *d, const char *data, size_t len)
{
    uint64_t end;

    if (!len)
        return;
    if (d->exit_place)
        agent_dec_place(d, d->pos);
    if (!d->a->pty) {
        feed_lines(d, data, len);
        return;
    }
    end = d->pos + len;
    d->a->line(d->state, d, data, len);
    d->pos = end;
}

/* A protocol's line is nothing to look at before it is whole; other text is. */
static const char *rest_of_line(struct agent_dec *d)
{
    const char *p = buf_str(&d->pend);

    p += strspn(p, " \t\r");
    return d->skipping || !*p || *p == '{' ? NULL : buf_str(&d->pend);
}

bool agent_dec_partial(struct agent_dec *d, struct agent_event *ev)
{
    const char *text = d->a->rest ? d->a->rest(d->state) : d->a->pty ? NULL : rest_of_line(d);

    if (!text || !*text)
        return false;
    *ev = AGENT_EVENT(AGENT_RAW);
    ev->text = (char *)text;
    ev->offset = d->line_off;
    ev->index = d->index;
    ev->raw_line = d->line_no;
    ev->time_ms = d->time_ms;
    return true;
}

void agent_dec_exit(struct agent_dec *d, int code, int sig, const char *stderr_tail)
{
    if (d->skipping || d->pend.len) {
        d->cut = true;
        end_line(d, d->pend.p, d->pend.len);
        d->cut = false;
    }
    if (d->a->end)
        d->a->end(d->state, d, code, sig, stderr_tail);
    else
        agent_end_default(d, code, sig, stderr_tail);
}

/* --- the end of the process -------------------------------------------------- */

/* What CLIs say on stderr when all is well. */
static bool is_noise(const char *line, size_t len)
{
    static const char noise[] = "Reading additional input from stdin";

    return len >= sizeof(noise) - 1 && memcmp(line, noise, sizeof(noise) - 1) == 0;
}

/* The last lines of stderr that say something, as a new string. */
static char *last_words(const char *tail)
{
    const char *end, *p;
    struct buf b = BUF_INIT;
    int lines = 0;
    char *words;

    if (!tail)
        return NULL;
    end = tail + strlen(tail);
    while (end > tail && strchr(" \r\n\t", end[-1]))
        end--;
    for (p = end; p > tail && end - p < 1000; p--)
        if (p[-1] == '\n' && ++lines == 4)
            break;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);

        if (!is_noise(p, n)) {
            if (b.len)
                buf_addc(&b, '\n');
            buf_add(&b, p, n);
        }
        p += nl ? n + 1 : n;
    }
    if (!b.len)
        return NULL;
    words = buf_detach(&b, NULL);
    agent_words_mask(words);
    return words;
}

static char *end_text(int code, int sig)
{
    const char *name = sig ? sigabbrev_np(sig) : NULL;

    if (sig)
        return xasprintf("the agent was ended by signal %d (SIG%s)", sig, name ? name : "?");
    if (code > 0)
        return xasprintf("the agent ended with status %d in the middle of a turn", code);
    return xstrdup(code == 0 ? "the agent ended in the middle of a turn"
                             : "the agent is gone, how it ended is not known");
}

/* The end of a turn that the stream itself did not end. `words` is stderr's. */
static void end_open_turn(struct agent_dec *d, int code, int sig, const char *words,
                          const char *error, int http_status)
{
    struct agent_event te = AGENT_EVENT(AGENT_TURN_END);
    char *own = NULL;

    /* a caller that knows of one of these sent it: somebody wanted the end */
    if (sig == SIGINT || sig == SIGTERM) {
        te.outcome = AGENT_INTERRUPTED;
        if (sig != SIGINT) /* that is the user's word, and no news */
            own = words ? xstrdup(words) : end_text(code, sig);
    } else {
        te.outcome = AGENT_FAILED;
        te.http_status = http_status;
        if (error && *error)
            own = agent_words(error, &te.http_status);
        else
            own = words ? xstrdup(words) : end_text(code, sig);
        /* what a killed one last complained of is not why it ended */
        te.error_class = agent_classify(te.http_status, sig && !error ? NULL : own);
    }
    te.text = own;
    agent_dec_emit(d, &te);
    free(own);
}

void agent_end_error(struct agent_dec *d, int code, int sig, const char *stderr_tail,
                     const char *error, int http_status)
{
    struct agent_event ev = AGENT_EVENT(AGENT_EXIT);
    size_t len = stderr_tail ? strlen(stderr_tail) : 0;
    size_t cut = len > LIM_STDERR_TAIL ? len - LIM_STDERR_TAIL : 0;
    char *words = last_words(stderr_tail);
    char *tail = len ? xstrdup(stderr_tail + cut) : NULL;

    agent_dec_place_exit(d);
    if (code != 0 || sig)
        ev.error_class = agent_classify(0, sig ? NULL : words);
    if (d->busy)
        end_open_turn(d, code, sig, words, error, http_status);
    ev.exit_code = code;
    ev.signal = sig;
    if (tail)
        agent_words_mask(tail);
    ev.text = tail;
    agent_dec_emit(d, &ev);
    free(words);
    free(tail);
}

void agent_end_default(struct agent_dec *d, int code, int sig, const char *stderr_tail)
{
    agent_end_error(d, code, sig, stderr_tail, NULL, 0);
}
