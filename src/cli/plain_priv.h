/* The line mode: one program of lines over the facade, for screen readers and for terminals that
 * cannot place text. Whole sentences, each a line of its own, the state first; nothing is drawn,
 * taken back or said twice. Main thread.
 *
 *   plain.c        start, loop, lines from stdin, questions, end
 *   plain_words.c  what a line means: words of our own, else a command of the table
 *   plain_news.c   what is told by itself
 *   plain_list.c   sandboxes and events, read aloud
 *   plain_read.c   a transcript, read aloud: entries by number, the next, those that come */
#ifndef CCT_CLI_PLAIN_PRIV_H
#define CCT_CLI_PLAIN_PRIV_H

#include "cli_priv.h"

#include <cct/model/notify.h>
#include <cct/model/sort.h>
#include <cct/util/buf.h>

/* Place of an entry in its transcript. */
struct entry_key {
    uint64_t offset;
    uint32_t index;
};
struct plain_follow {
    uint64_t sandbox;
    bool loaded;           /* what there was is known: from here on it is told */
    bool dirty;
    struct entry_key seen; /* all up to here was told, or was there before */
};
/* What `read` has read last: `more` and `back` go on from it, `open` takes its numbers. */
struct plain_reading {
    uint64_t sandbox;
    ARR(struct entry_key) keys; /* of the numbers 1 .. n */
    struct entry_key first, last;
    bool any;
};
struct plain {
    struct cli *c;
    struct app *app;
    struct cli_shared shared;
    int sigfd;
    /* lines */
    struct buf in;
    bool eof, tty, too_long;
    bool at_prompt;        /* the cursor stands behind it */
    bool running;          /* a command does */
    bool leavable;         /* ... one that waits long: "stop" leaves it */
    bool endless;          /* ... and does not end by itself */
    bool stop;             /* the program ends */
    int signal;            /* that ends it, or 0 */
    bool asking;           /* a question waits for its line */
    int64_t ctrl_c;        /* mono ms of the first one */
    unsigned interrupts;   /* so many ^C came */
    /* news */
    bool hold;             /* they wait for the next line */
    ARR(char *) held;      /* the newest */
    size_t held_bytes, held_lost; /* of them; older ones that were left out */
    struct notify *notify;
    ARR(uint64_t) changed; /* rows to look at */
    struct map *told_asks; /* ids of questions */
    uint64_t seen_asks, seen_link, seen_vault;
    int64_t looked_at;     /* mono ms of the last look at all rows */
    bool greeted, link_down;
    char *last_trouble;
    /* reading */
    ARR(struct plain_follow) follows;
    struct plain_reading reading;
    uint64_t await;        /* its transcript is waited for */
    bool arrived;
    char *filter;          /* words that the list is narrowed to, or NULL */
    int sort;              /* its order (enum sort) */
    ARR(char *) numbers;   /* ids of sandboxes as `list` has numbered them */
};

/* --- plain.c: a sentence, and its newline; news of it wait while they are held */
void plain_say(struct plain *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void plain_tell(struct plain *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void plain_tell_held(struct plain *p);
/* Let events come until ready() or something else ends it; false: it was called off. */
bool plain_until(struct plain *p, bool (*ready)(struct plain *p));
int64_t plain_now(const struct plain *p); /* the service's time */

/* --- plain_words.c */
void plain_line(struct plain *p, char *line);
/* Words of our own: what follows the word is in args, "" or more. */
#define PLAIN_SORT_WORD(id, word, help) " " word
#define PLAIN_WORDS(X)                                                                         \
    X(list, "list", "ls l", "[all]",                                                           \
      "the sandboxes, numbered; a number may stand wherever a name does")                      \
    X(read, "read", "r", "NAME [N]", "the last N entries of its transcript, 10 where none is said") \
    X(more, "more", "m", "[N]", "the entries behind those that were read")                     \
    X(back, "back", "b", "[N]", "the entries in front of those that were read")                \
    X(open, "open", "o", "NUMBER", "the whole of an entry that was read, its output too")      \
    X(follow, "follow", "f", "NAME", "from now on read aloud what it puts out")                \
    X(stop, "stop", "", "[NAME]", "follow no more; a command that runs is left by it, too")    \
    X(say, "say", "@", "NAME TEXT", "send TEXT to the agent, just as it is typed")             \
    X(asks, "asks", "", "", "what the agents ask you; 'answer NAME NUMBER' answers")           \
    X(events, "events", "log", "[N]", "the last N events, 10 where none is said")              \
    X(filter, "filter", "", "[WORDS]",                                                         \
      "list what has all of WORDS, such as state:running or agent:claude; alone: all again")   \
    X(sort, "sort by", "sort", "[COLUMN]",                                                     \
      "the order of the list:" SORTS(PLAIN_SORT_WORD) "; alone: those that ask first")         \
    X(hold, "hold", "", "[on|off]",                                                            \
      "news wait until you end a line, so that none comes while you type")                     \
    X(kill, "kill all", "", "[everything]",                                                    \
      "kill all of the project, or everything under this key: asks, with a fresh list")        \
    X(idle, "pause all idle", "", "[TIME]", "pause what is idle for longer than TIME, else 5m") \
    X(project, "project", "", "[NAME]", "switch to the project; without a name say which it is") \
    X(view, "all projects", "", "", "list the sandboxes of all projects")                      \
    X(unlock, "unlock", "", "", "ask for the passphrase of the stored keys")                   \
    X(words, "help", "? h", "[COMMAND]", "these words, or what a command does")                \
    X(quit, "quit", "q exit bye", "", "end cc-tui; the sandboxes live on")
#define PLAIN_DECLARE(fn, name, aliases, args, help) void plain_do_##fn(struct plain *p, char *rest);
PLAIN_WORDS(PLAIN_DECLARE)
#undef PLAIN_DECLARE
/* Run a command of the table with these words; its exit status. */
int plain_command(struct plain *p, const char *const *words, size_t n);
/* Cut the first word off; "" when there is none. */
char *plain_word(char **rest);
/* A count that may be missing; false: said that it is none. */
bool plain_count(struct plain *p, const char *word, int least, int *n);
/* By number, name or id; NULL: said. */
const struct sandbox *plain_find(struct plain *p, const char *word);

/* --- plain_news.c */
void plain_news_observe(struct plain *p, const struct msg *ev);
int plain_news(struct plain *p); /* tell what is new; ms until it wants to look again, or -1 */
void plain_say_question(struct plain *p, const struct question *q);

/* --- plain_list.c */
void plain_counts(struct plain *p, char *dst, size_t size);
const char *plain_name(const struct sandbox *s);
/* "41 minutes" */
void plain_span(char *dst, size_t size, int64_t ms);

/* --- plain_read.c */
void plain_read_observe(struct plain *p, const struct msg *ev);
void plain_read_news(struct plain *p); /* what followed sandboxes have put out */
void plain_read_release(struct plain *p);
bool plain_follows(const struct plain *p, uint64_t sandbox);

#endif
