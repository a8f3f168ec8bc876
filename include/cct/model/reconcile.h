/* The provider's complete list against our records: what changed. Pure; the net
 * thread runs it, nobody else decides that a sandbox is gone. */
#ifndef CCT_MODEL_RECONCILE_H
#define CCT_MODEL_RECONCILE_H

#include <cct/model/sandbox.h>

/* One entry of a listing, borrowed strings, already cleaned. */
struct listed {
    const char *sandbox_id, *template_id, *alias, *state_text;
    int64_t started_at, end_at;
    int cpu_count, memory_mb, disk_mb;
    const struct kv *meta;
    bool not_isolated;
};

struct reconcile_opts {
    int64_t now;            /* server time, wall ms */
    bool time_unknown;      /* now is only what the clock of this machine says */
    bool suspicious_empty;  /* caller saw an empty list where many were known */
};

/* Called for each record that changed or is new; `row` is the new value (owned by
 * the callee's table: it was changed in place or appended). */
typedef void (*reconcile_fn)(void *ctx, struct sandbox *row, bool is_new);

struct sandbox_table {
    struct sandbox *v;
    size_t n, cap;
};
/* Apply a complete listing. Rules: unknown ids become rows (foreign unless their
 * metadata says cc-tui); a record in SB_CREATING is matched by its mark; a listed
 * record takes state running/paused, times and sizes (another state text is kept as
 * `odd` and counts as running); a record that was up and is absent is first `unlisted`;
 * absent in the second list in a row it is SB_KILLED, for the reason of
 * reconcile_why(), unless it was vouched for within a minute. One whose time was up goes
 * at once. One that is listed again lives again. A paused one's end_at is its pause
 * time. */
void reconcile(struct sandbox_table *t, const struct listed *l, size_t n,
               const struct reconcile_opts *o, reconcile_fn fn, void *ctx);
/* Why a record that is gone is gone: GONE_HERE while a kill of ours runs (who kills has a
 * proof of his own), GONE_TIMEOUT only when the service's clock had passed end_at - 2 s,
 * GONE_EARLY when end_at is ahead (by the clock of this machine, when that is all there is)
 * and nobody is known to have killed it, else GONE_ELSEWHERE. */
enum sb_gone reconcile_why(const struct sandbox *s, const struct reconcile_opts *o);
/* Looked up by its id while lists lack it, and it is there: stays, still unlisted. */
void reconcile_vouch(struct sandbox *s, const struct listed *l, int64_t now);
/* A direct 404 for this record (after DELETE or GET): gone now. */
void reconcile_gone(struct sandbox *s, enum sb_gone why, int64_t now);

#endif
