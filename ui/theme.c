/* Themes: roles to styles, from the built-in table and from files. */
#include <cct/ui/theme.h>

#include <cct/text/clean.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char file_dark[] = {
#include "dark.theme.h"
};
static const unsigned char file_light[] = {
#include "light.theme.h"
};
static const unsigned char file_mono[] = {
#include "mono.theme.h"
};
static const unsigned char file_contrast_dark[] = {
#include "contrast-dark.theme.h"
};
static const unsigned char file_contrast_light[] = {
#include "contrast-light.theme.h"
};
static const unsigned char file_dawn[] = {
#include "dawn.theme.h"
};
static const unsigned char file_dusk[] = {
#include "dusk.theme.h"
};
static const unsigned char file_forest[] = {
#include "forest.theme.h"
};
static const unsigned char file_night[] = {
#include "night.theme.h"
};
static const unsigned char file_ocean[] = {
#include "ocean.theme.h"
};
#define SHIPPED(word, file) {word, file, sizeof(file)}
static const struct {
    const char *name;
    const unsigned char *text;
    size_t len;
} shipped[] = {
    SHIPPED("dark", file_dark),
    SHIPPED("light", file_light),
    SHIPPED("mono", file_mono),
    SHIPPED("contrast-dark", file_contrast_dark),
    SHIPPED("contrast-light", file_contrast_light),
    SHIPPED("dawn", file_dawn),
    SHIPPED("dusk", file_dusk),
    SHIPPED("forest", file_forest),
    SHIPPED("night", file_night),
    SHIPPED("ocean", file_ocean),
};

static const struct {
    const char *name, *def;
    char letter;
} roles[ROLE_COUNT] = {
#define THEME_ROW(id, name, def, letter) {name, def, letter},
    THEME_ROLES(THEME_ROW)
#undef THEME_ROW
};

static const char *const colors[16] = {
    "black",        "red",        "green",        "yellow",        "blue",
    "magenta",      "cyan",       "white",        "bright-black",  "bright-red",
    "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan",
    "bright-white"};
static const struct {
    const char *name;
    uint16_t flag;
} attrs[] = {{"bold", TEXT_BOLD},           {"dim", TEXT_DIM},
             {"italic", TEXT_ITALIC},       {"underline", TEXT_UNDERLINE},
             {"reverse", TEXT_REVERSE},     {"strike", TEXT_STRIKE}};

enum { MAX_THEME_BYTES = 64 << 10, XTERM_CUBE = 16, XTERM_GREY = 232 };

const char *theme_role_name(enum theme_role r)
{
    return (unsigned)r < ROLE_COUNT ? roles[r].name : "?";
}

char theme_role_letter(enum theme_role r)
{
    return (unsigned)r < ROLE_COUNT ? roles[r].letter : '?';
}

static bool parse_color(const char *s, uint32_t *out)
{
    if (strcmp(s, "default") == 0) {
        *out = TEXT_COLOR_DEFAULT;
        return true;
    }
    for (uint32_t i = 0; i < 16; i++)
        if (strcmp(s, colors[i]) == 0) {
            *out = i;
            return true;
        }
    if (s[0] == '#' && strlen(s) == 7 && strspn(s + 1, "0123456789abcdefABCDEF") == 6) {
        *out = TEXT_COLOR_RGB | (uint32_t)strtoul(s + 1, NULL, 16);
        return true;
    }
    int64_t n;
    if (str_to_i64(s, 0, 255, &n)) {
        *out = (uint32_t)n;
        return true;
    }
    return false;
}

static uint16_t parse_attr(const char *s)
{
    for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
        if (strcmp(s, attrs[i].name) == 0)
            return attrs[i].flag;
    return 0;
}

/* "fg [bg] [attrs]"; the word that makes no sense, or NULL. */
static const char *parse_style(char *text, struct theme_style *st)
{
    struct theme_style s = {TEXT_COLOR_DEFAULT, TEXT_COLOR_DEFAULT, 0};
    int n_colors = 0;
    char *save = NULL;
    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        uint32_t color;
        uint16_t attr = parse_attr(w);
        if (attr)
            s.flags |= attr;
        else if (n_colors < 2 && parse_color(w, &color))
            *(n_colors++ ? &s.bg : &s.fg) = color;
        else
            return w;
    }
    *st = s;
    return NULL;
}

