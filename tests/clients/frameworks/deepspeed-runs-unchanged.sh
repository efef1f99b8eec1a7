#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# DeepSpeed on processors, ZeRO 1 and 3: on this machine, and on 4 nodes.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs deepspeed
LIMIT=300
# At its first use DeepSpeed compiles an extension, into a folder that the user's jobs share.
export TORCH_EXTENSIONS_DIR=${TORCH_EXTENSIONS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/torch_extensions}
for stage in 1 3; do
    torch_hn --local 2 deepspeed_zero.py "$stage" "$TMP/local-$stage"
    torch_ok "ZeRO $stage on 2 ranks" 2
done

lab_up 4 2
torch_lab -H "$TMP/hosts.txt" --ppn 1 -x TORCH_EXTENSIONS_DIR deepspeed_zero.py 1 "$TMP/lab-1"
torch_ok 'ZeRO 1 on 4 nodes' 4
torch_lab -H "$TMP/hosts.txt" -n 4 -x TORCH_EXTENSIONS_DIR deepspeed_zero.py 3 "$TMP/lab-3"
torch_ok 'ZeRO 3 on 2 nodes x 2' 4
lab_nothing_left 'nothing is left on the nodes'
done_testing
