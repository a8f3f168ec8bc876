#!/bin/sh
# cc-tui projects: names, what is current and why, settings, variables, secrets.
set -u
cc=$(realpath "${B:-build/debug}/cc-tui")
dir=$(mktemp -d "${TMPDIR:-/tmp}/cc-projects.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export HOME="$dir" XDG_CONFIG_HOME="$dir/c" XDG_DATA_HOME="$dir/d" XDG_STATE_HOME="$dir/s"
export XDG_RUNTIME_DIR="$dir/r"
unset CC_TUI_PROJECT E2B_API_KEY
mkdir -m 700 "$dir/r" "$dir/w"
cd "$dir" || exit 1
n=0

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

run 0 projects show -q && [ "$(cat out)" = default ]
ok "nothing said: the project default" $?
run 0 projects add acme/web && run 1 projects add acme/web && grep -q already err
ok "a name is there once" $?
run 2 projects add ../x || run 1 projects add ../x
grep -q "cannot be the name" err
ok "a name that is no name is refused" $?
run 0 projects use acme/web && run 0 projects show -q && [ "$(cat out)" = acme/web ]
ok "the one used last is current" $?
echo '[sandbox]
project = from.folder' >w/.cc-tui
(cd w && run 0 projects show -q && [ "$(cat out)" = from.folder ] && run 0 projects ls) &&
    grep -q 'from.folder *.cc-tui' w/out
ok "the folder's .cc-tui stands above that" $?
(cd w && CC_TUI_PROJECT=by-var && export CC_TUI_PROJECT && run 0 projects show -q &&
    [ "$(cat out)" = by-var ] && run 0 projects show -q --project by-flag &&
    [ "$(cat out)" = by-flag ])
ok "the variable above the folder, the flag above the variable" $?
(CC_TUI_PROJECT='a b' && export CC_TUI_PROJECT && run 2 projects ls)
ok "a variable that is no name is refused" $?
run 0 projects set acme/web tool=claude timeout=1h at_end=pause 'prompt=be kind' skill=. &&
    run 0 projects show --json && grep -q '"tool":"claude"' out && grep -q '"timeout":3600' out &&
    grep -q '"prompt":"be kind"' out && grep -q '"atEnd":"pause"' out
ok "settings are kept" $?
run 0 projects set acme/web tool= timeout= && run 0 projects show --json &&
    grep -q '"tool":null' out && ! grep -q '"timeout"' out && grep -q 'be kind' out
ok "an empty value takes one away, and no other" $?
run 2 projects set acme/web nonsense=1 && run 2 projects set acme/web timeout=never
ok "what is no setting is refused" $?
run 0 projects env acme/web A=1 'B=two words' && run 0 projects show &&
    grep -q 'variable B=two words' out
ok "variables are kept" $?
run 2 projects env acme/web GH_TOKEN=x && grep -q 'keys add github' err &&
    run 2 projects env acme/web 1A=x && run 2 projects env acme/web A
ok "keys and odd names are no variables" $?
echo canary-f00d-9f21 | "$cc" projects secret acme/web TOKEN >out 2>err && run 0 projects show &&
    grep -q 'TOKEN (secret, \*\*\*\*9f21)' out && ! grep -rqa canary-f00d c d s
ok "a secret is sealed, and shown by its last four" $?
run 2 projects secret acme/web TOKEN canary-f00d-9f21 && ! grep -q canary err
ok "a secret is no argument" $?
run 0 keys ls && ! grep -q variable out
ok "it is not listed among the keys" $?
run 0 projects env --undo acme/web A TOKEN && run 5 projects env --undo acme/web A
ok "variables go, once" $?
run 0 projects rename acme/web acme/site && run 0 projects show && grep -q 'B=two words' out &&
    grep -q 'project acme/site' out
ok "a new name keeps what is the project's" $?
run 0 projects add second && run 1 projects rename second acme/site && run 5 projects rename no x
ok "a name that is taken or unknown is refused" $?
run 2 projects rm second && run 0 projects rm -y second && run 5 projects rm -y second
ok "it is removed when that is said" $?
run 2 projects add x --readonly && run 0 projects ls --readonly
ok "--readonly changes nothing" $?
echo "1..$n"
