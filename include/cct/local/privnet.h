/* A network of its own for each sandbox, with a way out and none in: `pasta` (of the
 * package passt) stands outside, takes what leaves the sandbox's namespace, and makes
 * ordinary connections of it. No port of the host is forwarded, and what listens on
 * the host's loopback cannot be named from inside.
 *
 * pasta does not end with the namespace, so a small process of ours, the keeper, is
 * its parent and holds the sandbox's pidfd: it ends pasta when the sandbox ends,
 * whether or not a provider is there. */
#ifndef CCT_LOCAL_PRIVNET_H
#define CCT_LOCAL_PRIVNET_H

#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <stdbool.h>

#define PRIVNET_KEEPER "sandbox-net" /* the subcommand */
#define PRIVNET_PID_FD 3             /* the keeper's: pidfd of the init */
#define PRIVNET_DNS "169.254.1.1"    /* inside: stands for a resolver on the host's loopback */

/* Path of pasta by PATH; new string, or NULL. */
char *privnet_program(void);
/* Try all of it with a namespace that is then dropped: 0, or ERR_UNSUPPORTED with the
 * sentence that says what to install or change. Blocks up to some seconds. */
int privnet_probe(const char *exe, struct err *e);
/* Start the keeper of the init behind `pidfd`, which is borrowed. It says "ok" on *fd when the
 * way out is there, else a sentence, and closes it. `forward_dns` as from
 * privnet_resolv(). 0, or negative with *e. Does not wait. */
int privnet_start(const char *exe, const char *id, int pidfd, bool forward_dns, int *fd,
                  struct err *e);
/* The resolver's settings inside, made of the host's (their text). True when the host
 * has resolvers on its loopback only: PRIVNET_DNS stands for them. Pure. */
bool privnet_resolv(const char *host, struct buf *out);
/* The keeper: ID PASTA "forward" or "direct"; the exit status. */
int privnet_main(int argc, char **argv);

#endif
