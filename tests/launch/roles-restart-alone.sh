#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --restart-scope: a role that fails starts again, as a whole or only the instance, while the other roles run on.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hosts=(-w localhost:2,127.0.0.1:2,127.0.0.2:2 --gpus-per-rank 0)
log=$TMP/log

# Waits until the log has so many lines.
cat >until.sh <<'END'
until [ "$(wc -l <"$1")" -ge "$2" ]; do sleep 0.05; done
END

# --- one process of --per-node ---

cat >helper.sh <<'END'
echo "$HN_RESTART $1 $2 $HN_PORT_HTTP" >>"$LOG"
echo "helper $HN_RESTART"
[ "$HN_RESTART" -lt 2 ] || exec sleep 600
sleep 600 &
exit 7
END
: >"$log"
hn "${hosts[@]}" --log-dir logs -x LOG="$log" --max-restarts 2 --main t --role t --nodes 1 -n 1 sh -c 'echo "sees $1:$2"; sh until.sh "$LOG" 3; echo "started $HN_RESTART"' t '{h.addr}' '{h.port:http}' : \
    --role h --on t --per-node --restart-scope alone sh helper.sh '{h.addr}' '{port:http}'
exits 'a helper fails twice and starts again, while the trainer runs on' 0
is 'with HN_RESTART raised' "$(cut -d' ' -f1 "$log" | tr -d '\n')" 012
is 'at the same address and port' "$(cut -d' ' -f2- "$log" | sort -u | wc -l)" 1
has 'which the trainer has seen' "$OUT" "sees $(head -1 "$log" | sed 's/^0 \([^ ]*\) \([^ ]*\) .*/\1:\2/')"
has 'once' "$OUT" 'started 0'
is 'each line of the helper is there' "$(grep -c 'helper [012]$' "$OUT")" 3
has 'each restart is told' "$ERR" 'restart 2 of 2, of role h: role h, rank 0 on localhost exited with code 7'
verdict_has 'and counted in the last line' 'finished' '(2 restarts of roles)'
is 'and has an event' "$(grep -c '"ev":"role.restart".*"role":"h"' logs/latest/events.ndjson)" 2
run "$HNLAUNCH" report
has 'which the report has' "$OUT" 'role h, rank 0 on localhost exited with code 7'

hn "${hosts[@]}" --max-restarts 1 --main t --role t --nodes 1 -n 1 sh -c 'until [ -e done ]; do sleep 0.05; done' : \
    --role h --nodes 1 -n 1 --restart-scope role sh -c '[ "$HN_RESTART" = 0 ] && exit 4; touch done'
exits 'a helper that no role needs starts again, too' 0
verdict_has 'which counts' 'finished: role t exited 0' '(1 restart of roles)'

# --- the limit ---

: >"$log"
hn "${hosts[@]}" -x LOG="$log" --max-restarts 1 --role t --nodes 1 -n 1 sleep 600 : \
    --role h --on t --per-node --restart-scope alone sh -c 'echo "$HN_RESTART" >>"$LOG"; exit 5'
exits 'behind the last restart the code of the rank ends the job' 5
is 'which started twice' "$(tr -d '\n' <"$log")" 01
verdict_has 'and is named' 'failed after' 'role h, rank 0 on localhost exited with code 5'

# --- the rules of --restart auto ---

: >"$log"
hn "${hosts[@]}" -x LOG="$log" --restart auto --role t --nodes 1 -n 1 sleep 600 : \
    --role h --on t --per-node --restart-scope alone sh -c 'echo "$HN_RESTART" >>"$LOG"; exit 5'
exits 'the same failure twice ends the job' 5
is 'after a restart' "$(tr -d '\n' <"$log")" 01
has 'with the reason' "$ERR" 'the same failure twice without progress'
: >"$log"
hn "${hosts[@]}" -x LOG="$log" --restart auto --role t --nodes 1 -n 1 sleep 600 : \
    --role h --on t --per-node --restart-scope alone sh -c 'echo "$HN_RESTART" >>"$LOG"; exit 93'
exits 'a rank that gives up' 93
is 'is not started again' "$(tr -d '\n' <"$log")" 0

# --- output ---

hn "${hosts[@]}" --label none --max-restarts 2 --role h --nodes 1 -n 1 --replicas 2 --restart-scope alone sh -c '
    yes 0123456789abcdef | head -300000
    [ "$HN_ROLE_INDEX" = 1 ] || [ "$HN_RESTART" = 2 ]'
