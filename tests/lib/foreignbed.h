/* Sandboxes and processes that cc-tui did not make: by calls in plain bytes, without any
 * metadata, on the local provider or on faultd. Each function fails the test itself. */
#ifndef CCT_TESTS_LIB_FOREIGNBED_H
#define CCT_TESTS_LIB_FOREIGNBED_H

#include "appbed.h"

#include <cct/app.h>

/* Where a sandbox's data plane is and what opens it. */
struct foreign_box {
    int port;
    char id[32], token[80];
};
/* A process: its pid. The stream that started it is closed at once; it lives on. */
enum foreign_input { FOREIGN_NO_INPUT, FOREIGN_STDIN, FOREIGN_PTY };
int foreign_start(const struct foreign_box *x, enum foreign_input in, const char *command);
/* The same, and the stream was read until that text (base64) was in it: nobody gets it later. */
int foreign_start_until(const struct foreign_box *x, enum foreign_input in, const char *command,
                        const char *text);

/* Its end, awaited by a stream of our own. */
void foreign_await_end(const struct foreign_box *x, int pid);

/* --- what the model says; waiters for appbed_wait ---------------------------------- */
const struct sandbox *foreign_row(const struct appbed *b, const char *sandbox_id);
/* The row once it is listed. */
const struct sandbox *foreign_listed(struct appbed *b, const char *sandbox_id);
/* Text of all items of its transcript, a line each; new string. */
char *foreign_text(const struct appbed *b, uint64_t row);
/* Wait for this text in it; fails with what there is. */
void foreign_shows(struct appbed *b, uint64_t row, const char *text);
void foreign_watch_is(struct appbed *b, uint64_t row, enum watch_state st);
/* Its processes, listed now; the one with that pid, or NULL. */
const struct proc *foreign_proc(struct appbed *b, uint64_t row, int pid);
/* How many would go if all of the current project, or of the account, were killed. */
size_t foreign_kill_count(struct appbed *b, bool account);

#endif
