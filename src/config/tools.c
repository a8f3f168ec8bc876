/* The tool registry: the table, and what tools.conf makes of it. */
#include <cct/config/ini.h>
#include <cct/config/tools.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FILE_BYTES (1u << 20)

/* --- the table ------------------------------------------------------------------ */

static const struct {
    unsigned bit;
    const char *name, *env[2];
} providers[] = {
    {TOOL_ANTHROPIC, "anthropic", {"ANTHROPIC_API_KEY", NULL}},
    {TOOL_ANTHROPIC_TOKEN, "anthropic_token", {"CLAUDE_CODE_OAUTH_TOKEN", NULL}},
    {TOOL_OPENAI, "openai", {"OPENAI_API_KEY", "CODEX_API_KEY"}},
    {TOOL_OPENROUTER, "openrouter", {"OPENROUTER_API_KEY", NULL}},
    {TOOL_GITHUB, "github", {"GITHUB_TOKEN", "GH_TOKEN"}},
};

static const struct {
    const char *name;
    enum tool_mode mode;
} adapters[] = {{"claude", TOOL_PERSISTENT}, {"shell", TOOL_PERSISTENT}};

/* claude without questions is right because the sandbox is the border; IS_SANDBOX
 * lets it do so as root as well. */
#define CLAUDE                                                                    \
    "claude -p --input-format stream-json --output-format stream-json --verbose " \
    "--include-partial-messages --replay-user-messages --dangerously-skip-permissions"

static const struct {
    const char *name, *label, *adapter, *template_id, *command;
    const char *env[8];
    unsigned needs;
    bool local_only;
} builtin[] = {
    {"claude",
     "Claude Code",
     "claude",
     "claude",
     CLAUDE,
     {"IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
      "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
      "CLAUDE_CODE_MAX_RETRIES=3"},
     TOOL_ANTHROPIC | TOOL_ANTHROPIC_TOKEN,
     false},
    {"shell", "Shell", "shell", "base", "sh", {NULL}, 0, false},
    {"demo", "Demo agent", "claude", "demo", "demo-agent", {NULL}, 0, true},
};

struct tools {
    ARR(struct tool *) all;
};

const char *tool_provider_name(unsigned bit)
{
    for (size_t i = 0; i < COUNT(providers); i++)
        if (providers[i].bit == bit)
            return providers[i].name;
    return NULL;
}

unsigned tool_provider_bit(const char *name)
{
    for (size_t i = 0; i < COUNT(providers); i++)
        if (str_eq(providers[i].name, name))
            return providers[i].bit;
    return 0;
}

const char *tool_provider_env(unsigned bit, size_t n)
{
    for (size_t i = 0; i < COUNT(providers); i++)
        if (providers[i].bit == bit)
            return n < 2 ? providers[i].env[n] : NULL;
    return NULL;
}

/* --- words ------------------------------------------------------------------------ */

void tool_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static size_t words_count(char *const *words)
{
    size_t n = 0;

    while (words && words[n])
        n++;
    return n;
}

/* Takes the word. */
static char **words_add(char **words, char *word)
{
    size_t n = words_count(words);

    words = xrealloc(words, (n + 2) * sizeof(*words));
    words[n] = word;
    words[n + 1] = NULL;
    return words;
}

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
            err_set(e, ERR_INVALID, "the command \"%.80s\" has an open quote", command);
            buf_release(&b);
            tool_words_free(words);
            return NULL;
        }
        words = words_add(words, buf_detach(&b, NULL));
    }
    if (!words)
        err_set(e, ERR_INVALID, "the command is empty");
    return words;
}

/* --- tools ------------------------------------------------------------------------- */

static void tool_free(struct tool *t)
{
    if (!t)
        return;
    free(t->name);
    free(t->label);
    free(t->adapter);
    free(t->template_id);
    tool_words_free(t->argv);
    tool_words_free(t->env);
    tool_words_free(t->ask_argv);
    free(t->model_flag);
    free(t->model);
    free(t->prompt_flag);
    free(t->prompt_file);
    free(t->skills_dir);
    free(t);
}

