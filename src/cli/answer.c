/* cc-tui answer: what agents ask, and answers to it. */
#include "cli_priv.h"

#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KNOWN_MS = 20000 };

static bool may_ask(const struct sandbox *s)
{
    return !s->foreign && !s->adopted && s->session && !s->unlisted &&
           (s->state == SB_RUNNING || (s->state == SB_ERROR && s->vm_up));
}

/* Of one sandbox, or of all (0). */
static bool is_known(struct cli_app *a)
{
    const struct model *m = app_model(a->app);

    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];

        if ((!a->sandbox || a->sandbox == s->id) && may_ask(s) && !model_asks_known(m, s->id))
            return false;
    }
    return true;
}

/* Look at what is open now; what cannot be reached in time is left out, and said. */
static int look(struct cli_app *a, uint64_t sandbox, struct err *e)
{
    const struct model *m = app_model(a->app);
    int rc;

    for (size_t i = 0; i < m->n_sandboxes; i++)
        if ((!sandbox || sandbox == m->sandboxes[i].id) && may_ask(&m->sandboxes[i]))
            app_follow(a->app, m->sandboxes[i].id);
    a->sandbox = sandbox;
    rc = cli_app_until(a, is_known, KNOWN_MS, e);
    if (rc != ERR_TIMEOUT)
        return rc;
    if (sandbox)
        return err_set(e, ERR_TIMEOUT, "what its agent asks is not known: the sandbox was not "
                       "reached within %d s; try again", KNOWN_MS / 1000);
    err_clear(e);
    cli_say(a->c, "cc-tui: not every sandbox was reached within %d s; try again", KNOWN_MS / 1000);
    return 0;
}

/* --- listing ---------------------------------------------------------------------- */

static void add_json(struct jw *w, const struct sandbox *s, const struct question *q)
{
    char stamp[32];

    jw_obj(w, NULL);
    jw_str(w, "sandboxID", s->sandbox_id);
    jw_str(w, "name", s->name);
    jw_str(w, "tool", s->tool);
    jw_str(w, "questionID", q->id);
    jw_str(w, "question", q->question);
    jw_str(w, "detail", q->detail);
    jw_arr(w, "choices");
    for (size_t i = 0; q->choices && q->choices[i]; i++)
        jw_str(w, NULL, q->choices[i]);
    jw_end(w);
    jw_bool(w, "words", q->words);
    clock_format_rfc3339(stamp, sizeof(stamp), q->since);
    jw_str(w, "since", stamp);
    jw_str(w, "answer", q->answer);
    jw_end(w);
}

