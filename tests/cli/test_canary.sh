#!/bin/sh
# Keys with a mark in them go through a session: a tool that needs one, the screen on a
# terminal, a refused account. Then everything that was written, and every process of ours,
# is searched for the mark. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
title=canary
script -qec true /dev/null > /dev/null 2>&1 || skip_all "no script(1)"
begin canary namespaces
places "$T/all"
mark=canary$$x7q
# patterns are read from here: no argv of ours has it. The mark, and its base64 without the
# letters that depend on what stands beside it
{
    printf '%s\n' "$mark"
    for before in '' x xx; do
        printf '%s%s' "$before" "$mark" | base64 -w 0 | sed 's/^....//; s/....$//'
        echo
    done
} > "$T/mark"
# every few milliseconds, for the whole session: who has it among his arguments?
watch() {
    while [ -e "$T/watching" ]; do
        grep -laFf "$T/mark" /proc/[0-9]*/cmdline 2> /dev/null |
            while read -r f; do tr '\0' ' ' < "$f" >> "$T/seen" 2> /dev/null; done
        sleep 0.02
    done
}
: > "$T/watching"
watch &
watcher=$!
screen=
tidy() {
    rm -f "$T/watching"
    wait $watcher
    [ -z "$screen" ] || kill "$screen" 2>/dev/null
}
more() { head -n 12 "$T/all/err"; }
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
said_err() { grep -q "$1" "$T/all/err"; }

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
printf 'var-%s-var\n' "$mark" | "$c" projects secret default TOKEN >> "$T/all/out" 2>> "$T/all/err"
check "a secret variable of the project" said_err sealed
printf 'ghp_%s0123456789\n' "$mark" | "$c" keys add github >> "$T/all/out" 2>> "$T/all/err"
check "a key of GitHub" said_err 'stored github'
check "both are sealed" none "$T/all/d" "$T/all/c" "$T/all/s"
run --local new --tool guarded --name guarded
check "a sandbox whose tool needs a key" "$c" --local ls -q
run --local send guarded 'echo length=${#ANTHROPIC_API_KEY}' --wait
check "the key is in the agent's environment" said "length=$((${#mark} + 11))"
run --local send guarded 'printf %s "$ANTHROPIC_API_KEY" | grep -rlFf - ~ /tmp /var 2> /dev/null | wc -l | sed s/^/files=/' --wait
run --local send guarded 'echo token=${#TOKEN} github=${#GITHUB_TOKEN}${#GH_TOKEN}' --wait
check "the variable is in the agent's environment, GitHub's key is not" \
    said "token=$((${#mark} + 8)) github=00"
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

# --- the same with stored keys ---------------------------------------------------------------
quiet() { # a command without keys in its environment
    "$c" "$@" >> "$T/all/out" 2>> "$T/all/err"
}
printf 'export E2B_API_KEY="e2b_%s-sto"\n' "$mark" | E2B_API_URL=$api quiet keys add e2b
check "a key is stored" [ $? -eq 0 ]
printf 'sk-ant-%s-stored' "$mark" > "$T/key"
quiet keys add anthropic --project p1 --command "cat '$T/key'"
check "and one of a command" [ $? -eq 0 ]
quiet keys add openai "sk-$$-not-the-mark"
check "as an argument it is refused" [ $? -eq 2 ]
E2B_API_URL=$api quiet --set log.level=debug ls < /dev/null
check "a stored key that is refused" [ $? -eq 4 ]
check "level and end are told" grep -q '\*\*\*\*-sto (user key)' "$T/all/err"
E2B_API_URL=$api quiet keys --json < /dev/null
E2B_API_URL=$api quiet doctor < /dev/null
quiet --local --project p1 new --tool guarded --name stored < /dev/null
quiet --local --project p1 send stored 'echo length=${#ANTHROPIC_API_KEY}' --wait < /dev/null
check "the project's key is the agent's" said "length=$((${#mark} + 14))"
quiet --local new --tool guarded --name other < /dev/null
check "of no other project's" [ $? -eq 4 ]
printf 'pass-%s\n' "$mark" > "$T/phrase"
quiet keys protect passphrase --passphrase-fd 3 3< "$T/phrase" < /dev/null
check "by a passphrase" [ $? -eq 0 ]
quiet --local --project p1 new --tool guarded --name locked < /dev/null
check "a locked key is no reason to do without" [ $? -eq 4 ]
quiet --local --project p1 new --tool guarded --name opened --passphrase-fd 3 3< "$T/phrase" \
    < /dev/null
check "and it opens" [ $? -eq 0 ]
quiet --local kill --all --scope account --yes < /dev/null

# --- an argument of a build: the service gets it, and says it again ------------------------------
"$c" local stop --yes > /dev/null 2>&1
places "$T/built"
printf 'FROM e2bdev/base\nARG TOKEN=none\nRUN echo "token=$TOKEN"; echo "${#TOKEN} bad $TOKEN" >&2; exit 3\n' \
    > "$T/built/home/Dockerfile"
TOKEN=arg-$mark-arg "$c" --local --set log.level=debug build "$T/built/home" --name told --wait \
    --build-arg TOKEN > "$T/log" 2>&1 < /dev/null
check "a build that fails and says why" [ $? -eq 1 ]
check "who waits sees what it said" grep -q "token=arg-$mark" "$T/log"
"$c" --local builds told --json > "$T/row" 2>&1 < /dev/null
check "the row has it without the argument's value" grep -q 'bad \*\*\*' "$T/row"
check "the database, too" none "$T/row" "$T/built/d" "$T/built/c" "$T/built/s"/*.log
"$c" local stop --yes > /dev/null 2>&1

rm -f "$T/watching"
wait $watcher
check "no argument of any process, at any time" sh -c '! cat "$1"/seen | grep .' - "$T"
check "nothing that was written has a key" none "$T/all"
end