static struct tool *tool_new(const char *name)
{
    struct tool *t = xcalloc(1, sizeof(*t));

    t->name = xstrdup(name);
    t->env = xcalloc(1, sizeof(*t->env));
    return t;
}

struct tools *tools_new(void)
{
    struct tools *all = xcalloc(1, sizeof(*all));

    for (size_t i = 0; i < COUNT(builtin); i++) {
        struct tool *t = tool_new(builtin[i].name);

        t->label = xstrdup(builtin[i].label);
        t->adapter = xstrdup(builtin[i].adapter);
        t->template_id = xstrdup(builtin[i].template_id);
        t->argv = tool_words(builtin[i].command, NULL);
        for (size_t k = 0; k < COUNT(builtin[i].env) && builtin[i].env[k]; k++)
            t->env = words_add(t->env, xstrdup(builtin[i].env[k]));
        t->needs = builtin[i].needs;
        t->local_only = builtin[i].local_only;
        t->mode = TOOL_PERSISTENT;
        *ARR_PUSH(&all->all) = t;
    }
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

/* --- tools.conf ---------------------------------------------------------------------- */

struct load {
    struct tools *t;
    struct tool *cur; /* tool of the current section, NULL = section is left out */
    const char *path;
    void (*say)(void *ctx, const char *message);
    void *ctx;
};

static void say(struct load *l, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct load *l, int line, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    buf_adds(&b, l->path);
    if (line)
        buf_addf(&b, ":%d", line);
    buf_adds(&b, ": ");
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    l->say(l->ctx, buf_str(&b));
    buf_release(&b);
}

/* Unknown `word`: named with the nearest one that is known. */
static void say_unknown(struct load *l, int line, const char *what, const char *word,
                        const char *const *known, size_t n)
{
    int near = str_nearest(word, known, n);

    if (near >= 0)
        say(l, line, "unknown %s \"%.60s\", did you mean \"%s\"?", what, word, known[near]);
    else
        say(l, line, "unknown %s \"%.60s\"", what, word);
}

static void set_text(char **field, const char *value)
{
    free(*field);
    *field = xstrdup(value);
}

static void set_command(struct load *l, const char *value, int line)
{
    struct err e = {0};
    char **words = tool_words(value, &e);

    if (!words) {
        say(l, line, "%s", e.text);
        return;
    }
    tool_words_free(l->cur->argv);
    l->cur->argv = words;
}

static void set_timeout(struct load *l, const char *value, int line)
{
    int64_t s;

    if (str_to_seconds(value, &s) && s > 0 && s <= LIM_TIMEOUT_MAX_S)
        l->cur->timeout_s = (int)s;
    else
        say(l, line, "timeout \"%.60s\" is no time like 90, 15m or 1h30m up to 24h", value);
}

static void set_needs(struct load *l, const char *value, int line)
{
    const char *known[COUNT(providers) + 1];
    char **words = str_eq(value, "") ? NULL : tool_words(value, NULL);
    unsigned needs = 0;

    for (size_t i = 0; i < COUNT(providers); i++)
        known[i] = providers[i].name;
    known[COUNT(providers)] = "none";
    for (size_t i = 0; words && words[i]; i++) {
        unsigned bit = tool_provider_bit(words[i]);

        if (!bit && !str_eq(words[i], "none"))
            say_unknown(l, line, "provider", words[i], known, COUNT(known));
        needs |= bit;
    }
    tool_words_free(words);
    l->cur->needs = needs;
}

static void set_env(struct load *l, const char *name, const char *value, int line)
{
    size_t n = strlen(name);

    if (!n ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != n ||
        (*name >= '0' && *name <= '9')) {
        say(l, line, "\"%.60s\" is no name of an environment variable", name);
        return;
    }
    for (size_t i = 0; l->cur->env[i]; i++) {
        if (strncmp(l->cur->env[i], name, n) != 0 || l->cur->env[i][n] != '=')
            continue;
        free(l->cur->env[i]);
        l->cur->env[i] = xasprintf("%s=%s", name, value);
        return;
    }
    l->cur->env = words_add(l->cur->env, xasprintf("%s=%s", name, value));
}

static void on_key(struct load *l, const char *key, const char *value, int line)
{
    static const char *const keys[] = {"adapter", "template", "command", "timeout",
                                       "needs",   "label",    "env.NAME"};
    struct tool *t = l->cur;

    if (str_starts(key, "env."))
        set_env(l, key + 4, value, line);
    else if (str_eq(key, "adapter"))
        set_text(&t->adapter, value);
    else if (str_eq(key, "template"))
        set_text(&t->template_id, value);
    else if (str_eq(key, "label"))
        set_text(&t->label, value);
    else if (str_eq(key, "command"))
        set_command(l, value, line);
    else if (str_eq(key, "timeout"))
        set_timeout(l, value, line);
    else if (str_eq(key, "needs"))
        set_needs(l, value, line);
    else
        say_unknown(l, line, "key", key, keys, COUNT(keys));
}

static void on_section(struct load *l, const char *section, int line)
{
    const char *name = section + strlen("tool");
    size_t n;

    l->cur = NULL;
    name += str_starts(section, "tool ") ? strspn(name, " \t") : 0;
    n = strlen(name);
    if (!str_starts(section, "tool ") || !n) {
        say(l, line, "unknown section \"%.60s\", expected \"tool NAME\"", section);
        return;
    }
    if (n > 32 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n) {
        say(l, line, "\"%.60s\" is no name of a tool: a-z, 0-9, - and _, at most 32", name);
        return;
    }
    l->cur = (struct tool *)tools_find(l->t, name);
    if (l->cur)
        return;
    l->cur = tool_new(name);
    *ARR_PUSH(&l->t->all) = l->cur;
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
        say(l, line, "\"%.60s\" stands before the first [tool NAME]", key);
}

static void on_bad_line(void *ctx, const char *message)
{
    struct load *l = ctx;

    l->say(l->ctx, message);
}

/* Whether a tool can work, after the file; fills what has a default. */
static bool tool_complete(struct load *l, struct tool *t)
{
    const char *known[COUNT(adapters)];
    size_t i;

    for (i = 0; i < COUNT(adapters); i++)
        known[i] = adapters[i].name;
    for (i = 0; i < COUNT(adapters) && !str_eq(t->adapter, adapters[i].name);)
        i++;
    if (i == COUNT(adapters)) {
        int near = t->adapter ? str_nearest(t->adapter, known, COUNT(known)) : -1;

        say(l, 0, "tool \"%s\" is left out: adapter \"%s\" is not known, did you mean \"%s\"?",
            t->name, t->adapter ? t->adapter : "", known[near >= 0 ? near : 0]);
        return false;
    }
    t->mode = adapters[i].mode;
    if (!t->argv) {
        say(l, 0, "tool \"%s\" is left out: it has no command", t->name);
        return false;
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
    struct load l = {t, NULL, path, say_fn, ctx};
    struct ini_reader r = {on_line, on_bad_line, &l};
    struct err why = {0};
    size_t len;
    char *text = fs_read(path, FILE_BYTES, false, &len, &why);

    if (!text) {
        if (why.code == ERR_NOTFOUND || why.sys == ENOENT)
            return 0;
        return err_set(e, why.code, "%s", why.text);
    }
    ini_parse(text, len, path, &r);
    free(text);
    for (size_t i = 0; i < t->all.n;) {
        if (tool_complete(&l, t->all.v[i])) {
            i++;
            continue;
        }
        tool_free(t->all.v[i]);
        ARR_REMOVE(&t->all, i);
    }
    return 0;
}
