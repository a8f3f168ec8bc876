/* Full text search over what was said: the words of users and agents, the titles of tool
 * calls. Whoever writes an event only notes its place in `searchQueue`; the text is
 * indexed when nobody waits, or when somebody searches. */
#include "store_priv.h"

#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOCS_AT_ONCE = 256,
    EVENTS_AT_ONCE = 20000, /* looked at in an old run */
    DOC_BYTES = 64 << 10,   /* of one text; the rest of a longer one is not found */
    INDEX_DELAY_MS = 300,   /* after a write */
    BEHIND_MS = 5,          /* a search while typing indexes so long before it looks */
    WHOLE_MS = 60000,       /* and one that wants everything */
    WHOLE_RUN = -1,         /* idx of a queued run whose events are all to be looked at */
};

/* --- what is worth finding ---------------------------------------------------------- */

static bool has(const char *json, size_t len, const char *what)
{
    return memmem(json, len, what, strlen(what)) != NULL;
}

/* The kind is the first field. Quotes inside of strings are escaped: what is looked for
 * here can only be a field. */
static bool worth_finding(const char *json, size_t len)
{
    if (str_starts(json, "{\"kind\":\"user_echo\""))
        return true;
    if (str_starts(json, "{\"kind\":\"text\""))
        return has(json, len, "\"final\":true");
    if (str_starts(json, "{\"kind\":\"tool\""))
        return !has(json, len, "\"state\":\"running\"");
    return str_starts(json, "{\"kind\":\"ask\"") && !has(json, len, "\"final\":true");
}

int st_search_note(struct store *s, uint64_t run, const struct st_event *ev, struct err *e)
{
    if (!ev->json || !worth_finding(ev->json, ev->len))
        return 0;
    st_search_soon(s);
    return st_run(s, e, "INSERT INTO searchQueue(run, offset, idx) VALUES(?,?,?)", "iii",
                  (int64_t)run, (int64_t)ev->offset, (int64_t)ev->index);
}

void st_search_soon(struct store *s)
{
    if (s->search_ms == INT64_MAX)
        s->search_ms = clock_mono_ms() + INDEX_DELAY_MS;
}

/* --- the index ---------------------------------------------------------------------- */

struct place {
    int64_t queue, run, offset, idx, sandbox, time_ms;
    char *json;
};

/* Text of an event as it is searched for, cleaned; NULL: nothing. */
static char *doc_text(const struct cJSON *j, const char **who)
{
    const char *kind = json_str(j, "kind", ""), *text;
    size_t len;

    *who = "agent";
    if (str_eq(kind, "user_echo"))
        *who = "you";
    else if (str_eq(kind, "tool"))
        *who = "tool";
    text = json_str(j, str_eq(kind, "tool") || str_eq(kind, "ask") ? "title" : "text", NULL);
    if (!text || !*text)
        return NULL;
    len = strlen(text);
    return clean_text_dup(text, len < DOC_BYTES ? len : DOC_BYTES);
}

static int add_doc(struct store *s, const struct place *p, struct err *e)
{
    struct cJSON *j = json_parse(p->json, strlen(p->json), NULL);
    const char *who;
    char place[32];
    char *text = j ? doc_text(j, &who) : NULL;
    int64_t t = json_i64(j, "time", 0);
    int rc = 0;

    if (text) {
        snprintf(place, sizeof(place), "s%lld", (long long)p->sandbox);
        rc = st_run(s, e,
                    "INSERT OR IGNORE INTO searchDocs(run, offset, idx, sandbox, timeMs, who,"
                    " place, text) VALUES(?,?,?,?,?,?,?,?)",
                    "iiiiittt", p->run, p->offset, p->idx, p->sandbox, t > 0 ? t : p->time_ms,
                    who, place, text);
        if (rc == 0 && sqlite3_changes(s->db) > 0)
            rc = st_run(s, e, "INSERT INTO searchText(rowid, text, place) VALUES(?,?,?)", "itt",
                        (int64_t)sqlite3_last_insert_rowid(s->db), text, place);
    }
    free(text);
    json_free(j);
    return rc;
}

