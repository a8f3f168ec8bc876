/* Sandboxes of a test's own provider, and commands in them: HTTP and envelopes by
 * hand, no client code of ours. For tests with cmocka; each function fails the
 * test on its own. */
#ifndef CCT_TESTS_LIB_BOXRUN_H
#define CCT_TESTS_LIB_BOXRUN_H

#include "localbed.h"
#include <cct/util/buf.h>

#define BOXRUN_WAIT_MS 20000

struct boxrun {
    const struct localbed *bed;
    char id[32], token[80];
};

/* Status of a call of the control port; `body` may be NULL, else the caller
 * releases it. */
int boxrun_control(const struct localbed *l, const char *method, const char *path,
                   const char *json, struct buf *body);
/* A call to the sandbox's init through the traffic port. `headers` are whole lines. */
int boxrun_call(const struct boxrun *b, const char *method, const char *path,
                const char *headers, const char *json, struct buf *body);
/* A sandbox of template `base`; `extra` are more members of the request, each
 * with a comma in front, or "". */
void boxrun_create(struct boxrun *b, const struct localbed *l, const char *extra);
void boxrun_kill(const struct boxrun *b);
/* The init's pid as the record of STATE/boxes has it. */
pid_t boxrun_init_pid(const struct boxrun *b);
/* Run `/bin/bash -c command` as that user (NULL: the default one) to its end. The
 * exit code, 128 + n when a signal ended it; stdout and stderr go to *out. */
int boxrun_sh(const struct boxrun *b, const char *user, const char *command, struct buf *out);
/* The same; new string, and the exit code must be 0. */
char *boxrun_text(const struct boxrun *b, const char *user, const char *command);
/* Start it and look away. */
void boxrun_spawn(const struct boxrun *b, const char *user, const char *command);

#endif
