#!/bin/sh
# The program's commands as a user calls them: the real binary, all places in a
# temporary folder, sandboxes by the real local provider. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin cli
no_escape() { ! grep -qF "$(printf '\033')" "$T/$1"; }
last_lines() { [ "$(tail -n "$1" "$T/out" | paste -sd'|')" = "$2" ]; }
one_line() { [ "$rc" -eq 0 ] && lines out 1; }

# --- help, version, usage -------------------------------------------------------------
run "$c" version
check "version: status 0" is 0
check "version: one line" one_line
run "$c" --help
check "help: status 0, on stdout" both is 0 out "usage: cc-tui"
check "help: nothing on stderr" no_err
run "$c" send --help
check "help of a command" both is 0 out "usage: cc-tui send"
run "$c" help local
check "help of a group" both is 0 out "local env"
run "$c" kil
check "unknown command: 2, near word" both is 2 err "did you mean 'kill'?"
check "unknown command: nothing on stdout" no_out
run "$c" ls --jsn
check "unknown option: 2, near word" both is 2 err "did you mean '--json'?"
run "$c" send box
check "missing argument: 2" both is 2 err "'send' wants SANDBOX TEXT|-"
run "$c" --set nonsense ls
check "--set without a value: 2" both is 2 err "SECTION.NAME=VALUE"
run "$c" --set screen.thme=x ls
check "--set of an unknown option: 2" both is 2 err "did you mean 'theme'?"
run "$c" --project 'a b' ls
check "a project's name has an alphabet" both is 2 err "--project"
run "$c" kill box
check "kill without terminal and --yes: 2" both is 2 err "--yes"
run "$c" kill --all box --yes
check "kill: sandboxes or --all" both is 2 err "one of the two"
run "$c" kill --all --scope world --yes
check "kill: unknown scope" both is 2 err "project or account"
for sh in bash zsh fish; do
    run "$c" completion $sh
    check "completion for $sh" both is 0 out "doctor"
done
if command -v bash > /dev/null; then
    "$c" completion bash > "$T/comp.bash"
    run bash -n "$T/comp.bash"
    check "completion for bash is a script" is 0
    cat > "$T/comp.sh" <<'END'
cc-tui() { # the list of a team in which somebody gives names
    printf '%s\n' 'ID NAME TOOL' 'i1 $(touch${IFS}ran) demo' 'i2 `touch${IFS}ran` demo' 'i3 box;touch demo' \
        'i4 *.bash demo' 'i5 plain demo'
}
. "$1"
COMP_WORDS=(cc-tui "$2" "$3") COMP_CWORD=$4
_cc_tui
printf '%s\n' "${COMPREPLY[@]}"
END
    (cd "$T" && bash comp.sh comp.bash kill '' 2 > out 2> err; echo $? > rc)
    rc=$(cat "$T/rc")
    check "completion carries out no name" [ ! -e "$T/ran" ]
    check "nor looks for files" eval '! grep -q comp.bash "$T/out"'
    check "and offers all of them" grep -qx plain "$T/out"
    check "quoted for the shell" grep -qF 'box\;touch' "$T/out"
    (cd "$T" && bash comp.sh comp.bash kil '' 1 > out 2> err; COMP= bash comp.sh comp.bash kil x 1 > out; echo $? > rc)
    check "commands are completed" grep -qx kill "$T/out"
fi
run "$c" completion tcsh
check "completion for an unknown shell: 2" both is 2 err "bash, zsh and fish"

# --- the screen without a terminal ----------------------------------------------------
run "$c"
check "no terminal: 2 and what to use" both is 2 err "cc-tui --plain"
if command -v script > /dev/null && script -qec true /dev/null > /dev/null 2>&1; then
    run script -qec "TERM=dumb $c" /dev/null
    check "TERM=dumb: 2" both is 2 out "--plain"
    run script -qec "TERM= $c" /dev/null
    check "no TERM: 2" is 2
else
    skip "TERM=dumb: 2" "no script(1)"
    skip "no TERM: 2" "no script(1)"
fi

# --- how the process was started -------------------------------------------------------
run sh -c "'$c' version <&- >&- 2>&-"
check "every descriptor closed: 1" is 1
run sh -c "'$c' config show 2>&-"
check "stderr closed: no harm" both is 0 out "[screen]"
if [ "$(id -u)" -eq 0 ]; then
    cp "$c" "$T/suid" && chown 65534 "$T/suid" && chmod 4755 "$T/suid"
    run "$T/suid" version
    check "set-user-ID is refused" both is 1 err "set-user-ID"
    rm -f "$T/suid"
