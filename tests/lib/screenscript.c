/* Scripts for screens: see screenscript.h. */
#include "screenscript.h"

#include <cct/agent.h>
#include <cct/agent/decode.h>
#include <cct/app/replay.h>
#include <cct/model/files.h>
#include <cct/model/filter.h>
#include <cct/model/pair.h>
#include <cct/model/transcribe.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/utf8.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
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

static void add_meta(struct sandbox *r, char *pair)
{
    size_t n = 0;
    while (r->meta && r->meta[n].k)
        n++;
    char *colon = strchr(pair, ':');
    if (colon)
        *colon = 0;
    r->meta = xrealloc(r->meta, (n + 2) * sizeof(*r->meta));
    r->meta[n].k = xstrdup(pair);
    r->meta[n].v = xstrdup(colon ? colon + 1 : "");
    memset(&r->meta[n + 1], 0, sizeof(*r->meta));
}

/* STATE,ROLE,ROUND,ROUNDS of claude and codex */
static struct pair *pair_of(const char *v)
{
    struct pair *p = xcalloc(1, sizeof(*p));
    char state[16] = "", role[16] = "";
    sscanf(v, "%15[a-z],%15[a-z],%d,%d", state, role, &p->round, &p->rounds);
    p->state = (enum pair_state)pair_state_parse(state);
    p->role = (enum pair_role)pair_role_parse(role);
    p->side[PAIR_DESIGNER] = (struct pair_side){.tool = xstrdup("claude"), .cost_usd = 0.0145,
                                                .tokens_in = 4844, .tokens_out = 67, .turns = 3};
    p->side[PAIR_CHECKER] = (struct pair_side){.tool = xstrdup("codex"),
                                               .model = xstrdup("gpt-6.2-sol"), .cost_usd = NAN,
                                               .turns = 1};
    if (p->state == PAIR_FAILED)
        p->reason = xstrdup("the checker (codex): 401 bad key; check the provider's key");
    return p;
}

static void row_number(struct script *s, struct sandbox *r, const char *key, const char *v)
{
    if (!strcmp(key, "left") && *v == '-')
        r->end_at = 0;
    else if (!strcmp(key, "started") && *v == '-')
        r->started_at = r->created_at = 0;
    else if (!strcmp(key, "left"))
        r->end_at = s->now + strtoll(v, NULL, 10) * 1000;
    else if (!strcmp(key, "project"))
        free(r->project), r->project = xstrdup(v);
    else if (!strcmp(key, "cost"))
        r->cost_usd = strtod(v, NULL);
    else if (!strcmp(key, "since"))
        r->agent_since = s->now - strtoll(v, NULL, 10) * 1000;
    else if (!strcmp(key, "pair"))
        r->pair = pair_of(v);
    else if (!strcmp(key, "step"))
        r->step = (enum sb_step)strtoll(v, NULL, 10);
    else if (!strcmp(key, "gone"))
        r->gone = (enum sb_gone)strtoll(v, NULL, 10);
    else if (!strcmp(key, "load")) /* percent of CPU and memory; MiB of disk, used and all */
        r->load.known = sscanf(v, "%d,%d,%d,%d", &r->load.cpu_pct, &r->load.mem_pct,
                               &r->load.disk_used_mb, &r->load.disk_total_mb) == 4;
    else if (!strcmp(key, "odd"))
        r->odd = xstrdup(v);
    else if (!strcmp(key, "started"))
        r->started_at = r->created_at = s->now - strtoll(v, NULL, 10) * 1000;
    else if (!strcmp(key, "tags")) {
        char tags[SANDBOX_TAGS_BYTES];
        if (sandbox_tags(v, tags))
            r->tags = xstrdup(tags);
    } else if (!strcmp(key, "id")) {
        free(r->sandbox_id);
        r->sandbox_id = *v ? xstrdup(v) : NULL;
    }
}

static bool row_flag(struct sandbox *r, const char *key)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"foreign", &r->foreign}, {"protect", &r->protect}, {"unsafe", &r->not_isolated},
                 {"unlisted", &r->unlisted}, {"pending", &r->pending},
                 {"changing", &r->changing}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (!strcmp(key, flags[i].name))
            return *flags[i].flag = true;
    return false;
}

static void row_text(struct sandbox *r, char *line)
{
    while (*line) {
        char *kv = (char *)word(&line), *eq = strchr(kv, '=');
        if (!eq && !strcmp(kv, "dead"))
            r->vm_up = false;
        if (!eq)
            continue;
        *eq = 0;
        char *all = *line ? xasprintf("%s %s", eq + 1, line) : xstrdup(eq + 1);
        if (!strcmp(kv, "last"))
            r->last_line = all;
        else if (!strcmp(kv, "reason"))
            r->reason = all;
        else if (!strcmp(kv, "doing"))
            r->step_text = all;
        else {
            free(all);
            *eq = '=';
            continue;
        }
        return;
    }
}

