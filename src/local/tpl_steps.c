/* What a step means: the key of its layer, its line in the log, the command that does
 * it, and what the next step finds. */
#include "envd.h"
#include <cJSON.h>
#include <cct/local/tpl_plan.h>
#include <cct/secrets/digest.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

#define HOME "/home/user"
#define TEXT_MAX 300u

void tpl_ctx_init(struct tpl_ctx *c, const char *base_key)
{
    memset(c, 0, sizeof(*c));
    c->env = cJSON_CreateObject();
    c->workdir = xstrdup(HOME);
    c->user = xstrdup("user");
    str_copy(c->key, sizeof(c->key), base_key);
}

void tpl_ctx_release(struct tpl_ctx *c)
{
    json_free(c->env);
    free(c->workdir);
    free(c->user);
    memset(c, 0, sizeof(*c));
}

static const char *arg(const struct tpl_step *s, size_t i)
{
    return i < s->n_args ? s->args[i] : "";
}

/* Dockerfiles name accounts by number too, and with a group. */
static const char *account(const char *s)
{
    if (strcmp(s, "0") == 0 || str_starts(s, "root:") || str_starts(s, "0:"))
        return "root";
    if (strcmp(s, "1000") == 0 || str_starts(s, "user:") || str_starts(s, "1000:"))
        return "user";
    return s;
}

/* What a value has before any step says otherwise; PATH as the init sets it. */
static const char *variable(const struct tpl_ctx *c, const char *name)
{
    const char *v = json_str(c->env, name, NULL);
    if (v)
        return v;
    if (strcmp(name, "PATH") == 0)
        return ENVD_PATH;
    return strcmp(name, "HOME") == 0 ? HOME : "";
}

static size_t name_len(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t n = strspn(s, letters);
    return n == 0 ? 0
                  : n + strspn(s + n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                      "0123456789");
}

/* Quotes of a value that the shell of E2B's builder, which has it between quotes itself,
 * takes off; one that nothing closes stays. */
static bool drops_quotes(const char *s)
{
    size_t n = 0;
    for (; *s; s++) {
        if (*s == '\\' && s[1])
            s++;
        else
            n += *s == '"';
    }
    return n % 2 == 0;
}

/* escapes: characters that a backslash in front makes plain. */
static char *expand(const struct tpl_ctx *c, const char *s, const char *escapes, bool unquote)
{
    struct buf b = BUF_INIT_MAX(TPL_ARG_MAX);
    for (size_t n = 1; *s; s += n) {
        bool braced = s[0] == '$' && s[1] == '{';
        const char *name = s + (braced ? 2 : 1);
        size_t len = s[0] == '$' ? name_len(name) : 0;
        if (s[0] == '\\' && s[1] && strchr(escapes, s[1])) {
            buf_addc(&b, s[1]);
            n = 2;
        } else if (*s == '"' && unquote) {
            n = 1;
        } else if (len > 0 && (!braced || name[len] == '}')) {
            char *copy = xstrndup(name, len);
            buf_adds(&b, variable(c, copy));
            free(copy);
            n = (size_t)(name - s) + len + braced;
        } else {
            buf_addc(&b, *s);
            n = 1;
        }
    }
    return buf_detach(&b, NULL);
}

char *tpl_expand(const struct tpl_ctx *c, const char *s)
{
    return expand(c, s, "$", false);
}

/* A relative folder counts from the one in effect. New string. */
static char *absolute(const struct tpl_ctx *c, const char *given)
{
    char *expanded = tpl_expand(c, given);
    const char *path = expanded, *workdir = c->workdir;
    while (str_starts(path, "./"))
        path += 2;
    if (strcmp(path, ".") == 0)
        path = "";
    const char *slash = str_ends(workdir, "/") ? "" : "/";
    char *out = *path == '/' ? xstrdup(path)
                : *path      ? xasprintf("%s%s%s", workdir, slash, path)
                             : xstrdup(workdir);
    free(expanded);
    return out;
}

/* --- keys ------------------------------------------------------------------- */

/* With its length in front no field can pass for two. */
static void add_field(struct buf *b, const char *s)
{
    buf_addf(b, "%zu:", strlen(s));
    buf_adds(b, s);
}