else
    skip "set-user-ID is refused" "not root"
fi

# --- decode ---------------------------------------------------------------------------
F=tests/fixtures/recordings
decode() { # file, arguments...
    file=$1; shift
    "$c" decode "$@" < "$file" > "$T/out" 2> "$T/err"
    rc=$?
}
decode $F/claude-plain.jsonl --tool claude
check "decode: status 0" both is 0 out '"kind":"turn_end"'
check "decode: no end was told" sh -c "! grep -q '\"kind\":\"exit\"' '$T/out'"
decode $F/claude-plain.jsonl --tool claude --exit-code 3
check "decode: the end with its status" out '"kind":"exit"'
decode $F/claude-sigint.jsonl --tool claude --signal INT
check "decode: the end by a signal" sh -c "tail -n 1 '$T/out' | grep -q '\"signal\":2'"
decode $F/claude-badmodel.jsonl --tool claude --exit-code 1 \
    --stderr-file $F/claude-badmodel.stderr.txt
check "decode: stderr of the agent" both is 0 out '"stderr_tail":"[claude-code:unrecognized_model]'
same() { # tool, case: the pieces in which the bytes come change nothing
    "$c" decode --tool "$1" --exit-code 0 < "$F/$2.jsonl" > "$T/want" 2> "$T/err" || return 1
    for bs in 1 7 4096; do
        dd bs=$bs if="$F/$2.jsonl" 2> "$T/err" | "$c" decode --tool "$1" --exit-code 0 > "$T/out" || return 1
        cmp -s "$T/want" "$T/out" || return 1
    done
}
for pair in claude:claude-multiturn codex:codex-tool opencode:opencode-tool pi:pi-rpc-multiturn \
    pi-json:pi-tool gemini:gemini-tool qwen:qwen-tool-partial opencode-serve:opencode-serve-events; do
    check "decode: ${pair#*:} in pieces" same "${pair%:*}" "${pair#*:}"
    check "decode: ${pair#*:} is understood" out "Done: hello.txt holds one line."
done
decode $F/pi-e401.jsonl --tool pi-json --exit-code 0
check "decode: failed, although it ended with 0" both is 0 out '"outcome":"failed","error_class":"auth","http_status":401'
decode /dev/null --tool claud
check "decode: unknown tool, near word" both is 2 err "did you mean 'claude'?"
decode /dev/null
check "decode: no tool" both is 2 err "--tool TOOL"
decode /dev/null --tool claude --signal NOPE
check "decode: unknown signal" both is 2 err "not 'NOPE'"
decode /dev/null --tool claude --stderr-file "$T/none"
check "decode: no such file" both is 5 err "$T/none"

