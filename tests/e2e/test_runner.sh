#!/bin/sh
# The session runner as a black box, under each shell a sandbox may have as sh.
# Plays the client: writes the files it writes, sends lines to stdin, looks at the
# files that come back. TAP. Arguments: shells to test (dash busybox bash).
set -u
unset LC_ALL
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(cd "$(mktemp -d "${TMPDIR:-/tmp}/cct-runner.XXXXXX")" && pwd -P)
env=$(command -v env)
n=0 failed=0 sid=0

ok() { # name; the status before decides
    rc=$?
    n=$((n + 1))
    if [ $rc -eq 0 ]; then
        echo "ok $n - $shell: $1"
    else
        echo "not ok $n - $shell: $1"
        failed=$((failed + 1))
        show_session
    fi
}
skip() { n=$((n + 1)); echo "ok $n - $shell: $1 # SKIP $2"; }
show_session() {
    for f in runs exit taken cut error ../stderr; do
        [ -s "$d/$f" ] && sed "s|^|# $f: |" "$d/$f"
    done
    echo "# inbox: $(ls "$d/inbox") sent: $(ls "$d/sent") unsure: $(ls "$d/unsure")"
    procs | while read -r p; do echo "# $p: $(tr '\0' ' ' <"/proc/$p/cmdline")"; done
}

# waits for a condition: seconds, command...
within() {
    left=$(($1 * 60)); shift # three times that: a busy machine is no fault
    until "$@" 2>/dev/null; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.05
    done
}

# --- the client's side ----------------------------------------------------------

