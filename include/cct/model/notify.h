/* What is worth a notification, and when: pure decisions from what rows look like and the time
 * that is passed in (ms of any steady clock). A state is held for a second before it is told. A
 * call is worth one a minute of a sandbox at most, and what comes close together becomes one
 * (notify_new()); who reads along is told each by itself (notify_new_each()). */
#ifndef CCT_MODEL_NOTIFY_H
#define CCT_MODEL_NOTIFY_H

#include <cct/model/sandbox.h>
#include <cct/util/err.h>

/* X(ID, "option in [notify]", "default channels", "one, behind a name", "several") */
#define NOTE_EVENTS(X)                                                                         \
    X(ASKS, "asks", "bell osc", "asks you", "agents ask you")                                  \
    X(FINISHED, "finished", "mark", "has finished", "agents have finished")                    \
    X(ERROR, "error", "bell osc", "failed", "sandboxes failed")                                \
    X(ENDING, "ending", "mark", "is about to end", "sandboxes are about to end")               \
    X(BUILD, "build", "mark", "has ended", "builds have ended")                                \
    X(BUDGET, "budget", "bell osc", "is reached", "budgets are reached")

enum note_event {
#define NOTE_ENUM(id, name, def, one, several) NOTE_##id,
    NOTE_EVENTS(NOTE_ENUM)
#undef NOTE_ENUM
        NOTE_EVENTS_COUNT
};
/* Channels, a set of bits. */
enum { NOTE_MARK = 1, NOTE_BELL = 2, NOTE_OSC = 4, NOTE_HOOK = 8 };
const char *note_event_name(enum note_event e);
/* "bell osc", "none": bits, or -1 with *e. */
int note_channels(const char *words, struct err *e);

struct note {
    enum note_event event;
    size_t count;         /* of sandboxes; 1: the fields below are of that one */
    uint64_t sandbox;     /* 0 = of none */
    char title[160];      /* "fix-login asks you", "3 agents ask you" */
    char body[400];       /* its last line, or the names */
    char name[130];
    const char *before, *now; /* words of its state: "working", "asks you" */
    uint64_t ids[16];     /* the first ones of several */
};
struct notify;
struct notify *notify_new(void);
struct notify *notify_new_each(void);
void notify_free(struct notify *n);
/* A row as it is now; ending: its time is nearly up. The first look at a row tells nothing. */
void notify_look(struct notify *n, const struct sandbox *s, bool ending, int64_t now);
/* Something that no row shows: a build, a budget. name: as in "the build of my-claude". */
void notify_event(struct notify *n, enum note_event e, const char *name, const char *text,
                  int64_t now);
/* The same, when the build has ended since it looked like `before` (NULL: it is new). */
struct tbuild;
void notify_build(struct notify *n, const struct tbuild *before, const struct tbuild *b,
                  int64_t now);
/* The next one to be told, false: none now. row(ctx, sandbox): the row as it is now, whose words
 * are told; NULL: nothing needs to be told, the user sees it, or it is gone. */
bool notify_next(struct notify *n, int64_t now,
                 const struct sandbox *(*row)(void *ctx, uint64_t sandbox), void *ctx,
                 struct note *out);
/* ms until notify_next() may have one; -1 = nothing waits. */
int64_t notify_wait(const struct notify *n, int64_t now);

#endif
