/* What happened to sandboxes, kept for 7 days: STATE/events.jsonl, one event a
 * line, private, appended without waiting for the disk. Only an index is in
 * memory; the text is read when asked for. A line that cannot be read is skipped.
 * Not secret, but the users' own: metadata is in it, variables and tokens are
 * not. One thread. */
#ifndef CCT_LOCAL_LIFELOG_H
#define CCT_LOCAL_LIFELOG_H

#include <cct/local/boxstore.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIFELOG_DAYS 7
#define LIFELOG_MAX 4000u            /* events; the oldest quarter goes first */
#define LIFELOG_BYTES_MAX (8u << 20) /* of the file, likewise */
#define LIFELOG_LINE_MAX (16u << 10) /* a longer one loses its metadata */

/* The one team of a local provider, as the API shows it. */
#define LIFELOG_TEAM "6c6f6361-6c00-4000-8000-000000000001"
/* Build of templates that were never built. */
#define LIFELOG_BUILD "00000000-0000-4000-8000-000000000000"

enum life { LIFE_CREATED, LIFE_UPDATED, LIFE_PAUSED, LIFE_RESUMED, LIFE_KILLED, LIFE_N };

struct lifelog;
struct cJSON;

struct life_event {
    enum life type;
    int64_t ms; /* wall */
    char id[24];
};

/* Opens or makes the file; events older than 7 days before `now_ms` are dropped.
 * NULL with *e set. */
struct lifelog *lifelog_open(const char *path, int64_t now_ms, struct err *e);
void lifelog_free(struct lifelog *l);
/* `why` of a pause or an end: "request", "timeout", "ended", "stop"; else NULL. A
 * failure is logged. */
void lifelog_add(struct lifelog *l, const struct sbox_rec *r, enum life type, const char *why,
                 int64_t now_ms);

/* The events in the order they came, oldest first. Borrowed until the next add. */
const struct life_event *lifelog_events(const struct lifelog *l, size_t *n);
/* JSON text of event number i as a new string, NULL when it cannot be read. */
char *lifelog_text(const struct lifelog *l, size_t i);
/* The type that "sandbox.lifecycle.created" ... names; LIFE_N when it is none. */
enum life life_parse(const char *name);

#endif
