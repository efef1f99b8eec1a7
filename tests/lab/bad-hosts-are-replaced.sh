#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --restart auto on nodes with sshd: a host that is lost, or fails by itself, goes, and a spare one takes its place; a fault
# of the program takes none.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 5 2
sed 's/^\(node00[45].*\)/\1 spare/' "$TMP/hosts.txt" >spare.txt
auto() { lab_hn -H spare.txt --restart auto --node-timeout 3s --label none --bad-hosts "$PWD/bad" --log-dir logs "$@"; }
listed() { [[ -e bad ]] && grep -o '"host":"[^"]*"' bad | cut -d'"' -f4 | xargs; }
# Rank 3 is the second one of node002.
cat >deed.sh <<'END'
echo "rank $RANK on $(hostname) attempt $HN_RESTART"
[ "$HN_RESTART" = "$1" ] && exit 0
[ "$RANK" = 3 ] || exec sleep 60
case $2 in
raise) printf 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: bad shard %s of /data/%s\n' $$ $$ >&2; exit 1 ;;
full) echo "OSError: [Errno 28] No space left on device: '/ckpt/$$'" >&2; exit 1 ;;
*) eval "$2" ;;
esac
END

exits 'a bug of the program: its code' 1 auto sh "$PWD/deed.sh" 9 raise
has 'at second sight' "$ERR" 'no attempt 3: the same failure twice without progress'
exits 'a program that gives up: 93' 93 auto sh "$PWD/deed.sh" 9 'exit 93'
has 'at once' "$ERR" 'no attempt 2: '
exits 'a full file system of nobody in particular: the code of the program' 1 auto sh "$PWD/deed.sh" 9 full
has 'after one more try' "$ERR" 'no attempt 3: No space left on device (/ckpt/'
is 'no host was put out so far' "$(listed)" ''

exits 'a killed agent: the job ends well' 0 auto sh "$PWD/deed.sh" 1 'kill -KILL $PPID'
is 'on a spare host' "$(grep -c 'rank [23] on node004 attempt 1' "$OUT")" 2
is 'the others stay' "$(grep -c 'rank [0145] on node00[13] attempt 1' "$OUT")" 4
is 'its host is listed' "$(listed)" node002
lab_nothing_left 'no rank of the first attempt lives'

# node004 is in the place of node002 now, and has the fault.
exits 'a fault twice on one host: the job ends well' 0 auto sh "$PWD/deed.sh" 2 'kill -SEGV $$'
has 'the listed host is left out' "$ERR" 'without node002, put out by earlier runs'
has 'the first time nothing changes' "$ERR" 'attempt 2: same hosts: the first time on node004'
has 'the second time it goes' "$ERR" 'node005 takes the place of node004'
is 'and is listed' "$(listed)" 'node002 node004'

rm bad
lab_start -H spare.txt --restart auto --node-timeout 3s --label none --bad-hosts "$PWD/bad" sh "$PWD/deed.sh" 1 'exec sleep 60'
ok 'six ranks are up' wait_for lines_are "$OUT" 6
lab crash node002
exits 'a node without power: the job ends well' 0 finish
is 'and is listed' "$(listed)" node002
lab boot node002
lab_nothing_left 'nothing is left'
done_testing
