/* The agents: as many as there should be, and work for them, as another instance of cc-tui
 * beside the screen gives it. Work that is a command prints numbered lines with a tag of its
 * own, so that each can be found again. */
#include "soak.h"

#include <cct/util/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { COMMANDS_AT_ONCE = 4, REST_S = 240, REST_LISTS = 3, SPARE_BOXES = 2 };

static const struct {
    const char *name, *adapter, *command, *ask, *resume;
} demo[] = {
    {"claude", "claude", "demo-agent --as claude",
     "demo-agent --as claude --permission-prompt-tool stdio", "--resume"},
    {"codex", "codex", "demo-agent --as codex exec --json -", NULL, "exec resume"},
    {"opencode", "opencode", "demo-agent --as opencode run --format json", NULL, "--session"},
    {"pi", "pi", "demo-agent --as pi --mode rpc", NULL, "--session"},
};

/* What the CLIs need to believe that they have an account. */
static const struct {
    const char *tool, *env;
} real[] = {
    {"claude", "-e ANTHROPIC_API_KEY=sk-ant-soak"},
    {"codex", "-e OPENAI_API_KEY=sk-soak -e CODEX_API_KEY=sk-soak"},
    {"opencode", "-e OPENROUTER_API_KEY=sk-or-soak"},
    {"pi", "-e OPENROUTER_API_KEY=sk-or-soak"},
};

/* tools.conf may have been begun by who started us: the ways to the CLIs themselves. */
void fleet_configure(struct soak *s)
{
    char *path = xasprintf("%s/tools.conf", s->dir);
    FILE *f = fopen(path, "a");
    for (size_t i = 0; f && i < COUNT(demo); i++) {
        fprintf(f, "[tool d-%s]\nadapter = %s\ntemplate = demo\ncommand = \"%s\"\nresume = %s\n",
                demo[i].name, demo[i].adapter, demo[i].command, demo[i].resume);
        if (demo[i].ask)
            fprintf(f, "ask_command = \"%s\"\n", demo[i].ask);
    }
    if (!f || fclose(f) || chmod(path, 0600))
        die("no '%s'", path);
    free(path);
    path = xasprintf("%s/cc-tui.conf", s->dir);
    f = fopen(path, "w");
    if (f)
        fputs("[sandbox]\ntimeout = 3h\ntool = d-claude\n[copy]\nchannel = osc52\n", f);
    if (!f || fclose(f) || chmod(path, 0600))
        die("no '%s'", path);
    free(path);
}

/* --- the list ------------------------------------------------------------------------ */

static void take(struct soak *s, const struct cJSON *j)
{
    struct box *b = ARR_PUSH(&s->boxes);
    str_copy(b->id, sizeof(b->id), json_str(j, "sandboxID", ""));
    str_copy(b->name, sizeof(b->name), json_str(j, "name", ""));
    str_copy(b->tool, sizeof(b->tool), json_str(j, "tool", ""));
    str_copy(b->state, sizeof(b->state), json_str(j, "state", ""));
    str_copy(b->agent, sizeof(b->agent), json_str(j, "agentState", ""));
    const struct cJSON *meta = json_get(j, "metadata");
    str_copy(b->session, sizeof(b->session), json_str(meta, "cc-tui-session", ""));
}

void fleet_list(struct soak *s)
{
    struct buf b = BUF_INIT;
    struct err e = {0};
    int rc = soak_run(s, &b, "ls --json");
    struct cJSON *j = rc ? NULL : json_parse(buf_str(&b), b.len, &e);
    if (!json_is_array(j)) {
        soak_fail(s, "list", "'cc-tui ls --json' ends with %d, %s", rc, e.text);
    } else {
        ARR_CLEAR(&s->boxes);
        for (const struct cJSON *c = json_first(j); c; c = json_next(c))
            take(s, c);
    }
    json_free(j);
    buf_release(&b);
}