# --- configuration --------------------------------------------------------------------
run "$c" config show
check "config show" both is 0 out "theme = auto"
run env CC_TUI_SCREEN_THEME=light "$c" --set net.poll=7 config show --json
check "config show: environment" out '{"name":"screen.theme","value":"light","source":"environment"}'
check "config show: flag" out '{"name":"net.poll","value":"7","source":"flag"}'
"$c" config example > "$T/out"
check "config example is the shipped file" cmp -s "$T/out" cc-tui.conf.example
run "$c" config keys
check "config keys" both is 0 out "| kill-all |"
printf '[screen]\nthme = light\nmax_fps = 500\n[keys]\nflyy = x\n' > "$T/c/cc-tui.conf"
chmod 600 "$T/c/cc-tui.conf"
run "$c" config check
check "config check: 1" is 1
check "config check: line and near word" out "cc-tui.conf:2: unknown key 'thme' (did you mean 'theme'?)"
check "config check: value" out "cc-tui.conf:3: 'max_fps' cannot be that: it is from 0 to 60"
check "config check: keys" out "cc-tui.conf:5:"
run "$c" config show
check "a bad line stops nothing" both is 0 err "cc-tui.conf:2:"
mkdir -p "$HOME/p/q"
printf '[screen]\ntheme = mono\n[net]\nca_file = /x\n' > "$HOME/p/.cc-tui"
run sh -c "cd '$HOME/p/q' && '$c' config show"
check "a project's file above" out "theme = mono"
check "a project's file is not trusted with certificates" err "not taken from a project's file"
run "$c" --config "$T/none" ls
check "a named file that is not there: 2" both is 2 err "$T/none"
mv "$T/c/cc-tui.conf" "$T/dot.conf"
ln -s "$T/dot.conf" "$T/c/cc-tui.conf"
run "$c" config check
check "a linked file is read" out "cc-tui.conf:2:"
rm "$T/c/cc-tui.conf"
run "$c" config check
check "no file: nothing is wrong" is 0
printf '[tool claude]\ntemplat = mine\n[tool mine]\nadapter = cloude\ncommand = x\n' > "$T/c/tools.conf"
printf '[model a/b]\ninputt = 2\noutput = much\n' > "$T/c/models.conf"
mkdir "$T/c/themes"
printf 'titel = red\n' > "$T/c/themes/mine.theme"
run "$c" --theme mine config check
check "config check: tools and models, too" is 1
check "tools.conf: line and near word" out "tools.conf:2: unknown key \"templat\", did you mean \"template\"?"
check "tools.conf: a tool that is left out" out "tools.conf:3: tool \"mine\" is left out: adapter \"cloude\" is not known, did you mean \"claude\"?"
check "models.conf: line and near word" out "models.conf:2: unknown key \"inputt\", did you mean \"input\"?"
check "models.conf: value" out "models.conf:3: output: expected USD"
check "a theme: its line" out "mine.theme:1:"
# A key that was written, or pasted, into a wrong line: no word of it is repeated anywhere.
K=kJ7xQ2mZ9pW4vT8sL3nR6yB1cD5fG0hA
mkdir -m 700 "$T/k" "$T/k/themes"
cat > "$T/k/cc-tui.conf" << END
$K
E2B_API_KEY $K
E2B_API_KEY=$K
$K==
[sandbox]
api_key = $K
$K = 5
timeout = $K
at_end = $K
kill_all_confirm = "$K
project = $K $K
[$K]
[$K
[screen]
theme = $K
ascii = $K
max_fps = $K
shell_detach_key = $K
[notify]
asks = $K
[keys]
kill = $K
$K = x
[usage]
budget_day = $K
END
cat > "$T/k/tools.conf" << END
$K
[$K
$K = 1
[$K]
[tool $K]
[tool t]
adapter = $K
command = '$K
$K = 1
needs = $K
needs_env = $K
env.$K-a = 1
timeout = $K
ask = $K
END
cat > "$T/k/models.conf" << END
$K
$K = 1
[model -$K]
[model m]
input = $K
date = $K
$K = 1
[sandbox]
vcpu_second = $K
END
printf '%s\n' "$K = red" > "$T/k/themes/one.theme"
printf '%s\n' "title = $K" > "$T/k/themes/two.theme"
secret() { # command...: told is something, that never
    CC_TUI_CONFIG_DIR=$T/k CC_TUI_STATE_DIR=$T/k/s CC_TUI_DATA_DIR=$T/k/d run "$@"
    cat "$T/out" "$T/err" | grep -q . && ! grep -q "$K" "$T/out" "$T/err" && ! grep -rq "$K" "$T/k/s" "$T/k/d"
}
check "a key in a wrong line of any file is not repeated" secret "$c" config check
check "... nor by what reads them by the way" secret "$c" ls
check "... nor in a theme, as a role" secret "$c" --theme one config check
check "... nor as a colour" secret "$c" --theme two config check
check "... nor by --set" secret "$c" --set "sandbox.timeout=$K" ls
printf '%s==\n' "$K" > "$T/k/env"
check "... nor in a file of variables" secret "$c" new --tool shell --env-file "$T/k/env" --dry-run
"$c" local stop --yes > /dev/null 2>&1
run "$c" doctor
check "doctor: tools.conf" out "tools.conf:2:"
rm -r "$T/c/tools.conf" "$T/c/models.conf" "$T/c/themes"
mkdir "$T/c/tools.conf"
run "$c" config check
check "a file that cannot be read" both is 1 out "tools.conf"
rmdir "$T/c/tools.conf"

# --- files that are named --------------------------------------------------------------
esc=$(printf '\033')
run "$c" new --tool demo --system-prompt "@$T/no${esc}[2Jfile"
check "a name in an error is told without its escapes" both err "nofile" no_escape err
printf 'be kind\0and more' > "$T/nul"
run "$c" new --tool demo --system-prompt "@$T/nul"
check "a prompt with a NUL is refused, not cut" both is 2 err "NUL byte"

# --- doctor ---------------------------------------------------------------------------
run "$c" doctor
check "doctor" both is 0 out "libcurl"
run "$c" doctor --json
check "doctor as JSON" out '{"what":"data folder","status":"ok"'
run env E2B_API_KEY=e2b_00000000000000000000canary1234 "$c" doctor
check "doctor: the key is masked" both out "****1234" is 0
check "doctor: the key is nowhere else" sh -c "! grep -rq canary '$T'"
run "$c" --data-dir /etc/passwd/x doctor
check "doctor: unusable data folder" both is 1 out "FAIL  data folder"

# --- sandboxes ------------------------------------------------------------------------
if ! "$B/cc-tui-local" probe > /dev/null 2>&1; then
    skip "sandboxes" "no namespaces here"
    echo "1..$n"
    exit $((bad != 0))
fi
run "$c" local status
check "local status: 1 when none runs" both is 1 out "not running"
run "$c" local env
check "local env: 5 when none runs" both is 5 err "local start"
run "$c" local start
check "local start" both is 0 out "runs"
run "$c" local status --json
check "local status as JSON" both is 0 out '"running":true'
run "$c" local env
check "local env" out "export E2B_API_KEY='e2b_"
api=$(sed -n "s/^export E2B_API_URL='\(.*\)'/\1/p" "$T/out")
run env E2B_API_KEY=e2b_0000000000000000 E2B_API_URL="$api" "$c" ls
check "a wrong key: 4" both is 4 err "****0000"
run env E2B_API_KEY=e2b_0000000000000000 E2B_API_URL=http://127.0.0.1:1 "$c" ls
check "no service: 6" both is 6 err "127.0.0.1:1"
run "$c" ls --json
check "ls of nothing" both is 0 out "[]"
run "$c" new --tool nosuch
check "new: unknown tool" both is 2 err 'no tool "nosuch"'
run "$c" new --tool demo --env 1X=2
check "new: a bad variable" both is 2 err "NAME=VALUE"
run "$c" new --tool demo --timeout never
check "new: a bad timeout" both is 2 err "--timeout"
run "$c" new demo
check "new: no argument in front of --" both is 2 err "behind --"
run "$c" new --tool demo --name box
check "new: prints the id alone" one_line
id=$(cat "$T/out")
run "$c" new --tool demo --name box
check "new: a name that is taken" both is 2 err '"box" is taken'
run sh -c "eval \"\$('$c' local env)\" && '$c' new --tool demo --name sdk-shell && '$c' kill sdk-shell --yes"
check "new: local where the SDK's variables are set" is 0
run "$c" ls -q
check "ls -q" sh -c "[ \"\$(cat '$T/out')\" = '$id' ]"
run "$c" ls --json
check "ls: E2B's names" out "[{\"sandboxID\":\"$id\",\"templateID\":"
check "ls: and ours" out '"name":"box","tool":"demo","project":"default","agentState":"'
run "$c" ls
check "ls: no colour into a file" sh -c "! grep -q '$(printf '\033')' '$T/out'"
run env CLICOLOR_FORCE=1 "$c" ls
check "ls: forced colour" grep -q "$(printf '\033')" "$T/out"
run env CLICOLOR_FORCE=1 NO_COLOR=1 "$c" ls
check "ls: NO_COLOR wins" sh -c "! grep -q '$(printf '\033')' '$T/out'"
run "$c" send box "run echo one-$((40 + 2))" --wait
check "send --wait: status of the turn" both is 0 out "exit status 0"
run sh -c "printf 'run echo from-stdin\n' | '$c' send '$id' - --wait --json"
check "send: text on stdin, JSON" both is 0 out "{\"sandboxID\":\"$id\",\"outcome\":\"ok\""
run "$c" send box "run echo alone"
check "send without --wait: handed over before we leave" both is 0 err "sent to $id"
run "$c" new --tool demo --name asked --prompt "run echo asked"
check "new with a prompt" one_line
i=0
until "$c" logs asked 2> /dev/null | grep -q '^asked' || [ $i -ge 50 ]; do i=$((i + 1)); done
check "new: the prompt was handed over" [ $i -lt 50 ]
run "$c" send nobody hello
check "send: unknown sandbox: 5" both is 5 err "nobody"
printf 'run echo \377' > "$T/bad"
timeout 20 "$c" send box - --wait < "$T/bad" > "$T/out" 2> "$T/err"
rc=$?
check "send: no UTF-8: 2, and no waiting" both is 2 err "UTF-8"
run "$c" new --tool shell --name sh
run "$c" send sh "echo answer-here"
run "$c" logs sh
check "send: what was sent stands before its answer" sh -c \
    "[ \"\$(grep -n answer-here '$T/out' | sed q)\" = '1:> echo answer-here' ]"
run "$c" send sh "echo the reason; sh -c 'exit 4'" --wait
check "send --wait: a command that fails: what it put out, and its status" is 1
check "... which is all" last_lines 9 'the reason|exit status 4'
run "$c" send sh "echo after it" --wait
run "$c" logs sh
check "its end stands before what was sent next" last_lines 4 'the reason|! exit status 4|> echo after it|after it'
run "$c" kill sh --yes
run "$c" send box ""
check "send: empty: 2" both is 2 err "the message is empty"
run "$c" new --tool demo --name box2
run "$c" send box box2 -- 'run echo to-{name} {{name}}'
check "send: several, one message" both is 0 err "sent to $id"
check "send: several: a line for each" lines err 2
run "$c" logs box2
check "send: several: each has its own words" out "to-box2 {name}"
run "$c" send box2 "$("$c" ls -q | grep -v "$id" | tail -n 1)" box2 -- 'run echo said-{name}'
check "send: who is named twice gets it once" both is 0 lines err 1
each_time() { # words of what it says, command...
    words=$1
    shift
    for _ in 1 2 3 4 5; do "$@" 2>&1 | grep -q "$words" || return 1; done
}
check "projects ls counts what lives" each_time '"name":"default".*"sandboxes":3' "$c" projects ls --json
run "$c" send box nobody -- x
check "send: several, one unknown: 5, and nothing is sent" both is 5 err "nothing was sent"
run "$c" send box fix the login
check "send: a text without quotes is not many sandboxes: 2" both is 2 err "stands in quotes"
run "$c" send --all --dry-run hi
check "send --all --dry-run" both is 0 err "would send it: $id box"
run "$c" send --all box hi
check "send --all with a name: 2" both is 2 err "do not go together"
run "$c" send box "run sleep 60"
run "$c" send box "run echo at-once" --now --wait
check "send --now does not wait for the turn" both is 0 out "exit status 0"
run "$c" new --tool claude --env ANTHROPIC_API_KEY=sk-ant-not-one --name unborn
check "new: no such program: 5" is 5
timeout 20 "$c" send unborn hello --wait > "$T/out" 2> "$T/err"
rc=$?
check "send --wait to an agent that did not start ends" both is 1 err "no agent runs"
run "$c" kill unborn --yes
run "$c" logs box
check "logs" both is 0 out "one-42"
check "logs: stdin's message" out "from-stdin"
run "$c" logs box --json
check "logs as events" both is 0 out '"kind":"turn_end"'
"$c" logs box --raw > "$T/raw" 2> "$T/err"
"$c" decode --tool demo < "$T/raw" > "$T/out"
"$c" logs box --json > "$T/events" 2> "$T/err"
check "logs --raw decoded is logs --json" cmp -s "$T/out" "$T/events"
run sh -c "'$c' logs box --raw > /dev/full"
check "output to a full disk: 1 and why" both is 1 err "cannot be written"
run sh -c "'$c' logs box --raw >&-"
check "closed stdout: 1" is 1
run sh -c "{ '$c' logs box --raw; echo \$? > '$T/pipe'; } | :"
check "a reader that left: nothing on stderr" no_err
# a file goes along by --file; an @ in the text is text
printf 'one\ntwo\n' > "$T/note.txt"
run "$c" send box "look @$T/none at it" --file "$T/note.txt" --file "$T/note.txt" --wait
check "send --file" is 0
run "$c" export box --format json
check "send: an @ in the text is text" out "look @$T/none at it"
check "send --file: its text goes along, once" out "--- $T/note.txt ---\\none\\ntwo\\n--- end of $T/note.txt ---\""
run "$c" send box hello --file "$T/none"
check "send --file: one that is not there" both is 5 err "@$T/none cannot go along"
run "$c" send box hello --file "$c"
check "send --file: one that is no text" err "$c"
time_left() { # of the box: its seconds are between two numbers
    "$c" ls --json > "$T/ls"
    ends=$(sed 's/"sandboxID"/\n&/g' "$T/ls" | grep '"name":"box"' | sed 's/.*"endAt":"\([^"]*\)".*/\1/')
    left=$(($(date -d "$ends" +%s) - $(date +%s)))
    [ "$left" -ge "$1" ] && [ "$left" -le "$2" ]
}
run "$c" timeout box 20m
check "timeout" both is 0 err "$id set"
check "timeout: its end is moved" time_left 1080 1201
run "$c" timeout box never
check "timeout: no time" both is 2 err "not 'never'"
run "$c" pause box
check "pause" both is 0 err "$id paused"
run "$c" ls
check "paused is shown" out " paused "
run "$c" send box hello
check "send to a paused one is refused" both is 1 err "paused"
run "$c" send box box2 --json -- hello
check "send: some of several cannot: 3" both is 3 out '"name":"box","state":"failed"'
run "$c" kill box2 --yes
run "$c" resume box
check "resume" both is 0 err "$id resumed"
run "$c" --readonly kill box --yes
check "kill with --readonly: 2" both is 2 err "does nothing with --readonly"
run "$c" new --tool shell --name sh2 --env "WORD=kept-7"
check "new: a shell" is 0
run "$c" send sh2 "exit 3" --wait --json
check "send: failure is 1, the status in JSON" both is 1 out '"exitCode":3'
run "$c" send sh2 true --wait
check "send: to a dead agent it waits" both is 1 err "goes to it after a restart"
run "$c" restart sh2
check "restart" is 0
run "$c" send sh2 'echo "word: $WORD"' --wait
check "restart: the variables are there" both is 0 out "word: kept-7"
run "$c" send sh2 'cat /proc/[0-9]*/comm | grep -cx tail' --wait
check "no follower of an earlier command is left" grep -qx 1 "$T/out"
run "$c" new --name fleeting -- sh -c 'echo "two  words"; cat /dev/null'
check "new: a command" is 0
"$c" new --tool shell --name slow > /dev/null 2>&1
"$c" send slow "sleep 60" --wait > "$T/out" 2> "$T/err" &
pid=$!
i=0 # the first message makes the agent's stream; then it waits
until "$c" logs slow --raw 2> /dev/null | grep -q . || [ $i -ge 50 ]; do i=$((i + 1)); done
kill -INT $pid
wait $pid
rc=$?
check "SIGINT while waiting: 130" is 130
run "$c" --data-dir "$T/d2" ls -q
check "another data folder lists the same" out "$id"
head -c 20000 /dev/urandom > "$T/d2/cc-tui.db"
rm -f "$T/d2/cc-tui.db-wal" "$T/d2/cc-tui.db-shm"
run "$c" --data-dir "$T/d2" ls
check "a damaged database stops nothing" is 0
check "a damaged database is told" err "cc-tui: "
check "a damaged database is kept" sh -c "ls '$T/d2' | grep -q damaged"
run "$c" --data-dir /etc/passwd/x ls
check "an unusable data folder stops nothing" is 0
check "an unusable data folder is told" err "/etc/passwd/x"
# what was said: found, and written to files
run "$c" search from-stdin
check "search: what was said, with its sandbox" both is 0 out "box  you: run echo from-stdin"
run "$c" search --json -- echo -from
check "search: words that must not be there" both is 0 out '"text":"run echo one-42"'
run "$c" search in:nowhere echo
check "search: nothing found: 5" both is 5 err "nothing was said"
run "$c" search 'one-4*' in:box -q
check "search: begin of a word, in one sandbox" both is 0 lines out
run "$c" export box
check "export: Markdown" both is 0 out "## you"
run "$c" export box "$T/box.jsonl"
check "export: to a file" both is 0 err "$T/box.jsonl"
run cat "$T/box.jsonl"
check "export: JSON lines" both out '"type":"message"' out '"type":"sandbox"'
check "export: private" sh -c "[ \"\$(stat -c %a '$T/box.jsonl')\" = 600 ]"
run "$c" export box "$T/box.jsonl"
check "export: a file that is there stays" both is 1 err "is there already"
run "$c" export box "$T/box.pdf"
check "export: unknown ending: 2" both is 2 err ".jsonl"
run "$c" export box "$T/no/box.md"
check "export: no such folder" both is 1 err "$T/no/box.md"

run "$c" kill box --dry-run
check "kill --dry-run" both is 0 out "$id"
if command -v script > /dev/null && script -qec true /dev/null > /dev/null 2>&1; then
    echo n | script -qec "$c kill box" /dev/null > "$T/out" 2> "$T/err"
    rc=$?
    check "kill asks; no means 7" both is 7 out "kill 1 sandbox: box? [y/N]"
    echo n | script -qec "$c kill --all" /dev/null > "$T/out" 2> "$T/err"
    rc=$?
    check "kill --all asks with the number" both is 7 out "sandboxes of project default"
    run script -qec "$c kill box --no-input" /dev/null
    check "kill --no-input: 2" is 2
else
    skip "kill asks; no means 7" "no script(1)"
    skip "kill --all asks with the number" "no script(1)"
    skip "kill --no-input: 2" "no script(1)"
fi
run "$c" kill box --yes --json
check "kill: proven" both is 0 out '{"listed":1,"killed":1,"alreadyGone":0,"failed":[],"stillAlive":[]'
check "kill: verified" out '"verified":true'
run "$c" kill box nobody --yes
check "kill: unknown: 5" both is 5 err "no sandbox 'nobody'"
run "$c" local stop
check "local stop with sandboxes wants --yes: 2" both is 2 err "--yes"
run "$c" --readonly local stop --yes
check "local stop with --readonly: 2" both is 2 err "does nothing with --readonly"
run "$c" logs slow --dry-run
check "what knows no --dry-run refuses it: 2" both is 2 err "no option '--dry-run'"
run "$c" kill --all --dry-run --json
check "kill --all --dry-run" both is 0 out '"dryRun":true'
run "$c" kill --all --yes --json
check "kill --all" both is 0 out '"verified":true'
run "$c" ls --json
check "nothing is left" out "[]"
# one that somebody else ended is not shown by the first list, and known by the second
run "$c" new --tool demo --name elsewhere
id=$(cat "$T/out")
if command -v curl > /dev/null; then
    (eval "$("$c" local env)" && curl -s -X DELETE -H "X-API-Key: $E2B_API_KEY" \
        "$E2B_API_URL/sandboxes/$id")
else
    "$c" --data-dir "$T/other" kill "$id" --yes > /dev/null 2>&1
fi
run "$c" ls -q
check "ls: one ended elsewhere is not up" no_out
run "$c" ls --all
check "ls: and then it is known to be gone" sh -c "! grep -q 'elsewhere.*running' '$T/out'"
run "$c" ls --all
check "ls --all shows what was" out "killed"
# one whose time was up has timed out, and is not gone before its time
run "$c" new --tool shell --name brief --timeout 1s
id=$(cat "$T/out")
i=0
while "$c" ls -q | grep -q "$id" && [ $i -lt 400 ]; do i=$((i + 1)); done
run "$c" ls --all
check "ls --all: one whose time was up" sh -c "grep 'brief.* killed .*timed out' '$T/out'"
run "$c" ls --all --json
check "ls --all --json: that, too" out '"gone":"timed out"'
# an agent that failed: its VM is there still, and that is said
run "$c" new --tool shell --name broken -- exit 3
i=0
until run "$c" logs broken && run "$c" ls --json && out '"state":"error"' || [ $i -ge 100 ]; do
    i=$((i + 1))
done
run "$c" ls
check "ls: an error whose VM bills on" sh -c "grep 'broken.* error .*VM bills' '$T/out'"
run "$c" ls --json
check "ls --json: that, too" out '"vmUp":true'
run "$c" kill broken --yes
run "$c" new --tool shell --name last
check "one more" is 0
run "$c" local stop --yes
check "local stop" is 0
run "$c" ls -q
check "what ended with the provider is not listed" sh -c "[ ! -s '$T/out' ]"
run "$c" local stop
check "local stop with nothing in it asks nothing" is 0
check "nothing was written elsewhere" sh -c "[ -z \"\$(find '$HOME' -type f ! -name .cc-tui)\" ]"
end
