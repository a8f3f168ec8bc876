/* An hour of work in a few files: soak.c runs it and judges, monkey.c presses keys, meter.c
 * measures, fleet.c keeps agents and their work coming, truth.c compares what cc-tui says with
 * what is so. One process, one thread; every wait reads what the screen sends meanwhile. */
#ifndef CCT_TESTS_SOAK_H
#define CCT_TESTS_SOAK_H

#include "../lib/ptyrig.h"

#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>

enum { ANSWERS_MS = 2000, BIG_H = 40, BIG_W = 120 };

/* What `cc-tui ls --json` says of a sandbox. */
struct box {
    char id[64], session[64], name[140], tool[40], state[16], agent[24];
};
struct sample {
    double at_s; /* since the start */
    long rss_kb, anon_kb, provider_kb;
    int fds, threads, cells; /* of the screen */
};
enum probe { P_LETTER, P_ROW, P_HELP, P_PANEL, P_OPEN, P_COUNT };
struct job { /* a command in the background */
    pid_t pid;
    int64_t since_ms;
    char what[24];
};

struct soak {
    struct ptyrig rig;
    char *dir, *out; /* its home, removed at the end; what is kept */
    char *cctui;     /* the program */
    const char *local;
    uint64_t seed, random;
    double minutes, warm_s;
    int agents;
    bool real; /* the CLIs themselves are there, too */
    int64_t t0_ms;
    ARR(struct box) boxes; /* the last list */
    ARR(struct job) jobs;
    ARR(struct sample) samples;
    ARR(double) ms[P_COUNT];
    double worst_settle_ms;
    long voids, keys, actions, messages, made, redraws, compared, tags, kill_alls;
    long failures;
    uint64_t serial;       /* of messages with numbered lines */
    ARR(char *) suspects;  /* ids that worked without output at the last look */
    pid_t provider;
};

/* soak.c */
uint64_t soak_random(struct soak *s, uint64_t below); /* 0 .. below-1 */
bool soak_chance(struct soak *s, int percent);
double soak_seconds(const struct soak *s); /* since the start */
/* A finding: told, counted, with the screen as it is. */
void soak_fail(struct soak *s, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void soak_say(struct soak *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* `cc-tui ARGUMENTS` by a shell: to its end, its stdout into *out (NULL: dropped); the status. */
int soak_run(struct soak *s, struct buf *out, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* ... in the background. */
void soak_begin(struct soak *s, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void soak_reap(struct soak *s);

/* meter.c */
void meter_sample(struct soak *s);
/* Growth by least squares after the warm-up, in MB an hour; of one column, of the least of each
 * window of so many seconds (0: of all). */
double meter_slope(const struct soak *s, double window_s, long (*column)(const struct sample *v));
/* ... of those samples alone at which the screen had its most usual size: a larger one takes some
 * 1 MB more, which is no growth. */
double meter_slope_at_size(const struct soak *s, long (*column)(const struct sample *v));
#define METER_WINDOW_S 120
long meter_rss(const struct sample *v);
long meter_anon(const struct sample *v);
/* Of all probes' latencies, or of one kind's (P_COUNT: all): the part q lies below. */
double meter_quantile(const struct soak *s, enum probe p, double q, size_t *n);
void meter_write(const struct soak *s);

/* monkey.c */
void monkey_press(struct soak *s, const char *keys);
/* To the list, out of everything. False: the program does not answer. */
bool monkey_home(struct soak *s);
void monkey_probe(struct soak *s);
void monkey_act(struct soak *s); /* one thing that a person does */
void monkey_size(struct soak *s, int h, int w);
/* Is what stands there what the program thinks it drew? */
void monkey_redraw(struct soak *s);

/* fleet.c */
void fleet_configure(struct soak *s);
void fleet_list(struct soak *s);
void fleet_fill(struct soak *s);  /* as many as there should be */
void fleet_work(struct soak *s);  /* something to do for some of them */
bool fleet_rest(struct soak *s);  /* all come to an end of what they do */

/* truth.c */
void truth_look(struct soak *s); /* during the run */
void truth_end(struct soak *s);

#endif
