/* Keys of the chat input and of every line of text: one agent that listens, one that works with
 * a message behind it, one that is gone with a message that never came to it. */
#include "keyrun.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))
#define TYPED(text) "'" text "' [in> " text "]"
#define WORKS "Esc [NAV] {$C send busy 'run sleep 60'} j [> * busy] i [INPUT]"
#define RESTS "[> . busy] Esc [NAV] gg [> . in] i [INPUT]"
#define EMPTY "^K ^U [in>]" /* of the line, and whatever it held */

static const struct key_case cases[] = {
    KEY(SEND, TYPED("help me out"), "[you     help me out]", ""),
    KEY(LEAVE, "", "[NAV]", "i [INPUT]"),
    KEY(CLEAR, TYPED("gone soon"), "![gone soon]", ""),
    KEY(COMPLETE, TYPED("see @notes-of"), "[@notes-of-today.txt]", "^C ![@notes-of]"),
    KEY(EDIT_MESSAGE, TYPED("by hand"), "[in> edited]", "^C ![in> edited]"),
    KEY(HIST_PREV, "", "[in> help me out]", "^C ![in> help me out]"),
    KEY(HIST_NEXT, "Up [in> help me out]", "![in> help me out]", ""),
    KEY(HIST_FIND, TYPED("me o"), "[in> help me out]", "^C ![in> help me out]"),
    /* its answers have come: what still did would be more than a page */
    KEY(INPUT_PGUP, "[> . in] ~", "![follow ON]", "PgDn PgDn PgDn [follow ON]"),
    KEY(INPUT_PGDN, "[> . in] ~ PgUp ![follow ON]", "[follow ON]", ""),
    KEY(INPUT_BARE, "", "![AGENT    STATE]", "Alt-l [AGENT    STATE]"),
    KEY(INPUT_COMMAND, "", "[+ command]", "Esc ![+ command]"),
    KEY(INPUT_ASKING, "", "[> ? ask]", "Esc [NAV] gg [> . in] i [INPUT]"),

    /* lines of text; what the cursor did shows where the next character comes */
    KEY_PROBED(CHAR_LEFT, TYPED("abc def"), "'X'", "[abc deXf]", EMPTY),
    KEY_PROBED(CHAR_RIGHT, TYPED("abc def") " Home ~", "'X'", "[aXbc def]", EMPTY),
    KEY_PROBED(WORD_LEFT, TYPED("abc def"), "'X'", "[abc Xdef]", EMPTY),
    KEY_PROBED(WORD_RIGHT, TYPED("abc def") " Home ~", "'X'", "[abcX def]", EMPTY),
    KEY_PROBED(LINE_BEGIN, TYPED("abc def"), "'X'", "[in> Xabc def]", EMPTY),
    KEY_PROBED(LINE_END, TYPED("abc def") " Home ~", "'X'", "[abc defX]", EMPTY),
    KEY_PROBED(ERASE, TYPED("abc def"), "'X'", "[abc deX]", EMPTY),
    KEY_PROBED(ERASE_NEXT, TYPED("abc def") " Home ~", "'X'", "[in> Xbc def]", EMPTY),
    KEY_PROBED(CUT_WORD, TYPED("abc def"), "'X'", "[in> abc X]", EMPTY),
    KEY_PROBED(CUT_NEXT_WORD, TYPED("abc def") " Home ~", "'X'", "[in> X def]", EMPTY),
    KEY_PROBED(CUT_TO_BEGIN, TYPED("abc def") " Left ~", "'X'", "[in> Xf]", EMPTY),
    KEY(CUT_TO_END, TYPED("abc def") " Alt-b ~", "![abc def]", EMPTY),
    KEY_PROBED(PUT_BACK, TYPED("abc def") " Alt-Backspace [in> abc]", "'X'", "[in> abc defX]", EMPTY),
    KEY_PROBED(NEWLINE, TYPED("abc"), "'row two'", "\"    row two\"", "^C ![in> abc]"),
    KEY(UNFOLD_PASTE, "<1\n2\n3\n4\n5\n6\n7\n8\n9\n10> [pasted 10 lines]", "![pasted 10 lines]",
        "^C [in>]"),

    /* a message that waits, and one that never comes */
    KEY(SEND_NOW, WORKS " 'at once' [busy> at once]", "![> * busy]", RESTS),
    KEY(EDIT_QUEUED, WORKS " 'later on' Enter [1 queued]", "![1 queued] [busy> later on]",
        "^C ![busy> later] Esc [NAV] X " RESTS),
    KEY(CANCEL_QUEUED, WORKS " 'never at all' Enter [1 queued]", "![1 queued]", "Esc [NAV] X " RESTS),
    KEY(UNDO, WORKS " 'not this' Enter [1 queued] Esc [NAV]", "![1 queued]", "X " RESTS),
    KEY(RESEND, "Esc [NAV] G [> x lost] [sends it again] i [INPUT]", "[nothing can be sent to it]",
        "Esc [NAV] gg [> . in] i [INPUT]"),
};

const struct key_group keys_input = {
    .name = "input",
    .h = 24,
    .w = 80,
    .setup = "echo remember > notes-of-today.txt\n"
             DEMO("in")
             DEMO("busy")
             DEMO("ask --ask yes --prompt tour")
             DEMO("lost --prompt 'run sleep 60'"),
    .begin = "[> . in] [. busy] [? ask] [* lost] G [> * lost] i 'no way' Enter [1 queued] Esc [NAV] "
             "D [kill this sandbox?] ~ y [x lost] [sends it again] gg [> . in] i [INPUT]",
    .cases = cases,
    .n = N(cases),
};
