/* The application against a scripted service (faultd), and what tests of state ask of both. */
#ifndef CCT_TESTS_LIB_STATEBED_H
#define CCT_TESTS_LIB_STATEBED_H

#include "appbed.h"
#include "faultproc.h"

/* Begun by statebed_serve() or with faultd_serve(), ended by statebed_teardown(). */
extern struct faultd *statebed_fake;

void statebed_serve(const char *sandboxes, const char *paused);
int statebed_teardown(void **state); /* after appbed_setup() */
/* With APPBED_KEY; follows all, and asks for the list so often. */
void statebed_open_at(struct appbed *b, int poll_ms);
const struct model *statebed_model(const struct appbed *b);
const struct sandbox *statebed_row(const struct appbed *b, size_t i);

/* These fail the test when it does not come. */
void statebed_await_rows(struct appbed *b, size_t n);
void statebed_await_link(struct appbed *b, enum link_state st);

/* From now on lists are answered with that: members of a rule of faultd. */
void statebed_lists_answer(const char *what);
void statebed_lists_are_well(void);
void statebed_kill_elsewhere(const char *id);

/* For appbed_wait(): arg is words of an event; so many lists were asked for; the first row is
 * killed. */
bool statebed_was_said(struct appbed *b, const void *arg);
bool statebed_lists_came(struct appbed *b, const void *n);
/* So many more are asked for from now on. */
void statebed_await_lists(struct appbed *b, size_t more);
bool statebed_first_killed(struct appbed *b, const void *arg);

#endif
