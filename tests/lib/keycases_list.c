/* Keys of the list, and those that count everywhere: nine sandboxes with agents, two of which
 * ask, and one that has ended. */
#include "keyrun.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))
#define HOME_ROW "gg [> . a-1]"
#define WORK "[AGENT    STATE]" /* the list's columns */

static const struct key_case cases[] = {
    KEY(DOWN, "", "[> . a-2]", HOME_ROW),
    KEY(UP, "Down [> . a-2]", "[> . a-1]", ""),
    KEY(TOP, "G [> x gone]", "[> . a-1]", ""),
    KEY(BOTTOM, "", "[> x gone]", HOME_ROW),
    KEY(HALF_DOWN, "", "[> . a-5]", HOME_ROW),
    KEY(HALF_UP, "G [> x gone]", "[> . a-6]", HOME_ROW),
    KEY(PAGE_DOWN, "", "[> ? ask2]", HOME_ROW),
    KEY(PAGE_UP, "G [> x gone]", "[> . a-2]", HOME_ROW),
    KEY(PANE_OUTPUT, "", "[= 2 output]", "1 [- 2 output]"),
    KEY(PANE_LIST, "2 [= 2 output]", "[- 2 output]", ""),
    KEY(PANE_BUILDS, "", "[= 3 builds]", "3 " WORK),
    KEY(PANE_USAGE, "", "[= 4 usage]", "4 " WORK),
    KEY(PANE_EVENTS, "", "[= 5 events]", "1 ![= 5 events]"),
    KEY(WALL, "", "[= wall]", "W " WORK),
    KEY(NEXT_PANE, "", "[= 2 output]", "1 [- 2 output]"),
    KEY(PREV_PANE, "2 [= 2 output]", "[- 2 output]", ""),
    KEY(ZOOM, "", "![2 output]", "_ [- 2 output]"),
    KEY(NEXT_ASKING, "", "[> ? ask]", HOME_ROW),
    KEY(PREV_ASKING, "", "[> ? ask]", HOME_ROW),
    KEY(LAST_SANDBOX, "] [> ? ask]", "[> . a-1]", ""),
    KEY(SEARCH, "", "[filter:]", "Esc ![filter:]"),
    KEY(SEARCH_ALL, "", "[search what was said]", "Esc ![search what]"),
    KEY(PROJECTS, "", "[+ projects]", "Esc ![+ projects]"),
    KEY(KEYS, "", "[PROVIDER]", "Esc ![PROVIDER]"),
    KEY(COMMAND, "", "[+ command]", "Esc ![+ command]"),
    KEY(HELP, "", "[+ help]", "Esc ![+ help]"),
    KEY(BACK, "2 [= 2 output]", "[- 2 output]", ""),
    KEY(BACK_TWICE, "2 [= 2 output]", "[- 2 output] [press ^C again]", ""),
    KEY(QUIT, "f ![2 output]", "[- 2 output]", ""),
    KEY(UNDO, "", "[nothing waits that could be called off]", "Up ![nothing waits]"),
    KEY(MOUSE, "", "[mouse on;]", "Alt-m ![mouse on;]"),
    KEY(REDRAW, "~", "#700", ""),
    KEY(REFRESH, "", "[asking for the list]", "Up ![asking for the list]"),
    KEY(FREEZE, "", "[stands still]", "Z ![stands still]"),
    KEY(BARE, "", "![AGENT    STATE]", "Alt-l " WORK),
    KEY(NEW, "", "[+ new sandbox]", "Esc ![+ new sandbox]"),
    KEY_THEN(NEW_PROMPT, "", "'hello you'", "[hello you]", "Esc ![+ new sandbox]"),
    KEY(PAIR, "", "[+ designer and checker]", "Esc ![+ designer]"),
    KEY(INPUT, "", "[INPUT]", "Esc [NAV]"),
    KEY(ANSWER, "] [> ? ask]", "[asks you -]", "Esc ![asks you -] " HOME_ROW),
    KEY(INTERRUPT, "Down [> . a-2] {$C send a-2 'run sleep 60'} [> * a-2]", "![> * a-2]",
     "[> . a-2] " HOME_ROW),
    KEY(KILL, "", "[kill this sandbox?]", "Esc ![kill this]"),
    KEY(KILL_ALL, "", "[kill ALL sandboxes]", "Esc ![kill ALL]"),
    KEY(PROCESSES, "", "[= 2 processes: a-1]", "o [= 2 output] 1 [- 2 output]"),
    KEY(FILES, "", "[= files: a-1]", "Esc " WORK),
    KEY(CHANGES, "", "[= changes: a-1]", "Esc " WORK),
    KEY(ADOPT, "", "[there is nothing to adopt]", "Up ![nothing to adopt]"),
    KEY(MARK, "", "[1 marked: a-1]", "U ![1 marked] " HOME_ROW),
    KEY(MARK_ALL, "", "[10 marked]", "U ![10 marked]"),
    KEY(UNMARK_ALL, "Space [1 marked: a-1]", "![1 marked: a-1]", HOME_ROW),
    KEY(BULK, "", "[this sandbox (none is marked)]", "Esc ![this sandbox (none]"),
    KEY(SET_TIME, "", "[+ time left]", "Esc ![+ time left]"),
    KEY(OPEN, "", "![AGENT    STATE] [= 2 output]", "q " WORK),
    KEY(DETAILS, "", "[+ details]", "Esc ![+ details]"),
    KEY(PAUSE, "", "[> = a-1]", "r [> . a-1]"),
    KEY(RESUME, "p [> = a-1]", "[> . a-1]", ""),
    KEY(PROTECT, "", "[a-1 is protected] [P demo]", "P ![P demo] Up ![no longer]"),
    KEY(RENAME, "", "[+ rename]", "Esc ![+ rename]"),
    KEY(TAG, "", "[+ tags]", "Esc ![+ tags]"),
    KEY(COPY_ID, "", "[bytes by OSC 52]", "Up ![bytes by OSC 52]"),
    KEY(SORT_PREV, "", "[sorted by]", "> Up ![sorted by] " HOME_ROW),
    KEY(SORT_NEXT, "", "[sorted by]", "< Up ![sorted by] " HOME_ROW),
    KEY(SORT_INVERT, "", "[the other way round]", "I Up ![sorted by] " HOME_ROW),
    KEY(SORT_MENU, "", "[> sort by]", "Esc ![+ command]"),
    KEY(FORGET, "G [> x gone]", "![x gone]", HOME_ROW),
};

