#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With --json standard output has one JSON object per line and nothing else; what ranks write goes to
# stderr. --json=FILE leaves both streams alone. Every run ends with run.end.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

is_json() { # FILE: every line of it is an object
    python3 -c 'import json, sys
for line in open(sys.argv[1]):
    assert isinstance(json.loads(line), dict), line' "$1"
}

field() { # FILE EXPRESSION: of its last object
    python3 -c 'import json, sys
e = json.loads(open(sys.argv[1]).readlines()[-1])
print(*eval(sys.argv[2]))' "$@" 2>&1
}

# --- where things go ------------------------------------------------------------------------------

hn_exits 'a run with --json gives 0' 0 --json --local 2 sh -c 'echo "out $RANK"; echo "err $RANK" >&2'
ok 'stdout has objects only' is_json "$OUT"
for text in '0 | out 0' '1 | out 1' '0 | err 0' '1 | err 1'; do
    ok "stderr has \"$text\"" grep -qx "$text" "$ERR"
done
is 'the last object is run.end' "$(field "$OUT" 'e["ev"], e["code"], e["hn"], e["text"][:17]')" 'run.end 0 None finished: 2 ranks'

hn_exits 'so does --json=FILE' 0 --json=events --local 2 sh -c 'echo "out $RANK"; echo "err $RANK" >&2'
is 'stdout is that of the ranks' "$(sort "$OUT")" $'0 | out 0\n1 | out 1'
ok 'the file has objects only' is_json events
is 'to the end' "$(field events 'e["ev"], e["code"]')" 'run.end 0'
is 'and from the beginning' "$(head -n 1 events | grep -c node.connected)" 1
hn --json 1 --local 1 true
ok '--json takes no word that stands apart' test ! -e 1
hn --json=- --local 1 true
ok '- is standard output' is_json "$OUT"

hn_exits 'a file that cannot be opened: 73' 73 --json=nowhere/events --local 1 true
told_once 'it is named, once' 'cannot write events to nowhere/events: No such file'
verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 73)'

"$HNLAUNCH" --json --local 2 sh -c 'printf x; exit 3' >both 2>&1
grep '^{' both >objects
ok 'both streams in one file: objects have lines of their own' is_json objects
ok 'nothing else has a brace' sh -c "! grep -v '^{' both | grep -q '{'"
is 'to the end' "$(field objects 'e["ev"], e["code"]')" 'run.end 3'

hn plan --json=plan --local 2
ok 'the plan goes to a file, too' python3 -m json.tool plan
is 'and stdout is empty' "$(cat "$OUT")" ''
hn_exits 'a plan that cannot be written: 73' 73 plan --json=nowhere/plan --local 2

# What hnlaunch cannot write is no failure of a rank.
"$HNLAUNCH" --local 3 sh -c 'echo hi; exit 3' 2>"$ERR" >/dev/full
lacks 'a stdout that cannot be written is not counted as a failure of a rank' "$ERR" '4 failures in all'

# --- every run ends -------------------------------------------------------------------------------

ends() { # NAME WANT ARG...: code, HN number and the beginning of the text of run.end
    local name=$1 want=$2
    shift 2
    rm -rf logs
    hn --json --log-dir logs "$@"
    is "$name: run.end" "$(field "$OUT" 'e["ev"], e["code"], e["hn"], e["text"].split(" ")[0]')" "run.end $want"
    ok "$name: stdout has objects only" is_json "$OUT"
    is "$name: there is one" "$(grep -c '"ev":"run.end"' "$OUT")" 1
}
recorded() { # NAME CODE HN
    is "$1: summary.json" "$(python3 -c 'import json
d = json.load(open("logs/latest/summary.json"))
print(d["code"], d["hn"], d["origin"], d["verdict"][:3], len(d["failures"]))' 2>&1)" "$2 $3 launcher not 0"
    same "$1: the folder has the events" "$OUT" logs/latest/events.ndjson
}

printf '#!/bin/sh\nexit 255\n' >no-ssh
chmod +x no-ssh
ends 'no host is reached' '68 HN201 nothing' -w nonode --ssh-command ./no-ssh true
recorded 'no host is reached' "$RC" HN201
ends 'a bad hostfile' '66 HN106 nothing' -H nofile true
recorded 'a bad hostfile' 66 HN106
ends 'an unknown option' '64 HN701 nothing' --bogus --local 1 true
ends 'a bad value' '64 HN703 nothing' -n 0 --local 1 true
ends 'no program' '64 HN705 nothing' --local 1
ok 'a line that cannot be read leaves no folder' test ! -e logs
ends 'a program that is not there' '127 HN312 failed' --local 1 ./nothing
ends 'a rank that fails' '5 HN502 failed' --local 1 sh -c 'exit 5'
hn plan --json -H nofile
is 'a plan is no run' "$(cat "$OUT")" ''

# --- latest ---------------------------------------------------------------------------------------

rm -rf logs
hn --log-dir logs --local 1 true
first=$(readlink logs/latest)
rm -f go
start --log-dir logs --local 1 sh -c ': >up; until [ -e go ]; do sleep 0.05; done'
wait_for test -e up
is 'latest stays where it is while a run goes on' "$(readlink logs/latest)" "$first"
: >go
finish
ok 'and follows when it has ended' test "$(readlink logs/latest)" != "$first" -a -s logs/latest/summary.json
is 'nothing else is left beside the folders' "$(find logs -maxdepth 1 -type l | wc -l)" 1

# --- PyTorch's ranks ------------------------------------------------------------------------------

cat >client.py <<'EOF2'
# Opens a connection to PyTorch's store as its TCPStore does (a command that sets a key), and keeps it.
import os, socket, struct, time
while os.environ["RANK"] == "2" and not os.path.exists("late"):
    time.sleep(0.05)
s = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
key = b"init/" + os.environ["RANK"].encode()
s.sendall(b"\x00" + struct.pack("<Q", len(key)) + key + struct.pack("<Q", 1) + b"1")
while not os.path.exists("joined"):
    time.sleep(0.05)
EOF2
rm -f joined late
start --json=joins --local 3 python3 client.py
joins_are() { [[ $(grep -c '"ev":"rank.joined"' joins) -ge $1 ]]; }
ok 'ranks that come to the TCP endpoint have joined' wait_for joins_are 2
: >late
ok 'so has one that comes later' wait_for joins_are 3
: >joined
finish
is 'each once' "$(grep '"rank.joined"' joins | grep -o '"rank":[0-9]*' | sort | tr '\n' ' ')" '"rank":0 "rank":1 "rank":2 '

rm -rf joined "$XDG_STATE_HOME/hnlaunch/runs"
start --local 2 python3 client.py
recorded() { [[ $(cat "$XDG_STATE_HOME"/hnlaunch/runs/*/events.ndjson | grep -c '"ev":"rank.joined"') -ge $1 ]]; }
ok 'the records tell joins, too' wait_for recorded 2
: >joined
finish
done_testing
