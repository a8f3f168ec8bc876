/* Keys of boxes and of lines that are asked for. */
#include "keyrun.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))
#define RINGS "gk [PROVIDER]"
#define RINGS_OVER "Esc ![PROVIDER]"
#define PROJECTS "gp [+ projects]"
#define PROJECTS_OVER "Esc ![+ projects]"
/* Its k-th question, when that is known. */
#define ASKED(k) "j j [> ? nine] [Which one, " #k "?] a [asks you -] [in your own words]"
#define VARS "gp [+ projects] v [+ variables of default]"
#define VARS_OVER "Esc ![+ variables] Esc ![+ projects]"

/* An agent that asks with nine choices, again and again, and says what the answer was. */
#define NINE                                                                                    \
    "cat > nine <<'END'\n"                                                                      \
    "i=0 o=\n"                                                                                  \
    "for k in 1 2 3 4 5 6 7 8 9; do o=\"$o,{\\\"label\\\":\\\"c$k\\\",\\\"description\\\":\\\"\\\"}\"; done\n"  \
    "while :; do\n"                                                                             \
    "    i=$((i + 1))\n"                                                                        \
    "    printf '{\"type\":\"control_request\",\"request_id\":\"r%s\",\"request\":{\"subtype\":'\\\n"       \
    "'\"can_use_tool\",\"tool_name\":\"AskUserQuestion\",\"tool_use_id\":\"t%s\",\"input\":{'\\\n"       \
    "'\"questions\":[{\"question\":\"Which one, %s?\",\"header\":\"One\",\"multiSelect\":false,'\\\n"     \
    "'\"options\":[%s]}]}}}\\n' $i $i $i \"${o#,}\"\n"                                           \
    "    while read -r line; do\n"                                                              \
    "        case $line in *control_response*) break ;; esac\n"                                \
    "    done\n"                                                                                \
    "    got=$(printf %s \"$line\" | sed -n 's/.*\"\\(c[0-9]\\)\".*/\\1/p')\n"                       \
    "    printf '{\"type\":\"assistant\",\"message\":{\"id\":\"m%s\",\"role\":\"assistant\",'\\\n"       \
    "'\"content\":[{\"type\":\"text\",\"text\":\"got %s\"}]}}\\n' $i \"$got\"\n"                     \
    "done\nEND\n"                                                                              \
    "cat > own/tools.conf <<END\n"                                                              \
    "[tool nine]\nadapter = claude\ntemplate = demo\nneeds = none\nask = yes\n"                  \
    "command = sh -c 'eval \"\\$(echo $(base64 -w 0 < nine) | base64 -d)\"'\n"                    \
    "ask_command = sh -c 'eval \"\\$(echo $(base64 -w 0 < nine) | base64 -d)\"'\nEND\n"           \
    "chmod 600 own/tools.conf\n"

