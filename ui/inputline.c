/* A multi-line text editor for one field. */
#include <cct/ui/inputline.h>

#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HISTORY = 200, OBJECT = 0xFFFC, OBJECT_BYTES = 3, FOLD_LINES = 8, FOLD_BYTES = 1500,
       HISTORY_BYTES = 64 << 10, KEPT_BYTES = 4096 };

/* What was killed in a message, for ^Y in any other; kept until the next one. Other fields, which
 * may hold what no agent should get, have their own. */
static char *killed;

static char **killed_of(struct inputline *l)
{
    return l->folds ? &killed : &l->kill;
}

void inputline_init(struct inputline *l, bool multiline, size_t max)
{
    memset(l, 0, sizeof(*l));
    l->multiline = multiline;
    l->max = max;
}

static void object_release(struct inputline_object *o)
{
    free(o->text);
    free(o->path);
    free(o->label);
}

static void drop_objects(struct inputline *l, size_t at, size_t n)
{
    if (!n)
        return;
    for (size_t i = at; i < at + n; i++)
        object_release(&l->objects[i]);
    l->n_objects -= n;
    memmove(l->objects + at, l->objects + at + n, (l->n_objects - at) * sizeof(*l->objects));
}

void inputline_release(struct inputline *l)
{
    drop_objects(l, 0, l->n_objects);
    free(l->objects);
    buf_release(&l->whole);
    buf_release(&l->text);
    free(l->kill);
    free(l->draft);
    free(l->sought);
    for (size_t i = 0; i < l->n_history; i++)
        free(l->history[i]);
    free(l->history);
    memset(l, 0, sizeof(*l));
}

/* --- objects ----------------------------------------------------------------------- */

static bool is_object(const char *s)
{
    return memcmp(s, "\xef\xbf\xbc", OBJECT_BYTES) == 0;
}

static size_t count_objects(const struct inputline *l, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t i = from; i + OBJECT_BYTES <= to; i++)
        n += is_object(l->text.p + i);
    return n;
}

static void add_whole(const struct inputline *l, size_t from, size_t to, struct buf *b)
{
    size_t k = count_objects(l, 0, from);
    for (size_t i = from; i < to; i++) {
        if (k == l->n_objects || i + OBJECT_BYTES > to || !is_object(l->text.p + i)) {
            buf_addc(b, l->text.p[i]);
            continue;
        }
        const struct inputline_object *o = &l->objects[k++];
        if (o->text)
            buf_adds(b, o->text);
        else
            buf_addf(b, "@%s", o->path);
        i += OBJECT_BYTES - 1;
    }
}

static size_t object_bytes(const struct inputline_object *o)
{
    return o->text ? strlen(o->text) : strlen(o->path) + 1;
}

size_t inputline_bytes(const struct inputline *l)
{
    size_t n = l->text.len - l->n_objects * OBJECT_BYTES;
    for (size_t i = 0; i < l->n_objects; i++)
        n += object_bytes(&l->objects[i]);
    return n;
}

const char *inputline_text(struct inputline *l)
{
    if (!l->n_objects)
        return buf_str(&l->text);
    buf_clear(&l->whole);
    add_whole(l, 0, l->text.len, &l->whole);
    return buf_str(&l->whole);
}

const char *inputline_file(const struct inputline *l, size_t i)
{
    for (size_t k = 0; k < l->n_objects; k++)
        if (l->objects[k].path && i-- == 0)
            return l->objects[k].path;
    return NULL;
}

/* --- changing ---------------------------------------------------------------------- */

/* Each agent has its own field, all day: what one long paste needed does not stay in each. */
static void give_back(struct inputline *l)
{
    if (!l->text.len && l->text.cap > KEPT_BYTES)
        buf_release(&l->text);
    if (l->whole.cap > KEPT_BYTES)
        buf_release(&l->whole);
}

static void forget(char **text)
{
    free(*text);
    *text = NULL;
}

