#!/bin/sh
# What a terminal would act on (escape sequences, CR, C1, bidi) is in names, arguments, files,
# tools and answers of the service; none of it comes out of any command, and JSON says it by
# escapes. A provider of its own. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh
begin print
# a title, a cleared screen, the line's begin, CSI in one byte of C1, right to left, DEL
X=$(printf 'a\033]0;owned\007b\033[2Jc\rd\302\2332Je\342\200\256f\177g')
# what no rule about words refuses
W=$(printf 'a\302\2332Jb\342\200\256c')

more() { cat -v "$T/out" "$T/err" | head -n 12; }
quiet() { # nothing in them that a terminal acts on
    ! cat "$T/out" "$T/err" | LC_ALL=C grep -aqP \
        '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]'
}
some() { cat "$T/out" "$T/err" | grep -q .; }
try() { # what, arguments...
    what=$1; shift
    run "$c" "$@"
    check "$what" some
    check "$what: nothing acts" quiet
}

# --- arguments ------------------------------------------------------------------------------
try "an unknown command" "$X"
try "an unknown flag" "--$X"
try "a flag's value" --set "$X" ls
try "a flag's value, 2" --set "screen.theme=$X" config show
try "a configuration file" --config "$T/$X" ls
try "a project" --project "$X" ls
try "an unknown shell" completion "$X"
try "a provider" keys add "$X"
try "a setting" projects set default "$X"
try "a setting's value" projects set default "timeout=$X"
try "a variable" projects env default "$X=1"
try "a name" projects add "$X"
try "a file" new --local --tool demo --system-prompt "@$T/$X"
try "a stderr file" decode --tool claude --exit-code 1 --stderr-file "$T/$X"
try "what --help explains" help "$X"
CC_TUI_PROJECT="$X" "$c" ls > "$T/out" 2> "$T/err"
check "an environment variable: nothing acts" quiet

# --- files ----------------------------------------------------------------------------------
printf '[tool claude]\nlabel = "La%s"\nneeds = openai\n%s = 1\n[tool %s]\nadapter = %s\n' \
    "$X" "$X" "$X" "$X" > "$T/c/tools.conf"
printf '[model %s]\nprice = %s\n' "$X" "$X" > "$T/c/models.conf"
printf '[screen]\ntheme = "%s"\n%s = 3\n[keys]\nkill = "%s"\n' "$X" "$X" "$X" > "$T/c/cc-tui.conf"
chmod 600 "$T"/c/*
try "what is wrong in files" config check
try "notes before a command" config show
try "notes of doctor" doctor
try "doctor, JSON" doctor --json
rm "$T/c/cc-tui.conf"
try "a tool's label" new --local --tool claude --dry-run
rm "$T"/c/tools.conf "$T"/c/models.conf

# --- what is stored ---------------------------------------------------------------------------
"$c" projects env default "V=$X" > /dev/null 2>&1
"$c" projects set default "prompt=$X" > /dev/null 2>&1
try "a variable's value" projects show
try "JSON" projects show --json
check "JSON: an escape sequence by its escape" out 'a\u001b]0;owned\u0007b\u001b[2Jc'
check "JSON: C1, bidi and DEL by theirs" out 'd\u009b2Je\u202ef\u007fg'

# --- the service, the agent ---------------------------------------------------------------------
try "what the service says" new --local --tool shell --template "$W" -- true
"$c" new --local --tool demo --name box --prompt hello > /dev/null 2>&1
try "a sandbox" send --local "$X" hello
try "a process" watch --local box "$X"
try "a span" timeout --local box "$X"
try "an answer" send --local box "$X" --wait
try "the transcript" logs --local box
try "the transcript, JSON" logs --local box --json
try "the transcript, written" export --local box
try "the transcript, JSON lines" export --local box --format json
try "a search" search --local "owned$W"
try "a search, JSON" search --local owned --json
try "a kill" kill --local "$X" --yes
try "usage, CSV" usage --csv
end
