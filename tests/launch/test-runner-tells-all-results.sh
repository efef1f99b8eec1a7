#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What tests/run.sh tells of tests that pass, fail and are skipped, on a small tree of such tests; and what waiting for
# a state does when the state never comes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

tree=$TMP/tree
mkdir -p "$tree"/tests/{lib,launch,ssh,unit,fuzz,lab,clients,install,gpu} "$tree/elsewhere"
cp "$ROOT/tests/run.sh" "$tree/tests/"
cp "$ROOT"/tests/lib/{tap,wait}.sh "$tree/tests/lib/"

make_test() { # FILE LINE...
    printf '%s\n' '. "$(dirname "$0")/../lib/tap.sh" || exit 1' "${@:2}" >"$tree/tests/$1"
}

make_test launch/good.sh 'pass first' 'skip "a part" "no moon tonight"' 'pass last' 'done_testing'
make_test launch/other.sh 'skip "another part" "no moon tonight"' 'skip "a third" "no wind"' 'done_testing'
make_test launch/bad.sh 'pass fine' 'is "sums are right" 5 4' 'pass "fine again"' 'done_testing'
make_test launch/dead.sh 'pass alive' 'kill -KILL $$'
make_test ssh/none.sh 'skip_all "no sea here"'
make_test ssh/good.sh 'pass alone' 'done_testing'
printf 'echo "ok 1 - order"\n' >"$tree/tests/layers.sh"
printf 'exit 1\n' >"$tree/tests/ssh/run.sh"
: >"$tree/elsewhere/good.sh"

run_tests() { # ARG...
    run env -u BUILD -u PLAIN -u HNLAUNCH TMPDIR="$TMP" sh "$tree/tests/run.sh" -B "$@"
}

has_lines() { # NAME LINE...: they follow each other in stdout, which begin so
    local name=$1 want
    shift
    want=$(printf '%s\n' "$@")
    if [[ $'\n'$(cut -c1-60 "$OUT") == *$'\n'"$want"* ]]; then
        pass "$name"
    else
        fail "$name" "not in stdout: $want"
    fi
}

# --- all suites: what is skipped and what fails comes again at the end ------------------------------------

exits 'a failed test gives 1' 1 run_tests layers launch ssh
is 'the last line counts' "$(tail -n 1 "$OUT")" '7 passed, 2 failed, 4 skipped'
has_lines 'skipped tests come under their reason, the same reason once' 'no moon tonight' \
    '     tests/launch/good.sh: 2 - a part' '     tests/launch/other.sh: 1 - another part' \
    'no wind' '     tests/launch/other.sh: 2 - a third' 'no sea here' '     tests/ssh/none.sh' '== failed'
has_lines 'failed tests come last, with what they say of it' '== failed' \
    'tests/launch/bad.sh' '     not ok 2 - sums are right' '     # got:  5' '     # want: 4' '     # exit code 0' \
    'tests/launch/dead.sh' '     not ok - ended within its time limit' '7 passed'
is 'they have been told at their end, too' "$(grep -c 'not ok 2 - sums are right' "$OUT")" 3
is 'failed files run again' "$(grep -c '^== running 2 failed test files again, alone' "$OUT")" 1
is 'and have failed twice' "$(grep -c '^FAIL launch-' "$OUT")" 4
has 'a file says how many of its tests were skipped' "$OUT" 'pass launch-good (3 tests, 1 skipped, '
exits 'good tests give 0' 0 run_tests layers
is 'then nothing but the sum comes at the end' "$(tail -n 2 "$OUT" | cut -c1-13)" $'pass layers-l\n1 passed, 0 f'

# --- what fails beside others only --------------------------------------------------------------------------

make_test ssh/shaky.sh '[[ -e $SHAKY ]] || { : >"$SHAKY"; fail "the first time" "it was late"; }' 'pass "always"' 'done_testing'
export SHAKY=$TMP/shaky
exits 'a file that passes alone is no failure' 0 run_tests ssh
has_lines 'but it is told' '== unsteady: failed beside others, passed alone' 'tests/ssh/shaky.sh' \
    '     not ok 1 - the first time' '     # it was late'
is 'and its second run counts' "$(tail -n 1 "$OUT")" '2 passed, 0 failed, 1 skipped'
rm "$SHAKY"
exits 'a file that fails without others is not run again' 1 run_tests tests/ssh/shaky.sh
rm "$tree/tests/ssh/shaky.sh"