void theme_builtin(struct theme *t)
{
    memset(t, 0, sizeof(*t));
    str_copy(t->name, sizeof(t->name), "dark");
    for (int i = 0; i < ROLE_COUNT; i++) {
        char text[64];
        str_copy(text, sizeof(text), roles[i].def);
        if (parse_style(text, &t->roles[i]))
            BUG("built-in style of role %s", roles[i].name);
    }
}

static int find_role(const char *name)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        if (strcmp(name, roles[i].name) == 0)
            return i;
    return -1;
}

static int parse_line(struct theme *t, char *line, const char *file, int no, struct err *e)
{
    char *hash = line[0] == '#' ? line : NULL;
    if (hash)
        *hash = 0;
    char *s = str_trim(line);
    if (!*s)
        return 0;
    char *eq = strchr(s, '=');
    if (!eq)
        return err_set(e, ERR_INVALID, "%s:%d: no '=' in the line", file, no);
    *eq = 0;
    char *name = str_trim(s);
    int role = find_role(name);
    if (role < 0) {
        const char *names[ROLE_COUNT];
        for (int i = 0; i < ROLE_COUNT; i++)
            names[i] = roles[i].name;
        int near = str_nearest(name, names, ROLE_COUNT);
        return err_set(e, ERR_INVALID, "%s:%d: unknown role '%s'%s%s%s", file, no, str_shown(name),
                       near >= 0 ? " (did you mean '" : "", near >= 0 ? names[near] : "",
                       near >= 0 ? "'?)" : "");
    }
    const char *bad = parse_style(str_trim(eq + 1), &t->roles[role]);
    if (bad)
        return err_set(e, ERR_INVALID, "%s:%d: '%s' is no colour and no attribute", file, no,
                       str_shown(bad));
    return 0;
}

int theme_parse(struct theme *t, const char *text, size_t len, const char *file, struct err *e)
{
    char *copy = xstrndup(text, len);
    int rc = 0, no = 0;
    char *save = copy;
    while (save) {
        char *line = strsep(&save, "\n");
        struct err le = {0};
        no++;
        /* the first problem is told; the rest of the file counts */
        if (parse_line(t, line, file, no, &le) && !rc) {
            rc = le.code;
            if (e)
                *e = le;
        }
    }
    free(copy);
    return rc;
}

/* A theme with a ground of its own has it everywhere. */
static void spread_background(struct theme *t)
{
    uint32_t bg = t->roles[ROLE_TEXT].bg;
    for (int i = 0; i < ROLE_COUNT; i++)
        if (t->roles[i].bg == TEXT_COLOR_DEFAULT)
            t->roles[i].bg = bg;
}

const char *theme_shipped(size_t i)
{
    return i < sizeof(shipped) / sizeof(shipped[0]) ? shipped[i].name : NULL;
}

static int load_file(struct theme *t, const char *dir, const char *name, struct err *e)
{
    char *path = xasprintf("%s/%s.theme", dir, name);
    size_t len;
    char *text = fs_read(path, MAX_THEME_BYTES, false, &len, e);
    int rc = ERR_NOTFOUND;
    if (text)
        rc = theme_parse(t, text, len, path, e);
    spread_background(t);
    free(text);
    free(path);
    return rc;
}

