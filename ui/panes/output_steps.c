/* The four steps of a sandbox that is being made, above its output; and why one failed. */
#include "output_priv.h"

#include <cct/ui/box.h>
#include <stdio.h>
#include <string.h>

enum { NAME_CELLS = 16 };

static void draw_step(const struct sandbox *s, enum sb_step step, struct canvas *c, int y,
                      struct rect r)
{
    bool here = step == s->step, over = step < s->step;
    const char *word = over ? "done" : here && s->step_text ? s->step_text : here ? "now" : "";
    char text[32];

    snprintf(text, sizeof(text), "%s %d %s", over ? "." : here ? "*" : " ", (int)step,
             sb_step_name(step));
    canvas_text(c, y, r.x + 1, NAME_CELLS, here ? ROLE_WORKING : ROLE_DIM, text);
    canvas_text(c, y, r.x + 1 + NAME_CELLS, r.w - NAME_CELLS - 2, here ? ROLE_TEXT : ROLE_DIM, word);
}

int steps_draw(const struct sandbox *s, struct canvas *c, struct rect r)
{
    struct rect in = {r.y, r.x + 1, r.h, r.w - 2};
    int rows = 0;

    if (s && s->state == SB_CREATING && s->step) {
        for (; rows < (int)STEP_LAST && rows < r.h; rows++)
            draw_step(s, (enum sb_step)(rows + 1), c, r.y + rows, r);
    } else if (s && s->state == SB_ERROR && s->reason && strncmp(s->reason, "step ", 5) == 0) {
        rows = box_text(c, in, ROLE_ERROR, s->reason);
    }
    return rows && rows < r.h ? rows + 1 : rows;
}
