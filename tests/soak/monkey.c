/* Somebody at the keys: what a person does on the screen, in a mix by chance (soak_keys.h), and
 * how long a key takes until its effect stands there. */
#include "soak.h"
#include "soak_keys.h"

#include "../lib/bench.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ESC "\033"

enum { ESC_MS = 60, LOOK_MS = 40, LETTERS = 3, VOID_MS = 400, FINGER_MS = 80, LONG_PASTE = 20000,
       KILL_ALL_ONE_IN = 4000, KILL_ALL_MS = 30000 };

static const struct {
    int h, w;
} sizes[] = {{40, 120}, {24, 80}, {60, 200}, {30, 100}, {12, 60}, {10, 40}, {20, 50}, {45, 160}};

/* --- keys ---------------------------------------------------------------------------- */

void monkey_press(struct soak *s, const char *keys)
{
    s->keys++;
    if (s->rig.tape) { /* beside what came: for whoever looks for the reason of it */
        fputs("<key", s->rig.tape);
        for (size_t i = 0; keys[i] && i < 40; i++)
            fprintf(s->rig.tape, keys[i] > ' ' && keys[i] < 127 ? " %c" : " %02x",
                    (unsigned char)keys[i]);
        fputc('>', s->rig.tape);
    }
    rig_type(&s->rig, keys);
}

static void look(struct soak *s)
{
    rig_wait_quiet(&s->rig, LOOK_MS / 4, LOOK_MS);
}

static bool mode_is(struct ptyrig *r, void *arg)
{
    char *row = rig_row(r, r->h - 1);
    bool yes = str_ends(row, arg);
    free(row);
    return yes;
}

static void hang(struct soak *s, const char *what)
{
    char *line = xasprintf("gdb -p %d -batch -ex 'thread apply all bt' >'%s/hang-%ld' 2>&1",
                           (int)s->rig.pid, s->out, s->failures + 1);
    soak_fail(s, "hang", "%s", what);
    if (system(line) != 0)
        soak_say(s, "there is no gdb");
    free(line);
}

static bool help_shows(struct ptyrig *r, void *arg)
{
    char *screen = rig_screen(r);
    bool yes = (strstr(screen, "+ help ") != NULL) == (arg != NULL);
    free(screen);
    return yes;
}

/* By its hints, with and without marks, and where these have no room by its title. */
static bool is_list(struct ptyrig *r, void *arg)
{
    char *row = rig_row(r, r->h - 2), *title = rig_row(r, 1);
    bool yes = strstr(row, "Enter open") || strstr(row, "Space mark") || str_starts(title, "= 1 ");
    (void)arg;
    free(row);
    free(title);
    return yes;
}

/* Out of dialogs, modes and filters, an Esc at a time, as each is one key; by the other key
 * out of a shell in a sandbox. */
static bool lead_home(struct soak *s, int ms)
{
    static char nav[] = " NAV";
    for (int i = 0; i < 12; i++) {
        if (i >= 3 && mode_is(&s->rig, nav))
            break;
        monkey_press(s, ESC);
        rig_wait_quiet(&s->rig, ESC_MS, ESC_MS);
    }
    if (!rig_wait_for(&s->rig, mode_is, nav, ms)) {
        monkey_press(s, "\035");
        return false;
    }
    monkey_press(s, "1");
    return rig_wait_for(&s->rig, is_list, NULL, ms);
}

/* What was pressed before may act while we are at it: then once more. */
bool monkey_home(struct soak *s)
{
    int64_t t0 = bench_now_us();
    bool there = lead_home(s, ESC_MS * 4) || lead_home(s, ESC_MS * 4) || lead_home(s, ANSWERS_MS);
    double ms = (double)(bench_now_us() - t0) / 1000;
    s->worst_settle_ms = ms > s->worst_settle_ms ? ms : s->worst_settle_ms;
    if (!there)
        hang(s, "Esc and 1 do not lead to the list");
    return there;
}

