#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --container charliecloud:IMAGE on several nodes: agents that one step of a real Slurm has started, nodes that dial in,
# logins by ssh; and a program of MPICH inside. What ch-run says of an image reaches the user.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/container.sh"
[[ -x /bin/busybox ]] || skip_all 'busybox-static is not installed'
# shellcheck disable=SC2034
AGENT=${LAB_HNLAUNCH%/*}/hnlaunch-agent
kit=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/mpi
programs=("$PLAIN/examples/hello")
if bash "$ROOT/tests/lib/mpi_kit.sh" "$kit" mpich5 2>kit.log && "$kit/mpich5/bin/mpicc" -o mpi_hello "$ROOT/tests/lib/mpi_hello.c" 2>>kit.log; then
    programs+=(mpi_hello)
fi
export USER=${USER:-user} # ch-run asks for it
make_image image "${programs[@]}" || skip_all 'the image cannot be made'
echo inside >image/etc/where
ch-run image -- true 2>ch-run.log || skip_all "ch-run does not run here: $(tail -n 1 ch-run.log)"
in=(--container charliecloud:image --label none)
where='echo "$RANK on $(hostname) $(cat /etc/where)"'
want='0 on node001 inside,1 on node001 inside,2 on node002 inside,3 on node002 inside'
met='0 4 6 2,1 4 6 2,2 4 6 2,3 4 6 2'
ranks() { sort "$OUT" | paste -sd,; }
lab_up 2 2

# --- ssh ---
lab_hn -H "$TMP/hosts.txt" "${in[@]}" sh -c "$where"
is 'ssh: two ranks on each node are inside' "$(ranks)" "$want"
lab_hn -H "$TMP/hosts.txt" "${in[@]}" --role a --nodes 1 -n 1 -x WORD=one sh -c "echo \$HN_ROLE \$WORD; $where" : --role b --nodes 1 -n 1 -x WORD=two sh -c "echo \$HN_ROLE \$WORD; $where" : \
    --role c --on b sh -c 'echo $HN_ROLE ${WORD-none}'
exits 'ssh: roles run inside' 0
is 'ssh: each with its variables' "$(ranks)" '0 on node001 inside,0 on node002 inside,a one,b two,c none'
if [[ -x mpi_hello ]]; then
    exits 'ssh: a program of MPICH' 0 lab_hn -H "$TMP/hosts.txt" "${in[@]}" mpi_hello
    is 'ssh: its four ranks meet' "$(ranks)" "$met"
else
    skip 'a program of MPICH' "no MPICH: $(tail -n 1 kit.log)"
fi
lab_nothing_left 'ssh: nothing is left'

# --- nodes dial in, without sshd ---
for node in node001 node002; do lab sshd $node stop; done
export HNLAUNCH_DIAL_SECRET=$RANDOM-of-this-test-$RANDOM
PLACE=$(lab hosts etc | awk '/node001/ { print $1 }'):29412
dial() { # ARG...: both nodes; their exit codes become CODES, node 0's output that of the test
    local r code pids=()
    CODES=
    for r in 0 1; do
        lab exec "node00$((r + 1))" env --default-signal XDG_CACHE_HOME="$TMP/cache" "$LAB_HNLAUNCH" --dial-in "$PLACE" --nodes 2 --node-rank "$r" \
            -o net.dial_timeout=60s --ppn 2 "$@" >"out.$r" 2>"err.$r" &
        pids+=($!)
    done
    for r in 0 1; do
        code=0
        wait "${pids[r]}" || code=$?
        CODES+="$code "
    done
    cp out.0 "$OUT" && cp err.0 "$ERR"
}
dial "${in[@]}" sh -c "$where"
is '--dial-in: both nodes end well' "$CODES" '0 0 '
is '--dial-in: two ranks on each node are inside' "$(ranks)" "$want"
dial "${in[@]}" sh -c 'exit $((RANK == 3 ? 7 : 0))'
is '--dial-in: the exit code of a rank arrives' "$CODES" '7 7 '
if [[ -x mpi_hello ]]; then
    dial "${in[@]}" mpi_hello
    is '--dial-in: a program of MPICH' "$CODES$(ranks)" "0 0 $met"
fi
dial "${in[@]}" -o run.container_arg=--no-such-option true
is '--dial-in: an argument that ch-run does not know' "$CODES" '69 69 '
has '--dial-in: it is told with the words of ch-run' "$ERR" 'no-such-option'
lab_nothing_left '--dial-in: nothing is left'

# --- a step of Slurm ---
skip_all() { skip 'a step of Slurm' "$1" && done_testing; } # the tests above count
. "$ROOT/tests/lib/slurm.sh" || exit 1
slurm_up 4
job=(salloc -N2 "$LAB_HNLAUNCH" --start-with srun --ppn 2 "${in[@]}")
lab_run "${job[@]}" sh -c "$where"
is 'srun: two ranks on each node are inside' "$(ranks)" "$want"
exits 'srun: four ranks meet' 0 lab_run "${job[@]}" hello
if [[ -x mpi_hello ]]; then
    exits 'srun: a program of MPICH' 0 lab_run "${job[@]}" mpi_hello
    is 'srun: its four ranks meet' "$(ranks)" "$met"
fi
exits 'srun: an argument that ch-run does not know' 69 lab_run "${job[@]}" -o run.container_arg=--no-such-option true
has 'srun: it is told with the words of ch-run' "$ERR" 'no-such-option'
lab_run "${job[@]}" --container charliecloud:none true
has 'srun: an image that is not there' "$ERR" 'No such file or directory'

# The ranks ignore TERM, and each has a process that has left its session.
stubborn="trap '' TERM; setsid sh -c \"trap '' TERM; while :; do sleep 1; done\" & echo up; while :; do sleep 1; done"
begin() {
    : >"$OUT"
    : >"$OUT"
    : >"$ERR"
    lab run env --default-signal "${job[@]}" --grace 1s sh -c "$stubborn" >"$OUT" 2>"$ERR" &
    PID=$!
    wait_for lines_are "$OUT" 4 || fail 'four stubborn ranks run'
}
begin
ok 'scancel' lab run scancel "$(slurm_job)"
finish
slurm_nothing_left 'srun: scancel leaves nothing'
begin
ok 'an agent is killed' kill -KILL "$(lab ps node002 | awk '/hnlaunch-agent/ { print $2 }' | tail -n 1)"
exits 'srun: 125' 125 finish
slurm_nothing_left 'srun: nothing is left'
done_testing
