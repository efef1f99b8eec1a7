#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch top has the samples of all nodes, also through a tree, tells a node that is silent or lost, and a sample of a
# node has few bytes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

runtime_dir
lab_up 4 2

look() {
    "$LAB" run "$LAB_HNLAUNCH" top --json >lines 2>"$TMP/looker.err" &
    LOOKER=$!
}
field() {
    python3 -c 'import json, sys
t = json.loads(open("lines").read().rsplit("\n", 2)[-2])
hosts = t.get("hosts", [])
print(*eval("[" + sys.argv[1] + "]"))' "$1"
}
true_of() { [[ $(field "$1") == True ]]; }
rank='import os, time
n = int(os.environ["RANK"])
print("step", 20 - n, "of 50", flush=True)
while n == 5:
    pass
time.sleep(1000)'

for how in '' --tree=2; do
    # shellcheck disable=SC2086
    lab_start -H "$TMP/hosts.txt" $how --node-timeout 60s --label none --progress-re 'step ([0-9]+) of ([0-9]+)' python3 -c "$rank"
    ok "${how:-flat}: eight ranks run" wait_for lines_are "$OUT" 8
    look
    ok "${how:-flat}: all nodes send samples" wait_for true_of 'len(hosts) == 4 and all("cpu_percent" in h for h in hosts)'
    is "${how:-flat}: hosts and ranks" "$(field '*[(h["host"], [r["rank"] for r in h["ranks"]]) for h in hosts]')" \
        "('node001', [0, 1]) ('node002', [2, 3]) ('node003', [4, 5]) ('node004', [6, 7])"
    is "${how:-flat}: steps and lags" "$(field 't["step"], t["spread"], t["total"], [r["lag"] for h in hosts for r in h["ranks"]]')" \
        '13 7 50 [0, 1, 2, 3, 4, 5, 6, 7]'
    ok "${how:-flat}: the rank that computes" wait_for true_of 'hosts[2]["ranks"][1]["cpu_percent"] > 20'
    ok "${how:-flat}: the others sleep" true_of 'all(r["state"] == "S" for h in hosts for r in h["ranks"] if r["rank"] != 5)'
    lab_run "$LAB_HNLAUNCH" top
    ok "${how:-flat}: a table with a row for each node" test "$(grep -c '^node00[1-4] ' "$OUT")" = 4
    is "${how:-flat}: odd nodes first" "$(sed -n 3p "$OUT" | cut -d' ' -f1)" node003
    is "${how:-flat}: ranks of several nodes are hidden" "$(grep -c '^  rank ' "$OUT")" 0
    if [[ -z $how ]]; then
        lab freeze node002
        ok 'a frozen node: its sample grows old' wait_for true_of 'hosts[1]["age_ms"] > 4000'
        lab_run "$LAB_HNLAUNCH" top
        ok 'and is told first' grep -q '^node002 .*silent for ' <(sed -n 3p "$OUT")
        look
        ok 'top that is opened now tells it, without a sample' wait_for true_of 'hosts[1]["silent_ms"] > 4000'
        lab thaw node002
        ok 'thawed, it is back' wait_for true_of 'hosts[1]["age_ms"] < 2000'
    fi
    finish_by INT
    wait "$LOOKER"
    is "${how:-flat}: the end is told" "$(field 't["code"]')" 130
    lab_nothing_left "${how:-flat}: nothing is left"
done
done_testing
