#!/bin/sh
# 'cc-tui keys' from a shell: pastes, files that are private from birth, folders that are not
# ours, memory that cannot be locked. Nothing is asked of any service. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin keys
unset CC_TUI_CONFIG_DIR CC_TUI_DATA_DIR CC_TUI_STATE_DIR CC_TUI_RUNTIME_DIR
key=e2b_0123456789abcdef0123456789abcdef01239f21

fresh() { # a machine's user who never ran it
    rm -rf "$T/home"
    mkdir -m 700 "$T/home"
    export HOME="$T/home"
}
keys() { # arguments; stdin is the key
    "$c" keys "$@" > "$T/out" 2>&1
}
is() { [ "$1" -eq "$2" ]; }
said() { grep -q -- "$1" "$T/out"; }
hides() { ! grep -rqaF "0123456789abcdef" "$@"; }

# --- adding --------------------------------------------------------------------------------
fresh
printf '%s\n' "$key" | keys add e2b
check "from stdin" is $? 0
check "told by its end" said '\*\*\*\*9f21'
keys < /dev/null
check "the bare word lists" said 'E2B key \*\*\*\*9f21 (user key)'
check "and says how it is kept" said 'key file'
keys ls --json < /dev/null
check "as JSON" said '"source":"user key","key":"\*\*\*\*9f21"'
printf '  export E2B_API_KEY="%s";\r\n' "$key" | keys add e2b --project acme --json
check "with what people paste around it" said '"key":"\*\*\*\*9f21"'
keys --project acme < /dev/null
check "the same key hides nothing" said '^E2B key \*\*\*\*9f21 (project key)$'
keys add e2b --command "printf %s $key" < /dev/null
check "from a command" is $? 0
keys add e2b --command 'echo key; exit 3' < /dev/null
check "of a command that fails: nothing" is $? 2
for odd in '' '   ' short 'two words' "sk-ant-$key" 'OPENAI_API_KEY=sk-0123456789'; do
    printf '%s\n' "$odd" | keys add e2b
    check "refused: '$odd'" is $? 2
done
keys add e2b "$key" < /dev/null
check "as an argument it is refused" is $? 2
check "with advice, not repeated" sh -c 'grep -q "never given as an argument" "$1" &&
    ! grep -q 0123456789abcdef "$1"' - "$T/out"
keys add "$key" < /dev/null
check "in the provider's place, too" sh -c '! grep -q 0123456789abcdef "$1"' - "$T/out"
"$c" "$key" > "$T/out" 2>&1
check "and as a command" sh -c '! grep -q 0123456789abcdef "$1"' - "$T/out"
"$c" ls --api-key="$key" > "$T/out" 2>&1
check "and as an option" sh -c '! grep -q 0123456789abcdef "$1"' - "$T/out"
keys add nobody < /dev/null
check "an unknown provider" is $? 2
keys rm openai < /dev/null
check "removing what is not there" is $? 5
keys add e2b --no-input < /dev/null
check "nothing on stdin" is $? 2
keys add e2b --readonly < /dev/null
check "read-only" is $? 2
check "no file has the key" hides "$T/home"

# --- another service -------------------------------------------------------------------------
E2B_DOMAIN=self.example keys < /dev/null
check "a key of another service is not in force" is $? 4
check "and that is said" said 'was added for https://api.e2b.app and is not sent to https://api.self'
E2B_DOMAIN=self.example keys --json < /dev/null
check "in JSON, too" said '"source":"none".*not sent to'
printf 'abcdefgh\n' | E2B_DOMAIN=self.example keys add e2b
check "each service has its own" is $? 0
E2B_DOMAIN=self.example keys < /dev/null
check "a short key shows nothing of itself" said '^E2B key \*\*\*\* (user key) at https://api.self.example$'
E2B_DOMAIN=self.example "$c" doctor > "$T/out" 2>&1
check "the doctor names the address" said 'not E2B.s own: E2B_DOMAIN=self.example'
keys < /dev/null
check "and the first is there as before" said 'E2B key \*\*\*\*9f21 (user key)$'
E2B_API_URL=https://me:canary@api.example "$c" keys > "$T/out" 2>&1 < /dev/null
check "an address with a password is refused" is $? 4
printf '%s\n' "$key" | E2B_API_URL=https://me:canary@api.example keys add e2b
check "and nothing is stored for it" is $? 2
check "nor told" sh -c '! grep -q canary "$1"' - "$T/out"
keys --local < /dev/null
check "--local needs none" said 'local provider'

