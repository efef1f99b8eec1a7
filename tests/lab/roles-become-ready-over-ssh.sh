#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Servers on other nodes listen late, at their node's own address or at 127.0.0.1 only, where the head cannot reach them: their agents ask them.
# Through other nodes, too (--tree).
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 2 2
cat >server.py <<'END'
import http.server, os, socket, sys, threading, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        threading.Timer(0.5, os._exit, [0]).start()
time.sleep(0.5)
here = os.environ["MASTER_ADDR"] if sys.argv[1] == "own" else "127.0.0.1"
http.server.ThreadingHTTPServer((here, int(sys.argv[2])), Answer).serve_forever()
END
ready() {
    python3 -c 'import json
for e in map(json.loads, open("events")):
    if e["ev"] == "role.ready":
        print(e["role"], e["instance"], e["rank"], e["host"], e["ms"] >= 400)' | sort
}
for way in '' '--tree 1'; do
    # shellcheck disable=SC2086
    lab_hn --json="$PWD/events" -H "$TMP/hosts.txt" $way --gpus-per-rank 0 \
        --role own --nodes 1 -n 1 --ready http:23571/health python3 "$PWD/server.py" own 23571 : \
        --role loop --nodes 1 -n 1 --ready http:23572/health python3 "$PWD/server.py" loop 23572 : \
        --role lines --on loop --ready line:^up sh -c 'sleep 0.5; echo up; sleep 0.2'
    exits "servers${way:+ with $way} on two nodes" 0
    is 'are asked there' "$(ready)" 'lines 0 2 node002 True
loop 0 1 node002 True
own 0 0 node001 True'
done
lab_nothing_left 'nothing is left on the nodes'
done_testing