void tpl_step_key(char *key, const struct tpl_ctx *c, const struct tpl_step *s)
{
    struct buf b = BUF_INIT;
    unsigned char sum[32];
    add_field(&b, c->key);
    buf_addf(&b, "%d,%zu,", (int)s->type, s->n_args);
    for (size_t i = 0; i < s->n_args; i++)
        add_field(&b, s->args[i]);
    add_field(&b, s->hash);
    add_field(&b, c->workdir);
    add_field(&b, c->user);
    for (const struct cJSON *v = json_first(c->env); v; v = json_next(v)) {
        add_field(&b, json_name(v));
        add_field(&b, json_str_of(v));
    }
    digest_sha256(sum, b.p, b.len);
    hex_encode(key, sum, sizeof(sum));
    explicit_bzero(b.p, b.len); /* variables may be secrets */
    buf_release(&b);
}

bool tpl_step_makes_layer(const struct tpl_ctx *c, const struct tpl_step *s)
{
    if (s->type == TPL_RUN || s->type == TPL_COPY)
        return true;
    if (s->type != TPL_WORKDIR)
        return false;
    char *dir = absolute(c, s->args[0]);
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        dir[--n] = '\0';
    bool is_there = strcmp(dir, "/") == 0 || strcmp(dir, HOME) == 0 ||
                    strcmp(dir, c->workdir) == 0 || strcmp(dir, "/tmp") == 0;
    free(dir);
    return !is_there;
}

static size_t env_cost(const char *name, const char *value)
{
    return strlen(name) + strlen(value) + 64; /* what it takes in memory, too */
}

void tpl_ctx_take_env(struct tpl_ctx *c, struct cJSON *take)
{
    json_free(c->env);
    c->env = take;
    c->env_bytes = 0;
    for (const struct cJSON *v = json_first(take); v; v = json_next(v))
        c->env_bytes += env_cost(json_name(v), json_str_of(v));
}

static int set_variable(struct tpl_ctx *c, const char *name, const char *value, struct err *e)
{
    const char *old = json_str(c->env, name, NULL);
    size_t bytes = c->env_bytes - (old ? env_cost(name, old) : 0) + env_cost(name, value);
    if (bytes > TPL_ENV_MAX)
        return err_set(e, ERR_LIMIT, "the variables of a template have at most %u KiB",
                       TPL_ENV_MAX >> 10);
    cJSON_DeleteItemFromObjectCaseSensitive(c->env, name);
    cJSON_AddStringToObject(c->env, name, value);
    c->env_bytes = bytes;
    return 0;
}

/* All values of a step see the variables as they were before it. */
static int set_variables(struct tpl_ctx *c, const struct tpl_step *s, struct err *e)
{
    size_t n = s->n_args / 2;
    char **values = xcalloc(n + 1, sizeof(values[0]));
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        values[i] = expand(c, s->args[2 * i + 1], "$\"\\`", drops_quotes(s->args[2 * i + 1]));
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = set_variable(c, s->args[2 * i], values[i], e);
    for (size_t i = 0; i < n; i++)
        free(values[i]);
    free(values);
    return rc;
}

int tpl_step_apply(struct tpl_ctx *c, const struct tpl_step *s, struct err *e)
{
    int rc = 0;
    switch (s->type) {
    case TPL_ENV:
        rc = set_variables(c, s, e);
        break;
    case TPL_WORKDIR: {
        char *dir = absolute(c, s->args[0]);
        free(c->workdir);
        c->workdir = dir;
        break;
    }
    case TPL_USER:
        free(c->user);
        c->user = xstrdup(account(s->args[0]));
        break;
    default:
        break;
    }
    return rc;
}

/* --- text ------------------------------------------------------------------- */

void tpl_step_text(struct buf *b, const struct tpl_step *s)
{
    static const char *const names[] = {"RUN", "COPY", "ENV", "WORKDIR", "USER"};
    size_t start = b->len;
    buf_adds(b, names[s->type]);
    for (size_t i = 0; i < s->n_args; i++) {
        bool is_value = s->type == TPL_ENV && i % 2 == 1;
        if (s->args[i][0] || is_value)
            buf_addf(b, "%s%.*s", is_value ? "=" : " ", (int)TEXT_MAX, s->args[i]);
    }
    if (b->len - start > TEXT_MAX) {
        size_t end = start + TEXT_MAX;
        while (end > start && ((unsigned char)b->p[end] & 0xc0) == 0x80)
            end--; /* not inside a character */
        buf_truncate(b, end);
        buf_adds(b, "...");
    }
    for (size_t i = start; i < b->len; i++)
        if (b->p[i] == '\n' || b->p[i] == '\r')
            b->p[i] = ' ';
}

/* --- commands --------------------------------------------------------------- */

