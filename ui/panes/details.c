/* Details of the selected sandbox; the same lines serve the pane and the dialog. */
#include <cct/ui/ui.h>

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct buf *b, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void add(struct buf *b, const char *label, const char *fmt, ...)
{
    va_list ap;
    buf_addf(b, "%-9s ", label);
    va_start(ap, fmt);
    buf_addv(b, fmt, ap);
    va_end(ap);
    buf_addc(b, '\n');
}

static void add_times(struct ui *ui, const struct sandbox *s, struct buf *b, int64_t now)
{
    char from[16] = "-", to[16] = "-", left[16] = "";
    int64_t off = ui_server_now(ui, now) - now;
    if (s->started_at)
        clock_format_hm(from, sizeof(from), s->started_at - off);
    if (s->end_at)
        clock_format_hm(to, sizeof(to), s->end_at - off);
    bool runs = s->state == SB_RUNNING || (s->state == SB_ERROR && s->vm_up);
    if (runs && s->end_at > now + off) {
        clock_format_span(left, sizeof(left), (s->end_at - now - off) / 60000 * 60000);
        add(b, "time", "%s to %s, %s left", from, to,
            s->end_at - now - off < 60000 ? "less than a minute" : left);
    } else if (s->state == SB_PAUSED) {
        add(b, "time", "started %s, paused %s", from, to);
    } else if (s->ended_at) {
        clock_format_hm(to, sizeof(to), s->ended_at - off);
        char planned[16] = "";
        if (s->end_at > s->ended_at && s->gone == GONE_EARLY)
            clock_format_hm(planned, sizeof(planned), s->end_at - off);
        add(b, "time", "since %s, %s %s%s%s", from, *planned ? "last seen" : "ended", to,
            *planned ? ", planned until " : "", planned);
    } else {
        add(b, "time", "since %s", from);
    }
}

static void add_state(const struct sandbox *s, bool is_old, struct buf *b)
{
    const char *more = s->state == SB_KILLED ? sb_gone_text(s->gone) : s->reason ? s->reason : "";
    add(b, "state", "%s%s%s%s%s", sb_state_name(s->state), *more ? ": " : "", more,
        s->state == SB_ERROR && s->vm_up ? " (the VM still runs and bills)" : "",
        s->unlisted ? " (not in the last list)" : "");
    if (s->odd)
        add(b, "", "the provider calls it %s", s->odd);
    if (is_old)
        add(b, "", "as of the last list: there is none since");
    int pid;
    uint64_t ident;
    if (s->adopted && proc_session_parse(s->session, &pid, &ident))
        add(b, "agent", "adopted process %d, %s", pid, sb_agent_name(s->agent));
    else if (s->adopted)
        add(b, "agent", "adopted, none of its processes is kept");
    else if (!s->foreign)
        add(b, "agent", "%s, %s", s->tool ? s->tool : "-", sb_agent_name(s->agent));
    else
        add(b, "agent", "not made by cc-tui");
}

enum { BAR = 8 };

static void add_bar(struct buf *b, const char *name, int pct)
{
    int full = (pct * BAR + 50) / 100;

    if (pct < 0)
        return;
    buf_addf(b, "%s[%.*s%.*s] %d%%", name, full, "##########", BAR - full, "..........", pct);
}

static void add_load(const struct sandbox *s, struct buf *b)
{
    const struct sandbox_load *l = &s->load;

    if (s->state != SB_RUNNING || !l->known || (l->cpu_pct < 0 && l->mem_pct < 0))
        return;
    buf_addf(b, "%-9s ", "cpu");
    add_bar(b, "", l->cpu_pct);
    add_bar(b, l->cpu_pct < 0 ? "mem " : "  mem ", l->mem_pct);
    if (l->disk_used_mb >= 0 && l->disk_total_mb > 0)
        buf_addf(b, "  disk %.1f/%.0f GiB", l->disk_used_mb / 1024.0, l->disk_total_mb / 1024.0);
    buf_addc(b, '\n');
}

void details_text(struct ui *ui, const struct sandbox *s, struct buf *b, int64_t now)
{
    add(b, "name", "%s%s", s->name, s->protect ? "  (protected from kill-all)" : "");
    add(b, "id", "%s", s->sandbox_id ? s->sandbox_id : "(not known yet)");
    add_state(s, model_is_stale(ui->model) && s->state != SB_KILLED, b);
    add_times(ui, s, b, now);
    if (s->cpu_count || s->memory_mb)
        add(b, "size", "%d vCPU  %.1f GiB memory%s", s->cpu_count, s->memory_mb / 1024.0,
            s->not_isolated ? "  NOT ISOLATED" : "");
    add_load(s, b);
    add(b, "template", "%s%s%s%s", s->alias ? s->alias : s->template_id ? s->template_id : "-",
        s->alias && s->template_id ? " (" : "", s->alias && s->template_id ? s->template_id : "",
        s->alias && s->template_id ? ")" : "");
    add(b, "project", "%s", s->project ? s->project : "-");
    if (s->tags && *s->tags)
        add(b, "tags", "%s", s->tags);
    if (s->branch && *s->branch)
        add(b, "branch", "%s", s->branch);
    if (s->pair)
        pair_text(s->pair, b);
    if (isnan(s->cost_usd))
        add(b, "usage", "%lld tokens in, %lld out, unpriced", (long long)s->tokens_in,
            (long long)s->tokens_out);
    else
        add(b, "usage", "%lld tokens in, %lld out, $%.4f est.", (long long)s->tokens_in,
            (long long)s->tokens_out, s->cost_usd);
    if (!ui->model->local && isnan(s->usd_per_s))
        add(b, "price", "unpriced");
    else if (!ui->model->local)
        add(b, "price", "$%.3f per hour while it runs", s->usd_per_s * 3600);
    for (const struct kv *m = s->meta; m && m->k; m++)
        if (!str_starts(m->k, "cc-tui"))
            add(b, "metadata", "%s = %s", m->k, m->v ? m->v : "");
}

static void *details_open(struct ui *ui)
{
    (void)ui;
    return xcalloc(1, sizeof(uint64_t));
}

static void details_close(void *state)
{
    free(state);
}

static void details_draw(struct ui *ui, void *state, struct canvas *c, struct rect r,
                         bool focused, int64_t now)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    (void)state;
    (void)focused;
    if (!s)
        return;
    struct buf b = BUF_INIT;
    details_text(ui, s, &b, now);
    const char *p = buf_str(&b);
    for (int y = 0; y < r.h && *p; y++) {
        size_t n = strcspn(p, "\n");
        canvas_textn(c, r.y + y, r.x + 1, r.w - 2, ROLE_TEXT, p, n);
        canvas_role(c, (struct rect){r.y + y, r.x + 1, 1, 9}, ROLE_HINT);
        p += n + (p[n] == '\n');
    }
    buf_release(&b);
}

static bool details_update(struct ui *ui, void *state)
{
    uint64_t *seen = state;
    bool changed = *seen != ui->model->sandboxes_rev;
    *seen = ui->model->sandboxes_rev;
    return changed;
}

static const char *details_title(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return "details";
}

const struct pane_ops pane_details = {
    .name = "details",
    .scope = SCOPE_NAV,
    .open = details_open,
    .close = details_close,
    .update = details_update,
    .draw = details_draw,
    .title = details_title,
};
