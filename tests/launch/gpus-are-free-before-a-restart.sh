#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks start again when the GPUs of their node hold no memory of the ended attempt, as the driver's library tells. A
# host that does not free it within a minute is put out. ECC errors that the library counts in an attempt are evidence.
# Nodes are agents of this machine; driver and library are ours.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
[[ $(readlink /proc/self/ns/pid) == 'pid:[4026531836]' ]] || skip_all 'needs the first process namespace'
driver_of 1
nvml_library lib
export LD_LIBRARY_PATH=$PWD/lib FAKE_NVML_GPUS=1
cat >node <<'END'
#!/bin/sh
export FAKE_NVML="$1"
shift
exec $BELOW "$@"
END
chmod +x node

# A folder of its own for each job: the word of the fake driver by node, its processes, who asked.
new_job() { # NAME
    mkdir "$1"
    cd "$1" || exit
    printf 'a slots=1\nb slots=1\nc slots=1 spare\n' >hosts
    tee a b c <<<fine >/dev/null
}

# Rank 0 fails in the first attempt, and the driver knows $LINE then.
job() { # [ARG...]
    "$HOW" -H hosts --oversubscribe --start-with "$TMP/work/node $PWD/{host}" --label none --log-dir none --grace 1s --bad-hosts bad "$@" \
        sh -c '[ $HN_RESTART = 0 ] || exit 0; [ $RANK = 0 ] || exec sleep 60; eval "echo $LINE" >a.processes; exit 5'
}
asked_twice() { [[ $(wc -l <a.asked) -ge 2 ]]; }
export LINE='0 $$ 70000' BELOW=
HOW=hn

# The minute passes while the other cases run.
(
    new_job slow
    OUT=$PWD/out ERR=$PWD/err LIMIT=180 job --restart auto
    echo "$RC" >rc
) &
slow=$!

for how in '--restart auto' '--max-restarts 1'; do
    new_job "freed${how##* }"
    # shellcheck disable=SC2086
    HOW=start job $how
    ok "$how: the driver is asked again" wait_for asked_twice
    ok 'the ranks wait' pid_runs
    : >a.processes
    exits 'when the memory is free, the job goes on' 0 finish
    has 'the wait is told' "$ERR" 'a: memory of the ended attempt is not free: 70000 MiB of GPU 0, of rank 0 (pid '
    lacks 'on the same hosts' "$ERR" 'takes the place'
    ok 'no host is noted' not test -s bad
    cd ..
done

new_job ended
HOW=start job --restart auto
ok 'while the ranks wait' wait_for asked_twice
exits 'SIGTERM ends the job' 5 finish_by TERM
ok 'no host is noted' not test -s bad
cd ..

sleep 600 &
other=$!
for LINE in "0 $other 70000" '0 $(sh -c "echo \$\$") 70000'; do
    new_job "others$(find . -name 'others*' | wc -l)"
    job --restart auto
    exits 'memory of others does not count' 0
    lacks 'nobody waits' "$ERR" 'is not free'
    ok 'the driver was asked' test -s a.asked
    cd ..
done
kill "$other"

LINE='0 $$ 70000'
new_job namespace
BELOW='unshare --pid --fork --kill-child --mount-proc' job --restart auto
exits 'in another process namespace numbers are others'\''' 0
lacks 'nobody waits there' "$ERR" 'is not free'
cd ..

for word in crash hang; do
    new_job $word
    echo $word >a
    job --restart auto
    exits 'a driver without an answer holds nothing up: '$word 0
    lacks 'nobody waits for it' "$ERR" 'is not free'
    cd ..
done

new_job none
CUDA_VISIBLE_DEVICES='' job --restart auto
exits 'without GPUs the job goes on' 0
ok 'and no driver is asked' not test -e a.asked
cd ..

# The agent reads the figures of a record before the helper writes the next but one.
figures() { [[ $(wc -l <"$1.times") -ge 4 ]]; }
new_job ecc
tee a.ecc b.ecc <<<7 >/dev/null
start -H hosts --oversubscribe --start-with "$TMP/work/node $PWD/{host}" --label none --log-dir none --grace 1s --bad-hosts bad --restart auto \
    sh -c '[ $HN_RESTART = 0 ] || exit 0; [ $RANK = 0 ] || exec sleep 60; until [ -e go ]; do sleep 0.1; done; exit 5'
ok 'figures come' wait_for figures a
ok 'also of the other node' wait_for figures b
echo 9 >a.ecc
: >go
exits 'ECC errors on the node of the rank: the job goes on' 0 finish
has 'those of the attempt are the evidence' "$ERR" 'same hosts: 2 uncorrected ECC errors of GPU 0: the first time on a'
cd ..

wait "$slow"
RC=$(cat slow/rc) ERR=$TMP/work/slow/err
exits 'memory that is not freed in a minute: the job goes on' 0
has 'the host is put out' "$ERR" 'a is put out: memory of the ended attempt is not free: 70000 MiB of GPU 0, of rank 0 (pid '
has 'and a spare host comes' "$ERR" 'c takes the place of a'
has 'the host is noted with the reason' slow/bad '"reason":"memory of the ended attempt is not free'
nothing_left 'nothing is left'
done_testing
