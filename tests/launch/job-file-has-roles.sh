#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A job file with [role NAME]: the job is that of the same roles on the command line. The example of hnlaunch-job(5) runs as it is.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($1)" "${2-$OUT}"; } # EXPRESSION [FILE]

# --- the page: three roles with stand-in programs
sed -n '/^# JOB FILES/,/^# /{/^```$/,/^```$/{/^```/d;p}}' "$ROOT/docs/hnlaunch-job.5.scd" >rl.ini
ok 'the page has a job file' grep -q '^\[role ' rl.ini
printf 'localhost slots=2\n127.0.0.1 slots=2\n127.0.0.2 slots=2\n' >hosts.txt
for program in train.py serve router; do
    printf '#!/bin/sh\nfor word; do set_="$set_[$word]"; done\n%s\n' \
        'echo "$HN_ROLE $RANK/$WORLD_SIZE node $NODE_RANK on $(printenv HN_JOB_RANK): $set_ $NCCL_DEBUG $OMP_NUM_THREADS"' >$program
done
chmod +x train.py serve router
hn_exits 'the job file of the page' 0 --job rl.ini
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
hn config --job rl.ini role.router.on role.trainer.n role.infer.program run.hostfile
is 'keys of roles can be asked for' "$(awk 'NR > 1 { print $1, $2 }' "$OUT")" "run.hostfile hosts.txt
role.trainer.np 2
role.infer.program ./serve
role.router.on trainer:0"
printf '[run]\nlocal = 1\n[role a]\nprogram = true\n[env a]\nset.API_TOKEN = word\n' >one.ini
hn config --job one.ini
lacks 'secrets stay hidden' "$OUT" word

# --- records, and once more
hn --log-dir "$TMP/records" --job rl.ini
is 'records have the roles' "$(json '*d["argv"]' "$TMP/records/latest/run.json")" \
    '--role trainer ./train.py --lr 1e-4 : --role infer ./serve model : --role router ./router --note a; b #c'
hn_exits 'a file with one role' 0 --job one.ini
id=$(sed -n 's/^hnlaunch: run \([a-z0-9]*\):.*/\1/p' "$ERR")
hn_exits 'rerun reads the file again' 0 rerun "$id"
has 'with the line of the run' "$ERR" '--job one.ini'

# --- paths, and the line
mkdir -p jobs/sub
printf '[run]\nlocal = 1\ntimeout = 1s\n[role a]\nchdir = sub\nprogram = sh -c "sleep 1.2; pwd"\n' >jobs/job
hn --label none --timeout 20s --job jobs/job
is "chdir starts at the file, and the line wins over [run]" "$RC $(cat "$OUT")" "0 $PWD/jobs/sub"

# --- mistakes: file, line and mark
printf '[run]\nlocal = 1\n[role a]\nprogram = touch started\n[role b]\nprogam = touch started\n' >job
hn_exits 'an unknown key: 78' 78 --job job
has 'its place' "$ERR" 'job:6:1'
has 'a near one' "$ERR" '^^^^^^ did you mean `program`?'
ok 'nothing was started' test ! -e started

job='[run]
hosts = localhost:2,127.0.0.1:2
gpus_per_rank = 0'
placed() { # NAME PLACE CODE TEXT LINE...: the file's mistake, on top of the three lines of $job, is told with its place
    local name=$1 place=$2 code=$3 text=$4

    shift 4
    printf '%s\n' "$job" "$@" >job
    hn --job job
    is "$name: file and line" "$RC $(grep -c -- "^ *--> job:$place" "$ERR")" "$code 1"
    has "$name" "$ERR" "$text"
}
placed 'on and nodes' 6:6 78 '`a`: --on and --nodes exclude each other' '[role a]' 'nodes = 1' 'on = b' 'program = true' '[role b]' 'program = true'
has_rows 'both keys are marked' -E '^ 5 \| nodes = 1$' '^ \| -$' '^ 6 \| on = b$' '^ \| \^$'
placed 'on and replicas' 6:6 78 '--on and --replicas' '[role a]' 'replicas = 2' 'on = b' 'program = true' '[role b]' 'program = true'
placed 'per-node and ppn' 5:12 78 '--per-node and --ppn' '[role a]' 'per_node = yes' 'ppn = 2' 'program = true'
placed 'world and per-node' 6:12 78 '--per-node and --world' '[role a]' 'world = w' 'per_node = yes' 'program = true'
placed 'key: and per-node' 5:9 78 '--ready key: and --per-node' '[role a]' 'ready = key:up' 'per_node = yes' 'program = true'
placed 'a time for start' 5:17 78 'ready with its start' '[role a]' 'ready_timeout = 1s' 'program = true'
placed 'share-gpus alone' 5:14 78 '--share-gpus without --on' '[role a]' 'share_gpus = yes' 'program = true'
placed 'two rests' 6:7 78 'both take the rest' '[role a]' 'program = true' '[role b]' 'program = true'
placed 'after in a world' 6:9 78 'in the same world' '[role a]' 'world = w' 'after = b' 'nodes = 1' 'program = true' '[role b]' 'world = w' 'program = true'
placed 'two ways of MPI' 11:7 78 'another --mpi than' '[role a]' 'world = w' 'mpi = pmix' 'nodes = 1' 'program = true' \
    '[role b]' 'world = w' 'mpi = none' 'program = true'
