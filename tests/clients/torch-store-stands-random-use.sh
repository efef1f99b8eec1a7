#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Eight PyTorch clients at random on one store: no answer is wrong, no counter loses, nobody hangs.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_hn --local 8 torch_torture.py 1500 "${SEED:-1}"
torch_ok 'eight ranks of one node' 8
torch_hn -w 'localhost:3,127.0.0.1:3,[::1]:2' --store-listen loopback torch_torture.py 1000 "${SEED:-2}"
torch_ok 'eight ranks of three nodes' 8
nothing_left 'nothing is left'
done_testing
