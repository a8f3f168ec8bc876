/* Panes, bodies and overlays: const tables plus private state. draw() is a pure function of
 * model, pane state and the time passed in: no I/O, no clock, no curses. */
#ifndef CCT_UI_PANE_H
#define CCT_UI_PANE_H

#include <cct/app.h>
#include <cct/model/sort.h>
#include <cct/ui/canvas.h>
#include <cct/ui/inputline.h>
#include <cct/ui/keymap.h>

/* Returned by handlers. */
enum { UI_IGNORED = 0, UI_HANDLED = 1, UI_REDRAW = 2, UI_LAYOUT = 4, UI_QUIT = 8, UI_CLOSE = 16 };

enum pane_id { PANE_LIST, PANE_OUTPUT, PANE_INPUT, PANE_DETAILS, PANE_EVENTS, PANE_WALL,
               PANE_USAGE, PANE_BUILDS, PANE_BUILD_LOG,
               PANE_FILES, PANE_FILE, PANE_CHANGES, PANE_DIFF,
               PANE_COUNT };

/* A body is what stands between the header and the two last lines: the panes of the work
 * (list, output ...), or others instead of all of them. Each is a row of `bodies` (body.c);
 * a pane that is in several is small beside others in the work, where there is room for it,
 * and large in the body that it is the first of. */
enum body_id { BODY_WORK, BODY_WALL, BODY_USAGE, BODY_BUILDS,
               BODY_FILES, BODY_CHANGES,
               BODY_COUNT };
enum { BODY_PANES = 8 };
struct ui;
struct body {
    enum action key; /* shows it; ACT_NONE: ui_show or ui_focus alone */
    enum pane_id panes[BODY_PANES]; /* in the order of Tab; the first gets the keys */
    int n;
    /* Places its panes (ui_place) in the rows from `top`, each with its rule in the row above
     * it; NULL: the first with a third, the second below it, or beside it where it is wide. */
    void (*place)(struct ui *ui, int top, int h, int w);
};
extern const struct body bodies[BODY_COUNT];
bool body_has(enum body_id b, enum pane_id p);
enum body_id body_of(enum pane_id p);
/* One pane with the input below it. */
void place_wall(struct ui *ui, int top, int h, int w);
void place_builds(struct ui *ui, int top, int h, int w);

struct pane;
struct ev_done;
struct pane_ops {
    const char *name;
    enum key_scope scope;
    enum key_scope (*scope_now)(struct ui *ui, void *state); /* or this one; may be NULL */
    void *(*open)(struct ui *ui);
    void (*close)(void *state);
    /* The model changed (rev); true when what this pane shows may differ. */
    bool (*update)(struct ui *ui, void *state);
    void (*draw)(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                 int64_t now);
    /* An action of its scope or NAV. */
    int (*action)(struct ui *ui, void *state, enum action a);
    /* A key of its line of text (input, search field); ui->found is what it means there. */
    int (*key)(struct ui *ui, void *state, key_code k, const char *paste, size_t len);
    /* Left button or wheel at a cell of it, (0, 0) its first; `again`: pressed twice there. NULL,
     * or UI_IGNORED: the wheel moves up and down, a click gives the keys to it. */
    int (*mouse)(struct ui *ui, void *state, const struct mouse *m, bool again);
    /* While a field of the pane has the keys: its line of hints, else NULL; may be NULL. */
    const char *(*typing)(struct ui *ui, void *state);
    /* Title and right-hand note for its rule; borrowed. */
    const char *(*title)(struct ui *ui, void *state);
    const char *(*note)(struct ui *ui, void *state);
};
struct pane {
    const struct pane_ops *ops;
    void *state;
    struct rect r;
    bool visible;
    uint64_t seen_rev;
};
/* Rows the input wants at width w (1 and more); its draft is per sandbox. */
int pane_input_rows(struct ui *ui, int w);
/* What stands in its fields now, to drafts_put(). */
void pane_input_drafts(struct ui *ui);
void pane_input_observe(struct ui *ui, const struct msg *ev);
/* Take what was found in files of this machine; wait so long for it, 0 = do not. */
void pane_input_looks(struct ui *ui, int ms);
bool pane_input_looks_on(const struct ui *ui); /* something is still being looked for */
extern const struct pane_ops pane_list, pane_output, pane_input, pane_details, pane_events,
    pane_wall, pane_usage, pane_builds, pane_build_log;
/* Files of a sandbox and one of them (panes/files.c, file_view.c); what was changed in it and
 * the diff (panes/changes.c). */
extern const struct pane_ops pane_files, pane_file, pane_changes, pane_diff;
void files_show(struct ui *ui, const struct sandbox *s);
/* A file of it, by a whole path, or by one of those below. */
void files_show_path(struct ui *ui, const struct sandbox *s, const char *path);
/* The i-th file that is known of it: in the folder that was looked at last, among the changed
 * ones; NULL behind the last. None whose name cannot be shown. Borrowed until the next event. */
const char *files_path(struct ui *ui, uint64_t sandbox, size_t i);
const char *changes_path(struct ui *ui, uint64_t sandbox, size_t i);
char *changes_whole_path(struct ui *ui, uint64_t sandbox, const char *path); /* NULL: none such */
void changes_show(struct ui *ui, const struct sandbox *s);
/* What was changed when that was looked at last; false: it never was. */
struct changes_sum {
    size_t files;
    long added, removed;
};
bool changes_known(struct ui *ui, uint64_t sandbox, struct changes_sum *c);

/* Sandboxes whose tiles are on the screen, at most WALL_TILES; returns how many. */
enum { WALL_TILES = 9 };
size_t wall_tiles(struct ui *ui, uint64_t ids[WALL_TILES]);
/* The cursor's sandbox has a tile, if any has. */
void wall_settle(struct ui *ui);

