#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --metrics serves what the head knows of the run in the text format of Prometheus, on this machine only unless an
# address is given. Bad requests and idle connections do the run no harm.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >ranks.sh <<'END'
echo "step $((4 + RANK))/50"
printf error >&2
until [ -e "end$RANK" ]; do sleep 0.1; done
END
cat >scrape.py <<'END'
"""Prints the samples, and checks the form of the text: each metric has HELP and TYPE once, and its samples follow."""
import re
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", answer.headers
    assert answer.headers["Connection"] == "close"
    text = answer.read().decode()
assert text.endswith("\n")
known, now, lines = set(), None, text.splitlines()
for i, line in enumerate(lines):
    if line.startswith("# HELP "):
        now = line.split()[2]
        assert now not in known and re.fullmatch(rf"# TYPE {now} (gauge|counter)", lines[i + 1]), line
        known.add(now)
    elif not line.startswith("# TYPE "):
        assert re.fullmatch(rf'{now}({{(\w+="[^"\\]*",?)+}})? -?[0-9.]+', line), line
        print(line)
END
cat >ask.py <<'END'
"""Sends bytes to a port and prints the status of the answer, or "closed"."""
import socket
import sys

s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=120)
s.sendall(sys.argv[2].encode().decode("unicode_escape").encode("latin-1") * int(sys.argv[3] if sys.argv[3:] else 1))
answer = b""
try:
    while piece := s.recv(65536):
        answer += piece
except ConnectionResetError:
    pass
print(answer.split()[1].decode() if answer else "closed")
END
scrape() { python3 scrape.py "$URL" >samples; }
shows() { scrape && grep -qxF -- "$1" samples; }
listens() { # OPTION...: starts and sets URL and PORT
    rm -f end?
    start "$@" --progress-re 'step ([0-9]+)/([0-9]+)' --local 2 sh ranks.sh
    wait_for grep -q 'metrics at http' "$ERR"
    URL=$(sed -n 's/^hnlaunch: metrics at //p' "$ERR")
    PORT=${URL##*:} PORT=${PORT%%/*}
}

# --- a run ----------------------------------------------------------------------------------------
listens --metrics 0
ok 'a free port of 127.0.0.1 is told' test "$URL" = "http://127.0.0.1:$PORT/metrics"
ok 'steps are there' wait_for shows 'hnlaunch_rank_step{rank="1",host="localhost"} 5'
ok 'so is their number' wait_for shows 'hnlaunch_rank_steps_expected{rank="0",host="localhost"} 50'
ok 'bytes of standard output' wait_for shows 'hnlaunch_rank_output_bytes_total{rank="0",host="localhost",stream="stdout"} 10'
ok 'bytes of standard error' wait_for shows 'hnlaunch_rank_output_bytes_total{rank="1",host="localhost",stream="stderr"} 5'
ok 'two ranks run' wait_for shows 'hnlaunch_ranks{state="running"} 2'
has 'on one node' samples 'hnlaunch_nodes{state="running"} 1'
has 'the version' samples "version=\"$("$HNLAUNCH" version | head -n 1 | sed 's/^hnlaunch //')\"} 1"
has 'the attempt' samples 'hnlaunch_attempt 0'
ok 'times are those of now' python3 -c '
import sys, time
for line in open("samples"):
    name, value = line.rsplit(" ", 1)
    if "seconds" in name:
        assert -5 < time.time() - float(value) < 3600, line
        print(line)'
is 'there are three kinds of times' "$(grep -o '^[a-z_]*seconds' samples | sort -u | xargs)" \
    'hnlaunch_node_last_heard_timestamp_seconds hnlaunch_rank_last_output_timestamp_seconds hnlaunch_start_time_seconds'
is 'the port is open on 127.0.0.1 only' \
    "$(awk -v port="$(printf ':%04X' "$PORT")" '$4 == "0A" && index($2, port) { print $2 }' /proc/net/tcp /proc/net/tcp6)" \
    "0100007F$(printf ':%04X' "$PORT")"
touch end0
ok 'the end of a rank is told' wait_for shows 'hnlaunch_ranks{state="succeeded"} 1'

# --- requests ---------------------------------------------------------------------------------------
asks() { is "$1: $2" "$(python3 ask.py "$PORT" "${@:3}")" "$2"; } # NAME ANSWER BYTES [TIMES]
asks 'GET /metrics' 200 'GET /metrics HTTP/1.0\r\n\r\n'
asks 'GET /' 404 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
for host in "127.0.0.1:$PORT" "LOCALHOST:$PORT" '[::1]' "$(hostname)"; do
    asks "Host: $host" 200 "GET /metrics HTTP/1.1\r\nHost: $host\r\n\r\n"
done
for host in x "localhost.evil.example:$PORT" 127.0.0.1.evil.example "$(hostname).evil.example"; do
    asks "Host: $host, a name that leads here" 421 "GET /metrics HTTP/1.1\r\nA: b\r\nhost: $host\r\n\r\n"
done
asks 'GET of another path' 404 'GET /../etc/passwd HTTP/1.1\r\n\r\n'
asks 'POST' 405 'POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody'
asks 'no HTTP' 400 '\x16\x03\x01\x00\n'
asks 'HTTP/2' 400 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
asks 'a request beyond 8 KiB' 400 'GET /metrics HTTP/1.1\r\nA: b' 1000
asks 'a line beyond 8 KiB' 400 'A' 8192
asks 'many requests at once' 200 'GET /metrics HTTP/1.1\r\n\r\n' 1000
asks 'half a request' closed 'GET /metrics HT'
is 'of more than 64 connections the oldest give way, and no silent one keeps a scraper out' "$(python3 - "$PORT" <<'END'
import socket
import sys
import urllib.request

def closed(s):
    s.settimeout(8)  # idle ones are closed after 10 s
    try:
        return s.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True

port = int(sys.argv[1])
idle = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(70)]
print(sum(closed(s) for s in idle[:6]), end=" ")
with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
    print(answer.status)
