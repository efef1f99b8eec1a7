#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --scheduler ray and --start-with ray where there is no Ray, no module of hnlaunch, or no cluster: one line says what is missing.
# clients/frameworks/ray-cluster-runs-jobs.sh has a real cluster.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# A Python without packages, that reads all its modules from files, as those before 3.11 do.
mkdir bin
printf '#!/bin/sh\nexec %q -S -X frozen_modules=off "$@"\n' "$(type -P python3)" >bin/python3
chmod +x bin/python3
export PATH=$PWD/bin:$PATH PYTHONPATH=$ROOT/packaging/python
unset "${!RAY_@}"

missing() { # NAME TEXT
    exits "$1: 69" 69
    has "$1 is told" "$ERR" "$2"
    lacks 'without a traceback' "$ERR" Traceback
}
hn --scheduler ray true
missing 'Ray that is not installed' "error[HN157]: cannot read the nodes of the Ray cluster: python3 exited with code 69: cannot import ray: No module named 'ray'"
hn --start-with ray -w n1,n2 true
missing 'Ray that is not installed where agents are started' 'n[1-2]           ray ended with exit code 69'
has 'with the reason' "$ERR" "cannot import ray: No module named 'ray'; use the cluster's Python"
PYTHONPATH='' hn --scheduler ray true
exits 'a Python without the module hnlaunch: 69' 69
has 'is told, too' "$ERR" "finding module specification for 'hnlaunch._ray'"
mkdir empty
ln -s "$(type -P true)" empty/true
run env PATH="$PWD/empty" "$HNLAUNCH" --scheduler none --start-with ray -w n1 true
exits 'no python3 in PATH: 127' 127
has 'is told by --start-with' "$ERR" 'error[HN342]: cannot start `python3`, which starts the agents: not found in PATH'

# --- modules in the current folder, which may be of others, are not taken
mkdir -p repository/hnlaunch repository/ray
echo 'open("/proc/self/fd/2", "w").write("code of others\n")' | tee repository/ray/__init__.py repository/runpy.py repository/argparse.py \
    repository/hnlaunch/_ray.py >repository/hnlaunch/__init__.py
cd repository || exit 1
hn --scheduler ray true
missing 'a repository with modules' "cannot import ray: No module named 'ray'"
lacks 'its code does not run' "$ERR" 'code of others'
hn --scheduler none --start-with ray -w n1 true
missing 'the same where agents are started' "cannot import ray: No module named 'ray'"
lacks 'its code does not run, either' "$ERR" 'code of others'
cd ..

# The address is tried before Ray, which would try for a minute. The module "ray" is empty here.
mkdir -p modules/ray
: >modules/ray/__init__.py
export PYTHONPATH=$PYTHONPATH:$PWD/modules
RAY_ADDRESS=127.0.0.1:9 hn --scheduler ray true
missing 'no cluster at RAY_ADDRESS' 'no Ray cluster at 127.0.0.1:9: Connection refused; start it, or change RAY_ADDRESS'
RAY_ADDRESS=nonsense hn --scheduler ray true
missing 'an address that is none' 'RAY_ADDRESS is nonsense: it must be HOST:PORT of the cluster'
RAY_ADDRESS=ray://127.0.0.1:10001 hn --scheduler ray true
missing "the address of Ray's client" 'RAY_ADDRESS is ray://127.0.0.1:10001: it must be HOST:PORT'
RAY_ADDRESS=local hn --scheduler ray true
missing 'an order for a new cluster' 'RAY_ADDRESS is local, which starts a cluster of its own'

# The output is read as strictly as any other.
printf '#!/bin/sh\necho no cluster here\n' >bin/python3
hn --scheduler ray true
exits 'another text than the module prints: 65' 65
has 'is told' "$ERR" 'error[HN151]: cannot read the nodes of the Ray cluster: they are no JSON text'
hn plan --scheduler auto true
exits '--scheduler auto does not look for Ray: 64' 64
has 'so that hosts are missing' "$ERR" 'error[HN708]: no hosts given'
done_testing
