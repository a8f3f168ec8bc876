/* Files in a message. Main thread. */
#ifndef CCT_UI_INPUT_PRIV_H
#define CCT_UI_INPUT_PRIV_H

#include <cct/ui/ui.h>

/* Complete "@part" in front of the cursor; a file that is named in full becomes one whose
 * text goes along. Says what could be meant. */
void input_complete(struct ui *ui, struct inputline *l);
/* What is to be sent: the text, and behind it that of each file with its name. NULL with *e
 * when a file cannot go along: it is not text, too long, or not to be read. New string. */
char *input_compose(struct inputline *l, struct err *e);
/* Does "@word" in the text name a file that was not chosen? */
bool input_names_file(const char *text, char *name, size_t size);

#endif
