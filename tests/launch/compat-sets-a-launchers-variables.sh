#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --compat gives ranks the variables of one other launcher: those that the manual lists, and no others.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# MPICH's are looked for only where they are asked for: ranks may have them for MPICH itself.
pattern='^(OMPI|SLURM|SLURMD|HOROVOD|JAX)_'
names() { sed -n 's/^\([A-Za-z_]*\)=.*/\1/p' "$1" | grep -E "$pattern" | sort -u; }
# The paragraph of the manual that begins with *FAMILY*.
listed() {
    awk -v begin="*$1*" '/^# / { on = /^# VARIABLES OF OTHER/ } on && $0 == begin { inside = 1; next } /^$/ { inside = 0 } inside' \
        "$ROOT/docs/hnlaunch-variables.7.scd" | grep -oE '\b[A-Z]+_[A-Za-z_]+' | grep -E "$pattern" | sort -u
}

export SLURM_PROCID=77 OMPI_COMM_WORLD_RANK=77
hn -q --local 2 --label none env
is 'without --compat there are none, whatever this shell has' "$(names "$OUT")" ''
unset SLURM_PROCID OMPI_COMM_WORLD_RANK
for family in ompi slurm horovod mpich; do
    [[ $family != mpich ]] || pattern='^PMI_(RANK|SIZE)$|^MPI_LOCAL'
    hn plan -w 'gpu[01-02]:3' --ranks 4 --compat "$family"
    names "$OUT" >planned
    if [[ $family == slurm ]]; then
        echo SLURM_RESTART_COUNT >>planned # never in a plan
    fi
    is "$family: the manual lists the variables of a plan" "$(listed "$family" | xargs)" "$(sort planned | xargs)"
    hn -q --local 3 --label none --compat "$family" --gpus-per-rank 0 sh -c '[ "$RANK" != 1 ] || env'
    is "$family: a rank gets those of the plan" "$(names "$OUT" | xargs)" \
        "$(sort planned | grep -vE 'SLURM_(GPUS_ON_NODE|RESTART_COUNT)|JAX_LOCAL_DEVICE_IDS' | xargs)"
done

# The same numbers under all names.
show='echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_SIZE'
hn -q --local 3 --label none --compat ompi sh -c "$show"'
echo $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_SIZE'
is 'ompi: the numbers are those of RANK and its kin' "$(sort "$OUT" | uniq -c | awk '{ print $1 }' | xargs)" '2 2 2'
hn -q --local 3 --label none --compat slurm --max-restarts 1 \
    sh -c 'echo $SLURM_PROCID.$SLURM_NTASKS.$SLURM_JOB_ID.${SLURM_RESTART_COUNT-first}; [ "$HN_RESTART" = 1 ]'
is 'slurm: one job number for all ranks and attempts' "$(cut -d. -f3 "$OUT" | sort -u | wc -l)" 1
ok 'slurm: the number is one' grep -qE '^[0-2]\.3\.[0-9]+\.first$' "$OUT"
ok 'slurm: a restart is counted' grep -qE '^0\.3\.[0-9]+\.1$' "$OUT"
hn plan -H - --ranks 3 --compat slurm <<<'
gpu01 slots=2
login slots=1
gpu02 slots=2'
has 'slurm: ranks of each node' "$OUT" 'SLURM_TASKS_PER_NODE=2,1,2'
has 'slurm: names of the nodes' "$OUT" 'SLURM_JOB_NODELIST=gpu01,login,gpu02'
has 'slurm: the name of this one' "$OUT" 'SLURMD_NODENAME=gpu02'
has 'slurm: what only the node knows is explained' "$OUT" 'SLURM_CPUS_ON_NODE=(cores of gpu02)'

hn -q --local 1 --label none -x SLURM_PROCID=7 --compat slurm sh -c 'echo $SLURM_PROCID'
is '-x of a variable of the family changes nothing' "$(cat "$OUT")" 0
has 'and that is said' "$ERR" 'warning[HN127]: -x SLURM_PROCID=7 has no effect: hnlaunch sets SLURM_PROCID for every rank'
hn -q --local 1 --label none -x SLURM_PROCID=7 --compat ompi sh -c 'echo $SLURM_PROCID'
is '-x of another family is exported' "$(cat "$OUT")$(cat "$ERR")" 7
hn_exits 'an unknown launcher: 64' 64 --local 1 --compat lsf true
has 'the known ones are told' "$ERR" 'none|ompi|slurm|mpich|horovod|deepspeed'

