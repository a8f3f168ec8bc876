/* Between the parts of a sandbox's life; private to sbox*.c. */
#ifndef LOCAL_SBOX_PRIV_H
#define LOCAL_SBOX_PRIV_H

#include <cct/local/lifelog.h>
#include <cct/local/provider.h>

#define SBOX_DEADMAN_MS (5 * 60 * 1000) /* the init outlives its end by this */

struct ns_spec;

/* sbox.c has the life of a sandbox, sbox_pause.c its pauses and its time, sbox_start.c how it
 * comes to be, with its folders (sbox_root.c), its network (sbox_net.c) and the commands of
 * its template (sbox_ready.c). */

/* Write its record; what a full disk refuses is noted, and tried again by sbox_expire(). */
void sbox_save(struct sbox *b);
/* The one place where changes of a sandbox become events. */
void sbox_tell(struct sbox *b, enum life what, const char *why);
/* The operation under way is over: its `done` comes, with the sandbox or with *e. */
void sbox_operation_done(struct sbox *b, const struct err *e);

/* Where a new sandbox's files are; owned. */
struct sbox_root {
    char *home, *root_home;        /* of a plain root, or NULL */
    char *layers_dir, *upper;      /* of a layered one, or NULL */
    const struct tpl_image *image; /* borrowed */
};

/* Is it a root of layers that this asks for? */
bool sbox_root_is_layered(const struct sbox_new *n);
/* Make the folders; refuses layers where they cannot work. */
int sbox_root_make(struct provider *p, const char *id, const struct sbox_new *n,
                   struct sbox_root *out, struct err *e);
void sbox_root_fill(const struct sbox_root *root, struct ns_spec *s);
void sbox_root_release(struct sbox_root *root);

/* End a sbox_run_ready() under way: its `done` is told `e`. */
void sbox_ready_stop(struct sbox *b, const struct err *e);

/* Wait for what the keeper of its private network says on `fd`, which is taken;
 * sbox_net_is_up() is then called once, with NULL or the reason why it is not. */
void sbox_net_watch(struct sbox *b, int fd);
void sbox_net_is_up(struct sbox *b, const char *why);
void sbox_net_free(struct sbox *b);

#endif
