/* The designer-checker pattern: two roles take turns in one sandbox, the designer works,
 * the checker judges, until the checker passes the work or the rounds are used up. Plain
 * data and pure functions: what is stored, what an event makes of it, what the roles are
 * told. Who carries it out is src/jobs/session_pair.c. */
#ifndef CCT_MODEL_PAIR_H
#define CCT_MODEL_PAIR_H

#include <cct/model/agent_event.h>
#include <cct/util/err.h>
#include <stddef.h>

enum pair_role { PAIR_DESIGNER, PAIR_CHECKER, PAIR_ROLES };
enum pair_state {
    PAIR_RUNNING,
    PAIR_STOPPED, /* by the user, an interrupt, or a message that was called off */
    PAIR_PASSED,
    PAIR_CAPPED,  /* the last round's work did not pass */
    PAIR_FAILED,  /* a turn failed: reason */
    PAIR_STATE_COUNT
};
enum pair_verdict { PAIR_NO_VERDICT, PAIR_PASS, PAIR_FAIL };
enum { PAIR_ROUNDS = 5, PAIR_MAX_ROUNDS = 99 };

struct pair_side {
    char *tool;
    char *model, *prompt; /* NULL: the tool's own; the one that comes with cc-tui */
    char *session;        /* of its CLI, to go on with; NULL: the next turn is its first */
    double cost_usd;      /* NaN: unpriced */
    int64_t tokens_in, tokens_out;
    int turns;            /* that it was given */
};
struct pair {
    uint64_t sandbox;
    char uid[12];         /* of this pair: part of its messages' keys */
    int64_t rev;          /* grows with each stored change */
    enum pair_state state;
    enum pair_role role;  /* whose turn it is, or was last */
    int round, rounds;    /* from 1; the cap */
    int turn;             /* number of the last message */
    bool waiting;         /* it is out and its turn has not ended */
    bool asked;           /* the checker was asked once more for a verdict */
    bool ending;          /* the turn at hand is being broken off */
    bool cut;             /* the role's turn before was: it is told to go on */
    struct pair_side side[PAIR_ROLES];
    char *task, *report, *review; /* the user's; the designer's and the checker's last words */
    char *reason;                 /* why it stands as it does, or NULL */
};

void pair_free(struct pair *p);
/* Deep; without `texts` task, report, review and prompts are left out, as in rows. */
struct pair *pair_dup(const struct pair *p, bool texts);
bool pair_same(const struct pair *a, const struct pair *b); /* as rows show it */
const char *pair_state_name(enum pair_state s); /* "running" ... */
int pair_state_parse(const char *s);            /* or -1 */
const char *pair_role_name(enum pair_role r);   /* "designer", "checker" */
int pair_role_parse(const char *s);
/* What is going on in a few cells: "checker 2/5", "passed 2/5". */
void pair_doing(const struct pair *p, char *dst, size_t size);

/* --- messages ------------------------------------------------------------------- */

/* Whom a message is for: "@designer ..." or "@checker ..."; anything else goes to the
 * designer. *body: what is to be said. */
enum pair_role pair_addressee(const char *text, const char **body);
/* Key of the message of a turn; turn_of is 0 for another pair's, or no pair's, message. */
void pair_key(const struct pair *p, int turn, char *dst, size_t size);
int pair_turn_of(const struct pair *p, const char *key);
bool pair_is_key(const char *key); /* sent by a pair, not by the user */

/* The verdict in the last line of the checker's answer that is more than ornament. */
enum pair_verdict pair_verdict(const char *text);
/* What the role at hand is told next, as a message. New string. */
char *pair_message(const struct pair *p);
const char *pair_default_prompt(enum pair_role r);

/* --- steps ------------------------------------------------------------------------ */

enum pair_event_kind {
    PAIR_BEGIN,    /* a new pair with sides, rounds and task */
    PAIR_TURN_END, /* turn, outcome; text: the answer, or why it failed */
    PAIR_LOST,     /* turn: its message never was a turn. outcome: INTERRUPTED when somebody
                      called it off, else FAILED; text: why */
    PAIR_STOP,
    PAIR_RESUME,   /* rounds: so many more; 0 = as many as are left, or as at first */
    PAIR_ACCEPT,   /* the user's word: it passes */
    PAIR_REJECT    /* it does not, whatever the checker said; text: why, or NULL */
};
struct pair_event {
    enum pair_event_kind kind;
    int turn, rounds;
    enum agent_outcome outcome;
    const char *text;
};
struct pair_act {
    bool changed;   /* to be stored */
    int end_turn;   /* this one is to be called off or interrupted; 0: none */
    bool send;      /* pair_message() under the key of p->turn */
};
/* Change *p; events that come twice or too late change nothing. ERR_CONFLICT: a wish of
 * the user's that makes no sense now, *p is as it was. */
int pair_apply(struct pair *p, const struct pair_event *ev, struct pair_act *act, struct err *e);

#endif