/* --- latency ------------------------------------------------------------------------- */

struct want {
    int y, x;
    uint32_t c;
    bool is;
};

static bool cell_is(struct ptyrig *r, void *arg)
{
    const struct want *w = arg;
    return (rig_cell(r, w->y, w->x) == w->c) == w->is;
}

static bool press(struct soak *s, enum probe p, const char *key,
                  bool (*ok)(struct ptyrig *r, void *arg), void *arg)
{
    rig_wait_quiet(&s->rig, 1, 8 + (int)soak_random(s, 30)); /* at no beat of the screen's */
    if (ok(&s->rig, arg))
        return false; /* it stands there already: nothing to see */
    int64_t t0 = bench_now_us();
    monkey_press(s, key);
    if (!rig_wait_for(&s->rig, ok, arg, ANSWERS_MS)) {
        s->voids++;
        return false;
    }
    *ARR_PUSH(&s->ms[p]) = (double)(bench_now_us() - t0) / 1000;
    return true;
}

/* The row of the list with the cursor, -1: none is seen. */
static int cursor_row(struct soak *s)
{
    for (int y = 2; y < s->rig.h - 2; y++)
        if (rig_cell(&s->rig, y, 1) == '>')
            return y;
    return -1;
}

static bool is_row(struct soak *s, int y)
{
    uint32_t state = rig_cell(&s->rig, y, 3);
    return rig_cell(&s->rig, y, 0) == ' ' && state > ' ' && state < 128 && rig_cell(&s->rig, y, 5) > ' ';
}

static void probe_row(struct soak *s)
{
    int y = cursor_row(s), to = y + 1;
    if (y < 0)
        return;
    if (!is_row(s, to))
        to = y - 1;
    if (to > 2 && is_row(s, to))
        press(s, P_ROW, to > y ? "j" : "k", cell_is, &(struct want){to, 1, '>', true});
}

static void probe_letter(struct soak *s)
{
    static char input[] = "INPUT";
    struct want w = {.c = 'q', .is = true};
    monkey_press(s, "i");
    if (!rig_wait_for(&s->rig, mode_is, input, VOID_MS)) {
        s->voids++; /* this one takes no messages */
        return;
    }
    rig_wait_quiet(&s->rig, 10, 50);
    for (int i = 0; i < LETTERS; i++) {
        rig_cursor(&s->rig, &w.y, &w.x);
        w.is = true;
        if (rig_cell(&s->rig, w.y, w.x) > ' ' || !press(s, P_LETTER, "q", cell_is, &w))
            break;
        w.is = false;
        press(s, P_LETTER, "\177", cell_is, &w);
    }
    monkey_press(s, ESC);
    rig_wait_for(&s->rig, mode_is, (char[]){" NAV"}, ANSWERS_MS);
}

struct text {
    const char *text;
};

static bool has_text(struct ptyrig *r, void *arg)
{
    char *screen = rig_screen(r);
    bool yes = strstr(screen, ((struct text *)arg)->text) != NULL;
    free(screen);
    return yes;
}

static void probe_views(struct soak *s)
{
    if (press(s, P_HELP, "?", help_shows, s)) {
        monkey_press(s, ESC);
        if (!rig_wait_for(&s->rig, help_shows, NULL, ANSWERS_MS))
            hang(s, "help does not close");
    }
    if (press(s, P_PANEL, "4", has_text, &(struct text){"= 4 usage"}))
        press(s, P_PANEL, "1", is_list, NULL);
    if (press(s, P_OPEN, "\r", has_text, &(struct text){" Enter fold"}))
        monkey_press(s, ESC);
}

/* The sizes below show too little for it. */
void monkey_probe(struct soak *s)
{
    if (!monkey_home(s) || s->rig.h < 20 || s->rig.w < 60)
        return;
    probe_row(s);
    if (soak_chance(s, 40))
        probe_letter(s);
    if (soak_chance(s, 15))
        probe_views(s);
}

