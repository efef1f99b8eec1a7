#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nodes that share a file system are found: one of them fetches, and the last one cleans up.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

mkdir "$TMP/cache"
lab_up 5 1
# The others share the machine's.
lab exec node005 mount -t tmpfs lab "$TMP/cache"
push() { lab_hn -v -H "$TMP/hosts.txt" "$@"; }
uploads() { grep -c ' [1-9][0-9]* bytes were sent' "$ERR"; }

mkdir data
head -c 5000000 /dev/urandom >data/one
head -c 100 /dev/urandom >data/two
exits 'the push gives 0' 0 push --push data --label none sha256sum data/one data/two
is 'all nodes have the files' "$(sort -u "$OUT" | wc -l) $(wc -l <"$OUT")" '2 10'
is 'one upload for five nodes' "$(uploads)" 1
is 'nothing is left' "$(find "$TMP/cache" -path '*hnlaunch-stage-*')" ''

push --push-keep --push data true
is 'with --push-keep: one upload' "$(uploads)" 1
exits 'what is kept is found' 0 push --push data cmp data/two data/two
is 'and nothing is sent' "$(uploads)" 0

# A long list passes from node to node before it is known who shares what.
mkdir many
seq -f 'many/a-file-with-a-name-of-some-length-%05g' 5000 | xargs touch
echo words >many/words
exits 'a push with a long list gives 0' 0 push --push many --label none sh -c 'ls many | wc -l; cat many/words'
is 'with a long list: all nodes have the files' "$(sort "$OUT" | uniq -c | awk '{ print $1, $2 }' | xargs)" '5 5001 5 words'
is 'with a long list: nothing is left' "$(find "$TMP/cache" -path '*hnlaunch-stage-*' -name many)" ''

# Two jobs use one folder: the one that ends first takes nothing away.
rm -r "$TMP/cache/hnlaunch-stage-0"
lab_start -w node001,node002 --push data sh -c "touch $TMP/on-\$HN_RANK; while [ ! -e $TMP/go ]; do sleep 0.05; done; cat data/two"
ok 'two ranks have begun' wait_for test -e "$TMP/on-0" -a -e "$TMP/on-1"
(
    OUT=$TMP/out2 ERR=$TMP/err2
    lab_hn -v -w node003,node004 --push data true
    echo "$RC $(grep -c ' [1-9][0-9]* bytes were sent' "$ERR")" >"$TMP/second"
)
is 'a second job uploads nothing' "$(cat "$TMP/second")" '0 0'
touch "$TMP/go"
exits 'and leaves the files to the first' 0 finish
is 'whose end removes them' "$(find "$TMP/cache" -path '*hnlaunch-stage-*')" ''
lab_nothing_left 'no process is left'
done_testing
