/* Sandboxes and messages as plain data: copies, releases, names of states. */
#include <cct/model/sandbox.h>

#include <cct/model/pair.h>
#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[SB_STATE_COUNT] = {"creating", "running", "paused",
                                                        "killed", "error"};
static const char *const agent_names[] = {"none", "starting", "working", "asks you",
                                          "idle", "exited",   "failed",  "unknown"};
static const char *const msg_names[] = {"queued", "sent",        "delivered",
                                        "failed", "unconfirmed", "cancelled"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int find_name(const char *const *names, size_t n, const char *s)
{
    for (size_t i = 0; s && i < n; i++)
        if (strcmp(names[i], s) == 0)
            return (int)i;
    return -1;
}

const char *sb_state_name(enum sb_state s)
{
    return (unsigned)s < SB_STATE_COUNT ? state_names[s] : "?";
}

int sb_state_parse(const char *s)
{
    return find_name(state_names, SB_STATE_COUNT, s);
}

const char *sb_agent_name(enum sb_agent a)
{
    return (size_t)a < COUNT(agent_names) ? agent_names[a] : "?";
}

int sb_agent_parse(const char *s)
{
    return find_name(agent_names, COUNT(agent_names), s);
}

const char *sb_step_name(enum sb_step s)
{
    static const char *const names[] = {"", "template", "environment", "sandbox", "agent"};

    return (size_t)s < COUNT(names) ? names[s] : "?";
}

const char *sb_gone_text(enum sb_gone g)
{
    switch (g) {
    case GONE_NONE:
        return "";
    case GONE_HERE:
        return "killed by you";
    case GONE_TIMEOUT:
        return "timed out";
    case GONE_ELSEWHERE:
        return "killed elsewhere";
    case GONE_EARLY:
        return "gone early";
    }
    return "?";
}

const char *msg_state_name(enum msg_state s)
{
    return (size_t)s < COUNT(msg_names) ? msg_names[s] : "?";
}

int msg_state_parse(const char *s)
{
    return find_name(msg_names, COUNT(msg_names), s);
}

const char *kv_get(const struct kv *list, const char *key)
{
    for (; list && list->k; list++)
        if (strcmp(list->k, key) == 0)
            return list->v;
    return NULL;
}

struct kv *kv_dup(const struct kv *kv)
{
    if (!kv)
        return NULL;
    size_t n = 0;
    while (kv[n].k)
        n++;
    struct kv *out = xcalloc(n + 1, sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        out[i].k = xstrdup(kv[i].k);
        out[i].v = xstrdup(kv[i].v);
    }
    return out;
}

void kv_free(struct kv *kv)
{
    for (size_t i = 0; kv && kv[i].k; i++) {
        free(kv[i].k);
        free(kv[i].v);
    }
    free(kv);
}

/* Every string member once, so that copy and release cannot drift apart. */
#define SANDBOX_STRINGS(X)                                                                     \
    X(sandbox_id) X(session) X(name) X(tool) X(project) X(template_id) X(alias) X(branch) X(mark) X(tags) \
        X(reason) X(last_line) X(account) X(odd) X(step_text)

static void free_texts(struct sandbox *s)
{
#define FREE_FIELD(f) free(s->f);
    SANDBOX_STRINGS(FREE_FIELD)
#undef FREE_FIELD
    kv_free(s->meta);
}

void sandbox_release(struct sandbox *s)
{
    if (s->block)
        free(s->block);
    else
        free_texts(s);
    pair_free(s->pair);
    memset(s, 0, sizeof(*s));
}

void sandbox_copy(struct sandbox *dst, const struct sandbox *src)
{
    *dst = *src;
#define DUP_FIELD(f) dst->f = xstrdup(src->f);
    SANDBOX_STRINGS(DUP_FIELD)
#undef DUP_FIELD
    dst->meta = kv_dup(src->meta);
    dst->pair = pair_dup(src->pair, false);
    dst->block = NULL;
}

static size_t text_size(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static char *text_to(char **end, const char *s)
{
    char *at = *end;
    if (!s)
        return NULL;
    *end = stpcpy(at, s) + 1;
    return at;
}

void sandbox_snapshot(struct sandbox *dst, const struct sandbox *src)
{
    size_t n = 0, size = 0;
#define ADD_FIELD(f) size += text_size(src->f);
    SANDBOX_STRINGS(ADD_FIELD)
#undef ADD_FIELD
    for (; src->meta && src->meta[n].k; n++)
        size += text_size(src->meta[n].k) + text_size(src->meta[n].v);
    size_t list = src->meta ? (n + 1) * sizeof(*src->meta) : 0;

    *dst = *src;
    dst->block = list + size ? xmalloc(list + size) : NULL;
    char *end = dst->block ? (char *)dst->block + list : NULL;
    if (list) {
        dst->meta = dst->block;
        for (size_t i = 0; i < n; i++) {
            dst->meta[i].k = text_to(&end, src->meta[i].k);
            dst->meta[i].v = text_to(&end, src->meta[i].v);
        }
        dst->meta[n] = (struct kv){NULL, NULL};
    }
#define PUT_FIELD(f) dst->f = text_to(&end, src->f);
    SANDBOX_STRINGS(PUT_FIELD)
#undef PUT_FIELD
    dst->pair = pair_dup(src->pair, false);
}

int64_t server_clock_at(const struct server_clock *c, int64_t boot_ms, int64_t wall_ms)
{
    return c->server_ms ? c->server_ms + (boot_ms - c->boot_ms) : wall_ms;
}

double sandbox_usd_per_hour(const struct sandbox *s)
{
    bool bills = s->state == SB_RUNNING || s->state == SB_CREATING ||
                 (s->state == SB_ERROR && s->vm_up);

    return bills && !isnan(s->usd_per_s) ? s->usd_per_s * 3600 : 0;
}

bool sandbox_is_unpriced(const struct sandbox *s)
{
    return (s->state == SB_RUNNING || (s->state == SB_ERROR && s->vm_up)) && isnan(s->usd_per_s);
}

bool sandbox_idles(const struct sandbox *s)
{
    return s->state == SB_RUNNING && !s->foreign && !s->adopted && s->agent_since &&
           (s->agent == AG_IDLE || s->agent == AG_EXITED) && !(s->usd_per_s <= 0);
}

char *sandbox_new_name(void)
{
    static const char *const first[] = {"amber", "brisk", "calm",  "clear", "crisp", "deep",
                                        "early", "fair",  "fresh", "green", "keen",  "light",
                                        "mild",  "noble", "plain", "quick", "quiet", "sharp",
                                        "still", "swift", "tidy",  "warm",  "wide",  "young"};
    static const char *const second[] = {"acorn", "badge", "birch", "brook", "cedar", "cliff",
                                         "cloud", "coral", "crane", "delta", "ember", "finch",
                                         "grove", "heron", "larch", "maple", "marsh", "otter",
                                         "pearl", "plume", "raven", "ridge", "stone", "willow"};
    unsigned char r[3];
    rand_bytes(r, sizeof(r));
    return xasprintf("%s-%s-%02u", first[r[0] % COUNT(first)], second[r[1] % COUNT(second)],
                     r[2] % 100u);
}

bool sandbox_name_ok(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (n == 0 || n > 64)
        return false;
    return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

void message_release(struct message *m)
{
    free(m->key);
    free(m->text);
    free(m->error);
    memset(m, 0, sizeof(*m));
}

void message_copy(struct message *dst, const struct message *src)
{
    *dst = *src;
    dst->key = xstrdup(src->key);
    dst->text = xstrdup(src->text);
    dst->error = xstrdup(src->error);
}

/* --- tags ------------------------------------------------------------------------ */

static const char tag_bytes[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

static bool stands_in(const char *tags, const char *tag, size_t len)
{
    for (const char *at = tags; *at;) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, tag, n) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

bool sandbox_has_tag(const struct sandbox *s, const char *tag)
{
    return s->tags && *tag && stands_in(s->tags, tag, strlen(tag));
}

bool sandbox_tags(const char *text, char dst[SANDBOX_TAGS_BYTES])
{
    size_t len = 0;
    int n = 0;
    dst[0] = 0;
    for (text += strspn(text, " ,#"); *text; text += strspn(text, " ,#")) {
        size_t one = strspn(text, tag_bytes);
        if (one == 0 || one > 24 || (text[one] && !strchr(" ,", text[one])))
            return false;
        if (!stands_in(dst, text, one)) {
            if (++n > SANDBOX_TAGS)
                return false;
            if (len)
                dst[len++] = ' ';
            memcpy(dst + len, text, one);
            dst[len += one] = 0;
        }
        text += one;
    }
    return true;
}
