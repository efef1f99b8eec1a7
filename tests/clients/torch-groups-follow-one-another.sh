#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch programs that make a group, destroy it and make another, again and again: no rank meets the past.
# HN_ROUNDS=N makes N rounds.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

rounds=${HN_ROUNDS:-50}
for n in 2 4; do
    torch_hn --local "$n" torch_again.py "$rounds"
    torch_ok "$rounds groups of $n ranks" "$n"
done
# Two names of this machine are two nodes.
torch_hn -w 'localhost:2,127.0.0.1:2' --store-listen loopback torch_again.py "$rounds" --whole
torch_ok "$rounds groups on two nodes with an endpoint each" 4
nothing_left 'nothing is left'
done_testing
