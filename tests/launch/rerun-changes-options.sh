#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch rerun with options of a run: they take the place of the recorded ones, and the new line is shown.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
newest() { "$HNLAUNCH" ps --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])'; }
line() { sed -n 's/^hnlaunch: once more, in [^:]*: //p' "$ERR"; }
program='echo "$RANK of $WORLD_SIZE ${FLAVOUR-} ${SIZE-}"'

hn_exits 'a run' 0 -x FLAVOUR=plain --local -qn2 --timeout=1h --label none -- sh -c "$program"
id=$(newest)
export FLAVOUR=plain
hn_exits 'other options' 0 rerun "$id" -n 1 --timeout 10m -x SIZE=big
is 'the rank has them' "$(cat "$OUT")" '0 of 1 plain big'
is 'they stand in place of the recorded ones, -x beside the others' "$(line)" \
    "hnlaunch -x FLAVOUR --local -q --label none -n 1 --timeout 10m -x SIZE=big -- sh -c '$program'"
hn rerun -n4 "$(newest)"
is 'in front of the run, too, and of a run that was such a one' "$(line)" \
    "hnlaunch -x FLAVOUR --local -q --label none --timeout 10m -x SIZE -n 4 -- sh -c '$program'"
is 'all ranks run' "$(sort "$OUT" | xargs)" '0 of 4 plain 1 of 4 plain 2 of 4 plain 3 of 4 plain'
hn rerun "$id" --local=1 --np 1 -o run.timeout=5m -o env.set.SIZE=small -o net.store_size=2G
is 'keys replace options, and one way to name hosts the others' "$(line)" \
    "hnlaunch -x FLAVOUR -q --label none --local=1 -n 1 -o run.timeout=5m -x SIZE=small -o net.store_size=2G -- sh -c '$program'"
is 'and reach the rank' "$(cat "$OUT")" '0 of 1 plain small'
hn rerun "$id" -w localhost -n 1
is 'hosts in place of --local' "$(line)" "hnlaunch -x FLAVOUR -q --timeout=1h --label none -w localhost -n 1 -- sh -c '$program'"
exits 'they start' 0
hn rerun "$id" -n 1 -x API_TOKEN=sesame
lacks 'no value of a secret is shown' "$ERR" sesame
has 'but its name' "$ERR" "-x 'API_TOKEN=***'"
hn rerun -q "$id" -n 1
is '-q is quiet, and so is the run' "$(cat "$ERR")" ''
hn --local 1 --label none run sh -c true
hn run --local 1 --label none ps
hn rerun --label=x:
has 'run stays the first word' "$ERR" ": hnlaunch run --local 1 --label x: ps"

hn --local 4 -n 1 --label none sh -c 'echo "a $RANK"' : -n 1 sh -c 'echo "b $RANK"'
hn rerun -n 2
is 'of several programs, in front of the first' "$(line)" "hnlaunch --local 4 --label none -n 2 sh -c 'echo \"a \$RANK\"' : -n 1 sh -c 'echo \"b \$RANK\"'"
is 'all run' "$(sort "$OUT" | xargs)" 'a 0 a 1 b 2'

# --- paths ------------------------------------------------------------------------------------
mkdir here there
echo 'SIZE=here' >here/env
(cd there && "$HNLAUNCH" --local 1 --label none sh -c "$program" >/dev/null 2>&1)
id=$(newest)
cd here || exit 1
hn_exits 'paths' 0 rerun "$id" --env-file env --json=events --log-dir none
is 'start in the present folder' "$(cat "$OUT")" '0 of 1 plain here'
has 'and are shown so' "$ERR" "in ${PWD%/here}/there: hnlaunch --local 1 --label none --env-file $PWD/env --json=$PWD/events --log-dir none sh"
ok 'a file is written there' test -s events
cd ../there || exit 1
cp ../here/env .
hn rerun "$id" --env-file env
has 'in the folder of the run they stay short' "$ERR" '--env-file env sh'
cd ..

# --- what cannot be ---------------------------------------------------------------------------
hn_exits 'a wrong value' 64 rerun "$id" -n none
has 'is told with its option' "$ERR" 'error[HN703]: -n must be'
lacks 'before anything starts' "$ERR" 'once more'
for option in --job=file --dry-run --probe --tail=3 --html=x --grep=x; do
    hn_exits "rerun $option" 64 rerun "$id" $option
    ok 'is refused with the commands that have it' grep -qE "^error\[HN[0-9]+\]: ${option%%=*} is an option of .*, not of rerun" "$ERR"
    has 'and a next step' "$ERR" 'help: hnlaunch rerun -h lists the options of rerun'
done
hn rerun -h
has 'the help says what it takes' "$OUT" 'Options of a run replace those of the recorded command line'
done_testing
