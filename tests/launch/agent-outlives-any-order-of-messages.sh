#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Valid messages of a head in any order, with real ranks and child agents: the agent ends when its head is gone, with
# exit code 0, and leaves no process. ORDER="FIRST LAST" plays these sequences instead:
#
#   ORDER='1 1000' sh tests/run.sh tests/launch/agent-outlives-any-order-of-messages.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

export AGENT=$BUILD/hnlaunch-agent PYTHONPATH=$ROOT/tests/lib
read -r first last <<<"${ORDER:-1 60}"
python3 "$ROOT/tests/lib/order_agent.py" "$first" "$last" >"$OUT" 2>"$ERR"
RC=$?
exits "sequences $first to $last" 0
nothing_left 'nothing is left'
done_testing
