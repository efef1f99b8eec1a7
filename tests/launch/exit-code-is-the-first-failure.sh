#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch ends with the code of the rank that failed first; its own codes follow `timeout` and `env`.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn_exits 'all ranks exit 0: 0' 0 --local 3 true

for code in 1 3 42 255; do
    hn --local 3 sh -c "[ \$RANK != 1 ] || exit $code"
    exits "one rank exits $code: $code" "$code"
    verdict_has "the verdict names rank 1 and code $code" 'rank 1' "code $code" "(exit $code)"
done

hn --local 2 sh -c '[ $RANK = 0 ] || exit 9; sleep 30'
exits 'a rank that was stopped does not hide the code of the culprit' 9

hn_exits 'SIGSEGV: 139' 139 --local 2 sh -c '[ $RANK = 1 ] || { sleep 30; exit 5; }; kill -SEGV $$'
verdict_has 'the verdict names the signal' 'rank 1' SIGSEGV '(exit 139)'

hn_exits 'SIGKILL: 137' 137 --local 2 sh -c '[ $RANK = 1 ] || exec sleep 30; kill -KILL $$'
verdict_has 'the verdict says killed by SIGKILL' 'rank 1' SIGKILL

# A folder that may not be looked into would be the reason.
PATH=/usr/bin:/bin hn --local 2 no-such-program-anywhere
exits 'a program that is not in PATH: 127' 127
verdict_has 'the verdict names it' no-such-program-anywhere '(exit 127)'
has 'what cannot be started has a number of its own' "$ERR" 'error[HN312]: '

hn_exits 'a path that is not there: 127' 127 --local 2 ./not/there

echo '#!/bin/sh' >script
hn_exits 'a file without the x bit: 126' 126 --local 2 ./script
verdict_has 'the verdict names the file' script '(exit 126)'

hn_exits 'a folder: 126' 126 --local 2 "$TMP"

printf '\177ELF garbage' >broken && chmod +x broken
hn_exits 'a broken binary: 126' 126 --local 1 ./broken

printf '#!/no/such/shell\n' >lost && chmod +x lost
hn_exits 'a script whose interpreter is missing: 127' 127 --local 1 ./lost

hn --local 2 --on-failure continue sh -c '[ $RANK = 0 ] || exit 4; sleep 0.5; echo survived'
exits '--on-failure continue still gives the code' 4
has '--on-failure continue lets the others end' "$OUT" survived

hn --local 2 --chdir "$TMP/nowhere" true
ok 'a working directory that is not there is a failure' test "$RC" != 0
verdict_has 'its verdict names the directory' nowhere
has 'the help does not say that --chdir was left out' "$ERR" 'help: every node needs the folder in which ranks start: --chdir DIR names another than'
hn -w localhost,127.0.0.1 --chdir "$TMP/nowhere" true
verdict_has 'of two nodes that lack it none is named' "no node can start its ranks: cannot change to directory '$TMP/nowhere'"
has 'which offers to bring the files' "$ERR" '--push FILE brings files'
"$HNLAUNCH" --local 1 echo hello >/dev/full 2>"$ERR"
RC=$?
exits 'a full disk under standard output: 73' 73
"$HNLAUNCH" --local 1 yes 2>"$ERR" | head -n 1 >/dev/null
RC=${PIPESTATUS[0]}
exits 'nobody reads standard output: 141' 141
verdict_has 'which is told, not died of' 'cannot write to stdout' '(exit 141)'
done_testing
