/* Scripts for screens: see screenscript.h. */
#include "screenscript.h"

#include <cct/agent.h>
#include <cct/app/replay.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void script_post(struct script *s, void *ev)
{
    if (s->ui_open)
        ui_notes_observe(&s->ui, ev);
    model_apply(s->app->model, ev);
    msg_free(ev);
}

void script_bad(const struct script *s, const char *line)
{
    fprintf(stderr, "%s: cannot read line: %s\n", s->where, line);
    exit(2);
}

const char *script_word(char **line)
{
    *line += strspn(*line, " ");
    char *w = *line;
    size_t n = strcspn(w, " ");
    *line = w + n + (w[n] == ' ');
    w[n] = 0;
    return w;
}

/* All that is due; a thread reads it. */
static void replay_turns(struct script *s)
{
    struct pollfd p = {.events = POLLIN};
    do
        ui_replay_turn(&s->ui, s->ui.replay_now);
    while ((p.fd = replay_fd(s->replay)) >= 0 && poll(&p, 1, -1) >= 0);
}

static void open_ui(struct script *s)
{
    if (!s->ui_open) {
        ui_init(&s->ui, s->app, &s->opts);
        s->ui_open = true;
        ui_resize(&s->ui, s->h, s->w);
    }
    if (s->opts.replay && replay_is_ready(s->replay)) /* what a key has made due */
        replay_turns(s);
    ui_update(&s->ui);
}

void script_draw(struct script *s)
{
    open_ui(s);
    ui_draw(&s->ui, s->now);
}

static void one_key(struct script *s, key_code k)
{
    s->ui.now = s->now;
    int r = ui_key(&s->ui, k, NULL, 0);
    if (r & UI_QUIT)
        fake_called(s->app, "quit");
    while (pane_input_looks_on(&s->ui))
        pane_input_looks(&s->ui, -1);
    script_draw(s);
}

static void open_replay(struct script *s, char *line, bool looked)
{
    const char *tool = script_word(&line);
    struct err e = {0};
    s->opts.replay = s->replay = replay_open(line, tool, agent_adapter_find(tool));
    s->opts.readonly = true;
    struct pollfd p = {.fd = replay_fd(s->replay), .events = POLLIN};
    int rc = looked;
    while (rc == 1 && (rc = replay_look(s->replay, &e)) == 1)
        poll(&p, 1, -1);
    if (rc < 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(2);
    }
    open_ui(s);
    ui_replay_begin(&s->ui, 0);
    ui_resize(&s->ui, s->h, s->w);
}

static void replay_line(struct script *s, char *line)
{
    open_replay(s, line, true);
}

static void replay_unread_line(struct script *s, char *line)
{
    open_replay(s, line, false);
}

static void play_line(struct script *s, char *line)
{
    s->ui.replay_now += strtoll(script_word(&line), NULL, 10);
    replay_turns(s);
    script_draw(s);
}

static void a_key(struct script *s, key_code k, bool shown)
{
    if (shown) {
        one_key(s, k);
        return;
    }
    if (ui_key(&s->ui, k, NULL, 0) & UI_QUIT)
        fake_called(s->app, "quit");
}

/* What was to be copied, in one line: LF as \n. */
static void take_out(struct script *s)
{
    struct ui_out out;
    while (ui_out_take(&s->ui, &out)) {
        struct buf b = BUF_INIT;
        buf_add_json(&b, out.text.p, out.text.len);
        if (out.kind == UI_OUT_EDIT)
            buf_addf(&s->app->calls, "edit %s\n", buf_str(&b));
        else if (out.kind == UI_OUT_RUN)
            buf_addf(&s->app->calls, "run %s\n", buf_str(&b));
        else if (out.kind == UI_OUT_NOTE)
            buf_addf(&s->app->calls, "note %d %s: %s\n", out.channels, out.note->title,
                     out.note->body);
        else
            buf_addf(&s->app->calls, "copy %s: %s\n", out.label, buf_str(&b));
        buf_release(&b);
        ui_out_release(&out);
    }
}

