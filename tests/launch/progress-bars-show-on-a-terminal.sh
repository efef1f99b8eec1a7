#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lines that ranks draw again and again (\r) reach a terminal before they end: the last state of each
# rank, behind its label, in at most eight rows at the bottom, which nothing moves. Where lines cannot be
# erased, each state has a line. Files, pipes and lone ranks get the bytes as they are.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
export TERM=xterm NO_COLOR=1

# Ten states a second, and no newline before the file `end` is there.
cat >bar.py <<'EOF2'
import os, sys, time
n, rank = 0, os.environ["RANK"]
while not os.path.exists("end"):
    sys.stderr.write("\r%6d steps of rank %s" % (n, rank))
    sys.stderr.flush()
    n += 1
    time.sleep(0.1)
sys.stderr.write("\r  last of rank %s\n" % rank)
EOF2

on_terminal() { # COLUMNS COMMAND LINE: what the terminal gets in tty
    script -qefc "stty cols $1; $HNLAUNCH $2" /dev/null >tty 2>&1
    RC=$?
}

screen() { # COLUMNS
    python3 "$ROOT/tests/lib/screen.py" "$1" <tty >screen
}

states_are() { # RANK N
    [[ $(grep -aoE "$1 ! +[0-9]+ steps of rank $1" tty | sort -u | wc -l) -ge $2 ]]
}

count() { grep -acE -- "$1" screen; }

# --- several ranks --------------------------------------------------------------------------------

for TERM in xterm dumb; do
    rm -f end tty
    on_terminal 80 '--local 2 python3 bar.py' &
    ok "$TERM: states of rank 0 come before its line ends" wait_for states_are 0 3
    ok "$TERM: so do those of rank 1" wait_for states_are 1 3
    : >end
    wait $!
    screen 80
    is "$TERM: the last states are there, each once" "$(count '^[01] !   last of rank [01]$')" 2
    is "$TERM: every line has its label, and nothing else in it" \
        "$(grep -avE '^hnlaunch: |^([01]) ! +([0-9]+ steps of|last of) rank \1$' screen)" ''
    has "$TERM: the job ends well" screen 'finished: 2 ranks exited 0'
done
export TERM=xterm

# One that draws, one that speaks: the word stands above the bar.
rm -f end tty
on_terminal 80 "--local 2 sh -c 'if [ \$RANK = 0 ]; then exec python3 bar.py; fi
    until [ -e speak ]; do sleep 0.05; done; echo word'" &
ok 'a bar is drawn' wait_for states_are 0 3
: >speak
wait_for grep -q word tty
: >end
wait $!
screen 80
is 'its end stands in one line, below the word' "$(grep -aE '^[01] [|!]' screen | xargs)" '1 | word 0 ! last of rank 0'

# The bars of ranks that are stopped say nothing of the failure.
rm -f end tty
on_terminal 80 "--local 3 sh -c 'if [ \$RANK = 1 ]; then until [ -e fails ]; do sleep 0.05; done; exit 3; fi; exec python3 bar.py'" &
ok 'ranks that will be stopped draw: rank 0' wait_for states_are 0 3
ok 'and rank 2' wait_for states_are 2 3
: >fails
wait $!
screen 80
ok 'another rank has failed' grep -aq 'rank 1 on localhost exited with code 3' screen
is 'no bar is left of the others' "$(count 'steps of rank')" 0

# The last states stand in the order of the ranks, whichever rank ends first. What a rank says behind its bar is below it.
cat >ends.py <<'EOF2'
import os, sys, time
rank = os.environ["RANK"]
while not os.path.exists("end." + rank):
    sys.stderr.write("\r%s%% of rank %s" % (10 + len(os.listdir(".")), rank))
    sys.stderr.flush()
    time.sleep(0.1)
sys.stderr.write("\r100%% of rank %s\n" % rank)
sys.stderr.flush()
while not os.path.exists("say." + rank):
    time.sleep(0.05)
sys.stderr.write("rank %s is done\n" % rank)
EOF2
drawn() { [[ $(grep -aoE "[0-9]+% of rank $1" tty | tail -n 1) == 100%* ]]; }
rm -f tty
on_terminal 80 '--local 4 python3 ends.py' &
for i in 0 1 2 3; do ok "bars that end: rank $i draws" wait_for grep -aq "% of rank $i" tty; done
for i in 3 0; do
    : >"end.$i"
    ok "bars that end: that of rank $i stands" wait_for drawn "$i"
done
: >say.0
ok 'a rank speaks behind its bar' wait_for grep -aq 'rank 0 is done' tty
for i in 2 1; do : >"end.$i"; done
: >say.1
ok 'the last bar has ended' wait_for grep -aq 'rank 1 is done' tty
: >say.2
: >say.3
wait $!
screen 80
is 'the ends are in the order of the ranks' "$(grep -aoE '^[1-3] ! 100% of rank [0-9]' screen | xargs)" '1 ! 100% of rank 1 2 ! 100% of rank 2 3 ! 100% of rank 3'
is 'but not one behind which its rank has spoken' "$(grep -anoE '^0 ! .*' screen | head -n 2 | sed 's/.*! //' | xargs)" '100% of rank 0 rank 0 is done'
is 'each stands once' "$(count '100% of rank')" 4