# --- files -------------------------------------------------------------------------------------------------

cd "$tree/tests/ssh" || exit 1
exits 'files are taken beside suites' 0 run_tests good.sh tests/launch/good.sh "$tree/tests/launch/other.sh" ../launch/good.sh layers
is 'each once, from wherever they are named' "$(sed -n 's/^pass \([^ ]*\).*/\1/p' "$OUT" | sort | tr '\n' ' ')" \
    'launch-good launch-other layers-layers ssh-good '
is 'and no other' "$(tail -n 1 "$OUT")" '4 passed, 0 failed, 3 skipped'
cd "$TMP/work" || exit 1
for file in "$tree/elsewhere/good.sh" tests/ssh/run.sh tests/lib/tap.sh; do
    run_tests "$file"
    exits "${file#"$tree/"} is refused" 64
    has 'it is named' "$ERR" "tests/run.sh: $file is no test file"
    lacks 'nothing is run' "$OUT" 'test files'
done
exits 'so is a file that is not there' 64 run_tests tests/launch/good.sh tests/launch/absent.sh
has 'the suites are told' "$ERR" 'tests/launch/absent.sh is neither a test file nor a suite; there are: layers unit'
exits 'so is a pattern that nothing has' 64 run_tests -k nothing-like-it launch
run_tests -k '*/good' ssh launch
is 'a pattern chooses' "$(tail -n 1 "$OUT")" '3 passed, 0 failed, 1 skipped'

# --- the order ---------------------------------------------------------------------------------------------

for name in $(sed -n '/^BUSY="/,/"$/p; /^SLOW="/,/"$/p' "$ROOT/tests/run.sh" | sed 's/^[A-Z]*=//' | tr -d '"'); do
    [[ -e $ROOT/tests/$name.sh || -e $ROOT/tests/$name.c ]] || echo "$name"
done >"$TMP/unknown"
is 'files that begin first exist' "$(cat "$TMP/unknown")" ''

# --- waiting -----------------------------------------------------------------------------------------------

loads() { # AVERAGE RUNNING: the load for whatever waits from now on
    printf '%s 0.50 0.20 %s/321 4711\n' "$1" "$2" >"$TMP/loadavg"
}
export LOADAVG=$TMP/loadavg
begin=$SECONDS
loads 0.07 1
is 'a limit holds on a quiet machine' "$(scaled 20)" 20
loads "$((3 * WAIT_CPUS)).00" 1
is 'it grows with the average' "$(scaled 20)" 60
loads 0.00 "$((2 * WAIT_CPUS + 1))"
is 'and at once with those that want to run' "$(scaled 20)" 60
python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import waiting; print(waiting.scaled(20))' "$ROOT/tests/lib" >"$OUT"
is 'in Python as well' "$(cat "$OUT")" 60

loads 0.00 1
never() {
    echo 'nobody came'
    false
}
if WAIT=1 wait_for never 2>"$ERR"; then fail 'waiting ends'; else pass 'waiting ends'; fi
has 'it tells for what it waited' "$ERR" 'in vain for: never'
has 'and the last that it saw' "$ERR" '# its last words: nobody came'
cat >"$TMP/wait.c" <<'END'
#include "wait_for.h"

int main(int argc, char **argv)
{
        int looks = 0;

        wait_for(++looks > 3);
        wait_for_equal(argc, atoi(argv[1]));
        return looks;
}
END
ok 'the twin in C is built' gcc -std=gnu17 -DWAIT_MS=200 -I "$ROOT/tests/lib" -o "$TMP/wait" "$TMP/wait.c"
exits 'it waits until a condition holds' 4 run "$TMP/wait" 2
exits 'and ends by abort()' 134 run "$TMP/wait" 7
has 'with the last value' "$ERR" 'waited in vain for: argc == atoi(argv[1]); last: 2'
(sleep 0.3 && : >"$TMP/state") &
ok 'a state that comes is seen' wait_for test -e "$TMP/state"
loads 0.00 "$((10 * WAIT_CPUS))"
(sleep 1.4 && : >"$TMP/late") &
WAIT=1 ok 'on a busy machine it may come later' wait_for test -e "$TMP/late"
ok 'none of that took its time' test $((SECONDS - begin)) -lt "$(LOADAVG='' scaled 20)"
done_testing