/* A run from before there was an index: its events one after the other, some at a time. */
static int expand_run(struct store *s, const struct place *p, struct err *e)
{
    ARR(struct st_event) found = ARR_INIT;
    int64_t offset = p->offset, n = 0;
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT offset, idx, json FROM agentEvents WHERE run=? AND"
                               " offset >= ? ORDER BY offset, idx LIMIT ?",
                               "iii", p->run, p->offset, (int64_t)EVENTS_AT_ONCE);
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        const char *json = (const char *)sqlite3_column_text(q, 2);
        size_t len = (size_t)sqlite3_column_bytes(q, 2);

        rc = 0;
        offset = sqlite3_column_int64(q, 0);
        n++;
        if (json && worth_finding(json, len))
            *ARR_PUSH(&found) = (struct st_event){
                .offset = (uint64_t)offset, .index = (uint32_t)sqlite3_column_int64(q, 1)};
    }
    for (size_t i = 0; rc == 0 && i < found.n; i++)
        rc = st_run(s, e, "INSERT INTO searchQueue(run, offset, idx) VALUES(?,?,?)", "iii",
                    p->run, (int64_t)found.v[i].offset, (int64_t)found.v[i].index);
    /* the last offset once more: its further events may be beyond the limit */
    if (rc == 0 && n == EVENTS_AT_ONCE && offset > p->offset)
        rc = st_run(s, e, "INSERT INTO searchQueue(run, offset, idx) VALUES(?,?,?)", "iii",
                    p->run, offset, (int64_t)WHOLE_RUN);
    ARR_RELEASE(&found);
    return rc;
}

static void place_release(struct place *p)
{
    free(p->json);
}

typedef ARR(struct place) places;

static int read_queue(struct store *s, places *v, struct err *e)
{
    sqlite3_stmt *q = st_query(
        s, e,
        "SELECT q.id, q.run, q.offset, q.idx, r.sandbox, max(r.startedAt, CASE WHEN r.ended"
        " THEN r.endedAt ELSE ? END), e.json FROM searchQueue q LEFT JOIN runs r ON r.id=q.run"
        " LEFT JOIN agentEvents e ON e.run=q.run AND e.offset=q.offset AND e.idx=q.idx"
        " ORDER BY q.id LIMIT ?",
        "ii", clock_wall_ms(), (int64_t)DOCS_AT_ONCE);
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        rc = 0;
        *ARR_PUSH(v) = (struct place){
            .queue = sqlite3_column_int64(q, 0),
            .run = sqlite3_column_int64(q, 1),
            .offset = sqlite3_column_int64(q, 2),
            .idx = sqlite3_column_int64(q, 3),
            .sandbox = sqlite3_column_int64(q, 4),
            .time_ms = sqlite3_column_int64(q, 5),
            .json = st_text(q, 6),
        };
    }
    return rc;
}

static int index_some(struct store *s, bool *more, struct err *e)
{
    places v = ARR_INIT;
    int rc = st_begin(s, false, e);

    if (rc != 0)
        return rc;
    rc = read_queue(s, &v, e);
    for (size_t i = 0; rc == 0 && i < v.n; i++) {
        const struct place *p = &v.v[i];

        if (p->sandbox && p->idx == WHOLE_RUN)
            rc = expand_run(s, p, e);
        else if (p->sandbox && p->json)
            rc = add_doc(s, p, e);
    }
    if (rc == 0 && v.n)
        rc = st_run(s, e, "DELETE FROM searchQueue WHERE id<=?", "i", v.v[v.n - 1].queue);
    *more = v.n == DOCS_AT_ONCE || (v.n && v.v[v.n - 1].idx == WHOLE_RUN);
    for (size_t i = 0; i < v.n; i++)
        place_release(&v.v[i]);
    ARR_RELEASE(&v);
    if (rc == 0)
        return st_commit(s, e);
    st_rollback(s);
    return rc;
}

