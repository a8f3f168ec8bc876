/* Golden screens: each file in tests/golden/screens is a script (size, rows, agent events,
 * keys) with the screens it must show. UPDATE=1 rewrites them; review the difference. */
#include <cct/agent.h>
#include <cct/model/transcribe.h>
#include <cct/ui/ui.h>

#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/thread.h>
#include <dirent.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "fakeapp.c"

struct script {
    struct app *app;
    struct ui ui;
    bool ui_open;
    int h, w;
    int64_t now;
    struct ui_opts opts;
    struct buf out; /* the file as it should be */
};

static void post(struct script *s, void *ev)
{
    model_apply(s->app->model, ev);
    msg_free(ev);
}

static void bad(const char *file, const char *line)
{
    fprintf(stderr, "%s: cannot read line: %s\n", file, line);
    exit(2);
}

static const char *word(char **line)
{
    *line += strspn(*line, " ");
    char *w = *line;
    size_t n = strcspn(w, " ");
    *line = w + n + (w[n] == ' ');
    w[n] = 0;
    return w;
}

/* row ID NAME TOOL STATE AGENT [key=value ...] */
static void row(struct script *s, char *line)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct sandbox *r = ev->v = xcalloc(1, sizeof(*r));
    ev->n = 1;
    r->id = (uint64_t)strtoll(word(&line), NULL, 10);
    r->sandbox_id = xasprintf("i%020d", (int)r->id);
    r->name = xstrdup(word(&line));
    r->tool = xstrdup(word(&line));
    r->project = xstrdup("default");
    r->state = (enum sb_state)sb_state_parse(word(&line));
    const char *agent = word(&line);
    r->agent = strcmp(agent, "asks") == 0 ? AG_ASKS : (enum sb_agent)sb_agent_parse(agent);
    r->created_at = r->started_at = s->now - 8 * 60000;
    r->end_at = s->now + 41 * 60000;
    r->cpu_count = 2;
    r->memory_mb = 1024;
    r->vm_up = r->state == SB_ERROR;
    while (*line) {
        char *kv = (char *)word(&line), *eq = strchr(kv, '=');
        const char *v = eq ? eq + 1 : "";
        if (eq)
            *eq = 0;
        if (!strcmp(kv, "left"))
            r->end_at = s->now + strtoll(v, NULL, 10) * 1000;
        else if (!strcmp(kv, "cost"))
            r->cost_usd = strtod(v, NULL);
        else if (!strcmp(kv, "since"))
            r->agent_since = s->now - strtoll(v, NULL, 10) * 1000;
        else if (!strcmp(kv, "gone"))
            r->gone = (enum sb_gone)strtoll(v, NULL, 10);
        else if (!strcmp(kv, "foreign"))
            r->foreign = true;
        else if (!strcmp(kv, "protect"))
            r->protect = true;
        else if (!strcmp(kv, "unsafe"))
            r->not_isolated = true;
        else if (!strcmp(kv, "last")) {
            r->last_line = xasprintf("%s %s", v, line);
            break;
        } else if (!strcmp(kv, "reason")) {
            r->reason = xasprintf("%s %s", v, line);
            break;
        }
    }
    post(s, ev);
}

/* agent ID {json of a common event} */
static void agent(struct script *s, char *line, const char *file)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct agent_event e;
    ev->sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    const struct sandbox *r = model_sandbox(s->app->model, ev->sandbox);
    if (agent_event_from_json(&e, line, strlen(line), NULL) || !r)
        bad(file, line);
    transcribe(&e, r->tool, ev);
    agent_event_release(&e);
    post(s, ev);
}

static void link_line(struct script *s, char *line)
{
    static const char *const names[] = {"connecting", "ok", "slow", "down", "auth", "limited"};
    struct ev_link *ev = ev_new(EV_LINK);
    const char *st = word(&line), *where = word(&line);
    for (int i = 0; i < 6; i++)
        if (!strcmp(names[i], st))
            ev->state = (enum link_state)i;
    ev->local = strcmp(where, "cloud") != 0;
    ev->unsafe = strcmp(where, "unsafe") == 0;
    ev->account = xstrdup(ev->local ? "local provider" : "E2B key ****4f2a (environment)");
    ev->text = *line ? xstrdup(line) : NULL;
    ev->total_running = -1;
    post(s, ev);
}

