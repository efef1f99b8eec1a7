#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hostfile of localhost lines, or of other names of this machine, works on a machine without any sshd.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

echo 'localhost slots=4' >hosts
hn_exits 'four slots on localhost' 0 -H hosts --label none sh -c 'echo "$RANK of $WORLD_SIZE"'
is 'four ranks' "$(sort "$OUT" | tr '\n' ' ')" '0 of 4 1 of 4 2 of 4 3 of 4 '
hn -w localhost:2 --label none sh -c 'echo "$RANK"'
is '-w localhost:2' "$(sort "$OUT" | tr '\n' ' ')" '0 1 '
hn -H hosts -n 2 --label none sh -c 'echo "$WORLD_SIZE"'
is '-n 2 takes the first two slots' "$(sort -u "$OUT")" 2
hn_exits '--local 64 on any machine' 0 --local 64 true
exits 'an empty environment is enough' 0 run env -i PATH="$PATH" "$HNLAUNCH" -H hosts true

# --- this machine under other names needs no ssh, either: the ssh here fails ----------------------------------------
own=$(hostname)
: >config
here() { hn --ssh-command false --ssh-config config "$@" --label '{host} ' sh -c 'echo "$RANK of $WORLD_SIZE, $MASTER_ADDR"'; }
for name in "$own" "${own^^}" 127.0.1.1 127.5.6.7 localhost.localdomain ip6-localhost $(hostname -I); do
    [[ $name != *:* ]] || name="[$name]"
    exits "$name needs no ssh" 0 here -w "$name:2"
    is "$name is the name of the ranks' node" "$(sort "$OUT" | tr '\n' ' ')" \
        "${name//[][]/} 0 of 2, 127.0.0.1 ${name//[][]/} 1 of 2, 127.0.0.1 "
done
echo "$own slots=2" >named
exits 'in a hostfile, too' 0 here -H named
exits 'two names of it are one machine: 65' 65 here -w "localhost,$own"
printf 'Host %s\n    HostName 127.0.0.1\n' "$own" >config
exits 'HostName may be another name of it' 0 here -w "$own:2"

# What the user says of a login to it is done.
: >config
printf '%s slots=2 port=2222\n' "$own" >port
printf '%s slots=2 addr=127.0.0.1\n' "$own" >addr
for line in "-w nobody@$own:2" '-H port' '-H addr' "-w $own:2 --jump gateway" "-w $own:2 --user nobody" "-w $own:2 -p 2222"; do
    read -ra words <<<"$line"
    here "${words[@]}"
    ok "$line: a login" test "$RC" -ge 68
done
for setting in 'ProxyJump gateway' 'ProxyCommand nc %h %p' 'User nobody' 'Port 2222' 'HostName gateway.invalid'; do
    printf 'Host %s\n    %s\n' "$own" "$setting" >config
    here -w "$own:2"
    ok "$setting: a login" test "$RC" -ge 68
done
printf 'Host other\n    ProxyJump gateway\n' >config
exits 'what is said of other hosts is not' 0 here -w "$own:2"
nothing_left 'nothing is left'
done_testing
