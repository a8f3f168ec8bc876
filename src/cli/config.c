/* cc-tui config: what is set, where it came from, what is wrong. */
#include "cli_priv.h"

#include <cct/config/models.h>
#include <cct/config/tools.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *source_name(enum option_source src)
{
    static const char *const names[] = {"default", "user", "project", "environment", "flag"};
    return names[src];
}

static void show_json(const struct cli *c)
{
    const char *section, *name, *help;
    char value[4200], full[96];
    enum option_source src;
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "userFile", c->user_file);
    jw_str(&w, "projectFile", c->project_file);
    jw_arr(&w, "options");
    for (size_t i = 0;
         config_at(c->config, i, &section, &name, value, sizeof(value), &src, &help); i++) {
        snprintf(full, sizeof(full), "%s.%s", section, name);
        jw_obj(&w, NULL);
        jw_str(&w, "name", full);
        jw_str(&w, "value", value);
        jw_str(&w, "source", source_name(src));
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

int cli_config_show(struct cli *c)
{
    const char *section, *name, *help, *last = "";
    char value[4200];
    enum option_source src;

    if (cli_json(c)) {
        show_json(c);
        return CLI_OK;
    }
    cli_out("# user file: %s\n# project file: %s\n", c->user_file ? c->user_file : "none",
           c->project_file ? c->project_file : "none");
    for (size_t i = 0;
         config_at(c->config, i, &section, &name, value, sizeof(value), &src, &help); i++) {
        if (strcmp(last, section) != 0)
            cli_out("\n[%s]\n", section);
        last = section;
        int n = cli_out("%s = %s", name, value);
        cli_out("%*s # %s\n", n < 32 ? 32 - n : 0, "", source_name(src));
    }
    if (c->config->n_keys)
        cli_out("\n[keys]\n");
    for (size_t i = 0; i < c->config->n_keys; i++)
        cli_out("%s = %s\n", c->config->keys[i].action, c->config->keys[i].keys);
    return CLI_OK;
}

static void note(void *ctx, const char *message)
{
    config_note(ctx, "%s", message);
}

void cli_config_look(const struct cli *c)
{
    struct err e = {0};
    char *dir = fs_place(FS_CONFIG, NULL);
    char *tools_file = dir ? fs_join(dir, "tools.conf") : NULL;
    char *models_file = dir ? fs_join(dir, "models.conf") : NULL;
    struct tools *tools = tools_new();
    struct models *models = models_new();

    if (c->host)
        c->host->check_screen(c->config, dir);
    if (dir && tools_load(tools, tools_file, note, c->config, &e) != 0)
        config_note(c->config, "%s", e.text);
    if (dir && models_load(models, models_file, note, c->config, &e) != 0)
        config_note(c->config, "%s", e.text);
    models_free(models);
    tools_free(tools);
    free(tools_file);
    free(models_file);
    free(dir);
}

int cli_config_check(struct cli *c)
{
    cli_config_look(c);
    for (size_t i = 0; i < c->config->n_notes; i++)
        cli_out("%s\n", c->config->notes[i]);
    if (c->config->n_notes == 0)
        cli_say(c, "nothing is wrong");
    return c->config->n_notes ? CLI_FAILED : CLI_OK;
}

int cli_config_example(struct cli *c)
{
    char *text = config_example();
    (void)c;
    cli_out("%s", text);
    free(text);
    return CLI_OK;
}

int cli_config_keys(struct cli *c)
{
    char *text = c->host->keys_table(c->config);
    cli_out("%s", text);
    free(text);
    return CLI_OK;
}
