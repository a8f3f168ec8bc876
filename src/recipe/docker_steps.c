/* What a Dockerfile's instructions come to, as E2B's SDK has it: first USER root and WORKDIR
 * /, at the end the service's own user and folder unless the file chose others; ARG is an
 * ENV; the last CMD or ENTRYPOINT is the start command.
 *
 * The SDK divides every instruction at its blanks and drops backslashes. Where that would
 * change what the file says, the file counts here:
 *   - quoted and escaped blanks stay in their word (RUN, ENV, ARG, COPY, WORKDIR, USER, CMD)
 *   - backslashes of a command stay
 *   - JSON forms of RUN, COPY, CMD and ENTRYPOINT are the words they list
 *   - COPY --chmod counts; the ARGs in front of FROM are put into it
 *   - ENTRYPOINT and CMD together are one command
 * and what it leaves out without a word is refused or noted. */
#include "recipe_priv.h"

#include <cct/model/env_file.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define READY "sleep 20"

struct work {
    struct recipe *r;
    const char *file;
    char escape;
    const struct kv *args; /* given from outside */
    ARR(struct kv) globals; /* of ARGs in front of FROM; as kv list while k NULL follows */
    ARR(char *) used;       /* names of ARGs that the file has */
    bool has_from, has_user, has_workdir;
    char **entry_words, *entry_text, **cmd_words, *cmd_text;
    int entry_line, cmd_line;
    struct err *e;
};

__attribute__((format(printf, 3, 4))) static int bad(struct work *w, int line, const char *fmt,
                                                     ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    int rc;

    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    rc = err_set(w->e, ERR_INVALID, "%s:%d: %s", w->file, line, buf_str(&b));
    buf_release(&b);
    return rc;
}

/* --- FROM and ARG ------------------------------------------------------------------------ */

/* Value of an ARG from outside, or NULL. */
static const char *given(const struct work *w, const char *name)
{
    return w->args ? kv_get(w->args, name) : NULL;
}

static const char *global(const struct work *w, const char *name)
{
    for (size_t i = w->globals.n; i-- > 0;)
        if (str_eq(w->globals.v[i].k, name))
            return w->globals.v[i].v;
    return NULL;
}

static void keep_global(struct work *w, const char *name, const char *value)
{
    *ARR_PUSH(&w->globals) = (struct kv){xstrdup(name), xstrdup(value)};
}

static int from(struct work *w, const struct docker_line *l)
{
    char **v = docker_words(l->rest, w->escape), *image;
    struct kv *vars;

    if (w->has_from) {
        docker_words_free(v);
        return bad(w, l->line, "a second FROM: files of several stages cannot be built here; "
                   "build the other stage as a template of its own and use it as the base");
    }
    if (!v[0] || (v[1] && !(str_eq_nocase(v[1], "AS") && v[2] && !v[3]))) {
        docker_words_free(v);
        return bad(w, l->line, "FROM wants an image: FROM debian:12");
    }
    if (l->flags[0] && !str_eq(l->flags, "--platform=linux/amd64")) {
        docker_words_free(v);
        return bad(w, l->line, "FROM %s is not possible: sandboxes are linux/amd64", l->flags);
    }
    vars = xcalloc(w->globals.n + 1, sizeof(*vars));
    for (size_t i = 0; i < w->globals.n; i++) /* the last of a name counts */
        vars[w->globals.n - 1 - i] = w->globals.v[i];
    image = docker_unquote(v[0], w->escape);
    w->r->from_image = docker_expand(image, vars, w->e);
    free(vars);
    free(image);
    docker_words_free(v);
    if (!w->r->from_image)
        return err_wrap(w->e, "%s:%d", w->file, l->line);
    w->has_from = true;
    return w->r->from_image[0] ? 0 : bad(w, l->line, "the image of FROM is empty: give its "
                                         "ARG a value");
}

