/* Projects: each action is a command to the net thread; what is shown of them comes back
 * as EV_PROJECTS. */
#include "app_priv.h"

#include <cct/util/xalloc.h>
#include <stdlib.h>

static uint64_t post_texts(struct app *a, enum cmd_type t, const char *text, const char *text2)
{
    struct cmd *c = app_cmd(a, t);

    c->text = xstrdup(text);
    c->text2 = xstrdup(text2);
    return app_post(a, c);
}

uint64_t app_project_switch(struct app *a, const char *project)
{
    return post_texts(a, CMD_PROJECT, project, NULL);
}

void app_project_view(struct app *a, bool all)
{
    struct ev_view *ev = ev_new(EV_VIEW);

    ev->all = all;
    mq_post(a->events, MQ_NORMAL, &ev->m);
}

uint64_t app_project_add(struct app *a, const char *name)
{
    return post_texts(a, CMD_PROJECT_ADD, name, NULL);
}

uint64_t app_project_rename(struct app *a, const char *project, const char *name)
{
    return post_texts(a, CMD_PROJECT_RENAME, project, name);
}

uint64_t app_project_rm(struct app *a, const char *project)
{
    return post_texts(a, CMD_PROJECT_RM, project, NULL);
}

uint64_t app_project_set(struct app *a, const struct project *settings)
{
    struct cmd *c = app_cmd(a, CMD_PROJECT_SET);

    c->project = xcalloc(1, sizeof(*c->project));
    project_copy(c->project, settings);
    return app_post(a, c);
}

uint64_t app_project_var(struct app *a, const char *name, const char *value)
{
    return post_texts(a, CMD_PROJECT_VAR, name, value);
}

uint64_t app_project_secret(struct app *a, const char *name, struct secret *take)
{
    struct cmd *c = app_cmd(a, CMD_PROJECT_SECRET);

    c->text2 = xstrdup(name);
    c->key = take;
    return app_post(a, c);
}

uint64_t app_preset(struct app *a, const char *name, bool of_user, const struct project_choice *p)
{
    struct cmd *c = app_cmd(a, CMD_PRESET);

    c->text = xstrdup(name);
    c->on = of_user;
    c->project = p ? xcalloc(1, sizeof(*c->project)) : NULL;
    if (p)
        project_choice_copy(&c->project->defaults, p);
    return app_post(a, c);
}

uint64_t app_filter(struct app *a, const char *name, const char *words)
{
    struct cmd *c = app_cmd(a, CMD_FILTER);

    c->text = xstrdup(name);
    c->text2 = words ? xstrdup(words) : NULL;
    return app_post(a, c);
}
