/* A played sandbox (boxplay.h) and who looks at it: which of its lines the screen holds. */
#ifndef CCT_TESTS_BOXVIEW_H
#define CCT_TESTS_BOXVIEW_H

#include "boxplay.h"

#define BOXVIEW_MS 60000 /* for anything that must come */

struct boxview {
    struct boxplay *box; /* the test starts it, with its log; closing stops it */
    struct jobsbed *bed;
    uint64_t row;
};
/* Looks at v->box from now on; dead after 2.5 times keepalive_s without a byte. */
void boxview_open(struct boxview *v, int keepalive_s);
void boxview_close(struct boxview *v); /* also one that was never opened */

/* How often the text stands in the lines that the screen holds. */
int boxview_times(const struct boxview *v, const char *text);
void boxview_wait(const struct boxview *v, const char *text); /* fails the test where it never comes */
bool boxview_notice(const struct boxview *v, const char *text);

#endif
