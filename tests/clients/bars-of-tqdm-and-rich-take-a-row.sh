#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The progress bars of 8 ranks, those of tqdm within tqdm and of rich in two rows, take at most 8 rows at the bottom of a terminal and do not scroll;
# their last states stay. Ranks know the terminal's width and colours; causes, steps and logs --grep are read without colours.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
command -v tmux >/dev/null || skip_all 'needs tmux'
/usr/bin/python3 -c 'import rich, tqdm' 2>/dev/null || skip_all 'needs python3-rich and python3-tqdm'

. "$ROOT/tests/lib/tmux.sh"
runtime_dir
cat >of_tqdm.py <<'END'
import os
import time
from tqdm import tqdm

for epoch in tqdm(range(2), desc="epoch"):
    for batch in tqdm(range(30), desc="batch", leave=False):
        time.sleep(0.1)
        while epoch == 1 and batch == 20 and not os.path.exists("end"):
            time.sleep(0.05)
END
cat >of_rich.py <<'END'
import os
import time
from rich.progress import Progress

with Progress() as progress:
    epoch, batch = progress.add_task("epoch", total=100), progress.add_task("batch", total=200)
    for step in range(40):
        time.sleep(0.1)
        progress.update(epoch, advance=2)
        progress.update(batch, advance=4)
    while not os.path.exists("end"):
        time.sleep(0.05)
    progress.update(epoch, completed=100)
    progress.update(batch, completed=200)
END
cat >of_failure.py <<'END'
import sys
from rich.console import Console

console = Console(stderr=True)
console.print("[bold]step[/bold] [green]7[/green]/[red]9[/red]")
console.print("[bold red]ValueError[/bold red]: [cyan]shard[/cyan] 12 is [b]short[/b]")
sys.exit(3)
END
lines() { pane capture-pane -p -S -1000 | sed '/^ *$/d'; }
runs() { # OPTION... COMMAND
    rm -f end
    new_server
    pane new-session -d -x 110 -y 30 "env TERM=screen-256color $PLAIN/hnlaunch $*; exec sleep 1000"
}

for of in tqdm rich; do
    runs --local 8 /usr/bin/python3 of_$of.py
    [[ $of = tqdm ]] && far='[67][0-9]%.*2[01]/30' || far='80%.*batch'
    ok "$of: bars of all ranks stand at the bottom" wait_for shown "^7 \| .*$far"
    is "$of: each in a row, by rank, without the line" "$(sed '/^ *$/d' screen | tail -n 8 | sed -n 's/^\([0-7]\) | .*/\1/p' | xargs)" '0 1 2 3 4 5 6 7'
    # Before the first time that the cursor goes up, nothing tells that the rows will be drawn again.
    ok "$of: nothing has scrolled ($(lines | wc -l) lines)" test "$(lines | wc -l)" -le 17
    touch end
    ok "$of: the run ends" wait_for shown '^hnlaunch: finished: 8 ranks'
    is "$of: the last state of each rank stays" "$(lines | grep -cE '^[0-7] \| epoch:? .*100%')" 8
    ok "$of: nothing else does ($(lines | wc -l) lines)" test "$(lines | wc -l)" -le 26
    pane kill-server
done

runs --local 2 --progress-re "'step ([0-9]+)/([0-9]+)'" /usr/bin/python3 of_failure.py
ok 'ranks that fail in colour' wait_for shown '^next: '
pane capture-pane -pe >screen
has 'their words have colours' screen $'\e[1mValueError'
run=$(sed -n 's/^.*hnlaunch: run \(.....\):.*/\1/p' screen)
has 'the cause is read without them' "$XDG_STATE_HOME/hnlaunch/runs/$run/summary.json" 'ValueError: shard 12 is short'
has 'so are steps' "$XDG_STATE_HOME/hnlaunch/runs/$run/events.ndjson" '"step":7,"total":9'
is 'and lines for logs --grep' "$("$HNLAUNCH" logs "$run" --grep 'shard 12 is' 2>/dev/null | grep -c shard | tr 2 1)" 1
pane kill-server

cat >told.sh <<'END'
echo "told ${FORCE_COLOR-no} ${COLUMNS-no}"
END
told() { # WANT OPTION...: what a rank on a terminal is told
    runs "${@:2}" sh told.sh
    ok "${*:2}: $1" wait_for shown "told $1\$"
    pane kill-server
}
told '1 105' --local 2
told '1 109' --local 2 --label none
told 'no 105' --color never --local 2
told 'no 105' -x NO_COLOR=1 --local 2
told '0 7' -x FORCE_COLOR=0 -x COLUMNS=7 --local 2
told '1 105' --fold --local 2
told 'no no' --log-dir "$TMP/logs" --local 2
hn --local 1 sh told.sh
is 'in a pipe: nothing' "$(cat "$OUT")" 'told no no'
nothing_left 'nothing is left'
done_testing
