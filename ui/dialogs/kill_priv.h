/* What both questions about killing share. Nothing that destroys is preset; only the keys
 * shown count, and none that was typed before the question could be read.
 * Main thread. */
#ifndef CCT_UI_KILL_PRIV_H
#define CCT_UI_KILL_PRIV_H

#include <cct/ui/ui.h>
#include <cct/util/buf.h>
#include <stddef.h>

enum { KILL_CELLS = 64 };

/* Text (NULL: "-") in so many cells, and a space. */
void kill_add_cells(struct buf *b, const char *s, size_t cells);
/* The picture asks this from now on (takes question; NULL: nothing). A yes that was typed
 * before does not count. */
void kill_shows(struct ui *ui, char **shown, char *question);

/* Lines about those of them that ask something, and whose changes were looked at and are not
 * committed, as far as that is known: nobody waits for it. */
void kill_add_losses(struct ui *ui, struct buf *b, const char *indent, const uint64_t *ids, size_t n);

#endif