int st_search_step(struct store *s, struct err *e)
{
    int64_t t = clock_mono_ms();
    bool more = false;
    int rc = s->readonly ? 0 : index_some(s, &more, e);

    /* whatever went wrong is tried again at the next write or search: the queue keeps it */
    s->search_ms = rc == 0 && more ? clock_mono_ms() + 2 * (clock_mono_ms() - t) : INT64_MAX;
    return rc;
}

/* The index forgets a text when it is told the same once more, so its row goes last. */
int st_search_forget(struct store *s, int64_t run, int64_t at_once, bool *left, struct err *e)
{
    int rc = st_run(s, e,
                    "INSERT INTO searchText(searchText, rowid, text, place)"
                    " SELECT 'delete', id, text, place FROM searchDocs WHERE run=?"
                    " ORDER BY offset, idx LIMIT ?",
                    "ii", run, at_once);
    if (rc == 0)
        rc = st_run(s, e,
                    "DELETE FROM searchDocs WHERE id IN (SELECT id FROM searchDocs WHERE run=?"
                    " ORDER BY offset, idx LIMIT ?)",
                    "ii", run, at_once);
    *left = rc == 0 && sqlite3_changes(s->db) == at_once;
    return rc;
}

/* --- the search ----------------------------------------------------------------------- */

/* Letters, digits and all beyond ASCII make words; a term without any finds nothing. */
static bool has_word(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isalnum((unsigned char)s[i]) || (unsigned char)s[i] >= 0x80)
            return true;
    return false;
}

static void add_term(struct buf *b, const char *s, size_t len, bool begin_only)
{
    buf_addc(b, '"');
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"')
            buf_addc(b, '"');
        buf_addc(b, s[i]);
    }
    buf_adds(b, begin_only ? "\"*" : "\"");
}

struct term {
    const char *s;
    size_t len;
    bool not, open; /* open: the text ends in it, it may go on */
};

/* The next term of what was typed: a word, or "several words"; with '-' in front: without. */
static bool next_term(const char **at, struct term *t)
{
    const char *p = *at + strspn(*at, " \t\r\n");

    if (!*p)
        return false;
    *t = (struct term){0};
    if (*p == '-' && p[1] && !strchr(" \t\r\n", p[1])) {
        t->not = true;
        p++;
    }
    if (*p == '"') {
        const char *end = strchr(p + 1, '"');

        t->s = p + 1;
        t->len = end ? (size_t)(end - t->s) : strlen(t->s);
        *at = end ? end + 1 : t->s + t->len;
        t->open = !end;
        return true;
    }
    t->s = p;
    t->len = strcspn(p, " \t\r\n");
    *at = p + t->len;
    t->open = !t->not && (!**at || t->s[t->len - 1] == '*');
    return true;
}

#define IN "in:"

/* Sandboxes of that name or id, as words of the column `place`; a word that nothing has when
 * there are none. */
static int add_places(struct store *s, const struct term *t, struct buf *b, struct err *e)
{
    char *name = xstrndup(t->s + strlen(IN), t->len - strlen(IN));
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT id FROM sandboxes WHERE name=?1 OR sandboxId=?1"
                               " ORDER BY id DESC LIMIT 1000",
                               "t", name);
    int rc = q ? 0 : e->code;

    buf_adds(b, " AND place:(\"none\"");
    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        buf_addf(b, " OR \"s%lld\"", (long long)sqlite3_column_int64(q, 0));
        rc = 0;
    }
    buf_addc(b, ')');
    free(name);
    return rc;
}

static bool is_place(const struct term *t)
{
    return !t->not && t->len > strlen(IN) && str_starts(t->s, IN);
}

/* The question in FTS5's language, from any text; *n: how many words are looked for. */
static int make_match(struct store *s, const struct st_req *r, struct buf *b, size_t *n,
                      struct err *e)
{
    struct buf rest = BUF_INIT;
    const char *at = r->s1;
    struct term t;
    int rc = 0;

