/* What tools.conf makes of the registry. */
#include "conf_say.h"
#include "tools_priv.h"

#include <cct/util/buf.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_NAMES 16 /* of adapters or providers, and one more */
#define MAX_KEYS 32

struct place { /* where a tool's section begins */
    const struct tool *t;
    int line;
};
struct load {
    struct tools *t;
    struct tool *cur; /* tool of the current section, NULL = section is left out */
    bool resume_said; /* in this section */
    ARR(struct place) places;
    struct conf_say out;
};

static void set_words(struct load *l, char ***field, const char *value, int line)
{
    struct err e = {0};
    char **words = tool_words(value, &e);

    if (!words) {
        conf_say(&l->out, line, "%s", e.text);
        return;
    }
    str_list_free(*field);
    *field = words;
}

static void set_flag(struct load *l, bool *field, const char *key, const char *value,
                     const char *yes, const char *no, int line)
{
    if (str_eq(value, yes) || str_eq(value, no))
        *field = str_eq(value, yes);
    else
        conf_say(&l->out, line, "%s: expected %s or %s", key, yes, no);
}

static void set_timeout(struct load *l, const char *value, int line)
{
    int64_t s;

    if (str_to_seconds(value, &s) && s > 0 && s <= LIM_TIMEOUT_MAX_S)
        l->cur->timeout_s = (int)s;
    else
        conf_say(&l->out, line, "timeout: expected a time like 90, 15m or 1h30m up to 24h");
}

static void set_needs(struct load *l, const char *value, int line)
{
    const char *known[MAX_NAMES];
    char **words = str_eq(value, "") ? NULL : tool_words(value, NULL);
    unsigned needs = 0;

    for (size_t i = 0; i < tool_n_providers; i++)
        known[i] = tool_providers[i].name;
    known[tool_n_providers] = "none";
    for (size_t i = 0; words && words[i]; i++) {
        unsigned bit = tool_provider_bit(words[i]);

        if (!bit && !str_eq(words[i], "none"))
            conf_say_unknown(&l->out, line, "provider", words[i], known, tool_n_providers + 1);
        needs |= bit;
    }
    str_list_free(words);
    l->cur->needs = needs;
}

static bool variable_ok(struct load *l, const char *name, int line)
{
    size_t n = strlen(name);

    if (n &&
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == n &&
        !(*name >= '0' && *name <= '9'))
        return true;
    conf_say(&l->out, line, "\"%s\" is no name of an environment variable", str_shown(name));
    return false;
}

static const char *provider_of(const char *variable)
{
    for (size_t i = 0; i < tool_n_providers; i++)
        for (size_t k = 0; k < COUNT(tool_providers[i].env); k++)
            if (str_eq(tool_providers[i].env[k], variable))
                return tool_providers[i].name;
    return NULL;
}

/* Such a variable is taken out of our own environment, so it must be none that we, or the
 * programs that we start, live by. */
static bool holds_key(struct load *l, const char *name, int line)
{
    static const char *const ours[] = {"E2B_", "CC_TUI_", "XDG_", "LC_", "LD_"};
    const char *provider = provider_of(name);
    bool good = strchr(name, '_') != NULL;

    for (size_t i = 0; i < COUNT(ours); i++)
        good &= !str_starts(name, ours[i]);
    if (!variable_ok(l, name, line))
        return false;
    if (provider)
        conf_say(&l->out, line, "%s holds the key of %s: write needs = %s", name, provider, provider);
    else if (!good)
        conf_say(&l->out, line, "\"%s\" is no variable that a tool's key is in", str_shown(name));
    return good && !provider;
}

static void set_needs_env(struct load *l, const char *value, int line)
{
    char **words = str_eq(value, "") || str_eq(value, "none") ? NULL : tool_words(value, NULL);
    char **good = NULL;

    for (size_t i = 0; words && words[i]; i++)
        if (holds_key(l, words[i], line))
            good = str_list_add(good, xstrdup(words[i]));
    str_list_free(words);
    str_list_free(l->cur->needs_env);
    l->cur->needs_env = good;
}

static void set_env(struct load *l, const char *name, const char *value, int line)
{
    size_t n = strlen(name);

    if (!variable_ok(l, name, line))
        return;
    for (size_t i = 0; l->cur->env[i]; i++) {
        if (strncmp(l->cur->env[i], name, n) != 0 || l->cur->env[i][n] != '=')
            continue;
        free(l->cur->env[i]);
        l->cur->env[i] = xasprintf("%s=%s", name, value);
        return;
    }
    l->cur->env = str_list_add(l->cur->env, xasprintf("%s=%s", name, value));
}

/* Another program resumes in another way. */
static void forget_resume(struct load *l, const char *key)
{
    if (str_eq(key, "resume"))
        l->resume_said = true;
    if (!str_eq(key, "command") || l->resume_said)
        return;
    str_list_free(l->cur->resume);
    l->cur->resume = NULL;
}

/* Keys that are text or words and nothing else. */
static bool plain_key(struct load *l, const char *key, const char *value, int line)
{
    struct tool *t = l->cur;
    const struct {
        const char *key;
        char **text, ***words;
    } map[] = {
        {"adapter", &t->adapter, NULL},         {"template", &t->template_id, NULL},
        {"label", &t->label, NULL},             {"model", &t->model, NULL},
        {"model_flag", &t->model_flag, NULL},   {"prompt_flag", &t->prompt_flag, NULL},
        {"prompt_file", &t->prompt_file, NULL}, {"skills", &t->skills_dir, NULL},
        {"command", NULL, &t->argv},            {"ask_command", NULL, &t->ask_argv},
        {"resume", NULL, &t->resume},           {"models", NULL, &t->models},
    };

    for (size_t i = 0; i < COUNT(map); i++) {
        if (!str_eq(key, map[i].key))
            continue;
        forget_resume(l, key);
        if (map[i].text)
            str_set(map[i].text, value);
        else
            set_words(l, map[i].words, value, line);
        return true;
    }
    return false;
}

