/* The facade under test: folders of its own, a loop that waits for conditions, and a
 * record of which requests ended (each exactly once). */
#ifndef CCT_TESTS_APPBED_H
#define CCT_TESTS_APPBED_H

#include <cct/app.h>
#include <stdbool.h>

#define APPBED_KEY "e2b_0123456789abcdef0123456789abcdef01234f2a"

struct appbed {
    char root[64];          /* scratch folder: data, conf, state, run in it */
    struct app *app;        /* NULL while closed */
    uint8_t ended[1 << 16]; /* by req_id */
    int codes[1 << 16];     /* how they ended */
    int outcomes[1 << 16];
    uint64_t made[1 << 16]; /* sandboxes of theirs */
    char last_error[512];   /* of the last one that failed */
    uint64_t wanted;        /* request of the last appbed_finish, and how it ended: */
    struct err err;
    char *text;
    int outcome;
    uint64_t sandbox;
    size_t losses; /* times the link was told to be other than ok */
};
/* First thing of main(): role, signals, secrets, $B in front of PATH. */
void appbed_main(void);
struct appbed *appbed_new(void);
/* Of a test: its state is a new one, which is closed in the end. HOME is its folder: no key of
 * the machine's user. */
int appbed_setup(void **state);
int appbed_teardown(void **state);
/* The environment names this service, with a key, and HOME as above. */
void appbed_service(const struct appbed *b, const char *url);
/* Closes, stops a local provider of this folder, removes everything. */
void appbed_free(struct appbed *b);
/* Folders are filled in. Started and online afterwards. */
void appbed_open(struct appbed *b, const struct app_opts *o);
/* Stops within the second that is promised (generous for sanitizers). */
void appbed_close(struct appbed *b);
char *appbed_path(const struct appbed *b, const char *name);
/* True as soon as ok(b, arg), false after a minute. */
bool appbed_wait(struct appbed *b, bool (*ok)(struct appbed *b, const void *arg),
                 const void *arg);
/* Wait for the one EV_DONE of a request; its code. */
int appbed_finish(struct appbed *b, uint64_t req);
void appbed_must(struct appbed *b, uint64_t req); /* and it went well */
bool appbed_isolated(void);                       /* the provider can make namespaces here */

#endif
