/* See keyrun.h. */
#include "keyrun.h"

#include "faultproc.h"
#include "ptyrig.h"
#include "tmpdir.h"

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 20000, APART_MS = 60, AFTER_ESC_MS = 170, ALONE_MS = 40, PROBE_MS = 80, NOKEY_MS = 300 };

static const struct key_group *group;
static struct ptyrig rig;
static struct faultd *fake;
static char home[32], *binary;
static uint64_t bytes_before; /* the key */
static int64_t esc_at; /* of the last Esc: what comes shortly behind it would be a part of it */
static const struct key_case *at; /* for what is said of a failure */
static const char *at_key;

/* --- how terminals send keys -------------------------------------------------------- */

static const struct {
    const char *name, *bytes[4];
} sent[] = {
    {"Up", {"\033[A", "\033OA"}},        {"Down", {"\033[B", "\033OB"}},
    {"Right", {"\033[C", "\033OC"}},     {"Left", {"\033[D", "\033OD"}},
    {"Home", {"\033[H", "\033OH", "\033[1~"}}, {"End", {"\033[F", "\033OF", "\033[4~"}},
    {"PgUp", {"\033[5~"}},               {"PgDn", {"\033[6~"}},
    {"Delete", {"\033[3~"}},             {"BackTab", {"\033[Z", "\033[9;2u"}},
    {"Enter", {"\r"}},                   {"Tab", {"\t"}},
    {"Esc", {"\033", "\033[27u"}},       {"Backspace", {"\177"}},
    {"Space", {" "}},                    {"F1", {"\033OP", "\033[11~", "\033[[A"}},
    {"F5", {"\033[15~"}},                {"F9", {"\033[20~"}},
    {"Alt-Enter", {"\033\r", "\033[13;2u"}}, {"Alt-Backspace", {"\033\177"}},
};

static void add_way(struct key_ways *w, const char *s)
{
    if (w->n == KEY_WAYS || !str_copy(w->v[w->n], sizeof(w->v[0]), s))
        fail_msg("no room for another way to send a key");
    w->n++;
}

/* Appends to s, which has room for a way. */
static void add_one(char *s, const char *name)
{
    size_t len = strlen(s);
    key_code k = key_parse(name);
    if (!k)
        fail_msg("'%s' is no key", name);
    if (k & KEYC_ALT)
        s[len++] = '\033';
    k &= ~KEYC_ALT;
    if (k & KEYC_SPECIAL)
        fail_msg("how terminals send '%s' is not known here", name);
    len += utf8_encode(s + len, k);
    s[len] = '\0';
}

void key_bytes(const char *name, struct key_ways *w)
{
    char s[sizeof(w->v[0])] = "";
    size_t len = strlen(name);
    memset(w, 0, sizeof(*w));
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
        for (int k = 0; str_eq(sent[i].name, name) && k < 4 && sent[i].bytes[k]; k++)
            add_way(w, sent[i].bytes[k]);
    if (w->n)
        return;
    if (!key_parse(name)) { /* two in a row */
        char first[3] = {name[0], len == 4 ? name[1] : '\0', '\0'};
        add_one(s, first);
        name += strlen(first);
    }
    add_one(s, name);
    add_way(w, s);
    if (str_starts(name, "Alt-") && !name[5]) { /* terminals that tell all modifiers */
        snprintf(s, sizeof(s), "\033[%d;3u", name[4]);
        add_way(w, s);
    }
}

static void send_key(const char *bytes)
{
    bool part = bytes[0] == '[' || bytes[0] == 'O';
    int64_t left = esc_at + (part ? AFTER_ESC_MS : ALONE_MS) - rig_now_ms();
    if (esc_at && left > 0)
        rig_wait_quiet(&rig, (int)left, AFTER_ESC_MS);
    rig_type(&rig, bytes);
    esc_at = str_eq(bytes, "\033") ? rig_now_ms() : 0;
}

/* --- scripts ------------------------------------------------------------------------- */

static void fail_here(const char *what, const char *of)
{
    char *s = rig_screen(&rig);
    fputs(s, stderr);
    free(s);
    fail_msg("%s, %s, key %s: %s '%s'", group->name, at ? action_name(at->act) : "begin",
             at_key ? at_key : "-", what, of);
}

