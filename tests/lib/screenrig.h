/* The screen on a real pseudo terminal: a test program starts itself with --screen, which runs
 * ui_run() over a facade fed by a script (screenscript.h). */
#ifndef CCT_TESTS_LIB_SCREENRIG_H
#define CCT_TESTS_LIB_SCREENRIG_H

#include "ptyrig.h"

#include <stdbool.h>

enum { SOON = 20000, AT_ONCE = 1000 };

/* Three rows with an output; the first is 'fix-login'. */
extern const char screenrig_rows[];
/* First in main(): the program on the terminal does not come back from it. */
void screenrig_begin(int argc, char **argv);
const char *screenrig_self(void); /* this program: SELF --screen SCRIPT is the one on the terminal */
/* `more`: of the environment, "NAME=value" or "NAME" to unset, ends with NULL; RIG_STREAM=n: n
 * lines of output come with each tick; RIG_FRAMES=file: counts of frames, at the end. A script
 * that begins with '@' is in the file of that name. */
void screenrig_start_with(struct ptyrig *r, int h, int w, const char *script,
                          const char *const more[]);
/* Those three rows, shown. */
void screenrig_start(struct ptyrig *r, int h, int w);

/* These fail the test. */
void screenrig_shows(struct ptyrig *r, const char *text);
void screenrig_is_clean(struct ptyrig *r);
void screenrig_ends(struct ptyrig *r, int ms);
void screenrig_quit(struct ptyrig *r, int ms); /* by its key; the rig is stopped */
/* The picture equals the one that a full redraw gives. */
void screenrig_same_as_fresh(struct ptyrig *r);

#endif
