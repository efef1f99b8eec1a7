# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What hnlaunch why answers: source after tap.sh.
#
#   why                  asks of the run that goes on; the answer is in the file answer
#   field EXPRESSION     prints what a Python expression makes of the answer `a` and its ranks `ranks`
#   others_wait RANK     asks, and succeeds when all other ranks wait: the hang is complete
#   says NAME TEXT       a test that the finding has the text

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
