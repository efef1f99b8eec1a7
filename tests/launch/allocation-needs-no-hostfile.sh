#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Inside an allocation no hosts are named: the variables and files of the resource manager are read. What is wrong
# with them is shown where it stands. Hosts that are named win.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

inside() { # VARIABLE=VALUE... -- ARG...: hnlaunch with these variables
    local env=()
    while [[ $1 != -- ]]; do
        env+=("$1")
        shift
    done
    run env "${env[@]}" "$HNLAUNCH" "${@:2}"
}

# Ranks by host, as the plan has them: "n1=0-1 n2=2".
ranks_of_hosts() { awk '$4 ~ /^[0-9]+\/[0-9]+$/ { printf "%s%s=%s", sep, $2, $3; sep = " " }' "$OUT"; }

slurm=(SLURM_JOB_ID=4711 'SLURM_JOB_NODELIST=gpu[01-02],big1' 'SLURM_TASKS_PER_NODE=2(x2),3')
exits 'a plan inside Slurm: 0' 0 inside "${slurm[@]}" -- plan true
is 'nodes and tasks are those of the job, in its order' "$(ranks_of_hosts)" 'gpu01=0-1 gpu02=2-3 big1=4-6'
has 'the plan names job and variable' "$OUT" 'hosts     Slurm job 4711, slots from SLURM_TASKS_PER_NODE'
inside "${slurm[@]}" -- plan --ppn 4 true
is '--ppn wins over tasks' "$(ranks_of_hosts)" 'gpu01=0-3 gpu02=4-7 big1=8-11'
has 'the plan says so' "$OUT" 'slots from --ppn'
inside "${slurm[@]}" -- plan --json true
ok 'the plan as JSON names both' python3 -c '
import json, sys
j = json.load(open(sys.argv[1]))
assert j["hosts_from"] == "Slurm job 4711" and j["slots_from"] == "SLURM_TASKS_PER_NODE", j
assert j["nodes"][0]["file"] == "$SLURM_JOB_NODELIST"' "$OUT"
inside SLURM_JOB_ID=1 "SLURM_JOB_NODELIST=$(hostname)" SLURM_TASKS_PER_NODE=2 -- --label none sh -c 'echo $RANK'
exits 'a job on this machine alone runs without ssh' 0
is 'with its tasks as ranks' "$(sort "$OUT" | xargs)" '0 1'
has 'the first line names the job' "$ERR" '1 node, 2 ranks, Slurm job 1'

printf 'n2\nn1\nn2\n' >nodefile
pbs=(PBS_ENVIRONMENT=PBS_BATCH PBS_JOBID=9.server "PBS_NODEFILE=$PWD/nodefile")
inside "${pbs[@]}" -- plan true
is 'PBS repeats a node for each slot' "$(ranks_of_hosts)" 'n2=0-1 n1=2'
has 'the plan names the file' "$OUT" 'hosts     PBS job 9.server, slots from PBS_NODEFILE'

# --- what starts the agents: the plan says it, no program is started
lacks 'without its program in PATH nothing of the manager starts agents' "$OUT" --start-with
mkdir tools
ln -s /bin/false tools/srun
ln -s /bin/false tools/qrsh
printf 'n1 2 all.q@n1 UNDEFINED\nn2 1 all.q@n2 UNDEFINED\n' >pe_hosts
sge=(SGE_ROOT=/ ARC=x JOB_ID=5 "PE_HOSTFILE=$PWD/pe_hosts")
with_tools=("PATH=$PWD/tools:$PATH")
starters() { awk '$1 == "agents" { print $3 }' "$OUT"; }
inside "${slurm[@]}" "${with_tools[@]}" -- plan true
is 'Slurm starts them in its jobs' "$(starters)" srun
inside "${sge[@]}" "${with_tools[@]}" -- plan true
is 'Grid Engine starts them in its jobs' "$(starters)" sge
for ssh in '--start-with ssh' '--user me' '-p 2222' '--identity key' '--jump gate' '--ssh-config none' '--ssh-command ssh' '--tree 2' \
    '-w gpu01,gpu02'; do
    # shellcheck disable=SC2086
    inside "${slurm[@]}" "${with_tools[@]}" -- plan $ssh true
    is "with $ssh they start over ssh" "$(starters)" ''