static struct sandbox *new_row(struct script *s, struct ev_sandboxes *ev, uint64_t id)
{
    struct sandbox *r = ev->v = xcalloc(1, sizeof(*r));
    ev->n = 1;
    r->id = id;
    r->sandbox_id = xasprintf("i%020d", (int)id);
    r->project = xstrdup("default");
    r->created_at = r->started_at = s->now - 8 * 60000;
    r->end_at = s->now + 41 * 60000;
    r->cpu_count = 2;
    r->memory_mb = 1024;
    r->usd_per_s = 2 * 0.000014 + 0.0000045;
    return r;
}

/* row ID NAME TOOL STATE AGENT [key=value ...] */
static void row(struct script *s, char *line)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct sandbox *r = new_row(s, ev, (uint64_t)strtoll(word(&line), NULL, 10));
    r->name = xstrdup(word(&line));
    r->tool = xstrdup(word(&line));
    if (!strcmp(r->tool, "-"))
        free(r->tool), r->tool = NULL;
    r->state = (enum sb_state)sb_state_parse(word(&line));
    const char *what = word(&line);
    r->agent = strcmp(what, "asks") == 0 ? AG_ASKS : (enum sb_agent)sb_agent_parse(what);
    r->vm_up = r->state == SB_ERROR;
    char *rest = xstrdup(line);
    while (*line) {
        char *kv = (char *)word(&line), *eq = strchr(kv, '=');
        if (!eq) {
            row_flag(r, kv);
            continue;
        }
        *eq = 0;
        if (!strcmp(kv, "last") || !strcmp(kv, "reason") || !strcmp(kv, "doing"))
            break;
        if (!strcmp(kv, "meta"))
            add_meta(r, eq + 1);
        else
            row_number(s, r, kv, eq + 1);
    }
    row_text(r, rest);
    free(rest);
    if (!r->foreign)
        r->session = xasprintf("s%d", (int)r->id);
    script_post(s, ev);
}

/* rows N FIRST-ID */
static void many_rows(struct script *s, char *line)
{
    int n = (int)strtoll(word(&line), NULL, 10), first = (int)strtoll(word(&line), NULL, 10);
    for (int i = 0; i < n; i++) {
        struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
        struct sandbox *r = new_row(s, ev, (uint64_t)(first + i));
        r->name = xasprintf("box-%d", first + i);
        r->tool = xstrdup("claude");
        r->state = SB_RUNNING;
        r->agent = AG_IDLE;
        r->session = xasprintf("s%d", first + i);
        script_post(s, ev);
    }
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
    script_post(s, ev);
}

/* lines ID N TEXT */
static void text_lines(struct script *s, char *line)
{
    uint64_t id = (uint64_t)strtoll(word(&line), NULL, 10);
    int n = (int)strtoll(word(&line), NULL, 10);
    const struct sandbox *r = model_sandbox(s->app->model, id);
    for (int i = 1; r && i <= n; i++) {
        struct ev_items *ev = ev_new(EV_ITEMS);
        struct agent_event e = {.kind = AGENT_RAW, .final = true, .offset = s->offset++};
        ev->sandbox = id;
        e.text = xasprintf("%s %d", line, i);
        transcribe(&e, r->tool, ev);
        free(e.text);
        script_post(s, ev);
    }
}

/* asks ID [since AGO_S [words] QID QUESTION [// DETAIL] [| CHOICE]...]: all that is open; a
 * line without a question: nothing is. One more by "and" instead of "asks". */
static void asks_line(struct script *s, char *line, bool more)
{
    struct ev_asks *ev = ev_new(EV_ASKS);
    struct question *q;
    char *part, *labels = NULL, *detail;
    ev->sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    const struct model *m = s->app->model;
    for (size_t i = 0; more && i < m->n_asks; i++)
        if (m->asks[i].sandbox == ev->sandbox) {
            ev->v = xrealloc(ev->v, (ev->n + 1) * sizeof(*ev->v));
            question_copy(&ev->v[ev->n++], &m->asks[i]);
        }
    if (*line) {
        ev->v = xrealloc(ev->v, (ev->n + 1) * sizeof(*ev->v));
        q = memset(&ev->v[ev->n++], 0, sizeof(*q));
        q->sandbox = ev->sandbox;
        q->since = s->now - strtoll(word(&line), NULL, 10) * 1000;
        q->words = !strncmp(line, "words ", 6);
        if (q->words)
            word(&line);
        q->id = xstrdup(word(&line));
        for (part = strstr(line, " | "); part; part = strstr(part + 1, " | ")) {
            char *next = xasprintf("%s%s%s", labels ? labels : "", labels ? "\n" : "", part + 3);
            next[strlen(next) - strlen(part + 3) + strcspn(part + 3, "|")] = 0;
            free(labels);
            labels = str_trim(next);
        }
        line[strcspn(line, "|")] = 0;
        detail = strstr(line, " // ");
        if (detail) {
            *detail = 0;
            q->detail = xstrdup(str_trim(detail + 4));
            for (char *p = q->detail; *p; p++)
                *p = *p == '\\' ? '\n' : *p;
        }
        q->question = xstrdup(str_trim(line));
        q->choices = question_choices(labels);
        free(labels);
    }
    script_post(s, ev);
}

