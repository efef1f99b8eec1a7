#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A list of hosts may have the machine of hnlaunch among other nodes, under its name, one of its addresses or a name
# that only /etc/hosts has for it: it needs no sshd and no key. The folder of the shell is looked for on the nodes under
# the name that the shell has for it: here it lies below a link, there in a real folder.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 1 2
address=$LAB_NET.255.254
printf '%s\n' '127.0.1.1 head.example head' "$address login" "$LAB_NET.0.9 absent" >>"$LAB_DIR/etc/hosts"
ok 'the head has that address' grep -q "$address" <(lab_run ip -4 addr; cat "$OUT")

for name in head head.example "$address" 127.0.1.1 login; do
    exits "$name and a node: 0" 0 lab_hn -w "$name:1,node001:1" --label '{host} ' sh -c 'hostname'
    is "$name runs here, node001 there" "$(sort "$OUT" | tr '\n' ' ')" \
        "$(printf '%s head\nnode001 node001\n' "$name" | sort | tr '\n' ' ')"
done
exits 'another address of that network is another machine: 68' 68 lab_hn -w absent:1,node001:1 --connect-timeout 2s true
lab_hn -w node001:1,head:1 --label none sh -c 'echo $MASTER_ADDR'
lacks 'MASTER_ADDR is one that both reach' "$OUT" '^127'
exits 'with a user it is a login: 68' 68 lab_hn -w "head:1,alice@$address:1" true
has 'which says how to do without' "$ERR" "$address is this machine: under the name localhost it needs no ssh"

# --- a folder below a link ------------------------------------------------------------------------------------------
# /run is private on each node and shared by nothing.
lab_run mkdir -p /run/vol1/home/proj
lab_run ln -s /run/vol1/home /run/home
lab exec node001 mkdir -p /run/home/proj
there() { # OPTION...: where a rank of node001 is
    lab_run env -C /run/home/proj PWD=/run/home/proj "$LAB_HNLAUNCH" -w node001:1 --label none "$@" pwd
}
there
is 'the folder is found under the name of the link' "$(cat "$OUT")" /run/home/proj
there --chdir .
is '--chdir . is the same' "$(cat "$OUT")" /run/home/proj
there --chdir ../proj
is 'and ../proj counts from it' "$(cat "$OUT")" /run/home/proj
exits 'a wrong PWD is not believed: 69' 69 lab_run env -C /run/home/proj PWD=/run/home "$LAB_HNLAUNCH" -w node001:1 pwd
has 'the folder itself is named' "$ERR" "cannot change to directory '/run/vol1/home/proj'"
lab_nothing_left 'nothing is left'
done_testing
