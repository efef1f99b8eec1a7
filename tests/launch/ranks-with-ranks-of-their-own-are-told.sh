#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# No rank comes to PyTorch's store, and a process below a rank has another MASTER_PORT: the program starts ranks of its
# own, which wait for a store that does not exist. That is told once, with the process and --per-node (HN412).
. "$(dirname "$0")/../lib/tap.sh" || exit 1

told() { grep -q HN412 "$ERR"; }
ln -s "$(type -P sleep)" $'sle\033[31mep'
# It starts them late: the first looks at the ranks find none.
start --local 2 --start-timeout 500ms \
    sh -c 'test "$RANK" = 0 || exec sleep 1000; sleep 2; MASTER_PORT=12355 ./sle*ep 1000; :'
ok 'a process with another MASTER_PORT is told' wait_for told
has 'as a warning' "$ERR" "warning[HN412]: no rank has come to PyTorch's store in 500ms, and a process looks for another store"
ok 'with its name, host, rank and port' grep -qE 'sle[^ ]*ep \(pid [0-9]+\), started by rank 0 on localhost, has MASTER_PORT=12355' "$ERR"
lacks 'which is escaped' "$ERR" $'\033[31m'
has 'and what to do' "$ERR" 'hnlaunch --per-node'
# Each look at the ranks begins a round: the table of Ctrl-\ comes behind what an earlier round told. Every second one
# within 3 s is the question why.
tables() {
    kill -QUIT "$PID"
    [[ $(grep -c '^ *| *RANK' "$ERR") -ge 3 ]]
}
ok 'three tables are shown' wait_for tables
is 'it is told once' "$(grep -c HN412 "$ERR")" 1
finish_by INT
nothing_left 'nothing is left'

# What the agent of another rank would say: a rank that is not its own, or none.
for how in 'sleep 1000' 'MASTER_PORT=$MASTER_PORT sleep 1000; :' 'env -u HN_STORE MASTER_PORT=12355 sleep 1000; :'; do
    start --local 1 --start-timeout 500ms sh -c "$how"
    wait_for grep -q ': run ' "$ERR" # SIGQUIT ends a hnlaunch that is about to begin
    tables() {
        kill -QUIT "$PID"
        [[ $(grep -c '^ *| *RANK' "$ERR") -ge 20 ]]
    }
    ok "$how: the ranks were looked at" wait_for tables
    ok "$how: nothing is told" not told
    finish_by INT
done

if /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null; then
    cat >spawn.py <<'END'
import os
import sys
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    dist.barrier()
    sys.stdout.write("%d of %d\n" % (rank, size))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["MASTER_PORT"] = sys.argv[1]
    mp.spawn(train, args=(2,), nprocs=2)
END
    start --local 1 --start-timeout 3s --subst /usr/bin/python3 spawn.py '{port:a}'
    ok 'a PyTorch program that hangs is told' wait_for told
    ok 'by the process that waits' grep -qE 'python3? ?.* \(pid [0-9]+\), started by rank 0 on localhost' "$ERR"
    finish_by INT
    hn --local --per-node --start-timeout 3s --label none /usr/bin/python3 spawn.py '{port:a}'
    is 'and runs as the warning says' "$RC $(sort "$OUT" | xargs)" '0 0 of 2 1 of 2'
    ok 'without another warning' not told
else
    skip 'a PyTorch program that hangs is told' 'needs PyTorch in /usr/bin/python3'
fi
done_testing
