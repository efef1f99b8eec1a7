#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that wait long for one that does not come: a warning says who waits for what and who is missing,
# and the job goes on.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

waiting=$BUILD/tests/clients/left_waiting
warned() { [[ $(grep -c 'warning\[HN404\]' "$ERR") -ge ${1:-1} ]]; }

start --local 4 --wait-warn 1s --log-dir runs --label none "$waiting" 2
ok 'a warning comes' await warned 1
has 'it says who waits for what, and who is missing' "$ERR" 'ranks 0-1,3 wait in barrier '
has 'it names the missing rank' "$ERR" 'rank 2 on localhost has not come'
ok 'and lists it' grep -qE '\| +2 +localhost .*not joined' "$ERR"
lacks 'the others are not in the list' <(grep -E '\| +[013] +localhost ' "$ERR") localhost
ok 'it comes again, later' await warned 2
is 'not too often: 1 s, 2 s, 4 s' "$(grep -c 'warning\[HN404\]' "$ERR")" 2
ok 'the events have it' grep -q '"run.stalled"' runs/latest/events.ndjson
shown() {
    kill -QUIT "$PID"
    sleep 0.2
    grep -qE '\| +0 +localhost .*waits in barrier `' "$ERR"
}
ok 'Ctrl-\ shows what a rank waits for' await shown
kill -INT "$PID"
finish
exits 'the job went on until Ctrl-C' 130

hn --local 3 --wait-warn 500ms --start-timeout 700ms --label none "$waiting" 0 late
exits 'a given --start-timeout still ends the job: 75' 75

hn --local 3 --wait-warn 0 --label none "$waiting" 0 late
exits 'late ranks are waited for' 0
lacks '--wait-warn 0 says nothing' "$ERR" HN404
hn --local 3 --wait-warn 800ms --label none "$waiting" 0 late
exits 'a warning does not end the job' 0
has 'it was told' "$ERR" 'warning[HN404]: ranks 1-2 wait in barrier '
nothing_left 'nothing is left'
done_testing
