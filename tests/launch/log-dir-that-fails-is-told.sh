#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A log folder that is full, gone or read-only while the job runs: the job goes on, the terminal gets
# everything, what is missing is told, and the end is 73.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >rank <<'END'
#!/bin/sh
echo up
while [ ! -e go ] && [ $((i = i + 1)) -lt 600 ]; do sleep 0.05; done
yes "rank $RANK" | head -c 490000
exit "${1:-0}"
END
chmod +x rank

everything_came() { # NAME
    local r
    for r in 0 1 2 3; do
        yes "rank $r" | head -c 490000
    done | cat - <(printf 'up\nup\nup\nup\n') | sort >want
    sort "$OUT" >got
    same "$1" got want
}

# Standard output is a pipe: limits of files are none of its business.
begin() { # LOG-DIR [CODE]
    rm -f go pipe
    mkfifo pipe
    : >"$OUT" # what an earlier run said would count
    cat pipe >"$OUT" &
    reader=$!
    env --default-signal "$HNLAUNCH" --local 4 --label none --log-dir "$1" ./rank "${2:-0}" >pipe 2>"$ERR" &
    PID=$!
    wait_for lines_are "$OUT" 4
}

knows_end() { # NAME STATE CODE VERDICT
    local id
    id=$(readlink full/latest)
    is "$1: summary.json is empty" "$(stat -c %s full/latest/summary.json)" 0
    is '... ps' "$("$HNLAUNCH" ps --all 2>&1 | grep "^$id .* [0-9.]*m\?s .*$2" | wc -l)" 1
    "$HNLAUNCH" wait "$id" 2>wait.err
    is '... wait' "$?:$(grep -c "$4" wait.err)" "$3:1"
    "$HNLAUNCH" report "$id" >report.out
    has '... report' report.out "$4"
    lacks '... which is not that of a killed run' report.out 'was killed'
}

end() {
    : >go
    finish
    wait "$reader"
}

# A limit on the size of files is a disk that is full for files only, and needs no privileges.
begin limited
prlimit --fsize=100000 --pid "$PID"
end
exits 'files that may not grow: 73 although all ranks exited 0' 73
verdict_has 'the verdict says why' 'log folder could not be written' '(exit 73)'
has 'it is told how much is missing' "$ERR" 'bytes of output are missing in'
everything_came 'and the terminal got everything'
is 'the files hold their beginning' "$(stat -c %s limited/latest/rank-00002.out)" 100000

begin limited2 9
prlimit --fsize=100000 --pid "$PID"
end
exits 'a rank that fails is the reason nevertheless' 9

begin gone
rm -rf gone
end
exits 'a folder that was deleted: 73' 73
verdict_has 'the verdict says why' 'log folder could not be written' '(exit 73)'
everything_came 'and the terminal got everything'

# A restarted job opens the files of its ranks again.
cat >twice <<'END'
#!/bin/sh
echo up
until [ -e "go.$HN_RESTART" ]; do sleep 0.05; done
[ "$HN_RESTART" = 1 ]
END
chmod +x twice
comes_up 'two ranks are up' 2 start --local 2 --label none --max-restarts 1 --log-dir again ./twice
folder=again/$(readlink again/latest)
rm -rf "$folder"
: >go.0
ok 'files that cannot be opened are told' wait_for grep -q 'cannot write to again/.*the job goes on without' "$ERR"
mkdir "$folder"
: >go.1
exits 'files of ranks that cannot be opened: 73' 73 finish
verdict_has 'the verdict says why' 'log folder could not be written' '(exit 73)'
has 'it is told how much is missing' "$ERR" 'error[HN901]: 6 bytes of output are missing in'

hn_exits 'a rank that exits with 73' 73 --local 1 --label none sh -c 'exit 73'
verdict_has 'is not taken for a log folder' 'code 73'

if [[ $EUID == 0 ]] && unshare --mount true 2>/dev/null; then
    mkdir full ro
    at_end() { umount full ro 2>/dev/null; }
    mount -t tmpfs -o size=640k full full
    begin full
    end
    exits 'a disk that is full: 73' 73
    lacks 'and not of the records once more' "$ERR" HN805
    verdict_has 'the verdict says why' 'log folder could not be written' '(exit 73)'
    has 'it is told how much is missing' "$ERR" 'bytes of output are missing in'
    told_once 'with the file that is incomplete' "    = note: cannot write full/"
    lacks 'and not of the records once more' "$ERR" HN902
    everything_came 'and the terminal got everything'
    knows_end 'commands know the end without a summary' 'failed (73)' 73 'log folder could not be written'
    "$HNLAUNCH" logs >logs.out 2>logs.err
    has 'logs tells that files may have more' logs.err 'the files of the ranks in'
    has '... and does not promise it' logs.err 'may have more output'

    rm -rf full/*
    begin full 6
    end
    exits 'a rank that fails on a full disk: its code' 6
    knows_end '... which commands have as well' 'failed (6)' 6 'code 6'

    rm -rf full/*
    hn --local 1 --log-dir full sh -c 'dd if=/dev/zero of=full/fill bs=4k 2>/dev/null; true'
    exits 'a disk that gets full without output: 73' 73
    told_once 'the fault stands once' 'No space left on device'
    verdict_has 'the verdict says why' 'log folder could not be written' '(exit 73)'

    dd if=/dev/zero of=full/fill bs=4k 2>/dev/null
    hn_exits 'a disk that is full from the beginning: 73' 73 --local 1 --log-dir full true
    has 'it is an error with its number' "$ERR" 'error[HN903]: '
    told_once 'the fault stands once' 'No space left on device'
    verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 73)'

    mount -t tmpfs -o ro none ro
    hn_exits 'a folder that is read-only from the beginning: 73' 73 --local 1 --log-dir ro true
    told_once 'it is named, once' Read-only
    verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 73)'
else
    skip 'a full disk' 'needs root'
fi
nothing_left 'nothing is left'
done_testing