session() { # cli.sh text, [mode]
    sid=$((sid + 1)) d=$tmp/$shell-$sid/s
    mkdir -p "$d"
    cp "$here/src/jobs/runner.sh" "$here/src/jobs/shell-driver.sh" "$d"
    printf '%s\n' "$1" >"$d/cli.sh"
    echo "${2:-persistent}" >"$d/mode"
    mkfifo "$d/../stdin"
    exec 9<>"$d/../stdin"
    seq=1764437000000
}
start() { # [bury]; sets r
    # a job in the background ignores INT, what envd starts does not
    PATH=$path "$env" --default-signal=INT sh "$d/runner.sh" "$d" "$@" \
        <"$d/../stdin" >/dev/null 2>>"$d/../stderr" 9<&- &
    r=$!
}
wake() { echo >&9; }
publish() { # id, file
    seq=$((seq + 1))
    mv "$2" "$d/inbox/$seq-$1"
}
post() { # id, text
    within 5 test -d "$d/inbox"
    printf '%s\n' "$2" >"$d/inbox/.tmp-$1"
    publish "$1" "$d/inbox/.tmp-$1"
    wake
}
end() { { echo "${1:-5}" >"$d/end"; } 2>/dev/null; wake; }
inbox_empty() { [ -z "$(ls "$d/inbox")" ]; }
out_is() { [ "$(cat "$d/out.log")" = "$1" ]; }
ended() { [ -e "$d/exit" ]; }
exit_is() { within "${2:-8}" ended && [ "$(cut -d' ' -f1 "$d/exit")" = "$1" ]; }
cli() { cut -d' ' -f1 "$d/cli.pid"; }
has_cli() { [ -s "$d/cli.pid" ]; }
keeper() { k=$(readlink "$d/keeper"); echo "${k%-*}"; }
children() { cat "/proc/$1/task/$1/children"; }
part() { # writer-out|writer-err|attend|feeder|cat-out
    set -- "$1" $(children "$(keeper)")
    case $1 in
    writer-out) echo "$2" ;;
    cat-out) children "$2" ;;
    writer-err) echo "$3" ;;
    attend) echo "$4" ;;
    feeder) set -- $(children "$4"); echo "$1" ;;
    esac
}
working_in() { # pattern of directories
    find /proc -maxdepth 2 -name cwd -lname "$1" 2>/dev/null | while read -r p; do
        p=${p%/cwd}
        { read -r x <"$p/stat"; } 2>/dev/null || continue
        case ${x##*\)} in ' Z'*) ;; *) echo "${p#/proc/}" ;; esac
    done
}
procs() { working_in "$d"; }
none_left() { [ -z "$(procs)" ]; }
gone() { [ "$(readlink "/proc/$1/cwd")" != "$d" ]; } # whoever has the number next works elsewhere
dead() { # pid; whether or not somebody has looked at its status yet
    { read -r x <"/proc/$1/stat"; } || return 0
    case ${x##*\)} in ' Z'* | ' X'*) return 0 ;; esac
    return 1
}
finish() { # what every case ends with: a clean end
    ended || end
    within 8 ended && within 4 none_left
}
ready() { within 5 has_cli; }
follows() { [ "$(readlink "/proc/$r/fd/7")" = "$d/alive" ]; }

# --- cases -------------------------------------------------------------------------

t_basics() {
    session 'echo $$ >&2; exec cat'
    start
    post a1 '{"n":1}'
    within 2 out_is '{"n":1}'
    ok "a message reaches the CLI and its answer the log"
    told() { [ "$(cat "$d/err.log")" = "$(cli)" ]; }
    within 5 told && grep -qE '^[0-9]+ [0-9]+$' "$d/cli.pid"
    ok "cli.pid is the CLI, stderr is apart"
    seq=$((seq - 1))
    post a1 '{"n":1}'
    seq=$((seq + 5))
    post a1 '{"n":"other time, same id"}'
    post b2 '{"n":2}'
    within 5 out_is '{"n":1}
{"n":2}' && [ "$(grep -c '^a1 ' "$d/taken")" -eq 1 ] && within 3 inbox_empty
    ok "duplicates are fed once"
    grep -qE '^a1 [0-9]{13} 0$' "$d/taken" && grep -qE '^b2 [0-9]{13} 8$' "$d/taken"
    ok "where the log stood when each was taken is noted"
    i=0
    while [ $i -lt 40 ]; do
        i=$((i + 1))
        echo "$i" >"$d/inbox/.tmp-x"
        publish "m$i" "$d/inbox/.tmp-x"
    done
    echo odd >"$d/inbox/notes.txt"
    wake
    sent_all() { [ "$(ls "$d/sent" | wc -l)" -eq 42 ]; }
    within 8 sent_all && [ "$(tail -n 40 "$d/out.log" | sort -nc && wc -l <"$d/out.log")" -eq 42 ]
    ok "order of names is kept, other names stay"
    end
    exit_is 0 && within 3 gone "$r" && within 3 none_left
    ok "end closes stdin: exit 0, no process left"
    [ "$(grep -c '^run 1 ' "$d/runs")" -eq 2 ] &&
        grep -qE "^run 1 exit 0 [0-9]{13} out-offset $(stat -c %s "$d/out.log") err-offset " "$d/runs" &&
        [ ! -e "$d/end" ] && [ ! -e "$d/cli.pid" ]
    ok "runs tells start, exit and offsets"
}

same_size() { [ "$(stat -c %s "$1")" -eq "$(stat -c %s "$2")" ]; }
t_bytes() {
    head -c 1048576 /dev/urandom >"$tmp/big"
    session 'exec cat'
    start
    within 5 test -d "$d/inbox"
    cp "$tmp/big" "$d/inbox/.tmp-big"
    publish big "$d/inbox/.tmp-big"
    wake
    within 5 same_size "$tmp/big" "$d/out.log" && cmp "$tmp/big" "$d/out.log"
    ok "1 MB through stdin and stdout, byte for byte"
    finish
    session "cat '$tmp/huge'; cat '$tmp/big' >&2"
    head -c 20971520 /dev/urandom >"$tmp/huge"
    start
    exit_is 0 20 && cmp "$tmp/huge" "$d/out.log" && cmp "$tmp/big" "$d/err.log"
    ok "20 MB out and 1 MB err are complete when exit appears"
    within 3 none_left
    ok "a CLI that ends by itself leaves no process"
}

t_codes() {
    session 'exec no-such-agent'
    start
    exit_is 127 && grep -q 'no-such-agent' "$d/err.log"
    ok "not found: 127 and err.log says why"
    session 'exec ./cli.sh'
    chmod 600 "$d/cli.sh"
    start
    exit_is 126 && grep -q 'cli.sh' "$d/err.log"
    ok "not executable: 126 and err.log says why"
    session 'exit 3'
    start
    exit_is 3
    ok "the raw exit code is kept"
    session 'trap "echo int; exit 0" INT; echo up; while :; do read -r l; done'
    start
    within 5 out_is up
    kill -INT "-$(cli)"
    exit_is 0 && out_is 'up
int'
    ok "INT to the group reaches the CLI and only it"
    session 'echo "$name|$SHELL|$two|${CCT_ENV-}"'
    export name two SHELL CCT_LOG_MAX
    name='it'\''s "mine"' two='a
$b' SHELL=/bin/odd CCT_LOG_MAX=4096
    start
    unset name two CCT_LOG_MAX
    exit_is 0 && out_is "it's \"mine\"|/bin/odd|a
\$b|"
    ok "the environment arrives as it was given"
    PATH=$path sh "$d/runner.sh" "$d" bury </dev/null && exit_is 0
    ok "bury leaves an ended session as it is"
    PATH=$path sh "$d/runner.sh" "$d/none" </dev/null 2>"$d/../stderr"
    [ $? -eq 1 ] && grep -q "cannot enter '$d/none'" "$d/../stderr"
    ok "a missing directory is an error"
}

# kills a part, then a message must still go through
t_killed() {
    head -c 1048576 /dev/urandom >"$tmp/big"
    for what in writer-out cat-out writer-err attend feeder; do
        session 'exec cat'
        start
        post a1 one
        within 5 out_is one
        kill -9 "$(part $what)"
        post b2 two
        within 5 out_is 'one
two' && finish
        ok "kill -9 of $what: nothing lost, clean end"
    done

    session 'exec cat'
    start
    post a1 one
    within 5 out_is one
    kill -9 "$r"
    within 3 gone "$r"
    start
    post b2 two
    within 5 out_is 'one
two' && [ "$(grep -c start "$d/runs")" -eq 1 ]
    ok "kill -9 of the runner: the next one follows the same CLI"
    start
    within 5 follows
    end
    exit_is 0 && within 3 gone "$r" && [ "$(grep -c start "$d/runs")" -eq 1 ]
    ok "two runners, one keeper; both end with it"
    exec 9<&-
    within 3 none_left
    ok "the killed runner's helper ends with its stdin"

    session 'exec cat'
    start
    ready
    kill -9 "$(cli)"
    exit_is 137 && within 3 none_left
    ok "kill -9 of the CLI: exit 137"

    session 'exec cat'
    start
    post a1 one
    within 5 out_is one
    kill -9 "$(keeper)"
    exit_is lost && within 4 none_left
    ok "kill -9 of the keeper: exit lost, nothing left"
    start
    post b2 two
    within 5 out_is 'one
two' && [ "$(grep -c start "$d/runs")" -eq 2 ] && grep -q '^run 1 exit lost' "$d/runs" && finish
    ok "a lost session starts again in the same log"

    session 'exec cat'
    start
    ready
    kill -STOP "$(cli)"
    cp "$tmp/big" "$d/inbox/.tmp-a1"
    publish a1 "$d/inbox/.tmp-a1"
    wake
    within 5 grep -q '^a1 ' "$d/taken"
    kill -9 "$(part feeder)"
    post b2 two
    kill -CONT "$(cli)"
    both() { [ "$(stat -c %s "$d/out.log")" -eq $((1048576 + 4)) ]; }
    within 5 both && { cat "$tmp/big"; echo two; } | cmp - "$d/out.log" && finish
    ok "kill -9 of the feeder inside a message: the next one does not tear it"

    session 'exec cat'
    start
    ready
    kill -9 "$r" "$(keeper)"
    start bury
    exit_is lost && [ "$(grep -c start "$d/runs")" -eq 1 ] && exec 9<&- && within 4 none_left
    ok "runner and keeper killed: bury publishes lost"

    session 'echo "$$" >>started; exec cat'
    start
    ready
    k1=$(keeper)
    kill -9 "$r" "$k1"
    within 3 dead "$k1" # runners that still meet it only bury it
    for i in 1 2 3 4; do start; done
    # before that the old CLI, still alive, may be given the message
    within 8 grep -q '^run 1 exit lost' "$d/runs"
    post a1 one
    within 8 out_is one && [ "$(wc -l <"$d/started")" -eq 2 ] && [ "$(grep -c lost "$d/runs")" -eq 1 ]
    ok "several runners after a dead keeper: one buries, one CLI starts"
    end
    exit_is 0 && exec 9<&- && within 4 none_left
    ok "and all of them end"
}

t_unsure() {
    head -c 1048576 /dev/zero >"$tmp/big"
    session 'echo up; exec sleep 60'
    start
    within 5 out_is up
    cp "$tmp/big" "$d/inbox/.tmp-a"
    publish a1 "$d/inbox/.tmp-a"
    wake
    within 5 test -s "$d/taken"
    end 0
    exit_is 143 10 && [ -n "$(ls "$d/unsure")" ] && [ -z "$(ls "$d/sent")" ] && within 4 none_left
    ok "a CLI that does not read: end still ends it, the message is unsure"
    session 'exec cat'
    start
    ready
    kill -STOP "$(cli)"
    post a1 one
    within 5 test -e "$d/sent/$seq-a1"
    kill -CONT "$(cli)"
    within 5 out_is one && finish
    ok "stop and continue of the CLI"
    session 'trap "" TERM; echo up; while :; do read -r l || exec sleep 60 </dev/null; done'
    start
    within 5 out_is up
    end 0
    exit_is 137 10 && within 4 none_left
    ok "end: TERM ignored, so KILL"
}

t_child_holds() {
    session 'sleep 60 & echo done'
    start
    exit_is 0 8 && out_is done && within 4 none_left
    ok "a child that holds stdout after the exit is ended after 2 s"
    session 'setsid sh -c "sleep 5; echo late" & echo done'
    start
    exit_is 0 8 && out_is done
    ok "one that left the group only loses its pipe"
}

t_restart() {
    session 'echo hello; exec cat'
    start
    within 5 out_is hello
    end
    exit_is 0
    within 3 gone "$r"
    start
    two() { [ "$(grep -c hello "$d/out.log")" -eq 2 ]; }
    within 5 two && post a1 again && within 5 grep -q again "$d/out.log" && finish &&
        grep -q '^run 2 start [0-9]* out-offset 6 ' "$d/runs" && [ "$(cat "$d/epoch")" = 1 ]
    ok "a restart keeps log, offsets and epoch"
    : >"$d/out.log"
    start
    within 5 test -s "$d/cli.pid" && finish && [ "$(cat "$d/epoch")" = 2 ]
    ok "a log cut by others makes a new epoch"
    session 'echo "$$" >>started; exec cat'
    for i in 1 2 3 4; do start; done
    post a1 one
    within 5 out_is one && [ "$(wc -l <"$d/started")" -eq 1 ] && finish
    ok "runners started at once claim one keeper"
    [ "$(grep -c start "$d/runs")" -eq 1 ]
    ok "and start one CLI"
}

t_one_run() {
    session 'sed "s/^/got /"; env | grep "^LC_ALL="; exit 4' one-run
    echo 'sed "s/^/special /"' >"$d/cli-b2.sh"
    start
    post a1 one
    post b2 two
    post c3 three
    within 8 out_is 'got one
special two
got three'
    ok "one-run: a process for each message, in order"
    third() { grep -q '^run 3 exit 4 ' "$d/runs"; }
    within 5 third && grep -q '^run 2 start .* message b2 ' "$d/runs" &&
        grep -q '^run 2 exit 0 ' "$d/runs" && ! ended
    ok "one-run: runs names message and code, the session goes on"
    end
    exit_is 4 && within 3 none_left
    ok "one-run: end while idle"
    session 'exec cat' one-run
    start
    post a1 one
    over() { grep -q '^run 1 exit 0 ' "$d/runs"; }
    within 5 over
    kill -9 "$(keeper)"
    exit_is lost && within 3 none_left && [ "$(wc -l <"$d/runs")" -eq 2 ]
    ok "one-run: keeper killed while idle: exit lost"
    session 'read -r l; echo "$l"; exec sleep 60' one-run
    start
    post a1 one
    within 5 out_is one
    end 0
    exit_is 143 && within 4 none_left
    ok "one-run: end while a run is busy"
}

cpu_of() { # ticks and context switches of all parts
    for p in $(procs); do
        [ "$p" = "$1" ] && continue
        sed 's/.*) //' "/proc/$p/stat" | cut -d' ' -f12,13
        grep ctxt "/proc/$p/status"
    done
}
t_idle() {
    session 'exec cat'
    start
    post a1 one
    within 5 out_is one
    within 5 test -e "$d/sent/$seq-a1"
    settled() { a=$(cpu_of ""); sleep 0.1; [ "$a" = "$(cpu_of "")" ]; }
    within 5 settled
    before=$(cpu_of "")
    sleep 1
    [ -n "$before" ] && [ "$before" = "$(cpu_of "")" ]
    ok "idle: no part ran at all for a second"
    finish
}

t_cap() {
    session 'head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo done >finished'
    CCT_LOG_MAX=100000 start
    exit_is 0 && [ -e "$d/finished" ]
    ok "log cap: the CLI is not blocked"
    kept=$((100000 / 512 * 512))
    mark=$(sed -n 's/^#define SESSION_CUT_MARK "\\n\(.*\)\\n"$/\1/p' "$here/include/cct/jobs/session_layout.h")
    [ "$(head -c $kept "$d/out.log" | tr -d '\0' | wc -c)" -eq 0 ] && grep -q "^out $kept$" "$d/cut" &&
        grep -q "^err $kept$" "$d/cut" && [ "$(tail -c +$((kept + 1)) "$d/out.log")" = "
$mark" ]
    ok "log cap: cut at the offset that is told, marked"
    size=$(stat -c %s "$d/out.log")
    within 3 gone "$r"
    rm "$d/finished"
    CCT_LOG_MAX=100000 start
    within 5 test -e "$d/finished"
    exit_is 0 && [ "$(stat -c %s "$d/out.log")" -eq "$size" ]
    ok "log cap: marked once"
}

t_disk_full() {
    name="disk full"
    [ "$(id -u)" -eq 0 ] || { skip "$name" "needs root"; return; }
    session 'echo first; head -c 3000000 /dev/zero | tr "\0" x; : >../past; read -r l
echo "after $l"; exec cat'
    mkdir "$d/../disk"
    mount -t tmpfs -o size=1m cct "$d/../disk" 2>/dev/null || { skip "$name" "no mount"; return; }
    cp "$d"/* "$d/../disk"
    d=$tmp/$shell-$sid/disk
    start
    within 5 test -e "$d/../past" && [ -e "$d/diskfull" ] && [ "$(head -n 1 "$d/out.log")" = first ]
    ok "disk full: marked, the CLI goes on"
    dd if=/dev/null of="$d/out.log" bs=1 seek=100000 2>/dev/null   # space returns
    post a1 one
    within 5 grep -q 'after one' "$d/out.log" && grep -q 'disk full, output is missing here' "$d/out.log"
    ok "disk full: logging goes on when there is space"
    cat /dev/zero >"$d/fill" 2>/dev/null
    end
    exit_is 0 && within 3 none_left
    ok "disk full: exit is published from the reserve"
    umount "$d"
}

t_shell() { # pty|pipes
    session 'exec sh ./shell-driver.sh'
    [ "$1" = stdin ] || : >"$d/pty"
    start
    ready
    cmd() { post "$1" "$(printf '%s' "$2" | base64 | tr -d '\n')"; within 5 [ -e "$d/sent/$seq-$1" ]; }
    D() { grep -q "133;D;$1" "$d/out.log"; }
    count() { [ "$(tr '\033' '\n' <"$d/out.log" | grep -c '133;D;')" -eq "$1" ]; }
    cmd a1 'cd /usr; v="a  b"; f() { echo "f $v"; }'
    cmd a2 'pwd; f; test -t 1 && echo tty
echo second line'
    within 5 count 2
    t=
    [ "$1" = pty ] && t='tty
'
    esc=$(printf '\033') bel=$(printf '\007')
    out_is "$esc]133;C$bel$esc]133;D;0$bel$esc]133;C$bel/usr
f a  b
${t}second line
$esc]133;D;0$bel"
    ok "shell on $1: state persists, several lines, no echo, no CR"
    cmd b1 "true $(head -c 20000 /dev/zero | tr '\0' x); exit_with() { return \$1; }; exit_with 42"
    within 5 D 42
    ok "shell on $1: a command of 20000 bytes"
    cmd c1 'if then'
    within 5 count 4 && cmd c2 'echo still here' && within 5 grep -q 'still here' "$d/out.log"
    ok "shell on $1: a syntax error does not end it"
    cmd d1 'echo slee''ping; sleep 60; echo not reached'
    within 5 grep -q sleeping "$d/out.log"
    kill -INT "-$(cli)"
    within 5 D 130 && cmd d2 'echo alive $v' && within 5 grep -q 'alive a b' "$d/out.log" &&
        ! grep -q 'not reached' "$d/out.log"
    ok "shell on $1: INT ends the command, not the shell"
    cmd e1 'echo looping; while :; do :; done'
    within 5 grep -q looping "$d/out.log"
    kill -INT "-$(cli)"
    within 5 count 8
    ok "shell on $1: INT ends a loop of builtins"
    end
    exit_is 0 && within 3 none_left
    ok "shell on $1: end"
    within 3 gone "$r"
    start
    ready
    kill -9 "$(keeper)"
    exit_is lost && within 3 none_left
    ok "shell on $1: kill -9 of the keeper"
}

# --- all cases under each shell -----------------------------------------------------

clean() {
    # by where they work: their numbers may be somebody else's by now
    for _ in 1 2 3 4 5 6 7 8 9; do
        p=$(working_in "$tmp/*")
        [ -n "$p" ] || break
        kill -9 $p 2>/dev/null
    done
    for m in "$tmp"/*/disk; do [ -d "$m" ] && umount "$m" 2>/dev/null; done
    rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

# A disk of our own is mounted where nobody else sees it.
if [ "$(id -u)" -eq 0 ] && [ -z "${CCT_RUNNER_NS:-}" ] && unshare -m true 2>/dev/null; then
    rm -rf "$tmp"
    CCT_RUNNER_NS=1 exec unshare -m "$0" "$@"
fi

t_all() { # under the shell $shell
    d=$tmp
    bin=$(command -v "$shell") || { skip "all" "no $shell here"; return; }
    mkdir -p "$tmp/bin" "$tmp/few"
    if [ "$shell" = busybox ]; then
        for a in $(busybox --list); do ln -s "$bin" "$tmp/bin/$a"; done
    else
        ln -s "$bin" "$tmp/bin/sh"
    fi
    path=$tmp/bin:/usr/sbin:/usr/bin:/sbin:/bin
    for t in sh setsid mkfifo readlink timeout stat grep cat rm mv mkdir ln dd date tail \
        tr wc base64 sleep head od; do
        ln -s "$(PATH=$path command -v $t)" "$tmp/few/$t"
    done
    for c in $cases; do "t_$c"; done
}
t_pty() { if command -v script >/dev/null; then t_shell pty; else skip "pty" "no script(1)"; fi; }
t_pipes() { path=$tmp/few; t_shell pipes; t_shell stdin; }

cases=${CASES:-basics bytes codes killed unsure child_holds restart one_run idle cap disk_full pty pipes}
if [ $# -eq 1 ]; then
    shell=$1
    t_all
    echo "1..$n"
    [ $failed -eq 0 ]
    exit
fi
# Side by side: most of the time is spent waiting.
[ $# -eq 0 ] && set -- dash busybox bash
for s in "$@"; do "$0" "$s" >"$tmp/$s.tap" 2>&1 & done
wait
for s in "$@"; do sed '/^1\.\./d' "$tmp/$s.tap"; done |
    awk '/^(not )?ok / { n++; sub(/ok [0-9]+/, "ok " n) } { print } END { print "1.." n }' | tee "$tmp/all.tap"
! grep -q '^not ok' "$tmp/all.tap"