const struct key_group keys_list = {
    .name = "list",
    .h = 24,
    .w = 80,
    .setup = DEMO("a --copies 7")
             DEMO("ask1 --ask yes --prompt tour")
             DEMO("ask2 --ask yes --prompt tour")
             "$C new --tool demo --name gone -q && $C kill gone --yes\n",
    .begin = "[> . a-1] [? ask1] [2 ask you] G [> x gone] gg [> . a-1]",
    .cases = cases,
    .n = N(cases),
};

/* The small panes beside the output of a wide screen. */
#define DETAILS_PANE "Tab Tab [= details: one]"
#define LIST_AGAIN "1 [= 1 sandboxes]"

static const struct key_case wide[] = {
    KEY(NEXT_PANE, "2 [= 2 output]", "[= details: one]", LIST_AGAIN),
    KEY(PREV_PANE, "", "[= 5 events]", LIST_AGAIN),
    KEY(PANE_EVENTS, "", "[= 5 events]", LIST_AGAIN),
    KEY(DETAILS, DETAILS_PANE, "[+ details]", "Esc ![+ details] " LIST_AGAIN),
    KEY(DOWN, DETAILS_PANE " [template  demo] [id        i]", "![id        i]", "Up [id        i] " LIST_AGAIN),
    KEY(KILL, DETAILS_PANE, "[kill this sandbox?]", "Esc ![kill this] " LIST_AGAIN),
    KEY(UP, "5 [= 5 events]", "[scrolled back]", "G ![scrolled back] " LIST_AGAIN),
    KEY(BOTTOM, "5 [= 5 events] k [scrolled back]", "![scrolled back]", LIST_AGAIN),
    KEY(ZOOM, "5 [= 5 events]", "![1 sandboxes]", "f [1 sandboxes] " LIST_AGAIN),
    KEY(USAGE_LONGER, DETAILS_PANE " Tab Tab [= 4 usage]", "[month =]", "< [week =] " LIST_AGAIN),
    KEY(BUILD_NEW, DETAILS_PANE " Tab [= 3 builds]", "[+ new build]", "Esc ![+ new build] " LIST_AGAIN),
    KEY(BUILD_USE, DETAILS_PANE " Tab [= 3 builds] [>. base]", "[+ new sandbox]",
        "Esc ![+ new sandbox] " LIST_AGAIN),
};

const struct key_group keys_wide = {
    .name = "wide",
    .h = 40,
    .w = 120,
    .setup = DEMO("one")
             DEMO("box --copies 6"),
    .begin = "[> . one] [= 1 sandboxes] [5 events]",
    .cases = wide,
    .n = N(wide),
};
