/* Floor: what a curses program cannot go below. Three panes drawn once through ncurses
 * alone, then each key is shown, up to q. */
#include <locale.h>
#include <ncurses.h>

static void fill(int y, int x, int h, int w, const char *title)
{
    WINDOW *win = newwin(h, w, y, x);
    box(win, 0, 0);
    mvwaddstr(win, 0, 2, title);
    for (int i = 1; i < h - 1; i++)
        mvwprintw(win, i, 2, "%-20s %4d running  idle", title, i);
    wnoutrefresh(win);
}

int main(void)
{
    setlocale(LC_ALL, "");
    initscr();
    raw();
    noecho();
    start_color();
    use_default_colors();
    int left = COLS / 3;
    wnoutrefresh(stdscr);
    fill(0, 0, LINES - 5, left, "list");
    fill(0, left, LINES - 5, COLS - left, "output");
    fill(LINES - 5, 0, 5, COLS, "DRAWN");
    doupdate();
    for (int c; (c = getch()) != 'q';) {
        mvprintw(LINES - 3, 4, "key %c", c);
        refresh();
    }
    endwin();
    return 0;
}
