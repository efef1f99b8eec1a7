#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lightning's Trainer and Fabric: on this machine, and on 4 nodes x 2 ranks.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs lightning
LIMIT=240
for script in lightning_trainer fabric_loop; do
    torch_hn --local 2 "$script.py" 1 2 "$TMP/$script"
    torch_ok "$script on 2 ranks" 2
done

lab_up 4 2
for script in lightning_trainer fabric_loop; do
    torch_lab -H "$TMP/hosts.txt" "$script.py" 4 2 "$TMP/$script.lab"
    torch_ok "$script on 4 nodes x 2" 8
done

lab_nothing_left 'nothing is left on the nodes'
done_testing
