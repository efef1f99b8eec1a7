#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real readers of the variables of other launchers: Lightning reads Slurm's, Accelerate Open MPI's and MPICH's;
# DeepSpeed's scripts have the argument of its launcher.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

TORCH_PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
LIMIT=120
for module in lightning accelerate deepspeed; do
    "$TORCH_PYTHON" -c "import $module" 2>/dev/null ||
        skip_all "$TORCH_PYTHON has no $module: sh tests/clients/run.sh --frameworks"
done
export OMP_NUM_THREADS=1
readers=("$TORCH_PYTHON" "$ROOT/tests/clients/frameworks/compat_readers.py")

for family in ompi mpich; do
    hn -q --local 3 --label none --compat $family "${readers[@]}" accelerate
    is "$family: Accelerate" "$RC: $(sort "$OUT" | uniq -c | xargs)" '0: 3 right'
done
hn -q --local 2 --label none --compat deepspeed "${readers[@]}" deepspeed
is 'deepspeed: the arguments of a script' "$RC: $(grep -c '^right$' "$OUT")" '0: 2'
lab_up 2 2
lab_hn -q -H "$TMP/hosts.txt" --node-timeout 60s --label none --compat slurm "${readers[@]}" lightning
first=$(head -n 1 "$TMP/hosts.txt" | cut -d' ' -f1)
is 'slurm: Lightning, 2 nodes x 2' "$RC: $(sort "$OUT" | uniq -c | xargs)" \
    "0: 2 node 0, first $first, right 2 node 1, first $first, right"
lab_hn -q -H "$TMP/hosts.txt" --node-timeout 60s --label none --compat ompi "${readers[@]}" accelerate
is 'ompi: Accelerate, 2 nodes x 2' "$RC: $(sort "$OUT" | uniq -c | xargs)" '0: 4 right'
lab_nothing_left 'nothing is left on the nodes'
done_testing
