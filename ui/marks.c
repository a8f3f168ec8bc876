/* Marked sandboxes. */
#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

static size_t place(const struct ui *ui, uint64_t id)
{
    size_t i = 0;
    while (i < ui->marks.n && ui->marks.v[i] != id)
        i++;
    return i;
}

bool marks_has(const struct ui *ui, uint64_t id)
{
    return place(ui, id) < ui->marks.n;
}

void marks_set(struct ui *ui, uint64_t id, bool on)
{
    size_t i = place(ui, id);
    if (on && i == ui->marks.n)
        *ARR_PUSH(&ui->marks) = id;
    else if (!on && i < ui->marks.n)
        ARR_REMOVE(&ui->marks, i);
}

void marks_clear(struct ui *ui)
{
    ARR_CLEAR(&ui->marks);
}

bool marks_prune(struct ui *ui)
{
    size_t keep = 0, n = ui->marks.n;
    for (size_t i = 0; i < n; i++)
        if (model_sandbox(ui->model, ui->marks.v[i]))
            ui->marks.v[keep++] = ui->marks.v[i];
    ui->marks.n = keep;
    return keep < n;
}

void marks_names(const struct ui *ui, const uint64_t *ids, size_t n, char *dst, size_t size)
{
    enum { MORE_BYTES = 24 };
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        const struct sandbox *s = model_sandbox(ui->model, ids[i]);
        const char *name = s && s->name ? s->name : s && s->sandbox_id ? s->sandbox_id : "?";
        if (i && b.len + strlen(name) + MORE_BYTES > size) {
            buf_addf(&b, " and %zu more", n - i);
            break;
        }
        buf_addf(&b, "%s%s", i ? ", " : "", name);
    }
    size_t used, len = text_fit(buf_str(&b), b.len < size ? b.len : size - 1, size, &used);
    memcpy(dst, buf_str(&b), len);
    dst[len] = 0;
    buf_release(&b);
}
