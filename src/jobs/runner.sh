#!/bin/sh
# Runs one agent CLI for as long as it lives, whoever watches or not. The files it
# reads and writes are described in include/cct/jobs/session_layout.h, format 1.
#
#   sh runner.sh <session-dir>        start, or follow the keeper that lives
#   sh runner.sh <session-dir> bury   only tidy up after a dead keeper
#
# Parts, each replaceable while the others go on:
#   runner   started by envd. A `cat` passes its stdin on to the fifo wake; it starts
#            the keeper, or follows the living one until the fifo alive ends.
#   keeper   own session K. Claims the directory, starts the parts below, waits for
#            the CLI in the foreground (a background CLI would ignore SIGINT).
#   writers  one per log: out -> out.log, err -> err.log, each through a cat.
#   attend   holds the write end of the CLI's stdin and restarts the feeder, which
#            reads wake and passes messages on; ends the CLI when `end` is there.
#   CLI      own session C, in the foreground of the keeper.
#
# What a kill -9 does: runner: nothing, the next one follows. feeder, a cat or one
# of their parents: replaced or still served by the other. CLI: exit 137. keeper:
# the runner (or the next one) ends CLI and parts and publishes exit = lost.
#
# Works in dash, busybox sh and bash as sh. No part runs while nothing happens.
# The whole file is read before main starts: replacing it does not disturb us.

# Our variables may be named like exported ones of the user: the CLI gets the
# environment as it came. (One variable holds 128 KiB at most.)
case $1 in
keeper|cli) ;;
*)  CCT_ENV=$(export -p)
    if [ ${#CCT_ENV} -lt 100000 ]; then export CCT_ENV; else unset CCT_ENV; fi ;;
esac

CUT_MARK='
[cc-tui: log cap reached, output after this point is not kept]
'
GAP_MARK='
[cc-tui: disk full, output is missing here]
'
OVER=3   # status of the feeder: no further message for this CLI
BUSY=9   # status of the keeper: another one holds the session

now_ms() { # busybox date knows no %N
    t=$(date +%s%3N)
    case $t in *[!0-9]*) t=$(date +%s)000 ;; esac
    echo "$t"
}

size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }

# --- processes: a number alone may be somebody else by now ---------------------

