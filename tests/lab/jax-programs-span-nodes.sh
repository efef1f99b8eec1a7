#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real JAX on 4 nodes: the coordinator is at the address that all nodes have reached, Gloo between the nodes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/jax.sh" || exit 1
lab_up 4 2

said() { grep '^rank' "$OUT" | sort | cut -d, -f1-3 | uniq -c | wc -l; }
jax_lab() { # ARG...
    local words
    jax_words "$@"
    lab_hn --node-timeout 60s -H "$TMP/hosts.txt" -x HNLAUNCH_LIBRARY --label none "${words[@]}"
}

jax_lab --ppn 1 jax_gather.py hnlaunch.jax_cluster
is '4 nodes' "$RC: $(said)" '0: 4'
jax_lab -n 4 jax_gather.py hnlaunch.jax_cluster
is '2 nodes x 2' "$RC: $(said)" '0: 4'
for family in ompi slurm; do
    jax_lab -n 4 --compat $family jax_gather.py
    is "2 nodes x 2, --compat $family, an unchanged program" "$RC: $(said)" '0: 4'
done
jax_lab --ppn 1 --store-listen loopback --compat ompi jax_gather.py
is 'MASTER_ADDR is 127.0.0.1 on every node, the coordinator not' "$RC: $(said)" '0: 4'
lab_nothing_left 'nothing is left on the nodes'
done_testing
