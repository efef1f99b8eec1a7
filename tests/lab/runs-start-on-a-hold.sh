#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs on a hold start without a login, and behave as after one: output, exit codes, last lines, leftovers, the environment.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

runtime_dir
lab_up 3 2
H=$TMP/hosts.txt

logins() { cat "$LAB_DIR"/nodes/*/sshd.log | grep -c '^Accepted'; }
hold() { # OPTION...: HOLD is its id
    exits "a hold of $* is made" 0 lab_hn hold "$@"
    HOLD=$(cat "$OUT")
}
holds() { lab run "$LAB_HNLAUNCH" ps --json | python3 -c 'import json, sys; [print(*[str(h[k]) for k in sys.argv[1:]]) for h in json.load(sys.stdin)["holds"]]' "$@"; }
no_hold() { [[ ! -e $XDG_RUNTIME_DIR/hnlaunch/holds ]]; }

# --- runs as after a login ----------------------------------------------------------------------------------

trial() { # NAME WANTED-CODE COMMAND...: the same command cold and on the hold
    local name=$1 code=$2 cold=$TMP/cold.out
    shift 2
    "$@" --hold none
    exits "$name, cold" "$code"
    sort "$OUT" >"$cold"
    verdict | sed -E 's/[0-9.]+(m?s|m)\b/TIME/g; s/pid [0-9]+/pid/g' >"$TMP/cold.verdict"
    "$@" --hold auto
    exits "$name, on the hold" "$code"
    sort "$OUT" >"$TMP/held.out"
    same "$name: the same output" "$cold" "$TMP/held.out"
    verdict | sed -E 's/[0-9.]+(m?s|m)\b/TIME/g; s/pid [0-9]+/pid/g' >"$TMP/held.verdict"
    same "$name: the same last line" "$TMP/cold.verdict" "$TMP/held.verdict"
}
ends() { lab_hn -H "$H" --label none "${@: -2}" sh -c 'echo "$RANK $WORLD_SIZE $(hostname) $PWD $MINE"; cat; umask; ulimit -n; exit 0'; }
fails() { # rank 3 waits for the lines of all
    rm -rf "$TMP/said" && mkdir "$TMP/said"
    lab_hn -H "$H" --label none "${@: -2}" sh -c 'echo $RANK; : >"$0/$RANK"; [ $RANK = 3 ] || exec sleep 60
        until [ "$(ls "$0" | wc -l)" = 6 ]; do sleep 0.05; done; exit 7' "$TMP/said"
}
is_late() { lab_hn -H "$H" --label none --timeout 1s --grace 1s "${@: -2}" sh -c 'trap "" TERM; echo up; sleep 60'; }
is_stopped() {
    comes_up 'the ranks are up' 6 lab_start -H "$H" --label none "${@: -2}" sh -c 'echo up; sleep 60'
    finish_by INT
}
loses_its_head() {
    comes_up 'the ranks are up' 6 lab_start -H "$H" --label none "${@: -2}" sh -c 'echo up; sleep 60'
    finish_by KILL
}
ranks_left() { lab ps | grep -c 'sleep 60'; }
no_ranks() { [[ $(ranks_left) == 0 ]]; }

hold -H "$H"
has 'a script reads the id, and a user the next step' "$ERR" "hnlaunch release $HOLD ends it"
is 'ps shows the hold' "$(holds hold nodes_ready used_by released)" "$HOLD 3 [] False"
lab_hn ps
has 'also in its table' "$OUT" "ends in 29m"
before=$(logins)
exits 'a run starts' 0 lab_hn -H "$H" -v --label none sh -c 'echo "$RANK $MASTER_ADDR"'
has 'it says that it uses the hold' "$ERR" "the agents of hold $HOLD are used"
is 'all ranks ran' "$(wc -l <"$OUT")" 6
for i in {1..20}; do
    lab_hn -H "$H" --label none sh -c "echo $i"
    [[ $RC == 0 && $(grep -cx "$i" "$OUT") == 6 ]] || fail "run $i on the hold"
done
is 'twenty runs in a row need no login' "$(logins)" "$before"

# tests/bench/hold --long makes 10,000 runs.
census() { # KIB DESCRIPTORS of the hold and all agents
    local pid
    for pid in "$(holds pid)" $(lab ps | awk '/agent-|hnlaunch-guard|self.exe/ { print $2 }'); do
        [[ ! -r /proc/$pid/statm ]] || echo "$(($(cut -d' ' -f2 "/proc/$pid/statm") * 4)) $(find "/proc/$pid/fd" -mindepth 1 | wc -l)"
    done | awk '{ kib += $1; fds += $2 } END { print kib, fds }'
}
is_flat() { # BEFORE AFTER
    echo "before and after, in KiB and descriptors: $1, $2"
    [[ ${2#* } -le ${1#* } && ${2% *} -le $((${1% *} * 11 / 10)) ]]
}
is_quiet() { [[ $(census) == "$(sleep 0.3; census)" ]]; }
wait_for is_quiet
flat=$(census)
lab_run bash -c 'for ((i = 0; i < 200; i++)); do "$1" -q -H "$2" --log-dir none true || exit 1; done' - "$LAB_HNLAUNCH" "$H"
exits '200 more runs' 0
wait_for is_quiet
ok 'leave memory and descriptors of hold and agents as they were' is_flat "$flat" "$(census)"
is 'and need no login either' "$(logins)" "$before"

export MINE=of-the-run
mkdir -p "$TMP/there" && cd "$TMP/there" || exit 1
trial 'a run that ends' 0 ends
has 'with the environment and the folder of the run' "$OUT" "$TMP/there of-the-run"
cd "$TMP" || exit 1
trial 'a run that fails' 7 fails
trial 'a run that takes too long' 124 is_late
trial 'a run that is interrupted' 130 is_stopped
loses_its_head --hold auto
is 'a killed run' "$RC" 137
ok 'leaves no ranks behind' wait_for no_ranks
exits 'the next run starts after a killed one' 0 lab_hn -H "$H" --label none true

# --- slots --------------------------------------------------------------------------------------------------

comes_up 'a run is up' 6 lab_start -H "$H" --label none sh -c 'echo up; sleep 60'
one=$PID
run_id=$(holds used_by | tr -d "[]'")
exits 'a second run on the same nodes is refused' 69 lab_hn -H "$H" true
has 'by the number' "$ERR" 'error[HN630]'
has 'with the run that has them' "$ERR" "run $run_id uses node001"
exits 'beside it a run of its own starts' 0 lab_hn -H "$H" --hold none --label none echo beside
exits 'a hold in use is released' 0 lab_hn release "$HOLD"
has 'when its run has ended' "$ERR" "hold $HOLD ends when run $run_id has ended"
kill -INT "$one"
PID=$one
exits 'that run is interrupted' 130 finish
ok 'and the hold is gone' wait_for no_hold
lab_nothing_left 'nothing is left on the nodes'

# --- which runs use it --------------------------------------------------------------------------------------

hold -w node001,node002
exits 'a run on other hosts' 0 lab_hn -v -H "$H" --label none true
has 'says why it does not use the hold' "$ERR" "hold $HOLD is not used: it has other hosts"
lab_hn -v -w node001,node002 --connect-timeout 9s --user root --label none true
has 'so does one with other settings' "$ERR" "hold $HOLD is not used: it has other settings: --user"
cp "${LAB_HNLAUNCH%/*}"/hnlaunch-agent* "$TMP" 2>/dev/null
HNLAUNCH_RUN_AGENT=$(find "$TMP" -maxdepth 1 -name 'hnlaunch-agent*' -type f | head -n 1) lab_hn -v -w node001,node002 --label none true
has 'and one with another agent, as of a new version' "$ERR" "hold $HOLD is not used: it has other settings: hnlaunch-agent"
exits 'which starts' 0
exits 'a run on a part of its hosts names it' 0 lab_hn --hold "$HOLD" -w node002 --label none hostname
is 'and runs there' "$(cat "$OUT")" node002
exits 'a host that it does not have' 69 lab_hn --hold "$HOLD" -w node003 true
has 'is told' "$ERR" "hold $HOLD does not have node003"
exits 'so are other settings' 69 lab_hn --hold "$HOLD" -w node002 --user root true
has 'with the option' "$ERR" "error[HN632]"
exits 'a hold that is not there' 69 lab_hn --hold nobody -w node001 true
has 'has a number' "$ERR" "error[HN631]"
exits 'a second hold of the same hosts' 69 lab_hn hold -w node002,node001
has 'is refused' "$ERR" "error[HN634]"

# --- losses -------------------------------------------------------------------------------------------------

pid=$(holds pid)
comes_up 'ranks are up' 2 lab_start -w node001,node002 --label none sh -c 'echo up; sleep 60'
kill -KILL "$pid"
exits 'a killed hold ends its run with 125' 125 finish
verdict_has 'the last line names it' "hold $HOLD (pid $pid) has ended"
lab_nothing_left 'and leaves nothing'
lab_hn -w node001,node002 --label none true
exits 'its stale socket is in nobody'"'"'s way' 0

hold -H "$H"
lab crash node002
lab boot node002
lost() { [[ $(holds nodes_ready) == 2 ]]; }
ok 'a node that was off is noticed' wait_for lost
before=$(logins)
exits 'a run connects it anew' 0 lab_hn -v -H "$H" --label none hostname
has 'and says so with -v' "$ERR" "node002 is connected anew"
is 'with one login' "$(($(logins) - before))" 1
comes_up 'ranks are up' 6 lab_start -H "$H" --label none sh -c 'echo up; sleep 60'
lab crash node003
exits 'a node that is lost during a run: 125' 125 finish
verdict_has 'is named' 'lost node003'
lab boot node003
boots() { lab exec node003 true; }
wait_for boots
exits 'all holds are released' 0 lab_hn release --all
ok 'none is left' wait_for no_hold
lab_nothing_left 'nothing is left'

hold -w node001,node002
lab cut node002
sleep 8
begin=$SECONDS
exits 'a node that does not answer the hold' 68 lab_hn -v -w node001,node002 --connect-timeout 2s true
has 'is connected anew, in vain' "$ERR" 'node002 is connected anew'
ok 'before it counts as lost' test $((SECONDS - begin)) -lt 20
lab restore node002
heard() { lab_hn -v -w node001,node002 true && ! grep -q 'connected anew' "$ERR"; }
ok 'and is used when it answers again' wait_for heard
lab_hn release
ok 'that hold is gone' wait_for no_hold

# --- a node that ends its sessions --------------------------------------------------------------------------

cat >save.sh <<'END'
trap 'sleep 1; echo saved; exit 0' TERM
echo up
[ "$HN_RESTART" = 0 ] || exit 0
while :; do sleep 0.1; done
END
printf 'node00%d slots=1\n' 1 2 3 >small
hold -H small
comes_up 'ranks are up' 3 lab_start -H small --max-restarts 1 --nodes 2:3 --grace 30s --label none sh save.sh
lab exec node003 pkill -TERM 'agent-|hnlaunch-guard|exe'
exits 'a node that ends its agents is drained on a hold, too' 0 finish
is 'all ranks had the time to save' "$(grep -c saved "$OUT")" 3
has 'the reason is told' "$ERR" 'node003 was drained: SIGTERM to its agent'
ok 'the hold has lost the node' wait_for lost
lab_hn release
ok 'and ends' wait_for no_hold
lab_nothing_left 'with nothing left'

XDG_RUNTIME_DIR=/proc lab_hn hold -w node001
exits 'a hold without a place for its socket' 73
has 'is told' "$ERR" "error[HN635]"
has 'with the next step' "$ERR" 'help: set XDG_RUNTIME_DIR to a folder of your own, or unset it'

# --- other users --------------------------------------------------------------------------------------------

hold -w node001
cat >ask.py <<'END'
import socket, sys

s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(b'{"do": "info"}\n')
    print(len(s.recv(100)))
except OSError as e:
    print(e.strerror)
END
chmod 755 "$TMP"
SOCKET=$(echo "$XDG_RUNTIME_DIR"/hnlaunch/holds/*.sock)
other() { lab run setpriv --reuid 65534 --regid 65534 --clear-groups python3 "$TMP/ask.py" "$SOCKET"; }
is 'another user cannot enter the folder' "$(other)" 'Permission denied'
chmod 755 "$XDG_RUNTIME_DIR" "$XDG_RUNTIME_DIR/hnlaunch" "$XDG_RUNTIME_DIR/hnlaunch/holds"
chmod 777 "$SOCKET"
ok 'nor gets an answer where that is open' grep -qxE '0|Connection reset by peer|Broken pipe' <<<"$(other)"
is 'while the user does' "$(python3 ask.py "$SOCKET")" 100
exits 'it is released' 0 lab_hn release
ok 'and gone' wait_for no_hold

hold -w node001 --idle 2s
ok 'a hold without runs ends' wait_for no_hold
lab_nothing_left 'and its agents with it'
done_testing
