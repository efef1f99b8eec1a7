#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# No row of the tables of plan, top, report and Ctrl-\ is wider than the terminal, nor a line of the exit codes: columns are left out, in
# an order, and texts are cut behind a word or go on below. ps-lists-the-runs.sh has the list of runs.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
names=ip-10-0-0-[1-3].a-very-long-name.compute.example.invalid
nodes=(--ssh-command "sh -c 'exec $HNLAUNCH-agent' --" -w "$names" --oversubscribe)

shown_at() { # COLUMNS ARGUMENT...: what a terminal of that width shows, in the file screen
    timeout 60 script -qfc "stty cols $1; exec '$HNLAUNCH' ${*:2}" /dev/null </dev/null | tr -d '\r' >screen
}
wider() { # COLUMNS: the lines of the file screen that are wider
    grep -v '^hnlaunch: run ' screen | grep -E ".{$(($1 + 1))}"
}

# --- what needs no run ----------------------------------------------------------------------------

for columns in 40 80 120 200; do
    shown_at "$columns" help exit
    is "$columns columns: exit codes fit" "$(wider "$columns")" ''
    ok '... and are there' grep -q '^ *124' screen
    shown_at "$columns" plan -w "'$names'" true
    is "$columns columns: the plan fits" "$(sed -n '/^NODE/,/^$/p' screen | grep -E ".{$((columns + 1))}")" ''
    ok '... with its ranks' grep -qE '^ +2  ip-.* 2( |$)' screen
done
ok 'the widest has all columns' grep -qE '^NODE +HOST +RANKS +SLOTS +FROM$' screen
hn help exit
ok 'without a terminal exit codes fit 80 columns' test "$(wc -L <"$OUT")" -le 80

# --- Ctrl-\ and top -------------------------------------------------------------------------------

all_wait() { [[ $("$HNLAUNCH" top 2>/dev/null | grep -c ' barrier ') = 2 ]]; }
answered() { # the row of the last rank has come
    tr -d '\r' <tty >screen
    grep -qE '^ *\| +2 +ip-' screen && [[ -z $(tail -c 1 screen) ]]
}
for columns in 40 80 120 200; do
    cat >run.sh <<END2
stty cols $columns
echo \$\$ >pid
exec env --default-signal $HNLAUNCH ${nodes[*]@Q} --label none $BUILD/tests/clients/left_waiting 1
END2
    script -qfc 'sh run.sh' /dev/null >tty 2>&1 &
    runner=$!
    ok "$columns columns: two of three ranks wait" wait_for all_wait
    kill -QUIT "$(cat pid)"
    ok '... Ctrl-\ shows the ranks' wait_for answered
    is '... and they fit' "$(grep -E '^ *\|' screen | grep -E ".{$((columns + 1))}")" ''
    ok '... with host, life and what they do' grep -qE '\| +0  ip-.* yes \(.* waits? in' screen
    shown_at "$columns" top
    is '... top fits' "$(wider "$columns")" ''
    is '... and has the three hosts' "$(grep -c '^ip-' screen)" 3
    kill -INT "$(cat pid)"
    wait "$runner"
done
ok 'the widest has all columns' grep -q 'NET RX/TX' screen

# --- report ---------------------------------------------------------------------------------------

cat >fails.sh <<'END2'
[ "$RANK" != 1 ] || { until [ -e go ]; do sleep 0.05; done
    echo 'RuntimeError: the loader has found no more than twelve of the sixteen shards that the manifest names' >&2; exit 7; }
trap 'exit 5' TERM
while :; do sleep 0.05; done
END2
: >go
hn "${nodes[@]}" --restart auto --max-restarts 1 --trace sh fails.sh
for columns in 40 80 120 200; do
    shown_at "$columns" report
    # Sentences are folded by the terminal.
    grep -vE '^(run|command:|failed|lost|start [0-9]|critical path:|traces:|slow (rank|node):|first divergence:|steps|why:|where the ranks)' screen >rows
    is "$columns columns: rows of the report fit" "$(grep -E ".{$((columns + 1))}" rows)" ''
    ok '... those of the start' grep -qE '^ip-10-.* C+A*' rows
    ok '... of the attempts' grep -qE '^ +1 +[0-9.]+' rows
    ok '... and the letters' grep -q '^C connect' rows
done
hn report
ok 'without a terminal rows are not folded' grep -qE '^  +[0-9]+ .*RuntimeError: the loader has found no more than twelve of the sixteen shards' "$OUT"
nothing_left 'nothing is left'
done_testing
