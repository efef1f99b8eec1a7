#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A rank dies in the middle of a PyTorch training: it is named, not those whose connections broke with it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

dies() { # HOW CODE
    torch_hn --local 3 torch_dies.py 1 "$1"
    exits "$1: the exit code is that of the rank" "$2"
    verdict_has "$1: the last line names rank 1" 'rank 1'
}

dies exit 7
dies raise 1
verdict_has 'raise: its exception is told' ': ValueError: the loader of rank 1 found nothing  (exit 1)'
dies kill 137
dies crash 139
dies store 9

begin=$SECONDS
torch_hn --local 3 --timeout 15s torch_dies.py 1 hang
exits 'hang: the time limit ends it' 124
ok 'hang: in time' test $((SECONDS - begin)) -lt "$(scaled 40)"
nothing_left 'nothing is left'
done_testing