for s in idle:
    s.close()
END
)" '6 200'
ok 'then the metrics are served again' wait_for scrape
python3 -c '
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
s.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
s.close()' "$PORT"
ok 'a client that leaves early does no harm' scrape

# --- errors -----------------------------------------------------------------------------------------
hn_exits 'a port in use: 69' 69 --metrics "$PORT" --local 1 touch started
has 'a port in use: HN334' "$ERR" "error[HN334]: cannot serve --metrics $PORT: "
has 'with the next step' "$ERR" 'help: take another port'
hn_exits 'an address of another machine: 69' 69 --metrics 192.0.2.1:0 --local 1 true
has 'the next step is about the address' "$ERR" 'help: take an address of this machine; 0.0.0.0 is all of them'
touch end1
exits 'the run ends well' 0 finish
is 'the port is closed with it' "$(python3 ask.py "$PORT" x 2>&1 | grep -c ConnectionRefused)" 1
for address in 65536 :9400 ::1:9400 host: /run/sock; do
    hn_exits "$address: 64" 64 --metrics "$address" --local 1 touch started
    has "$address: HN333" "$ERR" "error[HN333]: cannot use --metrics $address: "
done
hn_exits 'the address of another machine: 69' 69 --metrics 203.0.113.7:0 --local 1 touch started
ok 'nothing was started' test ! -e started

# --- why it ends ----------------------------------------------------------------------------------
serves() { # OPTION...: starts and sets URL
    start --metrics 0 "$@"
    wait_for grep -q 'metrics at http' "$ERR"
    URL=$(sed -n 's/^hnlaunch: metrics at //p' "$ERR")
}
reason() { sed -n "s/^hnlaunch_$1_info{reason=\"\(.*\)\"} 1$/\1/p" samples; }
tells() { scrape && [[ -n $(reason "$1") ]]; }
rm -f end
serves --local 2 --grace 60s sh -c '
    [ "$RANK" = 0 ] || { until [ -e trapped ]; do sleep 0.05; done; exit 7; }
    trap : TERM; touch trapped; until [ -e end ]; do sleep 0.05; done'
ok 'while ranks are stopped it is told why' wait_for tells stop
touch end
finish
is 'who failed' "$(reason stop)" 'rank 1 on localhost exited with code 7'
has 'as in the verdict' "$ERR" ": $(reason stop)  (exit 7)"
serves --local 3 --hang-after 1s "$BUILD/tests/clients/hanging" stop 1
ok 'a hang is told' wait_for tells hang
run=$(sed -n 's/^hnlaunch: run \([^:]*\):.*/\1/p' "$ERR")
"$HNLAUNCH" stop "$run" >stopped 2>&1
finish
hn report --json "$run"
is 'in the words of the report' "$(reason hang)" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["why"])' <"$OUT")"

# --- other addresses --------------------------------------------------------------------------------
if python3 -c 'import socket; socket.socket(socket.AF_INET6).bind(("::1", 0))' 2>/dev/null; then
    listens --metrics '[::1]:0'
    ok 'IPv6' wait_for shows 'hnlaunch_ranks{state="running"} 2'
    touch end0 end1
    exits 'IPv6: the run ends well' 0 finish
else
    skip 'IPv6' 'there is no ::1'
fi
done_testing
