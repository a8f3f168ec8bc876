#!/bin/sh
# The official E2B SDK and CLI, unmodified, against a running provider of our own:
# an independent opinion about the wire. Their packages are pinned by
# package-lock.json and fetched on the first run. Run as root it runs a second
# time as an account that owns nothing, for that is what most people are.
# Where namespaces are refused the provider runs without isolation, and the first
# line of output says so. CHECKS: names of checks/, all by default; B = build folder.
set -u
cd "$(dirname "$0")" || exit 1
here=$(pwd)
local_bin=$(cd ../.. && cd "${B:-build/release}" && pwd)/cc-tui-local
nobody=63211 # no account has this number

skip() { echo "1..1"; echo "ok 1 - sdk # SKIP $1"; exit 0; }
fail() { echo "1..1"; echo "not ok 1 - $1"; exit 1; }

command -v node > /dev/null 2>&1 || skip "no node"
[ -x "$local_bin" ] || fail "sdk: $local_bin is not built"
new_enough='const [a, b, c] = process.versions.node.split(".").map(Number)
process.exit(a > 20 || (a === 20 && (b > 18 || (b === 18 && c >= 1))) ? 0 : 1)'
node=$(command -v node)
omit=--omit=dev
if ! node -e "$new_enough"; then # its own newer node comes as a package
    node=$here/node_modules/.bin/node
    omit=
fi
exec 8< "$here" # suites of two builds may want to fetch at once
flock 8
if ! cmp -s package-lock.json node_modules/.lock || [ ! -x "$node" ]; then
    command -v npm > /dev/null 2>&1 || skip "no npm to fetch the SDK with"
    # shellcheck disable=SC2086
    npm ci --prefer-offline $omit > npm.log 2>&1 ||
        skip "npm ci failed: $(grep -m1 -E '^npm (ERR!|error)' npm.log)"
    rm -f npm.log
    cp package-lock.json node_modules/.lock
fi
exec 8<&-

# One provider and the checks on it, as `$2...` makes both run; $1 names the checks.
run() (
    name=$1; shift
    dir=$(mktemp -d /tmp/cct-sdk-XXXXXX) || exit 1
    pid=
    cleanup() {
        "$@" "$local_bin" stop --state-dir "$dir/state" --runtime-dir "$dir/run" > /dev/null 2>&1
        wait "$pid" 2> /dev/null
        rm -rf "$dir"
    }
    trap 'cleanup "$@"' EXIT
    trap 'exit 1' INT TERM
    mkdir -m 700 "$dir/state" "$dir/run" "$dir/home" "$dir/tmp"
    if [ $# -gt 0 ]; then
        chown -R "$nobody:$nobody" "$dir"
    elif [ "$(id -u)" = 0 ]; then
        chmod 711 "$dir" "$dir/state"
    fi
    unsafe=
    if [ -n "${CCT_SDK_UNSAFE-}" ]; then
        unsafe=--unsafe # the other mode, by hand
    elif ! "$@" "$local_bin" probe > "$dir/probe" 2>&1; then
        unsafe=--unsafe
        echo "# not isolated here: $(cat "$dir/probe")"
    fi
    "$@" "$local_bin" serve --foreground $unsafe --state-dir "$dir/state" \
        --runtime-dir "$dir/run" > "$dir/log" 2>&1 &
    pid=$!
    turns=0
    while [ ! -s "$dir/run/local.json" ] && kill -0 "$pid" 2> /dev/null && [ $turns -lt 400 ]; do
        turns=$((turns + 1))
        sleep 0.05
    done
    # shellcheck disable=SC2086
    "$@" env -u E2B_DEBUG -u E2B_DOMAIN HOME="$dir/home" TMPDIR="$dir/tmp" CHECK_AS="$name" \
        ADDRESS="$dir/run/local.json" LOCAL_BIN="$local_bin" "$node" main.mjs ${CHECKS-}
    rc=$?
    [ "$rc" -eq 0 ] ||
        sed "s/^/# provider ($name): /" "$dir/log" "$dir/state/local.log" 2> /dev/null | tail -n 40
    exit "$rc"
)

if [ "$(id -u)" != 0 ]; then
    run user
    exit
fi
case ${MODE-} in
asan | tsan) # they look at memory, which is the same for every account
    run root
    exit ;;
esac
set -- setpriv --reuid "$nobody" --regid "$nobody" --clear-groups --inh-caps=-all --
if ! "$@" test -r "$here/main.mjs" -a -x "$local_bin" 2> /dev/null; then
    run root
    status=$?
    echo "1..1"
    echo "ok 1 - user # SKIP setpriv is missing, or others may not read $here"
    exit "$status"
fi
out=$(mktemp /tmp/cct-sdk-XXXXXX) || exit 1
run user "$@" > "$out" 2>&1 &
user=$!
trap 'kill $user 2> /dev/null; wait $user; rm -f "$out"; exit 1' INT TERM
run root
status=$?
wait "$user" || status=$?
cat "$out"
rm -f "$out"
exit "$status"
