#!/bin/sh
# Designer and checker by the commands: the real program, the real local provider, demo
# agents whose prompts say what each of their turns comes to. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin pair namespaces
shown=30 limit=60
out() { grep -qE -e "$1" "$T/out"; }
both() { is "$1" && out "$2"; }
# name, turns of the designer, of the checker, further words
pair() {
    name=$1
    printf 'You design. [[turns:%s]]\n' "$2" > "$T/$1.d"
    printf 'You check. [[turns:%s]]\n' "$3" > "$T/$1.c"
    shift 3
    set -- "$c" --local pair --designer "${D:-demo}" --checker "${C:-demo}" --name "$name" \
        --designer-prompt "$T/$name.d" --checker-prompt "$T/$name.c" --template demo \
        --prompt 'write it down' "$@"
    run "$@"
}
logs() { run "$c" --local logs "$1"; }
# As many turns as that, each with a cost, no message twice, all in the one sandbox.
turns() {
    [ "$(grep -c '^-- this turn of the' "$T/out")" -eq "$1" ] &&
        [ "$(grep -c '^> @' "$T/out")" -eq "$1" ]
}
shows() { # sandbox, what: until `ls` does, for 20 s
    i=0
    while [ $i -lt 200 ]; do
        "$c" --local ls > "$T/out" 2> "$T/err"
        grep -qE "$1 .*$2" "$T/out" && return 0
        sleep 0.1
        i=$((i + 1))
    done
    return 1
}
working() { # until its designer says something, for 20 s
    i=0
    while [ $i -lt 200 ]; do
        "$c" --local logs "$1" > "$T/out" 2> "$T/err"
        grep -qE "$2" "$T/out" && return 0
        sleep 0.1
        i=$((i + 1))
    done
    return 1
}
one_vm() { [ "$("$c" --local ls | grep -c " $1 ")" -eq 1 ]; }

# --- it ends on a pass ------------------------------------------------------------------
pair pass plain,second,tool fail,none,pass --rounds 5 --wait
check "a pass ends it" both 0 '^passed  round 2 of 5$'
check "turns, tokens and cost of the designer" out '^designer  demo  2 turns  2274 tokens in, .* \$0\.00'
check "and of the checker" out '^checker   demo  3 turns  3522 tokens in, .* \$0\.0[01]'
logs pass
check "every turn is in the transcript, with its cost" turns 5
check "the checker was asked for its verdict" out 'Your answer had no verdict'
check "in one sandbox" one_vm pass
run "$c" --local ls --json
check "ls --json has the pair" out '"pair":\{"state":"passed".*"checker":\{"tool":"demo".*"turns":3'

# --- it ends on the cap, and goes on by the user's word ---------------------------------
pair cap plain,second fail,fail,pass --rounds 1 --wait
check "the cap ends it" both 1 '^capped  round 1 of 1'
run "$c" --local pair resume cap --rounds 1 --wait
check "one more round is not enough" both 1 '^capped  round 2 of 2'
run "$c" --local pair reject cap 'it is not blue' --wait
check "rejected with a word it goes on" both 0 '^passed  round 3 of 3'
logs cap
check "the designer was told the word" out 'it is not blue'
check "and no turn came twice" turns 6
run "$c" --local send cap '@checker are you sure?' --wait
check "a message to one of them" both 0 'PASS'
run "$c" --local pair accept cap
check "what passed cannot be accepted" err 'nothing to accept'

# --- a new task in the same sandbox --------------------------------------------------------
printf 'again [[turns:second]]\n' > "$T/more.d"
printf 'again [[turns:pass]]\n' > "$T/more.c"
run "$c" --local pair cap --designer demo --checker demo --prompt 'one thing more' --wait \
    --designer-prompt "$T/more.d" --checker-prompt "$T/more.c"
check "a pair that has ended takes a new task" both 0 '^passed  round 1 of 5'
logs cap
check "in the same transcript, its agents begin anew" out '> @checker again'
check "the earlier turns are there once" turns 9
check "in the same sandbox" one_vm cap

# --- killed between turns and in one ----------------------------------------------------
printf 'd [[turns:plain,nap,second]]\n' > "$T/kill.d"
printf 'c [[turns:nap,fail,pass]]\n' > "$T/kill.c"
"$c" --local pair --designer demo --checker demo --name kill --rounds 5 --prompt 'x' --wait \
    --designer-prompt "$T/kill.d" --checker-prompt "$T/kill.c" > "$T/out" 2> "$T/err" < /dev/null &
pid=$!
working kill 'I will rest'
kill -9 $pid
wait $pid 2> /dev/null
"$c" --local pair wait kill > "$T/out" 2> "$T/err" < /dev/null &
pid=$!
shows kill 'designer 2/5'
kill -9 $pid
wait $pid 2> /dev/null
shows kill 'designer 2/5'
run "$c" --local pair wait kill
check "killed twice it passes all the same" both 0 '^passed  round 2 of 5'
logs kill
check "with every turn once" turns 5

# --- stop and resume ---------------------------------------------------------------------
pair stop slow,plain pass
check "it begins without being waited for" is 0
working stop 'w3'
run "$c" --local pair stop stop
check "stopped in a turn" is 0
shows stop 'stopped 1/5'
check "it says so" out 'stopped 1/5'
run "$c" --local pair resume stop --wait
check "resumed it goes on" both 0 '^passed  round 1 of 5'
logs stop
check "the designer was told that it was broken off" out 'broken off'
run "$c" --local pair stop stop
check "nothing is left to stop" err 'nothing to stop'

# --- an agent that fails -----------------------------------------------------------------
pair bad plain,second fail,e401 --wait
check "a refused key ends it with the reason" both 1 'the checker \(demo\): .*401.*check the provider'
run "$c" --local pair accept bad
check "the user may accept it" is 0
shows bad 'passed 2/5'
check "then it has passed" out 'passed 2/5'

# --- other agents' ways, one with a session that counts in all ----------------------------
cat > "$T/c/tools.conf" <<'END'
[tool acodex]
adapter = codex
command = "demo-agent --as codex exec --json -"
template = demo
resume = exec resume
[tool apen]
adapter = opencode
command = "demo-agent --as opencode run --format json"
template = demo
resume = --session
[tool api]
adapter = pi
command = "demo-agent --as pi --mode rpc"
template = demo
resume = --session
END
D=acodex C=apen pair mixed plain,second,tool fail,pass --wait
check "codex works, opencode checks" both 0 '^passed  round 2 of 5'
check "the total of a session is counted once" out '^designer  acodex  2 turns  2274 tokens in'
D=api C=acodex pair pies tool,plain fail,e401 --wait
check "pi works, codex fails" both 1 'the checker \(acodex\): .*401'

# --- refused before anything is made -------------------------------------------------------
run "$c" --local pair --designer shell --checker demo --prompt x
check "a tool without turns" err 'cannot take turns'
run "$c" --local pair --designer demo --checker nobody --prompt x
check "a tool that is not there" err 'no tool "nobody"'
run "$c" --local pair --designer demo --prompt x
check "one role alone" err 'wants --checker'
run "$c" --local new --tool pair
check "new makes no pair" err 'a pair wants two roles'
run "$c" --local pair stop nothere
check "no such sandbox" is 5
run "$c" --local new --tool demo --name single
run "$c" --local pair single --designer demo --checker demo --prompt x
check "another agent's sandbox" err 'was not made for a pair'

end
