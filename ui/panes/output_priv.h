/* The output pane: how items of a transcript become rows of cells. */
#ifndef CCT_UI_OUTPUT_PRIV_H
#define CCT_UI_OUTPUT_PRIV_H

#include <cct/ui/ui.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>

/* One row on the screen. */
enum row_part { ROW_HEAD, ROW_TEXT, ROW_FOLD, ROW_BLANK, ROW_ANSWER };
struct row {
    enum row_part part;
    uint32_t from, to; /* bytes of the item's text */
    int indent;        /* cells before the text */
    bool first;        /* carries the item's own begin: time, who, glyph */
};
struct rows {
    struct row *v;
    size_t n, cap;
};
/* How rows are made: changes invalidate what is cached. */
struct row_style {
    int w;
    bool wrap, times;
    struct ui *ui; /* whose keys the rows name */
};
/* How many rows the item takes, and the rows themselves. */
size_t rows_count(const struct item *it, const struct row_style *st, bool folded);
void rows_make(const struct item *it, const struct row_style *st, bool folded, struct rows *out);
bool rows_blank(const struct item *it); /* the end of a turn that went well: an empty row */
bool rows_foldable(const struct item *it);
bool rows_folded_by_default(const struct item *it);
/* Draw one row at (y, x); pan = cells cut at the left when unwrapped. */
void rows_draw(struct canvas *c, int y, int x, const struct item *it, const struct row *r,
               const struct row_style *st, int pan, int64_t now);

/* --- the view of one sandbox's transcript ------------------------------------- */

/* A row: item by number since the begin (transcript.base + index), row in it. */
struct pos {
    uint64_t item;
    size_t row;
};
struct cached {
    uint32_t rev;
    uint32_t rows; /* 0 = not known */
    int8_t fold;   /* -1 as by default, 0 open, 1 folded: the user's word */
};
enum procs_view { PROCS_AS_FITS, PROCS_SHOWN, PROCS_HIDDEN };
struct view {
    struct pos top, cur;
    bool follow;
    struct pos seen;          /* last row there was when follow ended */
    bool selecting;           /* from `anchor` to the cursor, whole lines */
    struct pos anchor;
    ARR(struct cached) cache; /* per item, cache_base is the first one's number */
    uint64_t cache_base;
    struct row_style style;   /* for which the cache holds */
    bool going;               /* to the place of an event, as soon as it is loaded */
    uint64_t go_offset;
    uint32_t go_index;
    uint32_t go_loads;        /* the transcript's, when it was asked for last */
    int go_tries;
    bool to_begin;            /* as soon as it is loaded */
    int seek;                 /* a search goes on in older (-1) or newer (1) items, asked for */
    uint64_t seek_offset;     /* those beyond this key have not been looked at */
    uint32_t seek_index;
    uint32_t seek_loads;
    int seek_tries, seek_empty;
    uint32_t resets;          /* the transcript's, for which positions hold */
    uint32_t filled_resets, filled_loads; /* the transcript's, when more were asked for last */
    size_t filled_n;                      /* because those fill no screen */
    uint64_t top_offset, cur_offset; /* keys of the items there, to find them again after that */
    uint32_t top_index, cur_index;
    int pan;
    bool raw;                 /* the raw stream in its place */
    enum procs_view procs;    /* the list of processes in this place */
    int proc_pid, proc_page;  /* of the cursor; rows drawn last */
    size_t proc_at, proc_top;
};
/* output_raw.c: the raw stream of one sandbox. */
struct rawview {
    struct ui *ui;     /* told when bytes came */
    uint64_t of, req;  /* the sandbox, 0: none; what brings its bytes, 0: that has ended */
    bool stood;        /* nothing could come since it ended */
    struct buf text;   /* cleaned lines, up to `whole` with their ends */
    size_t whole;
    struct buf begun;  /* of the last line, as it came */
    size_t top;        /* lines from the end */
};
struct output {
    struct ui *ui;
    struct rawview raw;
    struct map *views;        /* sandbox id -> struct view */
    bool wrap, times;
    bool bare;                /* for the terminal's copying: no time stamps */
    bool searching;
    struct inputline search;
    char *pattern;
    struct rows scratch;
    int y, h, w;              /* of the text in the pane, as drawn last */
    uint64_t seen;
    char title[160], note[256];
};

