/* A recorded run on the screen: what is due is fed to the model, keys move the position. */
#include <cct/ui/ui.h>

#include <cct/app/replay.h>
#include <cct/text/width.h>
#include <stdio.h>
#include <string.h>

enum { SKIP_MS = 10000, SECOND = 1000 };

static void speed_text(const struct replay *r, char *dst, size_t size)
{
    int percent = replay_speed(r);
    if (percent == REPLAY_MAX)
        snprintf(dst, size, "at once");
    else
        snprintf(dst, size, percent % 100 ? "%.2fx" : "%.0fx", percent / 100.0);
}

static bool tell_trouble(struct ui *ui)
{
    struct err e = {0};
    if (!replay_trouble(ui->opts.replay, &e))
        return false;
    ui_status(ui, e.code == ERR_IO ? 2 : 1, "%s", e.text);
    return true;
}

static void begin(struct ui *ui, int64_t now)
{
    tell_trouble(ui);
    replay_pause(ui->opts.replay, now, false);
}

/* Its row, and what is due at once: the first picture has it. */
void ui_replay_begin(struct ui *ui, int64_t now)
{
    ui->replay_now = now;
    app_feed(ui->app, ev_new(EV_LOADED));
    replay_feed(ui->opts.replay, now, ui->app);
    app_drain(ui->app, 0);
    ui->focus = PANE_OUTPUT;
    ui_select(ui, REPLAY_ROW);
    if (replay_is_ready(ui->opts.replay))
        begin(ui, now);
}

/* A long recording is looked through before it begins. True when another figure stands in the
 * header. */
static bool look(struct ui *ui, int64_t now)
{
    struct replay *r = ui->opts.replay;
    struct err e = {0};
    int rc = replay_look(r, &e), looked = replay_looked(r);
    bool changed = looked != ui->replay_looked;
    ui->replay_looked = looked;
    if (rc == 1)
        return changed;
    ui->status[0] = 0;
    if (rc < 0)
        ui_status(ui, 2, "%s", e.text);
    begin(ui, now);
    return true;
}

/* True when another second, or another state, stands in the header. */
bool ui_replay_turn(struct ui *ui, int64_t now)
{
    struct replay *r = ui->opts.replay;
    ui->replay_now = now;
    if (!replay_is_ready(r))
        return look(ui, now);
    if (replay_wait(r, now) == 0 || replay_fd(r) >= 0)
        replay_feed(r, now, ui->app);
    bool changed = tell_trouble(ui);
    int64_t second = replay_at(r, now) / SECOND;
    bool over = replay_is_over(r) && replay_at(r, now) >= replay_length(r);
    changed |= second != ui->replay_second || over != ui->replay_over;
    ui->replay_second = second;
    ui->replay_over = over;
    return changed;
}

int64_t ui_replay_wait(const struct ui *ui, int64_t now)
{
    const struct replay *r = ui->opts.replay;
    int64_t ms = replay_wait(r, now);
    if (!replay_is_ready(r) || replay_is_paused(r) || replay_at(r, now) >= replay_length(r))
        return ms;
    int speed = replay_speed(r) ? replay_speed(r) : 100;
    int64_t tick = (SECOND - replay_at(r, now) % SECOND) * 100 / speed + 1;
    return ms < 0 || tick < ms ? tick : ms;
}

/* There is nothing behind these: one run is shown, and nothing of it can be acted on. */
static bool is_elsewhere(enum action a)
{
    static const enum action v[] = {
        ACT_PANE_LIST, ACT_PANE_BUILDS, ACT_PANE_USAGE, ACT_PANE_EVENTS, ACT_WALL, ACT_NEXT_PANE,
        ACT_PREV_PANE, ACT_ZOOM, ACT_NEXT_ASKING, ACT_PREV_ASKING, ACT_LAST_SANDBOX,
        ACT_SEARCH_ALL, ACT_PROJECTS, ACT_KEYS, ACT_REFRESH, ACT_UNDO, ACT_PROCESSES, ACT_SHELL,
        ACT_FILES, ACT_CHANGES, ACT_ADOPT, ACT_PAIR, ACT_INPUT, ACT_ANSWER, ACT_INTERRUPT,
        ACT_KILL, ACT_KILL_ALL, ACT_RAW, ACT_EXPORT};
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        if (v[i] == a)
            return true;
    enum key_scope s = action_scope(a);
    return s == SCOPE_LIST || s == SCOPE_BUILDS || s == SCOPE_USAGE || s == SCOPE_FILES ||
           s == SCOPE_CHANGES || s == SCOPE_WALL || s == SCOPE_PROCS || s == SCOPE_INPUT;
}

int ui_replay_refuse(struct ui *ui)
{
    ui_status(ui, 1, "this is a replay: there is nothing behind it to go to or to act on");
    return UI_HANDLED | UI_REDRAW;
}

int ui_replay_action(struct ui *ui, enum action a)
{
    struct replay *r = ui->opts.replay;
    int64_t now = ui->replay_now;
    bool at_end = replay_at(r, now) >= replay_length(r);
    bool moves = a == ACT_PLAY || a == ACT_SKIP_ON || a == ACT_SKIP_BACK;
    if (moves && !replay_is_ready(r)) {
        ui_status(ui, 1, "the recording is still being read");
        return UI_HANDLED | UI_REDRAW;
    }
    switch (a) {
    case ACT_PLAY:
        if (at_end && replay_is_over(r))
            replay_seek(r, now, 0); /* once more */
        replay_pause(r, now, !replay_is_paused(r) && !at_end);
        break;
    case ACT_FASTER:
    case ACT_SLOWER:
        replay_change_speed(r, now, a == ACT_FASTER);
        break;
    case ACT_SKIP_ON:
    case ACT_SKIP_BACK:
        replay_skip(r, now, a == ACT_SKIP_ON ? SKIP_MS : -SKIP_MS);
        break;
    default:
        if (!is_elsewhere(a))
            return UI_IGNORED;
        return ui_replay_refuse(ui);
    }
    return UI_HANDLED | UI_REDRAW;
}

/* REPLAY stands first and in the colour of what wants attention; where it is, at the right. */
void ui_replay_header(struct ui *ui)
{
    struct canvas *c = &ui->canvas;
    const struct replay *r = ui->opts.replay;
    char at[24], length[24], speed[24], right[96];
    int64_t now = ui->replay_now;
    replay_time_text(at, sizeof(at), replay_at(r, now));
    replay_time_text(length, sizeof(length), replay_length(r));
    speed_text(r, speed, sizeof(speed));
    bool over = replay_is_over(r) && replay_at(r, now) >= replay_length(r);
    if (replay_is_ready(r))
        snprintf(right, sizeof(right), "%s  %s of %s  %s",
                 over                   ? "the end"
                 : replay_is_paused(r) ? "paused"
                                       : "playing",
                 at, length, speed);
    else
        snprintf(right, sizeof(right), "reading %d%%", replay_looked(r));
    canvas_fill(c, (struct rect){0, 0, 1, c->w}, ROLE_HEADER, " ");
    int w = (int)strlen(right), room = c->w - w - 3;
    int x = 1 + canvas_text(c, 0, 1, room - 1, ROLE_DANGER, "REPLAY");
    canvas_textf(c, 0, x + 1, room > x + 1 ? room - x - 1 : 0, ROLE_HEADER,
                 "of %s, %s", replay_name(r), replay_tool(r));
    canvas_text(c, 0, c->w - w - 1, w, ROLE_HEADER, right);
}
