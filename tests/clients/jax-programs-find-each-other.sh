#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# jax.distributed.initialize() without arguments, by hnlaunch.jax_cluster or by --compat: real JAX, collectives of Gloo
# on processors.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/jax.sh" || exit 1

# JAX binds its port seconds after the launcher gave it back. On a network of its own no other test takes it meanwhile.
cat >hnlaunch-alone <<END
#!/bin/sh
exec unshare --map-root-user --net sh -c 'ip link set lo up && exec "$HNLAUNCH" "\$@"' sh "\$@"
END
chmod +x hnlaunch-alone
! ./hnlaunch-alone version >/dev/null 2>&1 || HNLAUNCH=$PWD/hnlaunch-alone

said() { grep '^rank' "$OUT" | sort | tr '\n' ';'; }
two='rank 0: process 0 of 2, 1 of 2 devices, sum 3;rank 1: process 1 of 2, 1 of 2 devices, sum 3;'

jax_hn --local 2 jax_gather.py hnlaunch.jax_cluster
is 'two ranks' "$RC: $(said)" "0: $two"
jax_hn --local 2 --compat ompi --max-restarts 1 -x DIE_FIRST=1 jax_gather.py
is '--compat ompi, an unchanged program, and a restart' "$RC: $(said)" "0: $two"
jax_hn --local 2 --compat slurm jax_gather.py
is '--compat slurm, an unchanged program' "$RC: $(said)" "0: $two"
jax_hn --local 2 jax_gather.py
has 'without either the next step is told' "$ERR" '= help: JAX does not know hnlaunch: add --compat ompi, or import'
jax_hn --local 2 --store-listen none jax_gather.py hnlaunch.jax_cluster
is 'without a store for PyTorch' "$RC: $(said)" "0: $two"
jax_hn --local 1 jax_gather.py hnlaunch.jax_cluster
is 'one rank' "$RC: $(said)" '0: rank 0: process 0 of 1, 1 of 1 devices, sum 1;'
jax_hn --local 2 --max-restarts 1 -x DIE_FIRST=1 jax_gather.py hnlaunch.jax_cluster
is 'after a restart they find each other again' "$RC: $(said)" "0: $two"
jax_hn --local 2 jax_again.py
is 'and after a shutdown, with a port of its own each time' \
    "$RC: $(sort -u "$OUT" | wc -l) $(sort -u "$OUT" | tr ' ' '\n' | sort -u | wc -l)" '0: 1 3'

jax_hn --local 2 --compat slurm -x JAX_DEBUG_LOG_MODULES=jax jax_gather.py hnlaunch.jax_cluster
is 'with the variables of Slurm around it' "$RC: $(said)" "0: $two"
is 'hnlaunch is asked first' "$(grep -o 'JAX environment via .*' "$ERR" | sort -u)" 'JAX environment via HnlaunchCluster'
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
jax_hn --local 2 -x "JAX_COORDINATOR_PORT=$port" -x JAX_DEBUG_LOG_MODULES=jax \
    jax_gather.py hnlaunch.jax_cluster
is 'a port that the user names is taken' "$RC: $(said)" "0: $two"
has 'and no other' "$ERR" "Connecting to JAX distributed service on 127.0.0.1:$port"

# Which of the devices that it sees a process uses: the one at its local rank, or all.
cat >devices.py <<'EOF'
from hnlaunch.jax_cluster import HnlaunchCluster
print(HnlaunchCluster.get_local_process_id())
EOF
devices() { jax_hn -q "$@" devices.py && sort "$OUT" | xargs; }
is 'devices: one for each rank' "$(devices --local 2) $(devices --local 2 -x CUDA_VISIBLE_DEVICES=2,3)" '0 1 0 1'
is 'devices: all for a rank that is alone, or sees its own' \
    "$(devices --local 1) $(devices --local 2 -x CUDA_VISIBLE_DEVICES=3)" 'None None None'
jax_words jax_gather.py hnlaunch.jax_cluster
run "${words[@]}"
ok 'by hand the class is silent' grep -q 'coordinator_address should be defined' "$ERR"
jax_hn --local 2 -x HNLAUNCH_LIBRARY="$TMP/nowhere.so" jax_gather.py hnlaunch.jax_cluster
has 'without the library the cause is told' "$ERR" "$TMP/nowhere.so: cannot open shared object file"
done_testing
