# What the scripts of tests/cli share; sourced from the root of the tree. A script begins by
#     cd "$(dirname "$0")/../.." && . tests/lib/cli.sh
#     begin NAME [NEED...]
# has the program as $c and its folder as $B (also first in PATH), a folder $T of its own with
# $T/home and cc-tui's four folders $T/c $T/d $T/s $T/r, no key and no service in its environment,
# and ends by `end`. What stays behind, a provider included, is tidied up however it ends.
set -u
B=${B:-build/debug}
c= T= n=0 bad=0 rc=0

skip_all() { # why
    echo "ok 1 - $title # SKIP $1"
    echo 1..1
    exit 0
}
begin() { # name; what it cannot do without: `namespaces`, a program
    title=$1
    shift
    [ -x "$B/cc-tui" ] && [ -x "$B/cc-tui-local" ] || skip_all "$B/cc-tui is not built"
    for need; do
        if [ "$need" = namespaces ]; then
            "$B/cc-tui-local" probe > /dev/null 2>&1 || skip_all "no namespaces here"
        else
            command -v "$need" > /dev/null 2>&1 || skip_all "there is no $need"
        fi
    done
    B=$(realpath "$B") && c=$B/cc-tui
    T=$(mktemp -d "/tmp/test-cli-$title.XXXXXX") || exit 1
    trap finish EXIT
    trap 'exit 1' INT TERM
    unset E2B_API_KEY E2B_API_URL E2B_DOMAIN E2B_SANDBOX_URL ANTHROPIC_API_KEY OPENAI_API_KEY
    unset CODEX_API_KEY OPENROUTER_API_KEY CLAUDE_CODE_OAUTH_TOKEN GITHUB_TOKEN GH_TOKEN
    unset CC_TUI_PROJECT NO_COLOR CLICOLOR_FORCE
    places "$T"
    export LC_ALL=C.UTF-8 TERM=xterm PATH="$B:$PATH"
}
places() { # the folders of a user who never ran it, in that one
    unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
    export HOME="$1/home" CC_TUI_CONFIG_DIR="$1/c" CC_TUI_DATA_DIR="$1/d"
    export CC_TUI_STATE_DIR="$1/s" CC_TUI_RUNTIME_DIR="$1/r"
    mkdir -p "$1" && mkdir -m 700 "$1/home" "$1/c"
}
tidy() { :; } # what a script has begun itself
finish() {
    tidy
    "$c" local stop --yes > /dev/null 2>&1
    rm -rf "$T"
}
end() {
    echo "1..$n"
    [ "$bad" -eq 0 ]
}

# --- one check ----------------------------------------------------------------------------
check() { # name, command...: what it says is shown when it fails, with the last run's words
    name=$1
    shift
    n=$((n + 1))
    if "$@" > "$T/said" 2>&1; then
        echo "ok $n - $name"
        return
    fi
    bad=$((bad + 1))
    echo "not ok $n - $name"
    { echo "status $rc"; cat "$T/said"; more; } | sed 's/^/# /'
}
more() {
    for f in out err; do
        [ ! -f "$T/$f" ] || sed "s/^/$f: /" "$T/$f" | head -n "${shown:-12}"
    done
}
skip() { # name, why
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

# --- what a command said ------------------------------------------------------------------
run() { # command...: stdout, stderr and status for the checks
    timeout "${limit:-120}" "$@" > "$T/out" 2> "$T/err" < /dev/null
    rc=$?
}
until_true() { # seconds, command...: again until it is so; 1 when the time is over
    over=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$over" ] || return 1
        sleep 0.02 # others want to work, too
    done
}
is() { [ "$rc" -eq "$1" ]; }
out() { grep -qF -e "$1" "$T/out"; }
err() { grep -qF -e "$1" "$T/err"; }
no_out() { [ ! -s "$T/out" ]; }
no_err() { [ ! -s "$T/err" ]; }
lines() { [ "$(wc -l < "$T/$1")" -eq "${2:-1}" ]; }
both() { "$1" "$2" && "$3" "$4"; }

# --- steps in the folder $T: `call` them, then say what they show together ----------------
call() { # expected status, arguments of cc-tui; what it says in ./out and ./err
    want=$1
    shift
    "$c" "$@" > out 2> err < /dev/null
    rc=$?
    [ "$rc" = "$want" ] || { echo "# status $rc, not $want"; return 1; }
}
ok() { # what, status of the steps
    check "$1" [ "$2" -eq 0 ]
}
