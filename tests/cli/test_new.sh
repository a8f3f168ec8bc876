#!/bin/sh
# 'cc-tui new' with what may be chosen: repository, env file, model, system prompt, skills,
# copies; and where GitHub's key goes. A provider and a git server of its own. TAP.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin new git
gitd=
tidy() { [ -z "$gitd" ] || kill "$gitd" 2>/dev/null; }
mkdir -m 700 "$T/git" "$T/skills"
key=ghp_C4naryC4naryC4naryC4naryC4naryC4na

is() { [ "$1" -eq "$2" ]; }
out() { grep -q -- "$1" "$T/out"; }
err() { grep -q -- "$1" "$T/err"; }
new() { # arguments; the sandbox's output in $T/out
    cc-tui new --local -v "$@" > "$T/id" 2> "$T/err" < /dev/null
    status=$?
    id=$(cat "$T/id")
    : > "$T/out"
    [ $status -ne 0 ] || cc-tui logs --local "$id" > "$T/out" 2>> "$T/err"
}

# --- a repository -------------------------------------------------------------------------
(
    cd "$T/git" || exit 1
    git init -q -b main web && cd web || exit 1
    git config user.email t@example.org && git config user.name t
    echo one > README && git add . && git commit -q -m one
    git checkout -q -b dev && echo two > DEV && git add . && git commit -q -m two
    git checkout -q main
) || { echo "not ok 1 - a repository"; exit 1; }
port=0
for try in 20781 24193 27457 31123; do
    git daemon --base-path="$T/git" --export-all --listen=127.0.0.1 --port=$try \
        > "$T/gitd" 2>&1 &
    gitd=$!
    i=0
    while kill -0 $gitd 2>/dev/null && [ $i -lt 100 ]; do
        if git ls-remote "git://127.0.0.1:$try/web" > /dev/null 2>&1; then port=$try; break; fi
        i=$((i + 1))
    done
    [ $port -eq 0 ] || break
    kill $gitd 2>/dev/null
    gitd=
done
[ $port -ne 0 ] || { echo "ok 1 - new # SKIP git daemon does not start"; echo 1..1; exit 0; }
url=git://127.0.0.1:$port

new -t shell -n r1 --repo "$url/web" --branch dev -- 'pwd; ls; git branch --show-current'
check "a branch is checked out" is $status 0
check "the agent works in it" out '/web$'
check "with its files" out DEV
for step in '1 of 4 (template)' '2 of 4 (environment)' '3 of 4 (sandbox)' '4 of 4 (agent)'; do
    check "step $step is told" err "step $step"
done
check "and what is cloned" err 'cloning 127.0.0.1:[0-9]*/web, branch dev'
new -t shell -n r2 --repo "$url/web" --branch nope -- pwd
check "no such branch: it fails" is $status 1
check "by its step, with the branch" err 'step 4 of 4 (agent): cloning .*there is no branch "nope"'
new -t shell -n r3 --repo "$url/none" -- pwd
check "no such repository" err 'step 4 of 4 (agent): cloning .*/none failed'
new -t shell -n r4 --template none -- pwd
check "no such template is step 1" err 'step 1 of 4 (template)'
new -t shell -n r5 --repo "https://me:$key@github.com/a/b" -- pwd
check "a password in the address is refused" is $status 2
check "and not repeated" sh -c '! grep -q C4nary "$1"' - "$T/err"
new -t shell -n r6 --repo 'ext::sh -c id' -- pwd
check "a command in its place, too" is $status 2
new -t shell -n r7 --branch dev -- pwd
check "a branch alone" is $status 2

# --- GitHub's key ---------------------------------------------------------------------------
# A git of ours stands in front of the sandbox's: it has the real one ask the helpers that it
# was given, as git does for github.com and for another place, then clones from here.
mkdir "$T/skills/tool"
echo 'A tool.' > "$T/skills/tool/SKILL.md"
cat > "$T/skills/tool/git" <<END
#!/bin/sh
printf '%s\n' "\$@" > "\$HOME/argv"
real() { PATH=/usr/local/bin:/usr/bin:/bin git "\$@"; }
ask() { # host, options...
    host=\$1; shift
    printf 'protocol=https\nhost=%s\n\n' "\$host" | real "\$@" credential fill 2>&1
}
n=0
for w; do [ "\$w" != clone ] || break; n=\$((n + 1)); done
case \$n in
4) ask github.com "\$1" "\$2" "\$3" "\$4" > "\$HOME/github"; opts=4 ;;
*) ask github.com "\$1" "\$2" "\$3" "\$4" "\$5" "\$6" "\$7" "\$8" > "\$HOME/github"
   ask evil.example "\$1" "\$2" "\$3" "\$4" "\$5" "\$6" "\$7" "\$8" > "\$HOME/evil" ;;