/* answered ID QID TEXT */
static void answered_line(struct script *s, char *line)
{
    struct ev_asks *ev = ev_new(EV_ASKS);
    const struct model *m = s->app->model;
    ev->sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    const char *id = word(&line);
    for (size_t i = 0; i < m->n_asks; i++) {
        if (m->asks[i].sandbox != ev->sandbox)
            continue;
        ev->v = xrealloc(ev->v, (ev->n + 1) * sizeof(*ev->v));
        question_copy(&ev->v[ev->n++], &m->asks[i]);
        if (!strcmp(m->asks[i].id, id))
            ev->v[ev->n - 1].answer = xstrdup(line);
    }
    script_post(s, ev);
}

#define HIDING "E2B key ****4f2a (environment) at https://api.self.example, hides " \
               "****9f21 (project key), ****1111 (user key)"

static void link_line(struct script *s, char *line)
{
    static const char *const names[] = {"connecting", "ok", "slow", "down", "auth", "limited"};
    struct ev_link *ev = ev_new(EV_LINK);
    const char *st = word(&line), *where = word(&line);
    for (int i = 0; i < 6; i++)
        if (!strcmp(names[i], st))
            ev->state = (enum link_state)i;
    ev->local = strcmp(where, "cloud") != 0 && strcmp(where, "hiding") != 0;
    ev->unsafe = strcmp(where, "unsafe") == 0;
    ev->account = xstrdup(ev->local                   ? "local provider"
                          : strcmp(where, "hiding") ? "E2B key ****4f2a (environment)"
                                                    : HIDING);
    ev->text = *line ? xstrdup(line) : NULL;
    ev->total_running = -1;
    ev->listed_at = s->listed_at;
    script_post(s, ev);
}

/* gone ID: the whole list without that row */
static void gone(struct script *s, uint64_t id)
{
    const struct model *m = s->app->model;
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->full = true;
    ev->v = xcalloc(m->n_sandboxes + 1, sizeof(*ev->v));
    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (m->sandboxes[i].id != id)
            sandbox_copy(&ev->v[ev->n++], &m->sandboxes[i]);
    script_post(s, ev);
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
    const char *account = app_model(s->app)->account;
    bool hiding = account && strcmp(account, HIDING) == 0;
    k->account = xstrdup(hiding ? account : "E2B key ****4f2a (environment)");
    k->n_project = (size_t)strtoll(word(&line), NULL, 10);
    k->n_account = (size_t)strtoll(word(&line), NULL, 10);
    k->by_state[SB_RUNNING] = k->n_project;
    k->usd_per_hour = 0.117 * (double)k->n_project;
    k->killed = (size_t)strtoll(word(&line), NULL, 10);
    k->already_gone = (size_t)strtoll(word(&line), NULL, 10);
    k->failed = (size_t)strtoll(word(&line), NULL, 10);
    k->still_alive = (size_t)strtoll(word(&line), NULL, 10);
    k->verified = strcmp(line, "unverified") != 0;
    if (k->phase == KILL_CANNOT)
        k->text = xstrdup("cannot reach the service; check the network");
    if (k->phase == KILL_RUNNING && !strcmp(line, "grace"))
        k->text = xstrdup("killing in 3 s (u calls it off)");
    k->account_scope = !strcmp(line, "account");
    k->n = k->n_project;
    k->v = xcalloc(k->n + 1, sizeof(*k->v));
    for (size_t i = 0; i < k->n; i++) {
        k->v[i].name = xasprintf("box-%zu", i + 1);
        k->v[i].sandbox_id = xasprintf("i%020zu", i + 1);
        k->v[i].result = i < k->killed ? 1 : i < k->killed + k->already_gone ? 2
                         : i < k->killed + k->already_gone + k->failed ? 3
                         : i < k->killed + k->already_gone + k->failed + k->still_alive ? 4 : 0;
        k->v[i].reason = k->v[i].result == 3 ? xstrdup("service error 500") : NULL;
    }
    script_post(s, k);
}

