/* The form for a new sandbox, in three files: create.c fields and keys, create_draw.c the
 * picture, create_choice.c what it begins with and presets. */
#ifndef CCT_UI_CREATE_PRIV_H
#define CCT_UI_CREATE_PRIV_H

#include <cct/ui/ui.h>

#include <cct/model/project.h>

enum field { F_NAME, F_TOOL, F_MODEL, F_TEMPLATE, F_TIMEOUT, F_END, F_ENV, F_ENV_FILE, F_ASK, F_REPO,
             F_BRANCH, F_PROMPT, F_COPIES, F_PRESET, F_CREATE, F_COUNT };

struct form {
    enum field at;
    struct inputline lines[F_COUNT]; /* text fields only */
    size_t tool;
    bool pause;
    int ask;        /* 1 yes, -1 no, 0 as the tool does */
    char error[512];
    bool unread;    /* files that it names are being looked at */
    bool removes;   /* the next press of the key removes the preset */
    bool waits;     /* for them, to be created */
    enum field bad; /* field that the error is about, F_COUNT = none */
    struct app_key_look key, repo_key;
    char preset[65];      /* the one that was filled in last, "" none */
    char preset_said[80]; /* what was done with the preset */
};

/* create.c */
bool form_is_text(enum field f);
const struct app_tool *form_tool(struct ui *ui, const struct form *f);
const char *form_text(struct form *f, enum field id); /* NULL when empty */
bool form_asks(const struct app_tool *t, const struct form *f);
int form_copies(struct form *f);                      /* 1 when it is no number */
int form_timeout(struct form *f);                     /* 0 when it is none */
const char *form_timeout_hint(void);

/* create_choice.c */
/* The project's defaults, the last choices, the configuration's. */
void form_begin(struct ui *ui, struct form *f);
void form_remember(struct ui *ui, struct form *f);
/* Go through what can be chosen for a field with text; false: it was typed by hand. */
bool form_step(struct ui *ui, struct form *f, int step);
/* Fill in the preset whose name stands in the field, if there is one. */
void form_load_preset(struct ui *ui, struct form *f);
/* Keep what is chosen under that name, for the project. */
void form_save_preset(struct ui *ui, struct form *f);

/* Remove the one whose name stands in the field, when the key is pressed twice. */
void form_remove_preset(struct ui *ui, struct form *f);

/* create_draw.c */
void form_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now);

#endif