placed 'a cycle' 6:9 78 'a --after b --after a' '[role a]' 'nodes = 1' 'after = b' 'program = true' '[role b]' 'after = a' 'program = true'
placed 'main that may end with any code' 6:8 78 '--ends ok, but --main' 'main = a' '[role a]' 'ends = ok' 'program = true'
placed 'main of no role' 4:8 78 '--main c: there is no role' 'main = c' '[role a]' 'program = true'
placed 'linger without main' 4:10 78 '--linger: there is no --main' 'linger = 1s' '[role a]' 'program = true'
placed 'main without roles' 4:8 78 '--main: the job has no roles' 'main = a' 'program = true'
placed 'rank 0' 4:13 78 'each role has a rank 0' 'ends_with = rank0' '[role a]' 'program = true'
placed 'fewer nodes' 4:13 78 'needs all its nodes' 'min_nodes = 1' '[role a]' 'program = true'
placed 'spares of no number' 4:10 78 '--spares auto' 'spares = auto' '[role a]' 'program = true'
placed 'a port of none' 5:9 78 '`a`: --ready asks the port `x`' '[role a]' 'ready = tcp:x' 'program = true'
placed 'a reference' '5, argument 1 of role a' 78 'a role has no `adr`' '[role a]' 'program = echo {a.adr}' 'nodes = 1'
has_rows 'with the line' -F '5 | program = echo {a.adr}'
placed 'in quotes' '5, argument 1 of role a' 78 'a role has no `adr`' '[role a]' "program = echo 'a \"b'\\''{a.adr}'" 'nodes = 1'
placed 'of a variable' '7, -x of role a' 78 'there is no role `c`' '[role a]' 'program = true' '[env a]' 'set.X = {c.addr}'
has_rows 'with the line, too' -F '7 | set.X = {c.addr}'
placed 'of the job' '5, -x of the job' 78 'there is no role `c`' '[env]' 'set.X = {c.addr}' '[role a]' 'program = true'
placed 'an empty program' 6:11 78 'the program of role a is empty' '[role a]' 'nodes = 1' 'program = ""'
placed 'a host of none' '4, role a' 64 'no host `n9` in the list' '[role a]' 'nodes = n9' 'program = true'
placed 'a node of none' '4, role a' 69 'role `a` stands on b:7' '[role a]' 'on = b:7' 'program = true' '[role b]' 'program = true'
placed 'slots of another' '6, role b' 69 'role `b` asks for slots' '[role a]' 'program = true' '[role b]' 'on = a' 'gpus_per_rank = 1' 'program = true' \
    '[run]' 'gpus_per_rank = 1'
printf '%s\n' "$job" '[role a]' 'n = 9' 'program = true' >job
hn --job job
has 'too many ranks: the role and its place' "$ERR" 'note: role `a`, job:4'
hn --job one.ini --role b true
is 'roles in two places: 64' "$RC $(grep -c 'error\[HN721\]: roles on the command line, `b`, and in the job file one.ini, `a`' "$ERR")" '64 1'
hn --job one.ini --role b
is 'a role without a program, too: 64' "$RC $(grep -c 'error\[HN721\]: roles on the command line, `b`' "$ERR")" '64 1'
hn --job one.ini true
is 'a program beside roles: 64' "$RC $(grep -c 'error\[HN721\]: the command line has the program `true`' "$ERR")" '64 1'
done_testing
