#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --push of more than a megabyte: each link carries the files once in and once out, and neither a firewall, a lost node
# nor a slow one keeps the others from them.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

mkdir "$TMP/cache"
lab_up 5 1
NODES=$(lab hosts etc | awk '/node/ { print $2 }' | tr '\n' ' ')
for node in $NODES; do
    lab exec "$node" mount -t tmpfs -o size=96m lab "$TMP/cache"
done
address() { lab run getent hosts "$1" | cut -d' ' -f1; }
push() { lab_hn -v "$@"; }
uplink() { sed -n 's/.*push [0-9/]* in .*(\(.*\) sent)/\1/p' "$ERR"; }
# Bytes that have come to a node, and that it has sent.
link() { lab exec "$1" awk '$1 == "eth0:" { print $2, $10 }' /proc/self/net/dev; }

mkdir data
head -c 4000000 /dev/urandom >data/large
for i in {1..40}; do head -c 50000 /dev/urandom >"data/small$i"; done
: >data/empty
sha256sum data/* >"$TMP/want"
arrived() { # NAME N
    is "$1: each of $2 nodes has each file" "$(sort "$OUT" | uniq -c | awk -v n="$2" '$1 == n' | sort -u | wc -l)" 42
    is "$1: with its content" "$(sort -u "$OUT" | sort -k2 | sha256sum)" "$(sort -k2 "$TMP/want" | sha256sum)"
}
SUMS='sha256sum data/*'
push -H "$TMP/hosts.txt" true # the agents are there from now on

declare -A before
for node in $NODES; do before[$node]=$(link "$node"); done
from=$(head_sent)
exits 'a push to five nodes' 0 push -H "$TMP/hosts.txt" --push data --label none sh -c "$SUMS"
arrived 'a chain' 5
is 'the login node sends each file once' "$(uplink)" '6.0 MB'
sent=$(($(head_sent) - from))
ok "its link carries the files once ($sent bytes)" test "$sent" -gt 6000000 -a "$sent" -lt 7500000
last=${NODES% } last=${last##* }
for node in $NODES; do
    read -r in0 out0 <<<"${before[$node]}"
    read -r in1 out1 <<<"$(link "$node")"
    ok "$node gets them once ($((in1 - in0)) bytes)" test $((in1 - in0)) -gt 6000000 -a $((in1 - in0)) -lt 7500000
    if [[ $node == "$last" ]]; then
        ok "... and passes nothing on ($((out1 - out0)) bytes)" test $((out1 - out0)) -lt 1000000
    else
        ok "... and passes them on once ($((out1 - out0)) bytes)" test $((out1 - out0)) -gt 6000000 -a $((out1 - out0)) -lt 7500000
    fi
done
no_port() {
    local node
    for node in $NODES; do
        [[ -z $(lab exec "$node" ss -Hltnp | grep agent) ]] || return 1
    done
}
ok 'no port is open any more' no_port

# So does a list of files that is large for so many nodes.
mkdir many
seq -f 'many/a-file-with-a-name-of-some-length-%05g' 5000 | xargs touch
list_of_many() { # NAME LEAST MOST
    local from to
    from=$(head_sent)
    push -H "$TMP/hosts.txt" --push many --label none sh -c 'ls many | wc -l'
    to=$(head_sent)
    exits "$1" 0
    is "$1: each node has all files" "$(uniq -c "$OUT" | awk '{ print $1, $2 }')" '5 5000'
    ok "$1: the login node sends it as often as it must ($((to - from)) bytes)" test $((to - from)) -gt "$2" -a $((to - from)) -lt "$3"
}
list_of_many 'a list of 480 kB' 50000 900000

# What compresses goes compressed, once the network is the limit.
lab run tc qdisc replace dev br0 root tbf rate 40mbit burst 64k latency 200ms
yes 'words that repeat' | head -c 6000000 >words
from=$(head_sent)
exits 'text' 0 push -H "$TMP/hosts.txt" --push words cmp words words
sent=$(($(head_sent) - from))
ok "takes few bytes ($sent)" test "$sent" -lt 2000000
lab run tc qdisc del dev br0 root

# Only what a node misses is stored there; the others still get it through the node.
push -w node001,node003 --push-keep --push data true
exits 'some nodes have the files' 0 push -H "$TMP/hosts.txt" --push data --label none sh -c "$SUMS"
arrived 'some have them' 5
is '... which are sent once' "$(uplink)" '6.0 MB'
for node in node001 node003; do lab exec "$node" rm -rf "$TMP/cache/hnlaunch-stage-0"; done

# A firewall between two nodes.
if lab exec node003 sh -c 'ip rule add pref 10 lookup local && ip rule del pref 0' &&
    lab exec node003 ip rule add pref 5 iif eth0 from "$(address node002)" ipproto tcp dport 1024-65534 blackhole; then
    exits 'a node that the one before does not reach' 0 push -H "$TMP/hosts.txt" --push data --label none sh -c "$SUMS"
    arrived 'a firewall' 5
    has '... is told with -v' "$ERR" 'node003 gets files from here: node002 does not reach it'
    is '... is served by the login node' "$(uplink)" '12.0 MB'
    list_of_many 'a list behind a firewall' 50000 1400000
    lab exec node003 ip rule del pref 5
else
    skip 'a firewall' 'the kernel has no rules of ports'
fi

# A node is lost in the middle: a spare takes over, and the others have what they have.
shape() { lab exec "$1" tc qdisc replace dev eth0 root tbf rate "$2" burst 64k latency 200ms; }
lab run tc qdisc replace dev br0 root tbf rate 16mbit burst 64k latency 200ms
under_way() { lab exec "$1" sh -c "ls $TMP/cache/hnlaunch-stage-0/file/* | wc -l | grep -qE '[1-9][0-9]'"; }

# ... while the list is on its way: node003 has a part.
lab run tc qdisc replace dev br0 root tbf rate 400kbit burst 16k latency 200ms
has_part() { [[ $(link "$1" | cut -d' ' -f1) -gt $2 ]]; }
lab_start -v -w node001,node002,node003,node004,node005 --nodes 4 --spares 1 --push many --label none sh -c 'ls many | wc -l'
ok 'a list is on its way' wait_for has_part node003 $(($(link node003 | cut -d' ' -f1) + 60000))
lab exec node002 pkill -KILL -x 'agent-.*'
lab run tc qdisc replace dev br0 root tbf rate 16mbit burst 64k latency 200ms
exits 'a node is killed that passes the list on' 0 finish
is '... and each node has all files' "$(uniq -c "$OUT" | awk '{ print $1, $2 }')" '4 5000'

from=$(head_sent)
lab_start -v -w node001,node002,node003,node004,node005 --nodes 4 --spares 1 --push data --label none sh -c "$SUMS"
ok 'files are on their way' wait_for under_way node004
lab exec node002 pkill -KILL -x 'agent-.*'
exits 'a node of the chain is killed' 0 finish
arrived 'a lost node' 4
sent=$(($(head_sent) - from))
ok "... the login node serves the others once, and the spare one ($sent bytes)" test "$sent" -lt 14500000
lab run tc qdisc del dev br0 root

# A node with a slow way out, and one with a slow way in: the others do not wait.
head -c 16000000 /dev/urandom >large
lab run tc qdisc replace dev br0 root tbf rate 16mbit burst 64k latency 200ms
pushed() { grep -q "$1: pushed files are in" "$ERR"; }
others_are_done() { pushed node001 && pushed node003 && pushed node004 && pushed node005; }
slow_in() { # of node002: what the node before it sends there
    lab exec node001 sh -c "tc qdisc replace dev eth0 root handle 1: htb default 1 &&
        tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit quantum 60000 &&
        tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit quantum 60000 &&
        tc filter add dev eth0 parent 1: protocol ip u32 match ip dst $(address node002)/32 flowid 1:2"
}
shape node002 1mbit
began=$EPOCHREALTIME
lab_start -v -H "$TMP/hosts.txt" --push large true
ok 'a node that sends slowly holds no other up' wait_for others_are_done
took=$(awk "BEGIN { print int($EPOCHREALTIME - $began) }")
ok "... for long ($took s of 128)" test "$took" -lt 40
exits '... and all get the file' 0 finish
has '... it is told with -v' "$ERR" 'passes files on slowly'
lab exec node002 tc qdisc del dev eth0 root
lab exec node001 tc qdisc del dev eth0 root 2>/dev/null

if slow_in; then
    began=$EPOCHREALTIME
    lab_start -v -H "$TMP/hosts.txt" --push large true
    ok 'a node that gets files slowly holds no other up' wait_for others_are_done
    took=$(awk "BEGIN { print int($EPOCHREALTIME - $began) }")
    ok "... for long ($took s of 128)" test "$took" -lt 40
    exits '... and gets the file as well' 0 finish
fi

# So with the first node, which no node before compares: its way in, its way out, its agent.
nodes_but_the_first_are_done() { pushed node002 && pushed node003 && pushed node004 && pushed node005; }
first_holds_no_other_up() { # NAME
    local began=$EPOCHREALTIME took part
    part=$(($(link node001 | cut -d' ' -f1) + 4000000))
    lab_start -v -H "$TMP/hosts.txt" --push large true
    [[ $1 != *stopped ]] || ok "$1: files are on their way" wait_for has_part node001 $part
    [[ $1 != *stopped ]] || lab exec node001 pkill -STOP -x 'agent-.*'
    ok "$1 holds no other up" wait_for nodes_but_the_first_are_done
    took=$(awk "BEGIN { print int($EPOCHREALTIME - $began) }")
    ok "... for long ($took s of 80)" test "$took" -lt 40
    ok '... it is told with -v' grep -qE 'node001 (takes files|passes files on) slowly: the nodes behind go on without it' "$ERR"
}
slow_in_first() { # at most 16 Mbit/s leave the login node, and 1.6 of these for node001
    lab run sh -c "tc qdisc replace dev br0 root handle 1: htb default 1 &&
        tc class add dev br0 parent 1: classid 1:1 htb rate 16mbit quantum 60000 &&
        tc class add dev br0 parent 1: classid 1:2 htb rate 1600kbit quantum 6000 &&
        tc filter add dev br0 parent 1: protocol ip u32 match ip dst $(address node001)/32 flowid 1:2"
}
lab exec node001 tc qdisc del dev eth0 root 2>/dev/null
first_holds_no_other_up 'a first node that is stopped'
said() { grep -q 'HN627' "$ERR"; }
ok 'the job waits for it, and says so' wait_for said
has '... with the number, the node and what it misses' "$ERR" 'warning[HN627]: the job waits for node001: it has confirmed no files for '
has '... and what the others have' "$ERR" 'MB are missing; the other nodes have theirs'
lab exec node001 pkill -CONT -x 'agent-.*'
exits '... until it goes on' 0 finish
if slow_in_first; then
    first_holds_no_other_up 'a first node that gets files slowly'
    rate_is_said() { grep -q 'warning.HN627.: the job waits for node001: it gets its files at .* a second, and ' "$ERR"; }
    ok 'the job waits for it, and says so with its rate' wait_for rate_is_said
    finish_by TERM
    began=$EPOCHREALTIME
    lab_hn -v -w node001,node002,node003,node004,node005 --nodes 4 --spares 1 --push large --label none uname -n
    took=$(awk "BEGIN { print int($EPOCHREALTIME - $began) }")
    exits 'a spare host takes the place of a slow node' 0
    is '... and runs its ranks' "$(sort "$OUT" | tr '\n' ' ')" 'node002 node003 node004 node005 '
    has '... with the reason' "$ERR" 'node005 takes the place of node001: it '
    ok "... instead of a long wait ($took s of 80)" test "$took" -lt 60
    lab run tc qdisc replace dev br0 root tbf rate 16mbit burst 64k latency 200ms
else
    skip 'a first node that gets files slowly' 'the kernel has no htb'
fi
shape node001 1600kbit
first_holds_no_other_up 'a first node that sends slowly'
exits '... and gets the file as well' 0 finish
lab exec node001 tc qdisc del dev eth0 root
# shellcheck disable=SC2086 # names
ok 'nothing is left on any node' wait_for no_staged_files $NODES
lab_nothing_left 'no process is left'
done_testing
