/* Carries out what the screen wants done outside of it: copies to a clipboard, notifications,
 * texts to an editor. The
 * screen's own thread; nothing here waits. */
#ifndef CCT_UI_COURIER_H
#define CCT_UI_COURIER_H

#include <cct/ui/around.h>
#include <cct/ui/ui.h>

struct courier;
struct courier *courier_new(const struct ui_opts *o, const struct around *a);
void courier_free(struct courier *c);
int courier_fd(const struct courier *c); /* readable when an answer waits */
/* An editor, or a command of the user, has the terminal: no key is read, nothing is drawn. */
bool courier_edits(const struct courier *c);
/* The window's title as it should be now. */
void courier_title(struct courier *c, const struct ui *ui);
/* Take the outbox, and answers; what came of it goes to the status line. */
void courier_turn(struct courier *c, struct ui *ui);

#endif
