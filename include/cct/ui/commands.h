/* Commands of the palette that want words beside their name, or have no key. Main thread. */
#ifndef CCT_UI_COMMANDS_H
#define CCT_UI_COMMANDS_H

#include <cct/ui/ui.h>

/* X(ID, "name", "what may follow", whether it changes anything, "help") */
#define COMMANDS(X)                                                                            \
    X(PAUSE_IDLE, "pause all idle", "[TIME]", true,                                            \
      "pause every sandbox whose agent is idle for longer than TIME (5m)")                     \
    X(PROJECT, "project", "NAME", false, "switch to the project")                              \
    X(SORT, "sort by", "COLUMN", false, "sort the list by the column")                         \
    X(FILTER, "filter", "[WORDS]", false,                                                      \
      "narrow the list: words, state:running, agent:claude, -is:foreign; none: all")           \
    X(FILTER_USE, "use filter", "NAME", false, "narrow the list to what was kept as NAME")      \
    X(FILTER_KEEP, "keep filter", "NAME [WORDS]", true,                                        \
      "keep WORDS, or what the list is narrowed to, as NAME")                                  \
    X(FILTER_DROP, "drop filter", "NAME", true, "forget the filter NAME")                      \
    X(SET, "set", "OPTION VALUE", false, "change an option until cc-tui ends")                 \
    X(RELOAD, "reload", "", false, "read the configuration again")                             \
    X(ALL_PROJECTS, "all projects", "", false, "show the sandboxes of all projects")           \
    X(THEME, "theme", "NAME", false, "colours: one of the themes, or a file of yours")         \
    X(FILE, "file", "PATH", false, "show a file of the sandbox that is shown")                 \
    X(SAY, "@", "NAME TEXT", true, "send TEXT to the sandbox NAME")                            \
    X(SHELL, "!", "COMMAND", true, "run COMMAND in a shell here, not in a sandbox")

enum command {
#define COMMAND_ENUM(id, name, args, changes, help) COMMAND_##id,
    COMMANDS(COMMAND_ENUM)
#undef COMMAND_ENUM
        COMMAND_COUNT
};
const char *command_name(enum command c);
const char *command_args(enum command c);
const char *command_help(enum command c);
/* Its agent can be told something, by COMMAND_SAY. */
bool command_listens(const struct model *m, const struct sandbox *s);
/* The i-th line that it suggests ("project acme/web"; "set screen.wrap on ", which goes on),
 * false behind the last one. */
/* What is said of that line. */
const char *command_choice_help(struct ui *ui, enum command c, size_t i);
bool command_choice(struct ui *ui, enum command c, size_t i, char *dst, size_t size);
/* Runs the line when it begins with a command's name and has what it wants; UI_IGNORED: it is
 * none. What is wrong with it is said in the status line. */
int command_run(struct ui *ui, const char *line);

#endif
