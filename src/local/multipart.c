/* The streaming reader of multipart forms (see the header). A delimiter is CR LF
 * "--" boundary; only its first byte is a CR, so a match that fails can begin again
 * only at a later CR, and what was held back is always a piece of the delimiter. */
#include <cct/local/multipart.h>
#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define PART_HEAD_MAX (16u << 10)

enum state { PREAMBLE, LINE, HEAD, DATA, EPILOGUE, STOPPED };

struct multipart {
    const struct multipart_ops *ops;
    void *arg;
    enum state state;
    char delim[80];
    size_t delim_len;
    size_t matched; /* bytes of the delimiter at the end of what came so far */
    size_t virt;    /* those of them that are no data if the match fails */
    struct buf head;
    struct files_part part;
};

struct multipart *multipart_new(const char *boundary, const struct multipart_ops *ops,
                                void *arg)
{
    struct multipart *m = xcalloc(1, sizeof(*m));
    size_t n = strlen(boundary);
    m->ops = ops;
    m->arg = arg;
    memcpy(m->delim, "\r\n--", 4);
    memcpy(m->delim + 4, boundary, n < 70 ? n : 70);
    m->delim_len = 4 + (n < 70 ? n : 70);
    m->matched = m->virt = 2; /* the first delimiter may stand at the very start */
    buf_init(&m->head, PART_HEAD_MAX);
    return m;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    buf_release(&m->head);
    free(m);
}

bool multipart_is_whole(const struct multipart *m)
{
    return m->state == EPILOGUE;
}

static void stop(struct multipart *m)
{
    m->state = STOPPED;
}

/* Bytes that turned out to be no delimiter. */
static void emit(struct multipart *m, const char *p, size_t len)
{
    if (m->state == DATA && len > 0 && !m->ops->data(m->arg, p, len))
        stop(m);
}

static void delimiter_found(struct multipart *m)
{
    m->matched = m->virt = 0;
    buf_clear(&m->head);
    if (m->state == DATA && !m->ops->end(m->arg))
        stop(m);
    else if (m->state != STOPPED)
        m->state = LINE;
}

/* How many bytes at p go on with the delimiter. */
static size_t match(const struct multipart *m, size_t from, const char *p, size_t len)
{
    size_t n = 0;
    while (n < len && from + n < m->delim_len && p[n] == m->delim[from + n])
        n++;
    return n;
}

/* Look for the delimiter; bytes used. */
static size_t scan(struct multipart *m, const char *p, size_t len)
{
    size_t at = 0, start = 0;
    if (m->matched > 0) {
        size_t held = m->matched;
        at = match(m, held, p, len);
        m->matched += at;
        if (m->matched == m->delim_len) {
            delimiter_found(m);
            return at;
        }
        if (at == len)
            return len;
        emit(m, m->delim + m->virt, held - m->virt);
        m->matched = m->virt = 0;
    }
    while (m->state != STOPPED) {
        const char *cr = memchr(p + at, '\r', len - at);
        if (!cr) {
            emit(m, p + start, len - start);
            return len;
        }
        at = (size_t)(cr - p);
        size_t n = match(m, 0, cr, len - at);
        if (n < m->delim_len && at + n < len) {
            at += n;
            continue;
        }
        emit(m, p + start, at - start);
        m->matched = n;
        if (n == m->delim_len && m->state != STOPPED)
            delimiter_found(m);
        return at + n;
    }
    return len;
}

/* After a delimiter: "--" ends the form, else blanks and CR LF begin a head. */
static void line_byte(struct multipart *m, char c)
{
    const char *t = buf_str(&m->head);
    size_t n = m->head.len;
    if (n == 1 && t[0] == '-' && c == '-')
        m->state = EPILOGUE;
    else if (n > 0 && t[n - 1] == '\r' && c == '\n')
        m->state = HEAD;
    else if (n > 0 && (t[n - 1] == '\r' || t[0] == '-'))
        stop(m);
    else if (c != ' ' && c != '\t' && c != '\r' && !(n == 0 && c == '-'))
        stop(m);
    if (buf_addc(&m->head, c) != 0)
        stop(m);
}

static void head_byte(struct multipart *m, char c)
{
    if (buf_addc(&m->head, c) != 0) {
        stop(m);
        return;
    }
    const char *t = buf_str(&m->head);
    size_t n = m->head.len;
    if (c != '\n' || n < 4 || memcmp(t + n - 4, "\r\n\r\n", 4) != 0)
        return;
    memset(&m->part, 0, sizeof(m->part));
    files_part_head(t, n, &m->part);
    m->state = DATA;
    /* an empty body starts with the delimiter's own line end: it is the head's */
    m->matched = m->virt = 2;
    if (!m->ops->begin(m->arg, &m->part))
        stop(m);
}

bool multipart_feed(struct multipart *m, const char *p, size_t len)
{
    size_t at = 0;
    while (at < len && m->state != STOPPED && m->state != EPILOGUE) {
        if (m->state == LINE)
            line_byte(m, p[at++]);
        else if (m->state == HEAD)
            head_byte(m, p[at++]);
        else
            at += scan(m, p + at, len - at);
    }
    return m->state != STOPPED;
}