/* mouse press|drag|release|up|down Y X ... */
static void mouse_line(struct script *s, char *line)
{
    static const char *const kinds[] = {"press", "release", "drag", "up", "down"};
    script_draw(s);
    while (*(line += strspn(line, " "))) {
        const char *w = script_word(&line);
        size_t k = 0;
        while (k < 5 && strcmp(kinds[k], w))
            k++;
        if (k == 5)
            script_bad(s, w);
        s->ui.mouse = (struct mouse){.kind = (enum mouse_kind)k};
        s->ui.mouse.y = (int)strtol(script_word(&line), NULL, 10);
        s->ui.mouse.x = (int)strtol(script_word(&line), NULL, 10);
        a_key(s, K_MOUSE, true);
    }
    take_out(s);
}

/* edited [TEXT]: the editor is done; or failed */
static void edited_line(struct script *s, char *text)
{
    size_t n = 0;
    for (char *p = text; *p; p++) {
        bool lf = p[0] == '\\' && p[1] == 'n';
        text[n++] = lf ? '\n' : *p;
        p += lf;
    }
    ui_edited(&s->ui, n ? text : NULL, n, "nothing is changed: 'vi' failed with status 1");
}

/* notes MS: what is to be told by then */
static void notes_line(struct script *s, char *ms)
{
    ui_update(&s->ui);
    ui_notes(&s->ui, strtoll(ms, NULL, 10));
    take_out(s);
}

/* keys j "typed text" Enter <pasted text>; `shown`: the screen is drawn after each */
static void keys(struct script *s, char *line, bool shown)
{
    script_draw(s);
    while (*(line += strspn(line, " "))) {
        char close = *line == '"' ? '"' : *line == '<' && line[1] ? '>' : 0;
        char *end = close ? strchr(line + 1, close) : NULL;
        if (end) {
            *end = 0;
            if (close == '>')
                ui_key(&s->ui, K_PASTE, line + 1, strlen(line + 1));
            const char *p = line + 1;
            for (size_t n = strlen(p); close == '"' && n;) {
                uint32_t cp;
                size_t used = utf8_decode(p, n, &cp);
                a_key(s, cp, shown);
                p += used;
                n -= used;
            }
            line = end + 1;
            continue;
        }
        const char *w = script_word(&line);
        bool two = strlen(w) == 2 && !key_parse(w);
        if (!two && !key_parse(w))
            script_bad(s, w);
        for (size_t i = 0; two && i < 2; i++)
            a_key(s, (unsigned char)w[i], shown);
        if (!two)
            a_key(s, key_parse(w), shown);
    }
    take_out(s);
}

static void keys_line(struct script *s, char *line)
{
    keys(s, line, true);
}

static void ahead_line(struct script *s, char *line)
{
    keys(s, line, false);
}

/* done TEXT: a request failed */
static void done_line(struct script *s, char *text)
{
    struct ev_done *d = ev_new(EV_DONE);
    err_set(&d->err, ERR_IO, "%s", text);
    ui_observe(&s->ui, &d->m);
    script_post(s, d);
}

/* ended [TEXT]: what was asked for last, well or with that error */
static void ended_line(struct script *s, char *text)
{
    struct ev_done *d = ev_new(EV_DONE);
    d->m.req_id = s->app->next;
    if (*text)
        err_set(&d->err, ERR_CONFLICT, "%s", text);
    ui_observe(&s->ui, &d->m);
    script_post(s, d);
    take_out(s);
}

static void size_line(struct script *s, char *rest)
{
    s->h = (int)strtoll(script_word(&rest), NULL, 10);
    s->w = (int)strtoll(script_word(&rest), NULL, 10);
    if (s->ui_open)
        ui_resize(&s->ui, s->h, s->w);
}

