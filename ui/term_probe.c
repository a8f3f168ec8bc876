/* What a terminal's description says, without opening the terminal. */
#include <cct/ui/term.h>

#include <curses.h>
#include <stdlib.h>
#include <term.h>

int term_probe_colors(struct err *e)
{
    const char *term = getenv("TERM");
    int ok = 0;

    if (!term || !*term)
        return err_set(e, ERR_UNSUPPORTED, "TERM is not set");
    if (setupterm(term, 1, &ok) != OK)
        return err_set(e, ERR_NOTFOUND,
                       "there is no description of the terminal '%.60s'; the screen takes "
                       "xterm-256color instead",
                       term);
    static char name[] = "colors"; /* tigetnum of older headers takes no const */
    int n = tigetnum(name);
    return n < 0 ? 0 : n;
}
