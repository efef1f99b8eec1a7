#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent that tells of ranks before it was ordered to start them, of an end twice, or of anything behind the
# end of all, is given up: nothing of it is believed, and hnlaunch does not crash.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export ENDPOINT_OPENED=41731 VERSION PYTHONPATH=$ROOT/tests/lib PYTHONDONTWRITEBYTECODE=1
fake() { hn --agent "$ROOT/tests/lib/fake_agent.py" --local 1 "$@" never-run; }

for early in STARTED OUTPUT EXITED; do
    EARLY=$early fake
    exits "$early before the launch: 125" 125
    has "$early before the launch is told" "$ERR" 'the agent sent a message about a rank that does not run there'
    has "$early before the launch has its own message" "$ERR" 'error[HN217]: the agent on localhost sent a malformed message'
    lacks "$early before the launch: it is not printed" "$OUT" 'out of turn'
done

ORDERED='STARTED OUTPUT EXITED GONE' fake --label none
exits 'in turn: the exit code of the rank' 3
is 'and its output' "$(cat "$OUT")" 'out of turn'

ORDERED='STARTED EXITED EXITED GONE' fake
exits 'an end that is told twice: the first one counts' 3
verdict_has 'the verdict is that of the rank' 'rank 0' 'exited with code 3'
has 'the second is told' "$ERR" 'the agent sent a message about a rank that does not run there'
lacks 'and is no failure of its own' "$ERR" '2 failures'

ORDERED='STARTED EXITED GONE OUTPUT' fake
exits 'output behind the end' 3
lacks 'it is not printed' "$OUT" 'out of turn'

# Between two attempts.
ORDERED='STARTED EXITED GONE OUTPUT EXITED' fake --max-restarts 1
ok 'behind the end of an attempt: no crash' test "$RC" -le 125
lacks 'it is not printed either' "$OUT" 'out of turn'
nothing_left 'nothing is left'
done_testing
