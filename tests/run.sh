#!/bin/sh
# Run suites and count. Arguments: suite names (unit golden fuzz cli e2e sdk) or
# one test like unit/test_buf. Every test program prints TAP ("ok N - name",
# "not ok N - name", "ok N - name # SKIP why"); the sum is the last line.
# B = build folder.
set -u
cd "$(dirname "$0")/.."
export B CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=0:exitcode=66}"
out=$B/test-output
mkdir -p "$out"
: > "$out/all.tap"
bad_programs=0

run_one() { # name, command...
    name=$1; shift
    log=$out/$(echo "$name" | tr / _).log
    began=$(date +%s)
    "$@" > "$log" 2>&1 </dev/null
    rc=$?
    # cmocka says "not ok N # SKIP name" for a test that was left out
    grep -E '^[[:space:]]*(not )?ok [0-9]+' "$log" |
        sed -E 's/^([[:space:]]*)not (ok [0-9]+.*# SKIP)/\1\2/' > "$log.tap"
    cat "$log.tap" >> "$out/all.tap"
    n=$(grep -cE '^[[:space:]]*ok ' "$log.tap"); f=$(grep -cE '^[[:space:]]*not ok ' "$log.tap")
    plan=$(sed -nE 's/^[[:space:]]*1\.\.([0-9]+).*/\1/p' "$log" | awk '{ s += $1 } END { print s + 0 }')
    if [ "$rc" -ne 0 ] && [ "$f" -eq 0 ] || [ "$((n + f))" -ne "$plan" ] || [ "$plan" -eq 0 ]; then
        bad_programs=$((bad_programs + 1))
        echo "FAIL $name: ended with status $rc after $((n + f)) of $plan checks; see $log"
        tail -n 25 "$log" | sed 's/^/    /'
    elif [ "$f" -ne 0 ]; then
        echo "FAIL $name: $f of $((n + f)); see $log"
        grep -vE '^[[:space:]]*ok ' "$log" | tail -n 40 | sed 's/^/    /'
    else
        took=$(($(date +%s) - began))
        [ "$took" -lt 5 ] && echo "ok   $name ($n)" || echo "ok   $name ($n) $took s"
    fi
}

for suite in "$@"; do
    case $suite in
    */*) case $suite in
         *.sh|*.mjs) run_one "$suite" "tests/$suite" ;;
         *) run_one "$suite" "$B/tests/$suite" ;;
         esac ;;
    *)  for src in tests/$suite/test_*.c tests/$suite/fuzz_*.c; do
            [ -f "$src" ] || continue
            name=${src#tests/}; name=${name%.c}
            run_one "$name" "$B/tests/$name"
        done
        for sh in tests/$suite/test_*.sh; do
            [ -f "$sh" ] && run_one "${sh#tests/}" "$sh"
        done ;;
    esac
done

pass=$(grep -E '^[[:space:]]*ok ' "$out/all.tap" | grep -vc '# SKIP')
skip=$(grep -cE '^[[:space:]]*ok .*# SKIP' "$out/all.tap")
fail=$(grep -cE '^[[:space:]]*not ok ' "$out/all.tap")
fail=$((fail + bad_programs))
[ "$skip" -gt 0 ] && grep -E '# SKIP' "$out/all.tap" | sed 's/^/skipped: /'
echo "$pass passed, $fail failed, $skip skipped"
[ "$fail" -eq 0 ]
