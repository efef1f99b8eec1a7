#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The same binary joins under hnlaunch and under torchrun, and says the same.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import torch.distributed.run' 2>/dev/null ||
    skip_all "needs PyTorch in $PYTHON (Debian's python3-torch)"
clients=$BUILD/tests/clients
# Whatever the site's Python prints when it starts and stops is not ours.
export PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
unset "${!TORCHELASTIC_@}" RANK WORLD_SIZE MASTER_ADDR MASTER_PORT

# Below those that the kernel gives to others before it is used.
free_port() {
    "$PYTHON" - <<'END'
import random, socket
lowest = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
for _ in range(100):
    s = socket.socket()
    try:
        s.bind(("0.0.0.0", random.randrange(lowest - 12000, lowest) if lowest > 14000 else 0))
    except OSError:
        continue
    print(s.getsockname()[1])
    break
END
}

# The mappings name a rank that does not exist: PyTorch 1.13 cannot read "none" in Python 3.11.
torchrun() { # N PROGRAM... with options of torchrun in $OPTIONS
    local n=$1
    shift
    # shellcheck disable=SC2086
    run "$PYTHON" -m torch.distributed.run --nproc_per_node "$n" --monitor_interval 0.2 \
        ${OPTIONS---master_port $(free_port)} --redirects 9:1 --tee 9:1 --no_python "$@"
}

both_say() { # NAME N COMMAND...
    local name=$1 n=$2
    shift 2
    hn --local "$n" --label none "$@"
    exits "$name: hnlaunch gives 0" 0
    sort "$OUT" | sed 's/localhost/HOST/g' >"$TMP/hnlaunch.out"
    torchrun "$n" "$@"
    exits "$name: torchrun gives 0" 0
    sort "$OUT" | sed "s/$(hostname)/HOST/g" >"$TMP/torchrun.out"
    same "$name: both say the same" "$TMP/hnlaunch.out" "$TMP/torchrun.out"
    has "$name: and they say something" "$TMP/torchrun.out" "${SAYS-ok}"
}

# Programs behind one another in one worker: each of them joins anew.
SAYS='hello from rank 3 of 4 on HOST' both_say 'groups, keys, threads, hello' 4 sh -c \
    "$clients/all_gather && $clients/store_ops && $clients/threads && $BUILD/examples/hello"
both_say 'corners of the store, joined twice' 4 "$clients/store_corners" again
SAYS='barrier `world`: rank 1 (HOST) missing after 0.5 s' both_say 'a late rank' 2 "$clients/barrier_timeout"
if [[ -e $BUILD/hn_backend_gloo.so ]]; then
    both_say 'collectives of Gloo' 2 "$clients/collectives"
fi

torchrun 2 "$clients/store_corners" fail
exits 'a rank that fails fails torchrun' 1
has 'torchrun shows what hn_report_error() was told' "$ERR" 'data: shard 12 is "empty"'

# In 1.13 the agent keeps the store of this rendezvous to itself; newer ones share it.
OPTIONS=--standalone torchrun 2 "$BUILD/examples/hello"
if [[ $RC = 0 ]]; then
    has 'where the agent shares its store a standalone job runs' "$OUT" 'hello from rank 1 of 2'
else
    has 'a rendezvous without a shared store is told' "$ERR" \
        'hello: torchrun'"'"'s agent serves no store with this rendezvous (TORCHELASTIC_USE_AGENT_STORE=False)'
fi

# By hand, as torchrun would: nobody listens, and a variable is missing.
as_torchrun=(env TORCHELASTIC_RUN_ID=x TORCHELASTIC_USE_AGENT_STORE=True RANK=0 WORLD_SIZE=1
    LOCAL_WORLD_SIZE=1 GROUP_RANK=0 GROUP_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1)
run "${as_torchrun[@]}" MASTER_PORT=1 "$BUILD/examples/hello"
has 'a variable that is missing is told' "$ERR" 'LOCAL_RANK is not set: start the program with torchrun'
run "${as_torchrun[@]}" LOCAL_RANK=0 "$BUILD/examples/hello"
has 'so is the port' "$ERR" 'MASTER_ADDR or MASTER_PORT is not set'
run "${as_torchrun[@]}" LOCAL_RANK=0 MASTER_PORT="$(free_port)" "$clients/store_corners" short
has 'nobody listens' "$ERR" "cannot connect to MASTER_ADDR:MASTER_PORT (127.0.0.1:"
has 'and why' "$ERR" 'Connection refused'
run "${as_torchrun[@]}" RES_OPTIONS='timeout:2 attempts:1' LOCAL_RANK=0 MASTER_PORT=1 MASTER_ADDR=no.such.host.invalid "$BUILD/examples/hello"
has 'a name that does not exist is told' "$ERR" 'MASTER_ADDR=no.such.host.invalid: '

# Both sets of variables: hnlaunch sets them all, and its own store wins.
hn --local 2 --label none sh -c 'unset MASTER_ADDR MASTER_PORT; exec "$1"' sh "$BUILD/examples/hello"
exits 'the socket of hnlaunch wins' 0
nothing_left 'nothing is left'
done_testing
