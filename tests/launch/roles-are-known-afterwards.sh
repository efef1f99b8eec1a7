#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What is kept of a job with roles knows them: run.json, summary.json and the events.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

job=(-w localhost:4,127.0.0.1:2,127.0.0.2:2 --gpus-per-rank 0)
read_json='import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))'

# The rank that fails waits for the lines of all six.
mkdir said
hn --log-dir "$TMP/records" "${job[@]}" --role a --nodes 1 -n 2 sh -c 'echo "out of $RANK"; : >said/a$RANK; exec sleep 60' \
    : --role b --nodes 2 -n 4 sh -c 'echo "out of $RANK"; : >said/b$RANK; [ $RANK = 3 ] || exec sleep 60
    until [ "$(ls said | wc -l)" = 6 ]; do sleep 0.05; done; exit 3'
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

of_run() { # NAME EXIT [OPTION...]: logs of the run, sorted
    hn logs "${record##*/}" -q "${@:3}"
    exits "$1" "$2"
    sort -o "$OUT" "$OUT"
}
record=$(readlink -f "$record")
of_run 'logs show a rank by its role' 0
is 'as the labels of the run did' "$(cat "$OUT")" "$(sort <<'END'
a:0 | out of 0
a:1 | out of 1
b:0 | out of 0
b:1 | out of 1
b:2 | out of 2
b:3 | out of 3
END
)"
of_run 'logs --role' 0 --role b
is 'shows the ranks of a role' "$(cut -c1-3 "$OUT" | tr '\n' ' ')" 'b:0 b:1 b:2 b:3 '
of_run 'logs --role NAME:N' 0 --role b:3
is 'shows one of its ranks' "$(cat "$OUT")" 'b:3 | out of 3'
of_run 'logs --role with --ranks' 0 --role b --ranks 1-2
is 'numbers them in the role' "$(cut -c1-3 "$OUT" | tr '\n' ' ')" 'b:1 b:2 '
of_run 'logs --json' 0 --role a:1 --json
is 'has role and number' "$(python3 -c 'import json, sys; e = json.loads(sys.stdin.read()); print(e["rank"], e["role"], e["role_rank"])' <"$OUT")" '1 a 1'
of_run 'a role that is not there' 66 --role c
has 'is told with those that are' "$ERR" "error[HN809]: run ${record##*/}: it has no role c, but a, b"
of_run 'a rank that is not there' 66 --role a:2
has 'is told with those that are' "$ERR" 'its role a has ranks 0 to 1, and no 2'
hn attach "${record##*/}" -q
is 'attach labels as the run did' "$(sort "$OUT" | head -2)" $'a:0 | out of 0\na:1 | out of 1'

hn report "${record##*/}"
has 'the report counts the roles' "$OUT" '2 roles: a 2 ranks on 1 node, b 4 on 2'
has 'and names the role of a failure' "$OUT" 'role b, rank 3 on 127.0.0.2 exited with code 3'
has 'and of the start' "$OUT" 'start role '
hn report --json "${record##*/}"
is 'its JSON has the roles' "$(python3 -c "$read_json" "$OUT" '[r["name"] for r in d["roles"]], [p["role"] for p in d["phases"] if "rank" in p][:1] != []')" "(['a', 'b'], True)"
hn report --html page.html "${record##*/}"
has 'the page counts them' page.html '2 roles: a 2 ranks on 1 node, b 4 on 2'
has 'and names ranks by them' page.html 'role b, rank 3'

hn "${job[@]}" --role s --nodes 127.0.0.1 -n 1 sleep 60 : --role t --nodes localhost -n 4 "$BUILD/tests/clients/failing" exit 2 20 5
hn report --json
is 'the rank that left the others is one of its role' "$(python3 -c "$read_json" "$OUT" '[(x["rank"], x["role"], x["role_rank"], x["text"][:15]) for x in [d["divergence"]]]')" \
    "[(3, 't', 2, 'role t, rank 2 ')]"

hn "${job[@]}" --role a --nodes 1 --replicas 2 -n 2 sh -c 'echo "$HN_ROLE_INDEX"' : --role b --nodes 1 -n 1 true
exits 'a job with replicas' 0
is 'labels tell replicas apart' "$(sort "$OUT")" $'a:0:0 | 0\na:0:1 | 0\na:1:0 | 1\na:1:1 | 1'
hn logs -q --role a:1
is 'logs --role NAME:N shows a replica' "$(sort "$OUT")" $'a:1:0 | 1\na:1:1 | 1'
hn logs -q --role a:1:0
is 'logs --role NAME:REPLICA:N shows a rank of it' "$(cat "$OUT")" 'a:1:0 | 1'
hn logs -q --role a:1:0 --json
is 'in JSON, too' "$(python3 -c 'import json, sys; e = json.loads(sys.stdin.read()); print(e["role"], e["replica"], e["role_rank"])' <"$OUT")" 'a 1 0'
hn logs -q --role a:1:2
has 'but none that is not there' "$ERR" 'its role a has ranks 0 to 1 in a replica, and no 2'
hn logs -q --role a:2
has 'but none that is not there' "$ERR" 'its role a has replicas 0 to 1, and no 2'

hn "${job[@]}" --role a --nodes 1 --replicas 2 -n 2 sh -c '[ "$HN_ROLE_INDEX$RANK" != 11 ] || exit 3; exec sleep 60'
verdict_has 'the last line names the replica' 'failed after' 'role a:1, rank 1 on 127.0.0.1 exited with code 3'

hn --log-dir "$TMP/plain" --local 2 sh -c '[ $RANK = 0 ] || exit 3; exec sleep 60'
exits 'a job without roles' 3
lacks 'has none in run.json' "$TMP/plain/latest/run.json" '"role'
lacks 'nor in summary.json' "$TMP/plain/latest/summary.json" '"role'
lacks 'nor in its events' "$TMP/plain/latest/events.ndjson" '"role'
done_testing