/* Where it was in the history stays. */
static void set_text(struct inputline *l, const char *text)
{
    drop_objects(l, 0, l->n_objects);
    buf_clear(&l->text);
    give_back(l);
    l->cursor = 0;
    l->scroll = 0;
    if (text)
        inputline_insert(l, text, strlen(text));
}

void inputline_set(struct inputline *l, const char *text)
{
    set_text(l, text);
    l->at_history = l->n_history; /* going back begins anew */
    forget(&l->draft);
    forget(&l->sought);
}

static void insert_raw(struct inputline *l, const char *s, size_t n)
{
    size_t tail = l->text.len - l->cursor;
    char *room = buf_reserve(&l->text, n + 1);
    if (!room)
        return;
    char *at = l->text.p + l->cursor;
    memmove(at + n, at, tail);
    memcpy(at, s, n);
    l->text.len += n;
    l->text.p[l->text.len] = 0;
    l->cursor += n;
}

static void insert_object(struct inputline *l, struct inputline_object take)
{
    size_t at = count_objects(l, 0, l->cursor);
    l->objects = xrealloc(l->objects, (l->n_objects + 1) * sizeof(*l->objects));
    memmove(l->objects + at + 1, l->objects + at, (l->n_objects - at) * sizeof(*l->objects));
    l->objects[at] = take;
    l->n_objects++;
    insert_raw(l, "\xef\xbf\xbc", OBJECT_BYTES);
}

static void clean_input(const struct inputline *l, const char *s, size_t len, struct buf *clean)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = utf8_decode(s + i, len - i, &cp);
        if (n == 0)
            break; /* cut in the middle of a character */
        if (cp == '\r') {
            if (i + 1 < len && s[i + 1] == '\n')
                n = 2;
            cp = '\n';
        }
        if (cp == '\n')
            buf_addc(clean, l->multiline ? '\n' : ' ');
        else if (cp == '\t')
            buf_addc(clean, l->multiline ? '\t' : ' ');
        else if (cp >= 0x20 && cp != 0x7F && !(cp >= 0x80 && cp < 0xA0) && cp != UTF8_BAD &&
                 cp != OBJECT)
            buf_add(clean, s + i, n);
        i += n;
    }
}

static bool fits(const struct inputline *l, size_t n)
{
    return inputline_bytes(l) + n <= l->max;
}

bool inputline_insert(struct inputline *l, const char *s, size_t len)
{
    struct buf clean = BUF_INIT;
    clean_input(l, s, len, &clean);
    bool ok = fits(l, clean.len);
    if (ok && clean.len)
        insert_raw(l, clean.p, clean.len);
    buf_release(&clean);
    return ok;
}

static size_t count_lines(const struct buf *b)
{
    size_t n = 1;
    for (size_t i = 0; i + 1 < b->len; i++)
        n += b->p[i] == '\n';
    return n;
}

bool inputline_paste(struct inputline *l, const char *s, size_t len)
{
    struct buf clean = BUF_INIT;
    clean_input(l, s, len, &clean);
    size_t lines = count_lines(&clean);
    bool ok = fits(l, clean.len);
    if (ok && l->folds && (lines > FOLD_LINES || clean.len > FOLD_BYTES))
        insert_object(l, (struct inputline_object){
                             .text = xstrdup(buf_str(&clean)),
                             .label = lines > 1 ? xasprintf("[pasted %zu lines]", lines)
                                                : xasprintf("[pasted %zu bytes]", clean.len)});
    else if (ok && clean.len)
        insert_raw(l, clean.p, clean.len);
    buf_release(&clean);
    return ok;
}

static void erase(struct inputline *l, size_t from, size_t to, bool keep)
{
    struct buf whole = BUF_INIT;
    if (from >= to)
        return;
    if (keep) {
        add_whole(l, from, to, &whole);
        free(*killed_of(l));
        *killed_of(l) = buf_detach(&whole, NULL);
    }
    if (l->n_objects)
        drop_objects(l, count_objects(l, 0, from), count_objects(l, from, to));
    memmove(l->text.p + from, l->text.p + to, l->text.len - to);
    buf_truncate(&l->text, l->text.len - (to - from));
    l->cursor = from;
    give_back(l);
}

