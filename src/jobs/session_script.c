/* The session folder's text forms: the scripts we run beside it, the names we give in
 * it, and what they answer. Pure, no I/O. */
#include "session_script.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- scripts: POSIX sh, names come as arguments and never into the text ---------- */

/* `exit` is read before the size and the ends of runs after it: then the size of an
 * ended session is final, and every border below the size is known. */
const char session_probe_script[] =
    "from=${2:-0} len=${3:-0}\n"
    "echo \"home $HOME\"\n"
    "cd \"$HOME/" SESSION_ROOT "/$1\" 2>/dev/null || exit 0\n"
    "echo found\n"
    "k=$(readlink " SESSION_KEEPER " 2>/dev/null)\n"
    "while [ -n \"$k\" ] && h=$(readlink \"" SESSION_HEIRS "/$k\" 2>/dev/null); do k=$h; done\n"
    "if [ -n \"$k\" ]; then\n"
    "  echo started\n"
    "  if { read -r st <\"/proc/${k%-*}/stat\"; } 2>/dev/null; then\n"
    "    st=${st##*\\)}; set -f; set -- $st; set +f\n"
    "    [ \"${20}\" = \"${k#*-}\" ] && [ \"$1\" != Z ] && [ \"$1\" != X ] && echo alive\n"
    "  fi\n"
    "fi\n"
    "[ -e " SESSION_CLI " ] && echo cli\n"
    "[ -e " SESSION_EXIT " ] && echo \"exit $(cat " SESSION_EXIT ")\"\n"
    "[ -e " SESSION_EPOCH " ] && echo \"epoch $(cat " SESSION_EPOCH ")\"\n"
    "[ -e " SESSION_OUT_LOG " ] && echo \"size $(wc -c <" SESSION_OUT_LOG ")\"\n"
    "[ $len -gt 0 ] && echo \"sum $(tail -c +$((from + 1)) " SESSION_OUT_LOG
    " | head -c $len | cksum)\"\n"
    "[ -e " SESSION_ERROR " ] && echo \"error $(head -n 1 " SESSION_ERROR ")\"\n"
    "[ -e " SESSION_DISKFULL " ] && echo diskfull\n"
    "sed -n 's/^out /cut /p' " SESSION_CUT " 2>/dev/null\n"
    "[ -e " SESSION_RUNS " ] && echo \"runs $(wc -c <" SESSION_RUNS ")\"\n"
    "echo \"starts $(grep -c '^run [0-9]* start ' " SESSION_RUNS " 2>/dev/null)\"\n"
    "l=$(grep '^run [0-9]* start ' " SESSION_RUNS " 2>/dev/null | tail -n 1)\n"
    "echo \"$l\"\n"
    "grep -E '^run [0-9]+ (exit|interrupt) ' " SESSION_RUNS " 2>/dev/null | tail -n 300\n"
    "e=${l##*err-offset } e=${e%% *}\n"
    "[ -s " SESSION_MODEL " ] && echo \"model $(head -n 1 " SESSION_MODEL ")\"\n"
    "echo err\n"
    "tail -c +$((${e:-0} + 1)) " SESSION_ERR_LOG " 2>/dev/null | tail -c 4096\n"
    "exit 0\n";

const char session_sum_script[] = "tail -c +$(($2 + 1)) \"$1\" | head -c $3 | cksum\n";

const char session_prepare_script[] =
    "umask 077\n"
    "s=$1\n"
    "shift\n"
    "for c; do\n"
    "  command -v \"$c\" >/dev/null 2>&1 || { printf '%s' \"$c\" >&2; exit 127; }\n"
    "done\n"
    "mkdir -p \"$HOME/" SESSION_ROOT "/$s/" SESSION_INBOX "\" || exit 1\n"
    "printf '%s\\n' \"$HOME\"\n";

const char session_install_script[] = "cd \"$1\" || exit 1\n"
                                      "shift\n"
                                      "rm -f " SESSION_ERROR "\n"
                                      "for f; do mv -f \".up-$f\" \"$f\" || exit 1; done\n";

