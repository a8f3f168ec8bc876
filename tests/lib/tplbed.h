/* Templates of a local provider of a test's own, by plain bytes: requests, builds,
 * uploads, sandboxes made from them. What goes wrong fails the test. */
#ifndef CCT_TESTS_TPLBED_H
#define CCT_TESTS_TPLBED_H

#include "localbed.h"
#include <cct/util/buf.h>
#include <stddef.h>

struct cJSON;

extern struct localbed *tplbed;
extern char tplbed_hash[65]; /* of the last upload; of no content, but new each time */

/* Are there namespaces here? */
bool tplbed_may_run(void);
/* False, after the TAP line that says so, where there are no namespaces. */
bool tplbed_is_possible(void);
int tplbed_setup(void **state); /* starts the provider */
int tplbed_teardown(void **state);

/* --- plain HTTP ----------------------------------------------------------- */
struct tplbed_answer {
    int status;
    struct buf raw;   /* to be released */
    const char *body; /* into raw */
    size_t len;
};
int tplbed_dial(int port);
/* Send all, then read until the peer closes. */
struct tplbed_answer tplbed_exchange(int port, const char *p, size_t len);
struct tplbed_answer tplbed_call(const char *method, const char *path, const char *json);
int tplbed_status_of(const char *method, const char *path, const char *json);
void tplbed_expect(const char *method, const char *path, const char *json, int want);
/* The body of an answer with this status; json_free(). */
struct cJSON *tplbed_get_json(const char *method, const char *path, const char *json, int want);

/* --- builds --------------------------------------------------------------- */
struct tplbed_made {
    char tpl[24], build[40];
};
struct tplbed_made tplbed_ask(const char *name);
void tplbed_start(const struct tplbed_made *m, const char *json);
/* The answer of the status call, now, and once the build has ended. */
struct cJSON *tplbed_look(const struct tplbed_made *m, const char *query);
struct cJSON *tplbed_await_end(const struct tplbed_made *m);
/* Messages of such an answer, each on a line; free(). */
char *tplbed_text_of(const struct cJSON *j);
/* Ask, start, wait: the log, free(). */
char *tplbed_build(const char *name, const char *json, const char *want, struct tplbed_made *m);
void tplbed_has(const char *text, const char *part);
void tplbed_has_not(const char *text, const char *part);
/* Why it failed, which must have been in this step; free(). */
char *tplbed_reason_of(const struct tplbed_made *m, const char *step);
const char *tplbed_status_now(const struct tplbed_made *m);
void tplbed_await_status(const struct tplbed_made *m, const char *want);
void tplbed_await_log(const struct tplbed_made *m, const char *part);
/* Entries of a folder of the provider's state. */
void tplbed_await_count(const char *name, size_t want);

/* --- sandboxes ------------------------------------------------------------ */
struct tplbed_box {
    char id[24], token[72];
};
struct tplbed_box tplbed_create(const char *ref);
void tplbed_kill_box(const struct tplbed_box *b);
/* Standard output of a command in it, as its own user and folder; free(). */
char *tplbed_run_in(const struct tplbed_box *b, const char *command);

/* --- files for COPY ------------------------------------------------------- */
void tplbed_new_hash(void);
/* Path of an upload link for tplbed_hash; *present: the files are there. free() */
char *tplbed_link_for(const char *tpl, bool *present);
int tplbed_put(const char *method, const char *path, const char *length, const char *p,
               size_t len);
/* A new hash, and for it what a shell command leaves in an empty folder. */
void tplbed_upload(const char *tpl, const char *command);

#endif
