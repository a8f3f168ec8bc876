/* Builds of templates as rows. */
#include <cct/model/tbuild.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[TB_STATE_COUNT] = {"preparing", "uploading", "waiting", "building",
                                                  "ready", "error", "cancelled"};

const char *tb_state_name(enum tb_state s)
{
    return s < TB_STATE_COUNT ? names[s] : "error";
}

int tb_state_parse(const char *name)
{
    for (int i = 0; i < TB_STATE_COUNT; i++)
        if (str_eq(name, names[i]))
            return i;
    return -1;
}

const char *tb_state_word(const char *ours, const char *service)
{
    int state = ours ? tb_state_parse(ours) : -1;
    bool never_begun = state == TB_ERROR || state == TB_CANCELLED;

    return ours && (!service || (never_begun && str_eq(service, "waiting"))) ? ours : service;
}

void tbuild_release(struct tbuild *b)
{
    free(b->name);
    free(b->tool);
    free(b->version);
    free(b->recipe);
    free(b->options);
    free(b->template_id);
    free(b->build_id);
    free(b->project);
    free(b->account);
    free(b->phase);
    free(b->title);
    free(b->error);
    free(b->tail);
    memset(b, 0, sizeof(*b));
}

void tbuild_copy(struct tbuild *dst, const struct tbuild *src)
{
    *dst = *src;
    dst->name = xstrdup(src->name);
    dst->tool = xstrdup(src->tool);
    dst->version = xstrdup(src->version);
    dst->recipe = xstrdup(src->recipe);
    dst->options = xstrdup(src->options);
    dst->template_id = xstrdup(src->template_id);
    dst->build_id = xstrdup(src->build_id);
    dst->project = xstrdup(src->project);
    dst->account = xstrdup(src->account);
    dst->phase = xstrdup(src->phase);
    dst->title = xstrdup(src->title);
    dst->error = xstrdup(src->error);
    dst->tail = xstrdup(src->tail);
}

void tbuild_text(const struct tbuild *b, char *dst, size_t size)
{
    dst[0] = '\0';
    if (b->state == TB_ERROR || b->state == TB_CANCELLED)
        snprintf(dst, size, "%s", b->error ? b->error : "");
    else if (b->state == TB_UPLOADING && b->total)
        snprintf(dst, size, "uploading %.1f of %.1f MiB", (double)b->sent / 1048576,
                 (double)b->total / 1048576);
    else if (b->state != TB_READY)
        snprintf(dst, size, "%s%s%s%s", b->phase ? b->phase : tb_state_name(b->state),
                 b->title ? "  " : "", b->title ? b->title : "", b->cached ? " (cached)" : "");
}

const char *tbuild_output(const char *message)
{
    const char *at = *message == '[' ? strstr(message, "] [std") : NULL;
    const char *text = at ? strstr(at, "]: ") : NULL;

    return text && text - at < 12 ? text + 3 : message;
}
