# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What hnlaunch why answers: source after tap.sh.
#
#   why                  asks of the run that goes on; the answer is in the file answer
#   field EXPRESSION     prints what a Python expression makes of the answer `a` and its ranks `ranks`
#   others_wait RANK     asks, and succeeds when all other ranks wait: the hang is complete
#   says NAME TEXT       a test that the finding has the text
#   hang_events FILE MEMBER   prints rank and this member of each event run.hang of a file
#   start_twice OPTION...     starts three ranks that meet twice; rank 1 comes when the file go is there, then when the file end is

why() { "$HNLAUNCH" why --json >answer 2>"$TMP/why.err"; }

field() {
    python3 -c "import json, sys
a = json.load(open('answer'))
ranks = a['ranks']
print(eval(sys.argv[1]))" "$1"
}

# What is judged is the answer that shows it.
others_wait() { why && [[ $(field "all(r['waits'] for r in ranks if r['rank'] != $1)") == True ]]; }

says() {
    if [[ $(field "a['text']") == *"$2"* ]]; then pass "$1"; else fail "$1" "$(field "a['text']")"; fi
}

hang_events() {
    python3 -c 'import json, sys
print(*[(e["rank"], e[sys.argv[2]]) for e in map(json.loads, open(sys.argv[1])) if e["ev"] == "run.hang"])' "$1" "$2"
}

start_twice() {
    cp -r "$ROOT/examples/python/hnlaunch/" .
    cat >twice.py <<'END'
import os
import time
import hnlaunch as hn

hn.init()
for go in "go", "end":
    while hn.rank() == 1 and not os.path.exists(go):
        time.sleep(0.1)
    hn.barrier()
hn.finalize()
END
    LD_LIBRARY_PATH=$PLAIN start --local 3 --label none "$@" python3 twice.py
}