/* output_steps.c: how far a sandbox is that is being made, or which step failed; rows used. */
int steps_draw(const struct sandbox *s, struct canvas *c, struct rect r);

/* output_title.c: what stands in the frame. */
const char *output_title(struct ui *ui, void *state);
const char *output_note(struct ui *ui, void *state);

/* output_view.c: positions and the rows they count. */
void view_set_style(struct view *v, const struct output *o);
struct cached *view_cached(struct view *v, const struct transcript *t, size_t i);
bool view_folded(const struct cached *c, const struct item *it);
struct pos view_clamp(struct view *v, const struct transcript *t, struct pos p);
struct pos view_move(struct view *v, const struct transcript *t, struct pos p, long by);
struct pos view_last(struct view *v, const struct transcript *t);
bool pos_before(struct pos a, struct pos b);
/* Rows that came since follow ended. */
uint64_t view_fresh(struct view *v, const struct transcript *t);
/* The rows of item number `item` change by a fold: what was seen of it stays seen. */
void view_fold_changed(struct view *v, uint64_t item);
uint64_t view_rows_after(struct view *v, const struct transcript *t, struct pos p);
uint64_t view_rows(struct view *v, const struct transcript *t);
/* The picture's first row, given follow or the anchor. */
void view_settle(struct output *o, struct view *v, const struct transcript *t);
/* Where the view stands, by keys that hold when all is loaded anew. */
void view_keep_place(struct view *v, const struct transcript *t);
void view_end_follow(struct view *v, const struct transcript *t);

/* output_raw.c */
void raw_draw(struct ui *ui, struct output *o, struct canvas *c, struct rect r);
int raw_action(struct output *o, enum action a); /* UI_IGNORED: none of its own */
void raw_release(struct rawview *w);

/* The view of the selected sandbox, NULL without one. */
struct view *output_view(struct ui *ui, void *state);

/* processes.c: the list of processes in the place of the output. */
bool processes_wanted(const struct ui *ui, const struct view *v);
void processes_draw(struct ui *ui, struct view *v, struct canvas *c, struct rect r, bool focused);
int processes_action(struct ui *ui, struct view *v, enum action a);
const struct proc *processes_cursor(const struct ui *ui, struct view *v); /* or NULL */
const char *processes_note(struct ui *ui, char *dst, size_t size);

/* output_select.c: lines that are selected, and what of a transcript is copied. */
void select_ends(struct output *o, struct view *v, const struct transcript *t, struct pos *first,
                 struct pos *last);
size_t select_lines(struct output *o, struct view *v, const struct transcript *t);
int select_action(struct ui *ui, struct output *o, struct view *v, const struct transcript *t,
                  enum action a); /* UI_IGNORED: none of its own */

/* output_find.c: the search. */
void output_mark_matches(struct output *o, struct canvas *c, int y, int x,
                         const struct item *it, const struct row *r);
/* A view on its way to an event: there now, or older items are asked for. */
void output_going(struct ui *ui, struct view *v, const struct transcript *t);
/* All was replaced, perhaps by another part: the view stays at its place in the stream. */
void output_replaced(struct view *v, const struct transcript *t);
/* Next match from the cursor on in direction `step`, around the ends; where more is stored than is
 * held here it comes in pages, and output_seeking() goes on in them. */
int output_find_next(struct ui *ui, struct output *o, struct view *v,
                     const struct transcript *t, int step);
void output_seeking(struct ui *ui, struct output *o, struct view *v, const struct transcript *t);

#endif