# More than there are rows.
rm -f end tty
on_terminal 80 '--local 12 --oversubscribe python3 bar.py' &
is_folded() { [[ $(grep -ac '^\.\.\. [1-6] more bars' tty) -ge 3 ]]; }
ok 'twelve bars are folded' wait_for is_folded
: >end
wait $!
screen 80
is 'never in more than eight rows' "$(grep -aoE $'(\033\\[A\033\\[K)+' tty | awk '{ n = length($0) / 6; if (n > most) most = n } END { print most }')" 7
is 'all that is left are their ends' "$(count '^[0-9]+ +!   last of rank') $(wc -l <screen)" '12 14'

# Those that are behind, and the first.
rm -f end tty
on_terminal 80 "--local 12 --oversubscribe sh -c 'printf \"\\r%d%% done\\r\" \$((50 - RANK)); until [ -e end ]; do sleep 0.1; done'" &
ok 'the others have a row' wait_for grep -aq '^\.\.\. 6 more bars, 44-49 %' tty
: >end
wait $!
grep -aB 5 -A 1 -m 1 '^\.\.\. 6 more bars, 44-49 %' tty | tr -d '\r' | sed $'s/.*\033\\[K//' >block
is 'below those that are the furthest behind, above the first' "$(xargs <block)" \
    '11 | 39% done 10 | 40% done 9 | 41% done 8 | 42% done 7 | 43% done ... 6 more bars, 44-49 % 0 | 50% done'

# At most two a second and rank, but never slower than that for long.
cat >fast.py <<'EOF2'
import sys, time
begin = time.monotonic()
for n in range(3000):
    sys.stdout.write("%d %s\r" % (n, "x" * 90))
    sys.stdout.flush()
    time.sleep(0.001)
sys.stdout.write("whole %d\r\n" % ((time.monotonic() - begin) * 1000))
EOF2
on_terminal 200 '--local 2 python3 fast.py'
screen 200
ms=$(grep -ao 'whole [0-9]*' screen | grep -o '[0-9]*' | sort -n | tail -n 1)
drawn=$(grep -aoE '0 \| [0-9]+ x' tty | wc -l)
ok "of 3000 states in $ms ms few are drawn ($drawn)" test "$drawn" -ge 1 -a "$drawn" -le $((ms / 500 + 2))

# --- labels stay ----------------------------------------------------------------------------------

on_terminal 80 "--local 2 sh -c 'printf \"hidden\\rover\\n\"; printf \"dos\\r\\n\"; printf \"a\\rb\\r\\r\\n\"'"
screen 80
is 'a carriage return does not touch the label' "$(grep -a '|' screen | sort)" $'0 | b\n0 | dos\n0 | over\n1 | b\n1 | dos\n1 | over'
ok 'nothing of it reaches the terminal before the newline' sh -c "! grep -aq 'hidden' tty"

on_terminal 80 "--local 1 --label '{rank}> ' sh -c 'printf \"hidden\\rover\\n\"'"
screen 80
ok 'nor does that of a lone rank with a label' grep -aqx '0> over' screen

on_terminal 80 "--local 2 --label none sh -c 'printf \"10%%\\r20%%\\r\"; sleep 1'"
screen 80
is 'without labels every rank has a line' "$(grep -acx '20%' screen)" 2

on_terminal 80 "--local 2 sh -c 'printf \"\\r 50%%\\r    \\r\"; echo kept'"
screen 80
is 'a bar that is wiped away leaves no line' "$(grep -a '|' screen | sort)" $'0 | kept\n1 | kept'

for TERM in dumb xterm; do
    on_terminal 20 "--local 1 --label '{rank} | ' sh -c 'for i in 1 2 3; do printf \"\\rstate that is too long for a line %s\" \$i; sleep 1; done'"
    screen 20
    is "$TERM: a state that wraps is not drawn over" "$(count '^o long for a line [123]$')" "$([[ $TERM == dumb ]] && echo 3 || echo 1)"
done

on_terminal 80 "--local 2 sh -c 'printf \"\\033[31mred 1\\rred 2\\r\"; sleep 3; printf \"red 3\\n\"'"
is 'a colour ends with what is drawn and goes on in the next state' \
    "$(grep -aoE $'\\[31m+red [23]\033\\[0m' tty | sort -u | tr -d '\033')" $'[31mred 2[0m\n[31mred 3[0m'

# --- the bytes as they are ------------------------------------------------------------------------

on_terminal 80 "--local 1 sh -c 'printf \"10%%\\r20%%\\r\\n\"'"
ok 'a lone rank draws as it likes' grep -aq $'10%\r20%\r' tty
on_terminal 80 "--raw --local 2 sh -c 'printf \"10%%\\r20%%\\r\\n\"'"
ok '--raw passes them' grep -aq $'^[01] | 10%\r20%\r' tty

printf '10%%\r20%%\r\n' >want
hn -q --local 2 --log-dir logs sh -c 'cat want'
printf '0 | 10%%\r0 | 20%%\r\n1 | 10%%\r1 | 20%%\r\n' >both
sort "$OUT" >got
same 'a pipe gets the bytes as they are, each state behind the label' got both
same 'so does the log folder' logs/latest/rank-00001.out want
done_testing
