/* Floor: what a list on a screen costs with ncurses alone. cursesfloor WHAT N ROUNDS draws on its
 * terminal, then prints "FLOOR us END" there: CPU time of a round, the median. WHAT:
 *   paint   three panes, all of it sent anew
 *   one     one of N rows changes: it and the header's count are drawn
 *   all     all of N rows change and are sorted; those that are visible are drawn */
#include <locale.h>
#include <ncurses.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct row {
    char name[32], tool[16], last[64];
    int state, left;
};
static const char *const states[] = {"working", "idle"};

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void draw_row(int y, const struct row *r)
{
    mvprintw(y, 1, " . %-20s %-11s running  %-14s %4dm %.60s", r->name, r->tool, states[r->state],
             r->left, r->last);
}

static void draw_head(int working, int n)
{
    mvprintw(0, 1, "floor  * %5d working  . %5d idle", working, n - working);
}

static int by_state(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->state != y->state ? x->state - y->state : strcmp(x->name, y->name);
}

static void change(struct row *r, int to)
{
    r->state = to;
    r->left = 59 - to;
    snprintf(r->last, sizeof(r->last), "what the agent said last, the %dth", to);
}

static void one(struct row *v, int n, int round)
{
    static int working;
    int i = round % 10, to = round / 10 % 2;
    working += v[i].state - to;
    change(&v[i], to);
    draw_row(i + 1, &v[i]);
    draw_head(working, n);
}

static void all(struct row *v, int n, int round)
{
    for (int i = 0; i < n; i++)
        change(&v[i], (i + round) % 2);
    qsort(v, (size_t)n, sizeof(*v), by_state);
    draw_head(n / 2, n);
    for (int i = 0; i < n && i < LINES - 3; i++)
        draw_row(i + 1, &v[i]);
}

static void pane(int y, int x, int h, int w, const char *title)
{
    WINDOW *win = newwin(h, w, y, x);
    box(win, 0, 0);
    mvwaddstr(win, 0, 2, title);
    for (int i = 1; i < h - 1; i++)
        mvwprintw(win, i, 2, "%-20s %4d running  idle", title, i);
    wnoutrefresh(win);
    delwin(win);
}

static void paint(void)
{
    int left = COLS / 3;
    clearok(curscr, TRUE);
    wnoutrefresh(stdscr);
    pane(0, 0, LINES - 5, left, "list");
    pane(0, left, LINES - 5, COLS - left, "output");
    pane(LINES - 5, 0, 5, COLS, "DRAWN");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[1] : "";
    int n = argc > 3 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 0;
    struct row *v = calloc((size_t)n + 1, sizeof(*v));
    double *us = calloc((size_t)rounds + 1, sizeof(*us));
    if (!v || !us || n < 1 || rounds < 1)
        return 2;
    setlocale(LC_ALL, "");
    initscr();
    for (int i = 0; i < n; i++) {
        snprintf(v[i].name, sizeof(v[i].name), "box-%05d", i);
        snprintf(v[i].tool, sizeof(v[i].tool), "claude");
        change(&v[i], 1);
        if (i < LINES - 3)
            draw_row(i + 1, &v[i]);
    }
    refresh();
    for (int i = 0; i < rounds; i++) {
        double t = cpu_us();
        if (strcmp(what, "paint") == 0)
            paint();
        else if (strcmp(what, "one") == 0)
            one(v, n, i);
        else
            all(v, n, i);
        wnoutrefresh(stdscr);
        doupdate();
        us[i] = cpu_us() - t;
    }
    endwin();
    qsort(us, (size_t)rounds, sizeof(*us), by_value);
    printf("\nFLOOR %.2f END\n", us[rounds / 2]);
    free(v);
    free(us);
    return 0;
}
