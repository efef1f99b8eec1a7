#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --multi-prog: the file of srun has the programs of one world. The job is that of the same programs behind colons.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($1)" "$OUT"; } # EXPRESSION

# --- the example of srun's manual
cat >silly.conf <<'END_OF_FILE'
###################################################################
# srun multiple program configuration file
#
4-6       hostname -d
1,7       echo  task:%t

0,2-3     echo  offset:%o
END_OF_FILE
hn_exits 'the example runs' 0 --local 8 --oversubscribe --multi-prog silly.conf
is 'each rank has its program' "$(sed 's/^[0-9]* | //;/^task\|^offset/!d' "$OUT" | sort | xargs)" 'offset:0 offset:1 offset:2 task:1 task:7'
is 'and its place' "$(grep -c '^0 | offset:0$\|^2 | offset:1$\|^3 | offset:2$\|^1 | task:1$\|^7 | task:7$' "$OUT")" 5
hn plan --json --local 8 --oversubscribe --multi-prog silly.conf
is 'a plan has the ranks of the programs' "$(json '[p["ranks"] for p in d["programs"]]')" '[[4, 5, 6], [1, 7], [0], [2], [3]]'
is 'there are as many ranks as the file has' "$(json 'd["world_size"]')" 8

# --- one world, as with colons
say='echo $0 $RANK of $WORLD_SIZE: $*'
printf '0 sh -c \x27%s\x27 a x\n* sh -c \x27%s\x27 b %%t-%%o {rank}\n' "$say" "$say" >two.conf
hn --local 4 --oversubscribe -n 4 --label none --multi-prog two.conf
cp "$OUT" from_file
exits 'programs of one world' 0
hn --local 4 --oversubscribe --label none -n 1 sh -c "$say" a x : -n 3 --chdir . sh -c "$say" b '%t' x
is 'as many of each as behind colons' "$(cut -d: -f1 "$OUT" | sort)" "$(cut -d: -f1 from_file | sort)"
is '* has the rank, other braces stay' "$(sed -n 's/^b [0-9] of 4: //p' from_file | sort | xargs)" '1-1 {rank} 2-2 {rank} 3-3 {rank}'
printf '0 printf [%%s]%%s a\\ b \x27%%t %%o\x27 \\%%t {host} "x y" %%t\n' >words.conf
hn --local 1 --label none --multi-prog words.conf
is 'quotes and backslashes keep characters' "$(cat "$OUT")" '[a b]%t %o[%t]{host}["x]y"[0]'
printf '[run]\nlocal = 2\noversubscribe = yes\nmulti_prog = yes\nprogram = prog.conf\n' >job
printf '0 echo a\r\n1 echo b' >prog.conf
hn --log-dir "$TMP/records" --label none --job job
is 'a job file may name it' "$RC $(sort "$OUT" | xargs)" '0 a b'
hn --local 2 --oversubscribe --label none --multi-prog prog.conf
id=$(sed -n 's/^hnlaunch: run \([a-z0-9]*\):.*/\1/p' "$ERR")
hn rerun "$id"
is 'rerun reads it again' "$RC $(sort "$OUT" | xargs)" '0 a b'

# --- mistakes
refused() { # NAME FILE TEXT PLACE CODE OPTION...
    local name=$1 text=$3 place=$4 code=$5

    printf '%b' "$2" >bad.conf
    shift 5
    hn --local 4 --oversubscribe "$@" --multi-prog bad.conf
    is "$name" "$RC $(grep -cF "error[HN724]: $text" "$ERR")" "$code 1"
    has 'its place' "$ERR" "bad.conf:$place"
}
refused 'a rank twice' '0 a\n# x\n1,0-2 b\n' 'rank 0 has two programs' '3:3' 65
has 'a mark' "$ERR" '|   ^^^'
refused 'a rank that is missing' '0 a\n2 b\n' 'rank 1 has no program' '3' 65
refused 'a rank that is missing, with -n' '0-2 a\n' 'rank 3 has no program' '2' 65 -n 4
refused 'a rank beyond -n' '0 a\n1-4 b\n' 'there is no rank 4: the job has 4' '2:1' 65 -n 4
refused 'a rank beyond the slots' '9 a\n* b\n' 'there is no rank 9: the job has 4' '1:1' 65
has 'how many would do' "$ERR" '-n 10 starts so many ranks'
refused 'no ranks' 'a b\n' 'a line begins with ranks' '1:1' 65
refused 'a range from the end' '0,3-1 b\n' 'a line begins with ranks' '1:3' 65
refused 'a comma at the end' '0, b\n' 'a line begins with ranks' '1:1' 65
refused 'no program' '0 a\n1\n' 'no program follows the ranks' '2:1' 65
refused 'an open quote' "0 a 'b\\n" 'a '"'"' is not closed' '1:5' 65
refused 'two lines for the rest' '* a\n* b\n' 'two lines have the ranks of no other line' '2:1' 65
refused 'an empty file' '# nothing\n' 'no program in the file' '2' 65
refused 'more programs than an order has' '0-5000 a %o\n' 'the file has more than 4096 programs' '1:1' 65
hn --local 2 --multi-prog nowhere.conf
is 'no file' "$RC $(grep -c 'error\[HN724\]: cannot read the file of --multi-prog nowhere.conf: No such file' "$ERR")" '66 1'
hn --local 2 --multi-prog prog.conf x
is 'a word behind the file' "$RC $(grep -c 'error\[HN724\]: `x` behind the file of --multi-prog' "$ERR")" '64 1'
hn --local 2 --multi-prog --role a prog.conf
is 'roles beside it' "$RC $(grep -c 'error\[HN724\]: --multi-prog and --role exclude each other' "$ERR")" '64 1'
hn --local 2 --multi-prog prog.conf : -n 1 true
is 'programs behind a colon beside it' "$RC $(grep -c 'error\[HN724\]: --multi-prog and a program behind `:`' "$ERR")" '64 1'
hn --local 2 --per-node --multi-prog prog.conf
is '--per-node beside it' "$RC $(grep -c 'error\[HN724\]: --multi-prog and --per-node' "$ERR")" '64 1'
done_testing
