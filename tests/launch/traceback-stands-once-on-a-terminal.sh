#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# On a terminal the message about a failure leaves out lines of the rank that stand on the screen just above. In a file,
# in the records, and where they do not stand there in full, it quotes them.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
command -v script >/dev/null || skip_all 'needs script'

export TERM=xterm NO_COLOR=1 XDG_STATE_HOME=$TMP/state
# Rank 1 fails. Of rank 0 a number of rows stand between two parts of its traceback, and others below it: each part is
# written when the terminal has the one before.
cat >job.sh <<'END'
shown() { until grep -qa "$1" bytes; do sleep 0.02; done; }
rows() { i=0; while [ $i -lt "$2" ]; do i=$((i + 1)); echo "$1 row $i"; done; echo "$1 end"; }
if [ "$RANK" = 0 ]; then
    [ "$1" = 0 ] || { shown 'line 3'; rows between "$1"; }
    [ "$2" = 0 ] || { shown 'is empty'; rows below "$2"; }
    exec sleep 1000
fi
printf 'Traceback (most recent call last):\n  File "work.py", line 3, in main\n' >&2
[ "$1" = 0 ] || shown 'between end'
printf '    load(12)\n  File "work.py", line 7, in load\nValueError: shard 12 is empty\n' >&2
[ "$2" = 0 ] || shown 'below end'
exit 7
END
on_terminal() { # ROWS COMMAND LINE: on a terminal of so many rows
    : >bytes
    script -qefc "stty rows $1 cols 100; exec $HNLAUNCH $2" /dev/null </dev/null >bytes 2>&1
    RC=$?
    python3 "$ROOT/tests/lib/screen.py" 100 <bytes >screen
}
TITLE='last lines of its stderr:'
stands() { # NAME TIMES TEXT: on the screen
    is "$1" "$(grep -cF -- "$3" screen)" "$2"
}
once() { # NAME
    exits "$1: the run has failed" 7
    stands "$1: the traceback stands once" 1 'Traceback (most recent call last)'
    stands "$1: so does its last line but one" 1 'File "work.py", line 7'
    stands "$1: nothing announces it" 0 "$TITLE"
    has "$1: the last line names the reason" screen 'rank 1 on localhost: ValueError: shard 12 is empty  (exit 7)'
}
twice() { # NAME
    exits "$1: the run has failed" 7
    has "$1: the message quotes the traceback" screen '    |   Traceback (most recent call last):'
    has "$1: to its end" screen '    |     File "work.py", line 7'
    stands "$1: and announces it" 1 "$TITLE"
}

on_terminal 50 '--local 2 sh job.sh 0 0'
once 'a traceback at the end'
is 'the message goes on with its notes' "$(grep -A 2 -e '^ *--> rank 1' screen | sed 1d)" '    |
    = note: 1 rank was stopped by hnlaunch (SIGTERM)'
run=$(sed -n 's/^next: hnlaunch report \([a-z0-9]*\) .*/\1/p' screen)
"$HNLAUNCH" attach "$run" >"$OUT" 2>"$ERR"
has 'the records quote it' "$ERR" "    | $TITLE"
has 'to its end' "$ERR" '    |   ValueError: shard 12 is empty'

on_terminal 50 '--local 2 sh job.sh 0 5'
once '6 rows of another rank below it'
on_terminal 50 '--local 2 sh job.sh 0 40'
twice '41 rows of another rank below it'
on_terminal 50 '--local 2 sh job.sh 5 5'
once '12 rows of another rank within and below it'
on_terminal 50 '--local 2 sh job.sh 40 0'
twice '41 rows of another rank within it'
on_terminal 12 '--local 2 sh job.sh 0 8'
twice '9 rows of another rank below it on a low terminal'

on_terminal 50 '--show 0 --local 2 sh job.sh 0 0'
twice 'a rank that --show leaves out'
stands 'whose own lines are not shown' 0 '1 ! Traceback'
on_terminal 50 '--fold --local 2 sh job.sh 0 0'
once 'with --fold, lines of a single rank'
cat >same.sh <<'END'
touch "up$RANK"
until [ -e up0 ] && [ -e up1 ]; do sleep 0.01; done
printf 'one word\nlast word\n' >&2
[ "$RANK" = 1 ] || exec sleep 1000
until grep -qa 'last word' bytes; do sleep 0.02; done
exit 7
END
on_terminal 50 '--fold --local 2 sh same.sh'
stands 'lines of several ranks are folded' 1 '0-1 ! one word'
has 'and quoted' screen '    |   one word'
on_terminal 50 '--raw --local 2 sh job.sh 0 0'
twice 'lines that may move the cursor'
on_terminal 50 '--local 2 sh job.sh 0 0 >stdout'
once 'standard output in a file'
on_terminal 50 '--local 2 sh job.sh 0 0 2>stderr'
cp stderr screen
twice 'standard error in a file'

on_terminal 50 "--local 1 sh -c 'printf \"\\033[31mred\\033[0m words\\nmore words\\n\" >&2; exit 7'"
stands 'coloured lines stand once' 1 'red words'
on_terminal 50 "--local 1 sh -c 'printf \"first words\\n\\033[2A\\033[2Kother words\\n\\n\" >&2; exit 7'"
has 'lines that the rank has replaced are quoted' screen '    |   first words'
on_terminal 50 "--local 2 sh -c '[ \$RANK = 1 ] || exec sleep 1000; echo one word; echo last word; exit 7'"
stands 'standard output, of a rank without standard error, stands once' 1 'one word'

# The file of torch.distributed.elastic has the call stack, too.
cat >recorded.py <<'END'
import json, os, sys, traceback

def main():
    raise ValueError("no shard 12")

try:
    main()
except ValueError as e:
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
        json.dump({"message": {"message": "ValueError: no shard 12", "extraInfo": {"py_callstack": traceback.format_exc()}}}, f)
    if sys.argv[1:]:
        traceback.print_exc()
        print("bye", file=sys.stderr)
    sys.exit(7)
END
on_terminal 50 '--local 1 python3 recorded.py told'
stands 'a reported call stack that the rank has written stands once' 1 'in main'
stands 'nothing announces it' 0 'its Python call stack:'
on_terminal 50 '--local 1 python3 recorded.py'
has 'one that it has not is shown' screen '    | its Python call stack:'
has 'in full' screen ', in main'

nothing_left 'nothing is left'
done_testing
