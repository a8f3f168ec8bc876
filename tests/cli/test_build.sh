#!/bin/sh
# 'cc-tui build' against a provider of its own: COPY, RUN, what is cached, what fails, arguments,
# tags, calling off, deleting, and a cc-tui that is killed in the midst of it. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh
begin build namespaces
run() { timeout 120 "$c" --local "$@" > "$T/out" 2> "$T/err" < /dev/null; rc=$?; }
out() { grep -q -e "$1" "$T/out"; } # expressions, unlike elsewhere
no_out() { ! out "$1"; }
err() { grep -q -e "$1" "$T/err"; }
shown=20
mkdir -m 700 "$T/box"
cd "$T/box" || exit 1

mkdir src node_modules
echo hello > one.txt; echo x > src/a.c; echo secret > node_modules/big
echo node_modules > .dockerignore
cat > Dockerfile << 'EOF'
FROM e2bdev/base
ARG WHO=nobody
ENV A="one" B="two words"
COPY one.txt /opt/
COPY . /opt/all
RUN cat /opt/one.txt && echo "$A,$B,$WHO" && ls /opt/all
USER user
EOF

run build . --dry-run --json
check "a dry run: exit status" is 0
check "a dry run: the steps" out '"type":"ENV","args":\["A","\\"one\\"","B","two words"\]'
check "a dry run: a hash for each COPY" test "$(grep -o filesHash "$T/out" | wc -l)" = 2

run build . --name first --wait --build-arg WHO=me --tag v1
check "a build: exit status" is 0
check "a build: what RUN put out" out 'one,two words,me'
check "a build: files of .dockerignore stay here" no_out 'node_modules'
check "a build: bytes of its archives" out 'bytes packed'

run build . --name first --wait --build-arg WHO=me
check "once more: exit status" is 0
check "once more: from the cache" out '(cached) RUN cat'
check "once more: nothing is uploaded" no_out uploading

printf 'FROM e2bdev/base\nRUN echo before\nRUN echo reason >&2; exit 3\nRUN echo after\n' > fails
run build fails --name bad --wait
check "a failing RUN: exit status" is 1
check "a failing RUN: which step, and why" err 'step 4.*exit status 3: reason'
check "a failing RUN: its last line is there" out reason
run builds bad --json
check "a failing RUN: the list has its error" out '"status":"error".*exit status 3'

printf 'FROM e2bdev/base\n\nONBUILD RUN x\n' > refused
run build refused --name bad --wait
check "a refused file: exit status" is 1
check "a refused file: where, and what to do" err 'refused:3: ONBUILD is not possible: write'

run build rebuild bad --wait -q
check "rebuild: from the recipe that was tried last" both is 1 err 'refused:3: ONBUILD is not possible'
run build rebuild first --wait
check "rebuild with arguments: exit status" is 1
check "rebuild with arguments: they are asked for" err 'not kept: .*rebuild first --build-arg WHO='
run build rebuild first --wait --build-arg WHO=me
check "rebuild with arguments: with them" is 0
check "rebuild with arguments: their values are there" out 'two words,me'
run build tag first v2 stable
check "tags are given" is 0
run new --tool shell --template first:stable --dry-run
check "and can be chosen" is 0
run build tag first stable --undo
check "tags are taken away" is 0

run new --tool shell --template first -- cat /opt/one.txt
check "a sandbox of it" is 0
id=$(cat "$T/out")
has_hello() { run logs "$id"; out hello; }
check "has the files" until_true 60 has_hello
run kill "$id" --yes

# a folder of someone else's that leads out of itself
mkdir hostile; ln -s "$T/home" hostile/home; ln -s ../one.txt hostile/out; echo key > "$T/home/id_rsa"
printf 'FROM e2bdev/base\nCOPY home/id_rsa /k\n' > hostile/Dockerfile
run build hostile --name hostile --wait
check "a COPY through a link out of the folder: exit status" is 1
check "a COPY through a link out of the folder: what to do" err 'line 2: "home/id_rsa" is not taken: "home" is a link out'
printf 'FROM e2bdev/base\nCOPY . /k\nRUN [ -h /k/home -a -h /k/out ]\n' > hostile/Dockerfile
run build hostile --name hostile --wait
check "links out of the folder go as links" is 0

# called off while its files are read, which would take an hour
mkdir huge; printf 'FROM e2bdev/base\nCOPY big /\n' > huge/Dockerfile
if truncate -s 4T huge/big 2> /dev/null; then
    "$c" --local build huge --name huge --wait > "$T/huge" 2>&1 < /dev/null &
    pid=$!
    listed() { run builds --json; out '"name":"huge"'; }
    until_true 60 listed
    run build cancel huge
    check "cancel while files are read: exit status" is 0
    wait $pid; rc=$?
    check "cancel while files are read: who waits is told" is 130
    check "cancel while files are read: why" grep -q 'before the service began' "$T/huge"
fi

printf 'FROM e2bdev/base\nRUN sleep 20\n' > slow
run build slow --name slow
check "without --wait: exit status" is 0
run build cancel slow
check "cancel: exit status" is 0
check "cancel: says what it cannot do" err 'goes on there'
run builds --json
check "cancel: the row says so" out 'cannot be told to stop a build'
run build delete slow --yes
check "delete: exit status" is 0
run builds --json
check "delete: it is gone" no_out '"local/slow"'
run build delete slow --yes
check "delete: twice is not found" both is 5 err 'no template "slow"'
run build delete first
check "delete: not without a yes" both is 2 err 'wants --yes'

# killed in the midst of it: the service goes on, and it can be followed
printf 'FROM e2bdev/base\nRUN echo begun; sleep 1; echo ended\n' > midst
"$c" --local build midst --name midst --wait > "$T/midst" 2>&1 < /dev/null &
pid=$!
until_true 60 grep -q begun "$T/midst"
kill -9 $pid; wait $pid 2> /dev/null
run builds --follow midst
check "after kill -9: the build goes on and can be followed" is 0
check "after kill -9: the whole log" out ended

# another process goes on with it, as one does after this one slept: who waits is told
if command -v sqlite3 > /dev/null; then
    printf 'FROM e2bdev/base\nRUN echo begun; sleep 8\n' > taken
    : > "$T/out" # the shell may open it later than we look
    "$c" --local build taken --name taken --wait > "$T/out" 2> "$T/err" < /dev/null &
    pid=$!
    until_true 60 out begun
    sqlite3 -cmd '.timeout 5000' "$T/d"/*.db \
        "UPDATE leases SET owner='another', until=strftime('%s','now')*1000+500000, ttl=600000 WHERE name LIKE 'build:%'"
    over() { ! kill -0 $pid 2> /dev/null; }
    until_true 60 over || kill $pid
    wait $pid; rc=$?
    check "another process has taken the build: who waits is told" err 'another cc-tui goes on'
    check "another process has taken the build: exit status" is 130
fi

run build . --name Bad --wait
check "a bad name is refused" err 'lower-case letters'
run build
check "nothing to build: usage" both is 2 err 'wants a folder'
run build . --name x --cpu 99
check "a bad number: usage" both is 2 err 'from 1 to 32'
run build --tool pi --dry-run
check "the recipe of a tool" out 'npm install -g @earendil-works/pi-coding-agent@'
run --readonly build . --name x --wait
check "a cc-tui that only reads builds nothing" err 'only reads'
end
