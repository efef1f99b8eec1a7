#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What `hnlaunch stage` writes where, with nodes that cannot be reached, and which words it refuses.
# tests/lab/venv-runs-from-copies-on-the-nodes.sh has what it does on nodes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
export XDG_CACHE_HOME=$TMP/cache # the user's lists of files stay
mkdir "$XDG_CACHE_HOME"

export HNLAUNCH_STAGE_DIR=$TMP/stage
mkdir data
echo 'a b' >data/words
# Node dead.invalid has no agent.
printf '#!/bin/sh\n[ "$1" != dead.invalid ] || exit 1\nshift\nexec "$@"\n' >start
chmod +x start
stage() { hn stage --start-with "$PWD/start {host}" "$@"; }
# Copies that the user has elsewhere are listed, too, and stay.
states() { python3 -c 'import json, sys; [print(n["host"], n["folders"] and sum(f["folder"].startswith(sys.argv[1]) for f in n["folders"])) for n in json.load(sys.stdin)["nodes"]]' "$TMP/" <"$1"; }

exits 'files are brought: 0' 0 stage -w a.invalid data --json=brought
has '--json=FILE has the folders' brought "\"stage\": \"$TMP/"
is 'standard output has nothing' "$(cat "$OUT")" ''
exits '--list --json=FILE: 0' 0 stage -w a.invalid --list --json=listed
is 'has the list' "$(states listed)" 'a.invalid 1'
is 'standard output has nothing' "$(cat "$OUT")" ''
exits 'a file that cannot be written: 73' 73 stage -w a.invalid --gc --stage-keep 1000T --unused 24d --json=/nonexistent/x
has 'is told' "$ERR" 'error[HN903]: cannot write to /nonexistent/x: No such file'

exits 'a node without an agent: 69' 69 stage -w a.invalid,dead.invalid data
has 'the help names an option' "$ERR" 'help: start without it: --exclude dead.invalid'
lacks 'and none that stage has not' "$ERR" '--spares'
exits 'which stage takes' 0 stage -w a.invalid,dead.invalid --exclude dead.invalid data
exits 'and the opposite' 0 stage -w a.invalid,dead.invalid --include a.invalid data
hn_exits 'a host without a name: 68' 68 stage -w localhost,nosuch.invalid data
lacks 'the help has no other option, either' "$ERR" '--nodes'
hn_exits 'a hold with it: 68' 68 hold -w localhost,nosuch.invalid
has 'names an option that hold takes' "$ERR" '--nodes 1:2 starts without nodes that fail'
lacks 'and no other' "$ERR" '--spares'

exits '--list with a node without an agent: 69' 69 stage -w a.invalid,dead.invalid --list
ok 'lists the others' grep -q '^a.invalid  *stage .* unused ' "$OUT"
ok 'and says which has not answered' grep -q '^dead.invalid .* no answer ' "$OUT"
has 'with the reason' "$ERR" 'error[HN210]: the agent cannot run on dead.invalid'
exits '--gc --json, likewise' 69 stage -w a.invalid,dead.invalid --gc --stage-keep 1000T --unused 24d --json
is 'null stands for that node' "$(states "$OUT" | xargs)" 'a.invalid 1 dead.invalid None'

exits '--unused 0s: 64' 64 stage -w a.invalid --gc --unused 0s
has 'has its bounds' "$ERR" 'error[HN703]: --unused must be a time from 1s to '
exits '--list --unused: 64' 64 stage -w a.invalid --list --unused 3d
has 'has no effect' "$ERR" 'error[HN704]: --unused has no effect without --gc'

# --- a value of HNLAUNCH_STAGE_DIR that is of no use
pushed() { # DIR
    HNLAUNCH_STAGE_DIR=$1 hn -v --start-with "$PWD/start {host}" -w a.invalid:1 --label none --push data sh -c 'echo "$HN_PUSH_DIR"'
}
pushed "$TMP/absent/parent/dir"
exits 'a folder without its parent is passed over' 0
has 'with the reason' "$ERR" "a.invalid: HNLAUNCH_STAGE_DIR=$TMP/absent/parent/dir is not used: $TMP/absent/parent/: No such file"
ok 'and is not made' test ! -e "$TMP/absent"
told_once 'once' 'is not used'
pushed here
exits 'a relative one' 0
has 'likewise' "$ERR" 'a.invalid: HNLAUNCH_STAGE_DIR=here is not used: it is no absolute path'
touch "$TMP/no-folder"
pushed "$TMP/no-folder"
exits 'one that is no folder' 0
has 'likewise' "$ERR" "a.invalid: HNLAUNCH_STAGE_DIR=$TMP/no-folder is not used: no folder of ours: Not a directory"
pushed "$TMP/made"
is 'one that is absent is made' "$RC $(grep -c "^$TMP/made/hnlaunch-stage-" "$OUT")" '0 1'
lacks 'without a word' "$ERR" 'HNLAUNCH_STAGE_DIR'

exits 'an empty word: 64' 64 stage -w a.invalid data ''
has 'is told' "$ERR" 'error[HN703]: `stage` needs a path, and word 2 is empty'

exits 'a path that is not there: 66' 66 stage -w a.invalid nosuch
has 'is told without an option' "$ERR" "error[HN230]: cannot read $PWD/nosuch: No such file"
lacks 'and without a program' "$ERR" 'options stand before'
mkfifo pipe
exits 'a pipe: 66' 66 stage -w a.invalid pipe
has 'is told without an option' "$ERR" "error[HN232]: cannot send $PWD/pipe: it is a pipe"
nothing_left 'no process is left'
# What a plan says of it.
mkdir -p env/bin && touch env/pyvenv.cfg && ln -s "$(python3 -c 'import sys; print(sys.executable)')" env/bin/python
hn_exits 'a plan with files' 0 plan -w a.invalid --venv env --stage data --push data/words true
is 'tells them by their options' "$(sed -n -E 's/^(venv|stage|push) +(.*) +\(([0-9]+ files?).*/\1 \2 \3/p' "$OUT" | tr -s ' ' | tr '\n' ,)" \
    'venv env 1 file,stage data 1 file,push data/words 1 file,'
hn plan -w a.invalid --venv env --stage data --json true
is '... and as JSON' "$(python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j["venv"]["from"], j["stage"]["from"], j["stage"]["files"], j["stage"]["bytes"], "push" in j)' <"$OUT")" "env ['data'] 1 4 False"
done_testing
