#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Monarch's StoreJob starts its workers beside the ranks; rank 0 runs actors on all nodes.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs monarch torchx
LIMIT=120
export TMPDIR=$TMP
torch_hn --local 2 monarch_job.py 2 0
torch_ok 'actors on this machine' 2

lab_up 4 2
torch_lab -H "$TMP/hosts.txt" -x TMPDIR monarch_job.py 2 29871
torch_ok 'two actors on each of 4 nodes' 8
has 'all of them answered' "$OUT" '8 actors'
lab_nothing_left 'nothing is left on the nodes'
done_testing
