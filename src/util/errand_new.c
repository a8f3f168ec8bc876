/* Errands as messages: making, words of a command line, freeing. */
#include <cct/util/errand.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static void errand_free(struct msg *m)
{
    struct errand *e = (struct errand *)m;
    str_list_free(e->argv);
    str_list_free(e->env);
    buf_release(&e->input);
    free(e->path);
    free(e);
}

struct errand *errand_new(enum errand_kind kind, uint64_t id)
{
    struct errand *e = xcalloc(1, sizeof(*e));
    msg_init(&e->m, 0, sizeof(*e), errand_free);
    e->kind = kind;
    e->id = id;
    return e;
}

void errand_argv(struct errand *e, const char *const words[])
{
    for (size_t i = 0; words[i]; i++)
        e->argv = str_list_add(e->argv, xstrdup(words[i]));
}

void errand_shell(struct errand *e, const char *command)
{
    errand_argv(e, (const char *const[]){"/bin/sh", "-c", command, NULL});
}

void errand_setenv(struct errand *e, const char *name, const char *value)
{
    e->env = str_list_add(e->env, xasprintf("%s=%s", name, value ? value : ""));
}

bool errand_words(struct errand *e, const char *s)
{
    struct buf word = BUF_INIT;
    bool in = false;
    char quote = 0;
    for (;; s++) {
        bool blank = !quote && (*s == ' ' || *s == '\t' || !*s);
        if (blank && in) {
            e->argv = str_list_add(e->argv, buf_detach(&word, NULL));
            in = false;
        }
        if (!*s)
            break;
        if (blank)
            continue;
        in = true;
        if (quote ? *s == quote : *s == '\'' || *s == '"')
            quote = quote ? 0 : *s;
        else if (*s == '\\' && quote != '\'' && s[1])
            buf_addc(&word, *++s);
        else
            buf_addc(&word, *s);
    }
    buf_release(&word);
    return !quote && e->argv;
}
