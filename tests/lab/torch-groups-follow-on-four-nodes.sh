#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch programs on 4 nodes that make a group after another, with the store on rank 0's node and on every node.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache"
lab_up 4 2
rounds=${HN_ROUNDS:-40}

torch_lab -H "$TMP/hosts.txt" --ppn 1 --store-listen network torch_again.py "$rounds"
torch_ok "network: $rounds groups" 4
torch_lab -H "$TMP/hosts.txt" --store-listen loopback torch_again.py "$rounds" --whole
torch_ok "loopback: $rounds groups" 8
lab_nothing_left 'nothing is left on the nodes'
done_testing