/* What lies there already is the template's own and stays in front; it is put aside first, so
 * that doing it once more changes nothing. */
const char session_place_script[] =
    "cd \"$1\" || exit 1\n"
    "if [ -n \"$2\" ] && [ -e " SESSION_SKILLS " ]; then\n"
    "  command -v tar >/dev/null 2>&1 || { echo 'the template has no tar' >&2; exit 1; }\n"
    "  mkdir -p \"$HOME/$2\" || exit 1\n"
    "  tar -xof " SESSION_SKILLS " -C \"$HOME/$2\" || exit 1\n"
    "fi\n"
    "rm -f " SESSION_SKILLS "\n"
    "[ -n \"$3\" ] || exit 0\n"
    "case $3 in */*) mkdir -p \"$HOME/${3%/*}\" || exit 1 ;; esac\n"
    "if [ ! -e .prompt-below ]; then\n"
    "  { [ ! -s \"$HOME/$3\" ] || { cat \"$HOME/$3\" && echo; }; } >.prompt-below-new || exit 1\n"
    "  mv -f .prompt-below-new .prompt-below || exit 1\n"
    "fi\n"
    "cat .prompt-below " SESSION_SYSTEM_PROMPT " >\"$HOME/$3\"\n";

/* The key is in the environment of this process and of git alone, and the helper that hands
 * it to git is named for github.com: git asks it for no other place, a redirect included.
 * Helpers of the template are left out there, so that none of them keeps the key. Nothing
 * asks at a terminal. The folder gets its name when it is whole, and says then whose it is:
 * what was begun and left is thrown away, what was done is not done again. */
const char session_checkout_script[] =
    "command -v git >/dev/null 2>&1 || exit 127\n"
    "cd \"$HOME\" || exit 1\n"
    "export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS= SSH_ASKPASS= LC_ALL=C\n"
    "export GIT_SSH_COMMAND='ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new'\n"
    "u=$1 b=$2 d=$3 of=$4\n"
    "done_already() { [ \"$(cat \"$d/.git/cc-tui\" 2>/dev/null)\" = \"$of\" ]; }\n"
    "done_already && exit 0\n"
    "if [ -n \"$(ls -A \"$d\" 2>/dev/null)\" ]; then\n"
    "  echo \"fatal: destination path '$d' already exists and is not an empty directory.\" >&2\n"
    "  exit 128\n"
    "fi\n"
    "rm -rf .cc-tui/\"$of\"/clone-*\n"
    "t=.cc-tui/$of/clone-$$\n"
    "set -- -c url.https://github.com/.insteadOf=git@github.com: "
    "-c url.https://github.com/.insteadOf=ssh://git@github.com/\n"
    "if [ -n \"$" SESSION_GIT_KEY "\" ]; then\n"
    "  set -- \"$@\" -c credential.https://github.com.helper= "
    "-c credential.https://github.com.helper='!f() { [ \"$1\" = get ] || exit 0; "
    "echo username=x-access-token; printf \"password=%s\\n\" \"$" SESSION_GIT_KEY "\"; }; f'\n"
    "fi\n"
    "git \"$@\" clone --progress ${b:+\"--branch=$b\"} -- \"$u\" \"$t\" || {\n"
    "  rc=$?\n"
    "  rm -rf \"$t\"\n"
    "  exit $rc\n"
    "}\n"
    "printf '%s\\n' \"$of\" >\"$t/.git/cc-tui\" || exit 1\n"
    "rmdir \"$d\" 2>/dev/null\n"
    "[ ! -e \"$d\" ] && mv \"$t\" \"$d\" && exit 0\n"
    "rm -rf \"$t\"\n"
    "done_already || { echo \"fatal: '$d' already exists\" >&2; exit 128; }\n";