static void on_key(struct load *l, const char *key, const char *value, int line)
{
    const char *keys[MAX_KEYS];
    size_t n = 0;
    struct tool *t = l->cur;

    if (str_starts(key, "env."))
        set_env(l, key + 4, value, line);
    else if (str_eq(key, "timeout"))
        set_timeout(l, value, line);
    else if (str_eq(key, "needs"))
        set_needs(l, value, line);
    else if (str_eq(key, "needs_env"))
        set_needs_env(l, value, line);
    else if (str_eq(key, "ask"))
        set_flag(l, &t->asks, key, value, "yes", "no", line);
    else if (str_eq(key, "model_names"))
        set_flag(l, &t->qualified, key, value, "qualified", "plain", line);
    else if (!plain_key(l, key, value, line)) {
        while (n < MAX_KEYS && (keys[n] = tools_key(n, NULL)))
            n++;
        conf_say_unknown(&l->out, line, "key", key, keys, n);
    }
}

static void on_section(struct load *l, const char *section, int line)
{
    const char *name = section + strlen("tool");
    size_t n;

    l->cur = NULL;
    l->resume_said = false;
    name += str_starts(section, "tool ") ? strspn(name, " \t") : 0;
    n = strlen(name);
    if (!str_starts(section, "tool ") || !n) {
        conf_say(&l->out, line, "unknown section \"%s\", expected \"tool NAME\"",
                 str_shown(section));
        return;
    }
    if (n > 32 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n) {
        conf_say(&l->out, line, "\"%s\" is no name of a tool: a-z, 0-9, - and _, at most 32",
                 str_shown(name));
        return;
    }
    l->cur = (struct tool *)tools_find(l->t, name);
    if (!l->cur)
        *ARR_PUSH(&l->t->all) = l->cur = tool_new(name);
    *ARR_PUSH(&l->places) = (struct place){l->cur, line};
}

static int line_of(const struct load *l, const struct tool *t)
{
    for (size_t i = 0; i < l->places.n; i++)
        if (l->places.v[i].t == t)
            return l->places.v[i].line;
    return 0;
}

static void on_line(void *ctx, const char *section, const char *key, const char *value,
                    int line)
{
    struct load *l = ctx;

    if (!key)
        on_section(l, section, line);
    else if (l->cur)
        on_key(l, key, value, line);
    else if (!*section)
        conf_say(&l->out, line, "\"%s\" stands before the first [tool NAME]", str_shown(key));
}

/* The same program as a tool of the table, under another name. */
static char **resume_of(const struct tool *t)
{
    const char *slash = strrchr(t->argv[0], '/'), *program = slash ? slash + 1 : t->argv[0];

    for (size_t i = 0; i < tool_n_rows; i++) {
        const struct tool_row *r = &tool_rows[i];
        size_t n = strcspn(r->command, " ");

        if (r->resume && strlen(program) == n && !strncmp(program, r->command, n))
            return tool_words(r->resume, NULL);
    }
    return NULL;
}

static const struct tool_adapter_row *adapter_of(struct load *l, const struct tool *t)
{
    const char *known[MAX_NAMES];
    int near;

    for (size_t i = 0; i < tool_n_adapters; i++) {
        if (str_eq(t->adapter, tool_adapters[i].name))
            return &tool_adapters[i];
        known[i] = tool_adapters[i].name;
    }
    near = t->adapter ? str_nearest(t->adapter, known, tool_n_adapters) : -1;
    conf_say(&l->out, line_of(l, t), "tool \"%s\" is left out: adapter \"%s\" is not known, did you mean \"%s\"?",
        t->name, t->adapter ? str_shown(t->adapter) : "", known[near >= 0 ? near : 0]);
    return NULL;
}

/* Whether a tool can work, after the file; fills what has a default. */
static bool tool_complete(struct load *l, struct tool *t)
{
    const struct tool_adapter_row *a = adapter_of(l, t);

    if (!a)
        return false;
    t->mode = a->mode;
    if (!t->argv) {
        conf_say(&l->out, line_of(l, t), "tool \"%s\" is left out: it has no command", t->name);
        return false;
    }
    if (t->asks && !t->ask_argv) {
        t->asks = false;
        conf_say(&l->out, line_of(l, t), "tool \"%s\" does not ask: it has no ask_command", t->name);
    }
    if (!t->resume)
        t->resume = resume_of(t);
    if (t->resume && t->resume[1] && t->resume[2]) {
        conf_say(&l->out, line_of(l, t), "tool \"%s\" does not resume: its resume has more than two "
                 "words", t->name);
        str_list_free(t->resume);
        t->resume = NULL;
    }
    if (!t->template_id)
        t->template_id = xstrdup("base");
    if (!t->label)
        t->label = xstrdup(t->name);
    return true;
}

int tools_load(struct tools *t, const char *path,
               void (*say_fn)(void *ctx, const char *message), void *ctx, struct err *e)
{
    struct load l = {.t = t, .out = {path, say_fn, ctx}};
    int rc = conf_load(&l.out, on_line, &l, e);

    if (rc) /* no line was read */
        return rc;
    for (size_t i = 0; i < t->all.n;) {
        if (tool_complete(&l, t->all.v[i])) {
            i++;
            continue;
        }
        tool_free(t->all.v[i]);
        ARR_REMOVE(&t->all, i);
    }
    ARR_RELEASE(&l.places);
    return 0;
}
