#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Inside a job of a real Slurm: agents and ranks live in steps of the job, without any sshd, whatever
# options of srun the job's variables hold; the user's own srun is not held up; Slurm's words are told.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/slurm.sh" || exit 1

via=("$LAB_HNLAUNCH" --label none)
lab_up 4
SLURM_GPUS=2
slurm_up
for node in node001 node002 node003 node004; do
    lab sshd $node stop
done

exits 'salloc: the exit code of the rank arrives' 7 lab_run salloc -N4 "${via[@]}" --ppn 2 sh -c 'hostname; exit $((RANK == 5 ? 7 : 0))'
lab_run salloc -N4 "${via[@]}" --ppn 2 hostname
is 'two ranks on each node, without sshd' "$(grep node0 "$OUT" | sort | uniq -c | xargs)" \
    '2 node001 2 node002 2 node003 2 node004'

# Roles share the nodes of an allocation.
where='echo "$HN_ROLE.$RANK/$WORLD_SIZE on $(hostname)"'
lab_run salloc -N4 --ntasks-per-node=2 --gpus-per-node=2 "${via[@]}" --role t --nodes 1 -n 2 sh -c "$where" : --role i --nodes rest --ppn 1 --gpus-per-rank 2 sh -c "$where" : \
    --role r --on t sh -c "$where"
exits 'salloc: a job of roles' 0
is 'each role has its nodes' "$(grep on "$OUT" | sort | paste -sd,)" \
    'i.0/3 on node002,i.1/3 on node003,i.2/3 on node004,r.0/1 on node001,t.0/2 on node001,t.1/2 on node001'

# What a job asks for is not asked once more for each step, and Slurm neither labels nor holds back what agents say.
cat >job.sh <<END
#!/bin/bash
#SBATCH -N4 --ntasks-per-node=2 --cpus-per-task=2 --gpus-per-node=2 --mem-per-cpu=50 -o job.out
export SLURM_LABELIO=1 SLURM_STDOUTMODE=nowhere SLURM_GPUS=8
${via[*]@Q} --ppn 1 sh -c 'echo "\$RANK \$CUDA_VISIBLE_DEVICES \${SLURM_PROCID-none}"; head -c 3000000 /dev/urandom >sent.\$RANK; md5sum <sent.\$RANK'
echo "exit code \$?"
END
lab_run sbatch --wait job.sh
has 'sbatch: a job with its options' job.out 'exit code 0'
for rank in 0 1 2 3; do
    has "rank $rank has the GPUs of its node and no number of Slurm" job.out "$rank 0,1 none"
done

# Agents have all GPUs of the job, however it asked for them. Before 23.11 a step cannot tell with --gpus.
for asked in --gpus-per-task=1 --gpus-per-node=2 --gres=gpu:2 --gpus=8; do
    [[ $asked != --gpus=8 || $(srun --version) != *' 22.'* ]] || continue
    lab_run salloc -N4 --ntasks-per-node=2 $asked "${via[@]}" --ppn 1 sh -c 'echo "GPUs $CUDA_VISIBLE_DEVICES"'
    is "salloc $asked: each node has all GPUs of the job" "$(sort "$OUT" | uniq -c | xargs)" '4 GPUs 0,1'
done
lab_run salloc -N4 --ntasks-per-node=2 --gpus-per-task=1 "${via[@]}" --start-with srun -w node001 --ppn 1 sh -c 'echo "$(hostname) $CUDA_VISIBLE_DEVICES"'
is 'on one of the nodes, too' "$(cat "$OUT")" 'node001 0,1'

lab_run salloc -N4 "${via[@]}" --ppn 1 --stdin all sh -c 'md5sum' <"$LAB_HNLAUNCH"
is 'a file arrives on all ranks as it is' "$(sort -u "$OUT" | grep -c -- "$(md5sum <"$LAB_HNLAUNCH")")" 1

# An own step runs while the agents' steps do.
lab_run salloc -N4 bash -c '"$@" & until test -e ran; do sleep 0.1; done; srun --nodes=4 hostname; : >go; wait' bash "${via[@]}" --ppn 1 sh -c ': >ran; until test -e go; do sleep 0.1; done'
is "the user's own step is not held up" "$(grep -c node0 "$OUT")" 4
slurm_nothing_left 'nothing is left'

