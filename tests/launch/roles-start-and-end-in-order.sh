#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Roles start after others (--after), the job ends with those of --main, and a failure gives roles with --drain their time.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hosts=(-w localhost:2,127.0.0.1:2,127.0.0.2:2 --gpus-per-rank 0)
await='until [ -e "$0" ]; do sleep 0.05; done'
log=$TMP/log
touch "$log"

# --- starts ---

hn "${hosts[@]}" --label none --role c --after b --nodes 1 sh -c 'echo c >>"$0"' "$log" : --role b --after a --nodes 1 sh -c 'echo b >>"$0"' "$log" : \
    --role a --nodes 1 sh -c 'sleep 0.3; echo a >>"$0"' "$log"
exits 'roles start after others have started' 0
is 'each once' "$(sort "$log" | tr -d '\n')" aabbcc

# On one node the agent keeps the orders apart: b starts there while a runs, c when both have ended.
hn "${hosts[@]}" --main c --role a --nodes 1 -n 2 --ends ok sh -c 'echo "a $RANK"' : --role b --on a --after a --ends ok sh -c 'echo "b $RANK"' : \
    --role c --on a --after b sh -c 'sleep 0.5; echo "c $RANK"'
exits 'roles share a node' 0
is 'and have ended before the last starts' "$(sort "$OUT")" 'a:0 | a 0
a:1 | a 1
b:0 | b 0
c:0 | c 0'

hn "${hosts[@]}" --role a --world w --nodes 1 -n 1 sh -c 'echo "a $WORLD_SIZE"' : --role b --world w --nodes 1 -n 1 --after c sh -c 'echo "b $RANK"' : \
    --role c --nodes 1 -n 1 sleep 0.3
exits 'roles of one world' 0
is 'start together' "$(sort "$OUT")" 'a:0 | a 2
b:1 | b 1'

# --- readiness ---

hn "${hosts[@]}" --label none --role a --nodes 1 -n 1 --ready 'line:up$' sh -c 'sleep 0.5; echo is up; sleep 1' : --role b --nodes 1 -n 1 --after a sh -c 'echo b runs'
exits 'a role waits until another is ready' 0
is 'not only started' "$(cat "$OUT")" 'is up
b runs'
run "$HNLAUNCH" report
lacks 'which is no part of the start' "$OUT" 'start role b'
is 'as the report tells' "$(sed -n 's/^ *[0-9.ms]*  start  *//p' "$OUT")" 'role b: a is ready'

hn "${hosts[@]}" --start-timeout 3s --role a --nodes 1 -n 1 --ready line:up sh -c '"$0"; sleep 2.5; echo up; sleep 3' "$BUILD/examples/hello" : \
    --role b --nodes 1 -n 2 --after a sh -c '[ "$RANK" -eq 0 ] || sleep 1; exec "$0"' "$BUILD/examples/hello"
exits '--start-timeout counts from the start of a role' 0
lacks 'no rank is missed before' "$ERR" HN402
hn "${hosts[@]}" --start-timeout 2s --role a --nodes 1 -n 1 --ready line:up sh -c '"$0"; sleep 1; echo up; sleep 600' "$BUILD/examples/hello" : \
    --role b --nodes 1 -n 2 --after a sh -c '[ "$RANK" -eq 0 ] || exec sleep 600; exec "$0"' "$BUILD/examples/hello"
exits 'and ends a job of which a late role does not meet' 75
verdict_has 'with the name of the rank' 'failed after' 'did not join within 2s'

hn "${hosts[@]}" --role a --nodes 1 -n 2 --ready "file:$TMP/none" --ready-timeout 1s sh -c 'echo loading; sleep 600' : --role b --nodes 1 -n 1 --after a true
exits 'a role that is not ready in time ends the job' 124
has 'which has a message' "$ERR" 'error[HN731]: a role was not ready'
has_rows 'and its last line' -E '^ +\| +loading$'
verdict_has 'and names who waits' 'failed after' 'role a, rank 0 on localhost was not ready in 1s (--ready-timeout), and role b waits for it'
lacks 'the other was not started' "$OUT" 'b:0'