/* kill PHASE N_PROJECT N_ACCOUNT KILLED ALREADY FAILED ALIVE */
static void kill_line(struct script *s, char *line)
{
    static const char *const names[] = {"listing", "armed", "running", "verifying", "report",
                                        "cannot"};
    struct ev_kill *k = ev_new(EV_KILL);
    const char *phase = word(&line);
    for (int i = 0; i < 6; i++)
        if (!strcmp(names[i], phase))
            k->phase = (enum kill_phase)i;
    k->project = xstrdup("default");
    k->account = xstrdup("E2B key ****4f2a (environment)");
    k->text = xstrdup("cannot reach the service; check the network");
    k->n_project = (size_t)strtoll(word(&line), NULL, 10);
    k->n_account = (size_t)strtoll(word(&line), NULL, 10);
    k->by_state[SB_RUNNING] = k->n_project;
    k->usd_per_hour = 0.117 * (double)k->n_project;
    k->killed = (size_t)strtoll(word(&line), NULL, 10);
    k->already_gone = (size_t)strtoll(word(&line), NULL, 10);
    k->failed = (size_t)strtoll(word(&line), NULL, 10);
    k->still_alive = (size_t)strtoll(word(&line), NULL, 10);
    k->verified = true;
    k->n = k->n_project;
    k->v = xcalloc(k->n + 1, sizeof(*k->v));
    for (size_t i = 0; i < k->n; i++) {
        k->v[i].name = xasprintf("box-%zu", i + 1);
        k->v[i].sandbox_id = xasprintf("i%020zu", i + 1);
        k->v[i].result = i < k->killed ? 1 : i < k->killed + k->failed ? 3 : 0;
        k->v[i].reason = k->v[i].result == 3 ? xstrdup("service error 500") : NULL;
    }
    post(s, k);
}

static void event_line(struct script *s, char *line)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    ev->level = (int)strtoll(word(&line), NULL, 10);
    ev->sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    ev->time_ms = s->now;
    ev->text = xstrdup(line);
    post(s, ev);
}

static void message_line(struct script *s, char *line)
{
    struct ev_message *ev = ev_new(EV_MESSAGE);
    ev->msg.id = (uint64_t)strtoll(word(&line), NULL, 10);
    ev->msg.sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    ev->msg.state = (enum msg_state)msg_state_parse(word(&line));
    ev->msg.text = xstrdup(line);
    post(s, ev);
}

static void tool_line(struct script *s, char *line)
{
    struct app_tool *t = &s->app->tools[s->app->n_tools++];
    t->name = xstrdup(word(&line));
    t->template_id = xstrdup(word(&line));
    t->missing_key = *line ? xstrdup(line) : NULL;
    t->local_only = !strcmp(t->name, "demo");
}

static void open_ui(struct script *s)
{
    if (!s->ui_open) {
        ui_init(&s->ui, s->app, &s->opts);
        s->ui_open = true;
        ui_resize(&s->ui, s->h, s->w);
    }
    ui_update(&s->ui);
}

static void draw(struct script *s)
{
    open_ui(s);
    ui_draw(&s->ui, s->now);
}

static void one_key(struct script *s, key_code k)
{
    s->ui.now = s->now;
    int r = ui_key(&s->ui, k, NULL, 0);
    if (r & UI_QUIT)
        called(s->app, "quit");
    draw(s);
}

/* keys j "typed text" Enter <pasted text> */
static void keys(struct script *s, char *line, const char *file)
{
    draw(s);
    while (*(line += strspn(line, " "))) {
        char close = *line == '"' ? '"' : *line == '<' && line[1] ? '>' : 0;
        char *end = close ? strchr(line + 1, close) : NULL;
        if (end) {
            *end = 0;
            if (close == '>')
                ui_key(&s->ui, K_PASTE, line + 1, strlen(line + 1));
            for (char *p = line + 1; close == '"' && *p; p++)
                one_key(s, (unsigned char)*p);
            line = end + 1;
            continue;
        }
        const char *w = word(&line);
        if (!strcmp(w, "gg"))
            one_key(s, 'g'), one_key(s, 'g');
        else if (w[0] == 'z' && w[1])
            one_key(s, 'z'), one_key(s, (key_code)w[1]);
        else if (key_parse(w))
            one_key(s, key_parse(w));
        else
            bad(file, w);
    }
}

