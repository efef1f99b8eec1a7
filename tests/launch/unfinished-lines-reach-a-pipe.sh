#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A pipe or file gets an unfinished line while its rank waits. The rest of the line follows without another label, unless
# another rank has written in between. All runs wait at the same time.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Rank 0 leaves a line unfinished, rank 1 writes one when it is told to, rank 0 ends its line when it is told to.
cat >rank <<'END'
#!/bin/sh
until_there() { until [ -e "$1" ]; do sleep 0.1; done; }
if [ "$RANK" = 0 ]; then
    printf "$1"
    while [ -n "$3" ] && [ ! -e go ]; do printf "$3"; sleep 0.2; done
    until_there go
    printf "$2"
else
    until_there other
    [ -z "$OTHER" ] || echo "$OTHER"
fi
END
chmod +x rank

pids=()
waiting() { # NAME [OPTION...] -- TEXT REST [AGAIN]: a run with its output in the file NAME
    local name=$1 options=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    "$HNLAUNCH" -q --local 2 "${options[@]}" ./rank "${@:2}" >"$name" 2>"$name.err" &
    pids+=($!)
}
OTHER='' waiting plain -- 'waiting ...' 'done\n'
OTHER='hello' waiting between --log-dir logs -- 'waiting ...' 'done\n'
OTHER='' waiting none --label none -- 'waiting ...' 'done\n'
OTHER='' waiting raw --raw -- 'waiting \033[1m' 'done\n'
OTHER='hello' waiting bar -- '10%%\r20%%' '\r30%%\n'
OTHER='hello' waiting folded --fold -- 'waiting ...' 'done\n'
OTHER='' waiting timed --timestamps -- 'waiting ...' 'done\n'
OTHER='hello' waiting dots --log-dir dotted -- '' ' done\n' '.'
OTHER='' waiting never -- '' 'a whole line\n'
"$HNLAUNCH" -q --local 2 sh -c '[ $RANK = 0 ] || exec ./rank; exec >&2; OTHER=hello exec ./rank waiting "done\n"' 2>errors &
pids+=($!)

there() { [[ $(<"$1") == "$2" ]]; }
for name in plain between folded; do
    ok "$name: the beginning is there" wait_for there "$name" '0 | waiting ...'
done
ok 'none: the beginning is there' wait_for there none 'waiting ...'
ok 'raw: the beginning is there' wait_for there raw $'0 | waiting \033[1m'
ok 'bar: both states are there' wait_for there bar $'0 | 10%\r0 | 20%'
ok 'timed: the beginning is there' wait_for grep -qE '^[0-9:.]{12} 0 \| waiting \.\.\.$' timed
ok 'stderr: the beginning is there' wait_for there errors '0 | waiting'
ok 'dots: an unfinished line that goes on is there as well' wait_for grep -q '^0 | \.\.' dots
: >other
for name in between folded bar dots; do
    ok "$name: the line of the other rank is there" wait_for grep -qx '1 | hello' "$name"
done
: >go
rc=0
for pid in "${pids[@]}"; do
    wait "$pid" || rc=$?
done
is 'all ended well' $rc 0
is 'the rest follows the beginning' "$(<plain)" '0 | waiting ...done'
is 'behind the line of another rank it has its label' "$(<between)" $'0 | waiting ...\n1 | hello\n0 | done'
same 'the file of the rank has its bytes' logs/latest/rank-00000.out <(echo 'waiting ...done')
is 'without labels the bytes are those of the rank' "$(<none)" 'waiting ...done'
is 'and with --raw' "$(<raw)" $'0 | waiting \033[1mdone'
is 'a bar has its labels' "$(<bar)" $'0 | 10%\r0 | 20%\n1 | hello\n0 | \r0 | 30%'
is 'with --fold it is the same' "$(<folded)" $'0 | waiting ...\n1 | hello\n0 | done'
is 'one time stands in front' "$(sed -E 's/^[0-9:.]{12} 0/T 0/' timed)" 'T 0 | waiting ...done'
is 'dots lose none' "$(tr -dc . <dots | wc -c)" "$(tr -dc . <dotted/latest/rank-00000.out | wc -c)"
is 'whole lines are as ever' "$(<never)" '0 | a whole line'
nothing_left 'nothing is left'
done_testing
