#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hold imports modules before each run (--warm): scripts then show the same as without a hold, and begin at once. What
# cannot continue in such an interpreter starts in a new one. RUNS=1000 repeats a run so often, without growth.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

runtime_dir
lab_up 2 2
H=$TMP/hosts.txt

held() { lab run "$LAB_HNLAUNCH" ps --json | python3 -c 'import json, sys; [print(h[sys.argv[1]]) for h in json.load(sys.stdin)["holds"]]' "$1"; }
is_warm() { [[ $(held nodes_warm) == 2 ]]; }
warm_hn() { # the modules are imported by then
    wait_for is_warm || fail 'interpreters are prepared'
    lab_hn -v "$@"
}
both() { # NAME CODE ARG...: the same without a hold and in prepared interpreters
    local name=$1 code=$2
    shift 2
    exits "$name, new" "$code" lab_hn --hold none "$@"
    sort "$OUT" >"$TMP/new.out"
    grep -v '^hnlaunch' "$ERR" | sort >"$TMP/new.err"
    exits "$name, prepared" "$code" warm_hn "$@"
    is "$name: all ranks are prepared" "$(grep -c ': 2 of 2 ranks run in prepared interpreters' "$ERR")" 2
    sort "$OUT" >"$TMP/prepared.out"
    same "$name: the same output" "$TMP/new.out" "$TMP/prepared.out"
}

exits 'a hold whose module is missing' 0 lab_hn hold -H "$H" --warm python3:json,no_such_module
has 'warns with the number' "$ERR" 'warning[HN641]'
has 'the node and the reason' "$ERR" "cannot prepare interpreters on node[001-002]: cannot import no_such_module"
has 'and the next step' "$ERR" "; try there: python3 -c 'import json, no_such_module'"
lab_hn -H "$H" --label none python3 -c 'print(1)'
is 'and serves runs' "$RC $(sort -u "$OUT")" '0 1'
lab_hn release

cat >script.py <<'PYTHON'
import os, sys
import sibling
print(os.environ["RANK"], os.environ["WORLD_SIZE"], os.uname().nodename, os.getcwd(), sys.argv, sibling.__name__, sys.path[0], os.environ.get("MINE"))
if os.environ["RANK"] == sys.argv[1]:
    sys.exit(int(sys.argv[2]))
PYTHON
: >sibling.py
exits 'a hold with modules' 0 lab_hn hold -H "$H" --warm python3:json,multiprocessing
ok 'is ready when they are imported' is_warm
export MINE=of-the-run
both 'a run that ends' 0 -H "$H" --label none python3 script.py 9 0
both 'a rank that fails' 7 -H "$H" --label none --on-failure continue python3 script.py 1 7
for i in 1 2; do
    lab_hn -v -H "$H" --label none python3 script.py 9 0
    is "run $i without a pause waits for the import" "$RC $(grep -c ': 2 of 2 ranks run in prepared interpreters' "$ERR")" '0 2'
done
echo 'raise ValueError("no")' >fails.py
exits 'a run with an exception' 1 warm_hn -H "$H" --label none --on-failure continue python3 fails.py
ok 'shows tracebacks of all ranks' test "$(grep -c 'fails.py", line 1, in <module>' "$ERR")" -ge 4
lacks 'without frames of the preparation' "$ERR" '<hnlaunch>'
cat >shows.py <<'PYTHON'
import os, sys
if os.environ["RANK"] == "0":
    print(os.isatty(0), os.isatty(1), os.ttyname(1) == os.ttyname(0), sys.stdout.line_buffering)
    with open("/dev/tty", "w") as f:
        print("terminal", file=f)
PYTHON
wait_for is_warm
lab_run script -qec "$LAB_HNLAUNCH --pty -H $H --label none python3 shows.py" /dev/null
has 'a rank with a terminal' "$OUT" 'True True True'
has 'which is that of its session' "$OUT" 'terminal'
echo 'import time; print("up", flush=True); time.sleep(60)' >sleeps.py
wait_for is_warm
comes_up 'ranks are up' 4 lab_start -H "$H" --label none python3 sleeps.py
finish_by INT
is 'a run that is interrupted' "$RC" 130
wait_for is_warm
comes_up 'ranks are up' 4 lab_start -H "$H" --label none python3 sleeps.py
finish_by KILL
sleepers() { lab ps | grep -c sleeps.py; }
none_sleeps() { [[ $(sleepers) == 0 ]]; }
ok 'a killed run leaves no rank behind' wait_for none_sleeps
warm_hn -H "$H" --label none python3 -c 'print(2)'
has 'another command starts in a new interpreter, with the reason' "$ERR" 'does not use a prepared interpreter: the first argument is no script'
is 'and runs' "$(sort -u "$OUT")" 2
warm_hn -H "$H" --label none -x LC_TIME=C python3 script.py 9 0
has 'so does another locale' "$ERR" '0 of 2 ranks run in prepared interpreters; not used: LC_TIME differs'
exits 'which runs' 0

# --- many runs ------------------------------------------------------------------------------------------------

memory() { awk '/^Private_Dirty:/ { print $2 }' "/proc/$(held pid)/smaps_rollup"; }
counts() { lab ps | wc -l; }
descriptors() { ls "/proc/$(held pid)/fd" | wc -l; }
wait_for is_warm
for ((i = 0; i < ${RUNS:-30}; i++)); do
    warm_hn -H "$H" --label none python3 script.py 9 0
    [[ $RC == 0 && $(grep -c 'prepared interpreters$' "$ERR") == 2 ]] || fail "run $i" "$(cat "$ERR")"
    if ((i == 9)); then
        wait_for is_warm
        before="$(counts) $(descriptors)" kib=$(memory)
    fi
done
wait_for is_warm
is 'many runs leave processes and descriptors as they were' "$(counts) $(descriptors)" "$before"
ok 'and the memory of the hold' test "$(memory)" -lt $((kib + 1024))
exits 'a hold with modules is released' 0 lab_hn release
lab_nothing_left 'nothing is left on the nodes'
done_testing
