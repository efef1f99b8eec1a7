#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `--timestamps` puts the time in front of each line of a rank, `--fold` prints a line that several ranks wrote at about
# the same time once: in a pipe and on a terminal, while the ranks run and to the last byte.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

TIME='[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{3}'
all_match() { ! grep -qvaE -- "$2" "$1"; } # FILE ERE
on_terminal() { script -qec "$(printf '%q ' "$HNLAUNCH" "$@")" /dev/null >"$OUT" 2>"$ERR"; }

# N ranks that write what SCRIPT does for each of them: rank 0 writes for all, so that no rank is late.
cat >chorus <<'END'
mkdir -p pids && echo $$ >"pids/.$RANK" && mv "pids/.$RANK" "pids/$RANK"
if [ "$RANK" = 0 ]; then
    until [ "$(ls pids | wc -l)" = "$WORLD_SIZE" ]; do sleep 0.01; done
    for r in $(seq 0 $((WORLD_SIZE - 1))); do
        RANK=$r sh -c "$1" >"/proc/$(cat pids/$r)/fd/1" 2>"/proc/$(cat pids/$r)/fd/2"
    done
    touch spoken
fi
until [ -e spoken ]; do sleep 0.01; done
until [ ! -e stay ]; do sleep 0.05; done
END
chorus() { # N SCRIPT OPTION...
    rm -rf pids spoken
    set -- --local "$1" "${@:3}" sh chorus "$2"
    "${HOW:-hn}" "$@"
}

# --- times ---
hn --timestamps --local 2 sh -c 'echo one; echo two; printf "a\rb\n"; printf end'
exits '--timestamps' 0
is 'all lines are there' "$(grep -o '[01] | [a-z]*' "$OUT" | sort | uniq -c | xargs)" \
    '1 0 | a 1 0 | b 1 0 | end 1 0 | one 1 0 | two 1 1 | a 1 1 | b 1 1 | end 1 1 | one 1 1 | two'
ok 'each with the time in front of its label' all_match "$OUT" "^$TIME [01] \| "
hn --timestamps --local 1 sh -c 'echo alone; printf partial; touch begun; until [ -e go ]; do sleep 0.01; done; echo " line"' &
ok 'a lone rank has begun a line' wait_for [ -e begun ]
touch go
wait $!
is 'the time stands alone, too, once in a line' "$(sed -E "s/^$TIME /T /" "$OUT" | xargs)" 'T alone T partial line'
hn --local 1 date +%s.%N
plain=$(cut -d. -f1 "$OUT")
hn --timestamps --local 1 date +%H:%M:%S
is 'it is the time of day here' "$((plain > 0 && $(date -d "$(cut -d. -f1 "$OUT")" +%s) - plain < 60))" 1
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[log]\ntimestamps = yes\nfold = yes\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
chorus 2 'echo text'
ok 'a configuration sets both' grep -qE "^$TIME 0-1 \| text$" "$OUT"
rm "$XDG_CONFIG_HOME/hnlaunch/config.ini"

# --- folding ---
chorus 4 'echo same; echo "rank $RANK"; [ "$RANK" = 2 ] || echo most; echo err >&2' --fold
exits '--fold' 0
is 'equal lines of all ranks stand once' "$(grep -c ' | same$' "$OUT") $(grep -c '^0-3 | same$' "$OUT")" '1 1'
is 'others with the rank or the ranks' "$(grep -v same "$OUT" | sort)" \
    "$(printf '0 | rank 0\n0-1,3 | most\n1 | rank 1\n2 | rank 2\n3 | rank 3')"
