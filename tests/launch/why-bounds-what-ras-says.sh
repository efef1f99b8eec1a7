#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Any program may listen at the address of NCCL's RAS. Whatever it answers, hnlaunch why has its answer in time and says
# what was wrong with that of RAS.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
runtime_dir
python3 -c 'import json' || skip_all 'needs python3'
unset "${!NCCL_RAS_@}"

notes() { python3 -c 'import json; print(*json.load(open("answer"))["notes"], sep="; ")'; }
said() { # MODE NOTE
    echo "$1" >mode
    "$HNLAUNCH" why --json >answer 2>"$TMP/why.err"
    is "$1: why has an answer" "$?" 0
    is "$1: it says what RAS has done" "$(notes)" "$2"
}
on="NCCL's RAS on localhost: "

comes_up 'RAS listens' 1 start --local 1 --label none python3 "$ROOT/tests/lib/fake_ras.py" "$PWD/mode"
said silent "${on}no answer, although a process listens"
said other "${on}another program listens at its address"
said old "${on}not asked, because NCCL before 2.27.3 may crash then, and its version is not known"
said flood "${on}the answer is longer than 512 KiB"
said slow "${on}no complete answer within 5 s"
said cut "${on}the answer cannot be read"
echo hostile >mode
hn_exits 'hostile: why has an answer' 0 why
has 'hostile: RAS alone decides nothing' "$OUT" "note: NCCL's RAS alone says, communicator "
lacks 'hostile: no escape sequence of it comes through' "$OUT" $'\e'
finish_by INT

comes_up 'a rank runs' 1 start --local 1 --label none sh -c 'echo runs; exec sleep 1000'
"$HNLAUNCH" why --json >answer
is 'without NCCL nothing is said of RAS' "$(notes)" ''
finish_by INT
NCCL_RAS_ADDR=192.0.2.1:4000 start --local 1 --label none sh -c 'echo runs; exec sleep 1000'
ok 'address: a rank runs' wait_for lines_are "$OUT" 1
said address "${on}NCCL_RAS_ADDR is 192.0.2.1:4000, not a port of 127.0.0.1"
finish_by INT

# Two worlds on one node: each has a RAS of its own.
echo behind a1 >mode.a
echo behind b2 >mode.b
start -w localhost:1,127.0.0.1:1 --gpus-per-rank 0 --label none --role a --nodes 1 python3 "$ROOT/tests/lib/fake_ras.py" "$PWD/mode.a" : \
    --role b --nodes 1 python3 "$ROOT/tests/lib/fake_ras.py" "$PWD/mode.b"
ok 'RAS of both roles listens' wait_for lines_are "$OUT" 2
hn why
has 'two worlds: RAS of the first is asked' "$OUT" 'communicator a1 (2 ranks): role a, rank 0 has launched 40 AllReduce'
has 'and that of the second' "$OUT" 'communicator b2 (2 ranks): role b, rank 0 has launched 40 AllReduce'
echo silent >mode.a
hn why
has 'the first is silent: why says so' "$OUT" "${on}no answer, although a process listens"
has 'and has the answer of the second' "$OUT" "NCCL's RAS, communicator b2 (2 ranks): role b, rank 0 has launched 40"
finish_by INT
nothing_left 'nothing is left'
done_testing
