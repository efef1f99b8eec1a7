#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While NCCL sets a communicator up, ranks die, hang, share a GPU or have another NCCL: the others hear it, and soon.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/gpu.sh
. "$ROOT/tests/lib/gpu.sh"

gpu_build setup_faults
gpu_needed 'faults during setup'

lines() { grep -cE "$1" "$OUT"; } # REGEX

# A GPU for each rank where there are enough. TERM is ignored: what ranks say, they say because of what they heard.
setup() { # N ARG...
    local n=$1 share=
    shift
    # shellcheck disable=SC2016
    ((n <= GPUS)) || share='NCCL_HOSTID=$HN_RANK; export NCCL_HOSTID;'
    LIMIT=120 hn --local "$n" --oversubscribe --label none --grace "${GRACE:-60s}" \
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

if ! grep -q ' fakegpu$' "$TMP/gpus"; then
    skip 'faults in the stages of the setup' 'for simulated GPUs: sh tests/gpu/run.sh --fake'
    nothing_left 'nothing is left'
    done_testing
fi
# Before NCCL's bootstrap, in it, and when transports are connected. NCCL 2.22 tries the last for 20 s.
for call in cudaFuncGetAttributes nvmlDeviceGetHandleByPciBusId cudaHostRegister; do
    setup 3 join 60000 1 "die:$call"
    is "a rank dies in $call: the others hear who" "$(lines 'HN_ERR_PEER, nothing.*: rank 1 ')" 2
    ok 'soon, whatever NCCL goes on with' awk '$5 > 12000 { late = 1 } END { exit late }' "$OUT"
    GRACE=20s setup 3 join 3000 1 "hang:$call"
    is "a rank hangs in $call: the time limit holds" "$(lines 'HN_ERR_(TIMEOUT|PEER), nothing, [0-9]{4} ms')" 3
    sed 's/^/# /' "$OUT"
done
nothing_left 'nothing is left'
done_testing
