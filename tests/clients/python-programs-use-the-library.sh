#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Python module: the same calls as in C, failures as exceptions that name the ranks.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

command -v python3 >/dev/null || skip_all 'needs python3'
# A library with sanitizers does not load into a Python without.
HNLAUNCH=$PLAIN/hnlaunch
export HNLAUNCH_LIBRARY=$PLAIN/libhnlaunch.so.0 PYTHONPATH=$ROOT/packaging/python
program=(python3 "$ROOT/tests/clients/python_module.py")

run "${program[@]}" names "$ROOT"/include/hnlaunch/{hnlaunch,comm}.h
is 'every call of the headers is there, with types and words' "$(cat "$OUT")" ok
for n in 1 2 4; do
    hn_exits "$n ranks" 0 -x HNLAUNCH_LIBRARY --local "$n" --label none "${program[@]}"
    is "$n ranks are content" "$(cat "$OUT")" ok
done
run "${program[@]}" alone
is 'by hand: not launched, or a world of one' "$(cat "$OUT")" ok

if [[ -e $PLAIN/hn_backend_gloo.so ]]; then
    for n in 1 3; do
        hn_exits "$n ranks with arrays" 0 -x HNLAUNCH_LIBRARY --local "$n" --label none "${program[@]}" arrays
        is "collectives of $n ranks are right" "$(cat "$OUT")" ok
    done
else
    skip 'ranks with arrays' 'built without Gloo'
fi

hn -x HNLAUNCH_LIBRARY --local 3 --label none --grace 60s sh -c 'trap "" TERM; exec "$@"' sh "${program[@]}" report
exits 'a rank that fails' 5
has 'its report is the reason, byte for byte' "$ERR" 'rank 1 reported: data: 100% of shard 12 is %s'
for rank in 0 2; do
    ok "rank $rank gets an exception that names it" grep -qE "^rank $rank: HN_ERR_PEER: .*rank 1 .*: \[1\]$" "$OUT"
done
hn_exits 'a rank that ends the job' 9 -x HNLAUNCH_LIBRARY --local 3 --label none "${program[@]}" abort
verdict_has 'with its words' 'rank 1 on localhost aborted the job: the loss is %d'
cat >forge.py <<'EOF'
import hnlaunch
hnlaunch.init()
hnlaunch.abort(3, "\033]0;OWNED\007\u202e\nhnlaunch: finished: 1 rank exited 0 in 1ms")
EOF
hn_exits 'a rank that forges a last line: its code' 3 -x HNLAUNCH_LIBRARY --local 1 --label none python3 forge.py
ok 'the last line is ours' grep -q '^hnlaunch: failed after .*aborted the job: .*(exit 3)$' <(tail -n 1 "$ERR")
is 'and nothing of it moves a terminal' "$(LC_ALL=C grep -aP '[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae' "$ERR")" ''
HNLAUNCH_LIBRARY="$TMP/nowhere.so" run "${program[@]}"
has 'without the library the first call says so' "$ERR" "OSError: cannot load the library of hnlaunch: $TMP/nowhere.so: cannot open shared object file"
has 'with the next step' "$ERR" 'or name the file in HNLAUNCH_LIBRARY (for ranks: hnlaunch -x HNLAUNCH_LIBRARY=FILE)'
HNLAUNCH_LIBRARY="$TMP/nowhere.so" run python3 -c 'import hnlaunch'
exits 'and not the import' 0
PATH=$PLAIN:$PATH run python3 -m hnlaunch --local 2 --label rank sh -c 'exit 0'
exits 'the module is a program: hnlaunch in PATH' 0
python=$(python3 -c 'import sys; print(sys.executable)')
run env PATH="$TMP" "$python" -m hnlaunch version
has 'without one it says so' "$ERR" 'cannot find the program hnlaunch'
nothing_left 'nothing is left'
done_testing
