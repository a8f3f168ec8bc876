#!/bin/sh
# Before a sandbox is made, for each tool: a key that is missing, at another project's level,
# in front of another one, locked or damaged is told by provider, level and last four, with what
# to do; nothing is made. A provider of its own. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build/debug}
n=0
bad=0
[ -x "$B/cc-tui-local" ] || { echo "ok 1 - keys # SKIP $B/cc-tui-local is not built"; echo 1..1; exit 0; }
B=$(realpath "$B")
T=$(mktemp -d /tmp/test-newkeys.XXXXXX)
finish() {
    "$B/cc-tui" local stop --yes >/dev/null 2>&1
    rm -rf "$T"
}
trap finish EXIT
trap 'exit 1' INT TERM
unset E2B_API_KEY E2B_API_URL E2B_DOMAIN E2B_SANDBOX_URL ANTHROPIC_API_KEY OPENAI_API_KEY
unset OPENROUTER_API_KEY CLAUDE_CODE_OAUTH_TOKEN GITHUB_TOKEN GH_TOKEN CODEX_API_KEY CC_TUI_PROJECT
export LC_ALL=C.UTF-8 HOME="$T/home" PATH="$B:$PATH"
export CC_TUI_CONFIG_DIR="$T/conf" CC_TUI_DATA_DIR="$T/data" CC_TUI_STATE_DIR="$T/state" \
       CC_TUI_RUNTIME_DIR="$T/run"
mkdir -m 700 "$T/home" "$T/conf"

check() { # name, command...
    name=$1; shift
    n=$((n + 1))
    if "$@" > "$T/said" 2>&1; then
        echo "ok $n - $name"
    else
        bad=$((bad + 1))
        echo "not ok $n - $name"
        head -n 6 "$T/said" "$T/err" | sed 's/^/# /'
    fi
}
is() { [ "$1" -eq "$2" ]; }
err() { grep -q -- "$1" "$T/err"; }
try() { # tool, more...
    tool=$1; shift
    cc-tui new --local --dry-run --no-input -t "$tool" "$@" > "$T/out" 2> "$T/err" < /dev/null
    status=$?
}
add() { # provider, last four, more...
    p=$1 four=$2; shift 2
    case $p in
    anthropic) k=sk-ant-api03-0123456789abcdef0123$four ;;
    openai) k=sk-proj-0123456789abcdef0123456789$four ;;
    openrouter) k=sk-or-v1-0123456789abcdef0123456789$four ;;
    github) k=ghp_0123456789abcdef0123456789ABCD$four ;;
    esac
    printf %s "$k" | cc-tui keys add "$p" "$@" > /dev/null 2> "$T/err"
}
forget() { rm -rf "$T/data" "$T/conf"; mkdir -m 700 "$T/conf"; }

cc-tui local start > /dev/null 2>&1
for pair in claude:anthropic codex:openai opencode:openrouter pi:openrouter qwen:openai; do
    t=${pair%:*} p=${pair#*:}
    forget
    try "$t"
    check "$t without a key: status" is $status 4
    check "$t without a key: provider and what to do" err "needs a key of .*$p.*cc-tui keys add $p"
    add "$p" ab12 --project other
    try "$t"
    check "$t, key of another project: status" is $status 4
    check "$t, key of another project: named" err "$p \*\*\*\*ab12 .*project.* other.*keys add $p"
    add "$p" cd34
    try "$t"
    check "$t, the user's key is enough" is $status 0
    try "$t" --project other
    check "$t, the project's in front of the user's: made" is $status 0
    check "$t, the project's in front of the user's: said" \
        err "$p \*\*\*\*ab12 (project key).*hides .*\*\*\*\*cd34 (user key)"
    mkdir -m 700 "$T/keep" && mv "$T"/conf/* "$T/keep"
    try "$t"
    check "$t, the key file is gone: status" is $status 4
    check "$t, the key file is gone: provider, level, last four" err "$p.*\*\*\*\*cd34 (user key)"
    rm -rf "$T/keep"
done

# what the model decides
forget
add anthropic ab12
try opencode --model anthropic/claude-sonnet-5.5
check "opencode on a model of anthropic: that key" is $status 0
try opencode
check "on its own model: another one" err "needs a key of openrouter"

# the passphrase
forget
add anthropic ab12
add github ef56
printf 'a long passphrase\n' > "$T/pass"
cc-tui keys protect passphrase --passphrase-fd 3 3< "$T/pass" > /dev/null 2> "$T/err"
try claude
check "a locked vault: status" is $status 4
check "a locked vault: provider, level, last four and what to do" \
    err "anthropic.*\*\*\*\*ab12 (user key).*--unlock"
cc-tui new --local --dry-run -t claude --passphrase-fd 3 3< "$T/pass" > "$T/out" 2> "$T/err"
check "open, it is used" is $? 0
try shell --repo acme/web -- true
check "the same for a repository" err "github.*\*\*\*\*ef56 (user key).*--unlock"
try shell --repo https://gitlab.example/a/b -- true
check "another place wants none" is $status 0

# nothing was made by all this
cc-tui ls --local -a -q > "$T/out" 2>&1
check "nothing was made" sh -c '! grep -q . "$1"' - "$T/out"
echo "1..$n"
[ $bad -eq 0 ]
