#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks may open as many files and lock as much memory as the hard limits allow, and a low hard limit of locked memory
# is told of nodes with InfiniBand.
. "$(dirname "$0")/../lib/tap.sh"

hard=$(ulimit -Hn)
[[ $hard == unlimited ]] && hard=1048576
((hard >= 256)) || skip_all 'the hard limit of open files is below 256'

# Limits of the agent: soft below hard.
show='echo "$(ulimit -Sn) $(ulimit -Hn)"'
run prlimit --nofile=200:256 "$HNLAUNCH" --local 2 --label none sh -c "$show"
exits 'a rank starts' 0
is 'it may open all files of the hard limit' "$(cat "$OUT")" $'256 256\n256 256'

if ((hard > 1048576)); then
    run prlimit --nofile=200:"$hard" "$HNLAUNCH" --local 1 --label none sh -c 'ulimit -Sn'
    is 'programs that close all descriptors have not too many' "$(cat "$OUT")" 1048576
    run prlimit --nofile=1048577:"$hard" "$HNLAUNCH" --local 1 --label none sh -c 'ulimit -Sn'
    is 'no limit is lowered' "$(cat "$OUT")" 1048577
fi

run prlimit --memlock=65536:131072 "$HNLAUNCH" --local 2 --label none -v sh -c 'ulimit -Sl'
is 'it may lock the memory of the hard limit' "$(cat "$OUT")" $'128\n128'
has '-v tells it' "$ERR" 'soft limits of ranks are raised to the hard ones: '
has 'with both numbers' "$ERR" 'bytes of locked memory 131072 (were 65536)'
is 'once' "$(grep -c 'soft limits' "$ERR")" 1
has 'in the line on the containment' <(grep 'contained by' "$ERR") '; soft limits of ranks'
run prlimit --memlock=65536:65536 --nofile=256:256 "$HNLAUNCH" --local 1 --label none -v true
lacks 'limits that are equal need no word' "$ERR" 'soft limits'

# Nodes with InfiniBand are those of a fake agent.
VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export VERSION PYTHONPATH=$ROOT/tests/lib ENDPOINT_OPENED=41731
fake() { hn --agent "$ROOT/tests/lib/fake_agent.py" --local 1 never-run; }
export ORDERED='STARTED EXITED GONE'
INFINIBAND=2 MEMLOCK=65536 fake
has 'little memory to lock beside InfiniBand is told' "$ERR" \
    'warning[HN906]: ranks can lock only 64 KiB of memory on 1 node with InfiniBand'
has 'with the next step' "$ERR" 'memlock unlimited'
INFINIBAND=2 fake
lacks 'enough of it is not' "$ERR" HN906
MEMLOCK=65536 fake
lacks 'nor is a node without InfiniBand' "$ERR" HN906
done_testing
