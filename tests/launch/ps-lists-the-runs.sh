#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch ps lists the runs that go on, with their step, and the last of those that have ended.
. "$(dirname "$0")/../lib/tap.sh"

export XDG_RUNTIME_DIR=$TMP/runtime XDG_STATE_HOME=$TMP/state
mkdir -m 700 "$XDG_RUNTIME_DIR"
ended() { grep -c ' finished ' "$OUT"; }

for i in 1 2 3 4 5 6 7; do hn -q --local 1 sh -c ": $i"; done
hn ps
is 'of runs that have ended the last five are listed' "$(ended) $(grep -o "sh -c ': [0-9]'$" "$OUT" | tr -d "'" | xargs)" \
    '5 sh -c : 7 sh -c : 6 sh -c : 5 sh -c : 4 sh -c : 3'
is 'the list ends with its line' "$(tail -c 1 "$OUT" | wc -l)" 1
has 'the others are counted, with the way to them' "$ERR" 'note: 2 more ended: hnlaunch ps --all'
for all in --all -a; do
    hn ps $all
    is "$all lists them" "$(ended)" 7
    lacks 'and counts none' "$ERR" 'more'
done
hn ps --json
is 'so does JSON' "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["runs"]))' <"$OUT")" 7

start --local 2 --label none --progress-re '^step ([0-9]+)/([0-9]+)' sh -c 'echo "step 2/9"
until [ -e go ]; do sleep 0.05; done; echo "step $((RANK + 3))/9"; exec sleep 600'
hn_of() { "$HNLAUNCH" "$@" >"$TMP/of.out" 2>"$TMP/of.err"; }
has_first_step() { hn_of ps && grep -q '  2/9  ' "$TMP/of.out"; }
ok 'ranks have told a step' wait_for has_first_step
touch go
has_step() { hn_of ps && grep -qE '  3/9 +[0-9.hms]+  running  ' "$TMP/of.out"; }
ok 'that of the slowest one is shown, with the time left' wait_for has_step
is 'beside the last five' "$(grep -c ' finished ' "$TMP/of.out")" 5
hn_of ps --json
is 'in JSON, too' "$(python3 -c 'import json, sys
r = json.load(sys.stdin)["runs"][0]
print(r["step"], r["total"])' <"$TMP/of.out")" '3 9'
"$HNLAUNCH" ps --watch --all >"$TMP/watched" 2>&1 &
watcher=$!
tables() { [[ $(grep -c '^RUN ' "$TMP/watched") -ge $1 ]]; }
ok '--watch lists them again' wait_for tables 2
timeout 30 "$HNLAUNCH" ps --watch --all 2>watch.err | true
is '--watch ends with its reader' "${PIPESTATUS[0]}" 141
for command in 'ps --all' 'report' 'logs' 'explain HN502' 'config'; do
    rm -f told.json
    # shellcheck disable=SC2086 # the command has words
    run "$HNLAUNCH" ${command%% *} --json=told.json ${command#"${command%% *}"}
    is "$command --json=FILE: standard output has nothing" "$(stat -c %s "$OUT")" 0
    is '... and FILE has JSON' "$(head -c 1 told.json)" '{'
done
exits 'a file that cannot be made: 73' 73 run "$HNLAUNCH" ps --json=no/such/file
has '... which is told' "$ERR" 'error[HN903]: cannot write to no/such/file: No such file or directory'
is '... in place of JSON' "$(stat -c %s "$OUT")" 0
for i in 1 2 3 4 5; do hn_of -q --local 1 sh -c ": newer $i"; done
hn_of ps
is 'five newer runs that have ended stand behind it' "$(awk 'NR > 1 { print /newer/ ? "newer" : /exec sleep/ ? "goes on" : "other" }' "$TMP/of.out" | xargs)" \
    'goes on newer newer newer newer newer'
is_still() { hn_of ps && grep -qE '  3/9 +-  running, no step for 1[0-9]' "$TMP/of.out"; }
ok 'without a step for ten seconds no time is left' wait_for is_still
hn_of ps --json
is 'JSON has for how long no step has come' "$(python3 -c 'import json, sys
r = next(r for r in json.load(sys.stdin)["runs"] if r["running"])
print(r["stalled_ms"] >= 10000, r.get("left_ms"), r["state"])' <"$TMP/of.out")" 'True None running'
shown_at() { # COLUMNS [--watch]: what a terminal of that width shows
    LC_ALL=C.UTF-8 timeout 5 script -qfc "stty cols $1; '$HNLAUNCH' ps${2-}" /dev/null </dev/null | tr -d '\r' >narrow
}
titles() { head -n 1 "$1" | xargs; }
left_out=0
for columns in 200 120 100 80 70 60 50 40; do
    shown_at "$columns"
    is "$columns columns: no line is wider" "$(LC_ALL=C.UTF-8 grep -E ".{$((columns + 1))}" narrow)" ''
    want=' RUN STARTED TIME HOST NODES RANKS STEP LEFT STATE PROGRAM' n=0
    for title in HOST STARTED NODES RANKS LEFT TIME STEP; do
        [[ " $(titles narrow)" != "$want" ]] || break
        want=${want/ $title/} n=$((n + 1))
    done
    is "$columns columns: columns are left out in their order" " $(titles narrow)" "$want"
    ok "$columns columns: not fewer than on a wider terminal" test "$n" -ge "$left_out"
    left_out=$n
done
is '40 columns: none of the seven is left' "$left_out" 7
finish_by INT
stopped() { grep -qE ' 3/9 +stopped \(130\)' "$TMP/watched"; }
ok 'as they are then, with the last step' wait_for stopped
hn ps --json
is 'which is in JSON, too' "$(python3 -c 'import json, sys
runs = json.load(sys.stdin)["runs"]
print(*{(r["code"], r.get("step"), r.get("total")) for r in runs if "step" in r and r["step"]})' <"$OUT")" '(130, 3, 9)'
hn -q --local 2 --label none --progress-re 'step ([0-9]+)' --max-restarts 1 sh -c 'echo "step $((7 - HN_RESTART))"; [ "$HN_RESTART" = 1 ] || exit 1'
hn ps
ok 'of the last attempt; of an unknown total the step alone' grep -qE ' 2 +6 +finished ' "$OUT"
kill "$watcher"
is 'on what is no terminal it paints nothing' "$(grep -c $'\033' "$TMP/watched")" 0
hn -q --local 1 sh -c 'exit 3' 'a word of its own' and a long line of words behind
for watch in '' ' --watch'; do
    shown_at 40 "$watch"
    ok "40 columns$watch: a row has run, state and program" grep -qE "^[a-z0-9]{5}  .*failed \(3\)  sh -c 'exit.*…$" narrow
    is "40 columns$watch: no line is wider" "$(sed 's/\x1b[^A-Za-z]*[A-Za-z]//g' narrow | LC_ALL=C.UTF-8 grep -E '.{41}')" ''
done
hn ps
has 'words are quoted as for a shell' "$OUT" "  sh -c 'exit 3' 'a word of its own' and a"
done_testing
