/* Colour roles and themes. A theme file has `role = fg [bg] [attrs]` lines; what it
 * leaves out is inherited from the built-in theme; 24-bit degrades to 256, 16, 8, mono.
 * State is never colour alone: a glyph and a word stand beside it. */
#ifndef CCT_UI_THEME_H
#define CCT_UI_THEME_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(ROLE, "config name", "fg [bg] [attrs] of the built-in theme", dump letter) */
#define THEME_ROLES(X)                                                                         \
    X(TEXT, "text", "default", '.')                                                            \
    X(DIM, "dim", "default dim", 'd')                                                          \
    X(TITLE, "title", "default bold", 't')                                                     \
    X(RULE, "rule", "default dim", '-')                                                        \
    X(RULE_FOCUS, "rule-focus", "cyan bold", '=')                                              \
    X(HEADER, "header", "default bold", 'h')                                                   \
    X(CURSOR, "cursor", "default reverse", '>')                                                \
    X(MARKED, "marked", "yellow bold", '+')                                                    \
    X(CREATING, "creating", "cyan", 'c')                                                       \
    X(WORKING, "working", "green", 'w')                                                        \
    X(ASKS, "asks", "yellow bold", '?')                                                        \
    X(IDLE, "idle", "default", 'i')                                                            \
    X(PAUSED, "paused", "blue", 'p')                                                           \
    X(ERROR, "error", "red bold", '!')                                                         \
    X(KILLED, "killed", "default dim", 'x')                                                    \
    X(YOU, "you", "cyan bold", 'y')                                                            \
    X(AGENT, "agent", "green bold", 'a')                                                       \
    X(TOOL, "tool", "magenta", '$')                                                            \
    X(THINKING, "thinking", "default dim italic", 'k')                                         \
    X(NOTICE, "notice", "yellow", 'n')                                                         \
    X(SYSTEM, "system", "blue", 's')                                                           \
    X(MATCH, "match", "black yellow", 'm')                                                     \
    X(INPUT, "input", "default", 'I')                                                          \
    X(PROMPT, "prompt", "cyan bold", 'P')                                                      \
    X(HINT, "hint", "default dim", 'H')                                                        \
    X(STATUS, "status", "default", 'S')                                                        \
    X(STATUS_WARN, "status-warn", "yellow bold", 'W')                                          \
    X(STATUS_BAD, "status-bad", "red bold", 'B')                                               \
    X(DIALOG, "dialog", "default", 'D')                                                        \
    X(DANGER, "danger", "red bold", 'X')                                                       \
    X(FIELD, "field", "default underline", 'f')                                                \
    X(FIELD_FOCUS, "field-focus", "default reverse", 'F')                                      \
    X(FIELD_BAD, "field-bad", "red underline", 'E')

enum theme_role {
#define THEME_ENUM(id, name, def, letter) ROLE_##id,
    THEME_ROLES(THEME_ENUM)
#undef THEME_ENUM
        ROLE_COUNT
};
struct theme_style {
    uint32_t fg, bg; /* TEXT_COLOR_DEFAULT, palette index, TEXT_COLOR_RGB|rgb */
    uint16_t flags;  /* TEXT_BOLD ... */
};
struct theme {
    char name[32];
    struct theme_style roles[ROLE_COUNT];
};
/* "dark": 16 palette colours and the terminal's own background. */
void theme_builtin(struct theme *t);
/* Name of the i-th theme that is built in, NULL past the end. */
const char *theme_shipped(size_t i);
/* By name: NAME.theme in the folder "themes" of `dir`, else built in; "auto" is
 * dark. A role without a background has the text's. Problems
 * (unknown role, bad colour) are told with file:line; the rest of the file counts. */
int theme_load(struct theme *t, const char *name, const char *dir, struct err *e);
int theme_parse(struct theme *t, const char *text, size_t len, const char *file, struct err *e);
const char *theme_role_name(enum theme_role r);
char theme_role_letter(enum theme_role r);
/* RGB of a colour that is not the terminal's default; of the 16 first ones it is a guess. */
uint32_t theme_rgb(uint32_t color);
/* (L1 + 0.05) / (L2 + 0.05) of relative luminances, from 1 to 21. */
double theme_contrast(uint32_t rgb_a, uint32_t rgb_b);

/* How many colours are used: by the configuration's word, else --no-color, else NO_COLOR, else
 * what the terminal has. More than that cannot be forced: no sequences for it are known. */
enum theme_color { THEME_MONO, THEME_16, THEME_256, THEME_RGB };
struct theme_wish {
    const char *word;            /* "auto" "never" "16" "256" "rgb"; NULL = auto */
    bool no_color_flag;
    bool truecolor;              /* COLORTERM says so */
    const char *no_color;        /* NO_COLOR; NULL = not set */
};
enum theme_color theme_color_level(const struct theme_wish *w, int terminal_colors, bool rgb);
/* Nearest of 256 or 16 palette colours to an RGB. */
int theme_to_256(uint32_t rgb);
int theme_to_16(uint32_t color);

#endif
