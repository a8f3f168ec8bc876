/* Scripts for screens: a line feeds the model (rows, agent events, link, kill-all), sets
 * the size or types keys; then the canvas can be looked at. In process, no terminal. */
#ifndef CCT_TESTS_LIB_SCREENSCRIPT_H
#define CCT_TESTS_LIB_SCREENSCRIPT_H

#include "fakeapp.h"

#include <cct/model/ledger.h>
#include <cct/ui/ui.h>

struct script {
    struct app *app;
    struct ui ui;
    bool ui_open;
    int h, w;
    int64_t now;
    struct ui_opts opts;
    uint64_t offset; /* of the next event that `lines` makes */
    int64_t listed_at;
    struct ledger_span spans[64]; /* strings in words */
    struct ledger_turn turns[64];
    size_t n_spans, n_turns, n_words;
    char *words[1024];
    struct replay *replay;
    const char *where; /* the line at hand comes from */
};
/* 80x24, Saturday 2026-08-22 14:35 UTC; main thread. */
void script_init(struct script *s);
void script_release(struct script *s);
/* Lines (ends the program with a message when it cannot be read):
 *   # comment        size H W       ascii   readonly   wrap off   times off
 *   loaded           later SECONDS  link STATE cloud|hiding|local|unsafe [TEXT]
 *   row ID NAME TOOL STATE AGENT [project=NAME left=S since=S started=S cost=D gone=N load=C,M,U,A vm foreign
 *       protect unsafe unlisted pending changing meta=K:V odd=WORD tags=A,B step=N doing=TEXT
 *       pair=STATE,ROLE,ROUND,ROUNDS
 *       last=TEXT | reason=TEXT (to the line's end)]      TOOL, left or started "-": none
 *   listed SECONDS (ago: for the next link)    gone ID (the row vanishes)
 *   rows N FIRST-ID  agent ID {event}  lines ID N TEXT (N text events, "%d" counts)
 *   message ID SANDBOX STATE TEXT     event LEVEL SANDBOX TEXT    tool NAME TEMPLATE [KEY]
 *   template NAME STATUS [CPU MEM]   model WORD INPUT OUTPUT   preset NAME TOOL MODEL REPO PROMPT
 *   named slow|read (the files that a form names want a while; are read)
 *   key|repokey none|asking|good|hides|bad TEXT (how they stand, in the form)
 *   tbuild ID NAME TOOL VERSION STATE AGO_S [ENDED_AGO_S|- STEP/STEPS [PHASE | TITLE | ERROR | TAIL
 *       with \\ for LF]]   buildlog [LEVEL TEXT | phase NAME TITLE | cached NAME TITLE] (of the one
 *       that is followed)
 *   procs ID asking|listed|cannot none|live|lost|paused|ended WATCHED [WHY, or
 *       PID COMMAND | PID COMMAND ...; even pids have a folder]
 *   files PATH | d|f|l SIZE PERMS NAME | ... (answers the last request about files; "\e" in a
 *       name is an escape)    filetext TEXT with \n and \e and \0    fileend [TEXT]
 *   progress DONE TOTAL    changes BRANCH|- | XY ADDED REMOVED PATH | ... (ADDED -1: binary)
 *   hits whole|part NAME WHO TEXT | ... (of the newest search; <match> in the text)
 *   asks ID [AGO_S [words] QUESTION_ID QUESTION [// DETAIL with \ for LF] [ | CHOICE]...]   all
 *       its questions; and ID ...: one more     answered ID QUESTION_ID TEXT
 *   span PROJECT AGENT TEMPLATE NAME AGO_MIN MINUTES USD_PER_HOUR|-     turn PROJECT AGENT MODEL
 *       AGO_MIN TOKENS_IN TOKENS_OUT USD|-    usage RANGE [DAY WEEK MONTH] (sums of those so
 *       far, and budgets)
 *   kill PHASE N_PROJECT N_ACCOUNT KILLED ALREADY FAILED ALIVE
 *       [unverified | grace | account]
 *   projects NAME ... (the first is current)    vault open|WHY LOCKED
 *   keys j "typed" Enter <pasted>     drawn after each;   ahead K y   typed ahead: not drawn
 *   done TEXT (a request failed)    ended [TEXT] (the last one asked for; or failed so)
 *   receipts SANDBOX MESSAGE|! NAME [WHY] | ... (of the broadcast asked for last)
 *   mouse press|drag|release|up|down Y X ... (left button, wheel; drawn after each)
 *   edited [TEXT with \n for LF] (by an editor; none: it failed)
 *   kept NAME WORDS (a filter that was kept)
 *   budget TEXT (one is used up)    build NAME STATE (the only one)
 *   notes MS (steady time: what is to be told by then)
 *   replay TOOL FILE (a recorded stream, played from here on)   play MS (steady time goes on)
 *   replay-unread TOOL FILE (the next `play` reads it)
 *   confirm always|count|never */
void script_line(struct script *s, const char *line, const char *where);
/* Several lines at once. */
void script_run(struct script *s, const char *lines);
void script_draw(struct script *s);
/* The plain screen as one string; the caller frees it. */
char *script_screen(struct script *s);
bool script_shows(struct script *s, const char *text); /* it stands there */
/* Lines, and what they did: the calls of the application are those of these lines alone. */
void script_do(struct script *s, const char *lines);
bool script_called(struct script *s, const char *text);

/* --- for the files that know lines of their own ------------------------------------------ */

struct script_verb {
    const char *name; /* ends with NULL */
    void (*feed)(struct script *s, char *rest);
};
extern const struct script_verb script_row_verbs[], script_talk_verbs[], script_file_verbs[],
    script_form_verbs[], script_usage_verbs[], script_build_verbs[];
/* The next word of a line, which is cut and goes on behind it. */
const char *script_word(char **line);
/* Ends the program: the line cannot be read. */
void script_bad(const struct script *s, const char *line);
void script_usage_release(struct script *s);
void script_builds_release(void);
/* Post an event to the model and free what is left of it. */
void script_post(struct script *s, void *ev);

#endif
