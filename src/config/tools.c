/* The tool registry: words, providers, and tools made from the table. */
#include "tools_priv.h"

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

const char *tool_provider_name(unsigned bit)
{
    for (size_t i = 0; i < tool_n_providers; i++)
        if (tool_providers[i].bit == bit)
            return tool_providers[i].name;
    return NULL;
}

unsigned tool_provider_bit(const char *name)
{
    for (size_t i = 0; i < tool_n_providers; i++)
        if (str_eq(tool_providers[i].name, name))
            return tool_providers[i].bit;
    return 0;
}

size_t tool_provider_names(unsigned bits, const char *names[TOOL_NAMES])
{
    size_t n = 0;

    for (unsigned bit = 1; bit && bit <= bits && n < TOOL_NAMES - 1; bit <<= 1)
        if ((bits & bit) && tool_provider_name(bit))
            names[n++] = tool_provider_name(bit);
    names[n] = NULL;
    return n;
}

const char *tool_provider_env(unsigned bit, size_t n)
{
    for (size_t i = 0; i < tool_n_providers; i++)
        if (tool_providers[i].bit == bit)
            return n < 2 ? tool_providers[i].env[n] : NULL;
    return NULL;
}

/* --- words ------------------------------------------------------------------------ */

/* One word from *s on; false when a quote is open at the end. */
static bool read_word(const char **s, struct buf *out)
{
    const char *p = *s;
    char quote = 0;

    for (; *p && (quote || !strchr(" \t\n", *p)); p++) {
        if (quote ? *p == quote : *p == '\'' || *p == '"')
            quote = quote ? 0 : *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            buf_addc(out, *++p);
        else
            buf_addc(out, *p);
    }
    *s = p;
    return !quote;
}

char **tool_words(const char *command, struct err *e)
{
    char **words = NULL;
    struct buf b = BUF_INIT;

    for (const char *p = command + strspn(command, " \t\n"); *p; p += strspn(p, " \t\n")) {
        if (!read_word(&p, &b)) {
            err_set(e, ERR_INVALID, "the command has an open quote");
            buf_release(&b);
            str_list_free(words);
            return NULL;
        }
        words = str_list_add(words, buf_detach(&b, NULL));
    }
    if (!words)
        err_set(e, ERR_INVALID, "the command is empty");
    return words;
}

/* --- tools ------------------------------------------------------------------------- */

void tool_free(struct tool *t)
{
    if (!t)
        return;
    free(t->name);
    free(t->label);
    free(t->adapter);
    free(t->template_id);
    str_list_free(t->argv);
    str_list_free(t->env);
    str_list_free(t->needs_env);
    str_list_free(t->ask_argv);
    str_list_free(t->resume);
    str_list_free(t->models);
    free(t->model_flag);
    free(t->model);
    free(t->prompt_flag);
    free(t->prompt_file);
    free(t->skills_dir);
    free(t);
}

struct tool *tool_new(const char *name)
{
    struct tool *t = xcalloc(1, sizeof(*t));

    t->name = xstrdup(name);
    t->env = xcalloc(1, sizeof(*t->env));
    return t;
}

static struct tool *from_row(const struct tool_row *r)
{
    struct tool *t = tool_new(r->name);

    t->label = xstrdup(r->label);
    t->adapter = xstrdup(r->adapter);
    t->template_id = xstrdup(r->template_id);
    t->argv = tool_words(r->command, NULL);
    t->ask_argv = r->ask_command ? tool_words(r->ask_command, NULL) : NULL;
    for (size_t k = 0; k < sizeof(r->env) / sizeof(r->env[0]) && r->env[k]; k++)
        t->env = str_list_add(t->env, xstrdup(r->env[k]));
    t->needs = r->needs;
    t->needs_env = r->needs_env ? tool_words(r->needs_env, NULL) : NULL;
    t->resume = r->resume ? tool_words(r->resume, NULL) : NULL;
    t->model_flag = r->model_flag ? xstrdup(r->model_flag) : NULL;
    t->model = r->model ? xstrdup(r->model) : NULL;
    t->models = r->models ? tool_words(r->models, NULL) : NULL;
    t->prompt_flag = r->prompt_flag ? xstrdup(r->prompt_flag) : NULL;
    t->prompt_file = r->prompt_file ? xstrdup(r->prompt_file) : NULL;
    t->skills_dir = r->skills_dir ? xstrdup(r->skills_dir) : NULL;
    t->qualified = r->qualified;
    t->local_only = r->local_only;
    for (size_t i = 0; i < tool_n_adapters; i++)
        if (str_eq(r->adapter, tool_adapters[i].name))
            t->mode = tool_adapters[i].mode;
    return t;
}

struct tools *tools_new(void)
{
    struct tools *all = xcalloc(1, sizeof(*all));

    for (size_t i = 0; i < tool_n_rows; i++)
        *ARR_PUSH(&all->all) = from_row(&tool_rows[i]);
    return all;
}

void tools_free(struct tools *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->all.n; i++)
        tool_free(t->all.v[i]);
    ARR_RELEASE(&t->all);
    free(t);
}

const struct tool *tools_at(const struct tools *t, size_t i)
{
    return i < t->all.n ? t->all.v[i] : NULL;
}

const struct tool *tools_find(const struct tools *t, const char *name)
{
    for (size_t i = 0; i < t->all.n; i++)
        if (str_eq(t->all.v[i]->name, name))
            return t->all.v[i];
    return NULL;
}

/* --- starting ---------------------------------------------------------------------- */

/* The provider that the model names, when the tool takes its key; or 0. */
static unsigned named_by(const struct tool *t, const char *model)
{
    const char *slash;

    if (!model)
        model = t->model;
    slash = t->qualified && model ? strchr(model, '/') : NULL;
    for (size_t i = 0; slash && i < tool_n_providers; i++) {
        size_t n = strlen(tool_providers[i].name);

        if ((size_t)(slash - model) == n && !strncmp(model, tool_providers[i].name, n) &&
            (t->needs & tool_providers[i].bit))
            return tool_providers[i].bit;
    }
    return 0;
}

unsigned tool_needs(const struct tool *t, const char *model)
{
    unsigned one = named_by(t, model);

    return one ? one : t->needs;
}

char *const *tool_needs_env(const struct tool *t, const char *model)
{
    return named_by(t, model) ? NULL : t->needs_env;
}

static char **add(char **words, const char *word)
{
    return word ? str_list_add(words, xstrdup(word)) : words;
}

char **tool_command(const struct tool *t, const struct tool_choice *c)
{
    char *const *from = c->ask && t->ask_argv ? t->ask_argv : t->argv;
    const char *model = c->model ? c->model : t->model;
    size_t n = str_list_count(from);
    bool dash = n && str_eq(from[n - 1], "-"), resumes = c->resume_id && t->resume;
    const char *after = resumes && t->resume[1] ? t->resume[0] : NULL;
    char **words = xcalloc(1, sizeof(*words));

    for (size_t i = 0; i < (dash ? n - 1 : n); i++) {
        words = add(words, from[i]);
        if (after && str_eq(from[i], after)) {
            words = add(words, t->resume[1]);
            after = NULL;
        }
    }
    if (model && t->model_flag)
        words = add(add(words, t->model_flag), model);
    if (c->prompt_path && t->prompt_flag)
        words = add(add(words, t->prompt_flag), c->prompt_path);
    if (resumes && !t->resume[1])
        words = add(words, t->resume[0]);
    if (resumes)
        words = add(words, c->resume_id);
    return dash ? add(words, "-") : words;
}