esac
for to; do :; done
real clone -q "$url/web" "\$to" && real -C "\$to" remote set-url origin https://github.com/acme/web.git
END
chmod 755 "$T/skills/tool/git"
cat > "$T/c/tools.conf" <<'END'
[tool probe]
adapter = shell
template = base
command = "sh -c 'cksum <~/github; cat ~/argv; sed s/^/evil:/ ~/evil; rm ~/github; grep -rlE C4nar[y] /home /tmp /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; echo searched'"
skills = .probe/skills
[tool said]
adapter = shell
template = base
command = "sh -c 'printf \"<%s>\\n\" \"$@\"; cat \"$4\" ~/.said/RULES; find ~/.said -name \"*.md\"' x"
model_flag = --model
prompt_flag = --rules
skills = .said/skills
[tool told]
adapter = shell
template = base
command = "cat .told/RULES"
prompt_file = .told/RULES
[tool shown]
adapter = shell
template = base
command = "sh -c 'echo \"<$MY_API_KEY|$MY_TOKEN>\"'"
needs_env = MY_API_KEY MY_TOKEN
END
printf %s "$key" | cc-tui keys add github > /dev/null 2>&1
ours='PATH=/home/user/.probe/skills/tool:/usr/local/bin:/usr/bin:/bin'
new -t probe -n g1 --repo git@github.com:acme/web.git --skill "$T/skills/tool" -e "$ours"
check "a checkout from GitHub" is $status 0
want=$(printf 'protocol=https\nhost=github.com\nusername=x-access-token\npassword=%s\n' "$key" | cksum)
check "git gets the key for github.com" out "^$want"
check "and asks for no other place" out '^evil:.*\(disabled\|terminal prompts\)'
check "by https" out '^https://github.com/acme/web.git$'
check "the key is in no argument" sh -c '! grep -q C4nary "$1"' - "$T/out"
check "no process and no file in the sandbox has it afterwards" sh -c \
    'tail -n 3 "$1" | grep -q searched && ! grep -qE "^/(proc|home|tmp)/" "$1"' - "$T/out"
new -t probe -n g2 --repo https://gitlab.example/acme/web --skill "$T/skills/tool" -e "$ours"
check "another place gets none" sh -c 'grep -q searched "$1" && ! grep -q "credential" "$1"' - "$T/out"
check "neither database, log nor sandbox folder keeps the key" sh -c \
    '! grep -rqa C4nary "$1/d" "$1/s" "$1/r"' - "$T"

# --- environment, model, prompt, skills -----------------------------------------------------
printf '# mine\nexport PORT=80\nWORDS="two words"\nNAME=file\n' > "$T/one.env"
new -t shell -n e1 --env-file "$T/one.env" -e NAME=flag -- 'echo "$PORT|$WORDS|$NAME"'
check "an env file, and a flag above it" out '^80|two words|flag$'
printf 'A=1\nnonsense\n' > "$T/bad.env"
new -t shell -n e2 --env-file "$T/bad.env" -- true
check "a bad line is told by file and line" err 'bad.env:2: there is no "="'
check "and nothing is made" is $status 2
export MY_API_KEY=ours-7788
new -t shown -n v1
check "a variable that the tool needs comes from our environment" out '^<ours-7788|>'
new -t shown -n v2 -e MY_TOKEN=theirs
check "another one that is given takes its place: never both" out '^<|theirs>'
new -t shell -n v3 -- 'echo "<$MY_API_KEY>"'
check "a tool that does not name it gets none" out '^<>'
unset MY_API_KEY
new -t shown -n v4
check "nothing is made without" err 'shown needs the variable MY_API_KEY or MY_TOKEN'
echo 'Always be fast.' > "$T/skills/fast.md"
new -t said -n s1 --model "m'1" --system-prompt 'Be "brief".' --skill "$T/skills/tool" \
    --skill "$T/skills/fast.md"
check "the model goes to the CLI" sh -c 'grep -A1 "^<--model>" "$1" | grep -q "^<m.1>"' - "$T/out"
check "the system prompt by its flag" out 'Be "brief"'
check "a folder and a file become skills" sh -c \
    'grep -q "/.said/skills/tool/SKILL.md" "$1" && grep -q "/.said/skills/fast/SKILL.md" "$1"' - "$T/out"
new -t told -n s2 --system-prompt "@$T/skills/fast.md"
check "or into the file that the tool reads" out '^Always be fast.$'
new -t told -n s3 --skill "$T/skills/tool"
check "a tool without skills says so" err 'takes no skills'
new -t said -n s4 --skill "$T/skills"
check "a folder without SKILL.md is none" err 'no SKILL.md'
new -t told -n s5 --model x
check "a tool without models says so" err 'takes no model'

# --- copies ----------------------------------------------------------------------------------
new -t shell -n c --copies 3 -- 'echo hi'
check "three copies: three ids" is "$(wc -l < "$T/id")" 3
cc-tui ls --local > "$T/out" 2>&1
check "named by number" sh -c 'grep -q " c-1 " "$1" && grep -q " c-3 " "$1"' - "$T/out"
new -t shell -n c --copies 3 -- true
check "a name that is taken: none is made" is $status 2
new -t shell -n d --copies 2 --repo "$url/none" -- true
check "each that fails is named" sh -c 'grep -q "^cc-tui: d-1: step 4" "$1" &&
    grep -q "^cc-tui: d-2: step 4" "$1"' - "$T/err"
check "and the exit status says it" is $status 1
end
