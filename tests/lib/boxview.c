/* Who looks at a played sandbox: see the header. */
#include "boxview.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void boxview_open(struct boxview *v, int keepalive_s)
{
    v->bed = boxplay_jobs(v->box, keepalive_s);
    v->row = boxplay_row(v->bed);
    assert_true(v->row != 0);
}

void boxview_close(struct boxview *v)
{
    if (v->bed)
        jobsbed_free(v->bed);
    if (v->box)
        boxplay_stop(v->box);
    *v = (struct boxview){0};
}

int boxview_times(const struct boxview *v, const char *text)
{
    const struct transcript *t = model_transcript(v->bed->model, v->row);
    int n = 0;

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind == ITEM_RAW)
            for (const char *p = t->v[i].text; (p = strstr(p, text)); p += strlen(text))
                n++;
    return n;
}

bool boxview_notice(const struct boxview *v, const char *text)
{
    const struct transcript *t = model_transcript(v->bed->model, v->row);

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind == ITEM_NOTICE && strstr(t->v[i].text, text))
            return true;
    return false;
}

struct sought {
    const struct boxview *v;
    const char *text;
};

static bool is_shown(void *ctx)
{
    const struct sought *s = ctx;

    return boxview_times(s->v, s->text) > 0;
}

void boxview_wait(const struct boxview *v, const char *text)
{
    struct sought s = {v, text};

    if (!jobsbed_wait(v->bed, is_shown, &s, BOXVIEW_MS))
        fail_msg("never shown: %s", text);
}
