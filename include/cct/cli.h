/* Commands without the screen. One table declares them, one the flags; parsing, help,
 * "did you mean" and shell completion come from the two. Data goes to stdout, talk to
 * stderr. Main thread only. */
#ifndef CCT_CLI_H
#define CCT_CLI_H

#include <cct/config/options.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit status of a command. */
enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_SOME_FAILED = 3, CLI_KEY = 4,
                CLI_NOT_FOUND = 5, CLI_NO_SERVICE = 6, CLI_DECLINED = 7, CLI_INTERRUPTED = 130 };
int cli_exit_of(int err_code);

/* X(ID, "--name", short or 0, "VALUE" or "" for none, "help") */
#define CLI_FLAGS(X)                                                                           \
    X(HELP, "help", 'h', "", "show help for this command")                                     \
    X(VERSION, "version", 'V', "", "show the version")                                         \
    X(LOCAL, "local", 0, "", "use the local provider, whatever keys exist")                    \
    X(LOCAL_UNSAFE, "local-unsafe", 0, "",                                                     \
      "the same, with plain processes: NOT ISOLATED")                                          \
    X(READONLY, "readonly", 0, "", "change nothing")                                           \
    X(PROJECT, "project", 0, "NAME", "current project")                                        \
    X(JSON, "json", 0, "", "print JSON")                                                       \
    X(FORMAT, "format", 0, "json|pretty", "the same by name")                                  \
    X(QUIET, "quiet", 'q', "", "print bare ids or a count")                                    \
    X(YES, "yes", 'y', "", "do it without asking")                                             \
    X(NO_INPUT, "no-input", 0, "", "never ask; refuse instead")                                \
    X(VERBOSE, "verbose", 'v', "", "say more on stderr")                                       \
    X(CONFIG, "config", 0, "FILE", "configuration file to use")                                \
    X(DATA_DIR, "data-dir", 0, "DIR", "folder of the database")                                \
    X(SET, "set", 0, "SECTION.NAME=VALUE", "set an option for this run; may be repeated")      \
    X(THEME, "theme", 0, "NAME", "theme of the screen")                                        \
    X(NO_COLOR, "no-color", 0, "", "no colours")                                               \
    X(MOUSE, "mouse", 0, "", "take the mouse from the begin")                                  \
    X(NO_MOUSE, "no-mouse", 0, "", "leave the mouse to the terminal")                          \
    X(ASCII, "ascii", 0, "", "no character beyond ASCII in what we draw")                      \
    X(PLAIN, "plain", 0, "",                                                                   \
      "lines instead of the screen, for screen readers and terminals that cannot place text")  \
    X(KILL_ALL_CONFIRM, "kill-all-confirm", 0, "always|count|never",                           \
      "how the screen asks before a kill-all")                                                 \
    X(PASSPHRASE_FD, "passphrase-fd", 0, "FD", "read the vault's passphrase from a descriptor")  \
    X(UNLOCK, "unlock", 0, "", "ask for the vault's passphrase at the start")                  \
    X(BENCH_FRAMES, "bench-frames", 0, "FILE", "write counters of the screen at its end")      \
    X(DRY_RUN, "dry-run", 0, "", "say what would be done, do nothing")                         \
    X(ALL, "all", 'a', "", "all of them; in lists the ended ones too")                         \
    X(TOOL, "tool", 't', "TOOL",                                                               \
      "agent: claude, codex, opencode, pi, gemini, qwen, shell, demo or one of tools.conf")   \
    X(TEMPLATE, "template", 0, "ID", "template of the sandbox")                                \
    X(TIMEOUT, "timeout", 0, "SPAN", "time until it ends: 90, 15m, 1h30m")                     \
    X(NAME, "name", 'n', "NAME", "name; letters, digits, - and _")                             \
    X(ENV, "env", 'e', "NAME=VALUE", "variable in the sandbox; may be repeated")               \
    X(PROMPT, "prompt", 'p', "TEXT|-", "first message to the agent; - reads stdin")            \
    X(WAIT, "wait", 'w', "", "wait for the answer, of a pair for its end")                     \
    X(FILE, "file", 0, "PATH", "the text of a file goes along, as @PATH on the screen; may be repeated") \
    X(DESIGNER, "designer", 0, "TOOL[:MODEL]", "agent of a pair that does the work")           \
    X(CHECKER, "checker", 0, "TOOL[:MODEL]",                                                   \
      "agent of a pair that looks at the work and ends with VERDICT: PASS or FAIL")            \
    X(DESIGNER_PROMPT, "designer-prompt", 0, "FILE",                                           \
      "what the designer is told, in the place of cc-tui's own instructions")                  \
    X(CHECKER_PROMPT, "checker-prompt", 0, "FILE",                                             \
      "what the checker is told, in the place of cc-tui's own instructions")                   \
    X(ROUNDS, "rounds", 0, "N", "turns of work and check before it gives up: 1 to 99, else 5") \
    X(FOLLOW, "follow", 'f', "", "go on with what comes")                                      \
    X(RAW, "raw", 0, "", "the exact bytes, on a terminal too")                                 \
    X(SYSTEM, "system", 0, "", "the log of the sandbox's system, not of the agent")            \
    X(SCOPE, "scope", 0, "project|account", "how far --all reaches (project)")                 \
    X(EXIT_CODE, "exit-code", 0, "N", "decode the agent's end with this status")               \
    X(SIGNAL, "signal", 0, "NAME",                                                             \
      "for a process: TERM (the default) or KILL; in decode: what ended the agent")            \
    X(STDERR_FILE, "stderr-file", 0, "FILE", "the agent's stderr, for its end")                \
    X(PROCESS, "process", 0, "PID", "one process of the sandbox; 'cc-tui ps' lists them")      \
    X(UNDO, "undo", 0, "", "take it back")                                                     \
    X(COMMAND, "command", 0, "COMMAND", "command that prints the key")                         \
    X(NOW, "now", 0, "", "interrupt what the agent does, and in front of what is queued") \
    X(MODEL, "model", 0, "MODEL", "model of the agent; opencode and pi want PROVIDER/NAME")    \
    X(REPO, "repo", 0, "ADDRESS",                                                              \
      "repository to check out before the agent starts: an address, or OWNER/NAME on GitHub")  \
    X(BRANCH, "branch", 0, "NAME", "branch or tag of it")                                      \
    X(PRESET, "preset", 0, "NAME", "begin with a preset of the project; flags stand above it") \
    X(ENV_FILE, "env-file", 0, "FILE", "NAME=value lines; --env stands above them")            \
    X(COPIES, "copies", 0, "N", "as many with the same prompt, called NAME-1 to NAME-N")       \
    X(SYSTEM_PROMPT, "system-prompt", 0, "TEXT|@FILE|-", "what the agent is told first")       \
    X(SKILL, "skill", 0, "PATH",                                                               \
      "skill for the agent: a folder with SKILL.md, or a .md file; may be repeated")   \
    X(QUESTION, "question", 0, "ID", "this question, not the oldest")                          \
    X(ASK, "ask", 0, "yes|no", "permission questions of the agent come to you, or never")       \
    X(BY, "by", 0, "project|agent|model|template|sandbox|hour", "in groups")                   \
    X(CSV, "csv", 0, "", "print CSV")                                                          \
    X(NO_CACHE, "no-cache", 0, "", "build every step anew")                                    \
    X(CPU, "cpu", 0, "N", "vCPUs of the template's sandboxes")                                 \
    X(MEMORY, "memory", 0, "MIB", "their memory in MiB")                                       \
    X(TAG, "tag", 0, "TAG", "tag of the build; may be repeated")                               \
    X(BUILD_ARG, "build-arg", 0, "NAME[=VALUE]",                                               \
      "value of a Dockerfile's ARG, or that of the environment; may be repeated")              \
    X(STAT, "stat", 0, "", "files and counts alone")                                           \
    X(SPEED, "speed", 0, "N|max", "so many times as fast; max: at once")                       \
    X(FROM, "from", 0, "SPAN", "begin so far behind its begin: 90, 15m, 1h30m")

