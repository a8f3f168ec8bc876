/* Shared by the files of src/model only. */
#ifndef CCT_MODEL_PRIV_H
#define CCT_MODEL_PRIV_H

#include <cct/model/model.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>

/* What model_counts() and its kin tell; of rows in view but for `elsewhere`. */
struct tally {
    size_t state[SB_STATE_COUNT];
    size_t asks, working, idle, unpriced, elsewhere;
    int64_t nano_usd; /* per hour: whole, so that what was added goes again without a rest */
};
struct model_priv {
    struct map *index;       /* sandbox id -> position + 1 in sandboxes */
    struct map *transcripts; /* sandbox id -> struct transcript */
    ARR(uint64_t) rest;      /* of those the ones that nobody looks at, longest ago first */
    uint64_t gone_rev;       /* the highest ones of those that are gone: a new one of the same */
    uint32_t gone_item_rev;  /* sandbox must not look like what it was */
    struct map *procs;       /* sandbox id -> struct procs */
    struct map *asks;        /* sandbox ids whose questions are known */
    size_t cap_sandboxes;
    struct tally tally;
    uint64_t changed[MODEL_CHANGES]; /* ids of the rows that changed last: a ring */
    uint64_t changes;        /* how many ever did */
    uint64_t shaped;         /* of them, when rows came, went or others were in view */
};

/* --- model_rows.c --- */
void model_rows_apply(struct model *m, struct ev_sandboxes *ev);
void model_rows_view(struct model *m); /* other ones are in view */
/* --- model.c, for it --- */
void model_forget(struct model *m, uint64_t sandbox);

/* Apply the operations of one EV_ITEMS; takes the items' memory over (the event keeps
 * empty ones). */
void transcript_apply(struct transcript *t, struct ev_items *ev);

#endif
