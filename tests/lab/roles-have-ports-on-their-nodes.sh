#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ports of a role are reserved on the node of each instance, over ssh. Two jobs at once on the same nodes share few ports without a
# collision.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 4
cat >talk.py <<'END'
"""serve PORT HOST: answers two connections. ask HOST:PORT...: prints the answers."""
import socket
import sys
import time

what, *words = sys.argv[1:]
if what == "serve":
    time.sleep(0.2)
    with socket.create_server(("", int(words[0]))) as server:
        for _ in range(2):
            peer, _ = server.accept()
            peer.sendall(words[1].encode())
            peer.close()
else:
    for word in words:
        host, port = word.rsplit(":", 1)
        for _ in range(400):
            try:
                peer = socket.create_connection((host, int(port)))
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        print(peer.recv(99).decode(), flush=True)
END
job=(-H "$TMP/hosts.txt" --gpus-per-rank 0 --role serve --nodes 3 -n 6 --map node /usr/bin/python3 "$PWD/talk.py" serve '{port:http}' '{serve.addr}' :
    --role ask --on serve:last -n 2 /usr/bin/python3 "$PWD/talk.py" ask '{serve.each:{addr}:{port:http}}')

for way in '' '--tree 2'; do
    # shellcheck disable=SC2086
    lab_hn $way "${job[@]}"
    exits "instances on three nodes${way:+ with $way} are reached" 0
    is 'each by both ranks' "$(wc -l <"$OUT")" 12
    lab_nothing_left 'nothing is left on the nodes'
done

lab_hn -H "$TMP/hosts.txt" --gpus-per-rank 0 --label none --role a --nodes 3 -n 3 --map node sh -c 'hostname' : --role b --on a:0 sh -c 'echo "$@"' x '{a.each:{host}={addr}}'
exits 'addresses are those of the nodes' 0
net=$LAB_NET
has 'of each instance' "$OUT" "node001=$net."
is 'a different one each' "$(grep -oE "$net\.[0-9.]+" "$OUT" | sort -u | wc -l)" 3

# With 20 ports on each node, the kernel gives a released port to the next job within a moment.
for n in 1 2 3; do
    lab exec node00$n sh -c 'echo 40000 40019 >/proc/sys/net/ipv4/ip_local_port_range' || skip 'few ports' 'the range of ports cannot be set'
done
few=(-H "$TMP/hosts.txt" --gpus-per-rank 0 --role a --nodes 3 -n 9 --map node /usr/bin/python3 "$PWD/bind.py" '{port:x}' : --role b --on a:0 /usr/bin/python3 "$PWD/bind.py" '{port:y}')
cat >bind.py <<'END'
import socket
import sys
import time

time.sleep(0.3)
server = socket.create_server(("", int(sys.argv[1])))
time.sleep(0.3)
END
failed=0
for _ in 1 2 3 4 5; do
    for i in 1 2; do
        lab run "$LAB_HNLAUNCH" --log-dir none "${few[@]}" >"out.$i" 2>&1 &
        pids[i]=$!
    done
    for i in 1 2; do
        wait "${pids[i]}" || { failed=$((failed + 1)) && cat "out.$i" >&2; }
    done
done
is 'two jobs at once share 20 ports of a node, five times' $failed 0
lab_nothing_left 'nothing is left on the nodes'
done_testing
