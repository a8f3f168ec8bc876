/* The parts of the tool registry: its table, its life, its file. */
#ifndef CCT_CONFIG_TOOLS_PRIV_H
#define CCT_CONFIG_TOOLS_PRIV_H

#include <cct/config/tools.h>
#include <cct/util/arr.h>

struct tools {
    ARR(struct tool *) all;
};

/* --- tools_table.c --------------------------------------------------------------- */

struct tool_provider_row {
    unsigned bit;
    const char *name, *env[2];
};
extern const struct tool_provider_row tool_providers[];
extern const size_t tool_n_providers;

struct tool_adapter_row {
    const char *name;
    enum tool_mode mode;
};
extern const struct tool_adapter_row tool_adapters[];
extern const size_t tool_n_adapters;

/* Lists of words are written as one line. */
struct tool_row {
    const char *name, *label, *adapter, *template_id, *command, *ask_command;
    const char *env[8];
    unsigned needs;
    const char *needs_env; /* one of these variables is enough, too */
    const char *resume, *model_flag, *model, *models;
    const char *prompt_flag, *prompt_file, *skills_dir;
    bool qualified, local_only;
};
extern const struct tool_row tool_rows[];
extern const size_t tool_n_rows;

/* --- tools.c ---------------------------------------------------------------------- */

struct tool *tool_new(const char *name);
void tool_free(struct tool *t);

#endif
