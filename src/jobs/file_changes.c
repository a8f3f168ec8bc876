/* What the agent has changed: git's word about the repository in the folder where it works, or
 * without one the files that are newer than its session. Git is asked in a way that takes no
 * lock and starts no helper, for the agent may be in the middle of it. */
#include "file_priv.h"

#include <cct/jobs/session_layout.h>
#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAYS_BYTES = 2000, FULL_MS = 30 };

/* $1: our session or "", $2: bytes of the diff at most. Lines "word value", then parts of raw
 * bytes, each behind "part NAME LENGTH WHOLE-LENGTH". */
static const char changes_script[] =
    "export GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat GIT_TERMINAL_PROMPT=0 LC_ALL=C\n"
    "w= max=$2 x=':(exclude,top)" SESSION_ROOT "'\n" /* ours, where the home is a repository */
    "[ -z \"$1\" ] || { read -r w <\"$HOME/" SESSION_ROOT "/$1/" SESSION_WORKDIR "\"; } 2>/dev/null\n"
    "cd \"$HOME/$w\" || exit 1\n"
    "t=$(mktemp -d) || exit 1\n"
    "trap 'rm -rf \"$t\"' EXIT\n"
    "part() { n=$(wc -c <\"$t/$1\"); [ $n -gt $2 ] && k=$2 || k=$n; "
    "echo \"part $1 $((k)) $((n))\"; head -c $k \"$t/$1\"; }\n"
    "g() { git -c core.quotePath=false -c core.fsmonitor=false -c diff.external= \"$@\"; }\n"
    "r=$(git rev-parse --show-toplevel 2>\"$t/err\")\n"
    "if [ -n \"$r\" ] && cd \"$r\"; then\n"
    "  printf 'repo %s\\n' \"$r\"\n"
    "  printf 'branch %s\\n' \"$(git symbolic-ref --short -q HEAD || git rev-parse --short HEAD)\"\n"
    "  h=HEAD; git rev-parse -q --verify HEAD >/dev/null 2>&1 || h=$(git hash-object -t tree /dev/null)\n"
    "  g status --porcelain -z --no-renames -uall -- . \"$x\" >\"$t/status\" 2>\"$t/err\" || { cat \"$t/err\" >&2; exit 1; }\n"
    "  part status 400000\n"
    "  g diff $h --no-renames --no-ext-diff --no-textconv --numstat -z -- . \"$x\" >\"$t/numstat\"\n"
    "  part numstat 400000\n"
    "  g diff $h --no-renames --no-ext-diff --no-textconv --no-color -- . \"$x\" | head -c $((max + 1)) >\"$t/diff\"\n"
    "  part diff $max\n"
    "else\n"
    "  command -v git >/dev/null || echo nogit\n"
    "  printf 'dir %s\\n' \"$PWD\"\n"
    "  o=\"$HOME/" SESSION_ROOT "/$1/" SESSION_META "\"; [ -n \"$1\" ] && [ -e \"$o\" ] || o=/proc/1\n"
    "  find . -xdev \\( -name " SESSION_ROOT " -o -name .git -o -name .cache -o -name node_modules \\) "
    "-prune -o -type f -newer \"$o\" -print0 2>/dev/null | head -c 200001 >\"$t/newer\"\n"
    "  part newer 200000\n"
    "fi\n"
    "echo end\n";

static void on_full(void *ctx)
{
    struct filejob *w = ctx;

    w->timer = 0;
    if (mq_full(w->j->o.events)) {
        w->timer = net_timer(w->j->o.net, FULL_MS, on_full, w);
        return;
    }
    w->held = false;
    envd_pause(w->envd, w->stream, false);
}

static bool on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    struct filejob *w = ctx;

    if (s == ENVD_STDERR) {
        if (w->says.len < SAYS_BYTES)
            buf_add(&w->says, data, len < SAYS_BYTES ? len : SAYS_BYTES);
    } else if (!filejob_chunk(w, data, len) && !w->held) {
        w->held = true;
        envd_pause(w->envd, w->stream, true);
        w->timer = net_timer(w->j->o.net, FULL_MS, on_full, w);
    }
    return true;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct filejob *w = ctx;
    struct err e = end->err;
    char *says;

    if (!e.code && (!end->exited || end->exit_code != 0)) {
        says = clean_line_dup(buf_str(&w->says), 300);
        err_set(&e, ERR_SERVER, "the changes cannot be told: %s",
                *says ? says : end->status ? end->status : "the command failed");
        free(says);
    }
    filejob_end(w, e.code ? &e : NULL);
}

void filejob_changes(struct filejob *w)
{
    char max[24];
    const char *args[] = {"-c", changes_script, "cc-tui", w->session ? w->session : "", max, NULL};
    struct envd_proc_spec p = {.cmd = "/bin/sh", .args = args};
    struct envd_proc_cb cb = {.on_data = on_data, .on_end = on_end, .ctx = w};

    snprintf(max, sizeof(max), "%llu", (unsigned long long)w->f->max);
    w->stream = envd_start(w->envd, &p, &cb);
}