const char session_await_script[] =
    "cd \"$1\" || exit 1\n"
    "i=0\n"
    "while [ $i -lt 400 ]; do\n"
    "  if [ -e " SESSION_ERROR " ]; then cat " SESSION_ERROR " >&2; echo error; exit 0; fi\n"
    "  n=$(grep -c '^run [0-9]* start ' " SESSION_RUNS " 2>/dev/null)\n"
    "  if [ \"$3\" = " SESSION_MODE_ONE_RUN " ]; then\n"
    "    [ -e " SESSION_EPOCH " ] && [ ! -e " SESSION_EXIT " ] && { echo up; exit 0; }\n"
    "  elif [ \"${n:-0}\" -gt \"$2\" ]; then\n"
    "    if [ -e " SESSION_EXIT " ]; then\n"
    "      echo \"exit $(cat " SESSION_EXIT ")\"; tail -c 2000 " SESSION_ERR_LOG
    " >&2; exit 0\n"
    "    fi\n"
    "    [ -s " SESSION_CLI_PID " ] && { echo up; exit 0; }\n"
    "  fi\n"
    "  sleep 0.05 2>/dev/null || sleep 1\n"
    "  i=$((i + 1))\n"
    "done\n"
    "echo timeout\n";

const char session_taken_script[] =
    "cd \"$1\" || exit 1\n"
    "r=no\n"
    "for f in " SESSION_UNSURE "/*-\"$2\"*; do [ -e \"$f\" ] && r=unsure; done\n"
    "for f in " SESSION_SENT "/*-\"$2\"*; do [ -e \"$f\" ] && r=yes; done\n"
    "at=$(sed -n \"s/^$2[^ ]* [0-9]* /at /p\" " SESSION_TAKEN " 2>/dev/null | tail -n 1)\n"
    "size=$(stat -c %s " SESSION_OUT_LOG " 2>/dev/null)\n"
    "case $at in at*) [ \"${at#at }\" -le \"${size:-0}\" ] || at= ;; esac\n"
    "if [ $r = yes ] && grep -q '^" SESSION_MODE_ONE_RUN "' " SESSION_MODE
    " 2>/dev/null; then\n"
    "  at=$(sed -n \"s/^\\(run [0-9]*\\) start .* message $2.*/\\1/p\" " SESSION_RUNS
    " | tail -n 1)\n"
    "  [ -n \"$at\" ] || r=no\n"
    "fi\n"
    "[ -e " SESSION_EXIT " ] && r=\"$r exit\"\n"
    "echo \"$r\"\n"
    "echo \"$at\"\n";

/* The number alone may be somebody else's by now: the start time decides. A run that takes
 * no notice is ended; a process for all messages is not, its own shell must live on. What
 * we did is written down first, for whoever reads the run's end. A message that was taken in
 * may have no process yet: that is waited for, but no other message's after its end. */
const char session_sigint_script[] =
    "is_it() {\n"
    "  { read -r st <\"/proc/$p/stat\"; } 2>/dev/null || return 1\n"
    "  st=${st##*\\)}; set -f; set -- $st; set +f\n"
    "  [ \"${20}\" = \"$t\" ] && [ \"$1\" != Z ]\n"
    "}\n"
    "cd \"$1\" || exit 3\n"
    "i=0\n"
    "until { read -r p t <" SESSION_CLI_PID "; } 2>/dev/null; do\n"
    "  id=$(tail -n 1 " SESSION_TAKEN ")\n"
    "  case $(grep '^run [0-9]* [es]' " SESSION_RUNS " | tail -n 1) in *' exit '*)\n"
    "    grep -q \" message ${id%% *} \" " SESSION_RUNS " && exit 3 ;;\n"
    "  esac\n"
    "  [ $i -lt 20 ] || exit 3\n"
    "  i=$((i + 1))\n"
    "  sleep 0.1 2>/dev/null || sleep 1\n"
    "done\n"
    "is_it || exit 3\n"
    "n=$(grep '^run [0-9]* start ' " SESSION_RUNS " | tail -n 1)\n"
    "n=${n#run }\n"
    "echo \"run ${n%% *} interrupt $(date +%s)000\" >>" SESSION_RUNS "\n"
    "kill -INT \"-$p\"\n"
    "[ \"$2\" = " SESSION_MODE_ONE_RUN " ] || exit 0\n"
    "for sig in TERM KILL; do\n"
    "  i=0\n"
    "  while [ $i -lt 30 ]; do\n"
    "    is_it || exit 0\n"
    "    sleep 0.1 2>/dev/null || { sleep 1; i=$((i + 9)); }\n"
    "    i=$((i + 1))\n"
    "  done\n"
    "  kill -$sig \"-$p\"\n"
    "done\n"
    "exit 0\n";

