/* Decode a recorded stream to text: the work behind `cc-tui decode`. Any thread. */
#ifndef CCT_AGENT_DECODE_H
#define CCT_AGENT_DECODE_H

#include <cct/agent.h>
#include <limits.h>
#include <stdio.h>

#define AGENT_NO_EXIT INT_MIN /* as exit_code: the CLI is still running */

/* Read `fd` to its end in blocks and print every event to `out` as one JSON
 * object per line. Then the CLI's end is decoded as agent_dec_exit() does it,
 * unless exit_code is AGENT_NO_EXIT. 0 or ERR_IO. */
int agent_decode_fd(const struct agent_adapter *a, int fd, int exit_code, int sig,
                    const char *stderr_tail, FILE *out, struct err *e);

#endif
