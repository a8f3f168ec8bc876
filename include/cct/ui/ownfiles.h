/* Files of this machine that a message may name: looked for and read on threads of their own, for
 * the main thread waits for no disk and no server. One look of a kind at a time. Main thread. */
#ifndef CCT_UI_OWNFILES_H
#define CCT_UI_OWNFILES_H

#include <cct/util/err.h>
#include <cct/util/mq.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum own_kind {
    OWN_MATCHES, /* what a path could become, of which `text` is the begin */
    OWN_NAMED,   /* the first file that `text`, a message, names by "@path" */
    OWN_TEXT,    /* the message with the text of `paths` behind it */
    OWN_KINDS
};
struct own_look {
    struct msg m;     /* first; its type is the kind */
    uint64_t sandbox; /* whom the message is for */
    char *text;
    char **paths;     /* ends with NULL; or NULL */
    int how;          /* as app_send_how() has it */
    /* what came of it */
    char *found;      /* what all matches begin with; the file; all of the message; or NULL */
    struct err err;   /* OWN_TEXT: why a file cannot go along */
    size_t n;         /* matches; */
    bool dir, whole;  /* the last one is a folder; one is called exactly so, and is a file */
    bool there;       /* the folder can be read */
    char *list;       /* begin of their names, for one line */
    /* its thread's */
    pthread_t thread;
    struct mq *out;
};
/* Copies; paths may be NULL. */
struct own_look *own_look_new(enum own_kind k, uint64_t sandbox, const char *text);

struct ownfiles;
struct ownfiles *ownfiles_new(void);
/* A look whose disk does not answer is left behind with what it holds. */
void ownfiles_free(struct ownfiles *x);
/* False, and it is freed: one of the kind is under way. */
bool ownfiles_post(struct ownfiles *x, struct own_look *take);
bool ownfiles_busy(const struct ownfiles *x, enum own_kind k);
int ownfiles_fd(const struct ownfiles *x);
/* Wait so long for something to be done; 0 = do not. */
bool ownfiles_wait(const struct ownfiles *x, int ms);
/* One that is done, or NULL; msg_free() it. */
struct own_look *ownfiles_take(struct ownfiles *x);

#endif
