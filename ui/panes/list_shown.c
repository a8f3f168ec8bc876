/* Which rows are shown. What was found out of a row stays until it changes: with many rows a
 * change of one looks at that one. */
#include "list_priv.h"

#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <string.h>

enum place { OUT, LIVING, ENDED };

static unsigned char place_of(const struct shown *sh, const struct model *m,
                              const struct sandbox *s)
{
    if (!model_in_view(m, s) || (s->id != sh->stays && !filter_match(&sh->terms, s)))
        return OUT;
    return s->state == SB_KILLED ? ENDED : LIVING;
}

static unsigned char *place(const struct shown *sh, const struct model *m,
                            const struct sandbox *s)
{
    return &sh->places.v[s - m->sandboxes];
}

/* True where other rows are to be lined up than were. */
static bool place_all(struct shown *sh, const struct model *m)
{
    bool moved = sh->places.n != m->n_sandboxes || sh->shape != m->shape_rev;
    arr_grow((void **)&sh->places.v, &sh->places.cap, m->n_sandboxes, sizeof(*sh->places.v));
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        unsigned char now = place_of(sh, m, &m->sandboxes[i]);
        moved = moved || sh->places.v[i] != now;
        sh->places.v[i] = now;
    }
    sh->places.n = m->n_sandboxes;
    sh->shape = m->shape_rev;
    return moved;
}

static bool place_again(struct shown *sh, const struct model *m, const uint64_t *ids, size_t n)
{
    bool moved = false;
    for (size_t i = 0; i < n; i++) {
        const struct sandbox *s = model_sandbox(m, ids[i]);
        unsigned char now = s ? place_of(sh, m, s) : OUT;
        if (!s || *place(sh, m, s) == now)
            continue;
        *place(sh, m, s) = now;
        moved = true;
    }
    return moved;
}

/* Living ones first, then ended ones, each in the order that was asked for. */
static void line_up(struct shown *sh, const struct order *o, const struct model *m)
{
    ARR_CLEAR(&sh->ids);
    ARR_CLEAR(&sh->ended);
    for (size_t i = 0, n = order_count(o, m); i < n; i++) {
        const struct sandbox *s = order_at(o, m, i);
        if (!s || *place(sh, m, s) == OUT)
            continue;
        if (*place(sh, m, s) == ENDED)
            *ARR_PUSH(&sh->ended) = s->id;
        else
            *ARR_PUSH(&sh->ids) = s->id;
    }
    sh->living = sh->ids.n;
    for (size_t i = 0; i < sh->ended.n; i++)
        *ARR_PUSH(&sh->ids) = sh->ended.v[i];
}

void shown_update(struct shown *sh, const struct order *o, const struct model *m,
                  const char *filter, uint64_t stays)
{
    uint64_t ids[MODEL_CHANGES + 2];
    size_t n;
    bool few = model_changes(m, &sh->seen, ids, &n) && sh->places.n == m->n_sandboxes &&
               strcmp(sh->filter, filter) == 0;
    if (few && sh->stays != stays) {
        ids[n++] = sh->stays;
        ids[n++] = stays;
    }
    sh->stays = stays;
    if (!few) {
        str_copy(sh->filter, sizeof(sh->filter), filter);
        filter_parse(&sh->terms, filter);
    }
    bool moved = few ? place_again(sh, m, ids, n) : place_all(sh, m);
    if (moved || sh->ordered != o->rev)
        line_up(sh, o, m);
    sh->ordered = o->rev;
}

void shown_release(struct shown *sh)
{
    ARR_RELEASE(&sh->ids);
    ARR_RELEASE(&sh->ended);
    ARR_RELEASE(&sh->places);
}

size_t shown_at(const struct shown *sh, uint64_t id, size_t guess)
{
    if (guess < sh->ids.n && sh->ids.v[guess] == id)
        return guess;
    for (size_t i = 0; i < sh->ids.n; i++)
        if (sh->ids.v[i] == id)
            return i;
    return SIZE_MAX;
}

bool shown_has(const struct shown *sh, const struct model *m, uint64_t id)
{
    const struct sandbox *s = model_sandbox(m, id);
    return s && *place(sh, m, s) != OUT;
}
