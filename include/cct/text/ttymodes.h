/* Modes of a terminal that bytes on their way to it switch on: whoever passes on what another
 * program draws takes back what that one leaves behind. Pure, any slicing gives the same; undo
 * is async-signal-safe. */
#ifndef CCT_TEXT_TTYMODES_H
#define CCT_TEXT_TTYMODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TTYMODES_SEQ = 48, TTYMODES_UNDO = 512 };
struct ttymodes { /* zeroed: as after a reset */
    uint32_t dec;       /* bits by ttymodes.c's table that are not as after a reset */
    uint8_t other;      /* likewise, what has no number */
    uint8_t keyboard;   /* levels pushed */
    uint8_t state, len;
    char seq[TTYMODES_SEQ];
};
void ttymodes_feed(struct ttymodes *m, const char *data, size_t len);
/* Bytes that put everything back into dst; their number. 0: nothing is left on. */
size_t ttymodes_undo(const struct ttymodes *m, char dst[TTYMODES_UNDO]);
/* The alternate screen is shown. */
bool ttymodes_alt(const struct ttymodes *m);

#endif
