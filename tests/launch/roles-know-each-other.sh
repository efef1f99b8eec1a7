#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Arguments, variables and labels of a job of roles refer to addresses and ports of roles. Each instance has ports of its own.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hosts=(-w localhost:2,127.0.0.1:2,127.0.0.2:4 --gpus-per-rank 0)
cat >talk.py <<'END'
"""serve PORT: answers one connection with the port. ask HOST:PORT...: prints the answers."""
import socket
import sys
import time

what, *words = sys.argv[1:]
if what == "serve":
    with socket.create_server(("", int(words[0]))) as server:
        peer, _ = server.accept()
        peer.sendall(words[0].encode())
        peer.close()
else:
    for word in words:
        host, port = word.removeprefix("http://").rsplit(":", 1)
        for _ in range(3000):
            try:
                peer = socket.create_connection((host, int(port)))
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        print("right" if peer.recv(99).decode() == port else "wrong")
END

hn "${hosts[@]}" --label none --role serve --nodes 2 -n 3 /usr/bin/python3 talk.py serve '{port:http}' : \
    --role ask --nodes 1 -n 1 /usr/bin/python3 talk.py ask '{serve.each:{addr}:{port:http}}'
exits 'a role reaches each instance of another one' 0
is 'at the port of the instance' "$(cat "$OUT")" 'right
right
right'

hn "${hosts[@]}" --label none --role serve --nodes 2 -n 2 sh -c 'exec /usr/bin/python3 talk.py serve $HN_PORT_HTTP' : \
    --role ask -x 'URLS={serve.urls:http}' --nodes 1 -n 1 sh -c 'echo "$URLS" | tr , "\n" | xargs /usr/bin/python3 talk.py ask'
exits 'a reference of another role reserves the port' 0
is 'which stands in HN_PORT_HTTP of each instance' "$(cat "$OUT")" 'right
right'

# Every form, in arguments and variables of a role and of the job.
show='for a; do echo "$a"; done; echo "$A $B $HN_PORT_P"'
hn "${hosts[@]}" --label none -x 'A={a.hosts}' --role a --nodes 2 -n 3 true : \
    --role b --nodes 1 -n 1 -x 'B={port:p}/{rank}' sh -c "$show" x '{a.each:{host} {index}}' 'x={a.each:{host}}' '\{a.addr} ${a.addr} {rank} {"a": 1}' \
    '{port:p}/{b.port:p}' '\{port:p}'
