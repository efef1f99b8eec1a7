#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The ranks of a job are one replica group of torchft; its lighthouse runs beside hnlaunch.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs torchft
LIMIT=120
lighthouse=${TORCH_PYTHON%/*}/torchft_lighthouse

listening() { lighthouse_port=$(grep -o 'listening on: http://.*:[0-9]*' "$TMP/lighthouse.log" | grep -o '[0-9]*$'); }

groups_are() { # NAME N: every rank came to its tenth step
    is "$1" "$RC $(grep -c 'step 10$' "$OUT")" "0 $2"
}

"$lighthouse" --min_replicas 1 --bind 127.0.0.1:0 >"$TMP/lighthouse.log" 2>&1 &
here=$!
wait_for listening
TORCHFT_LIGHTHOUSE=http://127.0.0.1:$lighthouse_port torch_hn --local 2 torchft_train.py
groups_are 'two ranks are a replica group' 2
kill "$here"

lab_up 4 2
"$LAB" run "$lighthouse" --min_replicas 1 --bind 0.0.0.0:0 >"$TMP/lighthouse.log" 2>&1 &
there=$!
wait_for listening
torch_lab -H "$TMP/hosts.txt" -x "TORCHFT_LIGHTHOUSE=http://$LAB_NET.255.254:$lighthouse_port" torchft_train.py
groups_are 'eight ranks on 4 nodes are a replica group' 8
kill "$there"
lab_nothing_left 'nothing is left on the nodes'
done_testing
