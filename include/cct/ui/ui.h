/* The screen: loop, layout, focus, modes, status. Main thread only. */
#ifndef CCT_UI_UI_H
#define CCT_UI_UI_H

#include <cct/config/options.h>
#include <cct/model/notify.h>
#include <cct/ui/pane.h>
#include <cct/ui/reload.h>
#include <cct/ui/term.h>
#include <cct/util/arr.h>
#include <signal.h>

enum ui_mode { UI_NAV, UI_INPUT };

struct ui_opts {
    bool ascii, readonly;
    struct theme_wish color;
    const struct theme *theme;
    const struct theme *theme_light; /* in its place should the terminal's background be light; or NULL */
    const char *config_dir; /* with the folder "themes"; or NULL */
    int max_fps;          /* 0 = 30, or 10 over SSH */
    int64_t warn_left_ms; /* time left that is marked; 0 = 5 min */
    bool time_stamps, wrap;
    const char *sort;     /* column of the list; NULL = "made" */
    const char *kill_all_confirm; /* "always" "count" "never" */
    const char *tool;     /* of a new sandbox; NULL or "" = the first that fits */
    int timeout_s;        /* of a new sandbox; 0 = 15 min */
    bool pause_at_end;
    const char *bench_frames;     /* file for counters at exit, or NULL */
    const struct key_line *keys;  /* [keys] of the configuration; bad ones are left out */
    size_t n_keys;
    int shell_leave;      /* key that leaves a shell, see cct/app/passage.h */
    /* The configuration that all of this is from, and how it is read again; NULL: it is not.
     * `fill` puts one into the fields that it decides, on the main thread. */
    const struct config *config;
    void (*fill)(struct ui_opts *o, const struct config *c);
    struct reload_opts reload;
    const char *drafts;           /* file of what was typed and not sent, or NULL */
    const char *state_dir;        /* for a copy that finds no clipboard; or NULL */
    const char *copy_command, *copy_channel; /* NULL = none, "auto" */
    const int *notify;            /* channels of each enum note_event; NULL = none */
    const char *notify_osc, *notify_hook; /* NULL = "auto", none */
    bool mouse;           /* it is on from the begin */
    bool no_mouse;        /* it cannot be: mosh hands nothing on */
    bool title;                   /* the window's title is ours */
    bool second;                  /* another screen has the same data open */
    const char *note;             /* said in the first status line, or NULL */
    struct replay *replay;        /* this is played, by an application that only shows; or NULL */
};
/* What is to be done outside of the screen, by whoever runs it (ui/courier.c). */
enum ui_out_kind { UI_OUT_COPY, UI_OUT_NOTE, UI_OUT_EDIT, UI_OUT_RUN };
struct ui_out {
    enum ui_out_kind kind;
    char *label;       /* COPY: what it is, "3 lines"; NOTE, RUN: E2B's id, or "" */
    struct buf text;   /* COPY; EDIT: to begin with; RUN: the command line */
    struct note *note; /* NOTE */
    int channels;      /* of it but the mark */
};
/* A shell that was left and goes on; s in its sandbox comes back to it. */
struct left_shell {
    uint64_t sandbox, ident;
    int pid;
};
struct overlay {
    const struct overlay_ops *ops;
    void *state;
};
enum { UI_MAX_OVERLAYS = 4, UI_TOLD = 8 };
struct ui {
    struct app *app;
    const struct model *model;
    struct ui_opts opts;
    struct keymap *keys;
    struct canvas canvas;
    struct pane panes[PANE_COUNT];
    enum pane_id focus;
    enum body_id body;    /* what fills the screen; has the focus' pane */
    enum pane_id at_work; /* the work's focus while another body is shown */
    enum body_id zoomed_from; /* to go back to after the zoom */
    bool zoom;            /* the focus' pane alone */
    enum ui_mode mode;
    struct overlay overlays[UI_MAX_OVERLAYS];
    int n_overlays;
    uint64_t selected;    /* sandbox id of the list's cursor, 0 = none */
    uint64_t previous;    /* for "-" */
    struct inputline command; /* of the palette, with what was run before */
    ARR(uint64_t) followed; /* sandboxes whose output is asked for */
    ARR(uint64_t) marks;  /* sandbox ids, in the order they were marked */
    struct map *marked;   /* the same ones; NULL = none */
    uint64_t pruned;      /* of the model: its shape when marks of what is gone were dropped */
    struct reload *reload; /* the loop's; NULL without */
    struct ownfiles *own;  /* files that messages name */
    ARR(struct settings *) settings; /* read since the start; the last one counts */
    struct map *drafts;   /* drafts.c */
    int64_t replay_now, replay_second; /* steady ms of this turn; second that was drawn */
    bool replay_over;
    int replay_looked;                     /* percent that was drawn */
    uint64_t int_req;     /* interrupt that was asked for last, 0 = none open */
    key_code last_key;    /* that is being handled */
    enum action found;    /* what that key means where the keys go now */
    struct {
        char text[UI_TOLD][256];
        unsigned next;
    } told;               /* of ui_keys() */
    uint64_t procs_of;    /* sandbox whose processes are on the screen, 0 = none */
    bool frozen;          /* the picture stands still: drawn once more, to say so */
    bool still;           /* and that was done */
    bool bare;            /* the output pane is all there is */
    enum pane_id before_bare; /* focus to go back to */
    bool away;            /* the terminal has not the focus */
    bool awaits_new;      /* a sandbox was asked for: the cursor goes to its row */
    uint64_t newer_than;  /* which has a greater id than this */
    uint64_t awaits_ask;  /* its question is answered when it is known, unless a key comes first */
    char status[256];     /* one line; cleared by the next key, an info by time too */
    int status_level;     /* 0 info 1 warn 2 bad */
    int64_t status_since; /* wall ms of its first frame, 0 = not drawn yet */
    char kept_long[128];  /* begin of what was longer than the status last, and is an event */
    uint64_t seen_vault;  /* of the model: the passphrase is asked for once a change */
    uint64_t drawn_figures; /* of the model */
    struct {
        int64_t day;      /* end of that which was told last */
        enum theme_role roles[LEDGER_PERIODS]; /* of the budgets then */
    } money;
    uint64_t seen_events; /* of the model: a newer event ends an older info */
    int64_t now;          /* wall ms of this frame, set by the loop or a test */
    int64_t shown_at;     /* wall ms of the first frame */
    bool slow;            /* long ago, and the stored rows are not there */
    int64_t boot;         /* CLOCK_BOOTTIME ms of it, by which the service's clock goes */
    enum pane_id before_input; /* focus to go back to */
    int64_t last_ctrl_c;
    bool unseen;          /* the line is stuck: what is drawn is not on the screen yet */
    bool crowded;         /* this key came in a heap with others: pasted or typed ahead */
    bool hidden;          /* of another size, or too small, since it was drawn */
    bool asks_anew;       /* this frame is the first with this question */
    bool moved;           /* the cursor's row vanished: it stands where nobody has seen it */
    bool tiny;            /* too small to draw anything but a request for room */
    bool redraw, suspend; /* asked for by a key; the loop does it */
    uint64_t shell;       /* likewise: a shell in that sandbox */
    ARR(struct left_shell) shells;
    uint64_t export_req;  /* whose end is told: a transcript is being written */
    bool said;            /* the status line changed without a key */
    struct theme theme;   /* once another than the first one was chosen */
    bool theme_changed;   /* the loop shows it */
    ARR(struct ui_out) outbox; /* oldest first */
    bool mouse_on;        /* as wished; the loop tells the terminal */
    struct mouse mouse;   /* of the K_MOUSE that is being handled */
    struct {
        struct mouse m;
        int64_t at;
        enum pane_id pane; /* where the button went down; PANE_COUNT = nowhere */
    } pressed;
    struct {
        struct inputline *line; /* an editor has its text; NULL = none */
        const void *overlay;    /* whose line it is, NULL = the input's */
    } edit;
    struct notify *notify;
    ARR(uint64_t) looks;  /* sandboxes that changed since they were looked at */
    ARR(uint64_t) news;   /* ... of which something was told, and that were not gone to since */
    int64_t looked_at, notes_from, key_at; /* steady ms: of notes.c; the last key */
    bool focus_told;      /* the terminal tells whether it has the focus */
    bool attended;
    uint64_t copy_req;    /* transcript that is being read, to be copied; 0 = none */
    struct buf copy_text; /* of it, so far */
};

