/* The sandbox's PID 1: a small envd. The provider (src/local/ns.c) sets up the
 * namespaces and then executes this same binary as
 *     /run/cc/cc-tui-local sandbox-init SANDBOX_ID
 * with stdin/out/err on /dev/null (or the provider's log in debug), fd 3 = a pipe
 * or memfd holding one JSON object (then EOF), fd 4 = the listening unix socket.
 * Nothing secret is ever in argv or environ.
 *
 * JSON on fd 3:
 *   sandboxID, token (X-Access-Token), envVars{}, user ("user"), uid, gid,
 *   home, workdir, isolated (bool), deadline (ms of CLOCK_BOOTTIME: when the init
 *   ends itself if the provider never speaks again: its end + 5 min), logFd (absent
 *   or a fd), uploadMax (bytes of one uploaded file; absent: 8 GiB), cgroupFd (the
 *   group in which processes are started; absent: none), cpuLimit (CPUs), memLimit
 *   (bytes; both absent where there is no such limit)
 *
 * The init answers on the socket: envd's data plane and,
 * only there and only with the header `X-CC-Control: <token>`:
 *   POST /cc/deadline {"deadline": ms}   -> 204, moves the dead-man timer
 *   POST /cc/pause                       -> 204, every process but PID 1 is stopped
 *     with {"frozen":true} not by signals: the group of them is frozen already
 *   POST /cc/resume                      -> 204, and goes on
 *     both with {"memory":false}: every process but PID 1 is ended first
 *   GET  /cc/metrics?start=S&end=S       -> {"samples": [[ts, cpu %, cpus, memory used,
 *     total, cache, disk used, total]...]}: the last hour, one each 5 s; bytes and
 *     unix seconds; with latest=1 only the last one
 *   POST /cc/sample {"ts": S}            -> 204, takes one now (as if it were then)
 *   GET  /cc/logs?start=MS               -> {"entries": [...]} (init_notes.h)
 *   POST /cc/port {"port": n}            -> 204, with a TCP connection to that port
 *                                           of a program of the sandbox; 404: none
 * That connection comes as a descriptor (SCM_RIGHTS) on one byte '\n' in front of
 * the answer; it may still be connecting.
 * The provider's calls are HTTP/1.1 with Host: localhost, Connection: close,
 * X-Access-Token and X-CC-Control. PATH of the processes starts with
 * /run/cc/bin, where `demo-agent` is; a PATH in envVars wins.
 * The traffic port passes neither that header on nor a request for /cc/. */
#ifndef CCT_LOCAL_INIT_H
#define CCT_LOCAL_INIT_H

#define INIT_CONFIG_FD 3
#define INIT_LISTEN_FD 4
#define INIT_CGROUP_FD 5          /* if the configuration has cgroupFd */
#define INIT_BINARY_DIR "/run/cc" /* bound read-only in the sandbox */
#define INIT_BINARY INIT_BINARY_DIR "/cc-tui-local"
#define INIT_ENVD_VERSION "0.6.13" /* of the service, as clients look at it */

/* Subcommand `sandbox-init`; returns the exit status. Single-threaded. */
int init_main(void);
/* Subcommand `as-root PROGRAM ARGS`: the user `root` of a sandbox. It executes the
 * program in a user namespace in which the sandbox's user is called 0: root in name,
 * over its own files, and nobody more than before to everything else. Where the
 * kernel refuses that the program stays who it was. Returns only in failure. */
#define INIT_AS_ROOT "as-root"
#define INIT_IS_ROOT "is-root" /* subcommand: exit status 0 for uid 0, else 3 */
int init_as_root(char **argv);
/* Subcommand `demo-agent [--as CLI] [its options]`: the built-in agent that has no model
 * behind it; speaks Claude's stream-json on stdin/stdout, or as another CLI does. */
int demo_agent_main(int argc, char **argv);

#endif
