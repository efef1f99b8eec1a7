#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program of MPICH on four nodes with real sshd: its ranks meet, ranks of a node share memory, an abort and a rank
# that leaves end it everywhere.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

kit=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/mpi
bash "$ROOT/tests/lib/mpi_kit.sh" "$kit" mpich5 2>"$TMP/kit.log" || skip_all "no MPICH: $(tail -n 1 "$TMP/kit.log")"
"$kit/mpich5/bin/mpicc" -o "$TMP/check" "$ROOT/tests/clients/mpi/mpi_check.c" || skip_all 'mpicc fails here'
lab_up 4 2

exits 'eight ranks on four nodes' 0 lab_hn -H "$TMP/hosts.txt" --label none "$TMP/check"
is 'meet, two on a node' "$(cat "$OUT")" '8 ranks met, 2 to 2 on a node'
lab_hn -H "$TMP/hosts.txt" --label none --map node "$TMP/check"
is 'also dealt to the nodes one by one' "$(cat "$OUT")" '8 ranks met, 2 to 2 on a node'
lab_hn -H "$TMP/hosts.txt" --label none -n 7 --tree 2 -o run.contain=tree "$TMP/check"
is 'seven in a tree' "$(cat "$OUT")" '7 ranks met, 1 to 2 on a node'
lab_hn -H "$TMP/hosts.txt" --label none --mpi pmi-port "$TMP/check"
is 'at a port of each node' "$(cat "$OUT")" '8 ranks met, 2 to 2 on a node'
lab_hn -H "$TMP/hosts.txt" --label none --ppn 1 sh -c 'ip -o -4 addr show dev eth0 | grep -c "inet $PMI_HOSTNAME/"'
is "PMI_HOSTNAME is each node's own address" "$(xargs <"$OUT")" '1 1 1 1'
lab_hn -H "$TMP/hosts.txt" --label none --ppn 1 -x PMI_HOSTNAME=mine sh -c 'echo "$PMI_HOSTNAME"'
is 'unless the user has set it' "$(xargs <"$OUT")" 'mine mine mine mine'
lab_hn -H "$TMP/hosts.txt" --label none "$TMP/check" names
is 'a name is published' "$(cat "$OUT")" 'the name was found'
exits 'the code of an abort on the last node is that of the job' 17 lab_hn -H "$TMP/hosts.txt" "$TMP/check" abort 17
exits 'a rank that leaves is a failure' 1 lab_hn -H "$TMP/hosts.txt" "$TMP/check" leave
has 'and is named with its node' "$ERR" ': rank 7 on node004 exited with code 0 without MPI_Finalize()'
lab_nothing_left 'nothing is left'
done_testing
