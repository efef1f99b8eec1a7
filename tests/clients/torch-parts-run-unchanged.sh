#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a training uses of PyTorch beside its collectives: objects, groups, readers of data, a store of its own, calls.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_hn --local 4 torch_parts.py "$TMP/parts"
torch_ok 'parts of torch.distributed on 4 ranks' 4
nothing_left 'nothing is left'
done_testing
