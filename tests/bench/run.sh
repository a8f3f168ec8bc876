#!/bin/sh
# Benchmarks. Arguments: sections (default: all). Each bench_SECTION prints rows of
# tab-separated fields (tests/lib/bench.h); here they become one table and
# build/bench.json. A section whose floor was noisy runs once more. Exit status 1
# when a bar that must be kept is missed.
# B = build folder, RUNS = samples of each kind.
set -u
cd "$(dirname "$0")/../.."
export B="${B:-build/release}"
[ -n "${RUNS:-}" ] || unset RUNS
[ $# -gt 0 ] || set -- start idle bytes rows stream flood scroll parse load list kill keys net local search decode text
rows=$B/bench.rows
: > "$rows"
[ "${MODE:-release}" = release ] || echo "bench: this is a $MODE build, its times say little" >&2

run_section() { # section -> its rows on stdout
    program=$B/tests/bench/bench_$1
    log=$B/bench_$1.log
    "$program" > "$log" 2> "$log.err" < /dev/null
    rc=$?
    grep '^row' "$log" | cut -f 2-
    [ $rc -eq 0 ] || {
        sed 's/^/    /' "$log.err" >&2
        printf '%s\tended with status %s; see %s\t-\t-\t-\t-\t-\t-\tMISSED\n' "$1" $rc "$log.err"
    }
}

for s in "$@"; do
    if [ ! -x "$B/tests/bench/bench_$s" ]; then
        echo "bench: there is no section '$s' (start idle bytes rows stream flood scroll parse load list kill keys net local search decode text)" >&2
        exit 2
    fi
    echo "bench: $s ..." >&2
    found=$(run_section "$s")
    case $found in
    *noisy*) echo "bench: $s again, the floor was noisy" >&2
             found=$(run_section "$s") ;;
    esac
    printf '%s\n' "$found" >> "$rows"
done

head="section what floor ours unit ratio spread bar verdict"
awk -F '\t' -v head="$head" '
function cell(text, i) { # columns of figures stand at the right
    if (i == 9) return text
    if (i == 3 || i == 4 || i == 6 || i == 7) return sprintf("%" w[i] "s  ", text)
    return sprintf("%-" w[i] "s  ", text)
}
BEGIN { split(head, h, " "); for (i = 1; i <= 9; i++) { c[0, i] = h[i]; w[i] = length(h[i]) } }
NF >= 9 { n++; for (i = 1; i <= 9; i++) { c[n, i] = $i; if (length($i) > w[i]) w[i] = length($i) } }
END { for (r = 0; r <= n; r++) { line = ""
          for (i = 1; i <= 9; i++) line = line cell(c[r, i], i)
          print line } }' "$rows"

version() { dpkg-query -W -f='${Version}' "$1" 2>/dev/null; }
{
    printf '{"date":"%s","commit":"%s","mode":"%s",\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        "$(git describe --always --dirty 2>/dev/null)" "${MODE:-release}"
    printf ' "machine":{"kernel":"%s","arch":"%s","cpus":%s,"cpu":"%s","load":"%s"},\n' \
        "$(uname -r)" "$(uname -m)" "$(nproc)" \
        "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" "$(cut -d' ' -f1-3 /proc/loadavg)"
    printf ' "versions":{"ncurses":"%s","libcurl":"%s","sqlite":"%s","cjson":"%s"},\n "rows":[\n' \
        "$(version libncursesw6)" "$(version libcurl4)$(version libcurl4t64)" \
        "$(version libsqlite3-0)" "$(version libcjson1)"
    awk -F '\t' -v head="$head" 'BEGIN { split(head, h, " ") }
        NF >= 9 { line = ""
            for (i = 1; i <= 9; i++) { gsub(/["\\]/, "\\\\&", $i)
                line = line (i == 1 ? "" : ",") "\"" h[i] "\":\"" $i "\"" }
            printf "%s  {%s}", sep, line; sep = ",\n" }
        END { print "" }' "$rows"
    printf ' ]}\n'
} > build/bench.json
echo "load $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs; build/bench.json has the figures"
missed=$(grep -c 'MISSED$' "$rows")
[ "$missed" -eq 0 ] || { echo "$missed missed"; exit 1; }
