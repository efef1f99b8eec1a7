#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Head and agents end as they should when freed memory has other bytes at once. The sanitizers do not see what libuv reads, which is not built with
# them: a timer that is freed before libuv has called back for it, for instance.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

HNLAUNCH=$PLAIN/hnlaunch
export MALLOC_PERTURB_=165 # of glibc
nodes=(-w 'localhost:2,127.0.0.1:2' --gpus-per-rank 0 --timeout 60s)

ended() { # NAME CODE ARG...
    local name=$1 code=$2

    shift 2
    hn "$@"
    exits "$name" "$code"
    lacks "$name: nothing breaks" "$ERR" HN908
}
ended 'a job on this machine' 0 --local 2 true
ended 'a job on two nodes' 0 "${nodes[@]}" true
ended 'a rank that fails' 3 "${nodes[@]}" sh -c 'exit 3'
ended 'a program that is missing' 127 "${nodes[@]}" no-such-program
ended 'a restart' 4 "${nodes[@]}" --max-restarts 1 sh -c 'exit 4'
ended 'a time limit' 124 "${nodes[@]}" --timeout 1s sleep 60
ended 'files and events' 73 "${nodes[@]}" --json=events --pull "$PWD/none*" --log-dir records true
ended 'roles' 0 "${nodes[@]}" --main b --role a --nodes 1 --ready line:up sh -c 'echo up; sleep 60' : --role b --after a sh -c 'echo {a.port:p}'
ended 'a role that is never ready' 124 "${nodes[@]}" --role a --nodes 1 --ready file:none --ready-timeout 1s sleep 60 : --role b --after a true
ended 'a role that cannot be started' 127 "${nodes[@]}" --role a --nodes 1 --drain 9s no-such-program : --role b --after a true
done_testing
