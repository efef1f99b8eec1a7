#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Standard output that cannot be written is 73, and 141 when it is a closed pipe; so is a record of
# events that was cut. A failure of the ranks goes before.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

full() { # ARGUMENT...: hnlaunch on a full disk
    RC=0
    timeout -k 5 60 "$HNLAUNCH" "$@" >/dev/full 2>"$ERR" || RC=$?
}

closed_pipe() { # ARGUMENT...: hnlaunch on a pipe that nobody reads
    RC=0
    timeout -k 5 60 python3 -c 'import os, subprocess, sys
r, w = os.pipe()
os.close(r)
sys.exit(subprocess.run(sys.argv[1:], stdout=w).returncode)' "$HNLAUNCH" "$@" 2>"$ERR" || RC=$?
}

: >"$OUT"
for way in --version --help '--help=all' config 'plan --local 2 true' 'plan --json --local 2 true' \
    'plan --ranks 0 --local 2 true' explain 'explain --json'; do
    # shellcheck disable=SC2086
    full $way
    exits "a full disk: $way" 73
    is 'one line says why' "$(cat "$ERR")" 'error[HN905]: cannot write to standard output: No space left on device'
    # shellcheck disable=SC2086
    closed_pipe $way
    exits "a closed pipe: $way" 141
    is 'nothing is told, as of a program that SIGPIPE ends' "$(cat "$ERR")" ''
done
export HNLAUNCH_RUN_NO_SUCH=1
full config
is 'a warning before is told once' "$(grep -c NO_SUCH "$ERR"):$(grep -c HN905 "$ERR")" 1:1
unset HNLAUNCH_RUN_NO_SUCH

full --json --local 1 true
exits 'a full disk: events' 73
verdict_has 'the verdict says why' 'all ranks exited 0, but standard output could not be written' 'No space left' '(exit 73)'
full --json --local 1 sh -c 'exit 4'
exits 'the failure of a rank goes before' 4
closed_pipe --json --local 1 true
exits 'a closed pipe: events' 141
verdict_has 'the verdict says why' 'standard output could not be written: Broken pipe' '(exit 141)'
full --local 1 echo said
exits 'a full disk: output of a rank' 73
has 'the bytes that are missing are told with their reason' "$ERR" 'warning[HN813]: 5 bytes of rank 0 were not written to standard output: No space left on device'
full --local 2 sh -c '
    if [ "$RANK" = 1 ]; then until [ -e trapped ]; do sleep 0.05; done; exit 5; fi
    trap "echo said; exit" TERM
    touch trapped
    while :; do sleep 0.1; done'
exits 'a rank fails before' 5
has 'the bytes that are missing have the same reason' "$ERR" 'warning[HN813]: 5 bytes of rank 0 were not written to standard output: No space left on device'
closed_pipe --local 1 echo said
exits 'a closed pipe: output of a rank' 141

hn_exits 'what can be written is no error' 0 --json --local 1 true

# A file on a full file system is named.
mkdir small
if mount -t tmpfs -o size=4k none small 2>/dev/null; then
    head -c 4096 /dev/zero >small/filler
    file=$PWD/small/out
    on_full_file() { # ARGUMENT...
        RC=0
        timeout -k 5 60 "$HNLAUNCH" "$@" >"$file" 2>"$ERR" || RC=$?
    }
    on_full_file plan --local 2 true
    exits 'a file on a full file system: a plan' 73
    is 'the message names the file' "$(cat "$ERR")" "error[HN905]: cannot write to standard output ($file): No space left on device"
    on_full_file --local 1 echo said
    exits 'a file on a full file system: output of a rank' 73
    has 'the warning names the file' "$ERR" "warning[HN813]: 5 bytes of rank 0 were not written to standard output ($file): No space left on device"
    on_full_file --local 1 sh -c 'echo said; exec sleep 60'
    exits 'a file on a full file system: the job is stopped' 73
    verdict_has 'the last line names the file' ": cannot write to stdout ($file): No space left on device"
    umount small
else
    skip 'a file on a full file system is named' 'needs a mount of a tmpfs'
fi

# EIO is the end of a terminal that has hung up, and of a file the fault of its disk.
if "$WORKERS/inject" count true 2>/dev/null; then
    file=$PWD/disk
    on_bad_disk() { # ARGUMENT...
        RC=0
        timeout -k 5 60 "$WORKERS/inject" -o report head write:file 1 5@disk "$HNLAUNCH" "$@" >"$file" 2>"$ERR" || RC=$?
    }
    on_bad_disk --local 1 echo said
    has 'a write to a bad disk' report hit
    exits 'a file on a bad disk: output of a rank' 73
    has 'the bytes that are missing are told' "$ERR" "warning[HN813]: 5 bytes of rank 0 were not written to standard output ($file): Input/output error"
    on_bad_disk --on-hup detach --local 1 sh -c 'echo said; exec sleep 30'
    exits 'also where the run outlives its terminal' 73
    verdict_has 'the last line names the file' ": cannot write to stdout ($file): Input/output error"
    lacks 'no terminal is gone' "$ERR" 'the terminal is gone'
else
    skip 'a file on a bad disk is named' 'cannot hold system calls here'
fi

# What is longer than 4 KiB is cut: the events of 60 ranks.
RC=0
(
    ulimit -f 4
    exec timeout -k 5 60 "$HNLAUNCH" --local 60 --log-dir cut true
) >"$OUT" 2>"$ERR" || RC=$?
exits 'a record of events that was cut: 73' 73
has 'it is named' "$ERR" "cannot write cut/$(readlink cut/latest)/events.ndjson: File too large"
verdict_has 'the verdict says why' 'all ranks exited 0, but the log folder could not be written' '(exit 73)'
is 'the summary says it, too' "$(python3 -c 'import json; print(json.load(open("cut/latest/summary.json"))["code"])')" 73
is 'a file of JSON ends with a newline' "$(tail -c 2 cut/latest/summary.json | od -An -c | tr -d ' ')" '}\n'
RC=0
(
    ulimit -f 4
    exec timeout -k 5 60 "$HNLAUNCH" --local 60 --log-dir cut sh -c 'exit 4'
) >"$OUT" 2>"$ERR" || RC=$?
exits 'the failure of a rank goes before' 4

hn_exits 'a file of --json that is full: 73' 73 --json=/dev/full --local 1 true
has 'it is named, too' "$ERR" 'warning[HN902]: cannot write the events to /dev/full: No space left on device'
verdict_has 'the verdict says which' 'all ranks exited 0, but the events could not be written' '(exit 73)'
hn_exits 'so is a plan that cannot be written' 73 plan --json=/dev/full --local 1 true

nothing_left 'nothing is left'
done_testing
