/* Keys of the output and of a selection in it: a transcript that is longer than the pane, with
 * a long line, a block of code and what a command put out. */
#include "keyrun.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))
#define END "G [follow ON]"

static const struct key_case cases[] = {
    /* what moves everywhere, here */
    KEY(UP, "", "![follow ON]", END),
    KEY(DOWN, "Up Up [line 32/34]", "[line 33/34]", END),
    KEY(TOP, "", "[line 1/34]", END),
    KEY(BOTTOM, "gg [line 1/34]", "[follow ON]", ""),
    KEY(HALF_UP, "", "![follow ON]", END),
    KEY(HALF_DOWN, "gg [line 1/34]", "![line 1/34]", END),
    KEY(PAGE_UP, "", "![follow ON]", END),
    KEY(PAGE_DOWN, "gg [line 1/34]", "![line 1/34]", END),
    KEY(SEARCH, "", "[Enter find]", "Esc ![Enter find]"),
    KEY(SEARCH_PREV, "/ 'some code' Enter [/some code  line 24]", "![/some code  line 24]",
        "Esc ![/some code] " END),
    KEY(SEARCH_NEXT, "/ 'some code' Enter [/some code  line 24] N ![/some code  line 24]",
        "[/some code  line 24]", "Esc ![/some code] " END),
    KEY(FOLLOW, "", "![follow ON]", "F [follow ON]"),
    KEY(WRAP, "Up PgUp [END-OF-LONG]", "![END-OF-LONG]", "w " END),
    KEY(TIMES, "", "!\"] you\"", "t \"] you\""),
    KEY(RAW, "", "[output (raw)]", "V [follow ON]"),
    KEY(FOLD, "", "![lines folded]", "Enter [lines folded] " END),
    KEY(UNFOLD_ALL, "", "![lines folded]", "zM [lines folded] " END),
    KEY(FOLD_ALL, "zR ![lines folded]", "[lines folded]", END),
    KEY(NEXT_MSG, "gg [line 1/34]", "![line 1/34]", END),
    KEY(PREV_MSG, "", "![follow ON]", END),
    KEY(PAN_RIGHT, "w ![follow OFF] ~", "[column 9]", "h ![column] w " END),
    KEY(PAN_LEFT, "w l [column 9]", "![column 9]", "w " END),
    KEY(SELECT, "", "[SELECT  1 line]", "Esc ![SELECT] " END),
    KEY(COPY_CODE, "", "[bytes by OSC 52]", "Up ![by OSC 52] " END),
    KEY(COPY_MESSAGE, "", "[bytes by OSC 52]", "Up ![by OSC 52] " END),
    KEY(COPY_ALL, "", "[bytes by OSC 52]", "Up ![by OSC 52] " END),
    KEY(COPY_LINES, "v [SELECT  1 line]", "[bytes by OSC 52]", "Up ![by OSC 52] " END),
    KEY(SELECT_END, "v [SELECT  1 line]", "![SELECT]", END),
    KEY(EXPORT, "", "{ls out-*.md}", "{rm out-*.md}"),
};

const struct key_group keys_output = {
    .name = "output",
    .h = 24,
    .w = 80,
    .setup = "long=$(printf 'word%.0s ' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)\n"
             DEMO("out")
             "$C send out --wait \"[[say:begin $long END-OF-LONG]]\"\n"
             "$C send out --wait '[[say:some code:\n```sh\nls -l\n```\nthat was it]]'\n"
             "$C send out --wait 'run seq 30'\n",
    .begin = "[> . out] 2 [= 2 output] [lines folded] f ![AGENT    STATE]",
    .cases = cases,
    .n = N(cases),
};

/* --- a recorded run ------------------------------------------------------------------ */

static const char *const replay_args[] = {"replay", "--tool", "codex", "run.jsonl", NULL};

static const struct key_case replay[] = {
    KEY(PLAY, "", "![paused]", "Space [paused]"),
    KEY(FASTER, "", "[0.50x]", "- [0.25x]"),
    KEY(SLOWER, "+ [0.50x]", "[0.25x]", ""),
    KEY(SKIP_ON, "Home Left [0:00 of 0:03]", "[0:03 of 0:03]", "Left [0:00 of 0:03]"),
    KEY(SKIP_BACK, "Right [0:03 of 0:03]", "[0:00 of 0:03]", ""),
};

const struct key_group keys_replay = {
    .name = "replay",
    .h = 24,
    .w = 80,
    .setup = "cp \"$SRC\"/tests/fixtures/recordings/codex-tool.jsonl run.jsonl\n",
    .args = replay_args,
    .begin = "[REPLAY of run.jsonl] Space [paused] - [0.50x] - [0.25x]",
    .cases = replay,
    .n = N(replay),
};
