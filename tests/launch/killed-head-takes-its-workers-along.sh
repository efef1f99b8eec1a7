#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# SIGKILL of hnlaunch or of the agent ends all ranks; nothing remains.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

deaf='trap "" TERM HUP INT; setsid sleep 300 & echo up; while :; do sleep 0.05; done'

comes_up 'three ranks are up' 3 start --local 3 --label none sh -c "$deaf"
kill -KILL "$PID"
wait "$PID" 2>/dev/null
PID=
nothing_left 'nothing outlives a killed hnlaunch'

agents() {
    local pid
    for pid in $(processes); do
        [[ $(readlink "/proc/$pid/exe") == */hnlaunch-agent* ]] && echo "$pid"
    done
}
comes_up 'two ranks are up' 2 start --local 2 --label none sh -c 'echo up; exec sleep 60'
agent=$(agents | head -n 1)
ok 'there is an agent' test -n "$agent"
kill -KILL "$agent"
exits 'a killed agent is a lost node: 125' 125 finish
verdict_has 'the verdict says lost' lost '(exit 125)'
nothing_left 'its ranks are gone'
done_testing