enum { UI_WARN_LEFT_MS = 300000 }; /* where nothing else is said */
enum { UI_SAID_MIN = 24 }; /* cells that what is said has beside the account, at least */
enum { UI_SLOW_MS = 5000 }; /* without the stored rows, then it is said */
enum { UI_SAID_MS = 10000 }; /* an info in the status line is shown so long */
enum { UI_TWICE_MS = 1000 }; /* from a key that leaves to the same again */
enum { UI_MIN_H = 10, UI_MIN_W = 40, UI_LIST_ONLY_W = 60, UI_COLUMNS_W = 100, UI_WIDE_W = 160,
       UI_COLUMNS_H = 20, UI_TALL_H = 30, UI_SUMS_W = 110, UI_SUMS_H = 36 };

/* Without a terminal, for tests: give sizes, keys and times, look at the canvas. */
void ui_init(struct ui *ui, struct app *app, const struct ui_opts *o);
void ui_release(struct ui *ui);
void ui_resize(struct ui *ui, int h, int w);
/* One key through overlay, pane, global. Returns UI_* flags. */
int ui_key(struct ui *ui, key_code k, const char *paste, size_t len);
/* Model changed: ask panes. True if something visible may differ. */
bool ui_update(struct ui *ui);
/* An event on its way to the model: requests that failed are told in the status line. */
void ui_observe(void *ui, const struct msg *ev);
/* Draw everything on ui->canvas for time `now`. */
void ui_draw(struct ui *ui, int64_t now);
/* The service's time of this frame: what rows' times are held against. */
int64_t ui_server_now(const struct ui *ui, int64_t now);
/* Takes an info off the status line when its time is over, puts one there when the stored rows do
 * not come; true if it did. */
