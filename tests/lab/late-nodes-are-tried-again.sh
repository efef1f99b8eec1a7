#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Workers of the MPI Operator come in any order: a name that does not resolve yet, an ssh server that is not there and
# a key that is not accepted yet are tried again, as with -o ssh.connect_retry; for a limited time, and told.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3
printf 'node00%d slots=2\n' 1 2 3 >"$TMP/hostfile"
etc=$LAB_DIR/etc
cp "$etc/hosts" "$TMP/all-hosts"
cp "$etc/authorized_keys" "$TMP/keys"
tried_again() { # TEXT...
    local text
    for text in "$@"; do
        grep -q "$text.*; it is tried again" "$ERR" || return
    done
}

# The files are mounted: they are written anew, not replaced.
grep -v node003 "$TMP/all-hosts" >"$etc/hosts"
lab sshd node002 stop
: >"$etc/authorized_keys"
: >"$OUT"
lab run env --default-signal K_MPI_JOB_ROLE=launcher "OMPI_MCA_orte_default_hostfile=$TMP/hostfile" \
    "$LAB_HNLAUNCH" -v --label none sh -c 'echo "$RANK $(hostname)"' >"$OUT" 2>"$ERR" &
PID=$!
ok 'a key, a server and a name are missing' wait_for tried_again 'node001: ' 'node002: connection refused' 'node003: '
cat "$TMP/keys" >"$etc/authorized_keys"
lab sshd node002 start
cat "$TMP/all-hosts" >"$etc/hosts"
exits 'the job runs when they have come' 0 finish
is 'on all nodes' "$(sort "$OUT" | xargs)" '0 node001 1 node001 2 node002 3 node002 4 node003 5 node003'

lab sshd node002 stop
exits 'a node that does not come: 68' 68 lab_hn -o ssh.connect_retry=1500ms -w node001,node002 true
has 'it is told for how long it was tried' "$ERR" 'node002          connection refused on port 22, tried for 1.5s'
lab_start -v -o ssh.connect_retry=10m -w node001,node002 true
ok 'a node is waited for' wait_for tried_again 'node002: '
kill -QUIT "$PID"
ok 'and is not told as ready meanwhile' wait_for grep -q '[01] of 2 nodes are ready' "$ERR"
has_rows 'but as awaited' -E 'waiting for .*node.*002'
exits 'Ctrl-C ends the wait' 130 finish_by INT
K_MPI_JOB_ROLE=launcher OMPI_MCA_orte_default_hostfile=$TMP/hostfile lab_hn -o ssh.connect_retry=0 true
exits 'an option wins over the default of the Operator' 68

# The parent of a node in the tree. It has no rank in the world of the child, and hands over its order all the same.
lab sshd node001 stop
lab sshd node002 start
lab_start -v -o ssh.connect_retry=1m --tree 1 -w node001:1,node002:1 --gpus-per-rank 0 --label none \
    --role a --nodes 1 -n 1 sh -c 'echo "a $(hostname)"' : --role b --nodes 1 -n 1 sh -c 'echo "b $(hostname)"'
ok 'the parent of a node is waited for' wait_for tried_again 'node001: '
lab sshd node001 start
exits 'the job of both runs when it has come' 0 finish
is 'on the child, too' "$(sort "$OUT" | xargs)" 'a node001 b node002'
lab_nothing_left 'nothing is left'
done_testing
