/* What is so: the sandboxes' own files, which the local provider keeps where we can read them.
 * Held against what cc-tui says and has stored. */
#include "soak.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_S = 90, PREFIXES = 3 };

static char *log_path(const struct soak *s, const struct box *b)
{
    return xasprintf("%s/local/boxes/%s/home/.cc-tui/%s/out.log", s->dir, b->id, b->session);
}

/* It is the sandbox's user's: fs_read() would refuse it. */
static char *read_log(const char *path, size_t *len)
{
    FILE *f = fopen(path, "r");
    struct buf b = BUF_INIT;
    for (size_t n = 1; f && n > 0;) {
        n = fread(buf_reserve(&b, 65536), 1, 65536, f);
        b.len += n;
    }
    if (!f)
        return NULL;
    fclose(f);
    return buf_detach(&b, len);
}

/* The bytes that are stored begin as the sandbox's own do; whole: they are all. */
static void compare_bytes(struct soak *s, const struct box *b, bool whole)
{
    struct buf stored = BUF_INIT;
    size_t len = 0;
    char *path = log_path(s, b);
    int rc = soak_run(s, &stored, "logs --raw %s", b->id);
    char *own = read_log(path, &len); /* after: it only grows */
    size_t n = stored.len < len ? stored.len : len, same = 0;
    while (own && same < n && own[same] == stored.p[same])
        same++;
    if (!own || rc)
        soak_say(s, "%s (%s) is gone: nothing to compare with", b->name, b->id);
    else if (stored.len > len || same < n || (whole && stored.len < len))
        soak_fail(s, "lost", "%s (%s): %zu bytes stored, %zu in the sandbox, the first %zu equal",
                  b->name, b->id, stored.len, len, same);
    else
        s->compared++;
    free(own);
    free(path);
    buf_release(&stored);
}

/* --- numbered lines -------------------------------------------------------------------- */

/* How often each TAGn-i stands in a text, and its first i's in a row. */
struct tag {
    unsigned long serial, last, lines;
};

static size_t read_tags(const char *text, struct tag *v, size_t max)
{
    size_t n = 0;
    for (const char *p = strstr(text, "TAG"); p; p = strstr(p + 3, "TAG")) {
        char *end;
        unsigned long serial = strtoul(p + 3, &end, 10), i;
        size_t k = n;
        if (*end != '-' || end[1] < '0' || end[1] > '9')
            continue;
        i = strtoul(end + 1, NULL, 10);
        while (k > 0 && v[k - 1].serial != serial)
            k--;
        if (k == 0 && n < max)
            v[(k = ++n) - 1] = (struct tag){.serial = serial};
        if (k == 0)
            continue;
        v[k - 1].last = i > v[k - 1].last ? i : v[k - 1].last;
        v[k - 1].lines++;
    }
    return n;
}

/* What a person reads: each line of each answer that the sandbox has, once. */
static void compare_lines(struct soak *s, const struct box *b)
{
    enum { TAGS = 4000 };
    static struct tag own[TAGS], told[TAGS];
    struct buf logs = BUF_INIT;
    size_t len;
    char *path = log_path(s, b), *text = read_log(path, &len);
    int rc = soak_run(s, &logs, "logs %s", b->id);
    size_t n = text ? read_tags(text, own, TAGS) : 0, m = read_tags(buf_str(&logs), told, TAGS);
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t k = 0;
        while (k < m && told[k].serial != own[i].serial)
            k++;
        if (k == m || told[k].last != own[i].last || told[k].lines != own[i].last)
            soak_fail(s, "lines", "%s (%s), TAG%lu: %lu lines were printed, %lu are told, to %lu",
                      b->name, b->id, own[i].serial, own[i].last, k < m ? told[k].lines : 0,
                      k < m ? told[k].last : 0);
        else
            s->tags++;
    }
    free(text);
    free(path);
    buf_release(&logs);
}

/* --- during the run -------------------------------------------------------------------- */