static bool succeeds(const char *command)
{
    char *line = xasprintf("{ %s; } >/dev/null 2>&1", command);
    int rc = system(line);
    free(line);
    return rc == 0;
}

/* Nothing here is allocated: a check that fails never comes back. */
struct token {
    char kind;  /* k key, t text, p paste, [ shown, ! gone, { command, # bytes, ~ */
    char text[1024];
};

/* The next one of a script; false at its end. */
static bool next(const char **s, struct token *t)
{
    static const char open[] = "'<[{\"", close[] = "'>]}\"";
    const char *p = *s + strspn(*s, " \n");
    bool not = *p == '!' && (p[1] == '[' || p[1] == '"');
    const char *kind = strchr(open, p[not]);
    size_t len;
    if (!*p)
        return false;
    p += not;
    if (*p && kind && p[1] && (p[1] != ' ' || *p == '"')) {
        const char *end = strchr(p + 1, close[kind - open]);
        if (!end)
            fail_msg("no end of %s", p);
        t->kind = not ? '!' : *kind == '\'' ? 't' : *kind == '<' ? 'p' : *kind == '"' ? '[' : *kind;
        len = (size_t)(end - p) - 1;
        p++;
        *s = end + 1;
    } else {
        len = strcspn(p, " \n");
        t->kind = len == 1 && *p == '~' ? '~' : len > 1 && *p == '#' ? '#' : 'k';
        *s = p + len;
    }
    if (len >= sizeof(t->text))
        fail_msg("too long: %s", p);
    memcpy(t->text, p, len);
    t->text[len] = '\0';
    return true;
}

/* Is what a wait waits for so now? */
static bool holds(const struct token *t, int ms)
{
    if (t->kind == '[')
        return rig_wait(&rig, t->text, ms);
    if (t->kind == '!')
        return rig_wait_gone(&rig, t->text, ms);
    for (int64_t end = rig_now_ms() + ms;;) {
        if (t->kind == '#' ? rig.bytes - bytes_before >= strtoull(t->text + 1, NULL, 10)
                           : succeeds(t->text))
            return true;
        if (rig_now_ms() >= end)
            return false;
        rig_wait_quiet(&rig, 50, 50);
    }
}

static void paste(const char *text)
{
    rig_type(&rig, "\033[200~");
    rig_type(&rig, text);
    rig_type(&rig, "\033[201~");
}

static void play(const char *script)
{
    struct token t;
    while (next(&script, &t)) {
        if (t.kind == 'k') {
            struct key_ways w;
            key_bytes(t.text, &w);
            send_key(w.v[0]);
        } else if (t.kind == 't') {
            send_key(t.text);
        } else if (t.kind == 'p') {
            paste(t.text);
        } else if (t.kind == '~') {
            rig_wait_quiet(&rig, APART_MS, 2000);
        } else if (!holds(&t, SOON)) {
            fail_here(t.kind == '!' ? "does not go:" : "does not come:", t.text);
        }
    }
}

/* Each wait of it, after or before the key. */
static void check(const char *want, bool after)
{
    struct token t;
    while (next(&want, &t)) {
        if (!strchr("[!{#", t.kind))
            fail_msg("%s: '%s' is no wait", action_name(at->act), t.text);
        if (holds(&t, after ? SOON : 0) != after)
            fail_here(after ? "did not do this:" : "was so before it:", t.text);
    }
}

/* --- a case -------------------------------------------------------------------------- */

static bool is_wait_last(const char *script)
{
    size_t n = strlen(script);
    return !n || strchr("]}~\"", script[n - 1]);
}

static bool counts_alone(enum action a)
{
    enum key_scope s = action_scope(a);
    return s == SCOPE_CONFIRM || s == SCOPE_ANSWER || s == SCOPE_PAIR || s == SCOPE_DIALOG;
}

/* What the probe would show without the key is not taken for what the key does. */
static void press(const struct key_case *c, const char *bytes)
{
    if (!is_wait_last(c->from) || !is_wait_last(c->back))
        fail_msg("%s: its scripts end with a wait", action_name(c->act));
    if (c->probe && !c->once) {
        play(c->from);
        play(c->probe);
        rig_wait_quiet(&rig, PROBE_MS, 2000);
        check(c->want, false);
        play(c->back);
    }
    play(c->from);
    if (counts_alone(c->act))
        rig_wait_quiet(&rig, APART_MS, 2000);
    bytes_before = rig.bytes;
    check(c->want, false);
    if (getenv("NOKEY") && (!c->probe || !c->once)) /* NOKEY=1: what comes without the key? */
        rig_wait_quiet(&rig, NOKEY_MS, 2000);
    if (getenv("NOKEY") && !c->probe)
        check(c->want, false);
    send_key(bytes);
    if (c->probe)
        play(c->probe);
    check(c->want, true);
    play(c->back);
}