bool ui_status_ages(struct ui *ui, int64_t now);
/* Newest message to the selected sandbox that is still queued, or NULL. */
const struct message *ui_queued(const struct ui *ui);
/* Wall ms when the picture changes by itself (a minute of a countdown), 0 = never. */
int64_t ui_next_change(struct ui *ui, int64_t now);

/* What ui_run() reads by a descriptor: to be blocked before any thread begins. */
void ui_signals(sigset_t *set);
/* The program's screen: opens the terminal, paints, goes online, loops until quit,
 * hang-up or SIGTERM, restores. Exit status. */
int ui_run(struct app *app, const struct ui_opts *o);

void ui_overlay_push(struct ui *ui, const struct overlay_ops *ops, void *state);
void ui_overlay_pop(struct ui *ui);
/* The pane gets the keys; its body is shown when the one that is does not have it. */
void ui_focus(struct ui *ui, enum pane_id p);
/* Shows a body and gives its first pane the keys; the work where it was left. */
void ui_show(struct ui *ui, enum body_id b);
enum key_scope ui_scope(struct ui *ui, enum pane_id p);
enum key_scope overlay_scope(const struct overlay *o);
/* A sentence or a hint with keys as they are bound now: "{kill} kills it" names the first one
 * of that action, or "-". Borrowed until the eighth call from now. ui_status() does the same. */
