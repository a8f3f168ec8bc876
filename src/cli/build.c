/* cc-tui build: templates from Dockerfiles and recipes. */
#include "cli_priv.h"
#include "templates.h"

#include <cct/recipe/files.h>
#include <cct/text/clean.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what was asked for ---------------------------------------------------------------- */

static int number(const struct cli *c, enum cli_flag f, int64_t min, int64_t max, int *out,
                  struct err *e)
{
    int64_t n = 0;

    if (!cli_has(c, f))
        return 0;
    if (!str_to_i64(c->value[f], min, max, &n))
        return err_set(e, ERR_INVALID, "--%s wants a number from %lld to %lld, not '%.40s'",
                       cli_flags[f].name, (long long)min, (long long)max, c->value[f]);
    *out = (int)n;
    return 0;
}

static int take_args(const struct cli *c, struct kv *args, struct err *e)
{
    for (size_t i = 0; i < c->n_envs; i++) {
        const char *eq = strchr(c->envs[i], '='), *here = eq ? NULL : getenv(c->envs[i]);

        if (here && *c->envs[i]) { /* as docker takes it: what is secret is in no argument */
            args[i] = (struct kv){xstrdup(c->envs[i]), xstrdup(here)};
            continue;
        }
        if (!eq || eq == c->envs[i])
            return err_set(e, ERR_INVALID, "--build-arg wants NAME=VALUE, or the NAME of a variable "
                           "in the environment, not '%.60s'", c->envs[i]);
        args[i] = (struct kv){xstrndup(c->envs[i], (size_t)(eq - c->envs[i])), xstrdup(eq + 1)};
    }
    return 0;
}

/* --- --dry-run -------------------------------------------------------------------------- */

static int hash_steps(struct recipe *r, int64_t *bytes, struct err *e)
{
    struct recipe_ignore g = {ARR_INIT};
    int rc = r->folder ? recipe_ignore_load(&g, r->folder, e) : 0;

    for (size_t i = 0; rc == 0 && i < r->steps.n; i++) {
        struct recipe_step *s = &r->steps.v[i];
        struct recipe_files f = {ARR_INIT, 0};

        if (!str_eq(s->type, "COPY"))
            continue;
        rc = recipe_files_find(&f, r->folder ? r->folder : ".", s->args[0], &g, NULL, e);
        if (rc == 0)
            rc = recipe_files_hash(&f, r->folder, s->args[0], s->args[1], s->hash, NULL, e);
        *bytes += f.bytes;
        recipe_files_release(&f);
    }
    recipe_ignore_release(&g);
    return rc;
}

