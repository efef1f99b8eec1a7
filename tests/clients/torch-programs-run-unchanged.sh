#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch programs that know nothing of hnlaunch: a training, every collective, every call of the store.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

for n in 1 2 4; do
    torch_hn --local "$n" torch_ddp.py
    torch_ok "a training on $n ranks" "$n"
    [[ $n != 1 ]] || loss=$(torch_loss)
    is "its loss is that of one rank" "$(torch_loss)" "${loss:-none}"
done
hn --local 4 --label none "$TORCH_PYTHON" "$ROOT/examples/torch_ddp.py" --epochs 6
exits 'the example gives 0' 0
accuracy=$(grep -o 'accuracy [0-9]*' "$OUT" | cut -d' ' -f2)
ok "the example learns: ${accuracy:-no} %" test "${accuracy:-0}" -ge 93

# Eight ranks on one node are those of torch-store-stands-random-use, eight on four nodes those of the lab.
for n in 1 4; do
    torch_hn --local "$n" torch_store.py --late-keys
    torch_ok "the store's calls on $n ranks" "$n"
    torch_hn --local "$n" torch_collectives.py
    torch_ok "the collectives on $n ranks" "$n"
done

torch_hn --local 2 --store-listen none torch_ddp.py
torch_ok 'a training with a store of its own' 2
torch_hn --local 2 --store-listen none torch_collectives.py
torch_ok 'the collectives with a store of their own' 2

# Two names of this machine are two nodes.
torch_hn -w 'localhost:2,127.0.0.1:2' --store-listen loopback torch_store.py --late-keys
torch_ok 'two nodes with an endpoint each have one store' 4
torch_hn -w 'localhost:2,127.0.0.1:2' torch_collectives.py
torch_ok 'the collectives on two nodes' 4
nothing_left 'nothing is left'
done_testing
