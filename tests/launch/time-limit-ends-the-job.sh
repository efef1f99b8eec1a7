#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --timeout stops the job and gives 124, as timeout(1) does.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

begin=$SECONDS
hn_exits 'time is over: 124' 124 --local 2 --timeout 500ms sleep 600
ok 'soon' test $((SECONDS - begin)) -lt "$(scaled 20)"
verdict_has 'the verdict says so' 'time limit of 500ms reached (--timeout)  (exit 124)'
told_once 'and only the verdict' 'time limit of 500ms'
has 'the line about stopping names the option' "$ERR" 'hnlaunch: stopping all ranks: --timeout'
has 'before it the ranks are shown' "$ERR" 'note: 2 ranks on 1 node'
has 'then it is told where they are' "$ERR" 'note: where the ranks are'
hn report
has 'the report says where the ranks were' "$OUT" 'where the ranks were: '
lacks 'which is no hang' "$OUT" 'why: '
hn report --json
has 'nor is there one for programs' "$OUT" '"why": null'
hn report --html page.html
has 'the page shows the ranks' page.html '<h2>The ranks</h2>'
lacks 'ranks that do not wait for each other are no hang' "$ERR" 'wait in'
nothing_left 'nothing is left'

# The look ends after 3 s, also on a machine that is too busy for the tools.
is_told() { for _ in 1 2 3 4 5; do
    hn --local 3 --timeout 3s --label none "$BUILD/tests/clients/hanging" sleep 1
    ! grep -q '^note: ranks 0,2 wait in .*; rank 1 (localhost, pid .* does not: it sleeps' "$ERR" || return 0
done; return 1; }
ok 'ranks that hang until the time is over are told as such' is_told
exits 'the code is that of the time limit' 124
file=$(sed -n 's/.* note: all stacks are in //p' "$ERR")
is 'the stacks of each rank are kept' "$(grep -c '^=== rank [0-2] on localhost, pid' "$file")" 3
hn --local 2 --timeout 500ms --log-dir none sleep 600
lacks 'without records none is kept' "$ERR" 'all stacks'

hn_exits 'deaf ranks do not change that' 124 --local 2 --timeout 500ms --grace 300ms sh -c 'trap "" TERM; while :; do sleep 0.05; done'
verdict_has 'but it is told how they ended' '; 2 ranks had to be killed (SIGKILL)  (exit 124)'
hn -q --local 1 --timeout 300ms sleep 60
is 'with -q only the last line is said' "$(wc -l <"$ERR")" 1
nothing_left 'deaf ranks are gone'

# A rank that has told why it fails, and does not end, is named by each order to end the job.
cat >told.sh <<'END'
[ $RANK = 1 ] || exec sleep 600
printf 'Traceback (most recent call last):\n  File "train.py", line 5, in <module>\nValueError: shard 7 is empty\n' >&2
[ $1 = last ] || { sleep 0.2; echo "step 2"; }
exec sleep 600
END
told='rank 1 on localhost has not ended after ValueError: shard 7 is empty; '
hn_exits 'a rank has told its reason: the code is that of the time limit' 124 --local 2 --timeout 2s sh told.sh last
verdict_has 'the last line has the rank and its reason' 'failed after' ": ${told}time limit of 2s reached (--timeout)  (exit 124)"
hn -q --local 2 --timeout 2s sh told.sh last
verdict_has 'with -q, too' "$told"
hn --local 2 --timeout 2s sh told.sh before
verdict_has 'a rank that went on is not named' ': time limit of 2s reached (--timeout)  (exit 124)'
start --local 2 sh told.sh last
ok 'it has told' wait_for grep -q 'shard 7' "$ERR"
exits 'Ctrl-C: 130' 130 finish_by INT
verdict_has 'Ctrl-C names it' 'stopped after' ": ${told}SIGINT  (exit 130)"

hn_exits 'a job in time is not touched; a bare number is seconds' 0 --local 2 --timeout 30 true
done_testing
