#!/bin/sh
# Before a sandbox is made, for each tool: a key that is missing, at another project's level,
# in front of another one, locked or damaged is told by provider, level and last four, with what
# to do; nothing is made. A provider of its own. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin newkeys

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
forget() { rm -rf "$T/d" "$T/c"; mkdir -m 700 "$T/c"; }

cc-tui local start > /dev/null 2>&1
for pair in claude:anthropic codex:openai opencode:openrouter pi:openrouter qwen:openai; do
    t=${pair%:*} p=${pair#*:}
    forget
    try "$t"
    check "$t without a key: status" is $status 4
    check "$t without a key: provider and what to do" err "needs a key of .*$p.*cc-tui keys add "
    add "$p" ab12 --project other
    try "$t"
    check "$t, key of another project: status" is $status 4
    check "$t, key of another project: named" err "$p \*\*\*\*ab12 .*project.* other.*keys add "
    add "$p" cd34
    try "$t"
    check "$t, the user's key is enough" is $status 0
    try "$t" --project other
    check "$t, the project's in front of the user's: made" is $status 0
    check "$t, the project's in front of the user's: said" \
        err "$p \*\*\*\*ab12 (project key).*hides .*\*\*\*\*cd34 (user key)"
    mkdir -m 700 "$T/keep" && mv "$T"/c/* "$T/keep"
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
try opencode --model openrouter/acme/one
check "on one of openrouter: another one" err "needs a key of openrouter"
try opencode
check "on its own choice: any of those that it takes" is $status 0
forget
try opencode
check "without any: all that it takes" err "needs a key of anthropic or openai or openrouter"

# a key that is of no provider is a variable, and may be set in any of these places
forget
try gemini
check "gemini without its variable: status" is $status 4
check "gemini without its variable: named, and where to set it" \
    err "needs the variable GEMINI_API_KEY, .*projects secret default GEMINI_API_KEY.*--env"
try gemini --env GEMINI_API_KEY=
check "gemini, empty is as good as none" is $status 4
try gemini --env GEMINI_API_KEY=x
check "gemini, by --env" is $status 0
try gemini --env GOOGLE_GENAI_USE_GCA=true
check "gemini, by the variable of another kind of account" is $status 0
printf 'GEMINI_API_KEY=x\n' > "$T/env"
try gemini --env-file "$T/env"
check "gemini, by the env file" is $status 0
try gemini --env-file "$T/env" --copies 2
check "gemini, by the env file, for two" is $status 0
printf 'OTHER=x\n' > "$T/env"
try gemini --env-file "$T/env"
check "gemini, not by the env file" err "needs the variable GEMINI_API_KEY"
try gemini --env-file "$T/nowhere"
check "an env file that is not there: named" err "nowhere"
export GEMINI_API_KEY=0123456789abcdefgh77aa
try gemini --verbose
check "gemini, by our own environment" is $status 0
unset GEMINI_API_KEY
printf '0123456789abcdefgh77aa' | cc-tui projects secret default GEMINI_API_KEY > /dev/null 2> "$T/err"
try gemini
check "gemini, by a secret of the project" is $status 0
try gemini --project other
check "gemini, not by that of another project" err "projects secret other GEMINI_API_KEY"
cc-tui projects env other GEMINI_API_KEY=x > /dev/null 2> "$T/err"
try gemini --project other
check "gemini, by a variable of the project" is $status 0
cc-tui pair --local --dry-run --designer claude --checker gemini --prompt 'a task' > "$T/out" 2> "$T/err"
check "a pair looks at both its tools" err "needs a key of anthropic"
add anthropic ab12
try claude --env-file "$T/nowhere"
check "a file that is wrong is told when the key is there, too" err "nowhere"
forget
printf 'ANTHROPIC_API_KEY=sk-ant-api03-0123456789abcdef0123ab12\n' > "$T/env"
try claude --env-file "$T/env"
check "a provider's key by the env file" is $status 0
add anthropic ab12
cc-tui pair --local --dry-run --designer claude --checker gemini --prompt 'a task' > "$T/out" 2> "$T/err"
check "a pair, its second tool" err "needs the variable GEMINI_API_KEY"

# a tool of the user's own, or another service behind one that is known
forget
cat > "$T/c/tools.conf" <<END
[tool qwen]
needs = none
needs_env = DASHSCOPE_API_KEY
[tool mine]
adapter = claude
command = my-agent
needs_env = MY_API_KEY MY_TOKEN
END
try qwen
check "qwen on a service of its own: its variable" err "needs the variable DASHSCOPE_API_KEY,"
try mine
check "a tool of one's own: its variables" err "mine needs the variable MY_API_KEY or MY_TOKEN,"
try mine --env MY_TOKEN=x
check "and any of them will do" is $status 0

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
end
