#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A role is ready when a port, an HTTP server, a file, a key of the store or a line of output answers: each instance is told once, by role.ready.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hosts=(-w 'localhost:4,127.0.0.1:2' --gpus-per-rank 0)
ready() { # the instances that were told: role, instance, rank, host, and whether in time
    python3 -c 'import json, sys
for e in map(json.loads, open("events")):
    if e["ev"] == "role.ready":
        print(e["role"], e["instance"], e["rank"], e["host"], "late" if e["ms"] > 20000 else "early" if e["ms"] < int(sys.argv[1]) else "ok")' "${1:-0}" | sort
}
job() { hn --json=events "${hosts[@]}" --timeout 60s "$@"; }

# Servers that listen late, each at the port that it finds in PORT, and end a moment after a good answer.
cat >server.py <<'END'
import http.server, os, sys, threading, time
code = [503, 503, 200]
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(code.pop(0) if len(code) > 1 else code[0])
        self.end_headers()
        if len(code) == 1 and self.path == "/health":
            threading.Timer(1, os._exit, [0]).start()
    def log_message(self, *words):
        pass
time.sleep(0.5)
family = http.server.ThreadingHTTPServer
if sys.argv[1] == "::1":
    import socket
    family.address_family = socket.AF_INET6
family((sys.argv[1], int(sys.argv[2])), Answer).serve_forever()
END
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
job --role web --nodes 1 -n 1 --ready "http:$port/health" python3 server.py 127.0.0.1 "$port" : --role other --nodes 1 -n 1 sh -c 'sleep 0.1'
exits 'a server that is ready late' 0
is 'is asked until its status is good' "$(ready 700)" 'web 0 0 localhost ok'

port=$(free_port)
exits 'a port by its name' 0 job --role web --nodes 1 -n 1 --ready http:/health -x HN_PORT_HTTP="$port" python3 server.py 127.0.0.1 "$port"
is 'is that of the rank' "$(ready 700)" 'web 0 0 localhost ok'
for command in '' plan; do
    # shellcheck disable=SC2086
    hn $command "${hosts[@]}" --role other --nodes 1 true : --role web --nodes 1 --ready tcp:grpc sh -c 'touch started'
    exits 'a name that is no port of the rank' 64
    has 'is told before the start' "$ERR" 'error[HN411]: role `web`: --ready asks the port `grpc`, and nothing reserves it'
    has 'with what reserves it' "$ERR" 'help: write {port:grpc} where the program of `web` takes its port'
done
ok 'nothing was started' test ! -e started
job --role web --nodes 1 -n 1 --ready tcp:grpc -x HN_PORT_GRPC=none sleep 30
ok 'a variable that is no number' test "$RC" -ne 0
has 'is told by the agent' "$ERR" '--ready asks the port `grpc`, and this rank has no port of this name'

if [ -e /proc/net/if_inet6 ] && grep -q '^00000000000000000000000000000001 ' /proc/net/if_inet6; then
    port=$(free_port)
    exits 'a server at ::1 alone' 0 job --role web --nodes 1 -n 1 --ready "http:$port/health" python3 server.py ::1 "$port"
    is 'is found there' "$(ready)" 'web 0 0 localhost ok'
else
    skip 'a server at ::1 alone' 'no IPv6'
fi

job --role f --nodes 1 -n 2 --chdir "$PWD" --ready file:up-here sh -c '[ $RANK = 0 ] && sleep 0.3 && touch up-here; sleep 1.5'
exits 'a file in the folder of the rank' 0
is 'makes each rank ready, as each is an instance' "$(ready 200)" 'f 0 0 localhost ok
f 1 1 localhost ok'

hn --local 1 --contain pidns true
if [ "$RC" = 0 ]; then # an agent in such a namespace can make no threads
    rm -f up-here
    hn --json=events --local 1 --contain pidns --timeout 60s --role f --ready "file:$PWD/up-here" sh -c 'sleep 0.3; touch up-here; sleep 1'
    exits 'a file, with a process namespace' 0
    is 'makes the rank ready, too' "$(ready 200)" 'f 0 0 localhost ok'
