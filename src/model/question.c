/* What an agent asks, in words for people. */
#include <cct/model/question.h>

#include <cct/text/clean.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { QUESTION_CELLS = 240, LABEL_CELLS = 200, CHOICES_MAX = 50, DETAIL_BYTES = 8000 };

void question_release(struct question *a)
{
    free(a->id);
    free(a->question);
    free(a->detail);
    str_list_free(a->choices);
    free(a->answer);
    memset(a, 0, sizeof(*a));
}

void question_copy(struct question *dst, const struct question *src)
{
    *dst = *src;
    dst->id = xstrdup(src->id);
    dst->question = xstrdup(src->question);
    dst->detail = xstrdup(src->detail);
    dst->answer = xstrdup(src->answer);
    dst->choices = str_list_copy(src->choices);
}

/* --- words ------------------------------------------------------------------------ */

static bool is_shell(const char *tool)
{
    static const char *const names[] = {"Bash", "bash", "shell", "run", "run_shell_command"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(tool, names[i]))
            return true;
    return false;
}

static bool asks_itself(const char *tool)
{
    return !tool || str_eq(tool, "AskUserQuestion") || str_eq(tool, "question");
}

char *question_line(const char *tool, const char *title)
{
    char *text, *line;

    if (asks_itself(tool))
        return clean_line_dup(title && *title ? title : "a question", QUESTION_CELLS);
    if (!title || !*title)
        text = xasprintf("use %s?", tool);
    else if (is_shell(tool))
        text = xasprintf("run `%s`?", title);
    else
        text = xasprintf("use %s: %s?", tool, title);
    line = clean_line_dup(text, QUESTION_CELLS);
    free(text);
    return line;
}

static void add_question(struct buf *b, const struct cJSON *q, bool several)
{
    unsigned n = 0;

    if (several)
        buf_addf(b, "%s\n", json_str(q, "question", ""));
    for (const struct cJSON *o = json_first(json_get(q, "options")); o; o = json_next(o)) {
        const char *what = json_str(o, "description", "");

        if (!several && !*what)
            continue; /* the choices say as much */
        if (several)
            buf_addf(b, "  %u) ", ++n);
        buf_addf(b, "%s%s%s\n", json_str(o, "label", ""), *what ? " - " : "", what);
    }
    if (json_bool(q, "multiSelect", false))
        buf_adds(b, "several may be chosen: 1, 2\n");
}

static void add_member(struct buf *b, const struct cJSON *m, const char *title)
{
    const char *s = json_str_of(m);
    char *json = s ? NULL : json_text(m);

    if (!str_eq(s, title) && json_name(m))
        buf_addf(b, "%s: %s%s\n", json_name(m), s && strchr(s, '\n') ? "\n" : "", s ? s : json);
    free(json);
}

/* What only the agent's own server needs. */
static bool is_bookkeeping(const char *name)
{
    static const char *const names[] = {"id",   "sessionID",  "messageID", "callID",
                                        "tool", "permission", "always",    "patterns"};

    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(name, names[i]))
            return true;
    return false;
}

static void add_members(struct buf *b, const struct cJSON *j, const char *title)
{
    bool of_server = json_get(j, "sessionID") != NULL;

    for (const struct cJSON *m = json_first(j); m; m = json_next(m)) {
        if (of_server && str_eq(json_name(m), "metadata"))
            add_members(b, m, title);
        else if (!of_server || !is_bookkeeping(json_name(m)))
            add_member(b, m, title);
    }
}

char *question_detail(const char *tool, const char *title, const char *input)
{
    struct cJSON *j = input ? json_parse(input, strlen(input), NULL) : NULL;
    const struct cJSON *q = asks_itself(tool) ? json_first(json_get(j, "questions")) : NULL;
    struct buf b = BUF_INIT;
    char *text = NULL;
    bool several = q && json_next(q);

    for (; q; q = json_next(q))
        add_question(&b, q, several);
    if (!b.len && !asks_itself(tool))
        add_members(&b, j, title);
    if (b.len > DETAIL_BYTES) {
        buf_truncate(&b, DETAIL_BYTES);
        buf_adds(&b, " [cut]");
    }
    while (b.len && b.p[b.len - 1] == '\n')
        buf_truncate(&b, b.len - 1);
    if (b.len)
        text = clean_text_dup(b.p, b.len);
    buf_release(&b);
    json_free(j);
    return text;
}

char **question_choices(const char *labels)
{
    char **v = xcalloc(CHOICES_MAX + 1, sizeof(*v));
    size_t n = 0;

    for (const char *end; labels && n < CHOICES_MAX; labels = end + 1) {
        end = strchr(labels, '\n');
        char *one = end ? xstrndup(labels, (size_t)(end - labels)) : xstrdup(labels);

        v[n++] = clean_line_dup(one, LABEL_CELLS);
        free(one);
        if (!end)
            break;
    }
    if (n)
        return v;
    free(v);
    return NULL;
}

char *question_choices_line(char *const *choices)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; choices && choices[i]; i++)
        buf_addf(&b, "%s%zu) %s", i ? "   " : "", i + 1, choices[i]);
    return buf_detach(&b, NULL);
}