/* --- what a person does -------------------------------------------------------------- */

static const char *some_words(struct soak *s)
{
    static char text[160];
    static const char *const cases[] = {"plain", "tool", "nap", "chatter", "words60", "recall",
                                        "toolfail", "question", "retry429", "words200"};
    if (soak_chance(s, 50))
        snprintf(text, sizeof(text), "ask: [[case:%s]]",
                 cases[soak_random(s, COUNT(cases))]);
    else
        snprintf(text, sizeof(text), "run seq -f TAG%llu-%%06g 1 %d",
                 (unsigned long long)++s->serial, 1 + (int)soak_random(s, 200));
    return text;
}

/* Words go where words are taken: as keys they would do anything, and q would end the program. */
static bool takes_words(struct ptyrig *r, void *arg)
{
    (void)arg;
    return !mode_is(r, (char[]){" NAV"}) && !mode_is(r, (char[]){"FROZEN"});
}

static void play(struct soak *s, const char *keys)
{
    int times = 1;
    for (const char *k = keys; *k && !s->rig.exited; k++) {
        char key[8] = {*k};
        if (*k == '&') {
            times = 1 + (int)soak_random(s, 6);
            continue;
        }
        if (*k == '~') {
            look(s);
            continue;
        }
        if (*k == '@' && !rig_wait_for(&s->rig, takes_words, NULL, VOID_MS)) {
            s->voids++;
            return;
        }
        if (*k == '#')
            key[0] = (char)('1' + soak_random(s, 9));
        if (*k == '\033') /* a sequence stays one key */
            for (size_t n = 1; k[1] && n < 7; n++) {
                key[n] = *++k;
                if ((n == 1 && *k != '[') || (n > 1 && *k >= '@'))
                    break;
            }
        for (; times > 0; times--)
            monkey_press(s, *k == '@' ? some_words(s) : key);
        times = 1;
    }
    look(s);
}

static void play_some_script(struct soak *s)
{
    int sum = 0;
    for (size_t i = 0; i < COUNT(scripts); i++)
        sum += scripts[i].weight;
    int at = (int)soak_random(s, (uint64_t)sum);
    size_t i = 0;
    while ((at -= scripts[i].weight) >= 0)
        i++;
    play(s, scripts[i].keys);
}

void monkey_size(struct soak *s, int h, int w)
{
    rig_resize(&s->rig, h, w);
    if (s->rig.tape)
        fprintf(s->rig.tape, "<size %d %d>", h, w);
    rig_wait_quiet(&s->rig, 120, 600);
    if (h >= 10 && w >= 40 && !rig_wait(&s->rig, "cc-tui", ANSWERS_MS))
        hang(s, "nothing is drawn at that size");
}

/* Through some sizes, too small ones among them, to one that shows something. */
static void resize(struct soak *s)
{
    for (int i = (int)soak_random(s, 4); i > 0; i--) {
        int h = 1 + (int)soak_random(s, 50), w = 1 + (int)soak_random(s, 180);
        rig_resize(&s->rig, h, w);
        if (s->rig.tape)
            fprintf(s->rig.tape, "<size %d %d>", h, w);
        rig_wait_quiet(&s->rig, 5, (int)soak_random(s, 90));
    }
    size_t at = soak_chance(s, 40) ? 0 : soak_random(s, COUNT(sizes));
    monkey_size(s, sizes[at].h, sizes[at].w);
}

static void paste(struct soak *s)
{
    struct buf b = BUF_INIT;
    size_t n = soak_chance(s, 20) ? LONG_PASTE : 1 + soak_random(s, 400);
    play(s, "&ji");
    buf_adds(&b, ESC "[200~");
    for (size_t i = 0; i < n; i++)
        buf_addc(&b, soak_chance(s, 3) ? '\n' : (char)('a' + soak_random(s, 26)));
    buf_adds(&b, ESC "[201~");
    monkey_press(s, buf_str(&b));
    buf_release(&b);
    play(s, soak_chance(s, 20) ? "~\r" : "~\033p~\003");
}

