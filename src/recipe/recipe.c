/* Recipes: life, what every kind of them shares, and where they lie. */
#include "recipe_priv.h"

#include <cct/util/fs.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void recipe_init(struct recipe *r)
{
    memset(r, 0, sizeof(*r));
}

void recipe_release(struct recipe *r)
{
    for (size_t i = 0; i < r->steps.n; i++)
        docker_words_free(r->steps.v[i].args);
    ARR_RELEASE(&r->steps);
    for (size_t i = 0; i < r->notes.n; i++)
        free(r->notes.v[i]);
    ARR_RELEASE(&r->notes);
    free(r->from_image);
    free(r->from_template);
    free(r->start_cmd);
    free(r->ready_cmd);
    free(r->file);
    free(r->folder);
    free(r->tool);
    free(r->version);
    recipe_init(r);
}

struct recipe_step *recipe_add(struct recipe *r, const char *type, int line)
{
    struct recipe_step *s = ARR_PUSH(&r->steps);

    s->type = type;
    s->line = line;
    s->args = xcalloc(1, sizeof(*s->args));
    return s;
}

void recipe_arg(struct recipe_step *s, char *take)
{
    size_t n = 0;

    while (s->args[n])
        n++;
    s->args = xrealloc(s->args, (n + 2) * sizeof(*s->args));
    s->args[n] = take;
    s->args[n + 1] = NULL;
}

void recipe_note(struct recipe *r, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    *ARR_PUSH(&r->notes) = buf_detach(&b, NULL);
}

/* --- COPY --------------------------------------------------------------------------- */

int recipe_check_source(const char *src, const char *file, int line, struct err *e)
{
    int depth = 0;

    if (*src == '/')
        return err_set(e, ERR_INVALID, "%s:%d: the source \"%.80s\" is an absolute path: write it "
                       "from the recipe's folder on, without the / in front", file, line, src);
    for (const char *p = src; *p; p += strspn(p, "/")) {
        size_t n = strcspn(p, "/");

        if (n == 2 && p[0] == '.' && p[1] == '.')
            depth--;
        else if (!(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '*' && p[1] == '*'))
            depth++; /* "**" may be no folder at all */
        if (depth < 0)
            return err_set(e, ERR_INVALID, "%s:%d: the source \"%.80s\" lies outside of the "
                           "recipe's folder: move it in there", file, line, src);
        p += n;
    }
    return *src ? 0
                : err_set(e, ERR_INVALID, "%s:%d: COPY has an empty source: name a file", file,
                          line);
}

int recipe_copy(struct recipe *r, const char *src, const char *dest, const char *user,
                const char *mode, const char *file, int line, struct err *e)
{
    struct recipe_step *s;

    if (recipe_check_source(src, file, line, e) != 0)
        return e->code;
    s = recipe_add(r, "COPY", line);
    recipe_arg(s, xstrdup(src));
    recipe_arg(s, xstrdup(dest));
    recipe_arg(s, xstrdup(user ? user : ""));
    recipe_arg(s, xstrdup(mode ? mode : ""));
    return 0;
}

/* --- loading -------------------------------------------------------------------------- */

static const char *const names[] = {"Dockerfile", "e2b.Dockerfile", "template.conf", NULL};

/* The recipe in a folder; new string, NULL with *e. */
static char *find_in(const char *folder, struct err *e)
{
    for (size_t i = 0; names[i]; i++) {
        char *path = fs_join(folder, names[i]);

        if (access(path, F_OK) == 0)
            return path;
        free(path);
    }
    err_set(e, ERR_NOTFOUND, "there is no recipe in \"%.200s\": put a Dockerfile (or "
            "e2b.Dockerfile, template.conf) there, or name the file", folder);
    return NULL;
}

static char *absolute(const char *path, struct err *e)
{
    char *full = realpath(path, NULL), *own;

    if (!full) {
        err_sys(e, 0, "cannot find \"%.200s\"", path);
        return NULL;
    }
    own = xstrdup(full);
    free(full);
    return own;
}

/* The folder of a file, whose path has a slash. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static int read_in(struct recipe *r, const struct kv *args, struct err *e)
{
    size_t len = 0;
    char *text = fs_read(r->file, RECIPE_BYTES, false, &len, e);
    const char *slash = strrchr(r->file, '/');
    const char *name = slash ? slash + 1 : r->file;
    int rc;

    if (!text)
        return e->code;
    rc = recipe_is_spec(text, len) ? recipe_parse_spec(r, text, len, name, args, e)
                                   : recipe_parse(r, text, len, name, args, e);
    free(text);
    return rc;
}

int recipe_load(struct recipe *r, const char *where, const char *tool, const struct kv *args,
                struct err *e)
{
    struct stat st;
    char *full;

    if (!where && !tool)
        return err_set(e, ERR_INVALID, "what is to be built? Name a folder, a Dockerfile, or a tool");
    if (!where)
        return recipe_for_tool(r, tool, NULL, e);
    full = absolute(where, e);
    if (!full)
        return e->code;
    if (stat(full, &st) != 0) {
        err_sys(e, 0, "cannot look at \"%.200s\"", where);
    } else if (S_ISDIR(st.st_mode)) {
        r->folder = xstrdup(full);
        r->file = find_in(full, e);
    } else {
        r->folder = folder_of(full);
        r->file = xstrdup(full);
    }
    free(full);
    if (!r->file || read_in(r, args, e) != 0)
        return e->code;
    if (tool && !r->tool)
        r->tool = xstrdup(tool);
    return 0;
}
