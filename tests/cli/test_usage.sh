#!/bin/sh
# cc-tui usage: what ran and what agents used, told by several programs one after another,
# one of them killed, counts once.
set -u
b=$(realpath "${B:-build/debug}")
cc=$b/cc-tui
dir=$(mktemp -d "${TMPDIR:-/tmp}/cc-usage.XXXXXX") || exit 1
export HOME="$dir" CC_TUI_CONFIG_DIR="$dir/conf" CC_TUI_DATA_DIR="$dir/data" \
       CC_TUI_STATE_DIR="$dir/state" CC_TUI_RUNTIME_DIR="$dir/run" PATH="$b:$PATH"
unset CC_TUI_PROJECT E2B_API_KEY E2B_API_URL E2B_DOMAIN E2B_SANDBOX_URL
trap '"$cc" local stop --yes >/dev/null 2>&1; rm -rf "$dir"' EXIT
mkdir -m 700 "$dir/conf"
cd "$dir" || exit 1
n=0
[ -x "$b/cc-tui-local" ] || { echo "ok 1 - usage # SKIP cc-tui-local is not built"; echo 1..1; exit 0; }

ok() { # what, status
    n=$((n + 1))
    if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; sed 's/^/# /' out err; fi
}
run() { # expected status, arguments
    want=$1
    shift
    "$cc" "$@" >out 2>err </dev/null
    got=$?
    [ "$got" = "$want" ] || { echo "# status $got, not $want"; return 1; }
}
field() { # of the total in out
    sed -n 's/.*"total":{\([^}]*\)}.*/\1/p' out | tr ',' '\n' | sed -n "s/^\"$1\"://p"
}

run 0 usage --json && [ "$(field usd)" = 0 ] && [ "$(field turns)" = 0 ]
ok "nothing was used yet" $?
run 2 usage yesterday && grep -q 'day, week' err && run 2 usage --by colour && grep -q template err
ok "what is no time and no group is refused" $?
run 0 new --local --tool demo --name one -q && id=$(cat out) &&
    run 0 send "$id" --local --wait hello
ok "an agent takes a turn" $?
run 0 usage day --json && [ "$(field intervals)" = 1 ] && turns=$(field turns) && [ "$turns" -ge 1 ]
ok "one interval and its turn are kept" $?
"$cc" logs -f "$id" --local >/dev/null 2>&1 &
pid=$!
run 0 logs "$id" --local
kill -9 $pid
wait $pid 2>/dev/null
run 0 ls --local && run 0 usage day --json && [ "$(field intervals)" = 1 ] &&
    [ "$(field turns)" = "$turns" ]
ok "read again, and by one that was killed, it counts once" $?
run 0 kill "$id" --yes --local && run 0 usage day --json && was=$(field runSeconds) &&
    [ "$(field intervals)" = 1 ] && [ "$(field sandboxUsd)" = 0 ] && [ "$(field estimatedIntervals)" = 0 ]
ok "a kill ends the interval; here it costs nothing" $?
run 0 ls -a --local && run 0 usage day --json && [ "$(field runSeconds)" = "$was" ]
ok "what has ended does not grow" $?
run 0 usage day --csv --by agent && [ "$(wc -l <out)" = 2 ] && grep -q '^agent,"demo",' out &&
    run 0 usage && grep -q 'by template' out && grep -q 'built in, last checked' out
ok "by agent as CSV, and in words" $?
echo "1..$n"
