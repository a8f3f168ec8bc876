#!/bin/sh
# Checks that need no run: who may include whom (layers.txt), one owner for each
# library, headers that compile alone, calls that are banned, sources without
# bidi controls, files with NUL or tabs. Prints each finding as file:line: text.
set -u
cd "$(dirname "$0")/../.."
bad=0
say() { echo "$1"; bad=$((bad + 1)); }
module_of() { # path -> module
    case $1 in
    src/main.c) echo main ;;
    src/*/*) m=${1#src/}; echo "${m%%/*}" ;;
    ui/*) echo ui ;;
    include/cct/*/*) m=${1#include/cct/}; echo "${m%%/*}" ;;
    include/cct/*.h) m=${1#include/cct/}; echo "${m%.h}" ;;
    esac
}
files=$(find src ui include -name '*.[ch]' 2>/dev/null | sort)

# 1. layers
for f in $files; do
    m=$(module_of "$f")
    [ "$m" = main ] && continue
    allowed=$(sed -n "s/^$m://p" tests/lint/layers.txt)
    grep -q "^$m:" tests/lint/layers.txt || { say "$f: module '$m' is not in layers.txt"; continue; }
    grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+["<]cct/' "$f" |
    sed -E 's/^([0-9]+):.*["<]cct\/([^">]+)\.h[">].*/\1 \2/' > /tmp/lint.$$
    while read -r line inc; do
        im=${inc%%/*}
        ok=no
        [ "$im" = "$m" ] && ok=yes
        for a in $allowed; do
            [ "$a" = "$im" ] || [ "$a" = "$inc" ] && ok=yes
        done
        [ $ok = yes ] || say "$f:$line: '$m' may not include cct/$inc.h"
    done < /tmp/lint.$$
done
rm -f /tmp/lint.$$
find_bad() { # pattern, message, files...
    pat=$1; msg=$2; shift 2
    [ $# -gt 0 ] || return 0
    hits=$(grep -nE "$pat" "$@" /dev/null 2>/dev/null)
    [ -n "$hits" ] && { echo "$hits" | sed "s|\$|   <- $msg|"; bad=$((bad + $(echo "$hits" | wc -l))); }
    return 0
}
only_in() { # header regex, allowed path regex, message
    others=$(echo "$files" | grep -vE "$2")
    [ -n "$others" ] && find_bad "#[[:space:]]*include[[:space:]]+<($1)>" "$3" $others
}
# 2. one owner for each library; no relative includes
only_in '(n?curses[a-z]*|term)\.h|ncursesw/.*' '^ui/term(_[a-z]+)?\.c$' 'curses belongs to ui/term.c'
only_in 'curl/.*' '^src/net/' 'libcurl belongs to src/net'
only_in 'sqlite3\.h' '^src/store/' 'sqlite belongs to src/store'
only_in 'sodium\.h' '^src/secrets/' 'libsodium belongs to src/secrets'
only_in '(cjson/)?cJSON\.h' '^src/(util/json|e2b/|envd/|agent/|local/)' 'cJSON belongs to util/json, e2b, envd, agent, local'
only_in 'event2/.*|seccomp\.h' '^src/local/' 'libevent and libseccomp belong to src/local'
# the fault server judges client and provider: no protocol code of theirs in it
find_bad '#[[:space:]]*include[[:space:]]+(<cct/([^u]|u[^t])|"\.\./)' 'tests/faultd may use util alone' tests/faultd/*.[ch]
find_bad '#[[:space:]]*include[[:space:]]+"\.\./' 'no includes by relative path' $files
# 3. banned calls (comments and strings do not count)
banned='(^|[^A-Za-z0-9_>.])(strcpy|strcat|strncpy|strncat|sprintf|vsprintf|strtok|gets|atoi|atol|alloca|system|localtime|gmtime|ctime|asctime|curl_multi_wait|pthread_cancel|pthread_detach)[[:space:]]*\('
naked='(^|[^A-Za-z0-9_>.])(malloc|calloc|realloc|strdup|strndup|asprintf)[[:space:]]*\('
for f in $files; do
    case $f in *.c|*.h) ;; esac
    awk '{ line=$0; gsub(/"([^"\\]|\\.)*"/,"\"\"",line); sub(/\/\/.*/,"",line)
           if (inc) { if (match(line,/\*\//)) { line=substr(line,RSTART+2); inc=0 } else line="" }
           while (match(line,/\/\*/)) { head=substr(line,1,RSTART-1); rest=substr(line,RSTART+2)
             if (match(rest,/\*\//)) line=head substr(rest,RSTART+2); else { line=head; inc=1; break } }
           print line }' "$f" > /tmp/lint.$$
    grep -nE "$banned" /tmp/lint.$$ | while IFS=: read -r n t; do echo "$f:$n: banned call: $t"; done > /tmp/lint2.$$
    case $f in src/util/*) ;; *) grep -nE "$naked" /tmp/lint.$$ | while IFS=: read -r n t; do echo "$f:$n: use xalloc: $t"; done >> /tmp/lint2.$$ ;; esac
    if [ -s /tmp/lint2.$$ ]; then cat /tmp/lint2.$$; bad=$((bad + $(wc -l < /tmp/lint2.$$))); fi
done
rm -f /tmp/lint.$$ /tmp/lint2.$$
# commands print by src/cli/print.c alone, which cleans
find_bad '(^|[^A-Za-z0-9_])(v?f?printf|dprintf|puts|fputs|putchar|putc|fputc|fwrite)[[:space:]]*\(' \
    'print by cli_out, cli_tell, cli_out_json' $(ls src/cli/*.c src/main.c | grep -vE '/(print|out)\.c$')
# 4. headers alone
flags="-std=c11 -D_GNU_SOURCE -Iinclude -Wall -Wextra -fsyntax-only"
for h in $(find include -name '*.h'); do
    printf '#include <%s>\nextern int lint_dummy;\n' "${h#include/}" | ${CC:-cc} $flags -x c - || say "$h: does not compile alone"
done
# 5. sentences name keys by their actions, as "{kill} kills it": bound anew they stay true
sentences=$(ls ui/*.c ui/*/*.c | grep -vE '^ui/keymap(_table)?\.c$')
find_bad '"([^"]*[^A-Za-z"])?(Esc|Enter|PgDn|PgUp|BackTab|Alt-[A-Za-z]|\^[A-Z]|press [^ {]) ' 'name it by {action}' $sentences
actions=$(sed -nE 's/^ +X\([A-Z0-9_]+, "([a-z0-9-]+)", SCOPE_.*/\1/p' include/cct/ui/keymap.h)
grep -noE '\{[a-z][a-z0-9-]*\}' $sentences | grep -v '{name}\|{branch}\|{project}' | while IFS=: read -r f n w; do
    echo "$actions" | grep -qx -e "$(echo "$w" | tr -d '{}')" || echo "$f:$n: no action is called $w"
done > /tmp/lint.$$
if [ -s /tmp/lint.$$ ]; then cat /tmp/lint.$$; bad=$((bad + $(wc -l < /tmp/lint.$$))); fi
rm -f /tmp/lint.$$
# 6. sources hide nothing
hidden=$(git ls-files -co --exclude-standard '*.c' '*.h' '*.sh' '*.md' Makefile | grep -v '^tests/fixtures' |
    xargs grep -nP '[\x{202A}-\x{202E}\x{2066}-\x{2069}\x{200B}]|\x00' 2>/dev/null)
[ -n "$hidden" ] && say "bidi or NUL in sources: $hidden"
for s in $(git ls-files -co --exclude-standard '*.sh'); do sh -n "$s" || say "$s: syntax"; done
if [ $bad -eq 0 ]; then echo "lint: clean"; else echo "lint: $bad findings"; exit 1; fi
