#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nodes that refuse, that have another host key or an unknown one and names that do not resolve: all
# of them are told in one go with a next step, and nothing is started anywhere.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 8 4
lab sshd node002 stop
known=$LAB_DIR/etc/known_hosts
cp "$known" "$TMP/known"
other=$(awk '$1 ~ /^node004,/ { print $2, $3 }' "$known")
awk -v other="$other" '
    $1 ~ /^node003,/ { print $1, other; next }
    $1 ~ /^node005,/ { next }
    { print }' "$TMP/known" >"$known"
echo 'node-nope slots=4' >>"$TMP/hosts.txt"

lab_hn -H "$TMP/hosts.txt" touch started
ok 'the code is that of a host: 68 or 77' test "$RC" = 68 -o "$RC" = 77
has 'a node without sshd is told' "$ERR" node002
has 'why: refused' "$ERR" refused
has 'a node with another key is told' "$ERR" node003
has 'why: changed' "$ERR" CHANGED
has 'a node with an unknown key is told' "$ERR" node005
has 'a name that does not resolve is told' "$ERR" node-nope
has 'why: it does not resolve' "$ERR" resolve
has 'hosts of one message stand with all their lines' "$ERR" "node002,node-nope  ($TMP/hosts.txt:2,9), port"
lacks 'nodes that are well are not listed as bad' <(grep -v -e hosts.txt -e help -e note "$ERR") node007
has 'a next step is offered' "$ERR" 'help:'
verdict_has 'the verdict says that nothing was started' 'nothing was started' "(exit $RC)"
ok 'nothing was started' test ! -e started
lab_nothing_left 'nothing is left on the good nodes'

exits 'without them it runs' 0 lab_hn -H "$TMP/hosts.txt" --exclude 'node[002,003,005],node-nope' --label none sh -c 'hostname'
is 'on the five good nodes' "$(sort -u "$OUT" | wc -l)" 5

exits '--host-key accept-new takes an unknown key' 0 lab_hn -w node005:1 --host-key accept-new --label none hostname
exits '--host-key accept-new does not take a changed key: 77' 77 lab_hn -w node003:1 --host-key accept-new --label none hostname
has 'it is called changed' "$ERR" CHANGED

exits 'only a node without sshd: 68' 68 lab_hn -w node002:1 true
has 'a list has no lines' "$ERR" '--> node002, port 22'
exits 'only a name that does not resolve: 68' 68 lab_hn -w node-nope:1 true
cp "$TMP/known" "$known"

ssh-keygen -q -t ed25519 -N '' -f "$TMP/stranger"
cp "$TMP/stranger.pub" "$LAB_DIR/etc/authorized_keys"
exits 'a key that the nodes refuse: 77' 77 lab_hn -w 'node[001,006]:1' true
has 'it is an error with a number' "$ERR" 'error[HN203]: ssh login refused on 2 nodes'
has 'the keys that were offered are listed' "$ERR" SHA256
has 'both nodes are told in one word' "$ERR" 'node[001,006]'
exits "the same through the site's ssh: 77" 77 lab_hn --ssh-command ssh -w 'node[001,006]:1' true
has 'it is a refused login, too' "$ERR" 'ssh login refused'
done_testing
