/* Projects as plain data. */
#include <cct/model/project.h>

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 64

void project_choice_release(struct project_choice *c)
{
    free(c->tool);
    free(c->model);
    free(c->template_id);
    free(c->repo);
    free(c->branch);
    free(c->prompt);
    memset(c, 0, sizeof(*c));
}

void project_choice_copy(struct project_choice *dst, const struct project_choice *src)
{
    *dst = *src;
    dst->tool = xstrdup(src->tool);
    dst->model = xstrdup(src->model);
    dst->template_id = xstrdup(src->template_id);
    dst->repo = xstrdup(src->repo);
    dst->branch = xstrdup(src->branch);
    dst->prompt = xstrdup(src->prompt);
}

void project_release(struct project *p)
{
    free(p->id);
    free(p->name);
    free(p->prompt);
    str_list_free(p->skills);
    project_choice_release(&p->defaults);
    for (size_t i = 0; i < p->n_vars; i++) {
        free(p->vars[i].name);
        free(p->vars[i].value);
    }
    free(p->vars);
    for (size_t i = 0; i < p->n_presets; i++) {
        free(p->presets[i].name);
        project_choice_release(&p->presets[i].c);
    }
    free(p->presets);
    memset(p, 0, sizeof(*p));
}

void project_copy(struct project *dst, const struct project *src)
{
    *dst = *src;
    dst->id = xstrdup(src->id);
    dst->name = xstrdup(src->name);
    dst->prompt = xstrdup(src->prompt);
    dst->skills = str_list_copy(src->skills);
    project_choice_copy(&dst->defaults, &src->defaults);
    dst->vars = src->n_vars ? xcalloc(src->n_vars, sizeof(*dst->vars)) : NULL;
    for (size_t i = 0; i < src->n_vars; i++) {
        dst->vars[i] = src->vars[i];
        dst->vars[i].name = xstrdup(src->vars[i].name);
        dst->vars[i].value = xstrdup(src->vars[i].value);
    }
    dst->presets = src->n_presets ? xcalloc(src->n_presets, sizeof(*dst->presets)) : NULL;
    for (size_t i = 0; i < src->n_presets; i++) {
        dst->presets[i].of_user = src->presets[i].of_user;
        dst->presets[i].name = xstrdup(src->presets[i].name);
        project_choice_copy(&dst->presets[i].c, &src->presets[i].c);
    }
}

/* Parts between slashes: none empty, none that a path would take for another folder. */
static bool parts_ok(const char *name)
{
    for (const char *p = name;; p++) {
        size_t n = strcspn(p, "/");
        if (n == 0 || strspn(p, ".") == n)
            return false;
        p += n;
        if (!*p)
            return true;
    }
}

bool project_name_ok(const char *name)
{
    size_t n = name ? strlen(name) : 0;

    if (n == 0 || n > NAME_MAX_BYTES || name[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("-_./", name[i]))
            return false;
    return parts_ok(name);
}

/* --- in metadata ------------------------------------------------------------------- */

static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

char *project_meta_plain(const char *name)
{
    char *copy = xstrdup(name);

    for (char *p = copy; p && *p; p++)
        if (!is_plain(*p))
            *p = '-';
    return copy;
}

char *project_meta_exact(const char *name)
{
    struct buf b = BUF_INIT;
    bool plain = true;

    for (const char *p = name; p && *p; p++) {
        plain = plain && is_plain(*p);
        if (*p == '_' || *p == '.' || *p == '/')
            buf_addf(&b, "_%c", *p == '_' ? '_' : *p == '.' ? 'd' : 's');
        else
            buf_addc(&b, *p);
    }
    if (!plain)
        return buf_detach(&b, NULL);
    buf_release(&b);
    return NULL;
}

/* NULL when it was not written by the above. */
static char *decode(const char *exact)
{
    struct buf b = BUF_INIT;
    bool ok = true;
    char *name;

    for (const char *p = exact; *p && ok; p++) {
        if (*p != '_')
            buf_addc(&b, *p);
        else if (p[1] == '_' || p[1] == 'd' || p[1] == 's')
            buf_addc(&b, *++p == '_' ? '_' : *p == 'd' ? '.' : '/');
        else
            ok = false;
    }
    name = buf_detach(&b, NULL);
    if (ok && project_name_ok(name))
        return name;
    free(name);
    return NULL;
}

char *project_of_meta(const char *plain, const char *exact)
{
    char *name = exact ? decode(exact) : NULL;
    char *short_form = name ? project_meta_plain(name) : NULL;

    /* both speak of the same, or the exact one is no word of ours */
    if (name && plain && !str_eq(short_form, plain)) {
        free(name);
        name = NULL;
    }
    free(short_form);
    return name ? name : xstrdup(plain);
}
