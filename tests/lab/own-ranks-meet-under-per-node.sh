#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# torchrun, started once on each node by --per-node: its ranks meet at the port that hnlaunch kept free.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

# PyTorch 1.13 has no word for "all to the terminal" with Python 3.11; a rank that does not exist is sent elsewhere.
elsewhere=()
[[ $TORCH_VERSION != 1.* ]] || elsewhere=(--redirects 7:1 --tee 7:1)
lab_up 2 2
cat >sum.py <<'END'
import os
import sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.ones(1)
dist.all_reduce(t)
sys.stdout.write("%s of %s: %d\n" % (os.environ["RANK"], os.environ["WORLD_SIZE"], t.item()))
dist.destroy_process_group()
END
lab_hn --node-timeout 60s -H "$TMP/hosts.txt" --per-node --label none "$TORCH_PYTHON" -m torch.distributed.run \
    --nnodes '{num_nodes}' --node_rank '{node_rank}' --nproc_per_node 2 --master_addr '{master_addr}' \
    --master_port '{master_port}' "${elsewhere[@]}" sum.py
exits 'torchrun on two nodes ends with 0' 0
is 'its ranks have met' "$(sort "$OUT")" '0 of 4: 4
1 of 4: 4
2 of 4: 4
3 of 4: 4'
lab_nothing_left 'nothing is left'
done_testing
