#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that wait long for one that does not come: a warning says who waits for what and who is missing,
# and the job goes on.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

waiting=$BUILD/tests/clients/left_waiting
export MEET_IN=$TMP # those who come do so in the same moment
warned() { [[ $(grep -c 'warning\[HN404\]' "$ERR") -ge ${1:-1} ]]; }

start --local 4 --wait-warn 1s --log-dir runs --label none "$waiting" 2
ok 'a warning comes' wait_for warned 1
ok 'it says who waits for what, and who is missing' wait_for grep -F 'ranks 0-1,3 wait in barrier ' "$ERR"
ok 'it names the missing rank' wait_for grep -F 'rank 2 on localhost has not come' "$ERR"
ok 'and lists it' wait_for grep -qE '\| +2 +localhost .*not joined' "$ERR"
lacks 'the others are not in the list' <(grep -E '\| +[013] +localhost ' "$ERR") localhost
ok 'it comes again, later' wait_for warned 2
# However late we look: each tells of a wait that is long enough for it.
not_too_often() {
    grep '"run.stalled"' runs/*/events.ndjson | grep -o '"ms":[0-9]*' | cut -d: -f2 |
        awk -v least=1000 '$1 < least { early = 1 } { least *= 2 } END { exit early || NR < 2 }'
}
ok 'not too often: 1 s, 2 s, 4 s; the events have it' not_too_often
shown() {
    kill -QUIT "$PID"
    sleep 0.2
    grep -qE '\| +0 +localhost .*waits in barrier `' "$ERR"
}
ok 'Ctrl-\ shows what a rank waits for' wait_for shown
exits 'the job went on until Ctrl-C' 130 finish_by INT

hn_exits 'a given --start-timeout still ends the job: 75' 75 --local 3 --wait-warn 500ms --start-timeout 2s --label none "$waiting" 0

hn_exits 'late ranks are waited for' 0 --local 3 --wait-warn 0 --label none "$waiting" 0 late
lacks '--wait-warn 0 says nothing' "$ERR" HN404
hn_exits 'a warning does not end the job' 0 --local 3 --wait-warn 400ms --label none "$waiting" 0 late
has 'it was told' "$ERR" 'warning[HN404]: ranks 1-2 wait in barrier '
hn -q --local 3 --wait-warn 400ms --label none "$waiting" 0 late
is 'with -q it is not' "$(cat "$ERR")" ''
nothing_left 'nothing is left'
done_testing
