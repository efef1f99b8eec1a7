#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Some ranks wait for one that never comes: a given --start-timeout ends the job with 75 and names it,
# the built-in one only warns.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

waiting=$BUILD/tests/clients/left_waiting
export MEET_IN=$TMP # those who come do so in the same moment

hn_exits 'ranks that do not join in the time that was given: 75' 75 --local 4 --start-timeout 2s --log-dir runs --label none "$waiting" 1 3
verdict_has 'the verdict names them' 'ranks 1,3 on localhost did not join within 2s' '(exit 75)'
told_once 'and only the verdict' 'ranks 1,3 on localhost did not join'
has 'the message has a number' "$ERR" 'error[HN402]: 2 of 4 ranks did not join within 2s'
ok 'the missing ranks are listed' grep -qE '\| +1 +localhost .*not joined' "$ERR"
lacks "the others are not" <(grep -E "\| +[02] +localhost " "$ERR") localhost
has 'it says how many have come' "$ERR" 'note: 2 ranks joined in '
has 'it says how to wait longer' "$ERR" '--start-timeout 10s'
is 'the events name them' "$(grep '"rank.missing"' runs/latest/events.ndjson | grep -o '"rank":[0-9]*' | tr '\n' ' ')" '"rank":1 "rank":3 '
has 'the summary has the code' runs/latest/summary.json '"code": 75'
has 'the summary says who decided' runs/latest/summary.json '"launcher"'

HNLAUNCH_RUN_START_TIMEOUT=2s hn --local 2 --label none "$waiting" 0
exits 'a time from the environment counts as given: 75' 75

hn_exits 'a rank that no rank waits for does not end the job' 0 --local 2 --start-timeout 1s --label none "$waiting" 1 idle
has 'but it is told' "$ERR" 'warning[HN402]: 1 of 2 ranks did not join within 1s'

hn_exits 'a rank that somebody waits for later does: 75' 75 --local 2 --start-timeout 1s --log-dir busy --label none "$waiting" 1 busy
is 'it is told before, once' "$(grep -c 'warning\[HN402\]' "$ERR")" 1
has 'and as the cause' "$ERR" 'error[HN402]: 1 of 2 ranks did not join within 1s'
is 'the events name it once' "$(grep -c '"rank.missing"' busy/latest/events.ndjson)" 1

# One rank: of two, one would come first, and might have to wait for the other.
hn_exits 'a job in which nobody has joined yet is left alone' 0 --local 1 --start-timeout 1s --label none "$waiting" 0 late
lacks 'nothing is told of it' "$ERR" HN402

hn_exits 'a program that does not use the store is left alone' 0 --local 3 --start-timeout 1s --label none sh -c 'sleep 2'
lacks 'nothing is told of that either' "$ERR" HN402

hn_exits 'never is never' 0 --local 3 --start-timeout never --label none "$waiting" 1 late
nothing_left 'nothing is left'
done_testing
