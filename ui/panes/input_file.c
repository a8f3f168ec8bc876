/* Files in a message: "@part" is completed by Tab, and only what was chosen so is read, for
 * a paste may name any file. The text is read when the message is sent. */
#include "input_priv.h"

#include <cct/ui/ownfiles.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* A disk of this machine answers in that time: what is typed behind the key finds it done. */
enum { AWAIT_MS = 8 };

/* --- completing --------------------------------------------------------------------- */

/* Where "@part" in front of the cursor begins; false: there is none. */
static bool part_at(const struct inputline *l, size_t *start)
{
    size_t at = l->cursor;
    while (at && !strchr(" \t\n(", l->text.p[at - 1]))
        at--;
    *start = at;
    return at < l->cursor && l->text.p[at] == '@';
}

void input_complete(struct ui *ui, struct inputline *l)
{
    size_t start;
    if (!part_at(l, &start)) {
        ui_status(ui, 0, "write @ and the begin of a file's name, then {complete}");
        return;
    }
    char *part = xstrndup(l->text.p + start + 1, l->cursor - start - 1);
    if (ownfiles_post(ui->own, own_look_new(OWN_MATCHES, ui->selected, part)))
        ui_status(ui, 0, "looking for files that begin with '%.100s'", part);
    else
        ui_status(ui, 1, "this machine's files are still being looked at");
    free(part);
    pane_input_looks(ui, AWAIT_MS);
}

static void complete_with(struct ui *ui, struct inputline *l, size_t start, const struct own_look *k)
{
    const char *slash = strrchr(k->text, '/'), *base = slash ? slash + 1 : k->text;
    bool one_file = k->n == 1 && !k->dir;
    const char *rest = k->found + strlen(base);
    ui->status[0] = 0;
    if (one_file || (k->whole && !*rest)) {
        char *path = xasprintf("%.*s%s", (int)(base - k->text), k->text, one_file ? k->found : base);
        if (!inputline_attach(l, start, path))
            ui_status(ui, 1, "nothing was put in: the message holds at most %zu bytes", l->max);
        else
            ui_status(ui, 0, "the text of %s goes with the message", path);
        free(path);
        return;
    }
    if (*rest)
        inputline_insert(l, rest, strlen(rest));
    if (k->n == 1)
        inputline_insert(l, "/", 1);
    else if (!*rest)
        ui_status(ui, 0, "%s", k->list);
}

/* What is typed meanwhile counts: then nothing is completed. */
static void matched(struct ui *ui, struct inputline *l, const struct own_look *k)
{
    size_t start, n = strlen(k->text);
    const char *slash = strrchr(k->text, '/');
    if (!l || !part_at(l, &start) || l->cursor - start - 1 != n ||
        memcmp(l->text.p + start + 1, k->text, n) != 0)
        return;
    if (k->n)
        complete_with(ui, l, start, k);
    else if (k->err.code)
        ui_status(ui, 1, "%s", k->err.text);
    else if (!k->there)
        ui_status(ui, 1, "there is no folder %.*s that can be read",
                  slash ? (int)(slash + 1 - k->text) : 0, k->text);
    else if (slash)
        ui_status(ui, 1, "no file in %.*s begins with '%s'", (int)(slash + 1 - k->text), k->text,
                  slash + 1);
    else
        ui_status(ui, 1, "no file in this folder begins with '%s'", k->text);
}

/* --- sending ------------------------------------------------------------------------ */

void input_send_files(struct ui *ui, struct inputline *l, int how)
{
    struct own_look *k = own_look_new(OWN_TEXT, ui->selected, inputline_text(l));
    size_t n = 0;
    while (inputline_file(l, n))
        n++;
    k->paths = xcalloc(n + 1, sizeof(*k->paths));
    for (size_t i = 0; i < n; i++)
        k->paths[i] = xstrdup(inputline_file(l, i));
    k->how = how;
    if (ownfiles_post(ui->own, k))
        ui_status(ui, 0, "reading the files of the message: it is sent then");
    else
        ui_status(ui, 1, "not sent: the files of a message are still being read");
    pane_input_looks(ui, AWAIT_MS);
}

void input_hint(struct ui *ui, uint64_t sandbox, const char *text)
{
    if (!strchr(text, '@') ||
        !ownfiles_post(ui->own, own_look_new(OWN_NAMED, sandbox, text)))
        return;
    pane_input_looks(ui, AWAIT_MS);
}

void pane_input_looks(struct ui *ui, int ms)
{
    int64_t until = clock_mono_ms() + ms, left = ms;
    struct own_look *k;
    do {
        if (!ownfiles_wait(ui->own, (int)left))
            return;
        while ((k = ownfiles_take(ui->own))) {
            if (k->m.type == OWN_MATCHES)
                matched(ui, input_line_of(ui, k->sandbox), k);
            else if (k->m.type == OWN_TEXT)
                input_read(ui, k);
            else if (k->found)
                ui_status(ui, 0, "sent as it stands: the text of %.60s goes along only after "
                          "{complete}", k->found);
            ui->said = true;
            msg_free(&k->m);
        }
        left = until - clock_mono_ms();
    } while (pane_input_looks_on(ui) && left > 0);
    ui_layout(ui, ui->canvas.h, ui->canvas.w);
}

bool pane_input_looks_on(const struct ui *ui)
{
    bool busy = false;
    for (int i = 0; i < OWN_KINDS; i++)
        busy |= ownfiles_busy(ui->own, (enum own_kind)i);
    return busy;
}