/* All accounts of a sandbox are one to the file system, so files need no hand-over. */
static const char copy_command[] =
    "set -e\n"
    "shopt -s nullglob dotglob globstar\n"
    "trap 'cd / && rm -rf /" TPL_COPY_DIR "' EXIT\n"
    "cd /" TPL_COPY_DIR "/tree\n"
    "tar --no-same-owner -xpf ../files.tar\n"
    "IFS=\n" /* the pattern is expanded as one word, and nothing else in it */
    "if [ -e \"./$CC_SRC\" ] || [ -L \"./$CC_SRC\" ]; then found=(\"./$CC_SRC\")\n"
    "else found=(./$CC_SRC); fi\n"
    /* what is no pattern is left as it is, there or not */
    "first=${found[0]-}\n"
    "if [ ! -e \"$first\" ] && [ ! -L \"$first\" ]; then\n"
    "    printf \"COPY: '%s' is not in the uploaded files\\n\" \"$CC_SRC\" >&2; exit 1; fi\n"
    "if [ -n \"$CC_MODE\" ]; then\n"
    /* folders must stay passable for those who may read them */
    "    folder=$(printf %o $(( 8#$CC_MODE | ((8#$CC_MODE & 0444) >> 2) )))\n"
    "    find . -mindepth 1 -type f -exec chmod \"$CC_MODE\" {} +\n"
    "    find . -depth -mindepth 1 -type d -exec chmod \"$folder\" {} +; fi\n"
    "case $CC_DEST in /*) to=$CC_DEST ;; *) to=$CC_WORKDIR/$CC_DEST ;; esac\n"
    "into=no\n"
    "case $CC_DEST in */|.|*/.) into=yes ;; esac\n"
    "if [ -d \"$to\" ] || [ ${#found[@]} -gt 1 ]; then into=yes; fi\n"
    "for one in \"${found[@]}\"; do\n"
    "    if [ -d \"$one\" ] && [ ! -L \"$one\" ]; then\n"
    "        mkdir -p -- \"$to\"\n"
    "        find \"$one\" -mindepth 1 -maxdepth 1 -exec cp -a -t \"$to\" -- {} +\n"
    "    elif [ $into = yes ]; then mkdir -p -- \"$to\"; cp -a -t \"$to\" -- \"$one\"\n"
    "    else mkdir -p -- \"$(dirname -- \"$to\")\"; cp -aT -- \"$one\" \"$to\"; fi\n"
    "done\n";

static const char workdir_command[] = "mkdir -p -- \"$CC_DEST\"";

static void set(struct cJSON *env, const char *name, const char *value)
{
    cJSON_AddStringToObject(env, name, value);
}

void tpl_step_run(struct tpl_run *r, const struct tpl_ctx *c, const struct tpl_step *s)
{
    memset(r, 0, sizeof(*r));
    r->env = s->type == TPL_RUN ? cJSON_Duplicate(c->env, true) : cJSON_CreateObject();
    if (s->type == TPL_RUN) {
        r->command = s->args[0];
        r->user = *arg(s, 1) ? account(s->args[1]) : c->user;
        r->cwd = c->workdir;
        return;
    }
    r->user = "user";
    r->cwd = "/";
    r->command = s->type == TPL_COPY ? copy_command : workdir_command;
    if (s->type == TPL_COPY) {
        set(r->env, "CC_SRC", s->args[0]);
        char *dest = tpl_expand(c, s->args[1]);
        set(r->env, "CC_DEST", dest);
        free(dest);
        set(r->env, "CC_MODE", arg(s, 3));
        set(r->env, "CC_WORKDIR", c->workdir);
    } else {
        char *dir = absolute(c, s->args[0]);
        set(r->env, "CC_DEST", dir);
        free(dir);
    }
}

/* Sandboxes have two accounts; another one would fail much later, and oddly. */
static bool is_account(const char *s)
{
    char name[16];
    size_t len = strcspn(s, ":"); /* a group may follow */
    if (len >= sizeof(name))
        return false;
    memcpy(name, s, len);
    name[len] = '\0';
    s = account(name);
    return strcmp(s, "user") == 0 || strcmp(s, "root") == 0;
}

bool tpl_step_user_ok(const struct tpl_step *s, struct err *e)
{
    const char *name = s->type == TPL_USER   ? arg(s, 0)
                       : s->type == TPL_RUN  ? arg(s, 1)
                       : s->type == TPL_COPY ? arg(s, 2)
                                             : "";
    if (!*name || is_account(name))
        return true;
    err_set(e, ERR_INVALID,
            "user '%.40s' is not there: sandboxes of the local provider have the users 'user' "
            "and 'root'",
            name);
    return false;
}
