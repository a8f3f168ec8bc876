#!/bin/sh
# Install what is missing to build, run and test: Debian 12 and Ubuntu 24.04
# packages by apt (through sudo when not root) and, for the tests that drive the
# official SDK, npm packages pinned by tests/sdk/package-lock.json.
# Arguments: the make goals that need more than the build (test, e2e, ...).
set -eu
nice=
cd "$(dirname "$0")/.."

need="gcc make pkg-config libncurses-dev libcjson-dev libsodium-dev libsqlite3-dev
 libevent-dev libseccomp-dev zlib1g-dev libcurl4-openssl-dev ca-certificates"
case " $* " in
*" test "*|*" e2e "*|*" bench "*|*" check "*|*" agents "*|*" soak "*)
    need="$need libcmocka-dev libvterm-dev procps busybox iproute2"
    need="$need libnghttp2-dev libssl-dev" # the tests' own HTTP/2 server
    nice=passt # without it the tests of private networks are left out
    # the official SDK is a judge in the tests; npm brings a newer Node where this one is old
    command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || need="$need nodejs npm" ;;
esac

has() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q ' installed$'; }

missing=
for p in $need; do
    if [ "$p" = gcc ] && command -v "${CC:-cc}" >/dev/null 2>&1; then continue; fi
    has "$p" || missing="$missing $p"
done
if [ -n "$missing" ]; then
    as=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 || {
            echo "cannot install$missing: not root and there is no sudo; run as root: apt-get install$missing" >&2
            exit 1
        }
        as=sudo
    fi
    command -v apt-get >/dev/null 2>&1 || {
        echo "missing packages:$missing (no apt-get here: install them by your system's means)" >&2
        exit 1
    }
    echo "installing:$missing" >&2
    $as env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    $as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
if [ -n "$nice" ] && ! has "$nice" && command -v apt-get >/dev/null 2>&1; then
    as=
    [ "$(id -u)" = 0 ] || as="sudo -n"
    $as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$nice" \
        >/dev/null 2>&1 || echo "$nice cannot be installed: its tests are left out" >&2
fi