# JAX's coordinator: one port for all ranks, and another one in each attempt and job.
show='echo "$HN_RESTART $JAX_COORDINATOR_ADDRESS $JAX_COORDINATOR_PORT $HN_PORT_JAX $OMPI_MCA_orte_hnp_uri"'
hn -q --local 3 --label none --compat ompi sh -c "$show"
is 'ompi: one port in all variables of all ranks' "$(sort -u "$OUT" | grep -cE '^0 127\.0\.0\.1:([0-9]+) \1 \1 0\.0;tcp://127\.0\.0\.1:\1$') of $(sort -u "$OUT" | wc -l)" '1 of 1'
hn -q --local 1 --label none --compat slurm --max-restarts 1 sh -c "$show; "'[ "$HN_RESTART" = 1 ]'
is 'slurm: a restart has a port of its own' "$(cut -d' ' -f3 "$OUT" | sort -u | wc -l)" 2
hn -q --local 1 --label none --compat ompi -x JAX_COORDINATOR_ADDRESS=mine:1 sh -c 'echo $JAX_COORDINATOR_ADDRESS'
is 'a variable of JAX that the user sets stays' "$(cat "$OUT")$(cat "$ERR")" mine:1

hn_exits 'a list of nodes above 128 KiB: 69' 69 plan -w 'rack[10000-17000]-of-the-cluster' --compat slurm
has 'it is told' "$ERR" 'error[HN246]: --compat slurm cannot pass the list of 7001 nodes'
hn_exits 'without a list in a variable it does not matter' 0 plan -w 'rack[10000-17000]-of-the-cluster' --compat horovod
hn plan -w 'rack[10000-17000]' --ranks 7000 --compat slurm
ok 'and fit' grep -qx 'SLURM_NODELIST=rack\[10000-17000\]' "$OUT"

# DeepSpeed: its launcher appends the local rank.
hn -q --local 2 --label none --compat deepspeed sh -c 'echo "$LOCAL_RANK: $*"' sh --lr 1
is 'deepspeed: the local rank is the last argument' "$(sort "$OUT")" $'0: --lr 1 --local_rank=0\n1: --lr 1 --local_rank=1'
hn -q --local 1 --label none --compat deepspeed --local-rank-arg=local-rank sh -c 'echo "$*"' sh
is 'deepspeed: --local-rank-arg names it' "$(cat "$OUT")" --local-rank=0

# DeepSpeed: the file of the home, and never one of the working directory.
export HOME=$TMP/home
mkdir "$HOME"
echo 'FROM_HERE=1' >.deepspeed_env
printf '# a comment\nFROM_HOME=two words\nBOTH=home\n' >"$HOME/.deepspeed_env"
echo 'BOTH=file' >vars
show='echo "${FROM_HOME-none}.${FROM_HERE-none}.${BOTH-none}"'
hn -q --local 1 --label none sh -c "$show"
is 'without --compat deepspeed no file is read' "$(cat "$OUT")" none.none.none
hn --local 1 --label none --compat deepspeed sh -c "$show"
is 'that of the home is' "$(cat "$OUT")" 'two words.none.home'
lacks 'without a word' "$ERR" deepspeed_env
hn -v --local 1 --label none --compat deepspeed --env-file vars -x FROM_HOME=x sh -c "$show"
is '--env-file and -x win' "$(cat "$OUT")" x.none.file
has '-v tells of the file' "$ERR" "note: --compat deepspeed exports the variables in $HOME/.deepspeed_env"
hn --local 1 --label none --export NONE --compat deepspeed sh -c "$show"
is '--export NONE does not matter' "$(cat "$OUT")" 'two words.none.home'
echo 'no equals sign' >"$HOME/.deepspeed_env"
hn_exits 'a wrong line: 65' 65 --local 1 --compat deepspeed true
has 'its place is told' "$ERR" "error[HN121]: $HOME/.deepspeed_env:1: not a NAME=VALUE line"
rm "$HOME/.deepspeed_env"
mkdir "$HOME/.deepspeed_env"
hn_exits 'a file that cannot be read: 66' 66 --local 1 --compat deepspeed true
has 'it is told' "$ERR" "error[HN120]: cannot read the DeepSpeed file $HOME/.deepspeed_env: "
rmdir "$HOME/.deepspeed_env"
hn -q --local 1 --label none --compat deepspeed sh -c "$show"
is 'without a file nothing is missing' "$RC.$(cat "$OUT")" 0.none.none.none

hn -q --local 1 --label none -o run.compat=ompi sh -c 'echo $OMPI_COMM_WORLD_SIZE'
is 'the key of the configuration is the same' "$(cat "$OUT")" 1
done_testing
