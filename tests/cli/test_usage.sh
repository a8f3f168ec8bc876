#!/bin/sh
# cc-tui usage: what ran and what agents used, told by several programs one after another,
# one of them killed, counts once.
cd "$(dirname "$0")/../.." && . tests/lib/cli.sh || exit 1
begin usage
cd "$T" || exit 1

field() { # of the total in out
    sed -n 's/.*"total":{\([^}]*\)}.*/\1/p' out | tr ',' '\n' | sed -n "s/^\"$1\"://p"
}

call 0 usage --json && [ "$(field usd)" = 0 ] && [ "$(field turns)" = 0 ]
ok "nothing was used yet" $?
call 2 usage yesterday && grep -q 'day, week' err && call 2 usage --by colour && grep -q template err
ok "what is no time and no group is refused" $?
call 0 new --local --tool demo --name one -q && id=$(cat out) &&
    call 0 send "$id" --local --wait hello
ok "an agent takes a turn" $?
call 0 usage day --json && [ "$(field intervals)" = 1 ] && turns=$(field turns) && [ "$turns" -ge 1 ]
ok "one interval and its turn are kept" $?
"$c" logs -f "$id" --local >/dev/null 2>&1 &
pid=$!
call 0 logs "$id" --local
kill -9 $pid
wait $pid 2>/dev/null
call 0 ls --local && call 0 usage day --json && [ "$(field intervals)" = 1 ] &&
    [ "$(field turns)" = "$turns" ]
ok "read again, and by one that was killed, it counts once" $?
call 0 kill "$id" --yes --local && call 0 usage day --json && was=$(field runSeconds) &&
    [ "$(field intervals)" = 1 ] && [ "$(field sandboxUsd)" = 0 ] && [ "$(field estimatedIntervals)" = 0 ]
ok "a kill ends the interval; here it costs nothing" $?
call 0 ls -a --local && call 0 usage day --json && [ "$(field runSeconds)" = "$was" ]
ok "what has ended does not grow" $?
call 0 usage day --csv --by agent && [ "$(wc -l <out)" = 2 ] && grep -q '^agent,"demo",' out &&
    call 0 usage && grep -q 'by template' out && grep -q 'built in, last checked' out
ok "by agent as CSV, and in words" $?
call 0 usage --by hour && grep -q 'by hour' out && ! grep -q 'by agent' out &&
    call 0 usage day --csv --by hour && grep -q '^hour,20..-..-..T..:..:..' out &&
    call 0 usage --by hour --json && grep -q '"hour":\[{"at":' out
ok "by hour" $?
call 0 usage --set budget.day=2.50 --set budget.week=0 && grep -q 'budget .*of \$2.50, 0 %' out &&
    call 0 usage --set budget.month=10 --json &&
    grep -q '"budgets":\[{"project":null,"period":"month","usd":0,"budgetUsd":10,"percent":0}\]' out &&
    call 2 usage --set budget.day=-1 && call 2 usage --set budget.day=1e3
ok "a budget, and how far it is used" $?
end
