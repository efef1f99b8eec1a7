#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --subst replaces place-holders in arguments, and nothing else does; --local-rank-arg appends the local rank; --label
# takes the same names.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

two='localhost:2,127.0.0.1:2'
same=('{rank}' '\{rank}' '{port:X}' '{' 'a b' '')
hn --local 1 --label none printf '<%s>' "${same[@]}"
is 'without --subst arguments are byte-identical' "$(cat "$OUT")" "$(printf '<%s>' "${same[@]}")"

hn -w "$two" --subst --label none printf '%s\n' '{rank} {local_rank} {node_rank} {num_nodes} {host} {foo} \{rank}'
is 'every rank has its own values' "$(sort "$OUT")" '0 0 0 2 localhost {foo} {rank}
1 1 0 2 localhost {foo} {rank}
2 0 1 2 127.0.0.1 {foo} {rank}
3 1 1 2 127.0.0.1 {foo} {rank}'
hn --local 1 --subst --label none sh -c 'test "$1" = "$MASTER_ADDR:$MASTER_PORT"' sh '{master_addr}:{master_port}'
exits 'the place of the store is that of the variables' 0
hn -w '[::1]:1' --subst --label none echo '{host}' '{host}:1' '{host}:{port:x}'
ok 'an IPv6 address in front of a colon has brackets' grep -qxE '::1 \[::1\]:1 \[::1\]:[0-9]+' "$OUT"
hn --local 1 --subst --label none echo '{rank}$(id) `id` ;*'
is 'no shell sees an argument' "$(cat "$OUT")" '0$(id) `id` ;*'

# --- ports
hn -w "$two" --subst --label none sh -c 'echo "$1 $2 $HN_PORT_RAY $HN_PORT_JAX_2"' sh '{port:ray}' '{port:jax_2}'
is 'ports are the same in all ranks, and in HN_PORT_NAME' "$(sort -u "$OUT" | wc -l)" 1
read -r ray jax variable other <"$OUT"
is 'each name has one port' "$ray $jax" "$variable $other"
ok 'of its own' test "$ray" -gt 0 -a "$ray" -ne "$jax"
cat >listen.py <<'END'
import os
import socket
import sys

s = socket.socket()
s.bind(("", int(sys.argv[1])))
s.listen()
print(sys.argv[1])
sys.exit(os.environ["HN_RESTART"] != "1")
END
hn --local 1 --subst --max-restarts 1 --label none python3 listen.py '{port:a}'
exits 'a rank listens at its port, also when it is started again' 0
ok 'each attempt has another port' test "$(sort -u "$OUT" | wc -l)" = 2
for bad in '{port:Ray}' '{port:}' '{port:1a}' '{port:a-b}' '{port:abcdefghijklmnopqrstuvwxyzabcdefg}'; do
    hn_exits "$bad: 64" 64 --local 1 --subst echo ok "$bad"
    has "$bad is told" "$ERR" "error[HN411]: $bad has no valid name"
    has "$bad has a place" "$ERR" "argument 2: $bad"
done
hn --local 1 --subst --label none echo '\{port:Ray}'
is 'a backslash keeps such a text' "$(cat "$OUT")" '{port:Ray}'
many=()
for ((i = 0; i < 65; i++)); do
    many+=("{port:p$i}")
done
hn --local 1 --subst --label none echo "${many[@]:1}"
is 'a job may have 64 ports' "$(tr ' ' '\n' <"$OUT" | sort -u | wc -l)" 64
hn --local 1 --subst echo "${many[@]}"
has 'but no more' "$ERR" 'error[HN411]: {port:p64} is one port more than a job may have: 64'

# --- what is told
hn -v --local 1 --subst echo plain '{rank}'
has '-v names a changed argument' "$ERR" 'place-holders are replaced in argument 2: {rank}'
lacks 'and no other' "$ERR" 'argument 1'
hn plan -w 'a:2,b:2' --ranks 3 --subst echo '{rank}.{local_rank}.{node_rank}' '{host}:{port:ray}'
has 'a plan shows what can be known' "$OUT" "# program echo 3.1.1 'b:(free port there)'"
has 'and which ports there will be' "$OUT" 'HN_PORT_RAY=(free port there)'