    *n = 0;
    buf_adds(b, "text:(");
    if (r->id)
        buf_addf(&rest, " AND place:\"s%llu\"", (unsigned long long)r->id);
    while (rc == 0 && next_term(&at, &t)) {
        if (!has_word(t.s, t.len))
            continue;
        if (is_place(&t)) {
            rc = add_places(s, &t, &rest, e);
        } else if (!t.not) {
            buf_adds(b, (*n)++ ? " AND " : "");
            add_term(b, t.s, t.len, t.open);
        }
    }
    buf_addc(b, ')');
    buf_add(b, rest.p, rest.len);
    for (at = r->s1; rc == 0 && next_term(&at, &t);) {
        if (!t.not || !has_word(t.s, t.len))
            continue;
        buf_adds(b, " NOT text:");
        add_term(b, t.s, t.len, false);
    }
    buf_release(&rest);
    return rc;
}

/* True when everything written so far is in the index. */
static bool catch_up(struct store *s, bool whole, struct err *e)
{
    int64_t until = clock_mono_ms() + (whole ? WHOLE_MS : BEHIND_MS), left = 0;
    bool more = !s->readonly;

    while (more && index_some(s, &more, e) == 0)
        if (more && clock_mono_ms() >= until)
            break;
    if (more)
        st_search_soon(s);
    else
        s->search_ms = INT64_MAX;
    return st_number(s, e, 0, &left, "SELECT 1 FROM searchQueue LIMIT 1", "") == 0 && left == 0;
}

static void push_hit(struct st_reply *r, sqlite3_stmt *q)
{
    r->hits = xrealloc(r->hits, (r->n_hits + 1) * sizeof(*r->hits));
    r->hits[r->n_hits++] = (struct st_hit){
        .id = (uint64_t)sqlite3_column_int64(q, 0),
        .sandbox = (uint64_t)sqlite3_column_int64(q, 1),
        .run = (uint64_t)sqlite3_column_int64(q, 2),
        .offset = (uint64_t)sqlite3_column_int64(q, 3),
        .index = (uint32_t)sqlite3_column_int64(q, 4),
        .time_ms = sqlite3_column_int64(q, 5),
        .who = st_text(q, 6),
        .text = st_text(q, 7),
        .name = st_text(q, 8),
        .sandbox_id = st_text(q, 9),
    };
}

int st_op_search(struct store *s, const struct st_req *q, struct st_reply *r)
{
    struct buf match = BUF_INIT;
    struct err late = {0};
    int64_t limit = q->n1;
    size_t words = 0;
    int rc = make_match(s, q, &match, &words, &r->err);

    if (rc != 0 || words == 0) {
        r->got = rc == 0;
        buf_release(&match);
        return rc;
    }
    r->got = catch_up(s, q->flag, &late);
    sqlite3_stmt *p =
        st_query(s, &r->err,
                 "SELECT d.id, d.sandbox, d.run, d.offset, d.idx, d.timeMs, d.who,"
                 " snippet(searchText, 0, char(2), char(3), '...', 24), b.name, b.sandboxId"
                 " FROM searchText JOIN searchDocs d ON d.id=searchText.rowid"
                 " LEFT JOIN sandboxes b ON b.id=d.sandbox"
                 " WHERE searchText MATCH ? AND searchText.rowid < ?"
                 " ORDER BY searchText.rowid DESC LIMIT ?",
                 "tii", buf_str(&match), q->offset ? (int64_t)q->offset : INT64_MAX, limit + 1);
    if (!p)
        rc = r->err.code;
    while (rc == 0 && (rc = st_step(s, p, &r->err)) == 1) {
        rc = 0;
        if ((int64_t)r->n_hits == limit)
            r->more_before = true;
        else
            push_hit(r, p);
    }
    buf_release(&match);
    return rc;
}

void st_hit_release(struct st_hit *h)
{
    free(h->name);
    free(h->sandbox_id);
    free(h->who);
    free(h->text);
}
