#!/bin/sh
# Run suites and count. Arguments: suite names (unit golden fuzz cli e2e sdk) or
# one test like unit/test_buf. Every test program prints TAP ("ok N - name",
# "not ok N - name", "ok N - name # SKIP why"); the sum is the last line.
# B = build folder, J = programs at a time (they mostly wait).
set -u
cd "$(dirname "$0")/.."
export B CMOCKA_MESSAGE_OUTPUT=TAP
umask 022 # what tests write for the program is as most would write it
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=0:exitcode=66}"
out=$B/test-output

judge() { # name, log, status, seconds: what is said of it
    # cmocka says "not ok N # SKIP name" for a test that was left out
    grep -E '^[[:space:]]*(not )?ok [0-9]+' "$2" |
        sed -E 's/^([[:space:]]*)not (ok [0-9]+.*# SKIP)/\1\2/' > "$2.tap"
    n=$(grep -cE '^[[:space:]]*ok ' "$2.tap"); f=$(grep -cE '^[[:space:]]*not ok ' "$2.tap")
    plan=$(sed -nE 's/^[[:space:]]*1\.\.([0-9]+).*/\1/p' "$2" | awk '{ s += $1 } END { print s + 0 }')
    if [ "$3" -ne 0 ] && [ "$f" -eq 0 ] || [ "$((n + f))" -ne "$plan" ] || [ "$plan" -eq 0 ]; then
        echo "not ok - $1 ended with status $3" >> "$2.tap"
        echo "FAIL $1: ended with status $3 after $((n + f)) of $plan checks; see $2"
        tail -n 25 "$2" | sed 's/^/    /'
    elif [ "$f" -ne 0 ]; then
        echo "FAIL $1: $f of $((n + f)); see $2"
        # what a check that failed never freed says nothing of why it did
        sed '/^==[0-9]*==ERROR: LeakSanitizer/,/^SUMMARY: /{/^SUMMARY: /!d}' "$2" |
            grep -vE '^[[:space:]]*ok ' | tail -n 40 | sed 's/^/    /'
    else
        [ "$4" -lt 5 ] && echo "ok   $1 ($n)" || echo "ok   $1 ($n) $4 s"
    fi
}
if [ "$1" = --one ]; then
    log=$out/$(echo "$2" | tr / _).log
    began=$(date +%s%N)
    # a user has few inotify instances: these use them up, and run one after the other
    case $2 in
    e2e/test_envd_watch | sdk/*) exec 9> "/tmp/cc-tui-tests-$(id -u).lock" && flock 9 ;;
    esac
    case $2 in
    *.sh | *.mjs) "tests/$2" 9>&- ;;
    *) "$B/tests/$2" 9>&- ;;
    esac > "$log" 2>&1 < /dev/null
    status=$? ms=$((($(date +%s%N) - began) / 1000000))
    times > "$log.cpu" # second line: of those that ended, 0m1.5s 0m0.2s
    sed -n "2s/[ms]/ /g;2p" "$log.cpu" |
        awk -v n="$2" -v ms=$ms '{ printf "%.1f %.1f %s\n", ms / 1000, $1 * 60 + $2 + $3 * 60 + $4, n }' > "$log.time"
    said=$(judge "$2" "$log" $status $((ms / 1000)))
    echo "$said"
    exit 0
fi

programs() {
    for suite in "$@"; do
        case $suite in
        */*) echo "$suite" ;;
        # scripts first: they take longest, and none should be left to run alone at the end
        *)  for src in tests/$suite/test_*.sh tests/$suite/test_*.c tests/$suite/fuzz_*.c; do
                [ -f "$src" ] || continue
                src=${src#tests/}
                echo "${src%.c}"
            done ;;
        esac
    done
}
rm -rf "$out"
mkdir -p "$out"
programs "$@" | xargs -r -P "${J:-2}" -n 1 "$0" --one
cat "$out"/*.tap 2> /dev/null > "$out/all.tap"
cat "$out"/*.time 2> /dev/null | sort -rn > "$out/times"
[ "$(wc -l < "$out/times")" -gt 10 ] && awk 'NR <= 10 { top = top sprintf("%9.1f %7.1f  %s\n", $1, $2, $3) }
    { wall += $1; cpu += $2 }
    END { printf "slowest of %d (seconds, of CPU; all: %d, %d):\n%s", NR, wall, cpu, top }' "$out/times"

pass=$(grep -E '^[[:space:]]*ok ' "$out/all.tap" | grep -vc '# SKIP')
skip=$(grep -cE '^[[:space:]]*ok .*# SKIP' "$out/all.tap")
fail=$(grep -cE '^[[:space:]]*not ok ' "$out/all.tap")
[ "$skip" -gt 0 ] && grep -E '# SKIP' "$out/all.tap" | sed 's/^/skipped: /'
echo "$pass passed, $fail failed, $skip skipped"
[ "$fail" -eq 0 ]
