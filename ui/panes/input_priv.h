/* Files in a message, and what the two files of the input pane have of each other. Main thread. */
#ifndef CCT_UI_INPUT_PRIV_H
#define CCT_UI_INPUT_PRIV_H

#include <cct/ui/ownfiles.h>
#include <cct/ui/ui.h>

/* --- input_file.c */
/* Complete "@part" in front of the cursor; a file that is named in full becomes one whose
 * text goes along. Says what could be meant. */
void input_complete(struct ui *ui, struct inputline *l);
/* Read what goes along and send it; the line is as it was until then. */
void input_send_files(struct ui *ui, struct inputline *l, int how);
/* Say so if the text that was sent names a file that was not chosen. */
void input_hint(struct ui *ui, uint64_t sandbox, const char *text);

/* --- input.c */
/* What is typed for that sandbox, or NULL. */
struct inputline *input_line_of(struct ui *ui, uint64_t sandbox);
/* A message and its files were read. */
void input_read(struct ui *ui, const struct own_look *k);

#endif
