#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A machine that stands in the list under two names would give its slots and GPUs twice: an error with both lines,
# before anything starts, unless it is wanted.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

# shellcheck disable=SC2119
sshd_start
trust "$PORT"
write_config 'Host n*' '    HostName 127.0.0.1' "    Port $PORT" "    HostKeyAlias [127.0.0.1]:$PORT"
export XDG_CACHE_HOME=$TMP/cache
printf '%s\n' '# two names' 'n1 slots=1' 'n2 slots=1' >hosts
with=(--ssh-config "$TMP/ssh_config" --label none)

hn_exits 'two names of one machine' 65 "${with[@]}" -H hosts touch started
has 'both are named' "$ERR" 'error[HN309]: n1 and n2 are the same machine'
ok 'with the first line' grep -qE 'n1 +hosts:2' "$ERR"
ok 'and the second' grep -qE 'n2 +hosts:3' "$ERR"
has 'and the ways out' "$ERR" 'help: keep one of them, or --oversubscribe'
told_once 'the error says so, once' 'n1 and n2 are the same machine'
verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 65)'
ok 'nothing was started' test ! -e started

hn_exits 'plan --probe says it, too' 65 plan --probe --ssh-config "$TMP/ssh_config" -H hosts true
hn_exits '--oversubscribe allows it' 0 "${with[@]}" -H hosts --oversubscribe sh -c 'echo in'
is 'both run' "$(grep -c in "$OUT")" 2
hn_exits 'this machine under the name of another' 65 "${with[@]}" -w 'localhost:1,n1:1' true
has 'is told, too' "$ERR" 'localhost and n1 are the same machine'
hn -w 'localhost:1,127.0.0.1:1,[::1]:1' --label none sh -c 'echo in'
exits 'names of the loopback interface may stand together' 0
nothing_left 'nothing is left'
done_testing
