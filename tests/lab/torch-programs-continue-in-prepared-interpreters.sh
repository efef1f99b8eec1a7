#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch programs on a hold that has imported PyTorch: they say the same as in new interpreters, and begin sooner.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

runtime_dir
lab_up 2 2
H=$TMP/hosts.txt

is_warm() { lab run "$LAB_HNLAUNCH" ps --json | grep -q '"nodes_warm": *2'; }
prepared() { # NAME: all ranks of the run were
    is "$1: in prepared interpreters" "$(grep -c ': 2 of 2 ranks run in prepared interpreters$' "$ERR")" 2
}
first_line_ms() { # ARG...: the time until the first rank says something
    "$LAB" run "$LAB_HNLAUNCH" -H "$H" "$@" "$TORCH_PYTHON" first.py 2>"$ERR" | python3 -c '
import sys, time
begin = float(sys.argv[1])
sys.stdin.buffer.raw.read(1)
print(int((time.time() - begin) * 1000))
sys.stdin.buffer.read()' "$EPOCHREALTIME"
}

exits 'a hold with PyTorch' 0 lab_hn hold -H "$H" --warm "$TORCH_PYTHON:torch"
for script in torch_collectives.py torch_ddp.py; do
    ok 'PyTorch is imported' wait_for is_warm
    torch_lab -v -H "$H" "$script"
    torch_ok "$script" 4
    prepared "$script"
done
ok 'PyTorch is imported' wait_for is_warm
torch_lab -v -H "$H" --max-restarts 1 torch_restart.py "$TMP/checkpoint" 1
torch_ok 'a training goes on from its checkpoint after a death' 4
prepared 'its first attempt'
has 'in the second attempt' "$OUT" 'attempt 1'

echo 'import torch; print(torch.ones(2).sum().item(), flush=True)' >first.py
new=$(first_line_ms --hold none)
wait_for is_warm
warm=$(first_line_ms)
echo "# first line after $new ms in new interpreters, after $warm ms in prepared ones"
ok 'the first line comes sooner' test "$warm" -lt "$new"
lab_hn release
lab_nothing_left 'nothing is left on the nodes'
done_testing
