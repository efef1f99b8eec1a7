#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --timeout stops the job and gives 124, as timeout(1) does.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

begin=$SECONDS
hn --local 2 --timeout 500ms sleep 600
exits 'time is over: 124' 124
ok 'at once' test $((SECONDS - begin)) -lt "$(scaled 5)"
verdict_has 'the verdict says so' 'time limit of 500ms reached (--timeout)  (exit 124)'
has 'before it the ranks are shown' "$ERR" 'note: 2 ranks on 1 node'
nothing_left 'nothing is left'

hn --local 2 --timeout 500ms --grace 300ms sh -c 'trap "" TERM; while :; do sleep 0.05; done'
exits 'deaf ranks do not change that' 124
verdict_has 'but it is told how they ended' '; 2 ranks had to be killed (SIGKILL)  (exit 124)'
hn -q --local 1 --timeout 300ms sleep 60
is 'with -q only the last line is said' "$(wc -l <"$ERR")" 1
nothing_left 'deaf ranks are gone'

hn --local 2 --timeout 30 true
exits 'a job in time is not touched; a bare number is seconds' 0
done_testing
