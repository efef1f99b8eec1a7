#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A job file with [role NAME]: the job is that of the same roles on the command line. The example of hnlaunch-job(5) runs as it is.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($1)" "${2-$OUT}"; } # EXPRESSION [FILE]

# --- the page: three roles with stand-in programs
sed -n '/^# JOB FILES/,/^# /{/^```$/,/^```$/{/^```/d;p}}' "$ROOT/docs/hnlaunch-job.5.scd" >rl.ini
ok 'the page has a job file' grep -q '^\[role ' rl.ini
printf 'localhost slots=2\n127.0.0.1 slots=2\n127.0.0.2 slots=2\n' >hosts.txt
for program in train.py serve router; do
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nfor word; do set_="$set_[$word]"; done\n%s\n' \
        'echo "$HN_ROLE $RANK/$WORLD_SIZE node $NODE_RANK on $(printenv HN_JOB_RANK): $set_ $NCCL_DEBUG $OMP_NUM_THREADS"' >$program
done
chmod +x train.py serve router
hn --job rl.ini
exits 'the job file of the page' 0
cp "$OUT" from_file
is 'has all roles' "$(cut -d: -f1 "$OUT" | sort -u | xargs)" 'infer router trainer'
has 'words as they are, ; and # too' "$OUT" '[--note][a; b #c] WARN'
is 'variables of one role are its own' "$(grep 'WARN 4$' "$OUT" | cut -d: -f1 | xargs)" 'trainer trainer'
hn -H hosts.txt --timeout 2h -x NCCL_DEBUG=WARN \
    --role trainer --nodes 1 -n 2 -x OMP_NUM_THREADS=4 ./train.py --lr 1e-4 : \
    --role infer --nodes rest ./serve model : \
    --role router --on trainer:0 ./router --note 'a; b #c'
exits 'the same on the command line' 0
is 'gives the same ranks' "$(sort "$OUT")" "$(sort from_file)"

# --- plan and config
hn plan --json --job rl.ini
cp "$OUT" plan.json
hn plan --json -H hosts.txt -x NCCL_DEBUG=WARN \
    --role trainer --nodes 1 -n 2 -x OMP_NUM_THREADS=4 ./train.py --lr 1e-4 : \
    --role infer --nodes rest ./serve model : --role router --on trainer:0 ./router --note 'a; b #c'
is 'the plan is the same, too' "$(json 'd["roles"]')" "$(json 'd["roles"]' plan.json)"
hn config --job rl.ini
ok 'config tells where a key of a role is from' grep -Eq '^role\.trainer\.np +2 +rl\.ini:[0-9]+$' "$OUT"
ok 'and its program' grep -Eq '^role\.infer\.program +\./serve model +rl\.ini:[0-9]+$' "$OUT"
ok 'and its variables' grep -Eq '^role\.trainer\.env +OMP_NUM_THREADS=4 +rl\.ini:[0-9]+$' "$OUT"
hn config --json --job rl.ini
is 'as JSON' "$(json 'd["role.router.on"]["value"], [v["value"] for v in d["role.trainer.env"]]')" "trainer:0 ['OMP_NUM_THREADS=4']"
printf '[run]\nlocal = 1\n[role a]\nprogram = true\n[env a]\nset.API_TOKEN = word\n' >one.ini
hn config --job one.ini
lacks 'secrets stay hidden' "$OUT" word

# --- records, and once more
hn --log-dir "$TMP/records" --job rl.ini
is 'records have the roles' "$(json '*d["argv"]' "$TMP/records/latest/run.json")" \
    '--role trainer ./train.py --lr 1e-4 : --role infer ./serve model : --role router ./router --note a; b #c'
hn --job one.ini
exits 'a file with one role' 0
id=$(sed -n 's/^hnlaunch: run \([a-z0-9]*\):.*/\1/p' "$ERR")
hn rerun "$id"
exits 'rerun reads the file again' 0
has 'with the line of the run' "$ERR" '--job one.ini'

# --- paths, and the line
mkdir -p jobs/sub
printf '[run]\nlocal = 1\ntimeout = 1s\n[role a]\nchdir = sub\nprogram = sh -c "sleep 1.2; pwd"\n' >jobs/job
hn --label none --timeout 20s --job jobs/job
is "chdir starts at the file, and the line wins over [run]" "$RC $(cat "$OUT")" "0 $PWD/jobs/sub"

# --- mistakes: file, line and mark
printf '[run]\nlocal = 1\n[role a]\nprogram = touch started\n[role b]\nprogam = touch started\n' >job
hn --job job
exits 'an unknown key: 78' 78
has 'its place' "$ERR" 'job:6:1'
has 'a near one' "$ERR" '^^^^^^ did you mean `program`?'
ok 'nothing was started' test ! -e started
hn --job one.ini --role b true
is 'roles in two places: 64' "$RC $(grep -c 'error\[HN721\]: roles on the command line, `b`, and in the job file one.ini, `a`' "$ERR")" '64 1'
hn --job one.ini true
is 'a program beside roles: 64' "$RC $(grep -c 'error\[HN721\]: the command line has the program `true`' "$ERR")" '64 1'
done_testing