static void event_line(struct script *s, char *line)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    ev->level = (int)strtoll(word(&line), NULL, 10);
    ev->sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    ev->time_ms = s->now;
    ev->text = xstrdup(line);
    script_post(s, ev);
}

/* PID COMMAND, with '|' between processes */
static void add_procs(struct procs *p, char *line)
{
    char *save = NULL;
    p->v = xcalloc(16, sizeof(*p->v));
    for (char *one = strtok_r(line, "|", &save); one && p->n < 16;
         one = strtok_r(NULL, "|", &save)) {
        struct proc *v = &p->v[p->n++];
        one += *one == ' ';
        v->pid = (int)strtoll(word(&one), NULL, 10);
        v->ident = (uint64_t)v->pid * 7;
        v->command = xstrdup(one);
        if (v->pid % 2 == 0)
            v->cwd = xstrdup("/home/user/work");
    }
}

/* procs ID listed|asking|cannot none|live|lost|ended PID-WATCHED [TEXT or processes] */
static void procs_line(struct script *s, char *line)
{
    static const char *const states[] = {"unknown", "asking", "listed", "cannot"};
    static const char *const watches[] = {"none", "opening", "live", "lost", "paused", "ended"};
    struct ev_procs *ev = ev_new(EV_PROCS);
    ev->sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    const char *w = word(&line);
    for (int i = 0; i < 4; i++)
        if (!strcmp(w, states[i]))
            ev->p.state = (enum procs_state)i;
    w = word(&line);
    for (int i = 0; i < 6; i++)
        if (!strcmp(w, watches[i]))
            ev->p.watch = (enum watch_state)i;
    ev->p.watched = (int)strtoll(word(&line), NULL, 10);
    if (ev->p.state == PROCS_CANNOT)
        ev->p.text = xstrdup(line);
    else if (ev->p.state == PROCS_LISTED)
        add_procs(&ev->p, line);
    script_post(s, ev);
}

/* "\n", "\e" and "\0" become what they stand for; its length. */
static size_t unescape(char *s)
{
    char *to = s;
    for (const char *p = s; *p; p++) {
        if (*p == '\\' && p[1]) {
            p++;
            *to++ = *p == 'n' ? '\n' : *p == 'e' ? '\033' : *p == '0' ? '\0' : *p;
        } else {
            *to++ = *p;
        }
    }
    *to = 0;
    return (size_t)(to - s);
}

/* The request that is answered is over before its answer: the answer may ask for more. */
static void file_ended(struct script *s, const char *why)
{
    struct app_file_cb cb = s->app->file;
    struct ev_done d = {0};
    s->app->file = (struct app_file_cb){0};
    if (*why)
        err_set(&d.err, strstr(why, "already") ? ERR_CONFLICT : ERR_NOTFOUND, "%s", why);
    d.text = (char *)"the/file";
    if (cb.on_end)
        cb.on_end(cb.ctx, &d);
}

static void files_line(struct script *s, char *line)
{
    static const int64_t when = INT64_C(1787400000000);
    struct file_list l = {0};
    ARR(struct file_entry) v = ARR_INIT;
    char *bar;
    l.path = xstrdup(word(&line));
    while ((bar = strchr(line, '|'))) {
        char *item = bar + 1 + strspn(bar + 1, " "), *next = strstr(item, " | ");
        struct file_entry *f = ARR_PUSH(&v);
        line = next ? next + 1 : item + strlen(item);
        if (next)
            *next = 0;
        char kind = *word(&item);
        f->kind = kind == 'd' ? FILE_FOLDER : FILE_PLAIN;
        f->size = strtoll(word(&item), NULL, 10);
        str_copy(f->perms, sizeof(f->perms), word(&item));
        f->mtime_ms = when;
        unescape(item);
        f->name = xstrdup(item);
        f->shown = clean_line_dup(item, 0);
        f->owner = xstrdup("user");
        f->target = kind == 'l' ? xstrdup("/etc/somewhere") : NULL;
    }
    l.v = v.v;
    l.n = v.n;
    if (s->app->file.on_list)
        s->app->file.on_list(s->app->file.ctx, &l);
    file_list_release(&l);
    file_ended(s, "");
}

static void filetext_line(struct script *s, char *line)
{
    size_t n = unescape(line);
    if (s->app->file.on_data)
        s->app->file.on_data(s->app->file.ctx, line, n);
    file_ended(s, "");
}

static void progress_line(struct script *s, char *line)
{
    struct ev_progress p = {.file = 1, .files = 1};
    p.done = strtoull(word(&line), NULL, 10);
    p.total = strtoull(word(&line), NULL, 10);
    if (s->app->file.on_progress)
        s->app->file.on_progress(s->app->file.ctx, &p);
}

