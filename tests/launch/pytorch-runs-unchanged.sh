#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A PyTorch program as torchrun would start it: env:// and nothing else.
. "$(dirname "$0")/../lib/tap.sh"

for python in "${TORCH_PYTHON:-}" /usr/bin/python3 python3; do
    [[ $python ]] && "$python" -c 'import torch.distributed' 2>/dev/null && break
    python=
done
[[ $python ]] || skip_all 'no Python with PyTorch here'
# four of them load PyTorch at once

cat >train.py <<'END'
import datetime
import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=140))
rank, world = dist.get_rank(), dist.get_world_size()
t = torch.full((4,), float(rank + 1))
dist.all_reduce(t)
pair = dist.new_group([0, world - 1])
mine = torch.tensor([rank])
if rank in (0, world - 1):
    dist.all_reduce(mine, group=pair)
names = [None] * world
dist.all_gather_object(names, "rank-%d" % rank)
dist.barrier()
print(rank, world, t.tolist()[0], mine.item(), names[-1])
# Without it PyTorch 2.15 aborts now and then as it exits, under any launcher.
dist.destroy_process_group()
END
hn_exits 'a program on four ranks ends with 0' 0 --local 4 --label none "$python" train.py
is 'and every rank has the right sums' "$(sort "$OUT")" "$(printf '%s\n' \
    '0 4 10.0 3 rank-3' '1 4 10.0 1 rank-3' '2 4 10.0 2 rank-3' '3 4 10.0 3 rank-3')"
hn_exits 'so it does on two nodes' 0 -w 'localhost:2,127.0.0.1:2' --label none "$python" train.py
is 'with the same sums' "$(sort "$OUT" | head -1)" '0 4 10.0 3 rank-3'
hn_exits 'and with a store of its own' 0 --local 2 --store-listen none --label none "$python" train.py

cat >wait.py <<'END'
import datetime
import os
import torch.distributed as dist

store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), None, False,
                      datetime.timedelta(seconds=140))
store.set_timeout(datetime.timedelta(seconds=1))
try:
    store.get("nothing")
except RuntimeError as e:
    print("gave up")
store.set_timeout(datetime.timedelta(seconds=140))
store.set("key", "value")
print(store.get("key"), store.add("n", 3), store.num_keys(), store.delete_key("key"))
END
hn --local 1 --label none "$python" wait.py
is 'a client that gave up waiting goes on with its connection' "$(cat "$OUT")" \
    "$(printf 'gave up\n%s' "b'value' 3 2 True")"

# Rank 0 destroys its group and leaves; the other one uses its store when the agent of rank 0 has no child any more.
cat >leave.py <<'END'
import datetime
import os
import sys
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store
from waiting import wait_for

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=140))
rank, store = dist.get_rank(), _get_default_store()
if rank == 0:
    store.set("agent", str(os.getppid()))
agent = store.get("agent").decode()
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    sys.exit(0)


def has_left():
    with open("/proc/%s/task/%s/children" % (agent, agent)) as f:
        return not f.read().split()


wait_for(has_left)
for i in range(300):
    store.add("n", 1)
store.set("key", "value")
store.wait(["key"])
print(store.get("key"), store.add("n", 0))
END
PYTHONPATH=$ROOT/tests/lib hn -w 'localhost:1,127.0.0.1:1' --timeout 120s --label none "$python" leave.py
exits 'rank 0 leaves first: the job ends well' 0
is 'and the store of the other rank was answered' "$(cat "$OUT")" "b'value' 300"
done_testing
