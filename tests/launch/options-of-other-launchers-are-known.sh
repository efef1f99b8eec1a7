#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/howto/from-*.md: an option of another launcher is accepted where a page says "the same" or "ignored", and
# refused in every other row; what a page names instead is accepted, and starts ranks. hnlaunch plan asks no node.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# 300 starts: without sanitizers they take some seconds.
HNLAUNCH=$PLAIN/hnlaunch
pages=("$ROOT"/docs/howto/from-*.md)
printf 'gpu0%d slots=8\n' 1 2 3 4 >hosts.txt
touch key
printf '#!/bin/sh\necho "rank=$HN_RANK"\n' | tee a >b
chmod +x a b

# Prints the code of hnlaunch with these options, as a shell reads them; hosts of its own unless they name some.
code_of() { # OPTIONS
    local words hosts=()
    eval "words=($1)"
    [[ ${words[0]} == -?(-)@(H|w|f|host|hosts|hostfile|machinefile|nodelist|local)?(=*) ]] || hosts=(-H hosts.txt)
    "$HNLAUNCH" --quiet --dry-run "${hosts[@]}" "${words[@]}" true >"$OUT" 2>"$ERR"
    echo $?
}

# Needs GPUs, more nodes, a given library of MPI, or more than this machine's networks.
NOT_HERE='gpu$|--pty|gpus-|gpu01:0|gpu01@|gpu03|--nodes 4|--mpi pmix|--dry-run|--iface (eth0|ib0|10)|^-iface'

# Starts ranks with these options on two nodes of this machine, and prints what is wrong.
start_with() { # OPTIONS
    local here=$1 words hosts=()
    [[ ! $here =~ $NOT_HERE ]] || return 0
    here=${here//"'gpu[01-02]'"/localhost,127.0.0.1}
    here=${here//hosts.txt/here.txt}
    here=${here//gpu01/localhost}
    here=${here//gpu02/127.0.0.1}
    eval "words=($here)"
    [[ ${words[0]} == -?(-)@(H|w|f|host|hosts|hostfile|machinefile|nodelist|local)?(=*) ]] || hosts=(-H here.txt)
    "$HNLAUNCH" --quiet "${hosts[@]}" "${words[@]}" sh -c 'echo "rank=$HN_RANK"' \
        </dev/null >"$OUT" 2>"$ERR" && grep -q 'rank=0$\|"rank"' "$OUT"
    [[ $? == 0 ]] || printf '%s starts nothing: %s\n' "$here" "$(head -n 1 "$ERR")"
    started=$((started + 1))
}

spans() { grep -o '`[^`]*`' <<<"$1" | tr -d '`'; } # CELL
shopt -s extglob
wrong=$TMP/wrong entries=0 launchers=0 started=0
printf '%s slots=8\n' localhost 127.0.0.1 >here.txt
: >"$wrong"
while IFS='|' read -r _ theirs ours note; do
    if [[ $ours == *hnlaunch* && $theirs != *\`* ]]; then
        launchers=$((launchers + 1))
        continue
    fi
    [[ $theirs == *\`* ]] || continue
    while read -r option; do
        entries=$((entries + 1))
        code=$(code_of "$option")
        case $ours:$note in
            *'the same'* | *ignored*)
                [[ $code == 0 ]] || printf '%s is refused: %s\n' "$option" "$(head -n 1 "$ERR")" >>"$wrong"
                start_with "$option" >>"$wrong"
                ;;
            *'another meaning: a variable'*) ;;
            *)
                [[ $code == 6[46] ]] || printf '%s is taken (%s)\n' "$option" "$code" >>"$wrong"
                ! grep -q 'lists all options' "$ERR" || printf '%s: no word here\n' "$option" >>"$wrong"
                ;;
        esac
    done < <(spans "$theirs")
    while read -r option; do
        [[ $option == -* ]] || continue
        entries=$((entries + 1))
        code=$(code_of "$option")
        [[ $code == 0 ]] || printf '%s, which a page names, is refused: %s\n' "$option" "$(head -n 1 "$ERR")" >>"$wrong"
        start_with "$option" >>"$wrong"
    done < <(spans "$ours")
done < <(grep -h '^|' "${pages[@]}")
is 'each entry is taken or refused as the page says' "$(cat "$wrong")" ''
is 'launchers have a table' "$launchers" 6
ok "with their options ($entries entries)" test "$entries" -gt 150
ok "most of them were started ($started)" test "$started" -gt 95

# Single words of other launchers are never letters, and never a program that starts or a help that is printed.
for line in -hybrid-hosts '-env A 1' '-Vendor x' '-xterm 0' -help-me '-n 1 true :' '--tee=3'; do
    read -ra words <<<"$line"
    "$HNLAUNCH" --local 1 "${words[@]}" ./io >"$OUT" 2>"$ERR"
    is "$line ends with 64" $? 64
    is "$line: nothing on standard output" "$(cat "$OUT")" ''
done
"$HNLAUNCH" --local 1 true : true 2>"$ERR"
has 'a second program has a number' "$ERR" 'error[HN725]: `:` begins a second program at `true`, but no option of it follows'
printf '#!/bin/sh\n' >io
echo data >in.dat
"$HNLAUNCH" --local 1 true : in.dat 2>"$ERR"
is 'a file that is no program begins none' $? 0
chmod +x io
"$HNLAUNCH" --local 1 true in.dat : io 2>"$ERR"
is 'a program of this folder does' $? 64
"$HNLAUNCH" --local 1 --label none -- echo : -n 3 >"$OUT" 2>"$ERR"
is 'a colon behind -- is an argument' "$(cat "$OUT")" ': -n 3'

# The other way round: what hnlaunch takes for other launchers is on a page.
sed -n '/option_aliases\[\]/,/^};/p; /option_foreigns\[\]/,/^};/p' "$ROOT"/src/head/options/option_{table,foreign}.c |
    grep -v 'until 1.0\|, false, ' | grep -oE '^ *\{ "[a-z-]+"' | grep -oE '[a-z-]+' | sort -u >"$TMP/known"
ok 'there are spellings of other launchers' test "$(wc -l <"$TMP/known")" -gt 20
grep -ohE -e '-[a-z_-]{2,}' "${pages[@]}" | sed 's/^-*//' | tr _ - | sort -u >"$TMP/named"
is 'the pages have each of them' "$(comm -23 "$TMP/known" "$TMP/named" | tr '\n' ' ')" ''
done_testing
