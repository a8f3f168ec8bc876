/* The session directory in a sandbox: ~/.cc-tui/<session>/. The contract between
 * this program (through envd's file API) and src/jobs/runner.sh, which runs there.
 * Change both together, and raise SESSION_FORMAT when an old reader would be wrong.
 *
 * Start, and start again after the CLI's exit or the keeper's death:
 *   upload runner.sh (and shell-driver.sh for the shell tool), cli.sh, mode and
 *   meta.json to temporary names, Move them into place, then envd Start
 *     cmd "sh", args [".../runner.sh", "<session-dir>"], stdin open, no timeout.
 *   Secrets go into that Start's envs; the CLI inherits them, no file holds them.
 *   The directory must exist. stdin: any line = "look into inbox and at end";
 *   EOF means nothing. With a live keeper the second runner only forwards lines.
 *   An old `exit` stays until the new run begins: wait for its line in `runs`.
 *   The runner ends with status 0 when the session has ended (`exit` is there), 1
 *   when it could not work; stderr says why.
 *   args [..., "<session-dir>", "bury"] starts nothing: it only tidies up after a
 *   dead keeper, so that `exit` tells "lost".
 *
 * Times are Unix milliseconds. Every line ends in LF; ignore a last line without
 * it (it is being written), an empty line and a line of unknown shape.
 *
 * Message delivery, at most once:
 *   1 upload inbox/.tmp-<writer>, Move to inbox/<ms>-<id>, one line to stdin.
 *     <ms>: 13 digits; <id>: [A-Za-z0-9_]+ without '-'. Other names stay untouched.
 *     Bytes are passed on unchanged: a JSON message ends in exactly one LF.
 *   2 "<id> <ms> <bytes of out.log>" is appended to `taken`. From here on it is never fed
 *     (again), and what comes of it lies behind those bytes.
 *   3 the bytes are written to the CLI's stdin
 *   4 persistent: the file moves to sent/. Written completely; whether the CLI took
 *     it in, only its output tells.
 *     A file whose id is in `taken` and that is not in sent/ was interrupted between
 *     2 and 4 (CLI, feeder or keeper died): it moves to unsure/ = `unconfirmed`.
 *     one-run: the file moves to sent/ before its run; it was fed when `runs` has a
 *     start line with its id.
 *   A second file with a known id is removed unread. What lies in inbox when a CLI
 *   ends stays there for the next run. */
#ifndef CCT_JOBS_SESSION_LAYOUT_H
#define CCT_JOBS_SESSION_LAYOUT_H

#define SESSION_FORMAT 1
#define SESSION_ROOT ".cc-tui" /* below the sandbox user's home */

/* written by the client, before the start */
#define SESSION_RUNNER "runner.sh"
#define SESSION_SHELL_DRIVER "shell-driver.sh" /* the shell tool only */
#define SESSION_OPENCODE_DRIVER "opencode-driver.sh" /* the tool opencode-serve only */
#define SESSION_META "meta.json"               /* opaque to the runner */
/* A shell script of single-quoted words: cd to the project, then `exec` the CLI.
 * Its working directory at the start is the session directory. In one-run mode
 * "cli-<id>.sh", if there, is taken for message <id> instead. */
#define SESSION_CLI "cli.sh"
#define SESSION_CLI_FOR_FMT "cli-%s.sh"
/* "persistent\n" (default when absent): one process, messages go to its stdin.
 * "one-run\n": each message starts a process with the message as its stdin. */
#define SESSION_MODE "mode"
#define SESSION_MODE_PERSISTENT "persistent"
#define SESSION_MODE_ONE_RUN "one-run"
/* There (content ignored): persistent CLI on a pty, its messages on fd 3, stdin
 * from /dev/null; out.log is the terminal's output. */
#define SESSION_PTY "pty"
/* Bytes that each process of a persistent CLI gets before its first message; few, so that
 * they fit into a pipe. */
#define SESSION_HELLO "hello"