has 'and those of standard error' "$ERR" '0-3 | err'
touch stay
HOW=start chorus 4 'echo up' --fold
ok 'a line of all ranks does not wait' wait_for grep -qx '0-3 | up' "$OUT"
rm stay
finish
touch stay
HOW=start chorus 2 '[ "$RANK" = 1 ] || echo alone' --fold
ok 'a line of one rank waits for a moment, not for the end' wait_for grep -qx '0 | alone' "$OUT"
rm stay
finish
# Rank 0 writes a and b, rank 1 b and a: only one of the two can be folded.
chorus 2 '[ "$RANK" = 0 ] || echo b; echo a; [ "$RANK" = 1 ] || echo b' --fold
is 'the order of a rank stays' "$(cat "$OUT")" "$(printf '0 | a\n0-1 | b\n1 | a')"
chorus 2 'echo whole; printf "be\rgun\n"; printf half' --fold
is 'lines with a carriage return, and unfinished ones, are as without, behind the lines before' \
    "$(tr '\r' '#' <"$OUT" | head -n 4; tail -n +5 "$OUT" | sort)" \
    "$(printf '0 | whole\n0 | be#0 | gun\n1 | whole\n1 | be#1 | gun\n0 | half\n1 | half')"
chorus 3 'echo text' --fold --label none
is '--label none: the line alone' "$(cat "$OUT")" text
chorus 3 'echo "of $RANK"; echo text' --fold --show 1
is '--show: ranks that are not shown do not count' "$(cat "$OUT")" "$(printf '1 | of 1\n1 | text')"
chorus 2 'echo "of $RANK"; echo text' --fold --label '<{rank}> '
is 'a template labels the lines of one rank' "$(sort "$OUT")" "$(printf '0-1 | text\n<0> of 0\n<1> of 1')"
hn --fold --local 1 sh -c 'echo a; echo a'
is 'a lone rank is not folded' "$(cat "$OUT")" "$(printf 'a\na')"
chorus 2 'echo both' --fold --timestamps
ok 'both options' grep -qxE "$TIME 0-1 \| both" "$OUT"
chorus 2 'echo last words; [ "$RANK" = 0 ] || kill -9 $(cat pids/1)' --fold
exits 'a failure' 137
is 'loses nothing' "$(cat "$OUT")" '0-1 | last words'

# A flood: each rank writes other lines and the same ones. Nothing is lost or turned around, and nobody waits for the time.
hn --fold --local 3 sh -c 'awk -v r="$RANK" "BEGIN { for (i = 0; i < 60000; i++) { print \"same\", i; if (i % 7 == r) print r, \"own\", i } }"'
exits 'a flood' 0
ok 'each rank has each line once, in order' python3 - "$OUT" <<'END'
import sys
ranks = {0: [], 1: [], 2: []}
for line in open(sys.argv[1]):
    label, text = line.rstrip('\n').split(' | ')
    for part in label.split(','):
        first, _, last = part.partition('-')
        for rank in range(int(first), int(last or first) + 1):
            ranks[rank].append(text)
for rank, got in ranks.items():
    want = []
    for i in range(60000):
        want.append(f'same {i}')
        if i % 7 == rank:
            want.append(f'{rank} own {i}')
    assert got == want, (rank, len(got), len(want))
END

# --- a terminal ---
HOW=on_terminal chorus 3 'printf "\033[31mred\n"; echo plain; echo "rank $RANK"; printf end' --fold --timestamps
is 'a terminal: folded, with colours' "$(tr -d '\r' <"$OUT" | sed -E 's/\x1b\[[0-9;]*[mK]//g' | grep -cE "^$TIME 0-2 \| (red|plain)$")" 2
is 'and all lines' "$(tr -d '\r' <"$OUT" | sed -E 's/\x1b\[[0-9;]*[mK]//g' | grep -cE "^$TIME [012] \| (rank|end)")" 6
folded() { tr -d '\r' <"$OUT" | sed -E 's/\x1b\[[0-9;]*[mKA]//g' | grep -cE "$1"; }
HOW=on_terminal chorus 9 'echo whole; printf half' --oversubscribe
n=$(folded '^[0-8,-]+ \| whole$') # on a loaded machine not all lines come in the moment for which one waits
ok 'a terminal: lines of more than eight ranks are folded' test "$n" -ge 1 -a "$n" -lt 9
HOW=on_terminal chorus 9 'echo whole; printf half' --oversubscribe -o log.fold=no
is 'but not with -o log.fold=no' "$(folded '^[0-8] \| whole$')" 9
HOW=on_terminal chorus 8 'echo whole; printf half' --oversubscribe
is 'nor those of eight' "$(folded '^[0-7] \| whole$')" 8
nothing_left 'nothing is left'
done_testing
