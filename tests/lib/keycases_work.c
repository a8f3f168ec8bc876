/* Keys of what is in a sandbox: its processes, also of one that is not ours, its files and what
 * was changed in it; a pair at work. */
#include "foreignbed.h"
#include "keyrun.h"
#include "rawhttp.h"

#include <cct/util/str.h>
#include <unistd.h>

#define N(v) (sizeof(v) / sizeof((v)[0]))

/* --- processes --------------------------------------------------------------------------- */

#define ADOPT_BOX "A [adopt this sandbox?]"
#define ALONE ADOPT_BOX " Tab \"[ ] with\" Enter ![adopt this] ![not made by cc] A [y  give it back]"

static const struct key_case procs[] = {
    KEY(PROC_END, "", "[end this process?]", "Esc ![end this]"),
    KEY(ADOPT, "", "[adopt this sandbox?]", "Esc ![adopt this]"),
    KEY(LINE_TAB, ADOPT_BOX " \"[x] with\"", "\"[ ] with\"", "Esc ![adopt this]"),
    KEY(TAKE_LINE, ADOPT_BOX " Tab \"[ ] with\"", "![adopt this]",
        "![not made by cc] A [y  give it back] ~ y ![give it back] [not made by cc] [= 2 processes:]"),
    KEY(YES, ALONE, "![give it back] [not made by cc]", "[= 2 processes:]"),
    KEY(KEEP_PROCESS, ALONE " [p  keep this]", "[adopted at]", "A [y  give it back] ~ y ![give it back] [not made by cc] [= 2 processes:]"),
    KEY(PROC_WATCH, "", "[live only, nothing from before]", "Esc [= 2 processes:]"),
    KEY(END_AT_ONCE, "t [9  SIGKILL]", "[SIGKILL to process]", "~"),
};

static void foreign_box(int control, int traffic, const char *key)
{
    struct localbed l = {.control = control, .traffic = traffic};
    struct foreign_box x = {.port = traffic};
    struct rawhttp_box raw;
    int fd = rawhttp_dial(control);
    str_copy(l.key, sizeof(l.key), key);
    if (rawhttp_create(&l, fd, "{\"templateID\":\"base\",\"timeout\":600}", &raw) != 201)
        _exit(1);
    close(fd);
    str_copy(x.id, sizeof(x.id), raw.id);
    str_copy(x.token, sizeof(x.token), raw.token);
    foreign_start(&x, FOREIGN_STDIN, "while read a; do echo got-$a; done");
    foreign_start(&x, FOREIGN_NO_INPUT, "while :; do echo tick; sleep 1; done");
}

const struct key_group keys_procs = {
    .name = "procs",
    .h = 24,
    .w = 80,
    .setup = "$C local start\n",
    .prepare = foreign_box,
    .begin = "[not made by cc] 2 [= 2 processes:] [while read a]",
    .cases = procs,
    .n = N(procs),
};

/* --- files and changes ----------------------------------------------------------------------- */

static const struct key_case files[] = {
    KEY(FILE_OPEN, "", "[/home/user/sub =]", "h [/home/user =]"),
    KEY(FILE_OPEN, "G ~", "[= b.txt]", "h [= files: own]"),
    KEY(FILE_UP, "", "![/home/user =]", "Enter [/home/user =]"),
    KEY(FILE_GET, "G ~", "[+ download]", "Esc ![+ download]"),
    KEY(FILE_PUT, "", "[+ upload]", "Esc ![+ upload]"),
    KEY(FILE_MKDIR, "", "[+ new folder]", "Esc ![+ new folder]"),
    KEY(FILE_RENAME, "G ~", "[+ rename or move]", "Esc ![+ rename]"),
    KEY(FILE_DELETE, "G ~", "[delete in the sandbox?]", "Esc ![delete in]"),
    KEY(FILE_DOTS, "", "[.cc-tui/]", ". ![.cc-tui/]"),
    KEY(FILE_AGAIN, "{$C files put own late.txt}", "[late.txt]", "{$C files rm own late.txt --yes} r ![late.txt]"),
    KEY(FILE_STOP, "", "[nothing is under way]", "Up ![nothing is]"),
    KEY(TAKE_LINE, "m [+ new folder] 'made' [made]", "[made/]", "{$C files rm own made --yes} r ![made/]"),
};

