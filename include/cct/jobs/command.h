/* Commands from the facade to the jobs, through the net thread's queue. Each with a
 * req_id ends in exactly one EV_DONE. Payloads are owned by the message. */
#ifndef CCT_JOBS_COMMAND_H
#define CCT_JOBS_COMMAND_H

#include <cct/model/sandbox.h>
#include <cct/util/mq.h>

enum cmd_type {
    CMD_CREATE = 0x200, /* create */
    CMD_SEND,           /* sandbox, text, on: wait for the turn's end, n: enum send_how */
    CMD_MESSAGE_CANCEL, /* id */
    CMD_MESSAGE_RETRY,  /* id */
    CMD_INTERRUPT,      /* sandbox */
    CMD_RESTART,        /* sandbox */
    CMD_KILL,           /* sandbox */
    CMD_TIMEOUT,        /* sandbox, n: seconds from now */
    CMD_PAUSE,          /* sandbox */
    CMD_RESUME,         /* sandbox, n: timeout in seconds */
    CMD_RENAME,         /* sandbox, text */
    CMD_TAG,            /* sandbox, text: its words */
    CMD_PROTECT,        /* sandbox, on */
    CMD_FORGET,         /* sandbox */
    CMD_KILL_OPEN,      /* on: account scope */
    CMD_KILL_CONFIRM,   /* on: account scope, n: number shown, id: set shown */
    CMD_KILL_CANCEL,
    CMD_KILL_RETRY,
    CMD_FOLLOW,         /* sandbox, on */
    CMD_LOAD_OLDER,     /* sandbox; before the event at offset id, index n */
    CMD_LOAD_NEWER,     /* sandbox; behind it; on: from there on, in the place of all */
    CMD_REFRESH,
    CMD_ACTIVE,         /* on */
    CMD_RAW,            /* sandbox, n: offset, below 0 from the end; on: follow */
    CMD_EVENTS,         /* sandbox, on: follow */
    CMD_LOGS_END,       /* sandbox; id: the request of one of the two */
    CMD_PAIR,           /* sandbox, n: enum pair_event_kind, id: rounds, text: note or NULL;
                           PAIR_BEGIN: create */
    CMD_SAY,            /* sandbox, n: level, text */
    CMD_UNLOCK,         /* key: the vault's passphrase */
    CMD_KEY_ADD,        /* text: provider, on: for the project, key */
    CMD_KEY_RM,         /* text: provider, on: of the project */
    CMD_KEY_TRUST,      /* the folder's .cc-tui may choose the project's keys */
    CMD_KEY_PROTECT,    /* key: a passphrase; NULL: by a key file */
    CMD_STRETCHED,      /* within the jobs: key, or text: why there is none */
    CMD_PROCS,          /* sandbox, on: somebody looks at its processes */
    CMD_PROC_LIST,      /* sandbox: once */
    CMD_PROC_WATCH,     /* sandbox, n: pid, id: ident or 0, on: as bytes */
    CMD_PROC_KILL,      /* sandbox, n: pid, id: ident or 0, on: SIGKILL */
    CMD_ADOPT,          /* sandbox, text: name, text2: project, n: pid or 0, id: ident */
    CMD_UNADOPT,        /* sandbox */
    /* JSON lines by EV_CHUNK, then EV_DONE */
    CMD_TEMPLATES,
    CMD_BUILDS,         /* text: template, or NULL: of all */
    CMD_BUILD_FOLLOW,   /* text: "template[:build or tag]" */
    CMD_BUILD_UNFOLLOW, /* id: request that ends by that */
    CMD_SYSTEM_LOGS,    /* sandbox, on: follow */
    CMD_BUILD,          /* build, on: lines of JSON, and its end is waited for */
    CMD_BUILD_CANCEL,   /* id, or text: name */
    CMD_BUILD_AGAIN,    /* the same, on: as above */
    CMD_BUILD_DELETE,   /* the template with its builds */
    CMD_BUILD_TAG,      /* text: "name:tag", build: tags; on: taken away from "name" */
    CMD_BUILD_ROWS,     /* lines of JSON */
    CMD_BUILD_EXPORT,   /* text: path of a new file, text2: what goes into it */
    CMD_BUILD_WORKED,   /* within the jobs: id of what a thread did */
    CMD_BROADCAST,      /* ids, text, n: enum send_how */
    CMD_EXPORT,         /* sandbox, n: enum export_format, text: file or NULL: EV_CHUNK */
    CMD_ANSWER,         /* sandbox, text2: question or NULL, n: choice or -1, text */
    CMD_SEARCH,         /* text: words, sandbox or 0, n: how many, id: older than that one or 0,
                           on: all must be in the index first. EV_HITS, EV_DONE */
    CMD_USAGE,          /* text: a time as ledger_range() takes it, n: enum usage_how. EV_USAGE,
                           EV_DONE; text2: a file to write instead */
    CMD_KEY_TEST,       /* text: provider */
    CMD_LOCK,           /* the vault */
    CMD_TOUCH,          /* somebody is at the screen */
    /* projects by name or id */
    CMD_PROJECT,        /* text: current from now on; made when there is none */
    CMD_PROJECT_ADD,    /* text */
    CMD_PROJECT_RENAME, /* text, text2: its new name */
    CMD_PROJECT_RM,     /* text */
    CMD_PROJECT_SET,    /* project: prompt, skills and defaults of the current one */
    CMD_PROJECT_VAR,    /* text: name, text2: value, or NULL: away */
    CMD_PROJECT_SECRET, /* text2: name, key: its value */
    CMD_PRESET,         /* text: name, on: the user's, project: its defaults; NULL: away */
    CMD_FILTER,         /* text: name, text2: words; NULL: away */
    CMD_KEY_LOOK,       /* n: providers as bits of tool.needs: can the key in force be used? */
    /* a terminal or a command in a sandbox; CMD_SHELL's req_id names it to the others, in id */
    CMD_SHELL,          /* sandbox, shell */
    CMD_SHELL_INPUT,    /* id, text of n bytes */
    CMD_SHELL_EOF,      /* id: no more input */
    CMD_SHELL_TOOK,     /* id, n: bytes of output that are out of the way */
    CMD_SHELL_SIZE,     /* id, n: columns << 16 | rows */
    CMD_SHELL_LEAVE,    /* id: not looked at any more; on: the process gets SIGTERM */
    CMD_FILE,           /* sandbox, file. EV_FILES, EV_PROGRESS, EV_CHUNK; EV_DONE */
    CMD_FILE_CANCEL,    /* id: the request */
    CMD_FILE_SYNCED     /* within the jobs: id of what a thread did */
};
/* Something about files of a sandbox. */
struct cmd_file {
    int op;          /* enum file_op, cct/model/files.h */
    char *path, *to; /* there */
    char *local;     /* here */
    bool over;       /* what has that name already is replaced */
    uint64_t max;    /* bytes that are wanted at most; 0 = all */
};
/* A new process, or with a pid one that runs. */
struct cmd_shell {
    char **argv;     /* ends with NULL; NULL: a login shell */
    struct kv *env;  /* ends with k NULL; wiped when freed; may be NULL */
    int pid;
    uint64_t ident;  /* of struct proc, 0 = whatever has the pid */
    bool pty;
    int cols, rows;
};
struct project;
struct pair; /* cct/model/pair.h */
struct secret;
struct cmd_create {
    char *tool, *template_id, *name, *prompt, *command; /* NULL = none, default */
    int timeout_s;
    bool pause_at_end, when_ready;
    struct kv *env; /* ends with k NULL; wiped when freed; may be NULL */
    char *model;         /* NULL = the tool's, or its own default */
    char *repo, *branch; /* to check out before the agent starts; branch NULL = its default */
    char *system_prompt; /* text, or NULL */
    char *ask;           /* "yes", "no", or NULL: the tool's policy */
    char *skills;        /* a tar archive of skills_len bytes, or NULL */
    size_t skills_len;
    bool in_turn;        /* one of several: they are made a second apart where a service
                            counts */
    bool only_try;       /* all that can be told before it is made, and nothing is made */
    struct pair *pair; /* tool "pair": sides, rounds, task; or NULL */
};
struct cmd_build {
    char *name, *where, *tool; /* where NULL: the tool's own recipe */
    char **tags;               /* ends with NULL, or NULL */
    struct kv *args;           /* likewise */
    int cpu_count, memory_mb;
    bool no_cache;
};
struct cmd {
    struct msg m;
    uint64_t sandbox, id;
    int64_t n;
    bool on;
    char *text, *text2;
    struct secret *key; /* freed with the command; may be NULL */
    struct cmd_create *create;
    uint64_t *ids;
    size_t n_ids;
    struct project *project;
    struct cmd_shell *shell;
    struct cmd_build *build;
    struct cmd_file *file;
};
/* Zeroed, with its free function set. */
struct cmd *cmd_new(enum cmd_type t, uint64_t req_id);
void cmd_create_free(struct cmd_create *c);
void cmd_shell_free(struct cmd_shell *s);
void cmd_build_free(struct cmd_build *b);
void cmd_file_free(struct cmd_file *f);

#endif