static bool is_secret_name(const char *name)
{
    static const char *const parts[] = {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY",
                                        "APIKEY", "PRIVATE_KEY"};
    char *upper = xstrdup(name);
    bool found = false;

    for (char *p = upper; *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        found |= strstr(upper, parts[i]) != NULL;
    free(upper);
    return found;
}

/* One NAME[=value] of an ARG into its step. */
static int arg_word(struct work *w, const struct docker_line *l, const char *word,
                    struct recipe_step **s)
{
    const char *eq = strchr(word, '='), *value;
    char *name = xstrndup(word, eq ? (size_t)(eq - word) : strlen(word));
    char *text = eq ? docker_unquote(eq + 1, w->escape) : NULL;
    char *sent;
    int rc = 0;

    if (!env_name_ok(name))
        rc = bad(w, l->line, "\"%.60s\" is no name for an ARG: letters, digits and _", name);
    *ARR_PUSH(&w->used) = name;
    value = given(w, name);
    if (value)
        sent = recipe_env_literal(value);
    else if (eq)
        sent = docker_env_value(eq + 1, w->escape);
    else
        sent = w->has_from && global(w, name) ? recipe_env_literal(global(w, name)) : xstrdup("");
    if (!w->has_from)
        keep_global(w, name, value ? value : text ? text : "");
    if (*sent && is_secret_name(name))
        recipe_note(w->r, "%s:%d: the value of %s stays in the template: better give secrets "
                    "to sandboxes as keys or secret variables", w->file, l->line, name);
    if (rc == 0) {
        if (!*s)
            *s = recipe_add(w->r, "ENV", l->line);
        recipe_arg(*s, xstrdup(name));
        recipe_arg(*s, sent);
    } else {
        free(sent);
    }
    free(text);
    return rc;
}

static int arg(struct work *w, const struct docker_line *l)
{
    char **v = docker_words(l->rest, w->escape);
    struct recipe_step *s = NULL;
    int rc = v[0] ? 0 : bad(w, l->line, "ARG wants a name: ARG NAME=value");

    for (size_t i = 0; rc == 0 && v[i]; i++)
        rc = arg_word(w, l, v[i], &s);
    docker_words_free(v);
    return rc;
}

/* --- ENV ---------------------------------------------------------------------------------- */

/* Of a name said twice in one step the last value counts, at the place of the first. */
static void put_env(struct recipe_step *s, const char *name, char *take)
{
    for (size_t i = 0; s->args[i]; i += 2)
        if (str_eq(s->args[i], name)) {
            free(s->args[i + 1]);
            s->args[i + 1] = take;
            return;
        }
    recipe_arg(s, xstrdup(name));
    recipe_arg(s, take);
}

static int env_word(struct work *w, const struct docker_line *l, struct recipe_step *s,
                    const char *word)
{
    const char *eq = strchr(word, '=');
    char *name, *bare;
    int rc = 0;

    if (!eq)
        return bad(w, l->line, "ENV has the word \"%.60s\" without a =: put a value with blanks "
                   "into quotes", word);
    name = xstrndup(word, (size_t)(eq - word));
    bare = docker_unquote(name, w->escape);
    if (!env_name_ok(bare))
        rc = bad(w, l->line, "\"%.60s\" is no name for a variable: letters, digits and _", bare);
    else
        put_env(s, bare, docker_env_value(eq + 1, w->escape));
    free(name);
    free(bare);
    return rc;
}

/* "ENV NAME the value": one variable, and its value to the end of the line. */
static int env_old(struct work *w, const struct docker_line *l, struct recipe_step *s,
                   const char *name)
{
    const char *value = l->rest + strlen(name);

    if (!env_name_ok(name))
        return bad(w, l->line, "\"%.60s\" is no name for a variable: letters, digits and _", name);
    value += strspn(value, " \t");
    if (!*value)
        return bad(w, l->line, "ENV %.60s has no value: write NAME=value", name);
    put_env(s, name, docker_env_value(value, w->escape));
    return 0;
}

static int env(struct work *w, const struct docker_line *l)
{
    char **v = docker_words(l->rest, w->escape);
    struct recipe_step *s;
    int rc = v[0] ? 0 : bad(w, l->line, "ENV wants NAME=value");

    if (rc == 0) {
        s = recipe_add(w->r, "ENV", l->line);
        if (!strchr(v[0], '='))
            rc = env_old(w, l, s, v[0]);
        else
            for (size_t i = 0; rc == 0 && v[i]; i++)
                rc = env_word(w, l, s, v[i]);
    }
    docker_words_free(v);
    return rc;
}

/* --- RUN, WORKDIR, USER -------------------------------------------------------------------- */

/* Mounts of caches make builds faster and nothing else. */
static int run_flags(struct work *w, const struct docker_line *l)
{
    char **v = docker_words(l->flags, 0);
    int rc = 0;

    for (size_t i = 0; rc == 0 && v[i]; i++) {
        if (str_starts(v[i], "--mount=") && (strstr(v[i], "type=cache") || strstr(v[i], "type=tmpfs")))
            recipe_note(w->r, "%s:%d: \"%.80s\" is left out: the service keeps its own cache",
                        w->file, l->line, v[i]);
        else
            rc = bad(w, l->line, "RUN %.80s is not possible here: COPY what the command needs", v[i]);
    }
    docker_words_free(v);
    return rc;
}

/* The command line of a shell form or a JSON form. New string. */
static char *command_of(const struct work *w, const char *rest)
{
    char **words = docker_json(rest);
    char *text = words ? docker_shell_line(words) : docker_squeeze(rest, w->escape);

    docker_words_free(words);
    return text;
}

static int run(struct work *w, const struct docker_line *l)
{
    char *text;

    if (run_flags(w, l) != 0)
        return w->e->code;
    text = command_of(w, l->rest);
    if (!*text) {
        free(text);
        return bad(w, l->line, "RUN has no command");
    }
    recipe_arg(recipe_add(w->r, "RUN", l->line), text);
    return 0;
}

static int one_word(struct work *w, const struct docker_line *l, const char *type)
{
    char *text = docker_unquote(l->rest, w->escape);

    if (!*text) {
        free(text);
        return bad(w, l->line, "%s has no value", type);
    }
    recipe_arg(recipe_add(w->r, type, l->line), text);
    return 0;
}

/* --- COPY and ADD -------------------------------------------------------------------------- */

struct copy_flags {
    char *user, mode[8];
};

static int copy_mode(struct work *w, const struct docker_line *l, const char *text,
                     struct copy_flags *f)
{
    size_t n = strlen(text);

    if (n < 3 || n > 4 || strspn(text, "01234567") != n)
        return bad(w, l->line, "--chmod=%.40s is not possible: give the mode in octal, as 755", text);
    memcpy(f->mode, "0000", 5);
    memcpy(f->mode + 4 - n, text, n);
    return 0;
}

static int copy_flags(struct work *w, const struct docker_line *l, struct copy_flags *f)
{
    char **v = docker_words(l->flags, 0);
    int rc = 0;

    for (size_t i = 0; rc == 0 && v[i]; i++) {
        if (str_starts(v[i], "--chown=")) {
            free(f->user);
            f->user = xstrdup(v[i] + 8);
        } else if (str_starts(v[i], "--chmod=")) {
            rc = copy_mode(w, l, v[i] + 8, f);
        } else if (str_starts(v[i], "--from=")) {
            rc = bad(w, l->line, "%.80s is not possible: there are no other stages or images here; "
                     "put the file into the recipe's folder", v[i]);
        } else if (!str_eq(v[i], "--link") && !str_eq(v[i], "--link=true")) {
            rc = bad(w, l->line, "COPY %.80s is not known here: leave it out", v[i]);
        }
    }
    docker_words_free(v);
    return rc;
}

/* ADD does more than COPY with some sources. */
static int check_add(struct work *w, const struct docker_line *l, const char *src)
{
    static const char *const packed[] = {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz",
                                         ".txz", ".tar.zst"};

    if (strstr(src, "://") || str_starts(src, "git@"))
        return bad(w, l->line, "ADD cannot fetch \"%.80s\": use RUN curl -fsSLo FILE URL, or RUN git "
                   "clone", src);
    for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
        if (str_ends(src, packed[i]))
            return bad(w, l->line, "ADD does not unpack \"%.80s\" here: COPY it and RUN tar -xf", src);
    return 0;
}

static int copy(struct work *w, const struct docker_line *l)
{
    struct copy_flags f = {NULL, ""};
    char **v = docker_json(l->rest), *src, *dest = NULL;
    bool quoted = !v;
    int rc = copy_flags(w, l, &f);
    size_t n = 0;

    if (!v)
        v = docker_words(l->rest, w->escape);
    while (v[n])
        n++;
    if (rc == 0 && n < 2)
        rc = bad(w, l->line, "%s wants a source and a destination", l->word);
    if (rc == 0)
        dest = quoted ? docker_unquote(v[n - 1], w->escape) : xstrdup(v[n - 1]);
    for (size_t i = 0; rc == 0 && i + 1 < n; i++) {
        src = quoted ? docker_unquote(v[i], w->escape) : xstrdup(v[i]);
        if (str_eq(l->word, "ADD"))
            rc = check_add(w, l, src);
        if (rc == 0)
            rc = recipe_copy(w->r, src, dest, f.user, f.mode, w->file, l->line, w->e);
        free(src);
    }
    free(dest);
    free(f.user);
    docker_words_free(v);
    return rc;
}

/* --- the start command --------------------------------------------------------------------- */

static void start_word(struct work *w, const struct docker_line *l, char ***words, char **text,
                       int *line)
{
    docker_words_free(*words);
    free(*text);
    *words = docker_json(l->rest);
    *text = *words ? NULL : docker_squeeze(l->rest, w->escape);
    *line = l->line;
}

/* The one command that Docker would make of both. */
static void start_command(struct work *w)
{
    char *entry = w->entry_words ? docker_shell_line(w->entry_words) : xstrdup(w->entry_text);
    char *cmd = w->cmd_words ? docker_shell_line(w->cmd_words) : xstrdup(w->cmd_text);

    if (entry && *entry && cmd && *cmd && w->entry_words) {
        char *const sh[] = {(char *)(uintptr_t)"/bin/sh", (char *)(uintptr_t)"-c", cmd, NULL};
        char *tail = w->cmd_words ? xstrdup(cmd) : docker_shell_line(sh);

        w->r->start_cmd = xasprintf("%s %s", entry, tail);
        free(tail);
    } else {
        const char *one = entry && *entry ? entry : cmd;

        if (one == entry && cmd && *cmd)
            recipe_note(w->r, "%s:%d: CMD counts for nothing beside an ENTRYPOINT in shell form",
                        w->file, w->cmd_line);
        w->r->start_cmd = one && *one ? xstrdup(one) : NULL;
    }
    if (w->r->start_cmd)
        w->r->ready_cmd = xstrdup(READY);
    free(entry);
    free(cmd);
}

/* --- all ------------------------------------------------------------------------------------ */

static const char *const words[] = {"FROM", "RUN", "COPY", "ADD", "ENV", "ARG", "WORKDIR", "USER",
                                    "CMD", "ENTRYPOINT"};

/* Commands run in bash whatever is said; some ask for nothing else. */
static int shell(struct work *w, const struct docker_line *l)
{
    char **v = docker_json(l->rest);
    bool same = v && v[0] && (str_ends(v[0], "/bash") || str_ends(v[0], "/sh")) &&
                v[1] && str_eq(v[1], "-c") && !v[2];

    docker_words_free(v);
    if (!same)
        return bad(w, l->line, "SHELL is not possible: commands run in bash; put what it is for into "
                   "the commands, as RUN set -o pipefail && ...");
    recipe_note(w->r, "%s:%d: SHELL is left out: commands run in bash", w->file, l->line);
    return 0;
}

static int other(struct work *w, const struct docker_line *l)
{
    static const char *const without_effect[] = {"EXPOSE", "VOLUME", "LABEL", "HEALTHCHECK",
                                                 "STOPSIGNAL", "MAINTAINER"};
    int near;

    for (size_t i = 0; i < sizeof(without_effect) / sizeof(without_effect[0]); i++)
        if (str_eq(l->word, without_effect[i])) {
            recipe_note(w->r, "%s:%d: %s has no effect in a sandbox and is left out", w->file, l->line,
                        l->word);
            return 0;
        }
    if (str_eq(l->word, "ONBUILD"))
        return bad(w, l->line, "ONBUILD is not possible: write the instruction itself");
    if (str_eq(l->word, "SHELL"))
        return shell(w, l);
    near = str_nearest(l->word, words, sizeof(words) / sizeof(words[0]));
    err_set(w->e, ERR_INVALID, "there is no instruction \"%.40s\"%s%s%s", l->word,
            near >= 0 ? "; did you mean " : ": FROM RUN COPY ADD ENV ARG WORKDIR USER CMD ENTRYPOINT",
            near >= 0 ? words[near] : "", near >= 0 ? "?" : " can be built");
    return err_wrap(w->e, "%s:%d", w->file, l->line);
}

static int instruction(struct work *w, const struct docker_line *l)
{
    const char *word = l->word;

    if (!w->has_from && !str_eq(word, "FROM") && !str_eq(word, "ARG"))
        return bad(w, l->line, "%.40s stands in front of FROM: begin with FROM IMAGE", word);
    if (str_eq(word, "FROM"))
        return from(w, l);
    if (str_eq(word, "ARG"))
        return arg(w, l);
    if (str_eq(word, "ENV"))
        return env(w, l);
    if (str_eq(word, "RUN"))
        return run(w, l);
    if (str_eq(word, "COPY") || str_eq(word, "ADD"))
        return copy(w, l);
    if (str_eq(word, "WORKDIR"))
        return w->has_workdir = true, one_word(w, l, "WORKDIR");
    if (str_eq(word, "USER"))
        return w->has_user = true, one_word(w, l, "USER");
    if (str_eq(word, "CMD"))
        return start_word(w, l, &w->cmd_words, &w->cmd_text, &w->cmd_line), 0;
    if (str_eq(word, "ENTRYPOINT"))
        return start_word(w, l, &w->entry_words, &w->entry_text, &w->entry_line), 0;
    return other(w, l);
}

static int check_args(struct work *w)
{
    for (const struct kv *a = w->args; a && a->k; a++) {
        bool found = false;

        for (size_t i = 0; i < w->used.n && !found; i++)
            found = str_eq(w->used.v[i], a->k);
        if (!found)
            return err_set(w->e, ERR_INVALID, "%s has no ARG \"%.60s\": add one, or leave that "
                           "build argument out", w->file, a->k);
    }
    return 0;
}

static void work_release(struct work *w)
{
    for (size_t i = 0; i < w->globals.n; i++) {
        free(w->globals.v[i].k);
        free(w->globals.v[i].v);
    }
    ARR_RELEASE(&w->globals);
    for (size_t i = 0; i < w->used.n; i++)
        free(w->used.v[i]);
    ARR_RELEASE(&w->used);
    docker_words_free(w->entry_words);
    docker_words_free(w->cmd_words);
    free(w->entry_text);
    free(w->cmd_text);
}

static void defaults(struct recipe *r, const char *user, const char *folder)
{
    if (user)
        recipe_arg(recipe_add(r, "USER", 0), xstrdup(user));
    if (folder)
        recipe_arg(recipe_add(r, "WORKDIR", 0), xstrdup(folder));
}

int recipe_parse(struct recipe *r, const char *text, size_t len, const char *file,
                 const struct kv *args, struct err *e)
{
    struct err own = {0};
    struct work w = {.r = r, .file = file, .args = args, .e = e ? e : &own};
    struct docker_lines d;
    int rc = docker_lines(&d, text, len, file, w.e);

    w.escape = d.escape;
    if (rc == 0)
        defaults(r, "root", "/");
    for (size_t i = 0; rc == 0 && i < d.v.n; i++)
        rc = instruction(&w, &d.v.v[i]);
    if (rc == 0 && !w.has_from)
        rc = err_set(w.e, ERR_INVALID, "%s: there is no FROM: begin with FROM IMAGE", file);
    if (rc == 0)
        rc = check_args(&w);
    if (rc == 0) {
        defaults(r, w.has_user ? NULL : "user", w.has_workdir ? NULL : "/home/user");
        start_command(&w);
    }
    docker_lines_release(&d);
    work_release(&w);
    return rc;
}
