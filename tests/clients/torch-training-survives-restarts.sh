#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With --max-restarts a PyTorch training goes on from its checkpoint, and ends as if nothing had happened.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

result() { grep -o 'loss .*' "$OUT"; }

torch_hn --local 3 torch_restart.py "$TMP/calm"
torch_ok 'a training without a death' 3
calm=$(result)

torch_hn --local 3 --max-restarts 2 torch_restart.py "$TMP/stormy" 2
torch_ok 'two deaths are two restarts' 3
has 'the third attempt ends it' "$OUT" 'attempt 2'
is 'with the same parameters' "$(result)" "${calm:-none}"

torch_hn --local 3 --max-restarts 1 torch_restart.py "$TMP/stormier" 2
exits 'the second death is one too many' 7
verdict_has 'the last line names rank 2' 'rank 2'
nothing_left 'nothing is left'
done_testing
