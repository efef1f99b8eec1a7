#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --push on this machine copies nothing; mistakes are found before any node is touched.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

export XDG_CACHE_HOME=$TMP/cache
mkdir data "$TMP/else"
printf 'hello\n' >data/file
cp data/file "$TMP/else/data"
hn_exits '--local --push gives 0' 0 --local 2 --push data --label none sh -c 'pwd; echo $HN_PUSH_DIR; cat data/file'
is 'ranks are where they would be without' "$(sort -u "$OUT")" "$(printf '%s\n' "$PWD" hello | sort)"
ok 'nothing is copied' test ! -e "$TMP/stage"
nothing_left 'no process is left'

wrong() { # NAME CODE HN TEXT ARG...
    local name=$1 code=$2 hn=$3 text=$4
    shift 4
    hn_exits "$name: exit code" "$code" -w nowhere.invalid "$@" true
    has "$name: number and place" "$ERR" "error[$hn]: $text"
    has "$name: next step" "$ERR" 'help: '
}
wrong 'no such file' 66 HN230 "--push: cannot read $PWD/nothing: No such file" --push nothing
mkfifo data/pipe
wrong 'a pipe' 66 HN232 "--push: cannot send $PWD/data/pipe: it is a pipe" --push data
rm data/pipe
ln -s / data/root
wrong 'a link to a folder elsewhere' 66 HN232 "--push: cannot send $PWD/data/root: it is a link to a folder outside" --push data
ln -sfn gone data/root
hn_exits 'a link inside may dangle' 0 plan -w nowhere --push data true
ln -sfn ../../../gone data/root
wrong 'a link to nothing elsewhere' 66 HN232 "--push: cannot send $PWD/data/root: it is a link to nothing" --push data
rm data/root
wrong 'two things in one place' 66 HN233 "--push: cannot send " --push data --push "$TMP/else/data"
has 'both are named' "$ERR" "$TMP/else/data"
wrong '--push-keep alone' 64 HN704 '--push-keep without --push' --push-keep
# Root reads everything, so root becomes somebody else.
chmod 0 data/file
somebody=()
if [[ $(id -u) == 0 ]]; then
    chmod 755 "$TMP" "$TMP/work"
    somebody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
if "${somebody[@]}" test -x "$HNLAUNCH"; then
    exits 'an unreadable file' 66 run "${somebody[@]}" env HOME="$TMP/nowhere" "$HNLAUNCH" -w nowhere.invalid --push data true
    has 'is named' "$ERR" "error[HN231]: --push: cannot read $PWD/data/file: Permission denied"
    has 'with the next step' "$ERR" 'must be readable for you'
else
    skip 'an unreadable file' 'only root reaches this build folder'
fi
chmod 644 data/file

hn plan -w a,b --push data true
has 'plan tells what would be pushed' "$OUT" 'push      data  (1 file, 6 bytes)'
touch train.py
hn plan -w a,b --push data python3 train.py --from data/file data -
has 'an argument that is a file here and is not pushed is told before the start' "$ERR" \
    'warning[HN239]: `train.py` is here, but is not pushed'
has 'with what to write' "$ERR" 'add --push train.py'
is 'the others are among the files or no files' "$(grep -c HN239 "$ERR")" 1
hn plan -w a,b --push data --push train.py python3 train.py
lacks 'nothing is told when it is pushed' "$ERR" HN239
hn plan -w a,b --chdir "$PWD" --push data python3 train.py
lacks 'nor when ranks start elsewhere' "$ERR" HN239
hn plan --json -w a,b --push-keep --push data true
has 'plan --json too' "$OUT" '"bytes": 6'
# Ten times the same 20,001.
mkdir many
(cd many && seq 1 20001 | xargs touch)
links=()
for i in {1..9}; do
    ln -s many "many.$i"
    links+=(--push "many.$i")
done
wrong 'more files than fit' 66 HN238 '--push: cannot send more than 200000 files' --push many "${links[@]}"
done_testing
