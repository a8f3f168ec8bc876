#!/bin/sh
# The disk of the database is full in the middle of a turn: the turn goes on, what is missing
# is said, and it is all there once there is space. A folder that cannot be written. As root,
# in a mount namespace of its own. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build/debug}
if [ "${1:-}" != inside ]; then
    if [ ! -x "$B/cc-tui" ] || ! "$B/cc-tui-local" probe > /dev/null 2>&1 ||
        ! unshare -m sh -c 'mount -t tmpfs -o size=1M none /mnt' 2> /dev/null; then
        echo "ok 1 - full disk # SKIP no file system can be mounted here"
        echo 1..1
        exit 0
    fi
    exec unshare -m sh tests/cli/test_full_disk.sh inside
fi
n=0
bad=0
c=$(realpath "$B/cc-tui")
T=$(mktemp -d /tmp/test-full.XXXXXX)
export HOME="$T/home" CC_TUI_CONFIG_DIR="$T/c" CC_TUI_DATA_DIR="$T/d" CC_TUI_STATE_DIR="$T/s"
export CC_TUI_RUNTIME_DIR="$T/r" LC_ALL=C.UTF-8 TERM=xterm
mkdir -p "$HOME" "$T/d"
unset E2B_API_KEY E2B_API_URL E2B_DOMAIN E2B_SANDBOX_URL NO_COLOR CLICOLOR_FORCE
trap '"$c" local stop --yes >/dev/null 2>&1; umount "$T/d" 2>/dev/null; rm -rf "$T"' EXIT
trap 'exit 1' INT TERM
mount -t tmpfs -o size=1500k,mode=700 none "$T/d" || exit 1

check() { # name, command...
    name=$1; shift
    n=$((n + 1))
    if "$@"; then
        echo "ok $n - $name"
    else
        bad=$((bad + 1))
        echo "not ok $n - $name"
        echo "# status $rc"
        tail -n 12 "$T/out" | sed 's/^/# out: /'
        sed 's/^/# err: /' "$T/err" | head -n 12
    fi
}
run() {
    timeout 60 "$c" --local "$@" > "$T/out" 2> "$T/err" < /dev/null
    rc=$?
}
is() { [ "$rc" -eq "$1" ]; }
out() { grep -qF -e "$1" "$T/out"; }
err() { grep -qF -e "$1" "$T/err"; }

run new --tool demo --name box
run send box --wait 'run seq 100000; echo END-OF-$((1 + 1))'
check "a turn that does not fit ends" is 0
run logs box
check "what is kept of it is said not to be all" eval 'is 1 && err "that is not all"'
run send box --wait 'run echo perhaps'
there=!
[ "$rc" -ne 0 ] && ! grep -qF "the message waits" "$T/err" || there=
check "a message is taken, or it is said why not" \
    eval 'is 0 || { is 1 && err "the disk is full; free some space"; }'
mount -o remount,size=64M "$T/d"
run send box --wait 'run echo next-$((1 + 1))'
check "with space again the agent goes on" is 0
run logs box
check "and all that it said is there" eval 'is 0 && out END-OF-2 && out next-2 && eval "$there out perhaps"'
check "each line once" [ "$(grep -cx '1[0-9]*' "$T/out")" -eq "$(seq 100000 | grep -c '^1')" ]
mount -o remount,ro "$T/d"
run ls
check "a folder that cannot be written is named" eval 'is 0 && err "Read-only file system"'
run send box --wait 'run echo still-$((1 + 1))'
check "an agent can be talked to all the same" is 0
run kill box --yes
check "and be killed" is 0
echo "1..$n"
[ "$bad" -eq 0 ]
