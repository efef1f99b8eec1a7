#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent that says something out of turn is given up: nothing of it is believed, the message is told with its
# name, and hnlaunch does not crash.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export ENDPOINT_OPENED=41731 VERSION PYTHONPATH=$ROOT/tests/lib
# The limit ends a launch that believes in such an agent: nothing else does.
fake() { hn --agent "$ROOT/tests/lib/fake_agent.py" --local 1 --timeout 20s "$@" never-run; }

for early in STARTED REFUSED OUTPUT EXITED REPORT DUMP NCCL RANK_READY CREDIT GONE HELLO PONG STATUS INSPECTED RAS FACTS CHECKED PROBED PORTS_HELD WANT TAKEN PUSHED PULLED TUNNEL LAUNCH; do
    EARLY=$early fake
    exits "$early before the launch: 125" 125
    has "$early before the launch is told" "$ERR" "the agent sent a message out of turn: $early"
    has "$early before the launch has its own message" "$ERR" 'error[HN217]: the agent on localhost sent a malformed message'
    lacks "$early before the launch: it is not printed" "$OUT" 'out of turn'
done

EARLY=OWNERS fake
exits 'an owner of a socket that nobody asked for: 125' 125
has 'it is told' "$ERR" 'message out of turn: OWNERS without a question'
EARLY=OWNERS_REQUEST fake
exits 'a question about sockets from an agent without the store: 125' 125
has 'this is told, too' "$ERR" 'message out of turn: OWNERS_REQUEST'

ORDERED='STARTED OUTPUT END EXITED GONE' fake --label none
exits 'in turn: the exit code of the rank' 3
is 'and its output' "$(cat "$OUT")" 'out of turn'

# What comes first counts; the node is lost by what follows.
out_of_turn() { # WORDS TEXT...
    ORDERED=$1 fake
    exits "$1: the node is lost" 125
    verdict_has "$1: so says the verdict" 'lost localhost' "${@:2}"
}
out_of_turn 'GONE' 'GONE, before the end of 1 rank'
out_of_turn 'STARTED GONE' 'GONE, before the end of 1 rank'
out_of_turn 'STARTED STARTED' 'STARTED of rank 0, which has started before'
out_of_turn 'STARTED REFUSED' 'REFUSED of rank 0, which has started before'
out_of_turn 'STARTED END OUTPUT' 'OUTPUT of rank 0, which has ended this stream'
out_of_turn 'STARTED REPORT REPORT' 'REPORT of rank 0, which has reported before'
out_of_turn 'STARTED STOPPED' 'malformed EXITED message: wait status 0x137f'
out_of_turn 'STARTED CREDIT' 'CREDIT for more input than rank 0 was sent'
out_of_turn 'STARTED BARRIER' 'STORE, BARRIER of rank 9, which does not run there'
out_of_turn 'STARTED NCCL NCCL' 'NCCL, after another'
out_of_turn 'STARTED RANK_READY' 'RANK_READY of rank 0, which is not asked'
out_of_turn 'STARTED DUMP-TOLD' 'DUMP, before the end of 1 rank'
out_of_turn 'STARTED DUMP-ASKED' 'DUMP without a request'
# The cause is the rank by then.
dump_refused() { # WORDS TEXT [OPTION...]
    ORDERED="STARTED EXITED $1 GONE" fake "${@:3}"
    exits "$1: the exit code of the rank" 3
    has "$1: it is told" "$ERR" "$2"
}
dump_refused DUMP 'DUMP with content'
dump_refused DUMP-BEYOND 'malformed DUMP message'
dump_refused DUMP-BEHIND 'another part was due' --log-dir logs
dump_refused DUMP-SHORT 'another part was due' --log-dir logs
dump_refused "$(printf 'DUMP-TOLD %.0s' {1..129})" 'DUMP, after 128 dumps'
is 'nothing of them is kept' "$(find logs -name 'nccl_trace_rank*')" ''
for word in HELLO PONG STATUS INSPECTED RAS FACTS ENDPOINT_OPENED PROBED PORTS_HELD WANT TAKEN PUSHED PULLED TUNNEL LAUNCH; do
    out_of_turn "STARTED $word" "out of turn: $word"
done

ORDERED='STARTED EXITED EXITED GONE' fake
exits 'an end that is told twice: the first one counts' 3
verdict_has 'the verdict is that of the rank' 'rank 0' 'exited with code 3'
has 'the second is told' "$ERR" 'the agent sent a message out of turn: EXITED of rank 0, which has ended'
lacks 'and is no failure of its own' "$ERR" '2 failures'

ORDERED='REFUSED REFUSED' fake
exits 'a refusal that is told twice: the first one counts' 127
verdict_has 'the verdict is that of the refusal' 'it cannot be executed'

for late in OUTPUT EXITED GONE; do
    ORDERED="STARTED EXITED GONE $late" fake
    exits "$late behind the end" 3
    lacks 'it is not printed' "$OUT" 'out of turn'
    has 'it is told' "$ERR" "localhost is not used again: its agent sent a message out of turn: $late"
done

# Between two attempts.
ORDERED='STARTED EXITED GONE OUTPUT EXITED' fake --max-restarts 1
ok 'behind the end of an attempt: no crash' test "$RC" -le 125
lacks 'it is not printed either' "$OUT" 'out of turn'
nothing_left 'nothing is left'
done_testing