/* --- the probe's answer ---------------------------------------------------------- */

static uint64_t number(const char *s)
{
    uint64_t n = 0;

    s += strspn(s, " \t");
    for (; *s >= '0' && *s <= '9' && n < UINT64_MAX / 10 - 9; s++)
        n = n * 10 + (uint64_t)(*s - '0');
    return n;
}

/* The word after the n-th space, counted from 0. */
static const char *word_at(const char *s, int n)
{
    while (n-- > 0 && s) {
        s = strchr(s, ' ');
        if (s)
            s++;
    }
    return s ? s : "";
}

bool session_run_line(struct session_run_line *r, const char *line)
{
    const char *off = strstr(line, " out-offset "), *err = strstr(line, " err-offset ");
    const char *what = word_at(line, 2), *id = strstr(line, " message ");

    memset(r, 0, sizeof(*r));
    if (!str_starts(line, "run "))
        return false;
    r->run = number(word_at(line, 1));
    r->interrupt = str_starts(what, "interrupt ");
    if (r->interrupt)
        return true;
    r->start = str_starts(what, "start ");
    if (!off || (!r->start && !str_starts(what, "exit ")))
        return false;
    r->offset = number(off + strlen(" out-offset "));
    r->err_offset = err ? number(err + strlen(" err-offset ")) : 0;
    if (!r->start) {
        const char *code = word_at(line, 3);
        r->code = str_starts(code, SESSION_EXIT_LOST) ? -1 : (int)(number(code) & 0xffff);
    }
    if (r->start && id) {
        str_copy(r->message, sizeof(r->message), id + strlen(" message "));
        r->message[strcspn(r->message, " ")] = 0;
    }
    return true;
}

static void parse_run(struct session_probe *p, const char *line)
{
    struct session_run_line r;

    if (!session_run_line(&r, line))
        return;
    if (r.start)
        p->last = r;
    else if (r.interrupt)
        p->interrupted = r.run;
    else
        *ARR_PUSH(&p->ends) = (struct session_run_end){.run = r.run,
                                                       .offset = r.offset,
                                                       .code = r.code,
                                                       .interrupted = r.run == p->interrupted};
}

bool session_probe_running(const struct session_probe *p)
{
    return p->last.run && (!p->ends.n || p->ends.v[p->ends.n - 1].run < p->last.run);
}

static void parse_line(struct session_probe *p, const char *l)
{
    if (str_starts(l, "home ")) {
        str_set(&p->home, l + 5);
    } else if (str_eq(l, "found")) {
        p->found = true;
    } else if (str_eq(l, "started")) {
        p->started = true;
    } else if (str_eq(l, "cli")) {
        p->has_cli = true;
    } else if (str_eq(l, "alive")) {
        p->alive = true;
    } else if (str_starts(l, "exit ")) {
        p->exited = true;
        p->lost = str_starts(l + 5, SESSION_EXIT_LOST);
        p->exit_code = p->lost ? -1 : (int)(number(l + 5) & 0xffff);
    } else if (str_starts(l, "epoch ")) {
        p->epoch = (int64_t)(number(l + 6) & 0xffffffff);
    } else if (str_starts(l, "size ")) {
        p->size = number(l + 5);
    } else if (str_starts(l, "runs ")) {
        p->runs_size = number(l + 5);
    } else if (str_starts(l, "starts ")) {
        p->starts = number(l + 7);
    } else if (str_starts(l, "error ")) {
        str_set(&p->error, l + 6);
    } else if (str_starts(l, "model ")) {
        str_set(&p->model, l + 6);
    } else if (str_starts(l, "sum ")) {
        str_set(&p->sum, l + 4);
    } else if (str_eq(l, "diskfull")) {
        p->diskfull = true;
    } else if (str_starts(l, "cut ")) {
        p->cut_at = number(l + 4);
    } else if (str_starts(l, "run ")) {
        parse_run(p, l);
    }
}

