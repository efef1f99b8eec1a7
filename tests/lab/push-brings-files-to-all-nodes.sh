#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --push: what arrives is what was there, once, and is gone afterwards unless --push-keep says otherwise.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

# Every node has a home of its own; the login node's files are nowhere to be seen but by --push.
mkdir "$TMP/cache"
lab_up 3 1
for node in node001 node002 node003; do
    lab exec "$node" mount -t tmpfs -o size=64m lab "$TMP/cache"
    lab exec "$node" mount -t tmpfs lab "$TMP/work"
done
on() { (cd / && lab exec "$@"); } # the nodes do not have this folder
push() { lab_hn -v -H "$TMP/hosts.txt" "$@"; }
sent() { grep -o '[0-9]* bytes were sent' "$ERR" | awk '{ n += $1 } END { print n + 0 }'; }
# What is on the nodes besides the agent.
stored() {
    local node
    for node in node001 node002 node003; do
        on "$node" find "$TMP/cache" -path '*/hnlaunch-stage-*' -printf '%P\n'
    done
}

mkdir -p proj/data/deep/er proj/data/empty "$TMP/else"
cd proj || exit 1
cp /bin/true prog
head -c 3000000 /dev/urandom >data/large
printf 'a\n' >data/deep/er/small
: >'data/with blank'
cp data/large data/twin
chmod 640 data/deep/er/small
ln -s ../deep/er/small data/empty/link
printf 'else\n' >"$TMP/else/where"
ln -s "$TMP/else/where" data/leads-out
find data -type f -o -type l | sort | while read -r f; do sha256sum "$f"; done >"$TMP/want"

push --push prog --push data --push "$TMP/else/where" --label none sh -c \
    'find data -type f -o -type l | sort | while read -r f; do sha256sum "$f"; done >../sums.$HN_RANK
     cat ../sums.$HN_RANK; rm ../sums.$HN_RANK' >/dev/null
exits 'a push and a job give 0' 0
sort "$TMP/want" "$TMP/want" "$TMP/want" >"$TMP/want3"
sort "$OUT" >"$TMP/got"
same 'all files have the same content on all nodes' "$TMP/got" "$TMP/want3"
is 'each content was sent once' "$(sent)" $((3000000 + 2 + 5 + $(stat -c %s prog)))
is 'nothing of it is left' "$(stored)" ''

push --push prog --push data --push "$TMP/else/where" -n 1 --label none sh -c \
    'stat -c "%n %a %F" prog data/deep/er/small data/empty data/empty/link data/leads-out where; readlink data/empty/link
     [ "$PWD" = "$HN_PUSH_DIR" ] && echo at home'
is 'modes without the write bits, kinds, links, places' "$(cat "$OUT")" 'prog 555 regular file
data/deep/er/small 440 regular file
data/empty 755 directory
data/empty/link 777 symbolic link
data/leads-out 444 regular file
where 444 regular file
../deep/er/small
at home'

exits 'a pushed program runs by its relative name' 0 push --push prog ./prog
exits 'and by its absolute one' 0 push --push "$PWD/prog" "$PWD/prog"
cd data || exit 1
exits 'and from a folder beside it' 0 push --push ../prog ../prog
cd .. || exit 1
push --push prog --chdir / -n 1 --label none sh -c 'pwd; ls "$HN_PUSH_DIR"'
is '--chdir wins, and HN_PUSH_DIR leads to the files' "$(cat "$OUT")" $'/\nprog'
push --push . --push data -n 1 --label none sh -c 'ls'
is 'the current folder itself, and a part of it once more' "$(cat "$OUT")" $'data\nprog'

push --push-keep --push prog --push data true
is '--push-keep: all is sent' "$(sent)" $((3000000 + 2 + 5 + $(stat -c %s prog)))
exits 'the next run finds it' 0 push --push prog --push data cat data/deep/er/small
is 'and sends nothing' "$(sent)" 0
printf 'b\n' >data/new
push --push prog --push data true
is 'a new file alone is sent' "$(sent)" 6
push --push prog --push data true
is 'each time, since it was not kept' "$(sent)" 6
on node002 sh -c "cd $TMP/cache/hnlaunch-stage-0/*/data && chmod u+w large && printf x >>large"
push --push prog --push data true
is 'a kept file that somebody changed is sent again' "$(sent)" $((3000000 + 6))
for node in node001 node002 node003; do
    on "$node" rm -rf "$TMP/cache/hnlaunch-stage-0"
done

lab_start -H "$TMP/hosts.txt" --push prog --push data --label none sh -c 'echo up; exec sleep 60'
ok 'three ranks are up' wait_for lines_are "$OUT" 3
on node002 pkill -KILL -x 'agent-.*'
exits 'the agent of a node is killed' 125 finish
no_files() { [[ -z $(stored) ]]; }
ok 'its guard removes the files' wait_for no_files

exits 'ranks may write beside the files' 0 push --push prog -n 1 sh -c 'echo result >out; mkdir -p more/of && echo it >more/of/it'
ok 'what they wrote is told' grep -q '^warning\[HN314\]: .*: files that ranks wrote .* are left in ' "$ERR"
on node001 find "$TMP/cache/hnlaunch-stage-0" -type f -printf '%f\n' | sort >"$TMP/got"
is 'and it is all that stays' "$(cat "$TMP/got")" $'it\nout'
lab_nothing_left 'no process is left'
done_testing
