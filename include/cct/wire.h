/* Framing only: bytes in, frames out. No I/O. One owner.
 * Connect envelope: flags byte, 32-bit big-endian length, payload. */
#ifndef CCT_WIRE_H
#define CCT_WIRE_H

#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WIRE_COMPRESSED = 1, WIRE_END = 2 };

struct wire_env {
    struct buf part; /* an envelope that is not complete yet */
    bool ended;      /* the end-of-stream envelope was seen */
};
void wire_env_init(struct wire_env *w);
void wire_env_release(struct wire_env *w);
/* Feed bytes; fn gets each whole envelope (payload borrowed) and may stop with false.
 * 0, ERR_LIMIT (length over LIM_FRAME_BYTES), ERR_PROTO (bytes after the end, a
 * compressed frame), ERR_CANCELLED (fn said false). */
typedef bool (*wire_env_fn)(void *ctx, uint8_t flags, const char *payload, size_t len);
int wire_env_feed(struct wire_env *w, const char *data, size_t len, wire_env_fn fn, void *ctx,
                  struct err *e);
/* Append one envelope. */
int wire_env_add(struct buf *out, uint8_t flags, const char *payload, size_t len);

#endif