/* A run that ended behind a place where a later one began or ended did so in an earlier log, and
 * so did those before it: they have no place in this one. */
static void drop_old_ends(struct session_probe *p)
{
    uint64_t limit = UINT64_MAX;
    size_t i = p->ends.n;

    for (; i > 0; i--) {
        const struct session_run_end *e = &p->ends.v[i - 1];

        if (e->run < p->last.run && p->last.offset < limit)
            limit = p->last.offset;
        if (e->offset > limit)
            break;
        limit = e->offset;
    }
    if (!i)
        return;
    p->ends.n -= i;
    memmove(p->ends.v, p->ends.v + i, p->ends.n * sizeof(*p->ends.v));
}

void session_probe_parse(struct session_probe *p, const char *text, size_t len)
{
    const char *at = text, *end = text + len;

    memset(p, 0, sizeof(*p));
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t n = nl ? (size_t)(nl - at) : (size_t)(end - at);
        char *line = xstrndup(at, n);

        at += nl ? n + 1 : n;
        if (str_eq(line, "err")) {
            p->err_tail = xstrndup(at, (size_t)(end - at));
            p->err_run = p->last.run;
            at = end;
        } else {
            parse_line(p, line);
        }
        free(line);
    }
    drop_old_ends(p);
}

void session_probe_release(struct session_probe *p)
{
    free(p->home);
    free(p->error);
    free(p->err_tail);
    free(p->model);
    free(p->sum);
    ARR_RELEASE(&p->ends);
    memset(p, 0, sizeof(*p));
}

/* --- cli.sh ---------------------------------------------------------------------- */

void session_quote(struct buf *out, const char *word)
{
    buf_addc(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *word);
    }
    buf_addc(out, '\'');
}

static void add_word(struct buf *out, const char *word)
{
    buf_addc(out, ' ');
    session_quote(out, word);
}

bool session_cli_drives(char *const *argv)
{
    return argv && argv[0] && str_eq(argv[0], "opencode-driver");
}

/* `resume`: how the tool goes on with a session of its own (struct tool). */
static void add_words(struct buf *out, char *const *argv, char *const *resume,
                      const char *resume_id)
{
    const char *word = resume && resume_id ? resume[1] : NULL;
    bool dash = false; /* the prompt comes on stdin: that stays the last word */

    for (size_t i = 0; argv && argv[i]; i++) {
        dash = i && !argv[i + 1] && str_eq(argv[i], "-");
        if (dash)
            break;
        if (i == 0 && session_cli_drives(argv))
            buf_adds(out, " sh \"$dir/" SESSION_OPENCODE_DRIVER "\"");
        else
            add_word(out, argv[i]);
        if (word && str_eq(argv[i], resume[0]))
            add_word(out, word);
    }
    buf_adds(out, " \"$@\"");
    if (resume && resume_id && !word)
        add_word(out, resume[0]);
    if (resume && resume_id)
        add_word(out, resume_id);
    if (dash)
        add_word(out, "-");
}

/* What was chosen lies in files beside cli.sh: "$@" gets the words it makes. */
static void add_choices(struct buf *out, const struct session_cli *c)
{
    buf_adds(out, "set --\n");
    if (c->model_flag) {
        buf_adds(out, "{ read -r m <\"$dir/" SESSION_MODEL "\"; } 2>/dev/null || m=");
        session_quote(out, c->model ? c->model : "");
        buf_adds(out, "\n[ -z \"$m\" ] || set -- \"$@\"");
        add_word(out, c->model_flag);
        buf_adds(out, " \"$m\"\n");
    }
    if (c->prompt_flag) {
        buf_adds(out, "[ ! -s \"$dir/" SESSION_SYSTEM_PROMPT "\" ] || set -- \"$@\"");
        add_word(out, c->prompt_flag);
        buf_adds(out, " \"$dir/" SESSION_SYSTEM_PROMPT "\"\n");
    }
}