static void add_part(struct buf *b, const char *name, const struct buf *part)
{
    buf_addf(b, "part %s %zu %zu\n", name, part->len, part->len);
    buf_add(b, part->p ? part->p : "", part->len);
}

static void add_change(char *item, struct buf *status, struct buf *counts, struct buf *diff)
{
    const char *xy = word(&item);
    long added = strtol(word(&item), NULL, 10), removed = strtol(word(&item), NULL, 10);
    buf_addf(status, "%c%c %s", xy[0] == '.' ? ' ' : xy[0], xy[1] == '.' ? ' ' : xy[1], item);
    buf_addc(status, 0);
    if (*xy == '?')
        return;
    buf_addf(counts, "%ld\t%ld\t%s", added, removed, item);
    buf_addc(counts, 0);
    buf_addf(diff, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -1,%ld +1,%ld @@\n", item, item,
             item, item, removed, added);
    for (long i = 0; i < removed; i++)
        buf_addf(diff, "-was line %ld\n", i + 1);
    for (long i = 0; i < added; i++)
        buf_addf(diff, "+is line %ld \033[31mred\n", i + 1);
}

static void changes_line(struct script *s, char *line)
{
    struct buf b = BUF_INIT, status = BUF_INIT, counts = BUF_INIT, diff = BUF_INIT;
    const char *branch = word(&line);
    char *bar;
    bool repo = strcmp(branch, "-") != 0;
    buf_addf(&b, repo ? "repo /home/user/web\nbranch %s\n" : "dir /home/user\n", branch);
    while ((bar = strchr(line, '|'))) {
        char *item = bar + 1 + strspn(bar + 1, " "), *next = strstr(item, " | ");
        line = next ? next + 1 : item + strlen(item);
        if (next)
            *next = 0;
        add_change(item, &status, &counts, &diff);
    }
    if (repo) {
        add_part(&b, "status", &status);
        add_part(&b, "numstat", &counts);
        add_part(&b, "diff", &diff);
    }
    buf_adds(&b, "end\n");
    if (s->app->file.on_data)
        s->app->file.on_data(s->app->file.ctx, b.p, b.len);
    file_ended(s, "");
    buf_release(&b);
    buf_release(&status);
    buf_release(&counts);
    buf_release(&diff);
}

/* hits whole|part NAME WHO TEXT | NAME WHO TEXT ...; <match> in the text */
static void hits_line(struct script *s, char *line)
{
    struct ev_hits *ev = ev_new(EV_HITS);
    char *save = NULL;
    ev->m.req_id = s->app->next;
    ev->complete = !strcmp(word(&line), "whole");
    ev->v = xcalloc(16, sizeof(*ev->v));
    for (char *one = strtok_r(line, "|", &save); one && ev->n < 16;
         one = strtok_r(NULL, "|", &save)) {
        struct found *f = &ev->v[ev->n++];
        one += *one == ' ';
        f->id = 100 - ev->n;
        f->sandbox = 1;
        f->time_ms = s->ui.now;
        f->name = xstrdup(word(&one));
        f->who = xstrdup(word(&one));
        f->text = xstrdup(one);
        for (char *c = f->text; *c; c++)
            *c = (char)(*c == '<' ? 2 : *c == '>' ? 3 : *c);
    }
    script_post(s, ev);
}

static void message_line(struct script *s, char *line)
{
    struct ev_message *ev = ev_new(EV_MESSAGE);
    ev->msg.id = (uint64_t)strtoll(word(&line), NULL, 10);
    ev->msg.sandbox = (uint64_t)strtoll(word(&line), NULL, 10);
    ev->msg.state = (enum msg_state)msg_state_parse(word(&line));
    ev->msg.text = xstrdup(line);
    if (s->ui_open)
        ui_observe(&s->ui, &ev->m);
    script_post(s, ev);
}

static void tool_line(struct script *s, char *line)
{
    struct app_tool *t = &s->app->tools[s->app->n_tools++];
    t->name = xstrdup(word(&line));
    t->template_id = xstrdup(word(&line));
    t->missing_key = *line ? xstrdup(line) : NULL;
    t->local_only = !strcmp(t->name, "demo");
    t->takes_model = !t->local_only;
    t->can_ask = t->local_only || !strcmp(t->name, "claude");
}

/* template NAME STATUS [CPU MEM] */
static void template_line(struct script *s, char *line)
{
    struct app_templates *all = &s->app->templates;
    struct app_template *t;
    all->v = xrealloc(all->v, (all->n + 1) * sizeof(*all->v));
    t = &all->v[all->n++];
    *t = (struct app_template){.name = xstrdup(word(&line))};
    t->status = xstrdup(word(&line));
    t->ready = !strcmp(t->status, "ready");
    t->cpu_count = (int)strtoll(word(&line), NULL, 10);
    t->memory_mb = (int)strtoll(word(&line), NULL, 10);
    all->known = true;
    all->n_ready += t->ready;
    all->n_building += !t->ready;
}