enum cli_flag {
#define CLI_FLAG_ENUM(id, name, sh, value, help) CLI_##id,
    CLI_FLAGS(CLI_FLAG_ENUM)
#undef CLI_FLAG_ENUM
        CLI_FLAG_COUNT
};
__extension__ typedef unsigned __int128 cli_set; /* of flags */
_Static_assert(CLI_FLAG_COUNT <= 128, "a set of flags is one number");
#define CLI_BIT(id) ((cli_set)1 << CLI_##id)
/* Flags up to BENCH_FRAMES may stand with every command. */
#define CLI_GLOBAL ((CLI_BIT(BENCH_FRAMES) << 1) - 1)
#define CLI_NONE ((cli_set)0)

/* X(ID, function, "name", "aliases", "arguments", least, most (-1 = any), flags, "help")
 * Arguments behind `--` count like others. */
#define CLI_COMMANDS(X)                                                                        \
    X(LS, cli_ls, "ls", "list", "", 0, 0, CLI_BIT(ALL), "list sandboxes")                      \
    X(NEW, cli_new, "new", "create cr", "--tool TOOL [-- COMMAND...]", 0, -1,                  \
      CLI_BIT(TOOL) | CLI_BIT(TEMPLATE) | CLI_BIT(TIMEOUT) | CLI_BIT(NAME) | CLI_BIT(ENV) |    \
          CLI_BIT(PROMPT) | CLI_BIT(MODEL) | CLI_BIT(REPO) | CLI_BIT(BRANCH) |                 \
          CLI_BIT(ENV_FILE) | CLI_BIT(COPIES) | CLI_BIT(SYSTEM_PROMPT) | CLI_BIT(SKILL) |      \
          CLI_BIT(ASK) | CLI_BIT(PRESET) | CLI_BIT(DRY_RUN),                                   \
      "create a sandbox with an agent in it; prints its id")                                   \
    X(SEND, cli_send, "send", "", "SANDBOX TEXT|- | SANDBOX... -- TEXT|-", 1, -1,              \
      CLI_BIT(WAIT) | CLI_BIT(NOW) | CLI_BIT(ALL) | CLI_BIT(FILE) | CLI_BIT(DRY_RUN),          \
      "send a message to the agent; --wait prints the answer. An @ in TEXT is text: files go " \
      "along by --file. To several, or with --all to all of the project: {name} {branch} "     \
      "{project} in it are each one's own")                                                    \
    X(PAIR, cli_pair, "pair", "", "[SANDBOX] --designer TOOL --checker TOOL --prompt TEXT",    \
      0, 1,                                                                                    \
      CLI_BIT(DESIGNER) | CLI_BIT(CHECKER) | CLI_BIT(DESIGNER_PROMPT) |                        \
          CLI_BIT(CHECKER_PROMPT) | CLI_BIT(ROUNDS) | CLI_BIT(PROMPT) | CLI_BIT(TEMPLATE) |    \
          CLI_BIT(TIMEOUT) | CLI_BIT(NAME) | CLI_BIT(ENV) | CLI_BIT(WAIT) | CLI_BIT(DRY_RUN),  \
      "two agents take turns in one sandbox: the designer works at TEXT, the checker judges; " \
      "what it finds goes back to the designer, until it passes or the rounds are used up. "   \
      "Without SANDBOX a new one is made, with one that of a pair that has ended takes a new " \
      "task. The turns go on while cc-tui runs: the screen, or --wait, which prints the end "  \
      "and each role's cost (exit status 0: passed). pair stop, resume, accept, reject and "   \
      "wait take it from there")                                                               \
    X(PAIR_STOP, cli_pair_stop, "pair stop", "", "SANDBOX", 1, 1, CLI_NONE,                    \
      "end its turn and begin no further one")                                                 \
    X(PAIR_RESUME, cli_pair_resume, "pair resume", "", "SANDBOX", 1, 1,                        \
      CLI_BIT(ROUNDS) | CLI_BIT(WAIT), "go on, with --rounds for so many more")                \
    X(PAIR_ACCEPT, cli_pair_accept, "pair accept", "", "SANDBOX", 1, 1, CLI_NONE,              \
      "the work passes, whatever the checker says")                                            \
    X(PAIR_REJECT, cli_pair_reject, "pair reject", "", "SANDBOX [WHY|-]", 1, 2, CLI_BIT(WAIT), \
      "the work does not pass: one more round")                                                \
    X(PAIR_WAIT, cli_pair_wait, "pair wait", "", "SANDBOX", 1, 1, CLI_NONE,                    \
      "follow a pair to its end; the exit status is 0 when it passed")                         \
    X(LOGS, cli_logs, "logs", "lg log", "SANDBOX", 1, 1,                                       \
      CLI_BIT(FOLLOW) | CLI_BIT(RAW) | CLI_BIT(SYSTEM), "print what the agent put out")        \
    X(EXPORT, cli_export, "export", "", "SANDBOX [FILE]", 1, 2, CLI_NONE,                      \
      "print a transcript as Markdown, or write FILE by its ending: .md, .txt, .jsonl")        \
    X(SEARCH, cli_search, "search", "find", "WORDS...", 1, -1, CLI_BIT(ALL),                   \
      "find what was ever said, newest first: words, \"a phrase\", -without, in:NAME")         \
    X(USAGE, cli_usage_sums, "usage", "", "[day|week|month|all|DATE|DATE..DATE]", 0, 1,        \
      CLI_BIT(BY) | CLI_BIT(CSV),                                                              \
      "what sandboxes and agents have cost: this week, or the time given")                     \
    X(ANSWER, cli_answer, "answer", "", "[SANDBOX [NUMBER|TEXT|-]]", 0, 2,                  \
      CLI_BIT(QUESTION) | CLI_BIT(DRY_RUN),                                                    \
      "list what agents ask you, or answer: by the number of a choice or in your own words")   \
    X(INTERRUPT, cli_interrupt, "interrupt", "int", "SANDBOX", 1, 1, CLI_BIT(DRY_RUN),         \
      "interrupt the agent's turn")                                                            \
    X(RESTART, cli_restart, "restart", "", "SANDBOX", 1, 1, CLI_BIT(DRY_RUN),                  \
      "start the agent again in its sandbox")                                                  \
    X(PAUSE, cli_pause, "pause", "", "SANDBOX", 1, 1, CLI_BIT(DRY_RUN),                      \
      "keep memory and files, stop the clock")                                                 \
    X(RESUME, cli_resume, "resume", "rs", "SANDBOX", 1, 1,                                     \
      CLI_BIT(TIMEOUT) | CLI_BIT(DRY_RUN),                                                     \
      "go on with a paused sandbox")                                                           \
    X(TIMEOUT, cli_timeout, "timeout", "", "SANDBOX SPAN", 2, 2, CLI_BIT(DRY_RUN),             \
      "set the time left, from now")                                                           \
    X(KILL, cli_kill, "kill", "kl", "SANDBOX...|--all", 0, -1,                                 \
      CLI_BIT(ALL) | CLI_BIT(SCOPE) | CLI_BIT(PROCESS) | CLI_BIT(SIGNAL) | CLI_BIT(DRY_RUN),   \
      "end sandboxes, or with --process one process of one")                                   \
    X(PS, cli_ps, "ps", "", "SANDBOX", 1, 1, CLI_NONE,                                         \
      "list the processes of a sandbox, whoever made it")                                      \
    X(WATCH, cli_watch, "watch", "", "SANDBOX PID", 2, 2, CLI_BIT(RAW),                        \
      "print what a process puts out from now on; exit with its status, ^C leaves it")         \
    X(SHELL, cli_shell, "shell", "sh", "SANDBOX [-- COMMAND...]", 1, -1,                       \
      CLI_BIT(ENV) | CLI_BIT(PROCESS),                                                         \
      "a shell or a command in a sandbox, on this terminal or by pipes; exit with its status. " \
      "With --process back to one that was left")                                              \
    X(FILES_LS, cli_files_ls, "files ls", "", "SANDBOX [PATH]", 1, 2, CLI_NONE,                \
      "list a folder of a sandbox: its user's home, or PATH")                                  \
    X(FILES_CAT, cli_files_cat, "files cat", "", "SANDBOX PATH", 2, 2, CLI_BIT(RAW),           \
      "print a file of a sandbox")                                                             \
    X(FILES_GET, cli_files_get, "files get", "", "SANDBOX PATH [LOCAL]", 2, 3, CLI_NONE,       \
      "download a file, or a folder with all but links, to LOCAL or the current folder; asks " \
      "before it replaces anything")                                                           \
    X(FILES_PUT, cli_files_put, "files put", "", "SANDBOX LOCAL [PATH]", 2, 3, CLI_NONE,       \
      "upload a file, or the files of a folder, to PATH or the home; asks before it replaces one") \
    X(FILES_MKDIR, cli_files_mkdir, "files mkdir", "", "SANDBOX PATH", 2, 2, CLI_NONE,         \
      "make a folder in a sandbox")                                                            \
    X(FILES_MV, cli_files_mv, "files mv", "", "SANDBOX PATH NEW", 3, 3, CLI_NONE,              \
      "give a file of a sandbox another name; asks before it replaces one")                    \
    X(FILES_RM, cli_files_rm, "files rm", "", "SANDBOX PATH", 2, 2, CLI_BIT(DRY_RUN),          \
      "delete a file of a sandbox, or a folder with all that is in it")                        \
    X(DIFF, cli_diff, "diff", "", "SANDBOX", 1, 1, CLI_BIT(STAT) | CLI_BIT(RAW),               \
      "print what the agent has changed in its repository, or with --stat which files")        \
    X(ADOPT, cli_adopt, "adopt", "", "SANDBOX", 1, 1,                                          \
      CLI_BIT(NAME) | CLI_BIT(PROCESS) | CLI_BIT(UNDO) | CLI_BIT(DRY_RUN),                     \
      "count a sandbox that cc-tui did not make as ours, in the project")                      \
    X(TEMPLATES, cli_templates, "templates", "tpl", "", 0, 0, CLI_NONE,                        \
      "list the templates that sandboxes can be made from")                                    \
    X(BUILDS, cli_builds, "builds", "", "[TEMPLATE[:BUILD]]", 0, 1, CLI_BIT(FOLLOW),           \
      "list builds of templates; --follow shows one to its end")                               \
    X(BUILD, cli_build, "build", "", "[DIR|FILE] --name NAME", 0, 1,                           \
      CLI_BIT(NAME) | CLI_BIT(TOOL) | CLI_BIT(WAIT) | CLI_BIT(NO_CACHE) | CLI_BIT(CPU) |       \
          CLI_BIT(MEMORY) | CLI_BIT(TAG) | CLI_BIT(BUILD_ARG) | CLI_BIT(DRY_RUN),              \
      "build a template from a Dockerfile or template.conf, or with --tool alone from that "   \
      "tool's own recipe; --wait follows it, and the exit status is its outcome")              \
    X(BUILD_REBUILD, cli_build_again, "build rebuild", "", "TEMPLATE", 1, 1,                   \
      CLI_BIT(WAIT) | CLI_BIT(BUILD_ARG),                                                      \
      "build it once more, from its recipe as it is now; values of --build-arg are stored "    \
      "nowhere, so give them again")                                                           \
    X(BUILD_CANCEL, cli_build_cancel, "build cancel", "", "TEMPLATE", 1, 1, CLI_NONE,          \
      "call a build off; once the service has begun it goes on there, not followed any more")  \
    X(BUILD_DELETE, cli_build_delete, "build delete", "", "TEMPLATE", 1, 1, CLI_BIT(DRY_RUN),  \
      "delete a template with all of its builds (asks)")                                       \
    X(BUILD_TAG, cli_build_tag, "build tag", "", "TEMPLATE[:TAG] TAG...", 2, -1,               \
      CLI_BIT(UNDO), "give tags to a build of a template, or with --undo take them away")      \
    X(LOCAL_START, cli_local_start, "local start", "", "", 0, 0, CLI_NONE,                     \
      "start the local provider and wait until it is ready")                                   \
    X(LOCAL_STOP, cli_local_stop, "local stop", "", "", 0, 0, CLI_NONE,                        \
      "end the local provider and all of its sandboxes")                                       \
    X(LOCAL_STATUS, cli_local_status, "local status", "", "", 0, 0, CLI_NONE,                  \
      "say whether it runs, and where")                                                        \
    X(LOCAL_ENV, cli_local_env, "local env", "", "", 0, 0, CLI_NONE,                           \
      "print export lines, so that the E2B SDK and CLI use it")                                \
    X(KEYS_LS, cli_keys_ls, "keys ls", "", "", 0, 0, CLI_NONE,                                 \
      "list keys: which is in force, what it hides, how the stored ones are protected")        \
    X(KEYS_ADD, cli_keys_add, "keys add", "", "PROVIDER", 1, -1, CLI_BIT(COMMAND),             \
      "store a key, sealed, for you or with --project for that project; asks for it, or "      \
      "reads stdin")                                                                           \
    X(KEYS_RM, cli_keys_rm, "keys rm", "", "PROVIDER", 1, 1, CLI_NONE,                         \
      "remove your stored key, or with --project that project's")                              \
    X(KEYS_TEST, cli_keys_test, "keys test", "", "[PROVIDER]", 0, 1, CLI_NONE,                 \
      "try the key in force: E2B's with one list, others with one question to their service")                                             \
    X(KEYS_TRUST, cli_keys_trust, "keys trust", "", "", 0, 0, CLI_NONE,                        \
      "let this folder's .cc-tui choose its project's keys")                                   \
    X(KEYS_PROTECT, cli_keys_protect, "keys protect", "", "passphrase|file", 1, 1, CLI_NONE,   \
      "seal the stored keys anew, by a passphrase or by a key file")                           \
    X(PROJECTS_LS, cli_projects_ls, "projects ls", "", "", 0, 0, CLI_NONE,                     \
      "list projects, and which is current by what")                                           \
    X(PROJECTS_SHOW, cli_projects_show, "projects show", "", "[PROJECT]", 0, 1, CLI_NONE,      \
      "print settings, variables, presets and keys of the current project, or of one")         \
    X(PROJECTS_ADD, cli_projects_add, "projects add", "", "PROJECT", 1, 1, CLI_NONE,           \
      "make a project; the first sandbox or key of one makes it, too")                         \
    X(PROJECTS_USE, cli_projects_use, "projects use", "", "PROJECT", 1, 1, CLI_NONE,           \
      "make it current where no flag, variable or .cc-tui says another one")                   \
    X(PROJECTS_RENAME, cli_projects_rename, "projects rename", "", "PROJECT NEW", 2, 2,        \
      CLI_NONE, "give it another name; keys, variables, presets and sandboxes go along")       \
    X(PROJECTS_RM, cli_projects_rm, "projects rm", "", "PROJECT", 1, 1, CLI_NONE,              \
      "remove it with its keys, variables and presets; not while sandboxes of it live")        \
    X(PROJECTS_SET, cli_projects_set, "projects set", "", "PROJECT SETTING=VALUE...", 2, -1,   \
      CLI_NONE,                                                                                \
      "tool, model, template, repo, branch, timeout, at_end of its new sandboxes; prompt "     \
      "(TEXT, @FILE or -) and skill (a path) of its agents; budget_day, budget_week, "         \
      "budget_month in USD; empty takes one away")                                             \
    X(PROJECTS_ENV, cli_projects_env, "projects env", "", "PROJECT NAME=VALUE...", 2, -1,      \
      CLI_BIT(UNDO), "variables of its new sandboxes; --undo NAME... takes them away")         \
    X(PROJECTS_SECRET, cli_projects_secret, "projects secret", "", "PROJECT NAME", 2, -1,      \
      CLI_BIT(COMMAND) | CLI_BIT(UNDO),                                                        \
      "a secret variable for its agents, sealed like a key; asks for it, or reads stdin")      \
    X(PRESETS_LS, cli_presets_ls, "presets ls", "", "", 0, 0, CLI_NONE,                        \
      "list the presets of the project, and yours for all projects")                           \
    X(PRESETS_SAVE, cli_presets_save, "presets save", "", "NAME SETTING=VALUE...", 2, -1,      \
      CLI_BIT(ALL),                                                                            \
      "keep tool, model, template, repo, branch, timeout, at_end, copies or prompt (TEXT, "    \
      "@FILE or -) under a name, for the project or with --all for all of them. One that is "  \
      "there keeps what is not said; an empty value takes one away")                           \
    X(PRESETS_RM, cli_presets_rm, "presets rm", "", "NAME", 1, 1, CLI_BIT(ALL),                \
      "remove a preset of the project, with --all one for all projects")                       \
    X(CONFIG_SHOW, cli_config_show, "config show", "", "", 0, 0, CLI_NONE,                     \
      "print every option, its value and where it came from")                                  \
    X(CONFIG_CHECK, cli_config_check, "config check", "", "", 0, 0, CLI_NONE,                  \
      "say what is wrong in the configuration files")                                          \
    X(CONFIG_EXAMPLE, cli_config_example, "config example", "", "", 0, 0, CLI_NONE,            \
      "print a configuration file with every default")                                         \
    X(CONFIG_KEYS, cli_config_keys, "config keys", "", "", 0, 0, CLI_NONE,                     \
      "print the keys of the screen")                                                          \
    X(DECODE, cli_decode, "decode", "", "--tool TOOL <STREAM", 0, 0,                           \
      CLI_BIT(TOOL) | CLI_BIT(EXIT_CODE) | CLI_BIT(SIGNAL) | CLI_BIT(STDERR_FILE),             \
      "decode an agent's stream on stdin to JSON lines")                                       \
    X(REPLAY, cli_replay, "replay", "", "FILE|SANDBOX", 1, 1,                                  \
      CLI_BIT(TOOL) | CLI_BIT(SPEED) | CLI_BIT(FROM),                                          \
      "play a recorded run: what is kept of a sandbox, a file of events ('logs --json', "      \
      "'decode'), or with --tool a file of that agent's stream. On the screen read-only, with " \
      "--plain or into a pipe as text. Nothing runs, nothing is billed, nothing is stored")    \
    X(DOCTOR, cli_doctor, "doctor", "", "", 0, 0, CLI_NONE,                                    \
      "look at this machine: what works, and what to do where it does not")                    \
    X(COMPLETION, cli_completion, "completion", "", "bash|zsh|fish", 1, 1, CLI_NONE,           \
      "print completion for a shell")                                                          \
    X(VERSION, cli_version, "version", "", "", 0, 0, CLI_NONE, "print the version")            \
    X(HELP, cli_help, "help", "", "[COMMAND]", 0, 2, CLI_NONE, "explain a command")

