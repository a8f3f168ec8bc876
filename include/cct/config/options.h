/* Options of cc-tui.conf, declared once: name, type, default, range or choices, help.
 * The parser, `config show`, cc-tui.conf.example and the README's table come from here.
 * Order of force: flag, environment (CC_TUI_SECTION_NAME), project file, user file,
 * default. */
#ifndef CCT_CONFIG_OPTIONS_H
#define CCT_CONFIG_OPTIONS_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(field, "section", "name", TYPE, "default", "min" or choices, "max", "help")
 * TYPE: INT BOOL STR ENUM SPAN (seconds: 90, 15m, 1h30m) SIZE (bytes: 64K, 1M, 2G) USD
 * (2.50) */
#define OPTIONS(X)                                                                             \
    X(theme, "screen", "theme", STR, "auto", "", "",                                           \
      "theme: auto (dark or light by the terminal), dark, light, mono, contrast-dark, "        \
      "contrast-light, dawn, dusk, forest, night, ocean or a file")                            \
    X(color, "screen", "color", ENUM, "auto", "auto never 16 256 rgb", "",                     \
      "colours: auto = as the terminal has them, none with NO_COLOR")                          \
    X(ascii, "screen", "ascii", BOOL, "off", "", "", "no character beyond ASCII")              \
    X(wrap, "screen", "wrap", BOOL, "on", "", "", "wrap long lines of the output")             \
    X(times, "screen", "time_stamps", BOOL, "on", "", "", "time stamps in the output")         \
    X(fps, "screen", "max_fps", INT, "0", "0", "60", "frames per second; 0 = 30, 10 over SSH") \
    X(ambiguous_wide, "screen", "ambiguous_wide", BOOL, "off", "", "",                         \
      "characters of ambiguous width take two cells")                                          \
    X(shell_leave, "screen", "shell_detach_key", STR, "^]", "", "",                            \
      "key that leaves a shell in a sandbox and lets it run: ^ and a letter, or none")          \
    X(mouse, "screen", "mouse", BOOL, "off", "", "", "mouse from the begin (Alt-m: on, off)")  \
    X(title, "screen", "title", BOOL, "on", "", "", "the window's title tells who asks you")   \
    X(sort, "screen", "sort", ENUM, "made", "made name agent state doing left age cost", "",   \
      "column by which the list is sorted at the start")                                       \
    X(warn_left, "screen", "warn_left", SPAN, "5m", "0", "86400",                             \
      "time left that is marked in the list")                                                  \
    X(copy_command, "copy", "command", STR, "", "", "",                                        \
      "command that gets what is copied on its standard input, such as wl-copy")               \
    X(copy_channel, "copy", "channel", ENUM, "auto", "auto tmux osc52 file", "",               \
      "way to the clipboard where there is no command")                                        \
    X(notify_asks, "notify", "asks", STR, "bell osc", "", "",                                  \
      "an agent asks you: some of none, mark (in the list), bell, osc, hook")                  \
    X(notify_finished, "notify", "finished", STR, "mark", "", "",                              \
      "an agent has finished its turn")                                                        \
    X(notify_error, "notify", "error", STR, "bell osc", "", "",                                \
      "a sandbox or its agent failed")                                                         \
    X(notify_ending, "notify", "ending", STR, "mark", "", "",                                  \
      "a sandbox has only screen.warn_left of its time left")                                  \
    X(notify_build, "notify", "build", STR, "mark", "", "",                                    \
      "a template's build has ended")                                                          \
    X(notify_budget, "notify", "budget", STR, "bell osc", "", "",                              \
      "a budget is nearly or all used up, where budget.action is not none")                    \
    X(notify_osc, "notify", "osc", ENUM, "auto", "auto none 9 777 99", "",                     \
      "how the terminal is told of a notification")                                            \
    X(notify_hook, "notify", "hook", STR, "", "", "",                                          \
      "command for the channel hook; CC_TUI_EVENT and others tell it what there is")           \
    X(timeout, "sandbox", "timeout", SPAN, "15m", "15", "86400", "timeout of a new sandbox")   \
    X(at_end, "sandbox", "at_end", ENUM, "kill", "kill pause", "",                             \
      "what happens when the time is up")                                                      \
    X(tool, "sandbox", "tool", STR, "", "", "", "tool of a new sandbox; empty = last used")    \
    X(project, "sandbox", "project", STR, "", "", "", "current project; empty: the one used last") \
    X(kill_all_confirm, "sandbox", "kill_all_confirm", ENUM, "count", "always count never",    \
      "", "always = type the number, count = y below ten, never = at once")                    \
    X(kill_all_grace, "sandbox", "kill_all_grace", INT, "0", "0", "10",                        \
      "seconds in which u calls a kill-all off")                                               \
    X(vault_idle_lock, "sandbox", "vault_idle_lock", SPAN, "0", "0", "86400",                  \
      "time without a key press after which stored keys want their passphrase again; 0 = never") \
    X(poll, "net", "poll", INT, "3", "2", "60", "seconds between two lists while visible")     \
    X(ca_file, "net", "ca_file", STR, "", "", "", "private CA certificates (PEM)")             \
    X(local_network, "local", "network", ENUM, "host", "host private", "",                     \
      "sandboxes of the local provider: host = share this machine's network, private = "       \
      "each its own (package passt)")                                                          \
    X(retention, "store", "retention_days", INT, "30", "0", "3650",                            \
      "days that an ended sandbox's transcript is kept; 0 = for ever")                         \
    X(max_store, "store", "max_size", SIZE, "2G", "0", "", "raw output kept in all; 0 = all")  \
    X(vacuum, "store", "vacuum", BOOL, "on", "", "", "give free pages back to the disk")       \
    X(budget_day, "budget", "day", USD, "0", "0", "1000000",                                   \
      "USD that a day may cost, sandboxes and agents together; 0 = no budget")                 \
    X(budget_week, "budget", "week", USD, "0", "0", "1000000",                                 \
      "the same for a week, from Monday")                                                      \
    X(budget_month, "budget", "month", USD, "0", "0", "1000000", "the same for a month")       \
    X(budget_warn, "budget", "warn", INT, "80", "1", "100",                                    \
      "percent of a budget at which it is told once that it goes to its end")                  \
    X(budget_action, "budget", "action", ENUM, "none", "none notify pause-idle", "",           \
      "none = budgets are told in the header and the events alone, notify = and as "           \
      "notify.budget says, pause-idle = and when one is used up, sandboxes of yours that "     \
      "have been idle for 5 minutes are paused, but for protected ones")                       \
    X(log_level, "log", "level", ENUM, "info", "debug info warn error", "", "what is logged")

