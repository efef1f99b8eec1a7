#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A text of a rank, a node, a login, an error file or a configuration file moves no cursor, ends no line, turns no
# line around and is not longer than a message should be, wherever hnlaunch shows it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# What each of them says: controls of 7 and 8 bits, a forged last line, direction, separators, tags, broken UTF-8.
TEXT=$'\e[2J\e]0;OWNED\a\r\nhnlaunch: finished: 1 rank exited 0 in 1ms\n\x85\x9b2J\u0085\u009b2J\u202e\u2066\u200f\u061c\u2028\u2029\U000e0041\xff\x7f\v\b'
export TEXT
LONG=$(printf 'x%.0s' {1..3000})
bad='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa6-\xaf]|\xf3\xa0'

clean() { # NAME [FILE...]: nothing of it comes through, and it is shown at all
    local name=$1 file
    shift
    for file in "${@:-$ERR}"; do
        is "$name: nothing that a terminal obeys is in ${file##*/}" "$(LC_ALL=C grep -aP "$bad" "$file")" ''
        is "$name: no line of hnlaunch is forged in ${file##*/}" "$(grep -a '^hnlaunch: finished: 1 rank exited 0 in 1ms' "$file")" ''
        ok "$name: valid UTF-8 in ${file##*/}" iconv -f utf-8 -t utf-8 "$file" -o /dev/null
    done
}
says() { has "$1: it is told, escaped" "${2:-$ERR}" 'OWNED'; } # NAME [FILE]
short() { # NAME [COLUMNS]
    is "$1: no line is longer than ${2:-2000} columns" "$(awk -v most="${2:-2000}" 'length($0) > most + 100' "$ERR")" ''
}

# --- ranks ---
c=$BUILD/tests/clients/foreign_texts
hn_exits 'abort: the code is that of the rank' 3 --local 2 --log-dir log "$c" abort "$TEXT"
verdict_has 'abort: the last line is ours' 'hnlaunch: failed after' 'rank 1 on localhost aborted the job: ' '(exit 3)'
says abort
clean abort "$ERR" log/latest/summary.json log/latest/events.ndjson
ok 'abort: summary.json has the text itself' python3 -c '
import json, sys
text = json.load(open("log/latest/summary.json"))["failures"][0]["text"]
sys.exit(not text.startswith("\033[2J\033]0;OWNED\a\r\nhnlaunch: finished"))'
hn_exits 'a long abort: the code is that of the rank' 3 --local 1 "$c" abort "$LONG"
short 'a long abort' 500
ok 'a long abort: the last line is short' test "$(verdict | wc -m)" -lt 300

hn_exits 'report: the code is that of the rank' 3 --json --local 2 "$c" report "$TEXT"
verdict_has 'report: the last line is ours' 'hnlaunch: failed after' '(exit 3)'
says report
clean report "$ERR" "$OUT"

hn --local 1 python3 -c '
import json, os, sys
text = os.environb[b"TEXT"].decode(errors="replace")
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
    json.dump({"message": {"message": text + "x" * 900000, "extraInfo": {"py_callstack": text * 100}}}, f)
sys.exit(3)'
exits 'error file: the code is that of the rank' 3
verdict_has 'error file: the last line is ours' 'hnlaunch: failed after' '(exit 3)'
says 'error file'
clean 'error file'
short 'error file'

hn --local 1 --label none sh -c 'printf "%s\n" "$TEXT" >&2; exit 3'
sed -n '/^error/,$p' "$ERR" >own
says 'last lines of stderr' own
clean 'last lines of stderr' own

