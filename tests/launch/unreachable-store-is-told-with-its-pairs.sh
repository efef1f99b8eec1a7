#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Before anything starts every node must reach the store on rank 0's node: who does not is told with
# address, interface and reason, and what an agent may answer to that question is never trusted.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

export PYTHONPATH=$ROOT/tests/lib
VERSION=$(sed -n 's/^#define MSG_VERSION //p' "$ROOT/src/wire/msg.h")
export VERSION

# Three nodes on this machine with agents made of Python; the first one gets the endpoint.
three() { # OPTION...
    CLAIMS=$(mktemp -d "$TMP/claims.XXXXXX") # agents of the last run may still be leaving
    export CLAIMS
    hn --agent "$ROOT/tests/lib/fake_agent.py" -w 'localhost:1,127.0.0.1:1,[::1]:1' "$@" touch started
}

told() { has_rows "$1" -F "${@:2}"; } # NAME LINE...

export ENDPOINT_OPENED=41731
PROBED='110:eth0:0 111:ib0:0' three
exits 'nobody reaches it: 69' 69
told 'both nodes, their addresses, interfaces and reasons' \
    'error[HN401]: 2 of 2 nodes cannot reach the store on localhost' \
    '| 127.0.0.1,[::1] cannot open 192.0.2.7:41731: timed out (over eth0)' \
    '| cannot open 10.8.0.7:41731: refused (over ib0)'
told_once 'the error says it, once' 'cannot reach the store'
verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 69)'
nothing_left 'no agent is left'

PROBED='0:eth0:400 113:eth0:0|0:eth0:1200 101::0|71:eth0:0 0:ib0:100' three --iface eth0
exits 'an answer for more addresses than were asked for: a lost node' 125
has 'it is told as one' "$ERR" 'the agent sent a malformed PROBED message: 2 results of 1 addresses'

PROBED='0:eth0:400|71:eth0:0' three --iface eth0
exits 'one of two does not reach it: 69' 69
told 'the one is named, with what answered there, what the other saw, and another network' \
    'cannot reach the store on localhost' \
    'cannot open 192.0.2.7:41731: another program answers there (over eth0)' \
    'note: 1 other node reached 192.0.2.7:41731 in 0.4-0.4 ms' \
    'note: --iface eth0 leaves no other address'

PROBED='1:eth0:0' ADDRS='eth0=192.0.2.7/24' three --iface 192.0.2.0/24
told 'a firewall on the node itself' 'forbidden by a firewall on this node (over eth0)'
PROBED='101::0' ADDRS='eth0=2001:db8::7/64' three
told 'IPv6, and an interface that is not known' 'cannot open [2001:db8::7]:41731: no route'

three --iface eth7
exits 'an interface that the node has not: 69' 69
told 'it is told' 'error[HN320]: localhost has no address on eth7'
three --iface 10.9.0.0/16
told 'a network that the node has not' 'localhost has no address on 10.9.0.0/16'

ENDPOINT_OPENED='0 cannot listen on any port: Too many open files' PROBED='111::0 111::0' three
exits 'an endpoint that does not open: 69' 69
told 'the node and the reason' 'error[HN403]: localhost cannot open a port for the store' \
    'cannot listen on any port: Too many open files' '--store-listen none'
ENDPOINT_OPENED='0 no' three --store-listen loopback
told 'with an endpoint on every node, all that fail are told' '[HN403]'

ENDPOINT_OPENED=70000 PROBED='0:eth0:1 0:ib0:1' three
exits 'a port beyond 65535: a lost node' 125
ENDPOINT_OPENED=unasked PROBED='0:eth0:1 0:ib0:1' three
exits 'an endpoint without an order: a lost node' 125
ENDPOINT_OPENED=dead PROBED= three
exits 'the agent of rank 0 ends: a lost node' 68
told 'it is named' '| localhost connection lost ('
PROBED=dead three
exits 'another agent ends: a lost node' 68

PING_REQUESTS=$PWD/answer ENDPOINT_OPENED=dead three
is 'an agent that asks while others still connect is answered with a PING' "$(cat answer)" 6

start --agent "$ROOT/tests/lib/fake_agent.py" -w 'localhost:1,127.0.0.1:1' touch started
both_agents() { (($(pgrep -fc "$ROOT/tests/lib/fake_agent.py") >= 2)); }
wait_for both_agents
kill -INT "$PID"
begin=$SECONDS
finish
exits 'Ctrl-C while agents are silent: 130' 130
ok 'at once' test $((SECONDS - begin)) -lt "$(scaled 5)"
ok 'nothing was ever started' test ! -e started
nothing_left 'nothing is left'
done_testing