exits 'a rank that writes much starts again' 0
is 'and no byte is lost' "$(sort "$OUT" | uniq -c | xargs)" '1200000 0123456789abcdef'

# --- a role ---

# The ranks meet in the store of their world, which is empty each time.
cat >ranks.py <<'END'
import os, signal, sys
from store_client import Client
env = os.environ
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
store = Client(int(env["MASTER_PORT"]), env["MASTER_ADDR"])
count = store.add(b"count", 1)
if count == 2:
    store.set(b"all", b"here")
store.wait(b"all")
with open(env["LOG"], "a") as f:
    f.write("%s %s %s %s\n" % (env["HN_RESTART"], env["RANK"], count <= 2, env["MASTER_PORT"]))
if env["HN_RESTART"] == "1":
    sys.exit(0)
if env["RANK"] == "1":
    sys.exit(3)
signal.sigwait([signal.SIGTERM])
print("term", env["RANK"])
END
: >"$log"
hn "${hosts[@]}" -x LOG="$log" --max-restarts 1 --role w --nodes 2 -n 2 --ppn 1 --restart-scope role -x PYTHONPATH="$ROOT/tests/lib" python3 ranks.py : --role other --nodes 1 -n 1 sh -c 'sh until.sh "$LOG" 4; echo "other $HN_RESTART"'
exits 'a role starts again as a whole' 0
is 'each rank once more' "$(cut -d' ' -f1,2 "$log" | sort | xargs)" '0 0 0 1 1 0 1 1'
is 'in an empty store' "$(cut -d' ' -f3 "$log" | sort -u)" True
is 'at the same port' "$(grep ' 0 True' "$log" | cut -d' ' -f4 | sort -u | wc -l)" 1
has 'the others of the role got TERM' "$OUT" 'term 0'
has 'another role runs on' "$OUT" 'other 0'

hn "${hosts[@]}" --max-restarts 2 --role h --nodes 1 -n 2 --restart-scope role sh -c '[ "$HN_RESTART" = 2 ] || exit 3' : --role o --nodes 1 -n 1 sleep 1.5
exits 'ranks that fail at once start again' 0
verdict_has 'each end counts once' 'finished: 3 ranks exited 0' '(2 restarts of roles)'
lacks 'nothing is left to stop' "$ERR" 'stopping all ranks'

# --- a replica ---

: >"$log"
hn "${hosts[@]}" -x LOG="$log" --max-restarts 1 --role s --replicas 2 --nodes 1 -n 1 --restart-scope alone sh -c '
    echo "$HN_ROLE_INDEX $HN_RESTART" >>"$LOG"
    [ "$HN_ROLE_INDEX$HN_RESTART" = 10 ] && exit 9
    sh until.sh "$LOG" 3'
exits 'one replica of two starts again' 0
is 'and the other does not' "$(sort "$log" | xargs)" '0 0 1 0 1 1'

# --- an order to end in the middle ---

: >"$log"
start "${hosts[@]}" -x LOG="$log" --grace 2s --max-restarts 3 --role w --nodes 1 -n 2 --restart-scope role sh -c '
    [ "$RANK" -eq 0 ] || trap "echo late >>\"$LOG\"" TERM
    echo "$RANK" >>"$LOG"
    sh until.sh "$LOG" 2
    [ "$RANK" -eq 0 ] && exit 4
    while :; do sleep 0.05; done' : --role other --nodes 1 -n 1 sleep 600
wait_for grep -q late "$log"
kill -INT "$PID"
finish
exits 'Ctrl-C while ranks of a role end for a restart' 130
is 'nothing starts any more' "$(grep -c '^[01]$' "$log")" 2

# --- what is refused ---

refused() { # NAME TEXT ARGUMENT...
    run "$HNLAUNCH" plan "${hosts[@]}" "${@:3}"
    exits "$1" 64
    has 'and says why' "$ERR" "$2"
}

refused 'alone, of a role that is one world' 'error[HN729]: role `a`: --restart-scope alone, but its ranks are one world' --role a -n 2 --restart-scope alone true : --role b -n 1 true
refused 'a part of a world' 'error[HN729]: role `a`: --restart-scope role and --world exclude each other' --role a -n 1 --world w --restart-scope role true : --role b -n 1 --world w true
refused 'another word' 'must be one of job|role|alone, got `all`' --role a -n 1 --restart-scope all true
run "$HNLAUNCH" plan --json "${hosts[@]}" --role a -n 1 --restart-scope role true
has 'a plan has it' "$OUT" '"restart_scope"'

done_testing
