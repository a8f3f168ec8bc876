/* The control-plane client in front of a server that plays a script. */
#ifndef CCT_TESTS_E2BBED_H
#define CCT_TESTS_E2BBED_H

#include "miniserver.h"
#include "netbed.h"
#include <cct/e2b/build.h>

/* One answer; the last of a script repeats. */
struct e2b_scene {
    int status;
    const char *head, *body;
};
struct e2bbed {
    struct mini *srv;
    struct netbed *bed;
    struct e2b *client;
    struct buf heard;    /* "METHOD path body\n" of each request */
    struct buf heads;    /* and its header lines */
    int at;              /* answers played */
    int answers;         /* callbacks that came */
    struct e2b_result r; /* of the last: what does not point anywhere */
    struct buf text;     /* what `show` wrote of it */
    /* puts into b->text what a test wants to see; may be NULL */
    void (*show)(struct e2bbed *b, const struct e2b_result *r);
    const struct e2b_scene *scene;
    int n_scenes;
};
void e2bbed_open(struct e2bbed *b);
void e2bbed_close(struct e2bbed *b);
/* A fresh client, as after a start. */
void e2bbed_client(struct e2bbed *b);
void e2bbed_play(struct e2bbed *b, const struct e2b_scene *s, size_t n);
/* start() on the net thread, with e2bbed_answer and b as callback; back at the answer. */
void e2bbed_run(struct e2bbed *b, void (*start)(void *b));
void e2bbed_answer(void *b, const struct e2b_result *r);

#define E2B_PLAY(b, ...)                                                \
    do {                                                                \
        static const struct e2b_scene scenes_[] = {__VA_ARGS__};        \
        e2bbed_play(b, scenes_, sizeof(scenes_) / sizeof(scenes_[0])); \
    } while (0)

#endif
