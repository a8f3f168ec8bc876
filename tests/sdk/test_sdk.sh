#!/bin/sh
# The official E2B SDK, unmodified, against a running provider of our own: an
# independent opinion about the wire. Its packages are pinned by
# package-lock.json and fetched on the first run. Where namespaces are refused
# the provider runs without isolation, and the first line of output says so.
# B = build folder.
set -u
cd "$(dirname "$0")" || exit 1
here=$(pwd)
local_bin=$(cd ../.. && cd "${B:-build/release}" && pwd)/cc-tui-local

skip() { echo "1..1"; echo "ok 1 - sdk # SKIP $1"; exit 0; }
fail() { echo "1..1"; echo "not ok 1 - $1"; exit 1; }

command -v node > /dev/null 2>&1 || skip "no node"
[ -x "$local_bin" ] || fail "sdk: $local_bin is not built"
new_enough='const [a, b, c] = process.versions.node.split(".").map(Number)
process.exit(a > 20 || (a === 20 && (b > 18 || (b === 18 && c >= 1))) ? 0 : 1)'
node=node
omit=--omit=dev
if ! node -e "$new_enough"; then # its own newer node comes as a package
    node=$here/node_modules/.bin/node
    omit=
fi
if [ ! -d node_modules/e2b ] || [ "$node" != node ] && [ ! -x "$node" ]; then
    command -v npm > /dev/null 2>&1 || skip "no npm to fetch the SDK with"
    # shellcheck disable=SC2086
    npm ci $omit > npm.log 2>&1 || skip "npm ci failed: $(grep -m1 -E 'ERR|error' npm.log)"
    rm -f npm.log
fi

dir=$(mktemp -d /tmp/cct-sdk-XXXXXX) || exit 1
mkdir -m 700 "$dir/state" "$dir/run" "$dir/home"
[ "$(id -u)" = 0 ] && chmod 711 "$dir" "$dir/state"
unsafe=
if [ -n "${CCT_SDK_UNSAFE-}" ]; then
    unsafe=--unsafe # the other mode, by hand
elif ! "$local_bin" probe > "$dir/probe" 2>&1; then
    unsafe=--unsafe
    echo "# not isolated here: $(cat "$dir/probe")"
fi
"$local_bin" serve --foreground $unsafe --state-dir "$dir/state" --runtime-dir "$dir/run" \
    > "$dir/log" 2>&1 &
pid=$!
cleanup() {
    "$local_bin" stop --state-dir "$dir/state" --runtime-dir "$dir/run" > /dev/null 2>&1
    kill "$pid" 2> /dev/null
    wait "$pid" 2> /dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

env -u E2B_DEBUG -u E2B_DOMAIN HOME="$dir/home" ADDRESS="$dir/run/local.json" \
    LOCAL_BIN="$local_bin" "$node" sdk_check.mjs
rc=$?
[ "$rc" -eq 0 ] || sed 's/^/# provider: /' "$dir/log" "$dir/state/local.log" 2> /dev/null | tail -n 40
exit "$rc"