static void mouse(struct soak *s)
{
    play(s, ESC "m");
    for (int i = 3 + (int)soak_random(s, 12); i > 0; i--) {
        static const int buttons[] = {0, 0, 0, 64, 64, 65, 65, 32, 2};
        char text[40];
        int y = 1 + (int)soak_random(s, (uint64_t)s->rig.h - 2), x = 1 + (int)soak_random(s, (uint64_t)s->rig.w);
        snprintf(text, sizeof(text), ESC "[<%d;%d;%d%c", buttons[soak_random(s, COUNT(buttons))], x,
                 y, soak_chance(s, 30) ? 'm' : 'M');
        monkey_press(s, text);
        look(s);
        if (!mode_is(&s->rig, (char[]){" NAV"}))
            monkey_press(s, ESC);
    }
    monkey_home(s);
    play(s, ESC "m");
}

/* To another program and back, by a signal from outside. */
static void stop_and_go(struct soak *s)
{
    kill(s->rig.pid, SIGSTOP);
    play(s, "jjkk");
    kill(s->rig.pid, SIGCONT);
    rig_type(&s->rig, ESC "[O");
    look(s);
    rig_type(&s->rig, ESC "[I");
}

/* A shell in the sandbox, on this terminal: one command, and out. */
static void shell(struct soak *s)
{
    char *row = rig_row(&s->rig, cursor_row(s));
    bool runs = strstr(row, "running") != NULL;
    free(row);
    if (!runs)
        return;
    monkey_press(s, "s");
    if (rig_wait_for(&s->rig, mode_is, (char[]){" NAV"}, 100)) {
        rig_wait_quiet(&s->rig, 300, 1500);
        if (mode_is(&s->rig, (char[]){" NAV"}))
            return;
    }
    rig_wait_quiet(&s->rig, 200, 1500);
    monkey_press(s, "echo $((6*7))-said\r");
    rig_wait(&s->rig, "42-said", 3000);
    monkey_press(s, "exit\r");
    if (!rig_wait_for(&s->rig, mode_is, (char[]){" NAV"}, 5000)) {
        monkey_press(s, "\035"); /* the key that leaves it */
        if (!rig_wait_for(&s->rig, mode_is, (char[]){" NAV"}, 5000))
            hang(s, "the shell is not left");
    }
}

/* Keys by chance, but for those that leave the program or end sandboxes. */
static void mash(struct soak *s)
{
    static const char safe[] = "jkhlgGfW12345]-/ nNa?:iZ\t\r*UbtdvoOpPTcSI<>FwVe{}zMRAZ.[_+u\004\025\006\002\016\012";
    for (int i = 5 + (int)soak_random(s, 25); i > 0; i--) {
        char key[2] = {safe[soak_random(s, sizeof(safe) - 1)]};
        monkey_press(s, key);
        if (soak_chance(s, 30))
            look(s);
    }
}

static void type_slowly(struct soak *s, const char *keys)
{
    for (; *keys; keys++) {
        monkey_press(s, (char[]){*keys, '\0'});
        rig_wait_quiet(&s->rig, FINGER_MS, FINGER_MS); /* what is typed ahead kills nothing */
    }
}

static bool is_over(struct ptyrig *r, void *arg)
{
    char *screen = rig_screen(r);
    bool yes = strstr(screen, "proved by a new list") || strstr(screen, "NOT PROVED") ||
               strstr(screen, "some are left") || strstr(screen, "nothing to kill");
    (void)arg;
    free(screen);
    return yes;
}

static bool is_asked(struct ptyrig *r, void *arg)
{
    char *screen = rig_screen(r);
    bool yes = strstr(screen, "This ends ") || strstr(screen, arg);
    free(screen);
    return yes;
}