enum cli_cmd_id {
    CLI_CMD_SCREEN, /* no command: the screen */
#define CLI_CMD_ENUM(id, fn, name, aliases, args, least, most, flags, help) CLI_CMD_##id,
    CLI_COMMANDS(CLI_CMD_ENUM)
#undef CLI_CMD_ENUM
        CLI_CMD_COUNT
};
struct cli_cmd {
    enum cli_cmd_id id;
    const char *name, *aliases, *args;
    int least, most;
    cli_set flags;
    const char *help;
};
extern const struct cli_cmd cli_commands[]; /* by id from 1; id 0 ends */
struct cli_flag_row {
    const char *name;
    char letter;
    const char *value, *help;
};
extern const struct cli_flag_row cli_flags[CLI_FLAG_COUNT];

/* What main lends: things that belong to the screen. */
struct replay;
struct cli;
struct cli_host {
    /* The keys as a Markdown table, with the changes of the configuration (NULL: the
     * defaults). New string. */
    char *(*keys_table)(const struct config *c);
    /* Try the [keys] lines and the theme; what is wrong becomes notes. */
    void (*check_screen)(struct config *c, const char *config_dir);
    /* Colours of this TERM by its description, or negative with a sentence. */
    int (*term_colors)(struct err *e);
    /* Play it on the screen; the exit status. */
    int (*play)(struct cli *c, struct replay *r);
};

