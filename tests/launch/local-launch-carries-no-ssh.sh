#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What only other nodes need is not loaded for a launch on this machine, and may be missing there;
# a launch that needs it says what is missing and how to go without.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

start --local 2 sh -c 'echo up; exec sleep 20'
ok 'the ranks run' wait_for lines_are "$OUT" 2
lacks 'no libssh in the head' "/proc/$PID/maps" libssh
lacks 'no libcrypto in the head' "/proc/$PID/maps" libcrypto
lacks 'no libsmartcols before a table' "/proc/$PID/maps" smartcols
kill -TERM "$PID"
wait "$PID" 2>/dev/null
PID=

mkdir "$TMP/alone"
cp "$HNLAUNCH" "$BUILD/hnlaunch-agent" "$TMP/alone"
HNLAUNCH=$TMP/alone/hnlaunch
hn_exits 'a launch here does without the ssh part' 0 --local 2 true

# --- a table without the part that lays it out ---------------------------------------------------
hn_exits 'a plan does without the part for tables' 0 -n 2 --dry-run --local 2 true
is 'its rows are there' "$(grep -c '^0  localhost  0-1  ' "$OUT")" 1
has 'a warning tells why' "$ERR" 'warning[HN835]: columns of tables are not aligned: hnlaunch-table.so is neither beside'
echo 'no library' >"$TMP/alone/hnlaunch-table.so"
hn --dry-run --local 2 true
has 'and when it cannot be loaded' "$ERR" 'warning[HN835]: columns of tables are not aligned: cannot load the layout of tables:'

# --- a launch elsewhere -------------------------------------------------------------------------
hn_exits 'a launch elsewhere does not' 69 -w node1 true
has 'it names the part' "$ERR" 'error[HN103]: hnlaunch-ssh.so is neither beside'
has 'and the other way' "$ERR" '--ssh-command ssh'

echo 'no library' >"$TMP/alone/hnlaunch-ssh.so"
hn_exits 'a part that cannot be loaded' 69 -w node1 true
has 'it says why' "$ERR" 'error[HN103]: cannot load the ssh part:'

hn_exits 'a tree needs it whichever ssh there is' 69 --ssh-command ssh --tree 2 -w node1 true
lacks 'no advice to take what is taken' "$ERR" 'goes without it'

hn --ssh-command "sh -c 'exec $HNLAUNCH-agent' --" -w node1 echo hello
is 'an ssh of the site needs no part' "$(cat "$OUT")" hello
nothing_left 'nothing is left'
done_testing