static bool set_option(struct script *s, const char *w, const char *rest)
{
    static const char *const confirm[] = {"always", "count", "never"};
    if (!strcmp(w, "ascii"))
        s->opts.ascii = true;
    else if (!strcmp(w, "readonly"))
        s->opts.readonly = true;
    else if (!strcmp(w, "wrap"))
        s->opts.wrap = strcmp(rest, "off") != 0;
    else if (!strcmp(w, "times"))
        s->opts.time_stamps = strcmp(rest, "off") != 0;
    else if (!strcmp(w, "confirm"))
        for (size_t i = 0; i < 3; i++)
            s->opts.kill_all_confirm = !strcmp(rest, confirm[i]) ? confirm[i]
                                                                : s->opts.kill_all_confirm;
    else
        return false;
    return true;
}

static void loaded_line(struct script *s, char *line)
{
    (void)line;
    script_post(s, ev_new(EV_LOADED));
}

static void later_line(struct script *s, char *seconds)
{
    s->now += strtoll(seconds, NULL, 10) * 1000;
}

static void listed_line(struct script *s, char *ago)
{
    s->listed_at = s->now - strtoll(ago, NULL, 10) * 1000;
}

static const struct script_verb own_verbs[] = {
    {"size", size_line}, {"loaded", loaded_line}, {"later", later_line},
    {"listed", listed_line}, {"keys", keys_line}, {"ahead", ahead_line}, {"mouse", mouse_line},
    {"edited", edited_line}, {"replay", replay_line}, {"replay-unread", replay_unread_line}, {"play", play_line},
    {"notes", notes_line}, {"done", done_line}, {"ended", ended_line}, {NULL, NULL}};

static bool feed_line(struct script *s, const char *w, char *rest)
{
    static const struct script_verb *const all[] = {own_verbs, script_row_verbs, script_talk_verbs,
                                                    script_file_verbs, script_form_verbs,
                                                    script_usage_verbs, script_build_verbs};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (const struct script_verb *v = all[i]; v->name; v++)
            if (!strcmp(w, v->name)) {
                v->feed(s, rest);
                return true;
            }
    return false;
}

void script_line(struct script *s, const char *line, const char *where)
{
    char *copy = xstrdup(line), *rest = copy;
    if (*line && *line != '#') {
        const char *w = script_word(&rest);
        s->where = where;
        if (!set_option(s, w, rest) && !feed_line(s, w, rest))
            script_bad(s, line);
    }
    free(copy);
}

void script_run(struct script *s, const char *lines)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        char *line = xstrndup(lines, n);
        script_line(s, line, "script");
        free(line);
        lines += n + (lines[n] == '\n');
    }
}

static const int every_channel[NOTE_EVENTS_COUNT] = {
    [NOTE_ASKS] = NOTE_MARK | NOTE_BELL,    [NOTE_FINISHED] = NOTE_MARK | NOTE_OSC,
    [NOTE_ERROR] = NOTE_MARK | NOTE_HOOK,   [NOTE_ENDING] = NOTE_MARK,
    [NOTE_BUILD] = NOTE_MARK | NOTE_BELL,   [NOTE_BUDGET] = NOTE_MARK | NOTE_BELL};

void script_init(struct script *s)
{
    memset(s, 0, sizeof(*s));
    setenv("TZ", "UTC", 1);
    tzset();
    thread_set_role(THREAD_MAIN);
    s->app = fake_new();
    s->h = 24;
    s->w = 80;
    s->offset = 1000;
    s->opts.time_stamps = s->opts.wrap = true;
    s->opts.notify = every_channel;
    clock_parse_rfc3339("2026-08-22T14:35:00Z", &s->now);
}

void script_release(struct script *s)
{
    if (s->ui_open)
        ui_release(&s->ui);
    script_usage_release(s);
    script_builds_release();
    replay_free(s->replay);
    fake_free(s->app);
}

char *script_screen(struct script *s)
{
    script_draw(s);
    return canvas_dump(&s->ui.canvas, false);
}

bool script_shows(struct script *s, const char *text)
{
    char *screen = script_screen(s);
    bool is = strstr(screen, text) != NULL;

    free(screen);
    return is;
}

void script_do(struct script *s, const char *lines)
{
    buf_clear(&s->app->calls);
    buf_clear(&s->app->follows);
    script_run(s, lines);
    script_draw(s);
}

bool script_called(struct script *s, const char *text)
{
    return strstr(buf_str(&s->app->calls), text) != NULL;
}