/* One run: what was asked for. Strings point into argv. */
struct cli {
    enum cli_cmd_id cmd;
    cli_set given;                      /* bits of the flags */
    const char *value[CLI_FLAG_COUNT];  /* the last one given */
    const char **sets, **envs, **skills; /* --set, --env or --build-arg, --skill or --tag, in
                                            order; the last ends with NULL */
    const char **files;                  /* --file, as well */
    size_t n_sets, n_envs, n_skills, n_files;
    const char **args; /* ends with NULL */
    int n_args;
    int n_plain;                        /* of them in front of `--` */
    const char *group;                  /* "local" when only that was given, with --help */
    /* filled by main */
    struct config *config;
    const char *user_file, *project_file;
    const char *project;                /* in force; NULL: the one used last */
    int project_source;                 /* enum option_source of that */
    const char *project_folder;         /* of the .cc-tui that chose it, or NULL */
    const struct cli_host *host;
};
static inline bool cli_has(const struct cli *c, enum cli_flag f)
{
    return c->given >> f & 1;
}

/* 0, or ERR_INVALID with what is wrong and, where one is near, "did you mean". */
int cli_parse(struct cli *c, int argc, const char *const *argv, struct err *e);
void cli_release(struct cli *c);
/* Help of the command, of a group ("local"), or of the whole program; new string. */
char *cli_help_text(enum cli_cmd_id cmd, const char *group);
/* Shell completion script; NULL for an unknown shell. New string. */
char *cli_completion_text(const char *shell);
/* Command that needs neither configuration nor log nor data. */
bool cli_is_plain(enum cli_cmd_id cmd);
/* --json or --format json. */
bool cli_json(const struct cli *c);

/* Options of the application as flags and configuration want them; borrowed from c. */
struct app_opts;
void cli_app_opts(const struct cli *c, struct app_opts *o);
/* The vault's passphrase of --passphrase-fd or --unlock into o; 0, or a code. May ask on the
 * terminal, so before the screen. */
int cli_passphrase(const struct cli *c, struct app_opts *o, struct err *e);
/* The line mode: says what changes, takes commands from stdin, until it is told to quit. Its
 * exit status. */
int cli_plain(struct cli *c);
/* Its own words besides the commands, for help and manual; NULL name ends. */
struct cli_plain_word {
    const char *name, *aliases, *args, *help;
};
extern const struct cli_plain_word cli_plain_words[];
/* "cc-tui: text" on stderr, cleaned: it may repeat arguments, files and services. */
void cli_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Run the command; its exit status. Flushes stdout. */
int cli_run(struct cli *c);

#endif