# The agent stays in the cache, which the nodes of this lab share, and is copied to nodes that do not have it.
srun=$(type -P srun)
mkdir "$TMP/bin"
printf '#!/bin/sh\necho "$*" >>%s/steps\nexec %s "$@"\n' "$TMP" "$srun" >"$TMP/bin/srun"
chmod +x "$TMP/bin/srun"
count_steps() {
    : >"$TMP/steps"
    lab_run env PATH="$TMP/bin:$PATH" salloc -N4 "${via[@]}" --ppn 1 hostname
}
count_steps
is 'nodes with the agent get no copy' "$(grep -c -- --bcast "$TMP/steps")" 0
lab exec node003 mount -t tmpfs lab "$TMP/cache"
count_steps
is 'a node that lacks it gets one' "$(grep -c -- '--nodelist=node003 .*--bcast' "$TMP/steps")" 1
is 'and has its rank' "$(sort "$OUT" | xargs)" 'node001 node002 node003 node004'
slurm_nothing_left 'nothing is left'
count_steps
is 'but once' "$(grep -c -- --bcast "$TMP/steps")" 0
is 'with all ranks' "$(sort "$OUT" | xargs)" 'node001 node002 node003 node004'
lab exec node003 sh -c ': >"$(ls "$1"/hnlaunch/agent-*)"' sh "$TMP/cache"
count_steps
is 'a damaged one is replaced' "$(sort "$OUT" | xargs) $(grep -c -- --bcast "$TMP/steps")" 'node001 node002 node003 node004 1'
lab exec node003 umount "$TMP/cache"
agent=$(ls "$TMP"/cache/hnlaunch/agent-*)
touch -d '1 hour ago' "${agent%/*}/.new-${agent##*/}" # of a node that was killed while it made the file
rm "$agent"
count_steps
ok 'and so is what a killed node has left' wait_for test -x "$agent"
ok 'which is gone' test ! -e "${agent%/*}/.new-${agent##*/}"

# Slurm's own words.
lab_run salloc -N2 -w node001,node002 "${via[@]}" --start-with srun -w 'node[001-004]' hostname
exits 'nodes outside of the allocation: 69' 69
has 'srun says why' "$ERR" 'srun: error:'
lab_run salloc -N2 -w node001,node002 "$LAB_HNLAUNCH" --start-with srun -w node001,node002 sh -c 'kill -9 $$'
exits 'a rank that is killed: its code' 137
slurm_nothing_left 'nothing is left at the end'

# srun itself. It is two processes, of which the younger one ends the step when the older one dies.
cat >rank.sh <<'END'
trap 'exit 3' TERM
echo up
until test -e "$1"; do sleep 0.05; done
END
begin() { # FILE: starts a job whose ranks end when the file is there
    : >"$OUT"
    : >"$OUT"
    : >"$ERR"
    lab run salloc -N4 "${via[@]}" --ppn 1 sh "$PWD/rank.sh" "$PWD/$1" >"$OUT" 2>"$ERR" &
    PID=$!
    wait_for lines_are "$OUT" 4 || fail "four ranks run: $1"
}
# The older process is the one whose parent is hnlaunch.
srun_pids() { lab ps head | awk '/ srun .*--job-name=hnlaunch/ { parent[$2] = $3 } END { for (p in parent) print parent[p] in parent, p }' | sort -n | cut -d' ' -f2; }
srun_ended() { [[ -z $(srun_pids) ]]; }
begin killed
# The younger one first: it would end the step before it is killed.
# shellcheck disable=SC2046
ok 'srun is killed as a whole' kill -KILL $(srun_pids | tac)
ok 'it is gone' wait_for srun_ended
: >killed
exits 'the ranks go on' 0 finish
begin never
ok 'the older process is killed' kill -KILL "$(srun_pids | head -n 1)"
exits 'Slurm ends the step: 125' 125 finish
has 'srun is named' "$ERR" 'after srun was killed by signal 9'
begin never
ok 'srun gets TERM' kill -TERM "$(srun_pids | head -n 1)"
exits 'Slurm cancels the step: 125' 125 finish
has 'it is named' "$ERR" 'Slurm cancelled its step'
has 'with the words of Slurm' "$ERR" 'CANCELLED AT'
lacks 'no node is to blame' "$ERR" '--exclude'
slurm_nothing_left 'nothing is left of them'

: >"$OUT"
: >"$OUT"
: >"$ERR"
lab run salloc -N3 -w 'node[001-003]' --no-kill "${via[@]}" --node-timeout 3s sh -c 'echo up; exec sleep 1000' >"$OUT" 2>"$ERR" &
PID=$!
ok 'three ranks run' wait_for lines_are "$OUT" 3
lab crash node003
exits 'a node crashes: 125' 125 finish
has 'it is named' "$ERR" 'lost node003: '
others_are_empty() { ! lab exec node001 pgrep -f 'sleep 1000|--call' && ! lab exec node002 pgrep -f 'sleep 1000|--call'; }
ok 'nothing is left on the others' wait_for others_are_empty

done_testing
