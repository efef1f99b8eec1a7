#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Events, run.json, summary.json and the plan as JSON: programs rely on these names, version 1.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# One line per event: its name, its fields, and those values that are the same in every run.
cat >shape.py <<'EOF2'
import json
import re
import sys

before = -1
for line in open(sys.argv[1], encoding="ascii"):
    e = json.loads(line)
    assert e.pop("v") == 1, line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", e.pop("t")), line
    assert e["us"] >= before, line
    before = e.pop("us")
    name = e.pop("ev")
    for changing in "run", "pid", "text":
        if changing in e:
            assert e[changing], line
            e[changing] = "*"
    print(name, " ".join("%s=%s" % pair for pair in e.items()))
EOF2

json() { # FILE EXPRESSION,...: what they are with the file's object as d
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(*eval("[" + sys.argv[2] + "]"))' "$@" 2>&1
}

hn --local 2 --log-dir logs --json --max-restarts 1 sh -c '
    [ $RANK = 0 ] && { : >up.$HN_RESTART; exec sleep 60; }
    until [ -e up.$HN_RESTART ]; do sleep 0.05; done
    exit 3'
exits 'a job that fails twice' 3
same 'standard output has the events that the folder has' "$OUT" logs/latest/events.ndjson
attempt='rank.started node=0 host=localhost rank=0 pid=*
rank.started node=0 host=localhost rank=1 pid=*
rank.exited node=0 host=localhost rank=1 code=3
run.stop text=*
rank.exited node=0 host=localhost rank=0 signal=15'
python3 shape.py "$OUT" >shapes 2>&1
# In which order two processes are heard is not said.
is 'the events and their fields' "$(sort shapes)" "$(sort <<<"node.connected node=0 host=localhost
node.ready node=0 host=localhost uploaded=False
run.start run=* nodes=1 ranks=2
$attempt
run.restart node=0 host=localhost rank=1 attempt=1 spares=0 ms=0 text=*
$attempt
run.end rank=1 code=3 hn=HN502 text=*")"
is 'the first and the last' "$(sed -n '1p;$p' shapes)" $'node.connected node=0 host=localhost\nrun.end rank=1 code=3 hn=HN502 text=*'

run=logs/latest/run.json
is 'run.json: its fields' "$(json $run '" ".join(d)')" \
    'v run version host pid started argv cwd line directory socket pid_start world_size num_nodes nodes label show'
is 'what ran, and where' "$(json $run 'd["v"], d["argv"][0], d["cwd"], d["world_size"], d["num_nodes"]')" \
    "1 sh $PWD 2 1"
is 'its nodes' "$(json $run 'd["nodes"]')" \
    "[{'node_rank': 0, 'host': 'localhost', 'slots': 2, 'ranks': [0, 1], 'gpus': []}]"
is 'its name is that of the folder' "$(json $run 'd["run"]')" "$(readlink logs/latest)"

summary=logs/latest/summary.json
is 'summary.json: its fields' "$(json $summary '" ".join(d)')" \
    'v run origin code hn verdict us rank host failures world_size num_nodes'
is 'what became of it' "$(json $summary 'd["v"], d["origin"], d["code"], d["rank"], d["host"]')" "1 worker 3 1 localhost"
is 'the verdict is the last line of stderr' "hnlaunch: $(json $summary 'd["verdict"]')" "$(verdict)"
is 'the failures and their fields' "$(json $summary '[{k: v for k, v in f.items() if k not in ("ms", "us")} for f in d["failures"]]')" \
    "[{'rank': 1, 'host': 'localhost', 'echo': False, 'code': 3}]"

is 'the time of a failure is in microseconds, as that of the run' \
    "$(json $summary '0 < d["failures"][0]["us"] <= d["us"]')" True

hn --local 1 --log-dir logs sh -c 'kill -SEGV $$'
is 'a rank that is killed' "$(json $summary 'd["origin"], d["code"], d["signal"], d["failures"][0]["signal"]')" 'worker 139 11 11'
hn --local 1 --log-dir logs --timeout 1s sleep 60
is 'a job that hnlaunch ends' "$(json $summary 'd["origin"], d["code"], "rank" in d')" 'launcher 124 False'
hn --local 1 --log-dir logs true
is 'a job that succeeds' "$(json $summary 'd["origin"], d["code"], d["failures"]')" 'worker 0 []'

hn --local 2 --log-dir logs "$BUILD/tests/clients/stepping" 3000
python3 shape.py logs/latest/events.ndjson >shapes 2>&1
progress() { grep "^rank.progress .*rank=$1 " shapes; } # RANK
is 'the first step of a rank is an event' "$(progress 0 | head -n 1)" \
    'rank.progress node=0 host=localhost rank=0 step=1 total=5000 text=*'
is 'its last one, too' "$(progress 1 | tail -n 1)" 'rank.progress node=0 host=localhost rank=1 step=3000 total=5000'
ok 'but not each of them' test "$(progress 0 | wc -l)" -lt 1500

echo 'gpu001 slots=2 gpus=4-5 user=me port=2200 addr=10.0.0.1' >hosts
hn plan --json -H hosts --export NONE -x A=1 "$BUILD/hnlaunch" --version
is 'the plan: its fields' "$(json "$OUT" '" ".join(d)')" \
    'v world_size num_nodes per_node probed nodes spares argv cwd exports'
is 'its node' "$(json "$OUT" '{k: v for k, v in d["nodes"][0].items() if k not in ("ranks", "file")}')" \
    "{'node': 0, 'host': 'gpu001', 'user': 'me', 'port': 2200, 'addr': '10.0.0.1', 'via': None, 'slots': 2, 'gpus': [4, 5], 'line': 1}"
is 'its ranks' "$(json "$OUT" 'd["nodes"][0]["ranks"]')" \
    "[{'rank': 0, 'local_rank': 0, 'gpus': [4]}, {'rank': 1, 'local_rank': 1, 'gpus': [5]}]"
is 'what is exported, by name' "$(json "$OUT" 'd["exports"]')" "['A']"
done_testing
