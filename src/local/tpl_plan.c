/* A build request, checked: everything that is wrong with its form is said before
 * anything runs. */
#include <cct/local/ctl.h>
#include <cct/local/tpl_plan.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

/* --- names ------------------------------------------------------------------ */

bool tpl_name_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= TPL_NAME_MAX &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

/* Tags may have dots and capitals, as versions do. */
bool tpl_tag_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= TPL_NAME_MAX &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

static bool is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

bool tpl_hash_ok(const char *s)
{
    return is_hex(s, TPL_KEY_LEN);
}

bool tpl_layer_name_ok(const char *s)
{
    return is_hex(s, TPL_LAYER_LEN);
}

int tpl_tag_check(const char *tag, struct err *e)
{
    if (tpl_tag_ok(tag))
        return 0;
    return err_set(e, ERR_INVALID, "tag '%.80s' must be of letters, digits, '-', '_' and '.'",
                   tag);
}

int tpl_ref_parse(struct tpl_ref *r, const char *text, struct err *e)
{
    const char *name = str_starts(text, "local/") ? text + strlen("local/") : text;
    size_t len = strcspn(name, ":");
    memset(r, 0, sizeof(*r));
    if (memchr(name, '/', len))
        return err_set(e, ERR_INVALID,
                       "template '%.80s' is in another namespace: the one here is 'local'",
                       text);
    if (len > TPL_NAME_MAX)
        return err_set(e, ERR_INVALID, "a template's name has at most %u characters",
                       TPL_NAME_MAX);
    memcpy(r->name, name, len);
    if (!tpl_name_ok(r->name))
        return err_set(e, ERR_INVALID,
                       "template name '%.80s' must be of lower-case letters, digits, '-' "
                       "and '_'",
                       r->name);
    if (name[len] == '\0')
        return 0;
    if (tpl_tag_check(name + len + 1, e) != 0)
        return ERR_INVALID;
    str_copy(r->tag, sizeof(r->tag), name + len + 1);
    return 0;
}

bool tpl_image_is_base(const char *image)
{
    static const char *const hosts[] = {"docker.io/", "index.docker.io/"};
    size_t n;
    const struct ctl_template *builtin = ctl_template_all(&n);
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        if (str_starts(image, hosts[i]))
            image += strlen(hosts[i]);
    size_t len = strcspn(image, ":");
    if (image[len] != '\0' && strcmp(image + len, ":latest") != 0)
        return false;
    if (len == strlen(TPL_BASE_IMAGE) && memcmp(image, TPL_BASE_IMAGE, len) == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (strlen(builtin[i].alias) == len && memcmp(image, builtin[i].alias, len) == 0)
            return true;
    return false;
}

/* --- one step --------------------------------------------------------------- */

static const char *const type_names[] = {"RUN", "COPY", "ENV", "WORKDIR", "USER"};

static int bad(struct err *e, size_t step, const char *why)
{
    return err_set(e, ERR_INVALID, "step %zu: %s", step, why);
}

/* A relative or absolute path without a way up. */
static bool path_ok(const char *p)
{
    if (!*p || strlen(p) > 4000 || strpbrk(p, "\n\r"))
        return false;
    for (const char *at = p; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.')
            return false;
    }
    return true;
}

static bool account_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= 64 && *s != '-' && *s != ':' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:") == n;
}

static bool mode_ok(const char *s)
{
    size_t n = strlen(s);
    return n >= 3 && n <= 5 && strspn(s, "01234567") == n;
}

static const char *arg(const struct tpl_step *s, size_t i)
{
    return i < s->n_args ? s->args[i] : "";
}

static int check_copy(const struct tpl_step *s, size_t no, struct err *e)
{
    if (s->n_args < 2 || s->n_args > 4)
        return bad(e, no, "COPY has a source, a destination, a user and a mode");
    if (!path_ok(s->args[0]) || s->args[0][0] == '/')
        return bad(e, no, "COPY's source must be a relative path without '..'");
    if (!path_ok(s->args[1]))
        return bad(e, no, "COPY's destination must be a path without '..'");
    if (*arg(s, 2) && !account_ok(s->args[2]))
        return bad(e, no, "COPY's user must be a name, or name:group");
    if (*arg(s, 3) && !mode_ok(s->args[3]))
        return bad(e, no, "COPY's mode must be an octal number such as 0644");
    if (!s->hash[0])
        return bad(e, no, "COPY needs filesHash, 64 lower-case hex digits");
    return 0;
}

static int check_env(const struct tpl_step *s, size_t no, struct err *e)
{
    if (s->n_args == 0 || s->n_args % 2 != 0)
        return bad(e, no, "ENV has pairs of a name and a value");
    for (size_t i = 0; i < s->n_args; i += 2) {
        const char *name = s->args[i];
        if (!*name || strchr(name, '\n'))
            return bad(e, no, "ENV has a name that is empty or has a line end in it");
        if (strchr(name, '='))
            return err_set(e, ERR_INVALID,
                           "step %zu: ENV has the name '%.60s', and no name can hold '='; was "
                           "it a Dockerfile's value with a blank in it? The client cuts it at "
                           "the blank: set it with setEnvs() of the SDK, or in a RUN",
                           no, name);
    }
    return 0;
}