static bool suspected(struct soak *s, const char *id)
{
    for (size_t i = 0; i < s->suspects.n; i++)
        if (str_eq(s->suspects.v[i], id))
            return true;
    return false;
}

/* No work that we give is silent for so long. */
static bool is_silent(struct soak *s, const struct box *b)
{
    struct stat st;
    char *path = log_path(s, b);
    bool silent = str_eq(b->state, "running") && str_eq(b->agent, "working") &&
                  stat(path, &st) == 0 && time(NULL) - st.st_mtime > QUIET_S;
    free(path);
    return silent;
}

void truth_look(struct soak *s)
{
    ARR(char *) now = ARR_INIT;
    fleet_list(s);
    for (size_t i = 0; i < s->boxes.n; i++) {
        const struct box *b = &s->boxes.v[i];
        bool odd = is_silent(s, b) || str_eq(b->state, "creating");
        if (odd && suspected(s, b->id))
            soak_fail(s, "stuck", "%s (%s) is %s, %s at two looks in a row, without a word",
                      b->name, b->id, b->state, b->agent);
        if (odd)
            *ARR_PUSH(&now) = xstrdup(b->id);
    }
    for (size_t i = 0; i < s->suspects.n; i++)
        free(s->suspects.v[i]);
    ARR_RELEASE(&s->suspects);
    memcpy(&s->suspects, &now, sizeof(now)); /* of the same shape */
    for (int i = 0; i < PREFIXES && s->boxes.n; i++)
        compare_bytes(s, &s->boxes.v[soak_random(s, s->boxes.n)], false);
}

/* --- the end --------------------------------------------------------------------------- */

static bool listed(const struct soak *s, const char *id)
{
    for (size_t i = 0; i < s->boxes.n; i++)
        if (str_eq(s->boxes.v[i].id, id))
            return true;
    return false;
}

/* The provider has what is listed, and nothing else. */
static void compare_boxes(struct soak *s)
{
    char *path = xasprintf("%s/local/boxes", s->dir);
    DIR *d = opendir(path);
    struct dirent *de;
    while (d && (de = readdir(d)))
        if (*de->d_name != '.' && !listed(s, de->d_name))
            soak_fail(s, "provider", "it has a sandbox %s that is not listed", de->d_name);
    if (d)
        closedir(d);
    for (size_t i = 0; i < s->boxes.n; i++) {
        char *box = xasprintf("%s/%s", path, s->boxes.v[i].id);
        if (access(box, F_OK) != 0)
            soak_fail(s, "provider", "%s (%s) is listed as %s, but gone", s->boxes.v[i].name,
                      s->boxes.v[i].id, s->boxes.v[i].state);
        free(box);
    }
    free(path);
}

/* What the screen's header counts is what the list has. */
static void compare_header(struct soak *s)
{
    size_t idle = 0;
    char text[40];
    for (size_t i = 0; i < s->boxes.n; i++)
        idle += str_eq(s->boxes.v[i].agent, "idle") && str_eq(s->boxes.v[i].state, "running");
    snprintf(text, sizeof(text), ". %zu idle", idle);
    if (idle && !rig_wait_row(&s->rig, 0, text, true, 15000))
        soak_fail(s, "screen", "the list has %zu idle agents, the screen does not", idle);
}

void truth_end(struct soak *s)
{
    static const int sizes[][2] = {{BIG_H, BIG_W}, {24, 80}, {60, 200}, {BIG_H, BIG_W}};
    if (!monkey_home(s))
        return;
    monkey_size(s, BIG_H, BIG_W);
    fleet_rest(s);
    monkey_home(s);
    for (size_t i = 0; i < s->boxes.n; i++) {
        compare_bytes(s, &s->boxes.v[i], true);
        compare_lines(s, &s->boxes.v[i]);
    }
    compare_boxes(s);
    compare_header(s);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        monkey_size(s, sizes[i][0], sizes[i][1]);
        monkey_redraw(s);
    }
}