/* The question's number as the question wants it; it may be another one by now. False: there is
 * nothing to kill. */
static bool agree(struct soak *s)
{
    static char none[] = "nothing to kill in this scope";
    char number[24];
    if (!rig_wait_for(&s->rig, is_asked, none, KILL_ALL_MS))
        hang(s, "there is no list of what may be killed");
    rig_wait_quiet(&s->rig, 100, 1000);
    char *screen = rig_screen(&s->rig), *at = strstr(screen, "This ends ");
    bool counted = strstr(screen, "leaves them): ") != NULL;
    snprintf(number, sizeof(number), "%ld\r", at ? strtol(at + 10, NULL, 10) : 0);
    free(screen);
    if (at)
        type_slowly(s, counted ? number : "y");
    return at != NULL;
}

/* All of them, now and then: it is asked for, done, and proved. */
static void kill_all(struct soak *s)
{
    if (!monkey_home(s))
        return;
    monkey_size(s, BIG_H, BIG_W);
    soak_say(s, "kills all");
    monkey_press(s, "K");
    if (!rig_wait(&s->rig, "kill ALL", ANSWERS_MS)) {
        hang(s, "nothing is asked before all are killed");
        return;
    }
    bool any = true;
    for (int i = 0; any && i < 8 && !rig_wait(&s->rig, "+ kill all: ", i ? ANSWERS_MS / 4 : 0); i++)
        any = agree(s);
    if (!any) {
        monkey_press(s, ESC);
        return;
    }
    if (!rig_wait_for(&s->rig, is_over, NULL, KILL_ALL_MS))
        hang(s, "what the kill-all came to is not seen");
    else if (!rig_wait(&s->rig, "proved by a new list", 0))
        soak_fail(s, "kill-all", "not all are proved to be gone");
    else
        s->kill_alls++;
    monkey_press(s, ESC);
}

void monkey_act(struct soak *s)
{
    s->actions++;
    int what = (int)soak_random(s, 100);
    if (soak_random(s, KILL_ALL_ONE_IN) == 0)
        kill_all(s);
    else if (what < 5)
        resize(s);
    else if (what < 8)
        paste(s);
    else if (what < 11)
        mouse(s);
    else if (what < 12)
        stop_and_go(s);
    else if (what < 14)
        shell(s);
    else if (what < 20)
        mash(s);
    else
        play_some_script(s);
}

/* --- the picture --------------------------------------------------------------------- */

/* Frozen it changes no more: drawn anew it must be the same to the cell. */
void monkey_redraw(struct soak *s)
{
    static char frozen[] = "FROZEN";
    if (!monkey_home(s))
        return;
    if (soak_chance(s, 60))
        play_some_script(s);
    if (!mode_is(&s->rig, (char[]){" NAV"}))
        monkey_home(s);
    monkey_press(s, "Z");
    if (!rig_wait_for(&s->rig, mode_is, frozen, ANSWERS_MS))
        return;
    rig_wait_quiet(&s->rig, 100, 500);
    if (!mode_is(&s->rig, frozen))
        return; /* a size came late: its picture goes on */
    char *before = rig_screen(&s->rig);
    monkey_press(s, "\014");
    rig_wait_quiet(&s->rig, 100, 1000);
    char *after = rig_screen(&s->rig);
    if (!str_eq(before, after)) {
        char *path = xasprintf("%s/before-%ld", s->out, s->failures + 1);
        FILE *f = fopen(path, "w");
        if (f) {
            fputs(before, f);
            fclose(f);
        }
        free(path);
        soak_fail(s, "garbage", "what stood on the screen is not what is drawn anew");
    } else {
        s->redraws++;
        if (s->rig.tape && ftruncate(fileno(s->rig.tape), 0) == 0)
            rewind(s->rig.tape); /* up to here it was right */
    }
    free(before);
    free(after);
    monkey_press(s, "Z");
}