enum option_type { OPT_INT, OPT_BOOL, OPT_STR, OPT_ENUM, OPT_SPAN, OPT_SIZE, OPT_USD };
enum option_source { OPT_DEFAULT, OPT_USER, OPT_PROJECT, OPT_ENV, OPT_FLAG };

struct options {
#define OPT_FIELD_INT int
#define OPT_FIELD_BOOL bool
#define OPT_FIELD_STR char *
#define OPT_FIELD_ENUM char *
#define OPT_FIELD_SPAN int
#define OPT_FIELD_SIZE int64_t
#define OPT_FIELD_USD double
#define OPTION_FIELD(f, sec, name, type, def, min, max, help) OPT_FIELD_##type f;
    OPTIONS(OPTION_FIELD)
#undef OPTION_FIELD
    enum option_source source[64]; /* by index in the table */
};
/* [keys] lines are kept for the screen: action and keys. */
struct key_line {
    char *action, *keys;
    char where[160]; /* "file:line" */
};
struct config {
    struct options o;
    struct key_line *keys;
    size_t n_keys;
    char **notes; /* warnings: "cc-tui.conf:12: unknown key 'thme' (did you mean 'theme'?)" */
    size_t n_notes;
};
/* Defaults, then the user's file, the project's file (never commands or base URLs from
 * it), the environment. Unknown key or bad value = a note, the old value stays. */
void config_load(struct config *c, const char *user_file, const char *project_file);
void config_release(struct config *c);
/* One more note; at most 100 are kept. */
void config_note(struct config *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set one by "section.name" or "name" (a flag). */
int config_set(struct config *c, const char *name, const char *value, enum option_source src,
               struct err *e);
/* "2.50", "$10": digits with at most one point. */
bool config_usd(const char *text, double *out);
/* All defaults commented out, with help: the shipped example file. New string. */
char *config_example(void);
/* The options as a Markdown table (the README's). New string. */
char *config_table(void);
/* Name, value as text and source of option i; false past the end. */
bool config_at(const struct config *c, size_t i, const char **section, const char **name,
               char *value, size_t size, enum option_source *src, const char **help);

#endif
