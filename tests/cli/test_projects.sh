#!/bin/sh
# cc-tui projects: names, what is current and why, settings, variables, secrets.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin projects
mkdir -m 700 "$T/w"
cd "$T" || exit 1

call 0 projects show -q && [ "$(cat out)" = default ]
ok "nothing said: the project default" $?
call 0 projects add acme/web && call 1 projects add acme/web && grep -q already err
ok "a name is there once" $?
call 2 projects add ../x || call 1 projects add ../x
grep -q "cannot be the name" err
ok "a name that is no name is refused" $?
call 0 projects use acme/web && call 0 projects show -q && [ "$(cat out)" = acme/web ]
ok "the one used last is current" $?
echo '[sandbox]
project = from.folder' >w/.cc-tui
(cd w && call 0 projects show -q && [ "$(cat out)" = from.folder ] && call 0 projects ls) &&
    grep -q 'from.folder *.cc-tui' w/out
ok "the folder's .cc-tui stands above that" $?
(cd w && CC_TUI_PROJECT=by-var && export CC_TUI_PROJECT && call 0 projects show -q &&
    [ "$(cat out)" = by-var ] && call 0 projects show -q --project by-flag &&
    [ "$(cat out)" = by-flag ])
ok "the variable above the folder, the flag above the variable" $?
(CC_TUI_PROJECT='a b' && export CC_TUI_PROJECT && call 2 projects ls)
ok "a variable that is no name is refused" $?
call 0 projects set acme/web tool=claude timeout=1h at_end=pause 'prompt=be kind' skill=. &&
    call 0 projects show --json && grep -q '"tool":"claude"' out && grep -q '"timeout":3600' out &&
    grep -q '"prompt":"be kind"' out && grep -q '"atEnd":"pause"' out
ok "settings are kept" $?
call 0 projects set acme/web tool= timeout= && call 0 projects show --json &&
    grep -q '"tool":null' out && ! grep -q '"timeout"' out && grep -q 'be kind' out
ok "an empty value takes one away, and no other" $?
call 0 projects set acme/web budget_day=2.50 'budget_month=$40' && call 0 projects show acme/web &&
    grep -q '^budget_day = 2.50' out && grep -q '^budget_month = 40.00' out &&
    call 0 projects set acme/web budget_day= && call 0 projects show acme/web --json &&
    grep -q '"budget":{"month":40}' out && call 2 projects set acme/web budget_week=-3
ok "a budget in USD is kept, and taken away" $?
call 2 projects set acme/web nonsense=1 && call 2 projects set acme/web timeout=never
ok "what is no setting is refused" $?
call 0 projects env acme/web A=1 'B=two words' && call 0 projects show &&
    grep -q 'variable B=two words' out
ok "variables are kept" $?
call 0 presets save fast tool=claude timeout=30m copies=3 'prompt=go on' --project acme/web &&
    call 0 presets ls --project acme/web && grep -q 'preset fast (project)' out &&
    grep -q '    copies = 3' out && call 0 presets ls --json --project acme/web &&
    grep -q '"name":"fast","level":"project","tool":"claude"' out
ok "a preset is kept and listed" $?
call 0 presets save fast copies= branch=dev --project acme/web && call 0 presets ls --json --project acme/web &&
    ! grep -q '"copies"' out && grep -q '"branch":"dev".*"prompt":"go on"' out
ok "a preset that is there keeps what is not said" $?
call 0 presets save mine tool=codex --all && call 0 presets ls -q --project acme/web &&
    [ "$(cat out)" = "fast
mine" ] && call 0 presets ls --project other && ! grep -q fast out && grep -q 'preset mine (user)' out
ok "one for all projects" $?
call 2 presets save fast nonsense=1 && call 2 presets save fast copies=99 && call 2 presets save 'a b' tool=x &&
    call 2 presets save fast
ok "what no preset holds is refused" $?
call 0 presets rm fast --project acme/web && call 5 presets rm fast --project acme/web &&
    call 5 presets rm mine --project acme/web && call 0 presets rm mine --all &&
    call 0 presets ls -q --project acme/web && ! grep -q . out
ok "removed, each at its level" $?
call 2 --readonly presets rm fast
ok "not with --readonly" $?
call 2 projects env acme/web GH_TOKEN=x && grep -q 'keys add github' err &&
    call 2 projects env acme/web 1A=x && call 2 projects env acme/web A
ok "keys and odd names are no variables" $?
echo canary-f00d-9f21 | "$c" projects secret acme/web TOKEN >out 2>err && call 0 projects show &&
    grep -q 'TOKEN (secret, \*\*\*\*9f21)' out && ! grep -rqa canary-f00d c d s
ok "a secret is sealed, and shown by its last four" $?
call 2 projects secret acme/web TOKEN canary-f00d-9f21 && ! grep -q canary err
ok "a secret is no argument" $?
call 0 keys ls && ! grep -q variable out
ok "it is not listed among the keys" $?
call 0 projects env --undo acme/web A TOKEN && call 5 projects env --undo acme/web A
ok "variables go, once" $?
call 0 projects rename acme/web acme/site && call 0 projects show && grep -q 'B=two words' out &&
    grep -q 'project acme/site' out
ok "a new name keeps what is the project's" $?
call 0 projects add second && call 1 projects rename second acme/site && call 5 projects rename no x
ok "a name that is taken or unknown is refused" $?
call 2 projects rm second && call 0 projects rm -y second && call 5 projects rm -y second
ok "it is removed when that is said" $?
call 2 projects add x --readonly && call 0 projects ls --readonly
ok "--readonly changes nothing" $?
end