# --- the folder chooses a project ---------------------------------------------------------------
mkdir -p "$T/home/repo"
printf '[sandbox]\nproject = acme\n[net]\nca_file = /tmp/evil.pem\n' > "$T/home/repo/.cc-tui"
(cd "$T/home/repo" && keys < /dev/null)
check "its keys want a yes" sh -c 'grep -q "keys trust" "$1" && grep -q "no E2B key" "$1"' - "$T/out"
(cd "$T/home/repo" && keys --project acme < /dev/null)
check "an argument is one" said '(project key)'
(cd "$T/home/repo" && keys trust < /dev/null)
check "and 'keys trust'" is $? 0
(cd "$T/home/repo" && keys < /dev/null)
check "for this folder" said '(project key)'
mkdir -p "$T/home/other"
cp "$T/home/repo/.cc-tui" "$T/home/other"
(cd "$T/home/other" && keys < /dev/null)
check "for no other" said 'keys trust'
keys trust < /dev/null
check "where there is nothing to trust" is $? 2

# --- files -----------------------------------------------------------------------------------------
private() { # all that is there
    ! find "$T/home" -mindepth 1 \( -type d ! -perm 700 -o -type f ! -perm 600 \) \
        ! -path '*/repo*' ! -path '*/other*' | grep .
}
for mask in 000 022 077; do
    fresh
    (umask $mask; printf '%s\n' "$key" | keys add e2b; "$c" doctor > "$T/out" 2>&1
        keys protect file < /dev/null)
    check "umask $mask: all is private" private
done
if strace -o /dev/null true 2> /dev/null; then
    fresh
    # a file is private when it is made, not a moment later
    (umask 000; printf '%s\n' "$key" | ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=%file -o "$T/trace" \
        "$c" keys add e2b > "$T/out" 2>&1)
    check "traced: a key was stored" said 'stored e2b'
    check "no file is made with other rights" sh -c '
        grep -E "O_CREAT|mkdir|mknod" "$1" | grep "$2" |
            grep -vE "(O_CREAT[^)]*, 0600\)|mkdir[a-z]*\([^)]*, 0700\))" | grep -v "= -1 " | grep .
        [ $? -eq 1 ]' - "$T/trace" "$T/home\|openat([0-9]\|mkdirat([0-9]"
else
    skip "traced: a key was stored" "no strace"
    skip "no file is made with other rights" "no strace"
fi
fresh
: > "$T/home/file"
printf '%s\n' "$key" | CC_TUI_CONFIG_DIR="$T/home/file" keys add e2b
check "where the key file cannot be made, nothing is stored" is $? 1
keys < /dev/null
check "not in clear, not at all" sh -c 'grep -q "nothing is stored yet" "$1"' - "$T/out"
check "and no file has it" hides "$T/home"
# none is not the same as none any more: nothing else is used in its place
for how in damaged unreadable; do
    fresh
    printf '%s\n' "$key" | keys add e2b
    db=$T/home/.local/share/cc-tui/cc-tui.db
    case $how in
    damaged) printf 'no database, but longer than the head of one: %0200d' 0 > "$db" ;;
    *) rm "$db"; mkdir "$db" ;;
    esac
    cp -a "$T/home" "$T/copy"
    keys < /dev/null
    check "$how database: the keys in it are not forgotten" is $? 4
    check "and that is said" said 'keys were stored, but'
    rm -rf "$T/home"; mv "$T/copy" "$T/home"
    "$c" ls > "$T/out" 2>&1
    check "no other place is listed instead" is $? 4
    "$c" kill --all --yes > "$T/out" 2>&1
    check "and 'kill --all' does not say that all is gone" [ $? -ne 0 ]
    printf '%s\n' "$key" | keys add e2b
    case $how in
    damaged) check "a new one is begun, and the key is stored again" is $? 0 ;;
    *) check "nothing is said to be stored that is not kept" [ $? -ne 0 ] ;;
    esac
done
if [ "$(id -u)" -eq 0 ]; then
    fresh
    chown 12345 "$T/home"
    printf '%s\n' "$key" | keys add e2b
    check "not into another user's home" sh -c '[ -z "$(ls -A "$1")" ]' - "$T/home"
    fresh
    printf '%s\n' "$key" | keys add e2b
    chown 12345 "$T/home/.config/cc-tui/"vault-*.key
    keys < /dev/null
    check "another user's key file opens nothing" sh -c 'grep -q "belongs to user 12345" "$1"' \
        - "$T/out"
else
    skip "not into another user's home" "not root"
    skip "another user's key file opens nothing" "not root"
fi
if setpriv --bounding-set -ipc_lock true 2> /dev/null; then
    fresh
    # shellcheck disable=SC3045
    setpriv --bounding-set -ipc_lock sh -c 'ulimit -l 0; "$1" keys' - "$c" > "$T/out" 2>&1 < /dev/null
    printf '%s\n' "$key" | keys add e2b
    setpriv --bounding-set -ipc_lock sh -c 'ulimit -l 0; "$1" keys' - "$c" > "$T/out" 2>&1 < /dev/null
    case $B in
    *asan* | *tsan*) skip "memory that cannot be locked is said" "the sanitizers lock nothing" ;;
    *) check "memory that cannot be locked is said" said RLIMIT_MEMLOCK ;;
    esac
else
    skip "memory that cannot be locked is said" "no setpriv"
fi

end