static bool lives(const struct box *b)
{
    return str_eq(b->state, "running") || str_eq(b->state, "paused") ||
           str_eq(b->state, "creating") || str_eq(b->state, "error");
}

/* The monkey makes more of them than it ends: what they cost must not look like growth. */
static void end_spare(struct soak *s, int living)
{
    for (size_t i = 0; i < s->jobs.n; i++)
        living -= str_eq(s->jobs.v[i].what, "kill");
    for (size_t i = 0; i < s->boxes.n && living > s->agents + SPARE_BOXES; i++) {
        const struct box *b = &s->boxes.v[soak_random(s, s->boxes.n)];
        if (!lives(b))
            continue;
        soak_begin(s, "kill", "kill -y %s", b->id);
        living--;
    }
}

void fleet_fill(struct soak *s)
{
    int living = 0;
    for (size_t i = 0; i < s->boxes.n; i++)
        living += lives(&s->boxes.v[i]);
    end_spare(s, living);
    for (size_t i = 0; i < s->jobs.n; i++)
        living += str_eq(s->jobs.v[i].what, "new");
    for (; living < s->agents; living++) {
        unsigned long nth = (unsigned long)s->made++;
        /* every fifth is a CLI itself, some end by their time, some ask */
        if (s->real && nth % 5 == 4) {
            size_t i = nth / 5 % COUNT(real);
            soak_begin(s, "new", "new --tool %s --name %s-%lu %s", real[i].tool, real[i].tool,
                       nth, real[i].env);
        } else {
            size_t i = nth % COUNT(demo);
            soak_begin(s, "new", "new --tool d-%s --name %s-%lu%s%s", demo[i].name, demo[i].name,
                       nth, soak_chance(s, 10) ? " --timeout 5m" : "",
                       demo[i].ask && soak_chance(s, 50) ? " --ask yes" : "");
        }
    }
}

/* --- work ---------------------------------------------------------------------------- */

static const struct {
    const char *text;
    int weight;
} plays[] = {
    {"[[case:plain]]", 4},     {"[[case:tool]]", 8},     {"[[case:toolfail]]", 4},
    {"[[case:nap]]", 4},       {"[[case:chatter]]", 10}, {"[[case:recall]]", 2},
    {"[[case:words30]]", 8},   {"[[case:words120]]", 6}, {"[[case:words400]]", 3},
    {"[[case:question]]", 4},  {"[[case:e401]]", 1},     {"[[case:e429]]", 1},
    {"[[case:e500]]", 1},      {"[[case:retry429]]", 2}, {"[[case:maxtokens]]", 1},
    {"[[case:toolsleep]]", 1}, {"[[case:crash]]", 1},    {"ls /usr/bin", 2},
    {"cat /etc/passwd", 2},    {"help", 1},
    {"run printf '\\033[31mred \\347\\225\\214 \\360\\237\\207\\251\\360\\237\\207\\252\\tx\\n\\rover\\n'", 3},
};

static const char *a_play(struct soak *s)
{
    int sum = 0;
    for (size_t i = 0; i < COUNT(plays); i++)
        sum += plays[i].weight;
    int at = (int)soak_random(s, (uint64_t)sum);
    for (size_t i = 0;; i++)
        if ((at -= plays[i].weight) < 0)
            return plays[i].text;
}

/* The CLIs themselves hear from their models' stand-in what to do. */
static char *words_for(struct soak *s, const struct box *b)
{
    bool itself = !str_starts(b->tool, "d-") && !str_eq(b->tool, "demo");
    int n = itself ? 100 : soak_chance(s, 4) ? 3000 : soak_chance(s, 20) ? 300 : 20;
    if (itself && soak_chance(s, 30))
        return xasprintf("ask: #words %d", 10 + (int)soak_random(s, 100));
    if (itself && soak_chance(s, 50))
        return xasprintf("ask: hello %d", (int)soak_random(s, 1000));
    if (!itself && soak_chance(s, 60))
        return xstrdup(a_play(s));
    s->serial++;
    return xasprintf("%s seq -f TAG%llu-%%06g 1 %d", itself ? "ask: #tool" : "run",
                     (unsigned long long)s->serial, 1 + (int)soak_random(s, (uint64_t)n));
}