/* model WORD INPUT OUTPUT */
static void model_line(struct script *s, char *line)
{
    struct app_model *m = &s->app->models[s->app->n_models++];
    m->word = xstrdup(word(&line));
    m->input = strtod(word(&line), NULL);
    m->output = strtod(word(&line), NULL);
}

/* key | repokey none|asking|good|hides|bad TEXT */
static void key_line(struct app_key_look *k, char *line)
{
    static const char *const states[] = {"none", "asking", "good", "hides", "bad"};
    const char *state = word(&line);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (!strcmp(state, states[i]))
            k->state = (enum app_key_state)i;
    str_copy(k->text, sizeof(k->text), line);
}

/* var NAME plain VALUE | secret LAST4: of the current project; var NAME gone */
static void var_line(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    const struct model *m = s->app->model;
    const char *name = word(&line), *kind = word(&line);
    struct project *p;
    ev->v = xcalloc(m->n_projects + 1, sizeof(*ev->v));
    for (; ev->n < m->n_projects; ev->n++)
        project_copy(&ev->v[ev->n], &m->projects[ev->n]);
    ev->current = m->project_at;
    p = &ev->v[ev->current];
    size_t i = 0;
    while (i < p->n_vars && strcmp(p->vars[i].name, name) != 0)
        i++;
    if (!strcmp(kind, "gone")) {
        free(p->vars[i].name);
        free(p->vars[i].value);
        memmove(&p->vars[i], &p->vars[i + 1], (--p->n_vars - i) * sizeof(*p->vars));
    } else {
        if (i == p->n_vars) {
            p->vars = xrealloc(p->vars, ++p->n_vars * sizeof(*p->vars));
            p->vars[i] = (struct project_var){.name = xstrdup(name)};
        }
        p->vars[i].secret = !strcmp(kind, "secret");
        free(p->vars[i].value);
        p->vars[i].value = p->vars[i].secret ? NULL : xstrdup(line);
        if (p->vars[i].secret)
            str_copy(p->vars[i].last4, sizeof(p->vars[i].last4), line);
    }
    script_post(s, ev);
}

/* kept NAME WORDS: the filters, one of them more */
static void kept_line(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    const struct model *m = s->app->model;
    const char *name = word(&line);
    ev->v = xcalloc(m->n_projects + 1, sizeof(*ev->v));
    for (; ev->n < m->n_projects; ev->n++)
        project_copy(&ev->v[ev->n], &m->projects[ev->n]);
    ev->current = m->project_at;
    ev->filters = saved_filters_copy(m->filters, m->n_filters);
    ev->filters = xrealloc(ev->filters, (m->n_filters + 1) * sizeof(*ev->filters));
    ev->filters[m->n_filters] = (struct saved_filter){xstrdup(name), xstrdup(line)};
    ev->n_filters = m->n_filters + 1;
    script_post(s, ev);
}

/* preset NAME TOOL MODEL REPO PROMPT: of the current project, which is there then */
static void preset_line(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    struct project *p = ev->v = xcalloc(1, sizeof(*p));
    const struct project *now = model_project(s->app->model);
    struct project_preset *one;
    if (now)
        project_copy(p, now);
    else
        *p = (struct project){.id = xstrdup("p1"), .name = xstrdup("web")};
    p->presets = xrealloc(p->presets, (p->n_presets + 1) * sizeof(*p->presets));
    one = &p->presets[p->n_presets++];
    *one = (struct project_preset){.name = xstrdup(word(&line))};
    one->c.tool = xstrdup(word(&line));
    one->c.model = xstrdup(word(&line));
    one->c.repo = xstrdup(word(&line));
    one->c.prompt = xstrdup(line);
    one->c.copies = 3;
    ev->n = 1;
    script_post(s, ev);
}

static void open_ui(struct script *s)
{
    if (!s->ui_open) {
        ui_init(&s->ui, s->app, &s->opts);
        s->ui_open = true;
        ui_resize(&s->ui, s->h, s->w);
    }
    if (s->opts.replay && replay_is_ready(s->replay)) /* what a key has made due */
        ui_replay_turn(&s->ui, s->ui.replay_now);
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
    script_draw(s);
}

static void replay_line(struct script *s, char *line, bool looked)
{
    const char *tool = word(&line), *name = strrchr(line, '/');
    struct err e = {0};
    int fd = fs_open(line, &e);
    if (fd < 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(2);
    }
    s->opts.replay = s->replay = replay_new(name ? name + 1 : line, tool, fd, agent_adapter_find(tool));
    s->opts.readonly = true;
    while (looked && replay_look(s->replay, 1000, NULL) == 1)
        ;
    open_ui(s);
    ui_replay_begin(&s->ui, 0);
    ui_resize(&s->ui, s->h, s->w);
}