const char *ui_keys(struct ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ui_select(struct ui *ui, uint64_t sandbox);
/* Output is asked for of the selected sandbox and of those on the wall, and of no others. */
void ui_follow(struct ui *ui);
/* Go to the next new row of ours, unless a key comes first. */
void ui_await_new(struct ui *ui);
/* What the key was meant for vanished before this was drawn: said, and nothing is done. */
bool ui_moved(struct ui *ui);
/* May this key destroy something? The picture that asks is on the screen, and the key was
 * not typed ahead of it or in a heap with others, which is said. */
bool ui_key_meant(struct ui *ui);
/* Another theme from now on, by its name; what is wrong with it is said. */
void ui_set_theme(struct ui *ui, const char *name);
/* A paste into a field: as a whole, or not at all, which is said. */
void ui_paste(struct ui *ui, struct inputline *l, const char *paste, size_t len);
/* A key in a field, which means ui->found: a paste, a new line where it has several, showing
 * what was pasted where that is folded, else editing, or a character. False when the key is
 * none of its own. */
bool ui_line_key(struct ui *ui, struct inputline *l, key_code k, const char *paste, size_t len);
/* Looking without acting (bare.c): the picture stands still; the output without borders, for
 * the terminal's own copying. Their keys, while they last. */
void ui_freeze(struct ui *ui, bool on);
int ui_frozen_key(struct ui *ui, key_code k);
void ui_bare(struct ui *ui, bool on);
int ui_bare_key(struct ui *ui, key_code k, const char *paste, size_t len);
/* An action that counts everywhere. */
int ui_global(struct ui *ui, enum action a);
/* Any action, from wherever the keys go: the focus' pane takes it, or the one it is of. */
int ui_do(struct ui *ui, enum action a);
/* Refused with --readonly. */
bool ui_changes_things(enum action a);
void ui_status(struct ui *ui, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Copying (copy.c): cleaned text to a clipboard or a file; `what` as in "3 lines". */
void ui_copy(struct ui *ui, const char *what, const char *text, size_t len);
int ui_copy_of(struct ui *ui, enum action a, const struct sandbox *s); /* its id or address */
void ui_copy_observe(struct ui *ui, const struct ev_done *d);
/* The mouse (mouse.c): ui->mouse at ui->now. */
int ui_mouse(struct ui *ui);
int ui_toggle_mouse(struct ui *ui);
/* Its text into an editor that gets the terminal; overlay: state of the dialog whose it is. */
int ui_edit(struct ui *ui, struct inputline *l, const void *overlay);
/* A command line for the shell of this machine, which gets the terminal until it ends and Enter
 * is pressed. */
void ui_run_command(struct ui *ui, const char *command);
/* What came of ui_edit(): the text, or NULL and why. */
void ui_edited(struct ui *ui, const char *text, size_t len, const char *why);
/* Notifications (notes.c). What the outbox gets is told by whoever takes it; true: the picture
 * changed. now: steady ms. */
void ui_notes_observe(struct ui *ui, const struct msg *ev);
bool ui_notes(struct ui *ui, int64_t now);
int64_t ui_notes_wait(const struct ui *ui, int64_t now); /* ms, -1 = nothing waits */
void ui_note(struct ui *ui, enum note_event e, const char *name, const char *text, int64_t now);
bool ui_has_news(const struct ui *ui, uint64_t sandbox);
void ui_title(const struct ui *ui, char *dst, size_t size);
/* The oldest of the outbox, false: it is empty. Whoever takes it frees it. */
bool ui_out_take(struct ui *ui, struct ui_out *out);
void ui_out_release(struct ui_out *out);
/* A shell in the sandbox that ui->shell names, on the terminal in the place of the screen
 * (shell.c); what runs goes on meanwhile. Exit status when the program is to end, else 0. */
int ui_shell(struct ui *ui);
/* Asks the loop for it where it can be had; nothing wakes a sandbox for it. */
void ui_ask_shell(struct ui *ui, const struct sandbox *s);
/* What was read while the screen is open (settings.c): taken over with all that can change now;
 * cursor, scrolling and drafts stay. Takes s. */
void ui_take_settings(struct ui *ui, struct settings *s);
/* One option from now on, until the end. */
void ui_set_option(struct ui *ui, const char *name, const char *value);
/* The output's, as configured anew. */
void output_style(struct ui *ui, bool wrap, bool times);
/* Marks (marks.c). One belongs to a sandbox's id, wherever its row is and whether it is
 * shown; it ends with the row. */
bool marks_has(const struct ui *ui, uint64_t sandbox);
void marks_set(struct ui *ui, uint64_t sandbox, bool on);
void marks_clear(struct ui *ui);
bool marks_prune(struct ui *ui); /* the model changed; true if some ended */
/* "a, b, c and 9 more", as many names as fit. */
void marks_names(const struct ui *ui, const uint64_t *ids, size_t n, char *dst, size_t size);
/* Drafts (drafts.c), by the session they are for. Read once, written at the end. */
void drafts_init(struct ui *ui);
void drafts_release(struct ui *ui);
void drafts_save(struct ui *ui);
const char *drafts_get(const struct ui *ui, const char *session); /* "" = none */
void drafts_put(struct ui *ui, const char *session, const char *text);
void drafts_broadcast(struct ui *ui, const char *text);
const char *drafts_of_broadcast(const struct ui *ui);
/* Money (money.c): "$0.55/h", with "+?" where something has no price; "today $2.87 of $10.00"
 * with the role of the budget that is used most, or "". */
void money_burn(const struct model *m, char *dst, size_t size);
void money_today(const struct model *m, char *dst, size_t size, enum theme_role *role);
bool money_news(struct ui *ui); /* newest sums are worth a picture */
int money_pct(const struct ledger_report *r, enum ledger_period p); /* -1: no budget */
int money_warn_pct(const struct ledger_report *r);
enum theme_role money_role(const struct ledger_report *r, int pct);
/* Rows of the header: the second one has the money, where there is room. */
int ui_header_rows(const struct ui *ui);
void ui_draw_sums(struct ui *ui, int y); /* that row (sums.c) */
bool ui_has_columns(const struct ui *ui); /* panes of the work stand side by side */
/* Where panes go at h x w: fills r and visible of each. */
void ui_layout(struct ui *ui, int h, int w);
/* For the place() of a body; nothing is shown of a pane without rows or columns. */
void ui_place(struct ui *ui, enum pane_id p, int y, int x, int h, int w);

/* --- replay.c: with opts.replay alone; `now`: steady ms */
void ui_replay_begin(struct ui *ui, int64_t now); /* before the first picture */
bool ui_replay_turn(struct ui *ui, int64_t now);
int64_t ui_replay_wait(const struct ui *ui, int64_t now); /* ms, -1 = nothing will be due */
int ui_replay_action(struct ui *ui, enum action a);
int ui_replay_refuse(struct ui *ui); /* says why; handled */
void ui_replay_header(struct ui *ui);

#endif