static void run_line(struct script *s, char *line, const char *file)
{
    char *rest = line;
    if (*line == '#' || !*line)
        return;
    const char *w = word(&rest);
    if (!strcmp(w, "size")) {
        s->h = (int)strtoll(word(&rest), NULL, 10);
        s->w = (int)strtoll(word(&rest), NULL, 10);
        if (s->ui_open)
            ui_resize(&s->ui, s->h, s->w);
    } else if (!strcmp(w, "loaded")) {
        post(s, ev_new(EV_LOADED));
    } else if (!strcmp(w, "ascii")) {
        s->opts.ascii = true;
    } else if (!strcmp(w, "readonly")) {
        s->opts.readonly = true;
    } else if (!strcmp(w, "later")) {
        s->now += strtoll(rest, NULL, 10) * 1000;
    } else if (!strcmp(w, "row")) {
        row(s, rest);
    } else if (!strcmp(w, "agent")) {
        agent(s, rest, file);
    } else if (!strcmp(w, "link")) {
        link_line(s, rest);
    } else if (!strcmp(w, "kill")) {
        kill_line(s, rest);
    } else if (!strcmp(w, "event")) {
        event_line(s, rest);
    } else if (!strcmp(w, "message")) {
        message_line(s, rest);
    } else if (!strcmp(w, "tool")) {
        tool_line(s, rest);
    } else if (!strcmp(w, "keys")) {
        keys(s, rest, file);
    } else {
        bad(file, line);
    }
}

static void show(struct script *s)
{
    draw(s);
    char *dump = canvas_dump(&s->ui.canvas, false);
    buf_adds(&s->out, "screen\n");
    buf_adds(&s->out, dump);
    buf_adds(&s->out, buf_str(&s->app->calls));
    buf_clear(&s->app->calls);
    buf_adds(&s->out, "end\n");
    free(dump);
}

/* Run the script; s->out becomes the file with the screens as they are now. */
static void run_script(struct script *s, const char *text, const char *file)
{
    bool in_screen = false;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        char *line = xstrndup(p, n);
        p += n + (p[n] == '\n');
        if (in_screen) {
            in_screen = strcmp(line, "end") != 0;
        } else if (!strcmp(line, "screen")) {
            show(s);
            in_screen = true;
        } else {
            buf_addf(&s->out, "%s\n", line);
            run_line(s, line, file);
        }
        free(line);
    }
}

static bool check_file(const char *path)
{
    size_t len;
    struct err e = {0};
    char *text = fs_read(path, 4 << 20, false, &len, &e);
    if (!text) {
        fprintf(stderr, "%s\n", e.text);
        return false;
    }
    struct script s = {.app = fake_new(), .h = 24, .w = 80};
    s.opts.time_stamps = s.opts.wrap = true;
    clock_parse_rfc3339("2026-08-22T14:35:00Z", &s.now);
    run_script(&s, text, path);
    bool same = strcmp(buf_str(&s.out), text) == 0;
    if (!same && getenv("UPDATE"))
        same = fs_write_private(path, s.out.p, s.out.len, &e) == 0;
    if (!same) {
        char *got = xasprintf("/tmp/golden.%d", (int)getpid());
        fs_write_private(got, s.out.p, s.out.len, &e);
        fprintf(stderr, "%s differs; as it is now: %s\n", path, got);
        free(got);
    }
    if (s.ui_open)
        ui_release(&s.ui);
    fake_free(s.app);
    buf_release(&s.out);
    free(text);
    return same;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(void)
{
    static const char dir[] = "tests/golden/screens";
    struct dirent **list;
    int failed = 0, no = 0, n;
    setenv("TZ", "UTC", 1);
    tzset();
    thread_set_role(THREAD_MAIN);
    n = scandir(dir, &list, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.') {
            char *path = xasprintf("%s/%s", dir, list[i]->d_name);
            bool ok = check_file(path);
            printf("%sok %d - %s\n", ok ? "" : "not ", ++no, list[i]->d_name);
            failed += !ok;
            free(path);
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    printf("1..%d\n", no);
    return failed || !no;
}