/* Choices of the one who made it; cli.sh reads them, so that a CLI that is started again has
 * them too. One line each, absent when nothing was chosen. */
#define SESSION_MODEL "model"
#define SESSION_WORKDIR "workdir" /* below home: where the CLI runs, else home itself */
#define SESSION_ASK "ask" /* "yes": permission questions go to the user; "no" */
#define SESSION_SYSTEM_PROMPT "system-prompt.md"
#define SESSION_SKILLS "skills.tar" /* until it is unpacked */

/* written by the client, any time */
#define SESSION_INBOX "inbox"
#define SESSION_INBOX_TMP_FMT "inbox/.tmp-%s"
/* The wish to end: "<seconds>\n" (empty: 10). Then a line to stdin. stdin of the CLI
 * is closed; after the seconds TERM, 3 s later KILL to its group. Removed when done. */
#define SESSION_END "end"

/* written by the runner */
#define SESSION_FORMAT_FILE "format"   /* "1\n" = SESSION_FORMAT */
#define SESSION_SENT "sent"            /* folder */
#define SESSION_UNSURE "unsure"        /* folder */
#define SESSION_TAKEN "taken"          /* "<id> <ms> <bytes>" per message, appended; the
                                        * bytes are missing where an older runner wrote it */
#define SESSION_OUT_LOG "out.log"      /* raw stdout of the CLI, all runs, appended */
#define SESSION_ERR_LOG "err.log"      /* raw stderr, likewise; says why of 126, 127 */
#define SESSION_EPOCH "epoch"          /* "<n>\n": +1 when out.log was lost or cut by others,
                                        * so old offsets mean nothing */
#define SESSION_CLI_PID "cli.pid"      /* "<pid> <start ticks>\n" while a CLI runs; it leads its
                                        * process group: kill -INT -<pid> (no `--`) */
/* "<code> <ms> <run>\n", by rename, after both logs are complete. <code>: raw exit code
 * of the shell (143 may be SIGTERM or exit 143; 127 not found, 126 not executable), or
 * "lost" = the keeper died; everything it ran was ended. Removed when a new run starts.
 * one-run: written when the session ends, with the last run's code (0 when there was none). */
#define SESSION_EXIT "exit"
#define SESSION_EXIT_LOST "lost"
/* Two lines per run, appended:
 *   run <n> start <ms> out-offset <bytes> err-offset <bytes> message <id|-> keeper <pid-ticks>
 *   run <n> exit <code|lost> <ms> out-offset <bytes> err-offset <bytes>
 * The exit line's offsets are the complete logs' sizes. Readers ignore further words. Who
 * sends SIGINT to a run notes it between the two, written by the client:
 *   run <n> interrupt <ms> */
#define SESSION_RUNS "runs"
#define SESSION_KEEPER "keeper"        /* symlink to "<pid>-<start ticks>" of the keeper: alive if
                                        * field 22 of /proc/<pid>/stat is the same, state not Z */
#define SESSION_HEIRS "heirs"          /* folder: symlink <dead keeper> -> its successor */
#define SESSION_WAKE "wake"            /* fifo */
#define SESSION_ALIVE "alive"          /* fifo: EOF = keeper gone */
#define SESSION_ERROR "error"          /* why the keeper could not work, one line */

/* Size cap of each log: environment CCT_LOG_MAX, bytes, rounded down to 512. Past it
 * output is read and dropped; the mark is appended once, and a line
 * "<out|err> <offset of the mark>" to `cut`. */
#define SESSION_LOG_MAX_ENV "CCT_LOG_MAX"
#define SESSION_LOG_MAX_DEFAULT 536870912
#define SESSION_CUT "cut"
#define SESSION_CUT_MARK "\n[cc-tui: log cap reached, output after this point is not kept]\n"
/* There (empty) after a write found no space, until the next start. Output is read and
 * dropped while the disk is full; where it goes on, the gap's mark stands before it. */
#define SESSION_DISKFULL "diskfull"
#define SESSION_GAP_MARK "\n[cc-tui: disk full, output is missing here]\n"

#endif