static int each_key(const struct key_case *c, int *ways_pressed)
{
    char keys[256], *save = NULL;
    struct key_ways ways;
    int nth = 0, n = 0;
    at = c;
    if (!str_copy(keys, sizeof(keys), action_keys(c->act)))
        fail_msg("too many keys: %s", action_keys(c->act));
    for (char *w = strtok_r(keys, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (c->nth && c->nth != ++nth)
            continue;
        key_bytes(w, &ways);
        at_key = w;
        for (size_t i = 0; i < ways.n; i++, ++*ways_pressed)
            press(c, ways.v[i]);
        n++;
    }
    at_key = NULL;
    return n;
}

/* --- a group ------------------------------------------------------------------------- */

static void set_env(void)
{
    static const char *const places[] = {"CONFIG", "DATA", "STATE", "RUNTIME"};
    char name[32], *own = xasprintf("%s/own", home);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "CC_TUI_%s_DIR", places[i]);
        setenv(name, own, 1);
    }
    free(own);
    setenv("HOME", home, 1);
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("VISUAL", "./editor", 1);
    unsetenv("SSH_CONNECTION");
    unsetenv("TMUX");
    unsetenv("STY");
    unsetenv("E2B_API_KEY");
    if (!fake)
        return;
    setenv("E2B_API_URL", faultd_url(fake), 1);
    setenv("E2B_SANDBOX_URL", faultd_url(fake), 1);
    setenv("E2B_API_KEY", "e2b_0123456789abcdef0123456789abcdef01234f2a", 1);
}

static char *first_line(const char *command)
{
    char line[256] = "";
    FILE *p = popen(command, "r");
    assert_non_null(p);
    if (!fgets(line, sizeof(line), p))
        fail_msg("%s says nothing", command);
    pclose(p);
    line[strcspn(line, "\n")] = 0;
    return xstrdup(line);
}

static void prepare(void)
{
    char *control = first_line("eval \"$($C local env)\"; echo ${E2B_API_URL##*:}");
    char *traffic = first_line("eval \"$($C local env)\"; echo ${E2B_SANDBOX_URL##*:}");
    char *key = first_line("eval \"$($C local env)\"; echo $E2B_API_KEY");
    group->prepare((int)strtol(control, NULL, 10), (int)strtol(traffic, NULL, 10), key);
    free(control);
    free(traffic);
    free(key);
}

static void set_up(void)
{
    char *c = xasprintf("%s%s", binary, fake ? "" : " --local");
    setenv("C", c, 1);
    free(c);
    if (group->faultd && !faultd_config(fake, group->faultd))
        fail_msg("faultd takes no %s", group->faultd);
    if (system("mkdir -p own && chmod 700 own && printf '#!/bin/sh\\nprintf edited > \"$1\"\\n' > editor && "
               "chmod 755 editor && printf '[notify]\\nasks = mark\\nerror = mark\\n[sandbox]\\n"
               "kill_all_grace = 10\\n' > own/cc-tui.conf") != 0)
        fail_msg("no scratch folder");
    char *out = xasprintf("set -e\n%s", group->setup ? group->setup : "");
    char *file = xasprintf("%s/setup.sh", home);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(out, f);
    fclose(f);
    if (system("sh ./setup.sh > setup.out 2>&1") != 0) {
        if (system("cat setup.out >&2") != 0)
            fail_msg("no cat");
        fail_msg("%s: what it begins with could not be made", group->name);
    }
    free(file);
    free(out);
    if (group->prepare)
        prepare();
}

static void begin(const struct key_group *g)
{
    group = g;
    at = NULL;
    at_key = NULL;
    esc_at = 0;
    memset(&rig, 0, sizeof(rig));
    fake = g->faultd ? faultd_start(NULL) : NULL;
    str_copy(home, sizeof(home), "/tmp/cct-keys.XXXXXX");
    assert_non_null(mkdtemp(home));
    assert_int_equal(chdir(home), 0);
    set_env(); /* nothing that is run from here on looks elsewhere */
}

