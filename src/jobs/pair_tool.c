/* One turn of a pair as a command line: what a tool's persistent form has too much is left
 * out. */
#include <cct/jobs/pair.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* By adapter, and by program where several speak the same. */
static const struct form {
    const char *program, *adapter, *reads; /* reads: the adapter of the one-run form */
    const char *drop[2];                   /* words that go; with '=' the one behind, too */
    const char *from, *to;                 /* a word behind `from` becomes `to` */
    const char *add;
    const char *resume;                    /* when the table of tools has none */
} forms[] = {
    {.program = "demo-agent", .adapter = "claude", .add = "-p", .resume = "--resume"},
    {.adapter = "claude", .drop = {"--input-format=", "--replay-user-messages"}},
    {.adapter = "qwen", .drop = {"--input-format=", "--replay-user-messages"}},
    {.adapter = "pi", .reads = "pi-json", .from = "--mode", .to = "json"},
};

static const struct form *form_of(const struct tool *t)
{
    static const struct form as_it_is = {0};
    const char *program = t->argv[0], *slash = strrchr(program, '/');

    if (slash)
        program = slash + 1;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (str_eq(t->adapter, forms[i].adapter) &&
            (!forms[i].program || str_eq(program, forms[i].program)))
            return &forms[i];
    return t->mode == TOOL_ONE_RUN ? &as_it_is : NULL;
}

/* How many words from this one on are left out. */
static size_t dropped(const struct form *f, char *const *word)
{
    for (size_t i = 0; i < 2 && f->drop[i]; i++) {
        size_t n = strlen(f->drop[i]);
        bool two = f->drop[i][n - 1] == '=';

        if (two)
            n--;
        if (strncmp(*word, f->drop[i], n) == 0 && !(*word)[n])
            return two && word[1] ? 2 : 1;
        if (two && strncmp(*word, f->drop[i], n + 1) == 0)
            return 1;
    }
    return 0;
}

static char **words_of(const struct tool *t, const struct form *f)
{
    size_t n = 0, k = 0;
    char **words;

    while (t->argv[n])
        n++;
    words = xcalloc(n + 2, sizeof(*words));
    for (size_t i = 0; i < n;) {
        size_t skip = dropped(f, t->argv + i);
        bool other = f->from && i && str_eq(t->argv[i - 1], f->from);

        if (!skip)
            words[k++] = xstrdup(other ? f->to : t->argv[i]);
        i += skip ? skip : 1;
    }
    if (f->add)
        words[k++] = xstrdup(f->add);
    return words;
}

char **pair_tool_command(const struct tool *t, const char *model, const char *session,
                         const char **adapter, struct err *e)
{
    const struct form *f = t->argv && t->argv[0] ? form_of(t) : NULL;
    struct tool_choice choice = {.model = model, .resume_id = session};
    char *resume[2] = {NULL, NULL};
    struct tool one = *t;
    char **words;

    if (!f) {
        err_set(e, ERR_INVALID, "the tool \"%s\" cannot take turns in a pair: it has no form that "
                "runs once per message", t->name);
        return NULL;
    }
    if (model && *model && !t->model_flag) {
        err_set(e, ERR_INVALID, "the tool \"%s\" cannot be told a model (\"%s\")", t->name, model);
        return NULL;
    }
    one.argv = words_of(t, f);
    if (!one.resume && f->resume) {
        resume[0] = (char *)f->resume;
        one.resume = resume;
    }
    if (!one.resume)
        choice.resume_id = NULL; /* each turn is its first */
    words = tool_command(&one, &choice);
    str_list_free(one.argv);
    if (adapter)
        *adapter = f->reads ? f->reads : t->adapter;
    return words;
}
