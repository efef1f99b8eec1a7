#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ray symmetric-run makes a cluster of 2 nodes, Ray Train's TorchTrainer trains on it, and the job ends with its driver.
# shellcheck disable=SC1083
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs ray ray.train
LIMIT=300
# The nodes of the lab have /tmp in common.
export PATH=${TORCH_PYTHON%/*}:$PATH RAY_TMPDIR=/run RAY_AUTH_MODE=disabled

ray_lab() { # COMMAND...
    torch_lab -H "$TMP/hosts.txt" --per-node --ends-with rank0 -x PATH -x RAY_TMPDIR -x RAY_AUTH_MODE \
        ray symmetric-run --address {master_addr}:{port:ray} --min-nodes {num_nodes} --num-cpus=1 -- "$@"
}

lab_up 2 2
ray_lab ray_train.py 2 2 "$TMP/results"
torch_ok 'a training with two workers' 2
has 'they are on two nodes' "$OUT" '2 nodes'
verdict_has 'the job ends with its driver: the other node is stopped' 'rank 0 exited 0 in' '1 rank was stopped'
ray_lab python -c 'raise SystemExit("the driver has failed")'
exits 'a driver that fails ends the job' 1
verdict_has 'its node is named' 'rank 0 on node001'
lab_nothing_left 'nothing is left on the nodes'
done_testing