hn "${hosts[@]}" --role a --nodes 1 -n 1 --ready "file:$TMP/none" true : --role b --nodes 1 -n 1 --after a true
exits 'a role that ends before it is ready' 1
verdict_has 'is the cause' 'failed after' 'role a, rank 0 on localhost ended before it was ready, and role b waits for it'

hn "${hosts[@]}" --role a --nodes 1 -n 1 --ends ok --ready "file:$TMP/none" sh -c 'exit 5' : --role b --nodes 1 -n 1 --after a true
exits 'with --ends ok, too: a code' 5
verdict_has 'is told with its reason' 'failed after' 'role a, rank 0 on localhost ended before it was ready, and role b waits for it'
hn "${hosts[@]}" --role a --nodes 1 -n 1 --ends ok --ready "file:$TMP/none" sh -c 'kill -9 $$' : --role b --nodes 1 -n 1 --after a true
exits 'or a signal' 137
verdict_has 'which is told, too' 'failed after' 'role a, rank 0 on localhost was killed by SIGKILL before it was ready, and role b waits for it'

hn "${hosts[@]}" --main m --role m --nodes 1 -n 1 sleep 600 : --role a --nodes 1 -n 1 -x X={m.addr} true : --role b --nodes 1 -n 1 -x Y={a.addr} sleep 600
exits 'a reference to a role needs it, as --after does' 1
verdict_has 'as long as that role runs' 'failed after' 'role a, rank 0 on 127.0.0.1 ended with 0, but role b needs it'

hn "${hosts[@]}" --json=events --role a --nodes 1 -n 1 --ready 'line:up$' sh -c 'sleep 0.5; echo is up; sleep 1' : --role c --nodes 1 -n 1 --after a,b true : \
    --role b --nodes 1 -n 1 --after a --ends ok true