static const struct key_case cases[] = {
    KEY(TAKE_LINE, "/ 'two' [filter: two]", "![keep the filter]", "Esc ![filter: two] gg [> . one]"),
    KEY(LEAVE_LINE, "/ 'two' [filter: two]", "![filter: two]", "gg [> . one]"),
    KEY(LINE_DOWN, "/ [filter:]", "[> . two]", "Esc ![filter:] gg [> . one]"),
    KEY(LINE_UP, "/ [filter:] Down [> . two]", "[> . one]", "Esc ![filter:]"),
    KEY(LINE_PGDN, "/ [filter:]", "[> . four]", "Esc ![filter:] gg [> . one]"),
    KEY(LINE_PGUP, "/ [filter:] PgDn [> . four]", "[> . one]", "Esc ![filter:]"),
    KEY(LINE_TAB, ": [+ command] 'search-a' [> search-a]", "[> search-all]", "Esc ![+ command]"),
    KEY(TAKE_LINE, "R [+ rename] 'x' [onex]", "[> . onex]", "R [+ rename] Backspace Enter [> . one ]"),
    KEY(TAKE_LINE, "t [+ time left] '33m' [33m]", "[setting the time left to 33m]",
        "Up ![setting the time]"),
    KEY(CLOSE, PROJECTS, "![+ projects]", ""),
    KEY(CHOOSE, PROJECTS, "[the project is default]", "Up ![the project is]"),
    KEY(NO, "D [kill this sandbox?]", "![kill this sandbox?]", ""),
    KEY(CLOSE, "D [kill this sandbox?]", "![kill this sandbox?]", ""),
    KEY(YES, "G [> . four] D [kill this sandbox?] [y  kill it]", "[x four]", "gg [> . one]"),
    KEY(OTHER_SCOPE, "K [kill ALL sandboxes of default?] [y  kill 3]", "[kill ALL sandboxes of this account?]",
        "Esc ![kill ALL]"),
    KEY_NTH(ANSWER_CHOICE, 1, ASKED(1), "[got c1]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 2, ASKED(2), "[got c2]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 3, ASKED(3), "[got c3]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 4, ASKED(4), "[got c4]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 5, ASKED(5), "[got c5]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 6, ASKED(6), "[got c6]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 7, ASKED(7), "[got c7]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 8, ASKED(8), "[got c8]", "gg [> . one]"),
    KEY_NTH(ANSWER_CHOICE, 9, ASKED(9), "[got c9]", "gg [> . one]"),
    KEY(ANSWER_WORDS, ASKED(10), "[answer with this]", "Esc [in your own] Esc ![asks you -] gg [> . one]"),
    KEY(CHOOSE, ASKED(10) " j j ~", "![asks you -]", "gg [> . one]"),
    KEY(CLOSE, ASKED(11), "![asks you -]", "gg [> . one]"),
    KEY(PROJECT_NEW, PROJECTS, "[new project:]", "Esc ![new project:] " PROJECTS_OVER),
    KEY(PROJECT_RENAME, PROJECTS, "[new name:]", "Esc ![new name:] " PROJECTS_OVER),
    KEY(PROJECT_VARS, PROJECTS, "[+ variables of default]", VARS_OVER),
    KEY(VAR_ADD, VARS, "[name of the variable:]", "Esc ![name of the] " VARS_OVER),
    KEY(VAR_SECRET, VARS, "[name of the secret variable:]", "Esc ![name of the] " VARS_OVER),
    KEY(VAR_REMOVE, VARS " [COLOUR]", "[y  remove COLOUR]", "Esc ![y  remove] " VARS_OVER),
    KEY(CHOOSE, VARS " [COLOUR]", "[COLOUR = red]", "Esc ![COLOUR = red] " VARS_OVER),
    KEY(KEY_ADD, RINGS, "[key of e2b for you:]", "Esc ![key of e2b] " RINGS_OVER),
    KEY(KEY_LEVEL, RINGS " [for you]", "[for the project default]", "Tab ![for the project] " RINGS_OVER),
    KEY(KEY_REMOVE, RINGS, "[no key of it is stored for you]", RINGS_OVER),
    KEY(KEY_TRY, RINGS " j ~", "[asking the service]", RINGS_OVER),
    KEY(VAULT_LOCK, RINGS " [l lock]", "[u open the vault]", RINGS_OVER),
    KEY(VAULT_OPEN, RINGS " [u open the vault]", "[passphrase of the vault:]",
        "Esc ![passphrase of] " RINGS_OVER),
};

const struct key_group keys_boxes = {
    .name = "boxes",
    .h = 24,
    .w = 80,
    .setup = DEMO("one")
             DEMO("two")
             NINE "$C new --tool nine --name nine -q\n"
             DEMO("four")
             "$C projects env default COLOUR=red\n"
             "printf 'open sesame' | $C keys protect passphrase --passphrase-fd 0\n",
    .begin = "[the vault is locked] 'open sesame' Enter [the vault is open] [> . one] [. two] [? nine] [. four]",
    .cases = cases,
    .n = N(cases),
};

/* Boxes that are longer than the screen. */
static const struct key_case low[] = {
    KEY(BOX_DOWN, "d [+ details] [| name]", "![| name]", "Esc ![+ details]"),
    KEY(BOX_UP, "d [+ details] j ![| name]", "[| name]", "Esc ![+ details]"),
    KEY(BOX_PGDN, "d [+ details] [| name]", "![| name]", "Esc ![+ details]"),
    KEY(BOX_PGUP, "d [+ details] j ![| name]", "[| name]", "Esc ![+ details]"),
};

const struct key_group keys_low = {
    .name = "low",
    .h = 11,
    .w = 80,
    .setup = DEMO("one"),
    .begin = "[> . one]",
    .cases = low,
    .n = N(low),
};
