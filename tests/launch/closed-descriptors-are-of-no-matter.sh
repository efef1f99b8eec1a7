#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch as daemons and cron wrappers start it, with descriptors 0 to 2 closed: the exit code is the
# rank's, and nothing is written into a file that has got one of the numbers.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >rank <<'END'
#!/bin/sh
cat >input
echo said
echo complained >&2
exit "$1"
END
chmod +x rank

# What is left open goes into files: a closed one would be the terminal's of a sanitizer, too.
closed() { # "0 1 2": those of them are closed; sets RC
    (
        exec </dev/null >"$OUT" 2>"$ERR"
        for fd in $1; do
            eval "exec $fd>&-"
        done
        exec timeout -k 5 60 "${@:2}"
    )
    RC=$?
}

for fds in 0 1 2 '0 1' '1 2' '0 1 2'; do
    rm -rf input logs
    : >"$OUT"
    : >"$ERR"
    closed "$fds" "$HNLAUNCH" --local 1 --log-dir logs ./rank 4
    exits "closed $fds: the exit code is the rank's" 4
    is "closed $fds: the rank's output is in its file" "$(cat logs/latest/rank-00000.out)" said
    is "closed $fds: its input is empty" "$(stat -c %s input)" 0
    ok "closed $fds: the record of events is whole" \
        python3 -c 'import json, sys; [json.loads(l) for l in open(sys.argv[1])]' logs/latest/events.ndjson
    [[ $fds == *1* ]] || is "closed $fds: stdout has it" "$(cat "$OUT")" said
    [[ $fds == *2* ]] || has "closed $fds: stderr has it" "$ERR" complained
    [[ $fds == *2* ]] || verdict_has "closed $fds: the verdict is told" 'exited with code 4'
done

closed '0 1 2' "$HNLAUNCH" --local 2 true
exits 'a good launch without any of them gives 0' 0
closed '1' "$HNLAUNCH" --version
exits 'a closed stdout wants no output, and that is no error' 0
closed '1' "$HNLAUNCH" --json --local 1 true
exits 'nor is it for --json' 0

# Its head is what its standard input and output are: without one it leaves.
for fds in 0 1 '0 1' '0 1 2'; do
    closed "$fds" "$BUILD/hnlaunch-agent"
    ok "the agent with $fds closed leaves in order ($RC)" test "$RC" -lt 124
done
nothing_left 'nothing is left'
done_testing