bool inputline_unfold(struct inputline *l)
{
    bool any = false;
    for (size_t i = 0, k = 0; i + OBJECT_BYTES <= l->text.len && k < l->n_objects; i++) {
        if (!is_object(l->text.p + i))
            continue;
        if (!l->objects[k].text) {
            k++;
            continue;
        }
        char *text = l->objects[k].text;
        l->objects[k].text = NULL;
        erase(l, i, i + OBJECT_BYTES, false);
        insert_raw(l, text, strlen(text));
        i = l->cursor - 1;
        free(text);
        any = true;
    }
    return any;
}

bool inputline_attach(struct inputline *l, size_t from, const char *path)
{
    size_t old = l->cursor - from;
    if (inputline_bytes(l) - old + strlen(path) + 1 > l->max)
        return false;
    erase(l, from, l->cursor, false);
    insert_object(l, (struct inputline_object){.path = xstrdup(path),
                                               .label = xasprintf("[@%s]", path)});
    return true;
}

static size_t prev_cluster(const struct inputline *l, size_t at)
{
    if (at == 0)
        return 0;
    if (l->text.p[at - 1] == '\n')
        return at - 1;
    return at - text_cluster_before(l->text.p, at);
}

static size_t next_cluster(const struct inputline *l, size_t at)
{
    if (at >= l->text.len)
        return at;
    if (l->text.p[at] == '\n')
        return at + 1;
    return at + text_cluster(l->text.p + at, l->text.len - at, &(int){0});
}

static bool is_word(const struct inputline *l, size_t at)
{
    unsigned char c = (unsigned char)l->text.p[at];
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
           c == '_';
}

static size_t word_left(const struct inputline *l)
{
    size_t at = l->cursor;
    while (at > 0 && !is_word(l, at - 1))
        at--;
    while (at > 0 && is_word(l, at - 1))
        at--;
    return at;
}

static size_t word_right(const struct inputline *l)
{
    size_t at = l->cursor;
    while (at < l->text.len && !is_word(l, at))
        at++;
    while (at < l->text.len && is_word(l, at))
        at++;
    return at;
}

