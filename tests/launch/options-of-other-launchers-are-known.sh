#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/howto/coming-from.md: an option of another launcher is accepted where the page says "the same" or "ignored", and
# refused in every other row; what the page names instead is accepted. hnlaunch plan asks no node.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# 200 starts: without sanitizers they take a second.
HNLAUNCH=$PLAIN/hnlaunch
page=$ROOT/docs/howto/coming-from.md
printf 'gpu0%d slots=8\n' 1 2 3 4 >hosts.txt
touch key

# Prints the code of hnlaunch with these options, as a shell reads them; hosts of its own unless they name some.
code_of() { # OPTIONS
    local words hosts=()
    eval "words=($1)"
    [[ ${words[0]} == -?(-)@(H|w|f|host|hosts|hostfile|machinefile|nodelist|local)?(=*) ]] || hosts=(-H hosts.txt)
    "$HNLAUNCH" --quiet --dry-run "${hosts[@]}" "${words[@]}" true >"$OUT" 2>"$ERR"
    echo $?
}

spans() { grep -o '`[^`]*`' <<<"$1" | tr -d '`'; } # CELL
shopt -s extglob
wrong=$TMP/wrong entries=0 launchers=0
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
                ;;
            *'another meaning: a variable'*) ;;
            *) [[ $code == 6[46] ]] || printf '%s is taken (%s)\n' "$option" "$code" >>"$wrong" ;;
        esac
    done < <(spans "$theirs")
    while read -r option; do
        [[ $option == -* ]] || continue
        entries=$((entries + 1))
        code=$(code_of "$option")
        [[ $code == 0 ]] || printf '%s, which the page names, is refused: %s\n' "$option" "$(head -n 1 "$ERR")" >>"$wrong"
    done < <(spans "$ours")
done < <(grep '^|' "$page")
is 'each entry is taken or refused as the page says' "$(cat "$wrong")" ''
is 'launchers have a table' "$launchers" 6
ok "with their options ($entries entries)" test "$entries" -gt 150

# The other way round: what hnlaunch takes for other launchers is on the page.
sed -n '/option_aliases\[\]/,/^};/p; /option_foreigns\[\]/,/^};/p' "$ROOT"/src/head/options/option_{table,foreign}.c |
    grep -v 'until 1.0' | grep -oE '^ *\{ "[a-z-]+"' | grep -oE '[a-z-]+' | sort -u >"$TMP/known"
ok 'there are spellings of other launchers' test "$(wc -l <"$TMP/known")" -gt 25
grep -oE -e '-[a-z_-]{2,}' "$page" | sed 's/^-*//' | tr _ - | sort -u >"$TMP/named"
is 'the page has each of them' "$(comm -23 "$TMP/known" "$TMP/named" | tr '\n' ' ')" ''
done_testing
