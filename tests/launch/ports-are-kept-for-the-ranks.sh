#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Free ports of rank 0's node are kept until the ranks start, other ones for each attempt; without one nothing is
# started (HN409). The address of rank 0's node is known to all ranks.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn --local 2 --label none sh -c 'echo "$HN_MASTER_ADDR"'
is 'on one node HN_MASTER_ADDR is 127.0.0.1' "$(sort -u "$OUT")" 127.0.0.1
for endpoint in network loopback none; do
    hn -w 'localhost,127.0.0.1' --store-listen "$endpoint" --label none sh -c 'echo "$HN_MASTER_ADDR $MASTER_ADDR"'
    address=$(sort -u "$OUT")
    is "$endpoint: all ranks have the same HN_MASTER_ADDR" "$(wc -l <<<"${address%% *}")" 1
    ok "$endpoint: it is a numeric address of the network" grep -qE '^([0-9]+\.){3}[0-9]+ |^[0-9a-f:]+ ' <<<"$address"
    [[ $endpoint == loopback ]] || is "$endpoint: it is MASTER_ADDR" "${address% *}" "${address#* }"
    ok "$endpoint: it is not this machine's loopback" test "${address%%.*}" != 127
done

cat >listen.py <<'END'
import os
import socket
import sys

s = socket.socket()
s.bind(("", int(os.environ["MASTER_PORT"])))
s.listen()
print(os.environ["HN_RESTART"], os.environ["MASTER_PORT"], flush=True)
sys.exit(os.environ["HN_RESTART"] != "2")
END
hn --local 1 --store-listen none --max-restarts 2 --label none python3 listen.py
exits 'a rank listens at MASTER_PORT in each attempt' 0
is 'there were three' "$(cut -d' ' -f1 "$OUT" | xargs)" '0 1 2'

# A network in which there is one port for programs, or none.
if ! unshare -rn true 2>/dev/null; then
    skip 'no free port' 'this machine does not allow new namespaces'
    done_testing
fi
cat >without.sh <<'END'
ip link set lo up
echo 40000 40000 >/proc/sys/net/ipv4/ip_local_port_range
python3 -c 'import socket, subprocess, sys
s = socket.socket(socket.AF_INET6)
s.bind(("::", 40000))
subprocess.run(sys.argv[1:])' "$@"
END
run unshare -rn sh without.sh "$HNLAUNCH" --local 1 --store-listen none echo started
has 'no free port: HN409' "$ERR" 'error[HN409]: cannot reserve the ports for the ranks on localhost: Address already in use'
has 'with a next step' "$ERR" ip_local_port_range
verdict_has 'nothing was started' 'nothing was started'
lacks 'really nothing' "$OUT" started
done_testing