static size_t line_begin(const struct inputline *l, size_t at)
{
    while (at > 0 && l->text.p[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const struct inputline *l, size_t at)
{
    while (at < l->text.len && l->text.p[at] != '\n')
        at++;
    return at;
}

static void kill_to_end(struct inputline *l)
{
    size_t end = line_end(l, l->cursor);
    if (end == l->cursor && end < l->text.len)
        end++; /* at the end of a line: join the next one */
    erase(l, l->cursor, end, true);
}

static bool printable(key_code k)
{
    return !(k & (KEYC_SPECIAL | KEYC_ALT)) && k >= ' ' && k != 0x7F && !(k >= 0x80 && k < 0xA0);
}

static bool move(struct inputline *l, enum action a)
{
    switch (a) {
    case ACT_CHAR_LEFT:
        l->cursor = prev_cluster(l, l->cursor);
        return true;
    case ACT_CHAR_RIGHT:
        l->cursor = next_cluster(l, l->cursor);
        return true;
    case ACT_LINE_BEGIN:
        l->cursor = line_begin(l, l->cursor);
        return true;
    case ACT_LINE_END:
        l->cursor = line_end(l, l->cursor);
        return true;
    case ACT_WORD_LEFT:
        l->cursor = word_left(l);
        return true;
    case ACT_WORD_RIGHT:
        l->cursor = word_right(l);
        return true;
    default:
        return false;
    }
}

bool inputline_key(struct inputline *l, enum action a, key_code k)
{
    if (move(l, a))
        return true;
    switch (a) {
    case ACT_ERASE:
        erase(l, prev_cluster(l, l->cursor), l->cursor, false);
        return true;
    case ACT_ERASE_NEXT:
        erase(l, l->cursor, next_cluster(l, l->cursor), false);
        return true;
    case ACT_CUT_TO_END:
        kill_to_end(l);
        return true;
    case ACT_CUT_TO_BEGIN:
        erase(l, line_begin(l, l->cursor), l->cursor, true);
        return true;
    case ACT_CUT_WORD:
        erase(l, word_left(l), l->cursor, true);
        return true;
    case ACT_CUT_NEXT_WORD:
        erase(l, l->cursor, word_right(l), true);
        return true;
    case ACT_PUT_BACK:
        if (*killed_of(l))
            inputline_paste(l, *killed_of(l), strlen(*killed_of(l)));
        return true;
    case ACT_NEWLINE:
        return l->multiline && inputline_insert(l, "\n", 1);
    case ACT_UNFOLD_PASTE:
        return l->folds && inputline_unfold(l);
    default:
        break;
    }
    if (!printable(k))
        return false;
    char s[4];
    inputline_insert(l, s, utf8_encode(s, k));
    return true;
}

/* The one that has to go for another: the oldest of the long ones, which few want again. */
static size_t least_wanted(const struct inputline *l)
{
    for (size_t i = 0; i < l->n_history && l->n_history < MAX_HISTORY; i++)
        if (strlen(l->history[i]) > KEPT_BYTES)
            return i;
    return 0;
}

void inputline_history_add(struct inputline *l, const char *text)
{
    if (!*text || (l->n_history && str_eq(l->history[l->n_history - 1], text))) {
        l->at_history = l->n_history;
        return;
    }
    while (l->n_history && (l->n_history == MAX_HISTORY ||
                            l->history_bytes + strlen(text) > HISTORY_BYTES)) {
        size_t at = least_wanted(l);
        l->history_bytes -= strlen(l->history[at]);
        free(l->history[at]);
        l->n_history--;
        memmove(l->history + at, l->history + at + 1, (l->n_history - at) * sizeof(*l->history));
    }
    l->history = xrealloc(l->history, (l->n_history + 1) * sizeof(*l->history));
    l->history[l->n_history++] = xstrdup(text);
    l->history_bytes += strlen(text);
    l->at_history = l->n_history;
}

static void show_history(struct inputline *l, size_t at)
{
    if (l->at_history == l->n_history) {
        free(l->draft);
        l->draft = xstrdup(inputline_text(l));
    }
    char *text = xstrdup(at < l->n_history ? l->history[at] : l->draft ? l->draft : "");
    set_text(l, text);
    l->at_history = at;
    free(text);
}

bool inputline_history_prev(struct inputline *l)
{
    size_t begin = line_begin(l, l->cursor);
    if (begin > 0) { /* a line up inside the text */
        size_t col = text_width(l->text.p + begin, l->cursor - begin);
        size_t up = line_begin(l, begin - 1), used;
        l->cursor = up + text_fit(l->text.p + up, begin - 1 - up, col, &used);
        return true;
    }
    if (l->at_history == 0)
        return false;
    show_history(l, l->at_history - 1);
    return true;
}

bool inputline_history_next(struct inputline *l)
{
    size_t end = line_end(l, l->cursor);
    if (end < l->text.len) {
        size_t begin = line_begin(l, l->cursor);
        size_t col = text_width(l->text.p + begin, l->cursor - begin), used;
        size_t next_end = line_end(l, end + 1);
        l->cursor = end + 1 + text_fit(l->text.p + end + 1, next_end - end - 1, col, &used);
        return true;
    }
    if (l->at_history >= l->n_history)
        return false;
    show_history(l, l->at_history + 1);
    return true;
}

bool inputline_history_find(struct inputline *l)
{
    bool found = l->sought && l->at_history < l->n_history &&
                 str_eq(inputline_text(l), l->history[l->at_history]);
    if (!found) {
        free(l->sought);
        l->sought = xstrdup(inputline_text(l));
    }
    for (size_t i = l->at_history; i-- > 0;)
        if (strcasestr(l->history[i], l->sought)) {
            show_history(l, i);
            return true;
        }
    return false;
}