exits 'roles wait for several' 0
is 'events tell for which' "$(sed -n 's/.*"ev":"\(role.[ws][a-z]*\)","role":"\(.\)","text":"\([^"]*\)".*/\1 \2 \3/p' events)" 'role.waits c role c waits for a, b
role.waits b role b waits for a
role.waits c role c waits for b
role.starts b role b: a is ready
role.starts c role c: b is ready'

hn "${hosts[@]}" --detach --role a --nodes 1 -n 1 --ready "file:$TMP/go2" sh -c "$await; sleep 1" "$TMP/go2" : --role b --nodes 1 -n 1 --after a true
exits 'a run is detached while a role waits' 0
touch "$TMP/go2"
hn_exits 'and the role starts afterwards' 0 wait "$(cat "$OUT")"

# --- who waits, in other commands ---

runtime_dir
start "${hosts[@]}" --role a --nodes 1 -n 1 --ready "file:$TMP/go3" sh -c 'echo up; sleep 600' : --role b --nodes 1 -n 1 --after a sleep 600 : --role c --nodes 1 -n 1 --after b,a sleep 600
wait_for count_is up 1
"$HNLAUNCH" ps >shown 2>&1
has 'ps says who waits for whom' shown ' running, role b waits for a, 1 more role waits '
"$HNLAUNCH" ps --json >shown
is 'so does its JSON' "$(python3 -c 'import json; print([(w["role"], w["text"]) for w in json.load(open("shown"))["runs"][0]["waits"]])')" \
    "[('b', 'role b waits for a'), ('c', 'role c waits for a, b')]"
"$HNLAUNCH" top >shown 2>&1
ok 'and the first line of top' grep -qE '^run .*  running, role b waits for a$' shown
"$HNLAUNCH" top --json | head -n 1 >shown
is '... and its JSON' "$(python3 -c 'import json; print([w["role"] for w in json.load(open("shown"))["waits"]])')" "['b', 'c']"
touch "$TMP/go3"
waits_none() { "$HNLAUNCH" ps >shown 2>&1 && grep -q ' running ' shown && ! grep -q waits shown; }
ok 'until none does' wait_for waits_none
finish_by INT

# --- ends ---

hn "${hosts[@]}" --main m --role s --nodes 1 -n 2 sleep 600 : --role m --nodes 1 -n 1 sh -c 'sleep 0.3'
exits 'the end of --main is the end of the job' 0
verdict_has 'and the other ranks were stopped' 'finished' 'role m exited 0 in'
verdict_has 'as the last line says' 'finished' '2 ranks were stopped'

hn "${hosts[@]}" --main m,k --role s --nodes 1 -n 1 sh -c 'trap "exit 9" TERM; sleep 600 & wait' : --role m --nodes 1 -n 1 true : --role k --nodes 1 -n 1 sleep 0.5
exits 'a code of the others does not count' 0
verdict_has 'both are named' 'finished' 'roles m, k exited 0'

hn "${hosts[@]}" --main m --pull nothing --role s --nodes 1 -n 1 sleep 600 : --role m --nodes 1 -n 1 true
exits 'files that could not be brought home' 73
verdict_has 'fail what the roles of --main did well' 'role m exited 0, but files could not be brought home (--pull)'

hn "${hosts[@]}" --main m --linger 30s --role s --nodes 1 -n 1 sh -c "$await; echo lingered >&2; exit 7" "$TMP/go" : --role m --nodes 1 -n 1 sh -c 'touch "$0"' "$TMP/go"
exits 'others have the time of --linger' 0
has 'and use it' "$ERR" 's:0 | lingered'

hn "${hosts[@]}" --main m --role s --nodes 1 -n 1 sh -c 'exit 3' : --role m --nodes 1 -n 1 sleep 1
exits 'a helper that nobody needs may fail' 0
has 'which is told' "$ERR" 'warning[HN730]: role s, rank 0 on localhost ended with code 3; no role needs it'
verdict_has 'and counted' 'finished' '1 other rank failed'

hn "${hosts[@]}" --main m --role s --ends ok --nodes 1 -n 1 sh -c 'exit 3' : --role m --nodes 1 -n 1 sleep 1
exits 'a helper with --ends ok' 0
lacks 'may end without a word' "$ERR" HN730

hn "${hosts[@]}" --main m --role s --nodes 1 -n 1 true : --role m --after s --nodes 1 -n 1 sleep 600
exits 'a helper that another role needs must not end' 1
has 'which has a message' "$ERR" 'error[HN730]: a role has ended that others need'
verdict_has 'and a reason' 'failed after' 'role s, rank 0 on localhost ended with 0, but role m needs it'

hn_exits 'nor fail' 5 "${hosts[@]}" --main m --role s --nodes 1 -n 1 sh -c 'exit 5' : --role m --after s --nodes 1 -n 1 sleep 600
verdict_has 'it is the cause' 'failed after' 'role s, rank 0 on localhost exited with code 5'

hn "${hosts[@]}" --on-failure continue --role s --nodes 1 -n 1 sh -c 'exit 5' : --role m --after s --nodes 1 -n 1 sh -c 'sleep 0.5; echo m ended'
exits 'with --on-failure continue the code is the same' 5
is 'but others go on' "$(cat "$OUT")" 'm:0 | m ended'

hn "${hosts[@]}" --role a --nodes 1 -n 1 --drain 60s sh -c 'trap "echo saving; sleep 0.5; echo saved; exit 0" TERM; : >"$0"; sleep 600 & wait' "$TMP/up.a" : \
    --role b --nodes 1 -n 1 sh -c 'trap "echo stopped; exit 1" TERM; : >"$0"; sleep 600 & wait' "$TMP/up.b" : \
    --role c --nodes 1 -n 1 sh -c 'until [ -e "$0.a" ] && [ -e "$0.b" ]; do sleep 0.05; done; exit 4' "$TMP/up"
exits 'after a failure a role has time for a checkpoint' 4
is 'while others live' "$(cat "$OUT")" 'a:0 | saving
a:0 | saved
b:0 | stopped'
verdict_has 'the failure is the cause' 'failed after' 'role c, rank 0 on 127.0.0.2 exited with code 4'

hn "${hosts[@]}" --timeout 2s --role a --nodes 1 -n 1 sleep 600 : --role b --after a --nodes 1 -n 1 sleep 600
exits 'a time limit ends all' 124

# A program that cannot be started has ended, for those that wait and for a drain.
for on in --nodes\ 1 --on\ a; do
    # shellcheck disable=SC2086
    hn "${hosts[@]}" --timeout 20s --role a --nodes 1 no-such-program : --role b --after a $on sleep 600
    exits "a role that cannot be started, another waits with $on" 127
    verdict_has 'is the cause' 'failed after' "localhost: cannot find 'no-such-program' in PATH"
done
hn_exits 'and has no drain' 127 "${hosts[@]}" --timeout 20s --role a --nodes 1 --drain 60s no-such-program : --role b --nodes 1 sleep 600
hn "${hosts[@]}" --timeout 20s --role a --nodes 1 --drain 60s no-such-program : --role b --after a --on a sleep 600
exits 'nor on a node where another waits' 127
for second in no-such-program sleep; do
    hn "${hosts[@]}" --timeout 20s --role a --nodes 1 -n 1 no-such-program : --role b --on a "$second" 600
    exits "two roles start on a node, of which one or both cannot ($second)" 127
    verdict_has 'the program is the cause' 'failed after' "localhost: cannot find 'no-such-program' in PATH"
    lacks 'the node is not to blame' "$ERR" 'out of turn'
    lacks 'nor lost' "$ERR" 'lost localhost'
done

start "${hosts[@]}" --role a --nodes 1 -n 1 --drain 60s sh -c 'echo up; sleep 600' : --role b --nodes 1 -n 1 --after a sleep 600
wait_for count_is up 1
exits 'Ctrl-C does not wait for a drain' 130 finish_by INT

# --- mistakes ---

refused() { # DESCRIPTION TEXT ARGUMENT...
    local what=$1 text=$2
    shift 2
    hn_exits "$what" 64 -w localhost:2,127.0.0.1:2,127.0.0.2:2 --ppn 1 "$@"
    has 'which is told' "$ERR" "$text"
}
refused 'roles that wait for each other' 'error[HN728]: roles wait for each other: a --after b --after a' --role a -n 1 --after b true : --role b -n 1 --after a true
refused 'also through a world' 'error[HN728]: roles wait for each other: a --after c --after a' --role a -n 1 --world w true : --role b -n 1 --world w --after c true : --role c -n 1 --after a true
refused 'a role in the same world' 'error[HN729]: role `b`: --after a, which is in the same world' --role a -n 1 --world w true : --role b -n 1 --world w --after a true
refused 'an unknown role' 'error[HN726]: --after trainr of role `b`: there is no role of this name' --role trainer -n 1 true : --role b -n 1 --after trainr true
has 'with the near one' "$ERR" 'did you mean `--after trainer`?'
refused '--main of an unknown role' 'error[HN726]: --main x: there is no role of this name' --main x --role a -n 1 true : --role b -n 1 true
refused '--main of a role that may end' 'error[HN729]: role `a`: --ends ok, but --main waits for its end' --main a --role a -n 1 --ends ok true : --role b -n 1 true
refused '--main without roles' 'error[HN729]: --main: the job has no roles' --main a true
refused '--linger without --main' 'error[HN729]: --linger: there is no --main' --linger 1s --role a -n 1 true : --role b -n 1 true
refused '--ends-with rank0' 'error[HN729]: --ends-with rank0: each role has a rank 0' --ends-with rank0 --role a -n 1 true : --role b -n 1 true
hn_exits 'blanks around names are fine' 0 -w localhost:2,127.0.0.1:2 --role a -n 1 true : --role b -n 1 --after ' a ' true
refused 'two names without a comma' '--after needs names of roles, ROLE[,ROLE...], got `a c`' --role a -n 1 true : --role b -n 1 --after 'a c' true
refused 'names that are none' '--after needs names of roles, ROLE[,ROLE...], got `a,`' --role a -n 1 true : --role b -n 1 --after a, true

# --- the plan ---

hn_exits 'a plan' 0 plan "${hosts[@]}" --main b --role a --nodes 1 true : --role b --after a --nodes 1 true
has 'has the order' "$OUT" 'AFTER'
hn plan --json "${hosts[@]}" --main b --role a --nodes 1 true : --role b --after a --nodes 1 true
is 'in JSON, too' "$(python3 -c 'import json, sys; print([(r["name"], r["after"], r["main"]) for r in json.load(sys.stdin)["roles"]])' <"$OUT")" \
    "[('a', [], False), ('b', ['a'], True)]"

done_testing