void session_cli_script(struct buf *out, const struct session_cli *c)
{
    buf_adds(out, "dir=$PWD\ncd \"$HOME\" || exit 1\n"
                  "if { read -r w <\"$dir/" SESSION_WORKDIR "\"; } 2>/dev/null; then "
                  "cd \"$w\" || { echo \"the folder '$w' of the checkout is not there\" >&2; "
                  "exit 1; }; fi\n");
    add_choices(out, c);
    if (c->ask_argv && !c->command) {
        buf_addf(out, "{ read -r a <\"$dir/" SESSION_ASK "\"; } 2>/dev/null || a=%s\n",
                 c->asks ? "yes" : "no");
        buf_adds(out, "if [ \"$a\" = yes ]; then exec");
        add_words(out, c->ask_argv, c->resume, c->resume_id);
        buf_adds(out, "; fi\n");
    }
    buf_adds(out, "exec");
    if (c->command) {
        buf_adds(out, " sh -c");
        add_word(out, c->command);
    } else {
        add_words(out, c->argv, c->resume, c->driver ? NULL : c->resume_id);
        if (c->driver)
            buf_adds(out, " \"$dir/" SESSION_SHELL_DRIVER "\"");
    }
    buf_addc(out, '\n');
}

/* --- names and answers ----------------------------------------------------------- */

void session_inbox_name(char *dst, size_t size, int64_t ms, const char *id)
{
    size_t n;

    snprintf(dst, size, "%013" PRId64 "-", ms < 0 ? 0 : ms);
    n = strlen(dst);
    for (; *id && n + 1 < size; id++)
        dst[n++] = isalnum((unsigned char)*id) ? *id : '_';
    dst[n] = 0;
}

bool session_same_text(const char *a, const char *b)
{
    static const char space[] = " \t\r\n";
    size_t n, m;

    if (!a || !b)
        return false;
    a += strspn(a, space);
    b += strspn(b, space);
    for (n = strlen(a); n && strchr(space, a[n - 1]);)
        n--;
    for (m = strlen(b); m && strchr(space, b[m - 1]);)
        m--;
    return n == m && memcmp(a, b, n) == 0;
}

static bool runs_folder(const struct cJSON *config, const char *dir)
{
    bool runner = false, ours = false;

    for (const struct cJSON *a = json_first(json_get(config, "args")); a; a = json_next(a)) {
        const char *s = json_str_of(a);

        if (s && str_ends(s, "/" SESSION_RUNNER))
            runner = true;
        if (str_eq(s, dir))
            ours = true;
    }
    return runner && ours;
}

int session_runner_pid(const char *list_json, size_t len, const char *dir)
{
    struct cJSON *j = json_parse(list_json, len, NULL);
    int pid = 0;

    for (const struct cJSON *p = json_first(json_get(j, "processes")); p; p = json_next(p))
        if (runs_folder(json_get(p, "config"), dir))
            pid = (int)json_i64(p, "pid", 0);
    json_free(j);
    return pid;
}

enum session_taken session_taken_parse(const char *text, bool *ended, uint64_t *from)
{
    const char *nl = strchr(text, '\n'), *line = nl ? nl : text + strlen(text);

    *ended = strstr(text, " exit") != NULL;
    *from = str_starts(line, "\nat ")    ? number(line + 4) + 1
            : str_starts(line, "\nrun ") ? number(line + 5)
                                         : 0;
    return str_starts(text, "yes")      ? TAKEN_YES
           : str_starts(text, "unsure") ? TAKEN_UNSURE
                                        : TAKEN_NO;
}
