#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While NCCL sets a communicator up, or splits one, ranks die or have another NCCL: the others hear it. What can
# happen in the calls of CUDA is in every-call-of-setup-can-fail.sh.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_build setup_faults
gpu_needed 'faults during setup'

lines() { grep -cE "$1" "$OUT"; } # REGEX

# A GPU for each rank where there are enough. TERM is ignored: what ranks say, they say because of what they heard.
setup() { # N ARG...
    local n=$1 share=
    shift
    ((n <= GPUS)) || share='NCCL_HOSTID=$HN_RANK; export NCCL_HOSTID;'
    LIMIT=120 hn --local "$n" --oversubscribe --label none --grace 60s \
        sh -c "trap '' TERM; $share exec \"\$@\"" sh "$TMP/setup_faults" "$@"
}

for n in 1 2 3 4; do
    setup "$n" join 60000
    is "$n ranks have a communicator" "$(lines 'HN_OK, a communicator')" "$n"
done
setup 3 skew 20000
is 'different versions are named by all ranks' "$(lines 'HN_ERR_MISMATCH.* rank 2 \(localhost\) has NCCL ')" 3
if ((NCCL_MINOR >= 18)); then
    setup 4 split 60000
    is 'a split has communicators' "$(lines 'HN_OK, a communicator')" 4
    is 'and leaves the stack alone' "$(lines 'bytes of the stack')" 0
    setup 4 split 60000 3
    is 'a rank dies in a split: the others hear who' "$(lines 'HN_ERR_PEER, nothing.*: rank 3 ')" 3
    is 'and the stack is left alone' "$(lines 'bytes of the stack')" 0
else
    skip 'splits' "NCCL 2.$NCCL_MINOR has none"
fi

nothing_left 'nothing is left'
done_testing
