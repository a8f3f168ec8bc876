#!/bin/sh
# Recorded runs played again as text: files of agents' streams and of events. No provider. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin replay
shown=31
files=$PWD/tests/fixtures/recordings

run "$c" replay "$files/claude-tool.jsonl" --tool claude --speed max
check "a stream of claude" both is 0 out "0:00  claude: I will create the file now."
check "a tool when it begins" out "0:00  Bash, runs: printf 'hello from the agent"
check "and its output when it has ended" out "hello from the agent"
check "said to be a replay, twice" eval 'err "replay of claude-tool.jsonl, claude, 0:0" && \
    err "nothing runs, nothing is billed" && err "the end of the replay"'
check "nothing is kept by it" eval '[ ! -e "$T/d" ] && ! ls "$T/home" | grep -q .'
run "$c" replay "$files/claude-tool.jsonl" --tool claude --speed max -q
check "-q: the text alone" eval "is 0 && no_err"
run "$c" replay "$files/opencode-tool.jsonl" --tool opencode --speed 1000
check "by another tool, at its pace" both is 0 err "the end of the replay"
"$c" decode --tool codex < "$files/codex-tool.jsonl" > "$T/events"
cat "$T/events" "$T/events" > "$T/twice"
run "$c" replay "$T/events" --speed max
check "events, as decode prints them" both is 0 err "replay of events, agent"
one=$(grep -c '^[0-9]*:[0-9][0-9]  ' "$T/out")
run "$c" replay "$T/twice" --speed max
check "one run after the other" [ "$(grep -c '^[0-9]*:[0-9][0-9]  ' "$T/out")" -eq $((2 * one)) ]
run "$c" replay "$T/events" --speed max --from 1h
check "from behind its end" eval 'is 0 && [ "$(wc -l < "$T/out")" -le 1 ]'
run "$c" replay "$T/events" --speed max --from 9223372036854775807
check "from behind all time" eval 'is 0 && [ "$(wc -l < "$T/out")" -le 1 ]'
run "$c" replay "$T/events" --tool claude --speed max
check "a stream of another agent: nothing to play, or notices" eval 'is 5 || is 0'
run "$c" replay "$files/claude-tool.jsonl" --speed max
check "a stream without its tool" both is 2 err "say whose, by --tool"
run "$c" replay "$files/claude-tool.jsonl" --tool nonesuch
check "a tool that is none" both is 2 err "unknown tool 'nonesuch'"
run "$c" replay ./nonesuch
check "no such file" both is 5 err "nonesuch"
: > "$T/empty"
run "$c" replay "$T/empty"
check "an empty file" both is 5 err "nothing is kept"
head -c 900 "$T/events" > "$T/cut"
run "$c" replay "$T/cut" --speed max
check "the last line of one that was still written is left out, and it says so" \
    both is 0 err "its last line was not written to its end"
{ cat "$T/events"; echo "no event"; cat "$T/events"; } > "$T/spoilt"
run "$c" replay "$T/spoilt" --speed max
check "a line in its middle that is no event: which one" \
    both is 0 err "left out: line $(($(wc -l < "$T/events") + 1)), which is no event"
check "and all others are played" [ "$(grep -c '^[0-9]*:[0-9][0-9]  ' "$T/out")" -eq $((2 * one)) ]
i=0
{ cat "$T/spoilt"; while [ $i -lt 3000 ]; do cat "$T/events"; i=$((i + 1)); done } > "$T/long"
run "$c" replay "$T/long" --speed max -q
check "the same in one that takes its time to be read, whatever is said else" \
    both is 0 err "left out: line $(($(wc -l < "$T/events") + 1)), which is no event"
check "all of it" [ "$(grep -c '^[0-9]*:[0-9][0-9]  ' "$T/out")" -eq $((3002 * one)) ]
mkfifo "$T/fifo"
run "$c" replay "$T/fifo"
check "a fifo: nobody is waited for" both is 1 err "is not a regular file"
run "$c" replay "$T/"
check "a folder" both is 1 err "is not a regular file"
run "$c" replay "$T/events" --speed fast
check "a speed that is none" both is 2 err "'--speed' is a number"
run "$c" replay "$T/events" --from noon
check "a time that is none" both is 2 err "'--from' is a time"
run "$c" replay nobody --tool claude
check "a tool of a sandbox" both is 2 err "'--tool' goes with a file"
run "$c" replay "$T/events" --json
check "no JSON" both is 2 err "logs --json"
run "$c" replay nobody
check "a sandbox that nobody knows" both is 5 err "there is no sandbox 'nobody'"
"$c" replay "$files/codex-long.jsonl" --tool codex --speed 0.01 > "$T/out" 2> "$T/err" &
pid=$!
until_true 20 err "replay of"
kill -INT $pid
wait $pid
rc=$?
check "^C ends it" is 130
end