int theme_load(struct theme *t, const char *name, const char *dir, struct err *e)
{
    theme_builtin(t);
    if (str_eq(name, "auto")) /* what the terminal is like is not known here */
        name = "dark";
    if (strchr(name, '/') || !*name || strlen(name) > 31)
        return err_set(e, ERR_INVALID, "theme '%s': not a theme's name", str_shown(name));
    struct err fe = {0};
    if (dir) {
        char *themes = fs_join(dir, "themes");
        int rc = load_file(t, themes, name, &fe);
        free(themes);
        if (rc == 0 || fe.code != ERR_NOTFOUND) {
            str_copy(t->name, sizeof(t->name), name);
            if (e && rc)
                *e = fe;
            return rc;
        }
    }
    for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++)
        if (strcmp(shipped[i].name, name) == 0) {
            str_copy(t->name, sizeof(t->name), name);
            int rc = theme_parse(t, (const char *)shipped[i].text, shipped[i].len, name, e);
            spread_background(t);
            return rc;
        }
    return err_set(e, ERR_NOTFOUND,
                   "theme '%s' not found: use auto, dark, light, mono, contrast-dark, "
                   "contrast-light, dawn, dusk, forest, night, ocean or a NAME.theme file in the "
                   "themes folder of the config directory",
                   str_shown(name));
}

static uint32_t rgb_of_256(int i)
{
    static const uint32_t base[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                      0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                      0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};
    static const uint32_t step[6] = {0, 95, 135, 175, 215, 255};
    if (i < XTERM_CUBE)
        return base[i];
    if (i < XTERM_GREY) {
        int n = i - XTERM_CUBE;
        return step[n / 36] << 16 | step[n / 6 % 6] << 8 | step[n % 6];
    }
    uint32_t grey = (uint32_t)(8 + 10 * (i - XTERM_GREY));
    return grey << 16 | grey << 8 | grey;
}

uint32_t theme_rgb(uint32_t color)
{
    return color & TEXT_COLOR_RGB ? color & 0xFFFFFF : rgb_of_256((int)(color & 255));
}

static double luminance(uint32_t rgb)
{
    static const double weight[3] = {0.2126, 0.7152, 0.0722};
    double l = 0;
    for (int i = 0; i < 3; i++) {
        double c = (rgb >> (16 - 8 * i) & 255) / 255.0;
        l += weight[i] * (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return l;
}

double theme_contrast(uint32_t a, uint32_t b)
{
    double x = luminance(a), y = luminance(b);
    return x > y ? (x + 0.05) / (y + 0.05) : (y + 0.05) / (x + 0.05);
}

enum theme_color theme_color_level(const struct theme_wish *w, int terminal_colors, bool rgb)
{
    enum theme_color can = terminal_colors >= 256 ? (rgb ? THEME_RGB : THEME_256)
                           : terminal_colors >= 8 ? THEME_16
                                                  : THEME_MONO;
    if (can == THEME_MONO) /* no sequence for it is known */
        return THEME_MONO;
    if (str_eq(w->word, "never"))
        return THEME_MONO;
    if (str_eq(w->word, "16"))
        return THEME_16;
    if (str_eq(w->word, "256") || str_eq(w->word, "rgb")) {
        enum theme_color wish = str_eq(w->word, "rgb") ? THEME_RGB : THEME_256;
        return terminal_colors >= 256 ? wish : can;
    }
    bool off = w->no_color_flag || (w->no_color && *w->no_color);
    return off ? THEME_MONO : can;
}

static int nearest(uint32_t rgb, int from, int to)
{
    int best = from;
    long best_d = -1;
    for (int i = from; i < to; i++) {
        uint32_t c = rgb_of_256(i);
        long dr = (long)(c >> 16 & 255) - (long)(rgb >> 16 & 255);
        long dg = (long)(c >> 8 & 255) - (long)(rgb >> 8 & 255);
        long db = (long)(c & 255) - (long)(rgb & 255);
        long d = dr * dr * 3 + dg * dg * 4 + db * db * 2;
        if (best_d < 0 || d < best_d) {
            best_d = d;
            best = i;
        }
    }
    return best;
}

int theme_to_256(uint32_t rgb)
{
    return nearest(rgb & 0xFFFFFF, XTERM_CUBE, 256);
}

int theme_to_16(uint32_t color)
{
    if (color & TEXT_COLOR_RGB)
        return nearest(color & 0xFFFFFF, 0, 16);
    return color < 16 ? (int)color : nearest(rgb_of_256((int)(color & 255)), 0, 16);
}