const struct key_group keys_files = {
    .name = "files",
    .h = 24,
    .w = 80,
    .setup = "echo hello > a.txt; seq 30 > b.txt; echo late > late.txt\n"
             DEMO("own")
             "$C files put own a.txt; $C files put own b.txt; $C files mkdir own sub\n",
    .begin = "[> . own] O [= files: own] [b.txt]",
    .cases = files,
    .n = N(files),
};

static const struct key_case changes[] = {
    KEY(CHANGE_OPEN, "", "[= a.txt]", "h [= changes: own]"),
    KEY(CHANGE_BACK, "Enter [= a.txt]", "[= changes: own]", ""),
    KEY(CHANGES_AGAIN, "{$C files put own late.txt}", "[late.txt]", "{$C files rm own late.txt --yes} r ![late.txt]"),
    KEY(DOWN, "", "[- b.txt]", "gg [- a.txt]"),
};

const struct key_group keys_changes = {
    .name = "changes",
    .h = 24,
    .w = 80,
    .setup = "echo hello > a.txt; seq 30 > b.txt; echo late > late.txt\n"
             DEMO("own")
             "$C files put own a.txt; $C files put own b.txt\n",
    .begin = "[> . own] v [= changes: own] [b.txt]",
    .cases = changes,
    .n = N(changes),
};

/* --- a pair ------------------------------------------------------------------------------------ */

static const struct key_case pair[] = {
    KEY(PAIR_STOP, "g2 [s stop]", "[running  stopped]", ""),
    KEY(PAIR_TASK, "g2 [n a new task]", "[+ a new task for this pair]", "Esc ![+ a new task]"),
    KEY(PAIR_RESUME, "g2 [r resume]", "[running  passed]", "~"),
    KEY(PAIR_REJECT, "g2 [x reject]", "[passed in round 2 of 5]", "~"),
    KEY(PAIR_ACCEPT, "j [> * p2] g2 [y accept]", "[> . p2]", ""),
};

const struct key_group keys_pair = {
    .name = "pair",
    .h = 24,
    .w = 80,
    .setup = "echo 'You design. [[turns:toolsleep,plain]]' > d; echo 'You check. [[turns:pass]]' > c\n"
             "for n in p1 p2; do $C pair --designer demo --checker demo --name $n --template demo "
             "--designer-prompt d --checker-prompt c --prompt 'write it down'; done\n",
    .begin = "[> * p1] [* p2]",
    .cases = pair,
    .n = N(pair),
};

/* --- a service that can be told to fail ----------------------------------------------------- */

static const struct key_case cloud[] = {
    KEY(COPY_URL, "", "[has no address of its own]", "Up ![has no address]"),
    KEY(CALL_OFF, "K [Tab  other scope] Tab [y  kill 4] ~ y [u  call it off]", "![call it off]", "Esc ![+ kill all:]"),
    KEY(RETRY, "* [4 marked] D [kill the marked sandboxes?] [y  kill 4] ~ y [R  try again]",
        "[4 of 4 gone]", "Esc ![killing the marked]"),
};

const struct key_group keys_cloud = {
    .name = "cloud",
    .h = 24,
    .w = 80,
    .faultd = "{\"reset\":true,\"sandboxes\":4,\"paused\":0,"
              "\"rules\":[{\"method\":\"DELETE\",\"times\":1,\"status\":403}]}",
    .begin = "[not made by cc] ~",
    .cases = cloud,
    .n = N(cloud),
};
