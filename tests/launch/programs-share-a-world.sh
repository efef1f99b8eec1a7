#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs with a colon between them are one job: ranks go to them in order, each program has its own variables and folder, and what is
# not given is as for the job.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

mkdir other
say='echo "$0 $RANK/$WORLD_SIZE $A ${PWD##*/}"'

hn --local --label none -x A=job -n 1 sh -c "$say" a : -n 2 -x A=b --chdir other sh -c "$say" b : -n 1 sh -c "$say" c
exits 'three programs run as one job' 0
is 'each rank has its program, variables and folder' "$(sort "$OUT")" 'a 0/4 job work
b 1/4 b other
b 2/4 b other
c 3/4 job work'

hn --local 5 --label none sh -c "$say" a : -n 2 sh -c "$say" b
is 'a program without -n has the slots that the others leave' "$(cut -c1 "$OUT" | sort | xargs)" 'a a a b b'
hn --local --label none -n 1 -- echo a : -n 1 b
is 'nothing separates behind --' "$(cat "$OUT")" 'a : -n 1 b'
hn --local --label none -n 1 echo : b
is 'a colon in front of a word that is no program stays' "$(cat "$OUT")" ': b'

hn_exits 'a failed rank of the second program is the failure' 7 --local -n 2 true : -n 2 sh -c '[ "$RANK" = 2 ] || exec sleep 600; exit 7'
verdict_has 'and is named' 'rank 2 on localhost exited with code 7'
hn_exits 'a second program that does not exist' 127 --local -n 1 true : -n 1 ./no-such-program
has 'it is named' "$ERR" no-such-program

hn plan --local -n 1 true : -n 3 echo hello
ok 'the plan has the first' grep -qE '^program   true  in  .*  \(rank 0\)$' "$OUT"
ok 'and the second' grep -qE '^program   echo hello  in  .*  \(ranks 1-3\)$' "$OUT"
hn plan --json --local -n 1 true : -n 3 echo hello
is 'and so has its JSON' "$(python3 -c 'import json, sys
print([(" ".join(p["argv"]), p["ranks"]) for p in json.load(open(sys.argv[1]))["programs"]])' "$OUT")" \
    "[('true', [0]), ('echo hello', [1, 2, 3])]"
hn plan --local --ranks 1 -n 1 true : -n 1 -x A=own echo {rank}
ok 'a rank of the second has its variables' grep -qx 'A=own' "$OUT"

for args in 'true : -n 1' 'true : --timeout 5s true' 'true : -n 1 true : -n x true' '-n 1 true : --env'; do
    # shellcheck disable=SC2086
    hn_exits "$args is refused" 64 --local $args
done
has 'no program behind the last colon' "$ERR" 'error'
hn --local true : -x A=1 true
has 'two programs without -n' "$ERR" 'error[HN725]: `true` and `true` have no -n'
hn --local true : --timeout 5s true
has 'an option of the job' "$ERR" 'error[HN725]: `--timeout` behind `:` is an option of the whole job'
hn_exits 'no slot is left for the first' 69 --local 2 true : -n 2 true
has 'it is told' "$ERR" 'error[HN301]: no slot is left for `true`'

hn --local --log-dir "$TMP/records" -n 1 true : -n 1 -x SECRET=word sh -c 'exit 3' >/dev/null
has 'records have the line' "$TMP/records/latest/run.json" '"SECRET"'
lacks 'records have no value of -x' "$TMP/records/latest/run.json" word
done_testing