/* The status also tells what a sanitizer found in the program. */
static void leave(void)
{
    at = NULL;
    kill(rig.pid, SIGTERM);
    if (!rig_wait_exit(&rig, SOON) || !WIFEXITED(rig.status) || WEXITSTATUS(rig.status) != 143) {
        char *s = rig_screen(&rig);
        fputs(s, stderr);
        free(s);
        fail_msg("%s: ended with %x", group->name, (unsigned)rig.status);
    }
    if (rig_not_restored(&rig))
        fail_msg("%s: %s", group->name, rig_not_restored(&rig));
}

static void run_group(void **state)
{
    int pressed = 0, ways = 0;
    const char *only = getenv("ONLY");
    char *argv[12] = {binary};
    char *shell[] = {(char *)"bash", (char *)"--norc", (char *)"--noprofile", (char *)"-i", NULL};
    begin(*state);
    if (!group->faultd) {
        char *probe = xasprintf("%s-local probe", binary);
        bool may = succeeds(probe);
        free(probe);
        if (!may)
            skip();
    }
    if (group->shell && access("/bin/bash", X_OK) != 0)
        skip();
    set_up();
    if (!group->args)
        argv[1] = (char *)(uintptr_t)(fake ? NULL : "--local");
    for (size_t i = 0; group->args && group->args[i] && i < 10; i++)
        argv[1 + i] = (char *)(uintptr_t)group->args[i];
    if (group->shell) {
        setenv("PS1", "shell> ", 1);
        setenv("HISTFILE", "", 1);
        rig_start(&rig, group->h, group->w, shell, NULL);
    } else {
        rig_start(&rig, group->h, group->w, argv, NULL);
    }
    rig.judge.may_mouse = true;
    play(group->begin);
    for (size_t i = 0; i < group->n; i++)
        if (!only || str_eq(only, action_name(group->cases[i].act)))
            pressed += each_key(&group->cases[i], &ways);
    if (!group->shell)
        leave();
    if (rig.judge.bad[0])
        fail_msg("on the wire: %s", rig.judge.bad);
    print_message("# %zu cases, %d keys, sent in %d ways\n", group->n, pressed, ways);
}

static int tear_down(void **state)
{
    (void)state;
    if (rig.pid)
        rig_stop(&rig);
    if (!fake) {
        int rc = system("$C local stop --yes >/dev/null 2>&1");
        (void)rc;
    } else {
        faultd_stop(fake);
        fake = NULL;
    }
    return tmpdir_remove(home);
}

static void find_binary(void)
{
    const char *b = getenv("B");
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    char *tests_dir = strstr(path, "/tests/e2e/");
    if (tests_dir)
        *tests_dir = 0; /* the build folder */
    binary = xasprintf("%s/cc-tui", tests_dir ? path : b ? b : "build/debug");
}

/* $B names the folder for faultd_start(), from wherever. */
static void name_folder(void)
{
    char *dir = xstrdup(binary), *end = strrchr(dir, '/');
    char *whole = realpath(end ? (*end = '\0', dir) : ".", NULL);
    setenv("B", whole, 1);
    free(binary);
    binary = xasprintf("%s/cc-tui", whole);
    setenv("BIN", binary, 1);
    free(whole);
    free(dir);
}

int keyrun_main(const char *groups)
{
    struct CMUnitTest tests[8] = {{0}};
    char *names = xstrdup(groups), *save = NULL;
    size_t n = 0;

    char *here = getcwd(NULL, 0);
    setenv("SRC", here, 1);
    free(here);
    find_binary();
    name_folder();
    for (char *w = strtok_r(names, " ", &save); w && n < 8; w = strtok_r(NULL, " ", &save)) {
        size_t i = 0;
        while (i < n_key_groups && !str_eq(key_groups[i]->name, w))
            i++;
        if (i == n_key_groups) {
            fprintf(stderr, "there is no group '%s'\n", w);
            return 1;
        }
        tests[n++] = (struct CMUnitTest){key_groups[i]->name, run_group, NULL, tear_down,
                                         (void *)(uintptr_t)key_groups[i]};
    }
    int rc = _cmocka_run_group_tests("keys", tests, n, NULL, NULL);
    free(names);
    free(binary);
    return rc;
}