# --- words that are close
hn --local 1 --subst --label none echo '{world_size}' 'h={hostname}' '{local-rank}' '{RANK}' '{world_size}'
is 'words that are no place-holders stay' "$(cat "$OUT")" '{world_size} h={hostname} {local-rank} {RANK} {world_size}'
is 'each is told once' "$(grep -c 'warning\[HN413\]: {.*} is no place-holder of --subst and stays as it is' "$ERR")" 4
has 'with its place' "$ERR" '--> argument 2: h={hostname}'
has 'with the one that was meant' "$ERR" 'did you mean `{host}`?'
has 'or where a rank finds it' "$ERR" 'each rank has it as WORLD_SIZE in its environment'
harmless=('{}' '{foo}' '{cost}' '{bank}' '{"rank": 1}' '${hostname}' '\{world_size}' '{rank' '{rank}' '{port:x}')
hn --local 1 --subst echo "${harmless[@]}"
lacks 'other braces are not' "$ERR" warning
hn --local 1 --label none echo '{world_size}'
lacks 'without --subst none is' "$ERR" warning
hn --local 1 --wrap 'env A={hostname}' true
has 'words of --wrap are looked at, too' "$ERR" 'warning[HN413]: {hostname}'

# --- the local rank
hn -w "$two" --local-rank-arg --label none echo script.py
is 'the local rank is appended' "$(sort "$OUT" | uniq -c | xargs)" '2 script.py --local_rank=0 2 script.py --local_rank=1'
hn --local 2 --local-rank-arg=local-rank --label none echo
is 'under any name' "$(sort "$OUT" | xargs)" '--local-rank=0 --local-rank=1'
hn_exits 'which must be a name' 64 --local 1 --local-rank-arg='a b' true
HNLAUNCH_RUN_SUBST=yes HNLAUNCH_RUN_LOCAL_RANK_ARG=lr hn --local 1 --label none echo '{rank}'
is 'both are settings, too' "$(cat "$OUT")" '0 --lr=0'

hn -w "$two" --label '{host}/{rank}/{local_rank}/{local}/{node_rank}/{num_nodes} ' echo
is '--label takes the names' "$(sort "$OUT")" '127.0.0.1/2/0/0/1/2 
127.0.0.1/3/1/1/1/2 
localhost/0/0/0/0/2 
localhost/1/1/1/0/2 '
for listen in network loopback none; do
    hn -w "$two" --store-listen "$listen" --label '{master_addr}:{master_port}:{port:a}=' \
        sh -c 'echo "$MASTER_ADDR:$MASTER_PORT:$HN_PORT_A"'
    is "--store-listen $listen: every rank has a line" "$(wc -l <"$OUT")" 4
    is "--store-listen $listen: its label shows its addresses and ports" \
        "$(awk -F= '$1 != $2 || $1 !~ /^[^:]+:[1-9][0-9]*:[1-9][0-9]*$/' "$OUT")" ''
done
hn --local 2 --max-restarts 1 --label '{port:a} {stream}|' sh -c 'echo "$HN_PORT_A out|"; exit "$HN_RANK"'
is 'another attempt has other labels' "$(sort -u "$OUT" | awk -F'[|]' '$1 == $2' | wc -l)" 2
hn_exits 'a port of a label needs a valid name: 64' 64 --local 2 --label '{port:Ray} ' true
has 'which is told' "$ERR" 'error[HN411]: {port:Ray} has no valid name'
has 'with its place' "$ERR" '--label {port:Ray}'
lacks 'a label knows no backslash' "$ERR" 'stays as it is'
hn plan -w a:2 --ranks 0 --label '{port:ray} ' -- true
has 'a plan shows the port of a label' "$OUT" 'HN_PORT_RAY=(free port there)'
done_testing