static void print_json(const struct recipe *r)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    if (r->from_image)
        jw_str(&w, "fromImage", r->from_image);
    if (r->from_template)
        jw_str(&w, "fromTemplate", r->from_template);
    if (r->start_cmd)
        jw_str(&w, "startCmd", r->start_cmd);
    if (r->ready_cmd)
        jw_str(&w, "readyCmd", r->ready_cmd);
    jw_arr(&w, "steps");
    for (size_t i = 0; i < r->steps.n; i++) {
        const struct recipe_step *s = &r->steps.v[i];

        jw_obj(&w, NULL);
        jw_str(&w, "type", s->type);
        jw_arr(&w, "args");
        for (char **a = s->args; *a; a++)
            jw_str(&w, NULL, *a);
        jw_end(&w);
        if (s->hash[0])
            jw_str(&w, "filesHash", s->hash);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void print_line(const char *text)
{
    char *clean = clean_line_dup(text, 0);

    cli_out("%s\n", clean);
    free(clean);
}

static void print_steps(const struct recipe *r, int64_t bytes)
{
    char *line = xasprintf("FROM %s", r->from_image ? r->from_image : r->from_template);

    print_line(line);
    free(line);
    for (size_t i = 0; i < r->steps.n; i++) {
        struct buf b = BUF_INIT;

        buf_addf(&b, "%2zu  %-7s", i + 1, r->steps.v[i].type);
        for (char **a = r->steps.v[i].args; *a; a++)
            buf_addf(&b, " %s", *a);
        print_line(buf_str(&b));
        buf_release(&b);
    }
    if (r->start_cmd) {
        line = xasprintf("start   %s", r->start_cmd);
        print_line(line);
        free(line);
    }
    if (bytes)
        cli_out("%lld bytes of files would be looked for at the service\n", (long long)bytes);
}

static int dry_run(const struct cli *c, const struct app_build *q)
{
    struct recipe r;
    struct err e = {0};
    int64_t bytes = 0;
    int status = CLI_OK;

    recipe_init(&r);
    if (recipe_load(&r, q->where, q->tool, q->args, &e) != 0 || hash_steps(&r, &bytes, &e) != 0) {
        status = cli_fail(&e);
    } else {
        for (size_t i = 0; i < r.notes.n; i++)
            cli_say(c, "cc-tui: %s", r.notes.v[i]);
        if (cli_json(c))
            print_json(&r);
        else
            print_steps(&r, bytes);
    }
    recipe_release(&r);
    return status;
}

/* --- building ---------------------------------------------------------------------------- */

/* The exit status is the outcome: ready, failed, interrupted. */
static int wait_for(struct cli *c, struct cli_app *a, uint64_t req)
{
    struct err e = {0};

    if (cli_app_wait(a, req, &e) == 0) {
        cli_say(c, cli_has(c, CLI_WAIT) ? "cc-tui: the build is ready"
                                        : "cc-tui: the service builds it; 'cc-tui builds --follow "
                                          "NAME' shows how");
        return CLI_OK;
    }
    if (e.code == ERR_CANCELLED && a->signal && !cli_has(c, CLI_QUIET))
        cli_say(c, "cc-tui: left; what the service has begun goes on there");
    if (e.code == ERR_CONFLICT || e.code == ERR_INVALID) {
        cli_fail(&e);
        return CLI_FAILED;
    }
    return cli_app_fail(a, &e);
}

static int build(struct cli *c, const struct app_build *q)
{
    struct templates_tail t = {.c = c};
    struct cli_app a;
    struct err e = {0};
    int status;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    status = wait_for(c, &a, app_build(a.app, q, cli_has(c, CLI_WAIT),
                                       cli_json(c) ? templates_put : templates_follow, &t));
    cli_app_close(&a);
    return status;
}

int cli_build(struct cli *c)
{
    struct app_build q = {.name = c->value[CLI_NAME], .tool = c->value[CLI_TOOL],
                          .where = c->n_args ? c->args[0] : NULL,
                          .no_cache = cli_has(c, CLI_NO_CACHE),
                          .tags = c->skills};
    struct kv *args = xcalloc(c->n_envs + 1, sizeof(*args));
    struct err e = {0};
    int status;

    q.args = args;
    if (!q.where && !q.tool)
        status = cli_usage("'build' wants a folder or a Dockerfile, or --tool for that tool's own recipe");
    else if (!q.name && !cli_has(c, CLI_DRY_RUN))
        status = cli_usage("'build' wants --name NAME: what the template is to be called");
    else if (take_args(c, args, &e) != 0 || number(c, CLI_CPU, 1, 32, &q.cpu_count, &e) != 0 ||
             number(c, CLI_MEMORY, 128, 1 << 20, &q.memory_mb, &e) != 0)
        status = cli_fail(&e);
    else
        status = cli_has(c, CLI_DRY_RUN) ? dry_run(c, &q) : build(c, &q);
    kv_free(args);
    return status;
}

int cli_build_again(struct cli *c)
{
    struct templates_tail t = {.c = c};
    struct kv *args = xcalloc(c->n_envs + 1, sizeof(*args));
    struct cli_app a;
    struct err e = {0};
    int status;

    if (take_args(c, args, &e) != 0 || cli_app_open(&a, c, &e) != 0) {
        status = cli_fail(&e);
    } else {
        status = wait_for(c, &a, app_build_again(a.app, 0, c->args[0], args, cli_has(c, CLI_WAIT),
                                                 cli_json(c) ? templates_put : templates_follow, &t));
        cli_app_close(&a);
    }
    kv_free(args);
    return status;
}

static int request(struct cli *c, uint64_t (*start)(struct app *a, const struct cli *c),
                   const char *done)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    if (cli_app_wait(&a, start(a.app, c), &e) == 0)
        cli_say(c, "cc-tui: %s", done);
    else
        status = cli_app_fail(&a, &e);
    cli_app_close(&a);
    return status;
}

static uint64_t start_cancel(struct app *a, const struct cli *c)
{
    return app_build_cancel(a, 0, c->args[0]);
}

int cli_build_cancel(struct cli *c)
{
    return request(c, start_cancel, "called off; what the service has begun goes on there");
}

static uint64_t start_delete(struct app *a, const struct cli *c)
{
    return app_build_delete(a, 0, c->args[0]);
}

int cli_build_delete(struct cli *c)
{
    char *question;
    bool yes = cli_has(c, CLI_YES);

    if (cli_has(c, CLI_DRY_RUN)) {
        print_line(c->args[0]);
        return CLI_OK;
    }
    if (!yes) {
        if (!cli_can_ask(c))
            return cli_usage("'build delete' wants --yes where nobody can be asked");
        question = xasprintf("delete the template \"%s\" with all of its builds?", c->args[0]);
        yes = cli_ask(question);
        free(question);
    }
    return yes ? request(c, start_delete, "deleted") : CLI_DECLINED;
}

static uint64_t start_tag(struct app *a, const struct cli *c)
{
    const char **tags = xcalloc((size_t)c->n_args, sizeof(*tags));
    uint64_t req;

    for (int i = 1; i < c->n_args; i++)
        tags[i - 1] = c->args[i];
    req = app_build_tag(a, c->args[0], tags, cli_has(c, CLI_UNDO));
    free(tags);
    return req;
}

int cli_build_tag(struct cli *c)
{
    return request(c, start_tag, "done");
}
