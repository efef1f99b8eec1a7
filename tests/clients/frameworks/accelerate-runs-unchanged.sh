#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A script for Accelerate: on this machine, and on 4 nodes x 2 ranks.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/lab.sh
. "$ROOT/tests/lib/lab.sh" || exit 1
# shellcheck source=tests/lib/torch.sh
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs accelerate
LIMIT=240
torch_hn --local 2 accelerate_script.py "$TMP/local"
torch_ok 'a script on 2 ranks' 2
has 'Accelerate finds two processes' "$OUT" 'MULTI_CPU, local mains 1'

lab_up 4 2
torch_lab -H "$TMP/hosts.txt" accelerate_script.py "$TMP/lab.state"
torch_ok 'a script on 4 nodes x 2' 8
has 'each node has its main process' "$OUT" 'MULTI_CPU, local mains 4'
lab_nothing_left 'nothing is left on the nodes'
done_testing