exits 'every form is replaced' 0
port=$(awk 'END { print $3 }' "$OUT")
is 'and all else stays' "$(cat "$OUT")" "localhost
0
localhost
1
127.0.0.1
2
x=localhost localhost 127.0.0.1
{a.addr} \${a.addr} {rank} {\"a\": 1}
$port/$port
{port:p}
localhost,127.0.0.1 $port/{rank} $port"

hn "${hosts[@]}" --label none --subst --role a --nodes 1 -n 1 sh -c 'echo "$@"' x '{rank} \{rank} {port:p} \{port:p} {b.hosts}' : --role b --nodes 1 -n 1 true
exits '--subst has its place-holders beside' 0
ok 'both are replaced once' grep -qE '^0 \{rank\} [0-9]+ \{port:p\} 127\.0\.0\.1$' "$OUT"

hn "${hosts[@]}" --label '{role} {rank} {a.port:x} | ' --wrap 'env W={port:w}' --role a --nodes 1 -n 1 sh -c 'echo $HN_PORT_X' : \
    --role b --nodes 1 -n 2 sh -c 'echo $W $HN_PORT_W'
exits 'a label refers to a role' 0
ok 'with the port of the role' awk '$1 == "a" { good = $3 == $NF } END { exit !good }' "$OUT"
ok 'a wrapper has the port of the instance' awk '$1 == "b" { n += $5 == $6 && !seen[$5]++ } END { exit n != 2 }' "$OUT"

# A replica is one instance: its ranks share the port, on the node of its rank 0.
hn "${hosts[@]}" --label none --role r --nodes 1 -n 2 --replicas 2 sh -c 'echo "$HN_ROLE_INDEX $1"; [ "$HN_ROLE_INDEX$RANK" != 00 ] || echo "$HN_ROLES"' x '{port:p}' : \
    --role one --nodes 1 -n 1 sh -c 'echo "book $HN_ROLES"'
exits 'replicas run' 0
is 'each replica has one port' "$(grep -E '^[01] ' "$OUT" | sort -u | wc -l) $(grep -cE '^[01] ' "$OUT")" '2 4'
is 'HN_ROLES has all instances' "$(sed -n 's/^book //p' "$OUT" | python3 -c 'import json, sys
book = json.load(sys.stdin)
for role in sorted(book):
    for i in book[role]["instances"]: print(role, i["index"], i["host"], sorted(i), sorted(i["ports"]))')" \
    "one 0 127.0.0.2 ['addr', 'host', 'index', 'ports'] []
r 0 localhost ['addr', 'host', 'index', 'ports'] ['p']
r 1 127.0.0.1 ['addr', 'host', 'index', 'ports'] ['p']"
is 'the same in all ranks' "$(sed -n 's/^book //; /^{/p' "$OUT" | sort -u | wc -l)" 1

hn -w localhost:4 --label none --gpus-per-rank 0 --role a --nodes 1 -n 1 true : --role b --on a sh -c 'echo $1' x '{a.addr}'
exits 'roles on one node' 0
is 'meet at the address of the machine itself' "$(cat "$OUT")" 127.0.0.1

# Every attempt has ports anew, and the others learn them.
hn "${hosts[@]}" --label none --max-restarts 1 --role a --nodes 1 -n 1 sh -c 'echo "a $HN_RESTART $1"; until [ -e told ]; do sleep 0.05; done; [ $HN_RESTART = 1 ]' x '{port:p}' : \
    --role b --nodes 1 -n 1 sh -c 'echo "b $HN_RESTART $1"; : >told; sleep 60 & [ $HN_RESTART = 1 ] || wait' x '{a.port:p}'
exits 'a job of roles is started again' 0
is 'with the ports of the attempt' "$(awk '{ port[$2 " " $1] = $3 } END { print (port["0 a"] == port["0 b"]), (port["1 a"] == port["1 b"]), NR }' "$OUT")" '1 1 4'

hn "${hosts[@]}" --role a --nodes 1 echo 'x={b.adr}' : --role b --nodes 1 -x 'U=http://{aa.addr}' echo '{port:Http}'
exits 'wrong references are refused' 64
is 'with a caret each' "$(grep -cE '^   \| +\^+' "$ERR")" 3
has 'a word' "$ERR" '^^^ did you mean `addr`?'
has 'a role' "$ERR" 'error[HN414]: there is no role `aa`'
has 'its place' "$ERR" '--> -x of role b'
has 'a name' "$ERR" 'error[HN411]: `Http` is no valid name of a port'
lacks 'nothing is connected' "$ERR" 'hnlaunch: run '
hn "${hosts[@]}" -x 'U={port:http}' --role a --nodes 1 true : --role b --nodes 1 true
exits 'a port of no role is refused' 64
has 'with the other form' "$ERR" '{ROLE.port:http} is the port of the first instance of ROLE'

hn plan "${hosts[@]}" --role a --nodes 1 true '{port:p}' : --role b --nodes 1 true '{a.urls:http} {port:z}'
exits 'plan shows' 0
ok 'address and ports of a role' grep -qE '^a +2 +1 +localhost +0-1 .*\(address of localhost\) +p,http *$' "$OUT"
ok 'of another one' grep -qE '^b .*\(address of 127\.0\.0\.1\) +z *$' "$OUT"
hn plan --json "${hosts[@]}" --role a --nodes 1 true '{port:p}' : --role b --nodes 1 true
is 'JSON has them' "$(python3 -c 'import json, sys
for r in json.load(open(sys.argv[1]))["roles"]: print(r["name"], r["address"], r["ports"])' "$OUT")" "a (address of localhost) ['p']
b (address of 127.0.0.1) []"
hn plan --ranks 2 "${hosts[@]}" --role a --nodes 1 -n 2 true '{port:p}' : --role b --nodes 1 true '{a.addr}:{a.port:p}' '{port:z}'
has 'the words of a rank' "$OUT" "# program true '(address of localhost):(free port there)' '(free port there)'"
has 'and its port' "$OUT" 'HN_PORT_Z=(free port there)'

# 52 instances with 64 ports of long names are more than a variable may have.
long=$(for i in $(seq 10 73); do echo "{port:a_port_with_quite_a_long_name_$i}"; done)
# shellcheck disable=SC2086
hn -w localhost:60 --gpus-per-rank 0 --role a -n 60 sh -c 'echo ${HN_ROLES-none}' $long : --role b --on a true
exits 'a book that is too long' 0
is 'is left out' "$(sort "$OUT" | sed 's/.*| //' | sort -u)" none
is 'and told once' "$(grep -cF 'warning[HN415]: HN_ROLES is not set' "$ERR")" 1

done_testing
