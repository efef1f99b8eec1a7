#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What is kept of a job with roles knows them: run.json, summary.json and the events.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

job=(-w localhost:4,127.0.0.1:2,127.0.0.2:2 --gpus-per-rank 0)
read_json='import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))'

hn --log-dir "$TMP/records" "${job[@]}" --role a --nodes 1 -n 2 sh -c 'echo "out of $RANK"; exec sleep 60' \
    : --role b --nodes 2 -n 4 sh -c 'echo "out of $RANK"; sleep 0.5; [ $RANK = 3 ] || exec sleep 60; exit 3'
exits 'a rank of the second role fails' 3
record="$TMP/records/latest"
roles='[(r["name"], r["replica"], r["world"], r["first"], r["size"], r["role_rank"], r["nodes"]) for r in d["roles"]]'
is 'run.json has the roles' "$(python3 -c "$read_json" "$record/run.json" "$roles")" "[('a', 0, 0, 0, 2, 0, 1), ('b', 0, 1, 2, 4, 0, 2)]"
is 'summary.json has the same' "$(python3 -c "$read_json" "$record/summary.json" "$roles")" "[('a', 0, 0, 0, 2, 0, 1), ('b', 0, 1, 2, 4, 0, 2)]"
is 'with the role of the first failure' "$(python3 -c "$read_json" "$record/summary.json" '[(x["rank"], x["role"], x["role_rank"]) for x in (d, d["failures"][0])]')" \
    "[(5, 'b', 3), (5, 'b', 3)]"
is 'events name the role of a rank' "$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["ev"] == "rank.started": print(e["rank"], e["role"], e["role_rank"])
    if e["ev"] == "run.end": print("end", e["rank"], e["role"], e["role_rank"])' "$record/events.ndjson" | sort)" '0 a 0
1 a 1
2 b 0
3 b 1
4 b 2
5 b 3
end 5 b 3'

hn --log-dir "$TMP/plain" --local 2 sh -c '[ $RANK = 0 ] || exit 3; exec sleep 60'
exits 'a job without roles' 3
lacks 'has none in run.json' "$TMP/plain/latest/run.json" '"role'
lacks 'nor in summary.json' "$TMP/plain/latest/summary.json" '"role'
lacks 'nor in its events' "$TMP/plain/latest/events.ndjson" '"role'
done_testing
