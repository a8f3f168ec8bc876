/* What the list is narrowed to. */
#include <cct/model/filter.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum key { KEY_STATE, KEY_AGENT, KEY_DOING, KEY_PROJECT, KEY_NAME, KEY_ID, KEY_TEMPLATE, KEY_TAG,
           KEY_IS,
           KEY_COUNT };
static const char *const keys[KEY_COUNT] = {"state", "agent", "doing", "project",
                                            "name",  "id",    "template", "tag",   "is"};

const char *filter_key(size_t i)
{
    return i < KEY_COUNT ? keys[i] : NULL;
}

static int key_of(const char *word, size_t len)
{
    for (int k = 0; k < KEY_COUNT; k++)
        if (strlen(keys[k]) == len && strncasecmp(keys[k], word, len) == 0)
            return k;
    return -1;
}

void filter_parse(struct filter *f, const char *text)
{
    char *save = NULL;
    f->n = 0;
    str_copy(f->text, sizeof(f->text), text);
    for (char *w = strtok_r(f->text, " \t", &save); w && f->n < FILTER_TERMS;
         w = strtok_r(NULL, " \t", &save)) {
        struct filter_term t = {.key = -1, .not = w[0] == '-'};
        w += t.not;
        size_t n = strcspn(w, ":");
        t.key = w[n] ? key_of(w, n) : -1;
        t.value = t.key >= 0 ? w + n + 1 : w;
        if (*t.value) /* "state:" and "-" are still being typed */
            f->terms[f->n++] = t;
    }
}

/* Does one of the comma's words stand in the field? */
static bool one_in(const char *field, const char *value)
{
    while (field && *value) {
        char word[FILTER_BYTES];
        size_t n = strcspn(value, ",");
        memcpy(word, value, n);
        word[n] = 0;
        if (n && strcasestr(field, word))
            return true;
        value += n + (value[n] == ',');
    }
    return false;
}

static bool one_tag(const struct sandbox *s, const char *value)
{
    while (*value) {
        char word[FILTER_BYTES];
        size_t n = strcspn(value, ",");
        memcpy(word, value, n);
        word[n] = 0;
        if (sandbox_has_tag(s, word))
            return true;
        value += n + (value[n] == ',');
    }
    return false;
}

static bool is(const struct sandbox *s, const char *value)
{
    const struct {
        const char *word;
        bool so;
    } t[] = {{"protected", s->protect}, {"foreign", s->foreign}, {"adopted", s->adopted},
             {"idle", sandbox_idles(s)}, {"unpriced", sandbox_is_unpriced(s)}};
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        if (t[i].so && one_in(t[i].word, value))
            return true;
    return false;
}

static bool any_field(const struct sandbox *s, const char *value)
{
    const char *const fields[] = {s->name, s->tool, s->sandbox_id, sb_state_name(s->state),
                                  sb_agent_name(s->agent), s->project, s->last_line, s->tags};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (one_in(fields[i], value))
            return true;
    return false;
}

static bool fits(const struct filter_term *t, const struct sandbox *s)
{
    switch (t->key) {
    case KEY_STATE:
        return one_in(sb_state_name(s->state), t->value) || one_in(s->odd, t->value);
    case KEY_AGENT:
        return one_in(s->tool, t->value);
    case KEY_DOING:
        return one_in(sb_agent_name(s->agent), t->value);
    case KEY_PROJECT:
        return one_in(s->project, t->value);
    case KEY_NAME:
        return one_in(s->name, t->value);
    case KEY_ID:
        return one_in(s->sandbox_id, t->value);
    case KEY_TEMPLATE:
        return one_in(s->alias, t->value) || one_in(s->template_id, t->value);
    case KEY_TAG:
        return one_tag(s, t->value);
    case KEY_IS:
        return is(s, t->value);
    default:
        return any_field(s, t->value);
    }
}

bool filter_match(const struct filter *f, const struct sandbox *s)
{
    for (int i = 0; i < f->n; i++)
        if (fits(&f->terms[i], s) == f->terms[i].not)
            return false;
    return true;
}

void saved_filters_free(struct saved_filter *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].name);
        free(v[i].words);
    }
    free(v);
}

struct saved_filter *saved_filters_copy(const struct saved_filter *v, size_t n)
{
    struct saved_filter *to = n ? xcalloc(n, sizeof(*to)) : NULL;
    for (size_t i = 0; i < n; i++)
        to[i] = (struct saved_filter){xstrdup(v[i].name), xstrdup(v[i].words)};
    return to;
}
