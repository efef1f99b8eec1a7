#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --log-dir keeps each rank's streams in files, and run.json tells what was run.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn --local 3 --log-dir logs --show 0 sh -c 'echo "out $RANK"; echo "err $RANK" >&2; printf "\377\000\n"'
exits 'a run with --log-dir gives 0' 0
run_dir=$(find logs -mindepth 1 -maxdepth 1 -type d | head -n 1)
ok 'the run has its own folder' test -n "$run_dir"
for r in 0 1 2; do
    printf 'out %s\n\377\000\n' "$r" >want
    same "stdout of rank $r is in its file" "$run_dir/rank-0000$r.out" want
    printf 'err %s\n' "$r" >want
    same "stderr of rank $r is in its file" "$run_dir/rank-0000$r.err" want
done
ok 'run.json is JSON' python3 -m json.tool "$run_dir/run.json"
ok 'logs/latest is this run' test logs/latest -ef "$run_dir"
lacks 'ranks that are not shown are still in files' "$OUT" 'out 1'

export VERY_SECRET_TOKEN=hunter2
hn --local 1 --log-dir logs2 true
ok 'no environment value is kept in run.json' sh -c '! grep -rq hunter2 logs2'

# Command lines and output are for the user alone, whatever the umask says.
modes() { find "$@" ! -type l -printf '%m\n' | sort -u | tr '\n' ' '; }
for mask in 000 022; do
    run sh -c 'umask "$1"; exec "$2" -q --local 2 --log-dir "new$1/below" --max-restarts 1 sh -c "echo hi; exit 1"' sh "$mask" "$HNLAUNCH"
    exits "a run under umask $mask" 1
    is "folders made under umask $mask" "$(modes "new$mask" -type d)" '700 '
    is "files made under umask $mask" "$(modes "new$mask" -type f)" '600 '
    is "of all kinds under umask $mask" "$(ls "new$mask/below/latest/" | sed 's/-[0-9]*//' | sort -u | tr '\n' ' ')" \
        'events.ndjson output rank.err rank.out run.json summary.json trace '
done
mkdir -m 755 mine
hn -q --local 1 --log-dir mine true
is 'a folder of the user keeps its mode' "$(stat -c %a mine)" 755
is 'the folder of the run does not take it' "$(stat -Lc %a mine/latest)" 700

hn --local 1 --log-dir /proc/nowhere true
exits 'a log folder that cannot be made: 73' 73
told_once 'it is named, once' /proc/nowhere
verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 73)'
done_testing
