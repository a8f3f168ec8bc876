#!/bin/sh
# OpenCode's server as an agent CLI of one process. It listens on loopback alone, on a free
# port, behind a password that nobody else is told; all of it ends with us.
#
#   opencode-driver.sh [--ask] [--model PROVIDER/NAME] [--session ID]
#
# stdout: one line of JSON per event of the server, after a session.created of our own; a
#         request that was refused as {"type":"driver.error","properties":{...}}.
# stdin:  one line per request, {"method":"POST","path":"/...","body":{...}}; {session} in
#         the path is the session's id. Its end ends the server.
# --ask:  the server asks before it edits, runs a command or fetches; without it, never.

umask 077
ask= model= session=
while [ $# -gt 0 ]; do
    case $1 in
    --ask) ask=1 ;;
    --model) model=$2; shift ;;
    --session) session=$2; shift ;;
    *) echo "opencode-driver: unknown argument '$1'" >&2; exit 2 ;;
    esac
    shift
done

USE_RUN="use the tool opencode (it runs 'opencode run') instead, or another template"
serve= events=
tmp=$(mktemp -d) || exit 1
finish() {
    trap - EXIT INT TERM
    [ -n "$events" ] && kill "$events" 2>/dev/null
    [ -n "$serve" ] && kill "$serve" 2>/dev/null && wait "$serve" 2>/dev/null
    rm -rf "$tmp"
    exit "$1"
}
fail() {
    echo "opencode-driver: $1" >&2
    finish "${2:-1}"
}
trap 'finish 1' EXIT
trap 'finish 130' INT
trap 'finish 143' TERM

for program in opencode curl; do
    command -v $program >/dev/null 2>&1 || fail "there is no '$program' here: $USE_RUN" 127
done

# --- the server ----------------------------------------------------------------

OPENCODE_SERVER_PASSWORD=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
[ ${#OPENCODE_SERVER_PASSWORD} -eq 48 ] || fail "no random bytes for the server's password"
export OPENCODE_SERVER_PASSWORD
printf 'machine 127.0.0.1 login opencode password %s\n' "$OPENCODE_SERVER_PASSWORD" >"$tmp/netrc"
if [ -z "$OPENCODE_PERMISSION" ]; then
    if [ -n "$ask" ]; then
        OPENCODE_PERMISSION='{"edit":"ask","bash":"ask","webfetch":"ask"}'
    else
        OPENCODE_PERMISSION='{"*":"allow"}'
    fi
    export OPENCODE_PERMISSION
fi
case $model in
'') ;;
*[!A-Za-z0-9._:/@-]*) fail "'$model' is no name of a model" 2 ;;
*)  # into what is configured already, unless that names one
    case ${OPENCODE_CONFIG_CONTENT:=\{\}} in
    *'"model"'*) ;;
    *)  rest=${OPENCODE_CONFIG_CONTENT#*\{}
        case $rest in *\"*) rest=,$rest ;; esac
        OPENCODE_CONFIG_CONTENT="{\"model\":\"$model\"$rest" ;;
    esac
    export OPENCODE_CONFIG_CONTENT ;;
esac

mkfifo "$tmp/out" "$tmp/head" || fail "cannot make the pipes"
opencode serve --hostname 127.0.0.1 --port 0 >"$tmp/out" </dev/null &
serve=$!
exec 3<"$tmp/out" 4<>"$tmp/head"
port=
while IFS= read -r line <&3; do
    case $line in
    *http://127.0.0.1:*)
        port=${line##*http://127.0.0.1:}
        port=${port%%[!0-9]*}
        break ;;
    esac
    echo "$line" >&2
done
[ -n "$port" ] || fail "'opencode serve' did not start: $USE_RUN"
cat <&3 >/dev/null &
unset OPENCODE_SERVER_PASSWORD

call() { # path, curl's options; the body comes from stdin
    path=$1
    shift
    curl -s --netrc-file "$tmp/netrc" --noproxy '*' "$@" "http://127.0.0.1:$port$path"
}
post() { # path; prints the status, the answer is in $tmp/answer
    call "$1" -o "$tmp/answer" -w '%{http_code}' -X POST --data-binary @- \
        -H 'content-type: application/json'
}

# --- the session ---------------------------------------------------------------

if [ -n "$session" ]; then
    case $session in *[!A-Za-z0-9_-]*) fail "'$session' is no session" 2 ;; esac
    status=$(call "/session/$session" -o "$tmp/answer" -w '%{http_code}' </dev/null)
    [ "$status" = 200 ] || fail "there is no session '$session' (HTTP status $status)"
else
    status=$(echo '{}' | post /session)
    session=$(sed -n '1s/^[^{]*{"id":"\([A-Za-z0-9_-]*\)".*/\1/p' "$tmp/answer")
    [ -n "$session" ] || fail "no session could be made (HTTP status $status): $USE_RUN"
fi
printf '{"type":"session.created","properties":{"info":{"id":"%s"}}}\n' "$session"

# --- events --------------------------------------------------------------------

data_lines() { # of a stream of events, as they come
    if [ "$(printf 'data: x\n' | sed -un 's/^data: //p' 2>/dev/null)" = x ]; then
        sed -un 's/^data: //p'
    else
        while IFS= read -r line; do
            case $line in 'data: '*) printf '%s\n' "${line#data: }" ;; esac
        done
    fi
}
serves() { # nobody waits for it yet: dead it is a zombie
    { read -r st <"/proc/$serve/stat"; } 2>/dev/null || return 1
    case ${st##*\)} in ' Z'* | ' X'*) return 1 ;; esac
}
main=$$
(
    trap - EXIT INT TERM
    while serves; do
        call /event -N -D "$tmp/head" </dev/null
        sleep 1
    done | data_lines
    kill "$main" 2>/dev/null
) &
events=$!
read -r status <&4 || fail "the server gives no events: $USE_RUN"
case $status in *' 200'*) ;; *) fail "the server gives no events ($status): $USE_RUN" ;; esac

# --- requests ------------------------------------------------------------------

refused() { # what went wrong with it
    printf '{"type":"driver.error","properties":{"path":"%s","status":%d,"message":"%s"}}\n' \
        "$path" "$status" "$(printf '%s' "$1" | head -c 1000 | tr -d '\000-\037' |
        sed 's/\\/\\\\/g; s/"/\\"/g')"
}
while IFS= read -r line; do
    path=${line#*'"path":"'}
    body=${path#*'"body":'}
    path=${path%%\"*}
    status=0
    case $line in
    '{"method":"POST","path":"/'*'"body":'*'}') ;;
    *) path=; refused "a line that is no request"; continue ;;
    esac
    case $path in
    *'{session}'*) path=${path%%'{session}'*}$session${path#*'{session}'} ;;
    esac
    case $path in
    *[!A-Za-z0-9_/-]*) path=; refused "a path that is none"; continue ;;
    esac
    status=$(printf '%s' "${body%\}}" | post "$path")
    case $status in
    2??) ;;
    *) refused "$(cat "$tmp/answer" 2>/dev/null)" ;;
    esac
done
finish 0