done
inside SLURM_HET_SIZE=2 "${slurm[@]}" "${with_tools[@]}" -- plan true
is 'as in a heterogeneous job' "$(starters)" ''
inside "${slurm[@]}" "${with_tools[@]}" HNLAUNCH_RUN_START_WITH=ssh -- plan true
is 'the configuration wins' "$(starters)" ''

# --- options and configuration
inside "${slurm[@]}" -- plan -w 'gpu[01-03],big1,10.0.0.1' true
is 'hosts that are named win' "$(ranks_of_hosts)" 'gpu01=0 gpu02=1 gpu03=2 big1=3 10.0.0.1=4'
has 'those outside are told' "$ERR" 'warning[HN154]: not in the Slurm job 4711: gpu03'
inside SLURM_JOB_ID=2 'SLURM_JOB_NODELIST=a1.x,b1' -- plan -w a1,b1.y,A1.x,c1,a1.y true
has 'a name may lack its domain' "$ERR" 'not in the Slurm job 2: c1,a1.y'
inside "${slurm[@]}" -- plan -w 'gpu[01-03]' --scheduler none true
lacks 'but not with --scheduler none' "$ERR" HN154
exits '--scheduler none reads no allocation: 64' 64 inside "${slurm[@]}" -- plan --scheduler none true
has 'so that hosts are missing' "$ERR" 'error[HN708]: no hosts given'
inside "${slurm[@]}" -- plan --include gpu02 true
is '--include chooses among the nodes' "$(ranks_of_hosts)" 'gpu02=0-1'
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nhosts = elsewhere\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
inside "${slurm[@]}" -- plan true
is 'hosts of the configuration win' "$(ranks_of_hosts)" 'elsewhere=0'
inside "${slurm[@]}" -- plan --scheduler slurm true
is 'but not over --scheduler on the command line' "$(ranks_of_hosts)" 'gpu01=0-1 gpu02=2-3 big1=4-6'
inside "${slurm[@]}" -- plan --scheduler none true
is '--scheduler none leaves them' "$(ranks_of_hosts)" 'elsewhere=0'
rm "$XDG_CONFIG_HOME/hnlaunch/config.ini"
printf '[run]\nfrom = slurm\n' >job
exits 'a job file may name the manager' 64 inside PATH="$PATH" -- plan --job job true
has 'which must be there' "$ERR" 'error[HN153]: --scheduler slurm, but this is no Slurm allocation: SLURM_JOB_ID is not set'

hn help all
has 'the help has all managers' "$OUT" '--scheduler auto|none|slurm|pbs|lsf|sge|flux|mpi-operator|sagemaker|ray'

