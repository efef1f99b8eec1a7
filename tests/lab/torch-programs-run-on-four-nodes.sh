#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch programs on 4 nodes, with the store on rank 0's node, on every node, and without. Two ranks per node where
# they share a store of the node or a network; each costs a second of processor time to load PyTorch.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache"
lab_up 4 2
hosts=$TMP/hosts.txt

torch_lab -H "$hosts" torch_collectives.py
torch_ok 'the collectives' 8
for endpoint in network loopback; do
    ranks=8 each=
    [[ $endpoint != network ]] || ranks=4 each='--ppn 1'
    torch_lab -H "$hosts" $each --store-listen "$endpoint" torch_ddp.py
    torch_ok "$endpoint: a training" "$ranks"
    torch_lab -H "$hosts" $each --store-listen "$endpoint" torch_store.py --late-keys
    torch_ok "$endpoint: the store's calls" "$ranks"
done
torch_lab -H "$hosts" --store-listen loopback torch_torture.py 500
torch_ok 'loopback: random use of the store' 8
torch_lab -H "$hosts" --ppn 1 --store-listen none torch_ddp.py
torch_ok 'none: a training' 4

for endpoint in network loopback; do
    ranks=8 each=
    [[ $endpoint != network ]] || ranks=4 each='--ppn 1'
    torch_lab -H "$hosts" $each --store-listen "$endpoint" --max-restarts 1 torch_restart.py "$TMP/checkpoint-$endpoint" 1
    torch_ok "$endpoint: a training goes on from its checkpoint after a death" "$ranks"
    has "$endpoint: in the second attempt" "$OUT" 'attempt 1'
done

torch_lab -H "$hosts" torch_dies.py 5 kill
exits 'a rank is killed: 128 + 9' 137
verdict_has 'the last line names it and its node' 'rank 5' node003
lab_nothing_left 'nothing is left on the nodes'
done_testing
