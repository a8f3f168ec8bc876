/* Keys that leave the screen: it is started from a shell, which is there afterwards. */
#include "keyrun.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))
#define AGAIN "'clear; $C' Enter [> . one] [local ok] ~"

static const struct key_case cases[] = {
    KEY(SUSPEND, "", "[Stopped]", "'fg' Enter [> . one]"),
    KEY(QUIT, "", "[still running]", AGAIN),
    KEY(BACK_TWICE, "^C [press ^C again]", "[still running]", AGAIN),
    KEY_THEN(SHELL, "", "![AGENT    STATE] 'echo left$((40+2))' Enter", "[left42]", "^] [goes on as process] s ![AGENT    STATE] 'clear' Enter ![left42] [$] ~ ^D [> . one]"),
};

const struct key_group keys_leave = {
    .name = "leave",
    .h = 24,
    .w = 80,
    .setup = DEMO("one"),
    .begin = "[shell>] '$C' Enter [> . one]",
    .cases = cases,
    .n = N(cases),
    .shell = true,
};
