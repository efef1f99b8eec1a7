#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A rank that fails on one node ends the job on all nodes; Ctrl-C does so, too.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 8 4

begin=$SECONDS
lab_hn -H "$TMP/hosts.txt" sh -c 'if [ $RANK = 13 ]; then echo "out of cheese" >&2; exit 42; fi; exec sleep 600'
exits 'rank 13 exits 42: 42' 42
ok 'at once' test $((SECONDS - begin)) -lt "$(scaled 10)"
verdict_has 'the verdict names the rank and its node' 'rank 13' node004 '(exit 42)'
has 'its last words are there' "$ERR" 'out of cheese'
lab_nothing_left 'nothing is left on the nodes'

mkdir crashed
lab_hn -H "$TMP/hosts.txt" --chdir "$PWD/crashed" sh -c 'if [ $RANK = 30 ]; then ulimit -c unlimited; kill -SEGV $$; fi; exec sleep 600'
exits 'rank 30 crashes: 139' 139
verdict_has 'the verdict names the signal' 'rank 30' node008 SIGSEGV
if [[ $(cat /proc/sys/kernel/core_pattern) == [\|/]* ]]; then
    skip 'its core file is found on its node' 'core_pattern of this machine gives cores to a program, or names a folder'
else
    ok 'its core file is found on its node' grep -qE "note: core file: $PWD/crashed/[^ ]+ on node008\$" "$ERR"
fi

# --- slow ends, and those that follow from them
. "$ROOT/tests/lib/endings.sh" || exit 1
endings_hn=("$LAB" run "$LAB_HNLAUNCH") endings_at=(-H "$TMP/hosts.txt" --map node -n N)
endings_run "$ROOT/tests/clients/endings/nodes.rows"

exits 'a program that is nowhere: 127' 127 lab_hn -H "$TMP/hosts.txt" -- ./only-here
verdict_has 'it is named, and no node' "no node can start its ranks: cannot execute './only-here': No such file or directory"
exits 'nor in PATH: 127' 127 lab_hn -H "$TMP/hosts.txt" trian.bin
verdict_has 'the last line says so' "no node has 'trian.bin' in PATH  (exit 127)"
lacks 'no node is named' <(sed -n '/^error/,$p' "$ERR") node00
lacks 'no rank is stopped' "$ERR" stop
lab_run "$LAB_HNLAUNCH" report
is 'the report has it once' "$(grep -c "no node has 'trian.bin'" "$OUT")" 1
for node in 1 2 3 4 5 6 7; do
    lab exec node00$node sh -c 'printf "#!/bin/sh\nexec sleep 600\n" >/dev/shm/some && chmod +x /dev/shm/some'
done
exits 'a program that one node lacks: 127' 127 lab_hn -H "$TMP/hosts.txt" /dev/shm/some
verdict_has 'the node is named' "node008: cannot execute '/dev/shm/some': No such file or directory"
has 'the others are stopped' "$ERR" '28 ranks were stopped by hnlaunch'

comes_up '32 ranks are up' 32 lab_start -H "$TMP/hosts.txt" --label none sh -c 'echo up; exec sleep 600'
exits 'Ctrl-C: 130' 130 finish_by INT
lab_nothing_left 'nothing is left after Ctrl-C'

lab_start -H "$TMP/hosts.txt" --label none sh -c 'trap "" TERM HUP; (setsid sleep 300 &); echo up; while :; do sleep 0.1; done'
ok '32 deaf ranks are up' wait_for lines_are "$OUT" 32
kill -KILL "$PID"
wait "$PID" 2>/dev/null
PID=
lab_nothing_left 'nothing is left when hnlaunch was killed'
done_testing