static void play_line(struct script *s, char *line)
{
    s->ui.replay_now += strtoll(word(&line), NULL, 10);
    ui_replay_turn(&s->ui, s->ui.replay_now);
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
static void mouse_line(struct script *s, char *line, const char *file)
{
    static const char *const kinds[] = {"press", "release", "drag", "up", "down"};
    script_draw(s);
    while (*(line += strspn(line, " "))) {
        const char *w = word(&line);
        size_t k = 0;
        while (k < 5 && strcmp(kinds[k], w))
            k++;
        if (k == 5)
            bad(file, w);
        s->ui.mouse = (struct mouse){.kind = (enum mouse_kind)k};
        s->ui.mouse.y = (int)strtol(word(&line), NULL, 10);
        s->ui.mouse.x = (int)strtol(word(&line), NULL, 10);
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

/* budget TEXT: one is used up */
static void budget_line(struct script *s, const char *text)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    ev->level = 2;
    ev->budget = true;
    ev->text = xstrdup(text);
    script_post(s, ev);
}

/* build NAME STATE: the only one */
static void build_line(struct script *s, char *line)
{
    struct ev_builds *ev = ev_new(EV_BUILDS);
    ev->v = xcalloc(1, sizeof(*ev->v));
    ev->n = 1;
    ev->v->id = 1;
    ev->v->name = xstrdup(word(&line));
    ev->v->state = (enum tb_state)tb_state_parse(word(&line));
    script_post(s, ev);
}

/* notes MS: what is to be told by then */
static void notes_line(struct script *s, const char *ms)
{
    ui_update(&s->ui);
    ui_notes(&s->ui, strtoll(ms, NULL, 10));
    take_out(s);
}

/* keys j "typed text" Enter <pasted text>; `shown`: the screen is drawn after each */
static void keys(struct script *s, char *line, const char *file, bool shown)
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
        const char *w = word(&line);
        bool two = strlen(w) == 2 && !key_parse(w);
        if (!two && !key_parse(w))
            bad(file, w);
        for (size_t i = 0; two && i < 2; i++)
            a_key(s, (unsigned char)w[i], shown);
        if (!two)
            a_key(s, key_parse(w), shown);
    }
    take_out(s);
}

/* done TEXT: a request failed */
static void done_line(struct script *s, const char *text)
{
    struct ev_done *d = ev_new(EV_DONE);
    err_set(&d->err, ERR_IO, "%s", text);
    ui_observe(&s->ui, &d->m);
    script_post(s, d);
}

/* ended [TEXT]: what was asked for last, well or with that error */
static void ended_line(struct script *s, const char *text)
{
    struct ev_done *d = ev_new(EV_DONE);
    d->m.req_id = s->app->next;
    if (*text)
        err_set(&d->err, ERR_CONFLICT, "%s", text);
    ui_observe(&s->ui, &d->m);
    script_post(s, d);
    take_out(s);
}

/* receipts SANDBOX MESSAGE|! NAME [WHY], with '|' between: of the broadcast asked for last */
static void receipts_line(struct script *s, char *line)
{
    struct ev_broadcast *ev = ev_new(EV_BROADCAST);
    char *save = NULL;
    ev->m.req_id = s->app->next;
    ev->v = xcalloc(16, sizeof(*ev->v));
    for (char *one = strtok_r(line, "|", &save); one && ev->n < 16;
         one = strtok_r(NULL, "|", &save)) {
        struct receipt *r = &ev->v[ev->n++];
        one += *one == ' ';
        r->sandbox = (uint64_t)strtoll(word(&one), NULL, 10);
        const char *id = word(&one);
        r->message = *id == '!' ? 0 : (uint64_t)strtoll(id, NULL, 10);
        r->name = xstrdup(word(&one));
        r->error = *id == '!' ? xstrdup(one) : NULL;
    }
    ui_observe(&s->ui, &ev->m);
    script_post(s, ev);
}

static void set_size(struct script *s, char *rest)
{
    s->h = (int)strtoll(word(&rest), NULL, 10);
    s->w = (int)strtoll(word(&rest), NULL, 10);
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

/* NAME NAME ...: the first is current. */
static void projects(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);

    ev->v = xcalloc(16, sizeof(*ev->v));
    while (*line && ev->n < 16)
        ev->v[ev->n++].name = xstrdup(word(&line));
    script_post(s, ev);
}

