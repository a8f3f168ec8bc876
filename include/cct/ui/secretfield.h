/* A field for a key or a passphrase: what is typed or pasted lies in locked memory alone and
 * is never drawn, not even how long it is. Main thread only. */
#ifndef CCT_UI_SECRETFIELD_H
#define CCT_UI_SECRETFIELD_H

#include <cct/secrets/secret.h>
#include <cct/ui/canvas.h>
#include <cct/ui/keymap.h>

enum { SECRETFIELD_MAX = 4096 };
struct secretfield {
    struct secret *room;
    char *p;
    size_t len;
};
void secretfield_init(struct secretfield *f);
void secretfield_release(struct secretfield *f);
void secretfield_clear(struct secretfield *f);
/* A character, a paste (its line ends at the end are left out), or of the actions of a line
 * those that show nothing of it: erase, cut all. False: nothing of its own, or there is no room
 * for all of it. */
bool secretfield_key(struct secretfield *f, enum action a, key_code k, const char *paste, size_t len);
/* What was given, as a secret of its own (text: the log redacts it, too), and the field is
 * empty again; NULL when it was empty. */
struct secret *secretfield_take(struct secretfield *f, bool text);
void secretfield_draw(const struct secretfield *f, struct canvas *c, int y, int x, int w);

#endif
