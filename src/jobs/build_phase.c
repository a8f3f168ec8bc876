/* The phases of a build, out of the lines that open them:
 * `[CACHED ][base|builder i/N|resize-disk|finalize|optimize] text [hash]`. What a phase
 * puts out has [stdout] or [stderr] behind the name. The text is advisory. */
#include <cct/jobs/build_watch.h>

#include <cct/util/str.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum build_phase_kind kind;
} phases[] = {{"base", PHASE_BASE},
              {"resize-disk", PHASE_RESIZE},
              {"finalize", PHASE_FINALIZE},
              {"optimize", PHASE_OPTIMIZE}};

static bool by_name(const char *s, size_t len, struct build_phase *p)
{
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        if (strlen(phases[i].name) == len && strncmp(phases[i].name, s, len) == 0) {
            p->kind = phases[i].kind;
            return true;
        }
    return false;
}

static bool digits(const char **s, int *out)
{
    int64_t v = 0;
    const char *p = *s;

    for (; *p >= '0' && *p <= '9' && v < 100000; p++)
        v = v * 10 + (*p - '0');
    if (p == *s || v < 1 || v > 99999)
        return false;
    *out = (int)v;
    *s = p;
    return true;
}

/* "builder 3/10" */
static bool by_number(const char *s, size_t len, struct build_phase *p)
{
    const char *at = s + 8;

    if (len < 11 || strncmp(s, "builder ", 8) != 0 || !digits(&at, &p->step) || *at++ != '/' ||
        !digits(&at, &p->steps) || at != s + len)
        return false;
    p->kind = PHASE_STEP;
    return true;
}

/* Up to the layer's mark in brackets at the end. */
static void take_title(const char *s, struct build_phase *p)
{
    size_t len = strcspn(s, "\r\n");
    const char *open = len && s[len - 1] == ']' ? memrchr(s, '[', len) : NULL;

    if (open && open > s && open[-1] == ' ' && strspn(open + 1, "0123456789abcdef") ==
                                                  (size_t)(s + len - 1 - (open + 1)))
        len = (size_t)(open - s) - 1;
    if (len >= sizeof(p->title)) {
        len = sizeof(p->title) - 1;
        while (len && ((unsigned char)s[len] & 0xC0) == 0x80)
            len--;
    }
    memcpy(p->title, s, len);
    p->title[len] = '\0';
}

bool build_phase_parse(const char *message, struct build_phase *p)
{
    const char *s = message, *end;
    struct build_phase found = {0};

    if (!s)
        return false;
    if (str_starts(s, "CACHED ")) {
        found.cached = true;
        s += 7;
    }
    end = *s == '[' ? strchr(s, ']') : NULL;
    if (!end || end[1] != ' ' || str_starts(end + 2, "[stdout]") || str_starts(end + 2, "[stderr]"))
        return false;
    if (!by_name(s + 1, (size_t)(end - s - 1), &found) &&
        !by_number(s + 1, (size_t)(end - s - 1), &found))
        return false;
    take_title(end + 2, &found);
    *p = found;
    return true;
}

bool build_phase_of_step(const char *step, struct build_phase *p)
{
    struct build_phase found = {0};
    const char *at = step;

    if (!step)
        return false;
    if (!by_name(step, strlen(step), &found)) {
        if (!digits(&at, &found.step) || *at)
            return false;
        found.kind = PHASE_STEP;
    }
    *p = found;
    return true;
}

void build_phase_text(const struct build_phase *p, char *dst, size_t size)
{
    dst[0] = '\0';
    if (p->kind == PHASE_STEP && p->steps)
        snprintf(dst, size, "step %d of %d", p->step, p->steps);
    else if (p->kind == PHASE_STEP)
        snprintf(dst, size, "step %d", p->step);
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        if (phases[i].kind == p->kind)
            str_copy(dst, size, phases[i].name);
}
