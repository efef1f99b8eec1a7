#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A rank finds its place in the world in HN_*, in torchrun's variables and in DeepSpeed's.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

var() { # RANK NAME: the value that the rank saw, or "(unset)"
    local line
    while IFS= read -r -d '' line; do
        if [[ $line == "$2="* ]]; then
            printf '%s' "${line#*=}"
            return
        fi
    done <"$TMP/dump/$1.env"
    printf '(unset)'
}

unset OMP_NUM_THREADS PYTHONUNBUFFERED
hn --local 4 "$WORKERS/worker_dump"
exits 'four ranks that succeed give 0' 0
is 'there are exactly four ranks' "$(cd "$TMP/dump" && echo ./*.env)" './0.env ./1.env ./2.env ./3.env'

for r in 0 1 2 3; do
    got=
    want=
    for pair in HN_RANK=$r HN_WORLD_SIZE=4 HN_LOCAL_RANK=$r HN_LOCAL_WORLD_SIZE=4 HN_NODE_RANK=0 \
        HN_NUM_NODES=1 HN_RESTART=0 RANK=$r WORLD_SIZE=4 LOCAL_RANK=$r LOCAL_WORLD_SIZE=4 \
        GROUP_RANK=0 GROUP_WORLD_SIZE=1 NODE_RANK=0 ROLE_RANK=$r ROLE_WORLD_SIZE=4 \
        TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_MAX_RESTARTS=0 TORCH_NCCL_ASYNC_ERROR_HANDLING=3 \
        CROSS_RANK=0 CROSS_SIZE=1 LOCAL_SIZE=4; do
        got+="${pair%%=*}=$(var $r "${pair%%=*}") "
        want+="$pair "
    done
    is "rank $r knows its numbers" "$got" "$want"
done

for name in HN_RUN_ID HN_STORE TORCHELASTIC_RUN_ID ROLE_NAME MASTER_ADDR MASTER_PORT \
    TORCHELASTIC_USE_AGENT_STORE OMP_NUM_THREADS; do
    ok "$name is set" test "$(var 2 "$name")" != '(unset)'
    is "$name is the same for all ranks" "$(var 0 "$name")$(var 1 "$name")" "$(var 3 "$name")$(var 2 "$name")"
done
is 'both names of the run agree' "$(var 1 TORCHELASTIC_RUN_ID)" "$(var 1 HN_RUN_ID)"
ok 'TORCHELASTIC_ERROR_FILE differs from rank to rank' \
    test "$(var 0 TORCHELASTIC_ERROR_FILE)" != "$(var 1 TORCHELASTIC_ERROR_FILE)"
ok 'MASTER_ADDR is numeric' grep -Eqx '[0-9.]+|[0-9a-f:]+' <(var 0 MASTER_ADDR; echo)
ok 'MASTER_PORT is a port' test "$(var 0 MASTER_PORT)" -gt 0 -a "$(var 0 MASTER_PORT)" -lt 65536
cores=$(nproc)
is 'OMP_NUM_THREADS shares the cores' "$(var 0 OMP_NUM_THREADS)" $((cores / 4 > 0 ? cores / 4 : 1))

is 'PYTHONUNBUFFERED is set' "$(var 0 PYTHONUNBUFFERED)" 1

first=$(var 0 HN_RUN_ID)
OMP_NUM_THREADS=7 RANK=99 WORLD_SIZE=1 hn --local 2 "$WORKERS/worker_dump"
is 'OMP_NUM_THREADS of the user is kept' "$(var 1 OMP_NUM_THREADS)" 7
is 'a stale RANK of the shell does not matter' "$(var 1 RANK) $(var 1 WORLD_SIZE)" '1 2'
ok 'every run has its own name' test "$first" != "$(var 0 HN_RUN_ID)"

hn --local 1 -x PYTHONUNBUFFERED= "$WORKERS/worker_dump"
is 'PYTHONUNBUFFERED of the user is kept' "$(var 0 PYTHONUNBUFFERED)" ''
hn --local 1 --unset PYTHONUNBUFFERED "$WORKERS/worker_dump"
is 'PYTHONUNBUFFERED can be unset' "$(var 0 PYTHONUNBUFFERED)" '(unset)'
hn plan --local 1 --ranks 0
has 'the plan shows PYTHONUNBUFFERED' "$OUT" PYTHONUNBUFFERED=1
hn plan --local 1 --ranks 0 --unset 'PYTHON*'
lacks 'the plan shows that it is unset' "$OUT" PYTHONUNBUFFERED=1

hn --local 1 sh -c 'test -S "$HN_STORE" && stat -c %a "$(dirname "$HN_STORE")"'
has 'HN_STORE is a socket in a folder of its own' "$OUT" 700

hn --local 1 --label none sh -c 'echo "$HN_STORE"'
# hnlaunch does not wait for ever for an agent to leave.
ok 'the folder of HN_STORE is gone afterwards' wait_for test ! -e "$(dirname "$(cat "$OUT")")"
done_testing