static void print_json(const struct model *m, uint64_t sandbox)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < m->n_asks; i++) {
        const struct sandbox *s = model_sandbox(m, m->asks[i].sandbox);

        if (s && (!sandbox || sandbox == s->id))
            add_json(&w, s, &m->asks[i]);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void print_question(const struct sandbox *s, const struct question *q)
{
    cli_out("%s  %s\n", s->name ? s->name : s->sandbox_id, q->question);
    for (const char *line = q->detail; line && *line;) {
        size_t n = strcspn(line, "\n");

        cli_out("    %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    for (size_t i = 0; q->choices && q->choices[i]; i++)
        cli_out("  %zu) %s\n", i + 1, q->choices[i]);
    if (q->answer)
        cli_out("  answered: %s\n", q->answer);
    else if (q->words)
        cli_out("  %s\n", q->choices ? "or in your own words" : "in your own words");
}

static int list(struct cli *c, struct cli_app *a, uint64_t sandbox)
{
    const struct model *m = app_model(a->app);
    size_t n = 0;

    if (cli_json(c)) {
        print_json(m, sandbox);
        return CLI_OK;
    }
    for (size_t i = 0; i < m->n_asks; i++) {
        const struct sandbox *s = model_sandbox(m, m->asks[i].sandbox);

        if (!s || (sandbox && sandbox != s->id))
            continue;
        if (cli_has(c, CLI_QUIET))
            cli_out("%s\n", s->sandbox_id ? s->sandbox_id : s->name);
        else
            print_question(s, &m->asks[i]);
        n++;
    }
    if (!n)
        cli_say(c, "no agent asks you anything");
    return CLI_OK;
}

/* --- answering -------------------------------------------------------------------- */

static const struct question *wanted(struct cli *c, const struct model *m, uint64_t sandbox,
                                     struct err *e)
{
    const char *id = cli_has(c, CLI_QUESTION) ? c->value[CLI_QUESTION] : NULL;
    const struct question *q = id ? NULL : model_ask(m, sandbox);

    for (size_t i = 0; id && i < m->n_asks; i++)
        if (m->asks[i].sandbox == sandbox && str_eq(m->asks[i].id, id))
            q = &m->asks[i];
    if (!q)
        err_set(e, ERR_NOTFOUND, id ? "the question '%.60s' is not open"
                                    : "'%.60s' asks you nothing", id ? id : c->args[0]);
    else if (q->answer)
        err_set(e, ERR_CONFLICT, "the question was answered already: %s", q->answer);
    return e->code ? NULL : q;
}

/* By its number or by its whole label; -1: it is words. */
static int choice_of(const struct question *q, const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    int count = 0;

    for (; q->choices && q->choices[count]; count++)
        if (strcasecmp(q->choices[count], text) == 0)
            return count;
    return *text && !*end && n >= 1 && n <= count ? (int)n - 1 : -1;
}

static int answer(struct cli *c, struct cli_app *a, uint64_t sandbox, const char *text,
                  struct err *e)
{
    const struct question *q = wanted(c, app_model(a->app), sandbox, e);
    char *id, *label;
    int choice, rc;

    if (!q)
        return e->code;
    choice = choice_of(q, text);
    if (choice < 0 && !q->words)
        return err_set(e, ERR_INVALID, "'%.60s' is none of its choices, and it takes no other "
                       "words; 'cc-tui answer %s' shows them", text, c->args[0]);
    if (cli_has(c, CLI_DRY_RUN)) {
        cli_say(c, "would answer %s: %s", q->question, choice < 0 ? text : q->choices[choice]);
        return 0;
    }
    id = xstrdup(q->id);
    label = xstrdup(choice < 0 ? text : q->choices[choice]);
    rc = cli_app_wait(a, app_answer(a->app, sandbox, id, choice, choice < 0 ? text : NULL), e);
    if (rc == 0)
        cli_say(c, "answered: %s", label);
    free(id);
    free(label);
    return rc;
}

static int open_all(struct cli *c, struct cli_app *a, const struct sandbox **s, int *status)
{
    struct err e = {0};

    *s = NULL;
    if (c->n_args > 0) {
        *s = cli_app_begin(a, c, c->args[0], status);
        return *s ? 0 : -1;
    }
    if (cli_app_open(a, c, &e) != 0) {
        *status = cli_fail(&e);
        return -1;
    }
    if (cli_app_known(a, &e) == 0)
        return 0;
    *status = cli_app_fail(a, &e);
    cli_app_close(a);
    return -1;
}

int cli_answer(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;
    const struct sandbox *s;
    char *text = c->n_args > 1 ? cli_text_arg(c->args[1], &e) : NULL;

    if (e.code)
        return cli_fail(&e);
    if (open_all(c, &a, &s, &status) != 0) {
        free(text);
        return status;
    }
    uint64_t row = s ? s->id : 0;
    if (s && s->state == SB_PAUSED)
        err_set(&e, ERR_CONFLICT, "'%s' is paused: resume it first", c->args[0]);
    else if (s && !may_ask(s))
        err_set(&e, ERR_NOTFOUND, "'%s' has no agent that could ask", c->args[0]);
    else if (look(&a, row, &e) == 0 && text)
        answer(c, &a, row, text, &e);
    status = e.code ? cli_app_fail(&a, &e) : text ? CLI_OK : list(c, &a, row);
    free(text);
    cli_app_close(&a);
    return status;
}
