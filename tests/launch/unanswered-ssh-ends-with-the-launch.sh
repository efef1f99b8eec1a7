#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --ssh-command: an ssh that has not reached an agent, and its ProxyCommand, end when hnlaunch gives up.
. "$(dirname "$0")/../lib/tap.sh"

# Connects forever, and so does a child of it.
cat >slow-ssh <<'END'
#!/bin/sh
case $* in *fails*) exit 255 ;; esac
sleep 1000 &
echo $$ $! >>started
wait
END
chmod +x slow-ssh
connecting() { [[ $(wc -l <started) == 2 ]]; }
all_gone() {
    local pid
    for pid in $(cat started); do
        ! kill -0 "$pid" 2>/dev/null || return 1
    done
}
gone() { # NAME
    ok "$1: two had begun to connect" connecting
    ok "$1: every ssh and its child have ended" wait_for all_gone
    : >started
}
: >started

for signal in TERM HUP INT; do
    start --ssh-command ./slow-ssh -w 'node[1-2]' true
    ok 'both are connecting' wait_for connecting
    kill -"$signal" "$PID"
    finish
    has "SIG$signal: nothing was started" "$ERR" 'nothing was started: interrupted'
    gone "SIG$signal"
done

hn --ssh-command ./slow-ssh -w 'node[1-2]' --start-timeout 1s true
exits 'no answer in time: 69' 69
has 'that is told' "$ERR" 'the agent did not answer within 1s (--start-timeout)'
gone 'no answer in time'

hn --ssh-command ./slow-ssh -w 'node[1-2],fails' --start-timeout 1s true
exits 'another host fails, too: 69' 69
gone 'another host fails'
done_testing