/* The list by a column; narrowed to what fits (model/filter.h). Both say so. */
void list_sort(struct ui *ui, enum sort by, bool inverted);
void list_filter(struct ui *ui, const char *text);
const char *list_filter_words(struct ui *ui); /* what it is narrowed to; borrowed */

/* The builds' body comes into sight, and goes. */
void builds_shown(struct ui *ui);
void builds_hidden(struct ui *ui);
void builds_await_new(struct ui *ui); /* the cursor goes to the next new one */
int builds_do(struct ui *ui, enum action a); /* to the build under the cursor */
bool builds_done(struct ui *ui, const struct ev_done *d); /* true: it was its request */

/* Lines "label    value" about one sandbox, for the pane and the dialog. */
struct buf;
struct sandbox;
void details_text(struct ui *ui, const struct sandbox *s, struct buf *b, int64_t now);
struct pair;
void pair_text(const struct pair *p, struct buf *b); /* how it stands, cost per role */

/* Overlays: on top, get keys first; `modal` ones swallow everything else. */
struct overlay_ops {
    const char *name;
    const char *mode; /* word for the status line; NULL: ASK, or FORM */
    enum key_scope scope;
    enum key_scope (*scope_now)(void *state); /* or this one; may be NULL */
    void (*close)(void *state);
    bool (*update)(struct ui *ui, void *state);
    void (*draw)(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now);
    int (*action)(struct ui *ui, void *state, enum action a);
    /* What no action took: text, mostly; ui->found is what it means in the scope. */
    int (*key)(struct ui *ui, void *state, key_code k, const char *paste, size_t len);
    bool takes_paste; /* false: pastes are swallowed (questions) */
    /* Its line of hints instead of the scope's; may be NULL. */
    const char *(*hints)(struct ui *ui, void *state);
    /* Every event on its way to the model; may be NULL. */
    void (*observe)(struct ui *ui, void *state, const struct msg *ev);
};
/* Open them; each returns its state, which ui_overlay_push() takes. */
void overlay_help(struct ui *ui);
void overlay_command(struct ui *ui, const char *typed); /* what stands in its line */
void overlay_create(struct ui *ui, bool prompt_first);
/* With that template chosen; tool NULL: as it is. */
void overlay_create_from(struct ui *ui, const char *template_name, const char *tool);
void overlay_build(struct ui *ui); /* the form for a new build */
/* build 0: the template of that name; id NULL: the service never had it. */
void overlay_build_delete(struct ui *ui, uint64_t build, const char *name, const char *id);
void overlay_kill_one(struct ui *ui, uint64_t sandbox);
void overlay_kill_all(struct ui *ui);
/* For all that are marked, else for the cursor's sandbox. */
void overlay_bulk(struct ui *ui);
void overlay_kill_several(struct ui *ui, const uint64_t *ids, size_t n);
void overlay_broadcast(struct ui *ui, const uint64_t *ids, size_t n);
void overlay_time_several(struct ui *ui, const uint64_t *ids, size_t n);
void overlay_details(struct ui *ui, uint64_t sandbox);
void overlay_answer(struct ui *ui, uint64_t sandbox); /* its oldest question */
void overlay_time(struct ui *ui, uint64_t sandbox);
void overlay_tag(struct ui *ui, uint64_t sandbox); /* or of all that are marked */
void overlay_rename(struct ui *ui, uint64_t sandbox);
/* A word to the pair in it, or where there is none the form for a new one. */
void overlay_pair(struct ui *ui, uint64_t sandbox);
struct proc;
void overlay_process_end(struct ui *ui, uint64_t sandbox, const struct proc *p);
/* p: the process at hand, or NULL. */
void overlay_adopt(struct ui *ui, uint64_t sandbox, const struct proc *p);
void overlay_search(struct ui *ui);
/* One line of text: `done` gets it at Enter and says by 0 that it will do, else why not in e.
 * Texts are copied; key: whatever it is about, given back. */
typedef int (*ask_text_fn)(struct ui *ui, uint64_t key, const char *text, struct err *e);
void overlay_ask_text(struct ui *ui, const char *title, const char *label, const char *hint,
                      const char *preset, ask_text_fn done, uint64_t key);
/* A question that y alone answers with yes. */
void overlay_confirm(struct ui *ui, const char *title, const char *text, const char *yes,
                     void (*done)(struct ui *ui, uint64_t key), uint64_t key);
void overlay_projects(struct ui *ui);
void overlay_vars(struct ui *ui); /* variables of the current project */
void overlay_keys(struct ui *ui);
void overlay_unlock(struct ui *ui); /* the vault's passphrase; nothing while another is open */
struct ev_done;
bool keys_dialog_done(struct ui *ui, const struct ev_done *d); /* true: it was its request */
/* The selected sandbox's output moves to the event with that key, once it is loaded. */
void output_go_to(struct ui *ui, uint64_t sandbox, uint64_t offset, uint32_t index);
/* The process that the output pane points at or shows, NULL = none. */
const struct proc *output_process(struct ui *ui);
/* The list of processes in the place of the selected sandbox's output, or the other way. */
void output_toggle_processes(struct ui *ui);
/* What its pane shows is up to the sandbox again: processes, or output. */
void output_as_fits(struct ui *ui, uint64_t sandbox);
/* Say whose processes are on the screen, when that changed. */
void processes_settle(struct ui *ui);
/* output_raw.c: the raw stream that is read is that of the selected sandbox, where it is wanted. */
void raw_settle(struct ui *ui);
void raw_observe(struct ui *ui, const struct msg *ev);

#endif
