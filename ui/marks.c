/* Marked sandboxes. */
#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

bool marks_has(const struct ui *ui, uint64_t id)
{
    return ui->marked && map_get_id(ui->marked, id);
}

void marks_set(struct ui *ui, uint64_t id, bool on)
{
    size_t i = 0;
    if (marks_has(ui, id) == on)
        return;
    if (!ui->marked)
        ui->marked = map_new();
    if (on) {
        map_put_id(ui->marked, id, ui->marked);
        *ARR_PUSH(&ui->marks) = id;
        return;
    }
    map_del_id(ui->marked, id);
    while (ui->marks.v[i] != id)
        i++;
    ARR_REMOVE(&ui->marks, i);
}

void marks_clear(struct ui *ui)
{
    ARR_CLEAR(&ui->marks);
    map_free(ui->marked, NULL);
    ui->marked = NULL;
}

bool marks_prune(struct ui *ui)
{
    size_t keep = 0, n = ui->marks.n;
    if (ui->pruned == ui->model->shape_rev)
        return false;
    ui->pruned = ui->model->shape_rev;
    for (size_t i = 0; i < n; i++) {
        if (model_sandbox(ui->model, ui->marks.v[i]))
            ui->marks.v[keep++] = ui->marks.v[i];
        else
            map_del_id(ui->marked, ui->marks.v[i]);
    }
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
