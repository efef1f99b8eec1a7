#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch inside a job of a real Grid Engine: qrsh -inherit starts the agents as tasks of the job, without any sshd;
# qdel leaves nothing behind.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/sge.sh" || exit 1

lab_up 4
sge_up
for node in node001 node002 node003 node004; do
    lab sshd $node stop
done

lab_run "$LAB_HNLAUNCH" --start-with sge -w node001 true
exits 'outside a job: 69' 69
has 'it is told' "$ERR" 'error[HN343]: cannot use --start-with sge: this is no job of Grid Engine (PE_HOSTFILE is not set)'

cat >job.sh <<END
#!/bin/bash
export XDG_CACHE_HOME=$XDG_CACHE_HOME
export PATH=\$SGE_ROOT/bin/\$ARC:\$PATH
exec $LAB_HNLAUNCH --ppn 2 --label none "\$@"
END
lab_run qsub -sync y -pe hn 6 -cwd -o job.out -e job.err job.sh hostname
exits 'qsub: a job of six slots' 0
is 'two ranks on each of three nodes, without sshd' "$(sort job.out | uniq -c | awk '{ print $1 }' | xargs)" '2 2 2'

rm job.out
lab_run qsub -sync y -pe hn 4 -cwd -o job.out -e job.err job.sh sh -c \
    '[ $RANK != 3 ] || { head -c 3000000 /dev/urandom | tee sent; exit 7; }'
exits "a rank's exit code is that of the job" 7
same 'three megabytes arrive as they are' job.out sent

: >job.out
lab_run qsub -pe hn 6 -cwd -o job.out -e job.err job.sh sh -c 'echo runs; sleep 600'
six() { [[ $(grep -c runs job.out) == 6 ]]; }
wait_for six || fail 'six ranks run'
lab run qdel '*' >/dev/null
sge_nothing_left 'qdel leaves nothing on the nodes'

done_testing
