#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What ranks make in the job's folder, beside HN_STORE, is removed with it: folders, too, but nothing behind a link or a
# mount. What cannot be removed is told.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

mkdir -m 700 "$TMP/run" "$TMP/precious" "$TMP/precious/sub"
echo content | tee "$TMP/precious/file" >"$TMP/precious/sub/file"
export XDG_RUNTIME_DIR=$TMP/run PRECIOUS=$TMP/precious
kept() { [[ $(cat "$PRECIOUS/file" "$PRECIOUS/sub/file") == $'content\ncontent' ]]; }
folder='cd "$(dirname "$HN_STORE")"'

hn -v --local 2 sh -c "$folder"' && mkdir -p "mine.$RANK/a/b/c" && echo x >"mine.$RANK/a/b/file" &&
    ln -s "$PRECIOUS" "link.$RANK" && ln -s "$PRECIOUS" "mine.$RANK/a/link" && mkfifo "mine.$RANK/fifo" &&
    touch "$(printf "mine.$RANK/\033[2J\nname")" && chmod 000 "mine.$RANK/a/b/file"'
exits 'ranks that leave folders, links and FIFOs' 0
is 'nothing is left' "$(ls -A "$TMP/run")" ''
ok 'links are not followed' kept
ok 'with -v the removal is told' grep -qE 'localhost: removed [0-9]+ files of ranks in ' "$ERR"

hn_exits 'an agent that is killed' 125 --local 1 sh -c "$folder"' && mkdir -p d && kill -KILL $PPID'
is_empty() { [[ -z $(ls -A "$TMP/run") ]]; }
ok 'its guard removes a folder, too' wait_for is_empty

hn_exits 'a second attempt' 3 --local 1 --max-restarts 1 sh -c "$folder"' && ls -A && mkdir d && touch d/f; exit 3'
is 'finds nothing of the first' "$(sort -u "$OUT")" store

hn_exits 'a rank that leaves very many files' 0 --local 1 sh -c "$folder"' && mkdir many && cd many && seq 10100 | xargs touch'
ok 'the agent does not remove them for ever, and tells it' \
    grep -qE "^warning\[HN314\]: localhost: cannot remove all files of the job in $TMP/run/hnlaunch-[^ ]*: " "$ERR"
ok 'they are there, as told' test -d "$(sed -n 's/.* of the job in \([^:]*\): .*/\1/p' "$ERR")/many"
rm -rf "$TMP/run"/*

# A mount in the folder: a home behind it is not ours. In a mount namespace of the run.
namespace=(-m)
[[ $EUID == 0 ]] || namespace=(-rm)
run unshare "${namespace[@]}" "$HNLAUNCH" --local 1 sh -c "$folder"' && mkdir home && mount --bind "$PRECIOUS" home || exit 99'
if [[ $RC == 99 || $RC == 1 ]]; then
    skip 'a mount in the folder' "no mount namespaces here: $(tail -n 1 "$ERR")"
else
    exits 'a rank that leaves a mount' 0
    ok 'it is not entered' kept
    ok 'it is told with its node and folder' grep -qE "^warning\[HN314\]: localhost: cannot remove all files of the job in $TMP/run/hnlaunch-" "$ERR"
fi
nothing_left 'no process is left'
done_testing