static int check_step(const struct tpl_step *s, size_t no, struct err *e)
{
    switch (s->type) {
    case TPL_RUN:
        if (s->n_args < 1 || s->n_args > 2 || !s->args[0][strspn(s->args[0], " \t\n")])
            return bad(e, no, "RUN has a command, and a user or none");
        if (*arg(s, 1) && !account_ok(s->args[1]))
            return bad(e, no, "RUN's user must be a name");
        return 0;
    case TPL_COPY:
        return check_copy(s, no, e);
    case TPL_ENV:
        return check_env(s, no, e);
    case TPL_WORKDIR:
        if (s->n_args != 1 || !path_ok(s->args[0]))
            return bad(e, no, "WORKDIR has one path without '..'");
        return 0;
    case TPL_USER:
        if (s->n_args < 1 || s->n_args > 2 || !account_ok(s->args[0]))
            return bad(e, no, "USER has one name");
        return 0;
    }
    return 0;
}

static int take_args(struct tpl_step *s, const struct cJSON *args, size_t no, struct err *e)
{
    size_t n = 0;
    if (args && !json_is_array(args))
        return bad(e, no, "args must be an array of strings");
    for (const struct cJSON *a = json_first(args); a; a = json_next(a))
        n++;
    if (n > 512)
        return bad(e, no, "too many args");
    s->args = xcalloc(n + 1, sizeof(s->args[0]));
    for (const struct cJSON *a = json_first(args); a; a = json_next(a)) {
        if (!json_is_string(a))
            return bad(e, no, "args must be an array of strings");
        const char *text = json_str_of(a);
        if (strlen(text) > TPL_ARG_MAX)
            return bad(e, no, "an argument is longer than 64 KiB");
        s->args[s->n_args++] = xstrdup(text);
    }
    return 0;
}

static int take_step(struct tpl_step *s, const struct cJSON *j, size_t no, struct err *e)
{
    const char *type = json_str(j, "type", "");
    size_t t = 0;
    while (t < sizeof(type_names) / sizeof(type_names[0]) && strcmp(type, type_names[t]) != 0)
        t++;
    if (t == sizeof(type_names) / sizeof(type_names[0]))
        return err_set(e, ERR_INVALID,
                       "step %zu: type '%.40s' is none of RUN, COPY, ENV, WORKDIR and USER", no,
                       type);
    s->type = (enum tpl_step_type)t;
    s->force = json_bool(j, "force", false);
    const char *hash = json_str(j, "filesHash", "");
    if (*hash && !tpl_hash_ok(hash))
        return bad(e, no, "filesHash must be 64 lower-case hex digits");
    str_copy(s->hash, sizeof(s->hash), hash);
    int rc = take_args(s, json_get(j, "args"), no, e);
    return rc == 0 ? check_step(s, no, e) : rc;
}

/* --- the plan --------------------------------------------------------------- */

static char *take_text(const struct cJSON *body, const char *name)
{
    const char *s = json_str(body, name, NULL);
    return s && *s ? xstrdup(s) : NULL;
}

static int take_steps(struct tpl_plan *p, const struct cJSON *steps, struct err *e)
{
    size_t n = 0;
    if (steps && !json_is_array(steps))
        return err_set(e, ERR_INVALID, "steps must be an array");
    for (const struct cJSON *s = json_first(steps); s; s = json_next(s))
        n++;
    if (n > TPL_STEPS_MAX)
        return err_set(e, ERR_INVALID, "a build has at most %u steps", TPL_STEPS_MAX);
    p->steps = xcalloc(n + 1, sizeof(p->steps[0]));
    for (const struct cJSON *s = json_first(steps); s; s = json_next(s)) {
        p->n_steps++;
        int rc = take_step(&p->steps[p->n_steps - 1], s, p->n_steps, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int tpl_plan_parse(struct tpl_plan *p, const struct cJSON *body, struct err *e)
{
    memset(p, 0, sizeof(*p));
    p->image = take_text(body, "fromImage");
    p->from = take_text(body, "fromTemplate");
    p->has_registry = json_is_object(json_get(body, "fromImageRegistry"));
    p->force = json_bool(body, "force", false);
    p->start_cmd = take_text(body, "startCmd");
    p->ready_cmd = take_text(body, "readyCmd");
    if (!p->image && !p->from)
        return err_set(e, ERR_INVALID, "fromImage or fromTemplate is missing");
    if (p->image && p->from)
        return err_set(e, ERR_INVALID, "fromImage and fromTemplate exclude each other");
    if ((p->start_cmd && strlen(p->start_cmd) > TPL_ARG_MAX) ||
        (p->ready_cmd && strlen(p->ready_cmd) > TPL_ARG_MAX))
        return err_set(e, ERR_INVALID, "startCmd and readyCmd have at most 64 KiB");
    return take_steps(p, json_get(body, "steps"), e);
}

void tpl_plan_release(struct tpl_plan *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        for (size_t k = 0; k < p->steps[i].n_args; k++)
            free(p->steps[i].args[k]);
        free(p->steps[i].args);
    }
    free(p->steps);
    free(p->image);
    free(p->from);
    free(p->start_cmd);
    free(p->ready_cmd);
    memset(p, 0, sizeof(*p));
}