static void tell(struct soak *s, const struct box *b)
{
    char *words = words_for(s, b), *path = xasprintf("%s/message-%ld", s->dir, s->messages++);
    FILE *f = fopen(path, "w");
    if (!f || fputs(words, f) < 0 || fclose(f))
        die("no '%s'", path);
    soak_begin(s, "send", "send %s - <%s", b->id, path);
    free(words);
    free(path);
}

static void one(struct soak *s, const struct box *b)
{
    if (str_eq(b->state, "paused")) {
        if (soak_chance(s, 60))
            soak_begin(s, "resume", "resume %s", b->id);
    } else if (str_eq(b->state, "error") || str_eq(b->agent, "exited")) {
        soak_begin(s, "restart", soak_chance(s, 70) ? "restart %s" : "kill -y %s", b->id);
    } else if (!str_eq(b->state, "running")) {
        return;
    } else if (str_eq(b->agent, "asks you")) {
        if (soak_chance(s, 40))
            soak_begin(s, "answer", "answer %s 1", b->id);
    } else if (str_eq(b->agent, "working") && soak_chance(s, 5)) {
        soak_begin(s, "interrupt", "interrupt %s", b->id);
    } else if (str_eq(b->agent, "idle") || soak_chance(s, 10)) {
        tell(s, b);
    }
}

void fleet_work(struct soak *s)
{
    for (int i = 0; i < COMMANDS_AT_ONCE && s->boxes.n && s->jobs.n < COMMANDS_AT_ONCE; i++)
        one(s, &s->boxes.v[soak_random(s, s->boxes.n)]);
}

/* --- the end ------------------------------------------------------------------------- */

static bool moves(const struct box *b)
{
    return str_eq(b->state, "creating") || str_eq(b->agent, "working") ||
           str_eq(b->agent, "asks you") || str_eq(b->agent, "starting");
}

bool fleet_rest(struct soak *s)
{
    double end = soak_seconds(s) + REST_S;
    size_t left;
    int quiet = 0; /* lists in a row: between two messages an agent is idle, too */
    fleet_list(s);
    for (size_t i = 0; i < s->boxes.n; i++)
        if (str_eq(s->boxes.v[i].state, "paused"))
            soak_begin(s, "resume", "resume %s", s->boxes.v[i].id);
    do {
        rig_wait_quiet(&s->rig, 1000, 1000);
        soak_reap(s);
        fleet_list(s);
        left = s->jobs.n;
        for (size_t i = 0; i < s->boxes.n; i++) {
            const struct box *b = &s->boxes.v[i];
            left += moves(b) && !str_eq(b->state, "paused");
            if (s->jobs.n >= COMMANDS_AT_ONCE)
                continue;
            if (str_eq(b->agent, "asks you") && str_eq(b->state, "running"))
                soak_begin(s, "answer", "answer %s 1", b->id);
        }
        quiet = left ? 0 : quiet + 1;
    } while (quiet < REST_LISTS && soak_seconds(s) < end);
    for (size_t i = 0; i < s->boxes.n; i++)
        if (moves(&s->boxes.v[i]) && !str_eq(s->boxes.v[i].state, "paused"))
            soak_fail(s, "stuck", "%s (%s) is still %s, %s", s->boxes.v[i].name,
                      s->boxes.v[i].id, s->boxes.v[i].state, s->boxes.v[i].agent);
    for (size_t i = 0; i < s->jobs.n; i++)
        soak_fail(s, "stuck", "a command '%s' does not end", s->jobs.v[i].what);
    return left == 0;
}
