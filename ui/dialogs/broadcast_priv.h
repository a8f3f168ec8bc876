/* One message to several sandboxes: what dialog and picture share. Main thread. */
#ifndef CCT_UI_BROADCAST_PRIV_H
#define CCT_UI_BROADCAST_PRIV_H

#include <cct/ui/ui.h>

enum cast_field { CAST_TO, CAST_TEXT, CAST_WHEN, CAST_SEND, CAST_COUNT };

struct cast_to {
    uint64_t sandbox;
    char *name;       /* when the dialog opened */
    bool on;          /* chosen */
    bool asked;       /* it was sent, or tried to be */
    uint64_t message; /* 0: it was not taken */
    char *error;      /* why it was not */
};
struct cast {
    enum cast_field at;
    ARR(struct cast_to) to;
    size_t cursor, top;  /* of the list */
    int rows;            /* of the list, as drawn */
    struct inputline text;
    bool now, sent;
    uint64_t req;        /* under way, 0 = none */
    char error[200];
};
size_t cast_chosen(const struct cast *c);
/* Its message is one to try again. */
bool cast_failed(const struct ui *ui, const struct cast_to *t);
void cast_draw(struct ui *ui, void *state, struct canvas *cv, struct rect screen, int64_t now);

#endif
