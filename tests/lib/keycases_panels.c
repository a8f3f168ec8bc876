/* Keys of the panels: wall, usage, builds and their log. */
#include "keyrun.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))

/* --- wall: nine tiles ------------------------------------------------------------------ */

#define TILE_KEY(k) KEY_NTH(TILE, k, "", "[= " #k " . a-" #k "]", "1 [= 1 . a-1]")

static const struct key_case wall[] = {
    KEY_NTH(TILE, 1, "9 [= 9 . a-9]", "[= 1 . a-1]", ""),
    TILE_KEY(2), TILE_KEY(3), TILE_KEY(4), TILE_KEY(5), TILE_KEY(6), TILE_KEY(7), TILE_KEY(8),
    TILE_KEY(9),
    KEY(TILE_RIGHT, "", "[= 2 . a-2]", "1 [= 1 . a-1]"),
    KEY(TILE_LEFT, "2 [= 2 . a-2]", "[= 1 . a-1]", ""),
    KEY(DOWN, "", "[= 4 . a-4]", "1 [= 1 . a-1]"),
    KEY(UP, "4 [= 4 . a-4]", "[= 1 . a-1]", ""),
    KEY(BOTTOM, "", "[= 9 . a-9]", "1 [= 1 . a-1]"),
    KEY(TOP, "G [= 9 . a-9]", "[= 1 . a-1]", ""),
    KEY(MARK, "", "[+1 . a-1]", "U ![+1 . a-1] 1 [= 1 . a-1]"),
    KEY(OPEN, "", "[= 2 output: a-1]", "q [= wall]"),
    KEY(KILL, "", "[kill this sandbox?]", "Esc ![kill this]"),
};

const struct key_group keys_wall = {
    .name = "wall",
    .h = 60,
    .w = 200,
    .setup = DEMO("a --copies 9"),
    .begin = "[> . a-1] [. a-9] W [= wall] 1 [= 1 . a-1]",
    .cases = wall,
    .n = N(wall),
};

/* --- usage ------------------------------------------------------------------------------- */

static const struct key_case usage[] = {
    KEY(USAGE_LONGER, "", "\"[month]\"", "< \"[week]\""),
    KEY(USAGE_SHORTER, "", "\"[day]\"", "> \"[week]\""),
    KEY(USAGE_NEXT, "[by project]", "![by project]", "h [by project]"),
    KEY(USAGE_PREV, "[by project]", "[by sandbox]", "l ![by sandbox]"),
    KEY(USAGE_PAUSE, "", "[nothing runs idle here]", "Up ![nothing runs]"),
    KEY(USAGE_HIDE, "", "[nothing runs idle here]", "Up ![nothing runs]"),
    KEY(USAGE_EXPORT, "", "{ls cc-tui-usage-*.csv}", "{rm cc-tui-usage-*.csv}"),
};

const struct key_group keys_usage = {
    .name = "usage",
    .h = 24,
    .w = 80,
    .setup = DEMO("one"),
    .begin = "[> . one] 4 [= 4 usage] [by project]",
    .cases = usage,
    .n = N(usage),
};

/* --- builds -------------------------------------------------------------------------------- */

#define FOUND "Tab [= build log: good] / ^U 'RUN step' Enter [RUN step  follow] [RUN step 3]"

static const struct key_case builds[] = {
    KEY(BUILD_USE, "", "[+ new sandbox]", "Esc ![+ new sandbox]"),
    KEY(BUILD_NEW, "", "[+ new build]", "Esc ![+ new build]"),
    KEY(BUILD_EXPORT, "", "{ls cc-tui-build-good-*.log}", "{rm cc-tui-build-good-*.log} ~"),
    KEY(BUILD_DELETE, "", "[delete this template?]", "Esc ![delete this]"),
    KEY(KILL, "", "[delete this template?]", "Esc ![delete this]"),
    KEY(BUILD_FOLLOW, "Tab [= build log: good] k [follow off]", "[follow ON]", "1 3 [= 3 builds]"),
    KEY(BUILD_LEVEL, "Tab [= build log: good]", "[WARN+]", "L ![WARN+] Tab [= 3 builds]"),
    KEY(SEARCH, "Tab [= build log: good]", "[find:]", "Esc ![find:] Tab [= 3 builds]"),
    KEY(BUILD_FIND_PREV, FOUND, "![RUN step 3]", "Tab [= 3 builds]"),
    KEY(BUILD_FIND_NEXT, FOUND " N ![RUN step 3]", "[RUN step 3]", "Tab [= 3 builds]"),
    KEY(BUILD_LOG_EXPORT, "Tab [= build log: good]", "{ls cc-tui-build-good-*.log}", "{rm cc-tui-build-good-*.log} ~ Tab [= 3 builds]"),
    KEY(BUILD_AGAIN, "", "[5 total]", "[0 running]"),
    KEY(BUILD_CANCEL, "R [1 running]", "[x good]", "[0 running]"),
};

const struct key_group keys_builds = {
    .name = "builds",
    .h = 24,
    .w = 80,
    .faultd = "{\"reset\":true,\"sandboxes\":0,\"paused\":0,\"templates\":3,"
              "\"build\":{\"steps\":3,\"step_ms\":500,\"lines\":12}}",
    .setup = "printf 'FROM e2bdev/base\\nRUN echo one\\nRUN echo two\\n' > good\n"
             "$C build good --name good --wait\n",
    .begin = "[no sandboxes] 3 [= 3 builds] [>. good] [build log: good]",
    .cases = builds,
    .n = N(builds),
};
