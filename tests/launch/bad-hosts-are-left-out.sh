#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Hosts that --restart auto has put out are noted for later runs, and `hnlaunch bad` lists them and takes them back.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf 'a slots=1\nb slots=1\nc slots=1 spare\nd slots=1 spare\n' >hosts
list=$XDG_STATE_HOME/hnlaunch/hosts.bad
# shellcheck disable=SC2054
base=(--oversubscribe --start-with 'env NODE={host}' --label none --log-dir logs --grace 1s)
nodes=(-H hosts "${base[@]}")
# Rank 1 does the deed, until an attempt.
deed() { echo "[ \$HN_RESTART != $1 ] || exit 0; [ \$RANK = 1 ] || exec sleep 60; $2"; } # ATTEMPT DEED

touch only-a-file
hn_exits 'no host is put out: 0' 0 bad
is 'and told so' "$(<"$OUT")" 'no host is put out'

hn_exits 'a host whose agent was killed is replaced' 0 "${nodes[@]}" --restart auto sh -c "$(deed 1 'kill -KILL $PPID')"
hn bad list
ok 'it is listed with its reason' grep -qE '^b +20[0-9-]+ [0-9:]+ +[a-z0-9]{5} +b or its agent was lost$' "$OUT"
hn bad --json
ok 'also as JSON, for a day' python3 -c '
import json, sys
(bad,) = json.load(open(sys.argv[1], encoding="utf-8"))["bad"]
assert bad["host"] == "b" and bad["evidence"] == "lost" and bad["until"] - bad["since"] == 86400' "$OUT"

hn "${nodes[@]}" --restart auto sh -c 'echo "rank $RANK on $NODE"'
has 'the next run with --restart auto leaves it out, in one line' "$ERR" \
    'hnlaunch: without b, put out by earlier runs (b or its agent was lost, run '
has 'a spare host takes its place' "$OUT" 'rank 1 on c'
hn "${nodes[@]}" --spares 1 sh -c 'echo "rank $RANK on $NODE"'
has 'so does a run with --spares' "$ERR" 'hnlaunch: without b, put out by earlier runs'
has 'which uses a spare host, too' "$OUT" 'rank 0 on a'
lacks 'but not the bad one' "$OUT" 'on b'
hn "${nodes[@]}" --min-nodes 1 sh -c 'echo "rank $RANK of $WORLD_SIZE on $NODE"'
has 'so does a run with MIN:MAX' "$ERR" 'hnlaunch: without b, put out by earlier runs'
has 'with a spare host' "$OUT" 'rank 1 of 2 on c'
printf '%s slots=1\n' a b c >three
hn -H three "${base[@]}" --nodes 1:2 sh -c 'echo "rank $RANK of $WORLD_SIZE on $NODE"'
has 'of a longer list the next host is used' "$OUT" 'rank 1 of 2 on c'
hn_exits 'fewer than MIN are left: 69' 69 -H three "${base[@]}" --min-nodes 3 true
has 'is told' "$ERR" 'error[HN843]: 1 of 3 hosts was put out by earlier runs, and at least 3 are needed'
hn "${nodes[@]}" sh -c 'echo "rank $RANK on $NODE"'
has 'a plain run warns' "$ERR" 'warning[HN841]: 1 host was put out by an earlier run'
has 'and uses it' "$OUT" 'rank 1 on b'
has 'and tells what leaves it out' "$ERR" 'help: --restart auto, --spares and --nodes MIN:MAX leave such hosts out;'
hn stage -H hosts --start-with 'env NODE={host}' only-a-file
has 'a command without these options' "$ERR" 'warning[HN841]'
has 'names the other way' "$ERR" 'help: hnlaunch bad clear HOST takes one back'
lacks 'and none of them' "$ERR" '--spares'
hn -w a,b "${base[@]}" --restart auto sh -c 'echo "rank $RANK on $NODE"'
has 'so does one whose -w names it' "$ERR" 'warning[HN841]'
has 'which uses it, too' "$OUT" 'rank 1 on b'
has 'and tells why' "$ERR" 'help: -w names hosts to be used'
hn "${nodes[@]}" --bad-hosts none true
lacks '--bad-hosts none knows nothing of it' "$ERR" HN841
hn plan --local 1 true
lacks 'nor does --local' "$ERR" HN841
printf 'b slots=1\n' >only
hn_exits 'a list of nothing but bad hosts: 69' 69 -H only "${base[@]}" --restart auto true
has 'is told' "$ERR" 'error[HN843]: every host was put out by an earlier run'
hn_exits 'a list of nothing but hosts of run.leave_out: 69' 69 -H only "${base[@]}" -o run.leave_out=b true
has 'tells who has left them out' "$ERR" 'error[HN843]: every host was left out by run.leave_out'
lacks 'and does not speak of bad hosts' "$ERR" 'hnlaunch bad'
hn_exits 'too few are left by run.leave_out: 69' 69 -H three "${base[@]}" -o run.leave_out=c --min-nodes 3 true
has 'is told, too' "$ERR" 'error[HN843]: 1 of 3 hosts was left out by run.leave_out, and at least 3 are needed'

# The program's own fault on two hosts: the first is innocent.
hn_exits 'a host is taken back' 0 bad clear b
hn_exits 'a fault that comes again on another host' 139 "${nodes[@]}" --restart auto sh -c "$(deed 9 'kill -SEGV $$')"
hn bad
is 'leaves no host in the list' "$(<"$OUT")" 'no host is put out'
hn_exits 'a host that is not listed: 66' 66 bad clear b
has 'is told' "$ERR" 'error[HN842]: b is not put out'
for words in 'clear' 'clear a b' 'list b' 'remove b'; do
    # shellcheck disable=SC2086
    hn bad $words
    exits "bad $words: 64" 64
done

# A file that is none, or broken, is one warning.
rm "$list"
mkdir "$list"
hn "${nodes[@]}" --restart auto sh -c "$(deed 1 'kill -KILL $PPID')"
exits 'a list that cannot be read or written does not harm the run' 0
is 'it is one warning' "$(grep -c 'warning\[HN840\]' "$ERR")" 1
hn_exits 'bad itself fails: 66' 66 bad
hn_exits 'and cannot change it: 73' 73 bad clear a
rmdir "$list"
printf 'nonsense\n{"host":"a","until":99999999999,"reason":"by hand","run":"-"}\n' >"$list"
hn "${nodes[@]}" true
has 'a broken line is told' "$ERR" 'hosts.bad: 1 line is no entry'
has 'the others count' "$ERR" '| a: by hand (run -)'
hn bad
has 'bad tells it, too' "$ERR" 'warning[HN840]'
ok 'and lists the rest' grep -qE '^a +.* by hand$' "$OUT"
hn bad --bad-hosts other
is 'another list is another list' "$(<"$OUT")" 'no host is put out'
nothing_left 'nothing is left'
done_testing
