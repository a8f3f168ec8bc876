#!/bin/sh
# What agents ask, answered by commands: the real program, the real local provider, the demo
# agent. Also two commands at once, and commands that are killed. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin answer namespaces
shown=30
run() { # arguments of cc-tui
    timeout 60 "$c" --local "$@" > "$T/out" 2> "$T/err" < /dev/null
    rc=$?
}
both() { is "$1" && err "$2"; }
asks_now() { run answer "$1" && is 0 && out "$2"; }
asks() { until_true 30 asks_now "$1" "$2"; } # its name, a word of the question
idle_now() { run answer "$1" --json && [ "$(cat "$T/out")" = '[]' ]; }
idle() { until_true 30 idle_now "$1"; } # until nothing is asked

# --- whether it asks ---------------------------------------------------------------
run new --tool demo --ask perhaps
check "asking is yes or no" both 2 "yes or no"
run new --tool shell --ask yes
check "a tool that cannot ask" both 2 "cannot ask"
run new --tool demo --name free
run send free --wait 'run echo I-am-free'
check "by default none asks" is 0
run answer
check "nobody asks anything" both 0 "no agent asks you anything"
run answer free 1
check "who asks nothing is not answered" both 5 "asks you nothing"
printf '[tool demo]\nask = yes\n' > "$T/c/tools.conf"
run new --tool demo --name box
check "the tool's policy" is 0
run new --tool demo --ask no --name quiet
run send quiet --wait 'run echo still-free'
check "the word of who makes it stands above the policy" is 0

# --- answers -----------------------------------------------------------------------
run send box 'run echo first-$((1 + 1))'
check "the agent asks" asks box 'run `echo first'
check "with its choices" out '  3) no'
run answer --json
check "as data" grep -q '"name":"box".*"choices":\["yes","yes, and do not ask again for Bash","no"\],"words":true' "$T/out"
run answer box --question nonesuch 1
check "a question that is not open" both 5 "is not open"
run answer box yes
check "by the label" both 0 "answered: yes"
check "the question is closed" idle box
run logs box
check "and what it asked for was done" out first-2
check "the log says how it ended" out '  answered: yes'

# --- two at once -------------------------------------------------------------------
run send box 'run echo x >>count'
asks box count
timeout 60 "$c" --local answer box 1 > "$T/one" 2>&1 & one=$!
timeout 60 "$c" --local answer box 1 > "$T/two" 2>&1 & two=$!
wait $one; first=$?
wait $two; second=$?
rc=$first$second
check "of two answers one counts" eval '[ "$first" -eq 0 ] || [ "$second" -eq 0 ]'
check "the other is told so, if it was not first" \
    eval '[ "$first$second" = 00 ] || grep -qE "already|faster|not open|asks you nothing" "$T/one" "$T/two"'
check "it was closed once" idle box

# --- killed in between ---------------------------------------------------------------
run send box 'run echo x >>count'
asks box count
"$c" --local answer box 1 > /dev/null 2>&1 & pid=$!
sleep 0.2 # anywhere in between: what must hold holds whenever it dies
kill -9 $pid 2> /dev/null
wait $pid 2> /dev/null
run answer box 1 # it was not given, or it was
idle box
run send box 'run wc -l <count'
asks box wc
run answer box 1
idle box
run logs box
check "each command ran once, whoever was killed" grep -qx 2 "$T/out"

# --- who waits is told ---------------------------------------------------------------
timeout 60 "$c" --local send box --wait 'run echo done-$((4 + 4))' > "$T/waited" 2> "$T/told" &
waiter=$!
asks box done
run answer box 1
wait $waiter
rc=$?
check "send --wait goes on after the answer" is 0
check "and said that it was asked" grep -qF 'box asks you: run `echo done-' "$T/told"

# --- very many at once -----------------------------------------------------------------
# A turn that asks 1500 things, one that is interrupted by hand, and one that asks nothing.
cat > "$T/flood" << 'END'
say() { echo "{\"type\":\"$1\",\"properties\":{\"sessionID\":\"s\",$2}}"; }
echo '{"type":"session.created","properties":{"info":{"id":"s"}}}'
while IFS= read -r line; do
    case $line in
    *ask-me*)
        say session.status '"status":{"type":"busy"}'
        i=0
        while [ $((i = i + 1)) -le 1500 ]; do
            say permission.asked "\"id\":\"p$i\",\"permission\":\"bash\",\"metadata\":{\"command\":\"do $i\"}"
        done ;;
    */permission/*)
        id=${line#*/permission/}
        say permission.replied "\"requestID\":\"${id%%/*}\",\"reply\":\"once\"" ;;
    */abort*) say session.idle '"x":1' ;;
    *work*) say session.status '"status":{"type":"busy"}' ;;
    esac
done
END
cat >> "$T/c/tools.conf" << END
[tool flood]
adapter = opencode-serve
template = demo
needs = none
command = sh -c 'eval "\$(echo $(base64 -w 0 < "$T/flood") | base64 -d)"'
END
run new --tool flood --name many
check "an agent that asks very much" is 0
timeout 60 "$c" --local send many --wait 'ask-me' > "$T/waited" 2> "$T/told" &
waiter=$!
asks many 'do 1`'
check "the oldest is first" [ "$(sed -n 1p "$T/out")" = 'many  run `do 1`?' ]
run answer many 1
run answer many 1
check "each answer is for the next one" asks many 'do 3`'
run answer many --json
check "what is answered is not asked again" eval '! grep -qE "do [12]\`" "$T/out"'
run interrupt many
wait $waiter
check "who waits is told each question once" \
    eval '[ -s "$T/told" ] && ! grep "asks you" "$T/told" | sort | uniq -d | grep -q .'
check "behind the turn nothing is asked" idle many
run send many 'work'
run ls
check "nor in the next turn" grep -q "many .* working" "$T/out"
run answer many 1
check "which the commands agree about" both 5 "asks you nothing"

# --- an agent that never began ---------------------------------------------------------
run new --tool shell --name broken --repo git://127.0.0.1:1/none -- true
check "its step fails" is 1
run answer broken
check "it is known to ask nothing" both 0 "no agent asks you anything"
run answer
check "and nobody else waits for it" eval '! grep -q "not every sandbox" "$T/err"'

end
