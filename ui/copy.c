/* What is copied, until somebody takes it out. */
#include <cct/ui/ui.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_MAX = 16 << 20, URL_PORT = 3000 };

void ui_out_release(struct ui_out *out)
{
    free(out->label);
    buf_release(&out->text);
    free(out->note);
}

bool ui_out_take(struct ui *ui, struct ui_out *out)
{
    if (!ui->outbox.n)
        return false;
    *out = ui->outbox.v[0];
    ARR_REMOVE(&ui->outbox, 0);
    return true;
}

void ui_copy(struct ui *ui, const char *what, const char *text, size_t len)
{
    if (!len) {
        ui_status(ui, 0, "there is nothing to copy");
        return;
    }
    if (len > COPY_MAX) {
        ui_status(ui, 1, "%s: %zu bytes are too many for a clipboard; {export} writes a file", what, len);
        return;
    }
    struct ui_out *out = ARR_PUSH(&ui->outbox);
    *out = (struct ui_out){.kind = UI_OUT_COPY, .label = xstrdup(what)};
    buf_init(&out->text, 0);
    buf_add(&out->text, text, len);
    ui_status(ui, 0, "copying %s", what);
}

/* Where a program that listens on that port is reached, by the service's rule for names. */
static int copy_url(struct ui *ui, const struct sandbox *s)
{
    const char *api = s->account ? s->account : "", *domain = api + 4;
    if (!s->sandbox_id || !str_starts(api, "api.")) {
        ui_status(ui, 1, str_eq(api, "local") ? "a local sandbox has no address of its own (README)"
                                              : "%s has no address of its own", s->name);
        return UI_HANDLED | UI_REDRAW;
    }
    char *url = xasprintf("https://%d-%s.%s", URL_PORT, s->sandbox_id, domain);
    ui_copy(ui, url, url, strlen(url));
    free(url);
    return UI_HANDLED | UI_REDRAW;
}

int ui_copy_of(struct ui *ui, enum action a, const struct sandbox *s)
{
    if (a == ACT_COPY_URL)
        return copy_url(ui, s);
    if (s->sandbox_id)
        ui_copy(ui, s->sandbox_id, s->sandbox_id, strlen(s->sandbox_id));
    else
        ui_status(ui, 0, "%s has no id yet: it is being made", s->name);
    return UI_HANDLED | UI_REDRAW;
}

void ui_copy_observe(struct ui *ui, const struct ev_done *d)
{
    if (!ui->copy_req || d->m.req_id != ui->copy_req)
        return;
    ui->copy_req = 0;
    if (!d->err.code)
        ui_copy(ui, "the transcript", ui->copy_text.p ? ui->copy_text.p : "", ui->copy_text.len);
    buf_release(&ui->copy_text);
    ui->said = true;
}
