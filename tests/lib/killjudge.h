/* The judge of test_kill_model: reads the picture as a user does, and says of each kill whether it
 * was the one that the picture offered. */
#ifndef CCT_TESTS_KILLJUDGE_H
#define CCT_TESTS_KILLJUDGE_H

#include "screenscript.h"

enum { MAX_SEEN = 40 };

/* What the picture offers to end. */
enum kind { NOTHING, ONE, SEVERAL, ALL, REPORT };
struct seen_row {
    uint64_t row;
    char id[64];
    int64_t started_at;
};
struct shown {
    enum kind kind;
    char id[64], what[128]; /* one: id; all: whose sandboxes */
    long n;                 /* several, all: how many */
    char list[1024];        /* several: the lines that name them */
    struct seen_row rows[MAX_SEEN];
    size_t n_rows;
    bool number;            /* ... to be typed */
    /* what stood behind the picture */
    int64_t started_at;
    uint64_t set;
    size_t bad;
    char account[64];
};
struct run {
    struct script s;
    uint64_t seed, rng;
    struct shown shown;
    bool on_screen;       /* the picture reached the terminal */
    key_code key;         /* being handled, 0 = none */
    bool own;             /* ... and it came by itself */
    char typed[512];      /* digits since the question was opened */
    size_t n_typed;
    int at_once;          /* K was pressed where no question is wanted */
    struct buf story;     /* what happened, for the report of a failure */
    long kills, marked, confirms, retries, dialogs, offers;
    char wrong[256];
};

/* Reads what the picture offers into r->shown. */
void killjudge_look(struct run *r);
/* Looks at what the facade was told since the last time; what must not be comes to r->wrong. */
void killjudge_judge(struct run *r);

#endif
