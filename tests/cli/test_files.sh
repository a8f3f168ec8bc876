#!/bin/sh
# Files of a sandbox and what was changed in it, by the commands, on the local provider. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh
begin files namespaces git
mkdir "$T/w"

run() { # arguments of the program
    timeout 120 "$c" --local "$@" > "$T/out" 2> "$T/err" < /dev/null
    rc=$?
}
in_box() { run shell box -- sh -c "$1"; }
same() { cmp -s "$1" "$2"; }
no_escape() { ! grep -qF "$(printf '\033')" "$T/out" "$T/err"; }

run new --tool shell --name box --timeout 10m -- sh -c \
    'git init -q && git config user.email a@b && git config user.name n && echo one >a && echo 1 >b &&
     printf "\0\1" >bin && git add a b bin && git commit -qm x && echo two >>a && rm b && printf "\0\2" >bin;
     printf x >"$(printf "e\033[31mvil\nname")"; echo done; sleep 1000'
check "a sandbox with a repository" is 0
told() { run diff box --stat && out evil; }
check "what was changed in it is told" until_true 60 told

# --- lists ----------------------------------------------------------------------------
run files ls box
check "ls: a name with an escape is cleaned" both out "evil name" is 0
check "ls: and nothing of it is sent to the terminal" no_escape
run files ls box --json
check "ls: JSON has the name as it is" out 'e\u001b[31mvil\nname'
run files ls box /no/such
check "ls: what is not there, 5" both is 5 err "it is not there"
run files ls box a
check "ls: of a file shows it" out "a"

# --- up and down ----------------------------------------------------------------------
head -c 3000000 /dev/urandom > "$T/w/big"
run files put box "$T/w/big"
check "put: into the home" both is 0 err "uploaded"
run files put box "$T/w/big"
check "put: what is there stays" both is 1 err "--yes replaces it"
run files get box big "$T/w/back"
check "get: the same bytes" same "$T/w/big" "$T/w/back"
[ "$(stat -c %a "$T/w/back")" = "$(printf %o $((0666 & ~0$(umask))))" ]; rc=$?
check "get: with the usual mode" is 0
echo mine > "$T/w/back"
run files get box big "$T/w/back"
check "get: what is there stays" both is 1 err "already"
grep -q mine "$T/w/back"; rc=$?
check "get: untouched" is 0
run files get box big "$T/w/back" --yes
check "get: --yes replaces" same "$T/w/big" "$T/w/back"
[ "$(ls "$T/w" | wc -l)" -eq 2 ]; rc=$?
check "get: no half files are left" is 0
in_box 'ls -A | grep -c part-'
check "put: none there either" out 0
mkdir -p "$T/w/dir/sub"
echo 1 > "$T/w/dir/one"
echo 2 > "$T/w/dir/sub/two"
ln -s one "$T/w/dir/link"
run files put box "$T/w/dir" work/
check "put: a folder, links are left out" both is 0 err "1 that are no files were left out"
run files cat box work/dir/sub/two
check "cat" out 2
run files cat box /proc/self/status
check "cat: what the kernel makes up" both is 0 out "Name:"
run files get box /proc/version "$T/version"
check "get: the same" grep -q Linux "$T/version"
run files cat box /proc/self/mem
check "cat: what cannot be read there" is 1
printf '#!/bin/sh\necho runs\n' > "$T/w/tool"; chmod 755 "$T/w/tool"
run files put box "$T/w/tool" work/tool
in_box './work/tool; test -x work/dir/one || echo plain; rm work/tool'
check "put: what can be run here can be run there" both out runs out plain
: > "$T/w/empty"
run files put box "$T/w/empty" work/empty
run files get box work/empty "$T/w/empty2"
check "an empty file goes both ways" same "$T/w/empty" "$T/w/empty2"
in_box 'mkdir -p work/deep/er work/none && printf "#!/bin/sh\n" >work/deep/run && chmod 755 work/deep/run &&
    echo 3 >work/deep/er/three && ln -s /etc work/out && ln -s deep work/link &&
    echo x >"work/$(printf "a\033]0;x\007b")" && echo no >work/secret && chmod 0 work/secret'
run files get box work "$T/w/tree"
check "get: a folder, what cannot be read is told" both is 1 err "1 of 6 files could not be read"
in_box 'rm -f work/secret'
rm -rf "$T/w/tree"; mkdir "$T/into"
run files get box work "$T/into"
check "get: a folder" both is 0 err "left out"
(cd "$T/into/work" && find . | sort | tr '\n' ' ') > "$T/out"
check "get: all of it but links and odd names" out \
    ". ./deep ./deep/er ./deep/er/three ./deep/run ./dir ./dir/one ./dir/sub ./dir/sub/two ./empty ./none "
same "$T/into/work/dir/sub/two" "$T/w/dir/sub/two" && [ -x "$T/into/work/deep/run" ] && [ ! -x "$T/into/work/empty" ]
rc=$?
check "get: bytes and what can be run" is 0
run files get box work "$T/into"
check "get: a folder that is there stays" both is 1 err "already"
echo mine > "$T/into/work/dir/one"
mkdir "$T/w/else"; rm -r "$T/into/work/deep/er"; ln -s "$T/w/else" "$T/into/work/deep/er"
run files get box work "$T/into" --yes
check "get: never through a link that is here" both is 1 err "is no folder"
[ -z "$(ls "$T/w/else")" ]; rc=$?
check "get: nothing came there" is 0
rm "$T/into/work/deep/er"
run files get box work "$T/into" --yes
check "get: --yes replaces in it" same "$T/into/work/dir/one" "$T/w/dir/one"
in_box 'p=down; for i in $(seq 70); do p=$p/d; done; mkdir -p $p'
run files get box down "$T/w/down"
check "get: folders in folders without end" both is 1 err "more than 64 deep"
run files get box / "$T/w/all"
check "get: not all of a sandbox" is 2
run files put box "$T/w/nothing"
check "put: what is not here, 5" is 5

# --- names ----------------------------------------------------------------------------
run files mkdir box work/new
check "mkdir" is 0
run files mv box big work/new
check "mv: what is there stays" both is 1 err "already"
run files mv box big work/new/big
check "mv" is 0
run files rm box work
check "rm: asks, so it wants --yes here" both is 2 err "--yes"
run files rm box work --dry-run
check "rm: --dry-run" err "would delete"
run --readonly files rm box work --yes
check "rm: nothing with --readonly" is 2
run files rm box work --yes
check "rm: a folder with all that is in it" is 0
run files ls box work
check "rm: it is gone" is 5

# --- changes --------------------------------------------------------------------------
run diff box --stat
check "diff --stat: counts" out "modified  +1      -0       a"
check "diff --stat: a binary file" out "modified  binary  -        bin"
check "diff --stat: a new one" out "new"
check "diff --stat: nothing foreign on the terminal" no_escape
run diff box
check "diff: the bytes" out "+two"
check "diff: of what is not in it" err "new file"
run diff box --json
check "diff: JSON" out '"path":"b","status":"deleted","added":0,"removed":1'
run pause box
run files ls box
check "a paused one is not woken" both is 1 err "resume it first"
run diff box
check "nor for its changes" is 1
end
