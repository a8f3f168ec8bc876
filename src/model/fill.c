/* Words of a message that are each sandbox's own. */
#include <cct/model/sandbox.h>

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <string.h>

enum word { WORD_NAME, WORD_BRANCH, WORD_PROJECT, WORD_COUNT };
static const char *const words[WORD_COUNT] = {"{name}", "{branch}", "{project}"};

static const char *value_of(const struct sandbox *s, enum word w)
{
    const char *v = w == WORD_NAME ? s->name : w == WORD_PROJECT ? s->project : s->branch;
    return v && *v ? v : NULL;
}

/* Which word stands here, WORD_COUNT = none. */
static enum word word_at(const char *text)
{
    enum word w = 0;
    while (w < WORD_COUNT && !str_starts(text, words[w]))
        w++;
    return w;
}

bool message_has_words(const char *text)
{
    for (; (text = strchr(text, '{')); text++)
        if (word_at(text) != WORD_COUNT)
            return true;
    return false;
}

char *message_fill(const char *text, const struct sandbox *s, struct err *e)
{
    struct buf b = BUF_INIT;
    for (const char *p = text; *p;) {
        bool kept = *p == '{' && word_at(p + 1) != WORD_COUNT;
        enum word w = word_at(kept ? p + 1 : p);
        size_t n = w != WORD_COUNT ? strlen(words[w]) : 1;
        const char *v = kept || w == WORD_COUNT ? NULL : value_of(s, w);
        if (kept && p[1 + n] == '}') { /* {{name}}: not to be filled in */
            buf_add(&b, p + 1, n);
            p += n + 2;
        } else if (kept || w == WORD_COUNT) {
            buf_addc(&b, *p++);
        } else if (v) {
            buf_adds(&b, v);
            p += n;
        } else {
            buf_release(&b);
            err_set(e, ERR_INVALID, "nothing is known that could stand for %s: leave it out",
                    words[w]);
            return NULL;
        }
    }
    return buf_detach(&b, NULL);
}
