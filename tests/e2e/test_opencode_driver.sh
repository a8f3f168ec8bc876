#!/bin/sh
# The driver of OpenCode's server, between stand-ins for the server and for curl: what goes
# to its stdout, which requests it makes, and that nothing of it stays. TAP.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/cct-opencode.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
n=0 failed=0 broken=

ok() { # name; the status before decides
    rc=$?
    n=$((n + 1))
    if [ $rc -eq 0 ]; then
        echo "ok $n - $shell: $1"
    else
        echo "not ok $n - $shell: $1"
        failed=$((failed + 1))
        for f in out err calls; do sed "s/^/# $f: /" "$d/$f" 2>/dev/null; done
    fi
}
within() { # seconds, command...
    left=$(($1 * 20)); shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.05
    done
}

# --- the stand-ins ---------------------------------------------------------------

mkdir "$tmp/bin"
cat >"$tmp/bin/opencode" <<'END'
#!/bin/sh
env | grep '^OPENCODE_' >"$D/env"
echo "$$" >"$D/server"
[ -n "$broken" ] && { echo "unknown command: serve" >&2; exit 1; }
echo "a word before"
echo "opencode server listening on http://127.0.0.1:4711"
exec sleep 60
END
# the body of a request ends a line of `calls`
cat >"$tmp/bin/curl" <<'END'
#!/bin/sh
out=/dev/stdout head= secret=no method=GET
while [ $# -gt 0 ]; do
    case $1 in
    -o) out=$2; shift ;;
    -D) head=$2; shift ;;
    -X) method=$2; shift ;;
    --netrc-file) secret=$(cut -d' ' -f6 "$2"); shift ;;
    -w|--data-binary|-H|--noproxy) shift ;;
    http*) url=$1 ;;
    esac
    shift
done
[ "$secret" = "$(sed -n 's/^OPENCODE_SERVER_PASSWORD=//p' "$D/env")" ] || { printf 401; exit; }
path=${url#http://127.0.0.1:4711}
case "$method $path" in
'GET /event')
    printf 'HTTP/1.1 200 OK\r\n' >"$head"
    printf 'data: {"type":"server.connected"}\n\n: a comment\n\n'
    exec cat "$D/events" ;;
'GET /session/ses_old') printf 200 ;;
'GET '*) printf 404 ;;
*)  printf '%s %s\n' "$path" "$(cat)" >>"$D/calls"
    case $path in
    /session) echo '{"id":"ses_new","title":"x"}' >"$out"; printf 200 ;;
    *bad*) printf '{"message":"a \\ \001 "}' >"$out"; printf 400 ;;
    *) printf 204 ;;
    esac ;;
esac
END
chmod +x "$tmp/bin/opencode" "$tmp/bin/curl"

begin() { # arguments of the driver; fd 9 is its stdin, fd 8 feeds the server's events
    d=$tmp/$shell-$((n + 1))
    mkdir -p "$d/tmp"
    mkfifo "$d/in" "$d/events"
    exec 9<>"$d/in" 8<>"$d/events"
    (
        exec 9<&- 8<&-
        D=$d TMPDIR=$d/tmp PATH=$tmp/bin:$PATH
        export D TMPDIR PATH broken
        exec $run "$here/src/jobs/opencode-driver.sh" "$@" <"$d/in" >"$d/out" 2>"$d/err"
    ) &
    driver=$!
}
leave() { # close its stdin; sets code
    exec 9<&- 8<&-
    ended
}
ended() { # by itself; sets code
    wait "$driver"
    code=$?
    exec 9<&- 8<&-
}
gone() { ! kill -0 "$(cat "$d/server")" && [ -z "$(ls -A "$d/tmp")" ]; }
says() { grep -qF "$1" "$d/$2"; }

# --- checks ----------------------------------------------------------------------

checks() {
    begin --model openrouter/x/y-1.5
    within 10 says '{"type":"server.connected"}' out
    ok "it begins with the server's first event"
    [ "$(head -n 1 "$d/out")" = '{"type":"session.created","properties":{"info":{"id":"ses_new"}}}' ]
    ok "before it stands a session"
    says 'OPENCODE_PERMISSION={"*":"allow"}' env && says 'OPENCODE_CONFIG_CONTENT={"model":"openrouter/x/y-1.5"}' env
    ok "the server asks nothing, and has the model"
    printf 'data: {"a":"one"}\n\ndata: {"b":"%5000s"}\n\n' x >&8
    within 10 says '{"a":"one"}' out && within 10 says 'x"}' out && ! says comment out
    ok "events come as lines"
    printf '%s\n' '{"method":"POST","path":"/session/{session}/prompt_async","body":{"t":"a \"b\" $x `y` {}}"}}' >&9
    within 10 says '/session/ses_new/prompt_async {"t":"a \"b\" $x `y` {}}"}' calls
    ok "a request goes out as it came, to the session"
    printf '%s\n' '{"method":"POST","path":"/bad/1","body":{}}' 'no request' \
        '{"method":"POST","path":"/a?b","body":{}}' >&9
    within 10 says '"path":"/bad/1","status":400,"message":"{\"message\":\"a \\  \"}"' out &&
        within 10 says 'a line that is no request' out && within 10 says 'a path that is none' out
    ok "what is refused is an event"
    ! tr '\0' '\n' <"/proc/$(cat "$d/server")/cmdline" | grep -q "$(sed -n 's/^OPENCODE_SERVER_PASSWORD=//p' "$d/env")"
    ok "no password on a command line"
    leave
    [ $code -eq 0 ] && within 5 gone
    ok "it ends with its stdin, and the server with it"

    OPENCODE_CONFIG_CONTENT='{"a":{"b":"c"}}'
    export OPENCODE_CONFIG_CONTENT
    begin --ask --session ses_old --model x/y
    unset OPENCODE_CONFIG_CONTENT
    within 10 says '"id":"ses_old"' out && says '"bash":"ask"' env
    ok "it goes on with a session, and asks"
    says 'OPENCODE_CONFIG_CONTENT={"model":"x/y","a":{"b":"c"}}' env
    ok "a model beside what is configured"
    within 10 says server.connected out && kill "$(cat "$d/server")"
    exec 8<&- # what it was saying ends with it
    ended
    [ $code -ne 0 ] && within 5 gone
    ok "it ends with the server"

    begin --session ses_gone
    ended
    [ $code -eq 1 ] && says "there is no session 'ses_gone'" err && within 5 gone
    ok "an unknown session is said"

    broken=1
    begin
    ended
    broken=
    [ $code -eq 1 ] && says "use the tool opencode" err
    ok "a server that does not start is said"
}

for shell in dash busybox bash; do
    case $shell in busybox) run='busybox sh' ;; *) run=$shell ;; esac
    command -v ${run%% *} >/dev/null || continue
    checks
done
mkdir "$tmp/bare"
for program in mktemp rm od tr; do ln -s "$(command -v $program)" "$tmp/bare/$program"; done
shell=sh d=$tmp
PATH=$tmp/bare /bin/sh "$here/src/jobs/opencode-driver.sh" >"$tmp/out" 2>"$tmp/err" </dev/null
[ $? -eq 127 ] && says "use the tool opencode" err
ok "what is missing is said"
echo "1..$n"
[ $failed -eq 0 ]
