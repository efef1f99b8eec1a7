#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two roles on four nodes over ssh: PyTorch meets in each, over the network of the nodes; through other nodes, too (--tree). A rank of one
# role that fails ends both.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip_all 'no torch of /usr/bin/python3'
lab_up 4 2
cat >meet.py <<'END'
import torch
import torch.distributed as d
d.init_process_group("gloo")
x = torch.ones(1)
d.all_reduce(x)
print(d.get_rank(), d.get_world_size(), int(x))
END
want=$(for role in a b; do for r in 0 1 2 3; do echo "$role:$r | $r 4 4"; done; done)
for way in '' '--tree 2'; do
    # shellcheck disable=SC2086
    lab_hn -H "$TMP/hosts.txt" $way --gpus-per-rank 0 --role a --nodes 2 /usr/bin/python3 "$PWD/meet.py" : --role b --nodes 2 /usr/bin/python3 "$PWD/meet.py"
    exits "two roles${way:+ with $way} run over ssh" 0
    is 'PyTorch meets in each' "$(sort "$OUT")" "$want"
    lab_nothing_left 'nothing is left on the nodes'
done

lab_hn -H "$TMP/hosts.txt" --role a --nodes 2 sleep 60 : --role b --nodes 2 sh -c '[ $RANK = 3 ] || exec sleep 60; sleep 0.5; exit 9'
exits 'a failed rank ends both roles' 9
verdict_has 'role and rank are named' 'role b, rank 3 on node004 exited with code 9'
lab_nothing_left 'nothing is left on the nodes'
done_testing
