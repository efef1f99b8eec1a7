#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --jump, ProxyJump and ProxyCommand. Two servers: one is the way to the other.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_start 'LogLevel VERBOSE'
gate=$PORT gate_log=$SSHD/log
trust "$gate"
sshd_start 'LogLevel VERBOSE'
trust "$PORT"
at=127.0.0.1:$PORT
head -c 5000000 /dev/urandom >"$TMP/data"
head -c 20000000 /dev/zero >"$TMP/big"

probe -J "127.0.0.1:$gate" -c 'echo in' ssh "$at"
exits 'over a jump host' 0
is 'the command ran' "$(cat "$OUT")" in
ok 'through the jump host' grep -q 'Accepted publickey' "$gate_log"

targets=("$at" "$at" "$at" "$at" "$at" "$at" "$at" "$at" "$at" "$at" "$at" "$at")
: >"$gate_log"
probe -J "127.0.0.1:$gate" -c 'echo in' ssh "${targets[@]}"
is 'twelve over one jump host' "$(grep -c in "$OUT")" 12
ok 'in few sessions' test "$(grep -c 'Accepted publickey' "$gate_log")" -le 4

probe -J "127.0.0.1:$gate" -c cat ssh "$at" <"$TMP/data"
same 'byte-exact' "$OUT" "$TMP/data"

# The first of two links takes some of the bytes, and is then silent until the other one has taken the rest. Of the lost
# wakeups that this is about some are made up for by what else comes: one turn would not find them each time.
for turn in 1 2 3; do
    mkdir "$TMP/turn$turn"
    run timeout 60 "$PROBE" -F "$TMP/ssh_config" -J "127.0.0.1:$gate" -c "cd $TMP/turn$turn
        mkdir first 2>/dev/null && { until [ -e over ]; do sleep 0.1; done; exit; }
        cat >/dev/null; touch over" ssh "$at" "$at" <"$TMP/big"
    exits "a link whose neighbour is silent gets all its bytes, turn $turn" 0
done

probe -J "127.0.0.1:$gate,127.0.0.1:$PORT" -c 'echo in' ssh "$at"
exits 'two jump hosts' 0

write_config "Host inside" "    HostName 127.0.0.1" "    Port $PORT" "    ProxyJump gate" \
    "    HostKeyAlias [127.0.0.1]:$PORT" "Host gate" "    HostName 127.0.0.1" "    Port $gate" \
    'Match host somewhere' '    Port 1'
probe -c 'echo in' ssh inside
exits 'ProxyJump with names of the config' 0

write_config "Host inside" "    HostName 127.0.0.1" "    Port $PORT" \
    "    ProxyCommand ssh -F '$TMP/ssh_config' -W %h:%p gate" "Host gate" \
    "    HostName 127.0.0.1" "    Port $gate"
probe -c 'echo in' ssh inside
exits 'ProxyCommand' 0
write_config 'Host inside' '    ProxyCommand exit 1'
probe -t 1000 -c 'echo in' ssh inside
is 'a ProxyCommand that fails' "$RC" 1
write_config

sed -i "/:$gate /d" "$KNOWN"
probe -J "127.0.0.1:$gate" -c 'echo in' ssh "$at" "$at"
is 'the key of the jump host is checked too' \
    "$(grep -c "failed hostkey key-unknown: jump host 127.0.0.1:$gate: the host key is not known" "$ERR")" 2
trust_line=$(cut -d' ' -f1,2 "$TMP/sshd.0/host_key.pub")
printf '[127.0.0.1]:%s %s\n' "$gate" "$trust_line" >>"$KNOWN"

probe -J "127.0.0.1:$gate" -c 'echo in' ssh 127.0.0.1:1 "$at"
has 'what the jump host cannot reach' "$ERR" 'the jump host cannot connect to port 1'
is 'does not hinder the others' "$(cat "$OUT")" in

probe -J no-such-jump.invalid -c 'echo in' ssh "$at"
has 'a jump host without address' "$ERR" 'jump host no-such-jump.invalid: name does not resolve'
probe -J no-such-jump.invalid,gate -c 'echo in' ssh "$at"
has 'the first of two' "$ERR" 'failed resolving no-name: jump host no-such-jump.invalid: name does not resolve'

# --- what hnlaunch makes of it: the node is not to blame --------------------------------------------

hn_exits 'a jump host without address ends the launch' 68 --ssh-config "$TMP/ssh_config" --jump no-such-jump.invalid -w node.invalid true
has 'whose name is to be checked' "$ERR" 'help: check the name of the jump host with getent hosts'
lacks '... and not that of the node' "$ERR" 'getent hosts node.invalid'
hn_exits 'so does one whose port is closed' 68 --ssh-config "$TMP/ssh_config" --jump 127.0.0.1:1 -w node.invalid true
has 'which is told' "$ERR" 'jump host 127.0.0.1:1: connection refused on port 1'
has 'the way there is to be tried' "$ERR" 'help: try ssh -J 127.0.0.1:1 node.invalid true'
lacks 'the port of the node is not to blame' "$ERR" '--ssh-port'
lacks 'nor is the node this machine, as the jump host is' "$ERR" 'is this machine'
{
    printf 'Host node.invalid\n    ProxyJump 127.0.0.1:1\n'
    cat "$TMP/ssh_config"
} >"$TMP/jump_config"
hn --ssh-config "$TMP/jump_config" -w node.invalid true
has 'a jump host of ssh_config is tried by ssh itself' "$ERR" 'help: try ssh node.invalid true'

done_testing