else
    skip 'a file, with a process namespace' 'the kernel makes none'
fi

job --role r --nodes 1 --replicas 2 -n 2 --ready file:/ sleep 0.5 : --role s --on r:0 --ready line:^up sh -c 'echo starting; echo up; echo up; sleep 0.5'
exits 'replicas' 0
is 'are instances, named by their first ranks' "$(ready)" 'r 0 0 localhost ok
r 1 2 127.0.0.1 ok
s 0 4 localhost ok'

# The rank that writes the line is not the first of its replica; stdout and stderr, colours, no output on the terminal.
exits 'a line of any rank of a replica' 0 job --show 0 --role a --nodes 1 --replicas 2 -n 2 --ready 'line:^INFO: (up|ready)$' \
    sh -c '[ $RANK = 0 ] || { sleep 0.3; printf "\033[32mINFO\033[0m: up\n" >&2; }; sleep 0.5'
is 'makes the replica ready' "$(ready 200)" 'a 0 0 localhost ok
a 1 2 127.0.0.1 ok'
job --role a --nodes 1 -n 1 --ready line:never sh -c 'echo ever; sleep 0.2' : --role b --on a --ready tcp:1 sleep 0.2
exits 'what never comes' 0
is 'is not told, and costs nothing' "$(ready)" ''

cat >key.py <<END
import os, sys, time
time.sleep(0.3)
if sys.argv[1] == "library":
    import ctypes
    hn = ctypes.CDLL("$PLAIN/libhnlaunch.so")
    hn.hn_store_default.restype = ctypes.c_void_p
    assert hn.hn_init(None) == 0
    assert hn.hn_store_set(ctypes.c_void_p(hn.hn_store_default()), b"model/loaded", b"1", ctypes.c_size_t(1)) == 0
elif sys.argv[1] == "tcp":
    import torch.distributed as d
    d.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), 1, False).set("model/loaded", "1")
else:
    import torch.distributed as d
    d.init_process_group("gloo")
    if d.get_rank() == 1:
        d.distributed_c10d._get_default_store().set("model/loaded", "1")
    d.barrier()
time.sleep(0.3)
END
key() { # HOW WHAT
    job --role k --nodes 1 -n 2 --ready key:model/loaded /usr/bin/python3 key.py "$1" : --role l --nodes 1 -n 1 --ready key:model/loaded sleep 0.5
    exits "a key of $2" 0
    is 'makes the ranks of its world ready, and no other' "$(ready 200)" 'k 0 0 localhost ok
k 1 1 localhost ok'
}
key library libhnlaunch
if /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null; then
    key tcp 'a TCPStore'
    key group 'the store of a group'
else
    skip "a key of PyTorch's store" 'no torch of /usr/bin/python3'
fi

refused() { # VALUE TEXT
    hn_exits "--ready $1 is refused" 64 plan "${hosts[@]}" --role a --ready "$1" true
    has 'with the right form' "$ERR" "error[HN703]: --ready $2"
}
refused soon 'must be start, tcp:PORT, http:PATH, file:PATH, key:NAME or line:REGEX, got `soon`'
refused tcp:99999 'tcp: needs a port, 1 to 65535 or a name, such as tcp:8000 or tcp:http'
refused http:health 'http: needs a path, or a port and a path, such as http:/health'
refused 'line:(a' 'line: needs an extended regular expression, as for grep -E, got `(a`'
hn_exits 'a wrong time is refused' 64 plan "${hosts[@]}" --role a --ready http:/ --ready-timeout soon true
hn_exits 'a time without --ready is refused' 64 plan "${hosts[@]}" --role a --ready-timeout 1m true
has 'with what is missing' "$ERR" 'error[HN729]: role `a`: --ready-timeout, but the role is ready with its start'
hn plan "${hosts[@]}" --role a --per-node --ready key:x true
has 'a process of --per-node has no key' "$ERR" 'error[HN729]: role `a`: --ready key: and --per-node exclude each other'
nothing_left 'nothing is left'
done_testing