stat_of() { # pid: sets state and ticks (field 22), fails when there is none
    { read -r st <"/proc/$1/stat"; } 2>/dev/null || return 1
    st=${st##*\)}
    set -f; set -- $st; set +f
    state=$1 ticks=${20}
}

is_running() { # pid-ticks; a zombie is dead
    stat_of "${1%-*}" && [ "$ticks" = "${1#*-}" ] && [ "$state" != Z ] && [ "$state" != X ]
}

signal_group() { # signal, leader's pid, its ticks; the leader may be gone
    [ -n "$2" ] || return 0
    if stat_of "$2" && [ "$ticks" != "$3" ]; then return 0; fi
    kill "-$1" "-$2" 2>/dev/null
}

read_cli_pid() { cli='' cli_ticks=''; { read -r cli cli_ticks <cli.pid; } 2>/dev/null; }

# --- fifos ---------------------------------------------------------------------

await_end() { # seconds; fd 7 = read end of a fifo: 0 when its writers are gone
    timeout "$1" cat <&7 >/dev/null 2>&1
}

open_7() { # fifo: read end on fd 7, without waiting for a writer
    exec 8<>"$1" 7<"$1" 8>&-
}

# --- small files; 64 KiB are kept aside so that they fit on a full disk ---------

append() { # file, line
    echo "$2" >>"$1" && return 0
    mv -f .diskfull diskfull
    rm -f .reserve
    printf '\n%s\n' "$2" >>"$1"   # a torn first try must not swallow this line
}

publish_exit() { # code
    code_line="$1 $(now_ms) $n"
    rm -f cli.pid end in
    echo "$code_line" >.exit || { rm -f .reserve; echo "$code_line" >.exit; } || return 1
    mv -f .exit exit
}

log_run() { # words after the run's number
    append runs "run $n $1 out-offset $(size_of out.log) err-offset $(size_of err.log)$2"
}

# --- the claim -------------------------------------------------------------------

# A symlink is created whole or not at all. The first keeper makes `keeper`; the
# right to follow a dead one is the symlink heirs/<dead>, so two can never both
# win, and the chain's end is the holder even if `keeper` was not yet renewed.
holder() { # sets held
    held=$(readlink keeper) || return 1
    while heir=$(readlink "heirs/$held"); do held=$heir; done
}

claim() { # 0 ours, after the keeper named in dead if any; BUSY another lives; 1 error
    dead=
    stat_of $$ || return 1
    me=$$-$ticks
    ln -s "$me" keeper && return 0
    while holder; do
        is_running "$held" && return $BUSY
        if ln -s "$me" "heirs/$held"; then
            dead=$held
            ln -s "$me" ".keeper-$$" && mv -f ".keeper-$$" keeper
            return
        fi
        readlink "heirs/$held" >/dev/null || return 1
    done
    return 1
}

# --- log writers -------------------------------------------------------------------

# fifo $1 -> $1.log, until the last writer is gone. We hold the read end too, so
# that a killed cat costs at most what it had in hand. RLIMIT_FSIZE stops cat at
# the cap exactly (with XFSZ ignored: EFBIG), at no cost per byte.
write_log() {
    exec 9>.logs <"$1"
    cap=${CCT_LOG_MAX:-536870912}
    while ! grep -q "^$1 " cut; do
        ( trap '' XFSZ; ulimit -f $((cap / 512)); exec cat >>"$1.log" )
        rc=$?
        if [ $rc -eq 0 ]; then
            return
        elif [ "$(size_of "$1.log")" -ge $((cap / 512 * 512)) ]; then
            append cut "$1 $(size_of "$1.log")"
            printf %s "$CUT_MARK" >>"$1.log"
            break
        elif [ $rc -le 128 ]; then
            ride_out_full_disk "$1" || return
        fi
    done
    cat >/dev/null
}

# Drops output, one read at a time, until the log takes bytes again; 1 at EOF. A
# byte is read first, so that space is looked for when there is something to write.
ride_out_full_disk() {
    mv -f .diskfull diskfull
    while :; do
        byte=$(dd bs=1 count=1 | od -An -b)
        byte=${byte##* }
        [ -n "$byte" ] || return 1
        printf "%s\\$byte" "$GAP_MARK" >>"$1.log" && return 0
        dd bs=65536 count=1 of=/dev/null
    done
}

# --- messages ------------------------------------------------------------------------

is_taken() { grep -q "^$1 " taken; }

# A message that is in taken and still in inbox: a second copy, or one whose
# feeding was interrupted.
settle_taken() { # name
    for seen in sent/*-"${1#*-}" unsure/*-"${1#*-}"; do
        [ -e "$seen" ] && { rm -f "inbox/$1"; return; }
    done
    mv -f "inbox/$1" unsure/
}

is_message() { # path in inbox; sets name and id
    name=${1#inbox/} id=${1#*-}
    case ${name%%-*} in *[!0-9]*) return 1 ;; esac
    case $id in ''|*[!A-Za-z0-9_]*) return 1 ;; esac
    [ -f "$1" ]
}

# Sets name and id of the next message and notes it as taken; 1 when there is none.
take_next() {
    for path in inbox/[0-9]*-*; do
        is_message "$path" || continue
        if is_taken "$id"; then
            settle_taken "$name"
        else
            append taken "$id $(now_ms) $(size_of out.log)"
            return
        fi
    done
    return 1
}

settle_all() {
    for path in inbox/[0-9]*-*; do
        is_message "$path" && is_taken "$id" && settle_taken "$name"
    done
}

pass_on() { # name: its bytes to the CLI, then the file to where it belongs
    if cat "inbox/$1" >&5; then mv -f "inbox/$1" sent/; else mv -f "inbox/$1" unsure/; fi
    echo >&4
}

# One line of wake = look again; the end of pass_on is such a line too, so a CLI
# that does not read never keeps us from seeing `end`.
feed() {
    exec 9>.feed
    name=
    while [ ! -e end ] && [ -p in ] && is_running "$me"; do   # me: the keeper
        if [ -n "$name" ] && [ -e "inbox/$name" ] && stat_of "$pass" && [ "$state" != Z ]; then
            :   # still being passed on
        elif take_next; then
            pass_on "$name" &
            pass=$!
        else
            name=
        fi
        read -r line <&4
    done
    return $OVER
}

end_cli() { # fd 7 = .run, which ends with the CLI
    read -r grace <end
    case $grace in ''|*[!0-9]*) grace=10 ;; esac
    [ "$grace" -gt 0 ] && await_end "$grace" && return   # timeout 0 is no timeout
    read_cli_pid
    signal_group TERM "$cli" "$cli_ticks"
    await_end 3 && return
    signal_group KILL "$cli" "$cli_ticks"
}

attend() { # mode
    exec 4<>wake 7<.run
    if [ "$1" = persistent ]; then
        exec 5>in
        [ ! -e hello ] || cat hello >&5
        while :; do
            exec 8<>.feed 6<.feed 8>&-
            ( exec 6<&- 7<&-; feed )
            [ $? -gt 128 ] || break
            cat <&6 >/dev/null   # a killed feeder's cat first finishes its message
        done
        exec 5>&-
    else
        while [ ! -e end ]; do read -r line <&4; done
    fi
    [ -e end ] && end_cli
}

# --- the keeper ------------------------------------------------------------------------

start_cli() { # script; in session C, in the foreground. Its status is ours
    if [ ! -e pty ]; then
        setsid sh "$self" cli "$1" <"$stdin" >out 2>err 3>&- 4>&- 6>&- 7<&-
    elif command -v script >/dev/null; then
        CCT_SELF=$self SHELL=/bin/sh setsid script -qefc "exec sh \"\$CCT_SELF\" cli $1" \
            /dev/null 3<"$stdin" </dev/null >out 2>err 4>&- 6>&- 7<&-
    else
        setsid sh "$self" cli "$1" 3<"$stdin" </dev/null >out 2>err 4>&- 6>&- 7<&-
    fi
}

cli_main() { # script; from here the process number stays that of the CLI
    stat_of $$
    echo "$$ $ticks" >.cli.pid && mv -f .cli.pid cli.pid
    # the log keeps what the CLI wrote: no CR of the terminal's before each LF
    [ -t 1 ] && stty -onlcr <&1 2>/dev/null
    eval "$CCT_ENV"
    unset CCT_ENV CCT_SELF CCT_LOG_MAX
    exec sh "./$1"
}

# One life of the CLI. stdin: fifo or file; message id or -; sets code.
run() {
    stdin=$1 n=$((n + 1)) script=cli.sh
    [ -e "cli-$2.sh" ] && script=cli-$2.sh
    rm -f in out err .logs .run .feed cli.pid
    mkfifo -m 600 in out err .logs .run .feed || fail "cannot make the pipes"
    log_run "start $(now_ms)" " message $2 keeper $me"
    open_7 .logs
    exec 8<>.run 6>.run 8>&-
    ( exec 3>&- 4>&- 6>&- 7<&-; write_log out ) &
    ( exec 3>&- 4>&- 6>&- 7<&-; write_log err ) &
    ( exec 3>&- 4>&- 6>&- 7<&-; attend "$mode" ) &
    start_cli "$script"
    code=$?
    exec 6>&-
    rm -f in
    read_cli_pid
    rm -f cli.pid
    # A launcher can die while its child still holds the pipe: two seconds for that.
    if ! await_end 2; then
        signal_group KILL "$cli" "$cli_ticks"
        await_end 1
    fi
    exec 7<&-
    # what is left of this run in session K: feeder, attend, writers that hang
    trap : TERM
    kill -TERM 0; kill -CONT 0
    wait
    trap - TERM
    settle_all
    log_run "exit $code $(now_ms)"
}

one_runs() { # a run per message, until `end`
    exec 4<>wake
    while [ ! -e end ]; do
        if take_next; then
            mv -f "inbox/$name" sent/
            run "sent/$name" "$id"
        else
            read -r line <&4
        fi
    done
}

# A keeper died without publishing exit. End what it left behind.
bury() {
    case $last in *' keeper '*) old=${last##* keeper } ;; *) old=$dead ;; esac
    read_cli_pid
    signal_group KILL "$cli" "$cli_ticks"
    if [ -p .logs ]; then
        open_7 .logs
        await_end 2
        exec 7<&-
    fi
    signal_group TERM "${old%-*}" "${old#*-}"
    signal_group CONT "${old%-*}" "${old#*-}"
    settle_all
    case $last in *' start '*) log_run "exit lost $(now_ms)" ;; esac
    publish_exit lost
}

read_runs() { # sets last, the last line of runs, and its number n
    last=$(grep '^run [0-9]* [es]' runs | tail -n 1)
    n=${last#run } n=${n%% *}
    n=${n:-0}
}

check_epoch() { # offsets of an earlier log mean nothing in a shorter one
    old=0
    case $last in *out-offset*) old=${last##*out-offset } old=${old%% *} ;; esac
    e=0
    [ -e epoch ] && read -r e <epoch
    if [ "$e" -eq 0 ] || [ "$(size_of out.log)" -lt "$old" ]; then
        echo $((e + 1)) >.epoch && mv -f .epoch epoch
    fi
}

fail() { # why; the runner prints it
    echo "$1" >error
    exit 1
}

keeper_main() { # run|bury
    exec 3<>alive
    claim
    rc=$?
    [ $rc -eq $BUSY ] && exit $BUSY
    [ $rc -eq 0 ] || fail "cannot claim the session"
    read_runs
    if [ -n "$dead" ] && [ ! -e exit ]; then
        bury || fail "cannot write exit: no space"
    fi
    [ "$1" = bury ] && exit 0
    LC_ALL=C   # the order of names in inbox; cli_main gives back what was there
    mode=persistent
    [ -e mode ] && read -r mode <mode
    rm -f exit diskfull error
    : >.diskfull && : >>cut && : >>taken && : >>out.log && : >>err.log
    dd if=/dev/zero of=.reserve bs=65536 count=1
    echo 1 >format
    check_epoch
    code=0
    case $mode in
    persistent) run in - ;;
    one-run) one_runs ;;
    *) fail "unknown mode '$mode'" ;;
    esac
    publish_exit "$code" || fail "cannot write exit: no space"
}

# --- the runner ------------------------------------------------------------------------

die() { echo "cc-tui runner: $1" >&2; [ -n "$forward" ] && kill "$forward"; exit 1; }

start_keeper() { # run|bury; own session, none of envd's pipes
    setsid sh "$self" keeper "$1" </dev/null >/dev/null 2>&1
}

follow() { # until the living keeper is gone; 1 when it was only burying
    open_7 alive
    holder
    role=$(tr '\0' ' ' <"/proc/${held%-*}/cmdline")
    echo 1<>wake   # catch up with what came while nobody told
    cat <&7 >/dev/null
    exec 7<&-
    case $role in *'keeper bury '*) return 1 ;; esac
}

runner_main() { # session-dir [bury]
    for tool in setsid mkfifo readlink timeout stat grep dd od; do
        command -v $tool >/dev/null || die "needs '$tool', which this sandbox does not have"
    done
    cd "$1" || die "cannot enter '$1'"
    mkdir -p -m 700 inbox sent unsure heirs || die "cannot write in '$1'"
    for fifo in wake alive; do
        [ -p $fifo ] || mkfifo -m 600 $fifo || [ -p $fifo ] || die "cannot make '$1/$fifo'"
    done
    : >>runs
    exec 4<&0
    cat <&4 1<>wake 2>/dev/null &
    forward=$!
    exec 4<&- </dev/null
    want=${2:-run}
    [ "$want" = run ] || [ -L keeper ] || die "'$1' was never started"
    while :; do
        start_keeper "$want"
        rc=$?
        case $rc in
        0) ;;
        "$BUSY") follow 2>/dev/null || continue ;;
        *) [ $rc -gt 128 ] || die "$(cat error 2>/dev/null ||
               echo "the keeper ended with status $rc; is the disk full?")" ;;
        esac
        [ -e exit ] && break
        want=bury   # the keeper was killed
    done
    kill $forward 2>/dev/null
    exit 0
}

forward=
case $0 in /*) self=$0 ;; *) self=$PWD/$0 ;; esac
{
    case $1 in
    keeper) keeper_main "$2" ;;
    cli) cli_main "$2" ;;
    *) runner_main "$@" ;;
    esac
    exit
}