told() { grep -q "$1" "$ERR"; }
# Asks until the table shows that.
shows() { kill -QUIT "$PID" && WAIT=1 wait_for told "$1"; }
table() { # NAME HOW WORD: the table of ranks while one does that
    start --local 2 --label none "$c" "$2" "$TEXT"
    wait_for lines_are "$OUT" 1
    ok "$1: the table shows it" wait_for shows "$3"
    kill -INT "$PID"
    finish
    clean "$1"
}
table 'name of a key' wait 'waits for `'
table 'note of a step' step '1/5 '
hn --local 2 --wait-warn 1s --timeout 4s "$c" wait "$TEXT"
ok '--wait-warn: the wait is told' told 'HN404'
clean '--wait-warn'

mkdir "$TMP/bin"
cp "$(command -v sleep)" "$TMP/bin/"$'sl\e[2J\n\u202eep'
hn --local 1 sh -c '"$TMP"/bin/sl* 1000 & exec true' # is left behind, and killed
clean 'name of a program'
hn_exits 'a program that is not there' 127 --local 1 "$TMP/bin/"$'no\e[2J\n\u202esuch'
clean 'a program that is not there'

# --- nodes ---
VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export VERSION ENDPOINT_OPENED=41731 PYTHONPATH=$ROOT/tests/lib
fake() { hn --agent "$ROOT/tests/lib/fake_agent.py" --local 1 "$@" never-run; }
for word in LOG REFUSED LEAVING; do
    ORDERED="$word STARTED EXITED GONE" fake -v
    says "$word of an agent"
    clean "$word of an agent"
done
ORDERED='STARTED KILLED GONE' fake
clean 'name of a cgroup of an agent'
ENDPOINT_OPENED="0 $TEXT" fake
says 'why an agent opens no endpoint'
clean 'why an agent opens no endpoint'
MACHINE=$TEXT fake
clean 'machine of an agent'
hn_exits 'a plan with the machine of an agent' 0 plan --agent "$ROOT/tests/lib/fake_agent.py" --probe --local 1 true
clean 'a plan with the machine of an agent' "$OUT" "$ERR"

ORDERED=STARTED start -v --agent "$ROOT/tests/lib/fake_agent.py" --local 1 never-run
wait_for told 'run '
ok 'STATUS of an agent: the table shows it' wait_for shows OWN
is 'STATUS of an agent: a row stays a row' "$(grep -ac '|  *0 ' "$ERR")" "$(grep -ac '^note: 1 rank' "$ERR")"
clean 'STATUS of an agent'
kill -INT "$PID"
wait_for told 'stopping all ranks'
sleep 0.1 # within 50 ms both would be one
kill -INT "$PID"
finish

# --- logins, and files of the user ---
echo 'printf "%s\n" "$TEXT" >&2; exit 1' >noise.sh
for v in -v -vv; do
    hn_exits "a login, $v" 69 $v --ssh-command "sh $PWD/noise.sh" -w nowhere true
    says "a login, $v"
    clean "a login, $v"
done
cat >server.py <<'EOF'
import os, socket, sys
# A server of ssh: its version string, or what it says in place of one.
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    peer, _ = listener.accept()
    peer.sendall(sys.argv[1].encode() + os.environb[b"TEXT"].replace(b"\n", b"") + b"\r\n")
    peer.close()
EOF
for greeting in SSH-2.0- 'Not allowed: '; do
    python3 server.py "$greeting" >port &
    server=$!
    wait_for test -s port
    printf 'Host evil\n HostName 127.0.0.1\n Port %s\n' "$(cat port)" >ssh_config
    hn -vv --ssh-config ssh_config --host-key accept-new --connect-timeout "$(scaled 3)s" -w evil true
    exits "a server that says $greeting" 68
    clean "a server that says $greeting"
    [[ $greeting == SSH* ]] || says "a server that says $greeting"
    kill "$server"
    wait "$server" 2>/dev/null
    rm port
done

HNLAUNCH_RUN_HOSTS=$TEXT hn config
clean config "$OUT" "$ERR"
HNLAUNCH_RUN_HOSTS=$TEXT hn config --json
clean 'config --json' "$OUT" "$ERR"
nothing_left 'nothing is left'
done_testing