/* open, or why it is locked */
static void vault(struct script *s, const char *line)
{
    struct ev_vault *ev = ev_new(EV_VAULT);

    ev->passphrase = true;
    ev->locked = strcmp(line, "open") == 0 ? NULL : xstrdup(line);
    script_post(s, ev);
}

static bool feed_line(struct script *s, const char *w, char *rest, const char *where)
{
    if (!strcmp(w, "loaded"))
        script_post(s, ev_new(EV_LOADED));
    else if (!strcmp(w, "later"))
        s->now += strtoll(rest, NULL, 10) * 1000;
    else if (!strcmp(w, "row"))
        row(s, rest);
    else if (!strcmp(w, "listed"))
        s->listed_at = s->now - strtoll(rest, NULL, 10) * 1000;
    else if (!strcmp(w, "gone"))
        gone(s, (uint64_t)strtoll(rest, NULL, 10));
    else if (!strcmp(w, "rows"))
        many_rows(s, rest);
    else if (!strcmp(w, "agent"))
        agent(s, rest, where);
    else if (!strcmp(w, "lines"))
        text_lines(s, rest);
    else if (!strcmp(w, "link"))
        link_line(s, rest);
    else if (!strcmp(w, "span"))
        script_span(s, rest);
    else if (!strcmp(w, "turn"))
        script_turn(s, rest);
    else if (!strcmp(w, "usage"))
        script_usage(s, rest);
    else if (!strcmp(w, "kill"))
        kill_line(s, rest);
    else if (!strcmp(w, "event"))
        event_line(s, rest);
    else if (!strcmp(w, "projects"))
        projects(s, rest);
    else if (!strcmp(w, "vault"))
        vault(s, rest);
    else if (!strcmp(w, "files"))
        files_line(s, rest);
    else if (!strcmp(w, "filetext"))
        filetext_line(s, rest);
    else if (!strcmp(w, "fileend"))
        file_ended(s, rest);
    else if (!strcmp(w, "progress"))
        progress_line(s, rest);
    else if (!strcmp(w, "changes"))
        changes_line(s, rest);
    else if (!strcmp(w, "hits"))
        hits_line(s, rest);
    else if (!strcmp(w, "asks") || !strcmp(w, "and"))
        asks_line(s, rest, !strcmp(w, "and"));
    else if (!strcmp(w, "answered"))
        answered_line(s, rest);
    else if (!strcmp(w, "procs"))
        procs_line(s, rest);
    else if (!strcmp(w, "message"))
        message_line(s, rest);
    else if (!strcmp(w, "done"))
        done_line(s, rest);
    else if (!strcmp(w, "mouse"))
        mouse_line(s, rest, where);
    else if (!strcmp(w, "edited"))
        edited_line(s, rest);
    else if (!strcmp(w, "budget"))
        budget_line(s, rest);
    else if (!strcmp(w, "build"))
        build_line(s, rest);
    else if (!strcmp(w, "replay"))
        replay_line(s, rest, true);
    else if (!strcmp(w, "replay-unread"))
        replay_line(s, rest, false);
    else if (!strcmp(w, "play"))
        play_line(s, rest);
    else if (!strcmp(w, "notes"))
        notes_line(s, rest);
    else if (!strcmp(w, "ended"))
        ended_line(s, rest);
    else if (!strcmp(w, "receipts"))
        receipts_line(s, rest);
    else if (!strcmp(w, "tbuild"))
        script_build(s, rest);
    else if (!strcmp(w, "buildlog"))
        script_buildlog(s, rest);
    else if (!strcmp(w, "template"))
        template_line(s, rest);
    else if (!strcmp(w, "var"))
        var_line(s, rest);
    else if (!strcmp(w, "model"))
        model_line(s, rest);
    else if (!strcmp(w, "key"))
        key_line(&s->app->key, rest);
    else if (!strcmp(w, "repokey"))
        key_line(&s->app->repo_key, rest);
    else if (!strcmp(w, "files")) { /* slow | read: those that a form names */
        s->app->slow_files = !strcmp(rest, "slow");
        s->app->reading &= s->app->slow_files;
    } else if (!strcmp(w, "kept"))
        kept_line(s, rest);
    else if (!strcmp(w, "preset"))
        preset_line(s, rest);
    else if (!strcmp(w, "tool"))
        tool_line(s, rest);
    else
        return false;
    return true;
}

void script_line(struct script *s, const char *line, const char *where)
{
    char *copy = xstrdup(line), *rest = copy;
    if (*line && *line != '#') {
        const char *w = word(&rest);
        if (!strcmp(w, "size"))
            set_size(s, rest);
        else if (!strcmp(w, "keys") || !strcmp(w, "ahead"))
            keys(s, rest, where, *w == 'k');
        else if (!set_option(s, w, rest) && !feed_line(s, w, rest, where))
            bad(where, line);
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
