#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What goes in comes out, whatever the pace; ends and exit codes arrive.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_start 'RekeyLimit 8M'
trust "$PORT"
at=127.0.0.1:$PORT
head -c 50000000 /dev/urandom >"$TMP/data"

probe -c cat ssh "$at" <"$TMP/data"
exits '50 MB through cat' 0
same 'both ways at once, byte-exact, with new keys every 8 MB' "$OUT" "$TMP/data"

probe -c 'sleep 1; cat' ssh "$at" <"$TMP/data"
same 'a remote that reads late' "$OUT" "$TMP/data"

head -c 6000000 "$TMP/data" >"$TMP/part"
probe -s 30000 -c "cat '$TMP/part'" ssh "$at"
same 'a reader that is slow' "$OUT" "$TMP/part"

probe -c "cat >'$TMP/up'; md5sum <'$TMP/up'" ssh "$at" <"$TMP/data"
same 'the end of the input arrives while output is to come: the input' "$TMP/up" "$TMP/data"
is 'and the output' "$(cat "$OUT")" "$(md5sum <"$TMP/data")"

probe -c 'exit 7' ssh "$at"
has 'the exit code' "$ERR" 'ended open ended: the remote command ended with exit code 7'
probe -c 'kill -9 $$' ssh "$at"
has 'a signal' "$ERR" 'the remote command was killed by SIGKILL'
probe -c 'no-such-program' ssh "$at"
has 'the remote shell complains' "$ERR" 'noise'
has 'and its words are evidence' "$ERR" '| '

# Its sshd dies once "before" is here.
(wait_for grep -q before "$OUT"; : >"$TMP/here") &
probe -c "echo before; for i in \$(seq 1000); do [ -e '$TMP/here' ] || sleep 0.05; done"'; kill -9 $(ps -o ppid= -p $$); sleep 20' ssh "$at"
has 'a session that is killed' "$ERR" 'ended open dropped: the connection was lost'
is 'what came before is there' "$(cat "$OUT")" before

done_testing
