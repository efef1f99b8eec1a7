#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Transformers' Trainer, and how it goes on from a checkpoint: here, and on 4 nodes x 2 ranks.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs transformers accelerate
LIMIT=240
torch_hn --local 2 hf_trainer.py "$TMP/local"
torch_ok 'a training on 2 ranks' 2

lab_up 4 2
torch_lab -H "$TMP/hosts.txt" hf_trainer.py "$TMP/lab.state"
torch_ok 'a training on 4 nodes x 2' 8
lab_nothing_left 'nothing is left on the nodes'
done_testing