# --- wrong variables
told() { # NAME TEXT
    exits "$1: 65" 65
    has "$1 is told" "$ERR" "$2"
}
inside SLURM_JOB_ID=1 'SLURM_JOB_NODELIST=n[1-2],m[7-3]' -- true
told 'a wrong list of nodes' 'error[HN113]: the range runs backwards'
has 'at its place' "$ERR" '--> $SLURM_JOB_NODELIST, column 10'
has 'with the text' "$ERR" '| n[1-2],m[7-3]'
has 'and marks' "$ERR" '|          ^^^'
inside SLURM_JOB_ID=1 'SLURM_JOB_NODELIST=n[1-2]' 'SLURM_TASKS_PER_NODE=2(y2)' -- true
told 'a wrong list of counts' 'error[HN151]: counts are written 2, 2(x3) or 2(x3),1'
has 'at its place, too' "$ERR" '--> $SLURM_TASKS_PER_NODE, column 2'
inside SLURM_JOB_ID=1 'SLURM_JOB_NODELIST=n[1-3]' 'SLURM_TASKS_PER_NODE=2(x2)' -- true
told 'counts that contradict each other' 'error[HN152]: 2 counts for the 3 nodes of SLURM_JOB_NODELIST'
inside SLURM_JOB_ID=1 -- true
told 'half a set of variables' 'error[HN150]: SLURM_JOB_NODELIST is not set or empty, but SLURM_JOB_ID is set'
inside PBS_ENVIRONMENT=x PBS_JOBID=1 PBS_NODEFILE=/nowhere/nodes -- true
told 'a file that is not there' 'error[HN150]: cannot read the nodes of the PBS allocation from /nowhere/nodes: No such'
inside SGE_ROOT=/ ARC=x JOB_ID=1 "PE_HOSTFILE=$PWD/nodefile" -- true
told 'a file with a wrong line' 'error[HN151]: expected a number'
has 'at its line' "$ERR" "--> $PWD/nodefile:1:3"
printf '#!/bin/sh\necho "flux-kvs: ERROR: broker is gone" >&2\nexit 1\n' >flux
chmod +x flux
exits 'a command of the manager that fails: 69' 69 inside FLUX_URI=local:///nowhere PATH="$PWD:$PATH" -- true
has 'what it said is told' "$ERR" \
    'error[HN157]: cannot read the nodes of the Flux allocation: flux exited with code 1: flux-kvs: ERROR: broker is gone'
exits 'the second host of SageMaker: 64' 64 inside SM_HOSTS='["a","b"]' SM_CURRENT_HOST=b -- true
has 'it is told, too' "$ERR" 'error[HN156]: SageMaker starts hnlaunch on every host, and this is b'
inside SLURM_JOB_ID=$'1\e[31m' 'SLURM_JOB_NODELIST=n1' -- plan true
lacks 'a job number cannot paint the terminal' "$OUT" $'\e'
inside "${slurm[@]}" SLURM_SUBMIT_HOST=another-login -- true
told 'an allocation of another machine' 'error[HN155]: the variables SLURM_* were set on another machine'
exits 'which --scheduler slurm takes: 0' 0 inside "${slurm[@]}" SLURM_SUBMIT_HOST=another-login -- plan --scheduler slurm true
inside "${slurm[@]}" SLURM_JOB_END_TIME=1000000000 -- true
told 'an allocation that has ended' 'error[HN155]: the time of Slurm job 4711 ended'
exits 'a launch by each task of a step: 64' 64 inside "${slurm[@]}" SLURM_PROCID=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 -- true
has 'it is told' "$ERR" 'error[HN156]: srun starts 4 copies of hnlaunch'
inside "${slurm[@]}" SLURM_PROCID=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=99999999999999 -- true
has 'as the variable says' "$ERR" 'error[HN156]: srun starts 99999999999999 copies of hnlaunch'

# --- a second launch
export SLURM_JOB_ID=$BASHPID "SLURM_JOB_NODELIST=$(hostname)"
mkfifo go
start sh -c 'echo up; read -r _ <go'
ok 'a launch runs' wait_for grep -q up "$OUT"
second() { run "$HNLAUNCH" "$@"; }
first=$PID OUT=$TMP/second ERR=$TMP/second.err
exits 'a second one in the same allocation runs, too' 0 second true
has 'with a warning' "$ERR" "warning[HN158]: another hnlaunch runs on the nodes of Slurm job $SLURM_JOB_ID"
second --nodes 1 true
lacks 'but none when it chooses nodes' "$ERR" HN158
PID=$first OUT=$TMP/out ERR=$TMP/err
echo >go
exits 'the first one ends well' 0 finish
lacks 'without a warning' "$ERR" HN158
hn true
lacks 'the end of a launch ends its claim' "$ERR" HN158
done_testing
