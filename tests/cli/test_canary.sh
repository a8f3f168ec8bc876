#!/bin/sh
# Keys with a mark in them go through a session: a tool that needs one, the screen on a
# terminal, a refused account. Then everything that was written, and every process of ours,
# is searched for the mark. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build/debug}
c=$B/cc-tui
n=0
bad=0
skip_all() {
    echo "ok 1 - canary # SKIP $1"
    echo 1..1
    exit 0
}
[ -x "$c" ] || skip_all "$c is not built"
"$B/cc-tui-local" probe > /dev/null 2>&1 || skip_all "no namespaces here"
script -qec true /dev/null > /dev/null 2>&1 || skip_all "no script(1)"
c=$(realpath "$c")
T=$(mktemp -d /tmp/test-canary.XXXXXX)
mark=canary$$x7q
printf '%s\n' "$mark" > "$T/mark" # patterns are read from here: no argv of ours has it
mkdir -p "$T/all/home" "$T/all/c"
chmod 700 "$T/all/c"
export HOME="$T/all/home" CC_TUI_CONFIG_DIR="$T/all/c" CC_TUI_DATA_DIR="$T/all/d"
export CC_TUI_STATE_DIR="$T/all/s" CC_TUI_RUNTIME_DIR="$T/all/r" LC_ALL=C.UTF-8 TERM=xterm
unset E2B_API_URL E2B_DOMAIN E2B_SANDBOX_URL CLAUDE_CODE_OAUTH_TOKEN
screen=
trap '[ -n "$screen" ] && kill "$screen" 2>/dev/null
    "$c" local stop --yes >/dev/null 2>&1; rm -rf "$T"' EXIT
trap 'exit 1' INT TERM

check() { # name, command...
    name=$1; shift
    n=$((n + 1))
    if "$@" > "$T/said" 2>&1; then
        echo "ok $n - $name"
    else
        bad=$((bad + 1))
        echo "not ok $n - $name"
        head -n 12 "$T/said" "$T/all/err" | sed 's/^/# /'
    fi
}
none() { # files and folders: the mark is in none of them
    ! grep -raFlf "$T/mark" "$@"
}
run() { # a command with both keys in its environment; its output is searched too
    E2B_API_KEY=e2b_$mark-e2b ANTHROPIC_API_KEY=sk-ant-$mark-ant "$c" "$@" \
        >> "$T/all/out" 2>> "$T/all/err" < /dev/null
}
providers() { # the processes of this folder's provider, in sandboxes too
    for p in /proc/[0-9]*; do
        [ "$(readlink "$p/exe")" = "$c-local" ] && echo "${p#/proc/}"
    done
}
no_environ() { # pids: all can be read, none has it
    [ $# -gt 0 ] || return 1
    for p in "$@"; do none "/proc/$p/environ" || return 1; done
}
no_core() {
    [ $# -gt 0 ] || return 1
    for p in "$@"; do grep -Eq '^Max core file size +0 +0 ' "/proc/$p/limits" || return 1; done
}
said() { grep -q "$1" "$T/all/out"; }

cat > "$T/all/c/tools.conf" <<'END'
[tool guarded]
adapter = shell
template = base
command = sh
needs = anthropic
END
chmod 600 "$T/all/c/tools.conf"

check "the search finds what it looks for" grep -raFlf "$T/mark" "$T"
run --local --set log.level=debug ls
run --local new --tool guarded --name guarded
check "a sandbox whose tool needs a key" "$c" --local ls -q
run --local send guarded 'echo length=${#ANTHROPIC_API_KEY}' --wait
check "the key is in the agent's environment" said "length=$((${#mark} + 11))"
run --local send guarded 'grep -rlF "$ANTHROPIC_API_KEY" ~ /tmp /var 2> /dev/null | wc -l | sed s/^/files=/' --wait
check "and in no file of the sandbox" said "files= *0"

# --- the screen --------------------------------------------------------------------------
E2B_API_KEY=e2b_$mark-e2b ANTHROPIC_API_KEY=sk-ant-$mark-ant \
    script -qfec "exec '$c' --local" "$T/all/pty" > /dev/null 2>&1 < /dev/null &
screen=$!
i=0
until grep -q guarded "$T/all/pty" 2> /dev/null || [ $i -ge 100 ]; do
    i=$((i + 1))
    "$c" --local ls > /dev/null 2>&1
done
check "the screen shows the sandbox" [ $i -lt 100 ]
client=$(cat "/proc/$screen/task/$screen/children") # of script(1)
provider=$(providers)
if [ "$(id -u)" -eq 0 ]; then
    check "environment of the screen" no_environ $client
    check "environment of the provider and what it keeps in sandboxes" no_environ $provider
fi
check "no core of the screen" no_core $client
check "no argument of any process" none /proc/[0-9]*/cmdline
kill $client
wait $screen
screen=

# --- an account that refuses ---------------------------------------------------------------
api=$("$c" local env 2> /dev/null | sed -n "s/^export E2B_API_URL='\(.*\)'/\1/p")
E2B_API_URL=$api run ls
check "a refused key" [ $? -eq 4 ]
E2B_API_URL=$api run doctor
check "the key is shown by its end alone" said '\*\*\*\*-e2b'
run --local kill --all --yes

check "nothing that was written has a key" none "$T/all"
echo "1..$n"
[ $bad -eq 0 ]
