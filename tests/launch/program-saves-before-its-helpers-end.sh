#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# SIGTERM and signals of the user go to the program of a rank, whatever stands around it, and to its helpers only when
# it has ended, or at half of --grace.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Works with a helper, an endless source of numbers that dies of both signals. A signal is noticed between two numbers;
# the helper has to live for 10 more.
cat >save.py <<'END'
import multiprocessing, os, signal, subprocess, sys

def serve(pipe):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        while True:
            pipe.recv()
            pipe.send(os.getpid())
    except EOFError:
        pass

def start_helper(kind):
    if kind in ("popen", "session"):
        helper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                  start_new_session=kind == "session")
        def ask():
            helper.stdin.write(b"x")
            return helper.stdout.read(1)
        return ask
    context = multiprocessing.get_context(kind)
    ours, theirs = context.Pipe()
    context.Process(target=serve, args=(theirs,), daemon=True).start()
    theirs.close()
    def ask():
        ours.send(1)
        return ours.recv()
    return ask

def main():
    got = []
    for signo in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(signo, lambda n, frame: got.append(n))
    ask = start_helper(sys.argv[1])
    ask()
    print("up", flush=True)
    while True:
        signal.sigtimedwait([], 0.02)
        ask()
        if got:
            signo = got.pop(0)
            for _ in range(10):
                if not ask():
                    sys.exit("the helper is gone")
                signal.sigtimedwait([], 0.02)
            print("saved", signal.Signals(signo).name, os.environ["RANK"], flush=True)
            if signo == signal.SIGTERM:
                os._exit(0)

if __name__ == "__main__":
    main()
END

# A launcher that catches SIGTERM alone and starts sessions, as torchrun does.
cat >launcher.py <<'END'
import signal, subprocess
child = subprocess.Popen(["python3", "save.py", "fork"], start_new_session=True)
signal.signal(signal.SIGTERM, lambda n, frame: child.send_signal(n))
child.wait()
END

# Each rank has something else around its program.
names=('a helper in the process group' 'a forked helper' 'a spawned helper' 'a helper of a fork server'
    'a helper in a session of its own' 'below a shell' 'below two shells' 'below timeout'
    'in a session that a shell starts' 'in a pipe of a shell' 'below a shell with traps'
    'below a shell that waits with traps' 'below a program without handlers'
    'below a launcher that starts sessions' 'below script')
cat >rank.sh <<'END'
case $RANK in
    0) exec python3 save.py popen ;;
    1) exec python3 save.py fork ;;
    2) exec python3 save.py spawn ;;
    3) exec python3 save.py forkserver ;;
    4) exec python3 save.py session ;;
    5) python3 save.py fork ;;
    6) bash -c "python3 save.py fork; true" ;;
    7) exec timeout 600 python3 save.py fork ;;
    8) setsid python3 save.py fork ;;
    9) python3 save.py fork | cat ;;
    10) exec bash -c 'trap : TERM USR1; python3 save.py fork; true' ;;
    11) exec bash -c 'trap : TERM USR1; python3 save.py fork & while [ -d /proc/$! ]; do wait; done' ;;
    12) exec python3 -c 'import subprocess; subprocess.call(["python3", "save.py", "fork"])' ;;
    13) exec python3 launcher.py ;;
    14) exec script -qec 'python3 save.py fork' /dev/null ;;
esac
true
END
n=${#names[@]}
script --version >"$TMP/version" 2>&1 || n=$((n - 1))
start --local "$n" --label none --grace 120s sh rank.sh
wait_for count_is '^up' "$n"
kill -USR1 "$PID"
wait_for count_is 'saved SIGUSR1' "$n"
exits 'SIGTERM ends the ranks' 143 finish_by TERM
for ((i = 0; i < n; i++)); do
    is "${names[i]}: SIGUSR1 and SIGTERM save" "$(grep -c "saved SIG[A-Z0-9]* $i"$'\r*$' "$OUT")" 2
done
lacks 'no rank had to be killed' "$ERR" 'to be killed'

# Only a shell catches the signal: what it waits for must not hold it up.
start --local 1 --label none --grace 60s bash -c 'trap "echo saved; exit 0" TERM; echo up; sleep 300'
wait_for count_is up 1
begin=$SECONDS
finish_by TERM
has 'the trap of a shell runs although its child does not end by itself' "$OUT" saved
ok '... at once' test $((SECONDS - begin)) -lt "$(scaled 20)"
start --local 1 --label none bash -c 'trap "echo asked" USR1; echo up; sleep 1; echo slept; sleep 0.1; exec sleep 300'
wait_for count_is up 1
kill -USR1 "$PID"
ok 'a signal that a shell catches does not end its child' wait_for count_is asked 1
has '... which ends in its time' "$OUT" slept
finish_by KILL

# Nothing catches it: everything ends.
start --local 2 sh -c 'echo up; sleep 300 & sleep 300; true'
wait_for count_is up 2
exits 'SIGUSR1 ends ranks that do not catch it' 138 finish_by USR1
nothing_left '... with their helpers'

# A program that never ends: its helper is told at half of the grace time, and all are killed at its end.
cat >stay.sh <<'END'
python3 -c '
import signal, subprocess, time
signal.signal(signal.SIGTERM, lambda *a: print("told", flush=True))
helper = subprocess.Popen(["sleep", "300"])
print("up", flush=True)
while helper.poll() is None:
    time.sleep(0.05)
print("helper", -helper.returncode, flush=True)
while True:
    time.sleep(1)'
END
start --local 1 --label none --grace 4s sh stay.sh
wait_for count_is up 1
finish_by TERM
is 'the helper is told later, and the program once' "$(cat "$OUT")" $'up\ntold\nhelper 15'
verdict_has 'and the program is killed at the end of the grace time' 'had to be killed'

# Signals by hand, and the namespace, whose first process has all orphans.
start --local 1 --label none -o run.contain=pidns --grace 60s sh -c 'python3 save.py fork; true'
if wait_for count_is '^up' 1 && pid_runs; then
    finish_by TERM
    is 'in a namespace SIGTERM saves, too' "$RC $(grep -c 'saved SIGTERM' "$OUT")" '143 1'
else
    finish
    skip 'in a namespace SIGTERM saves, too' 'no process namespaces here'
fi
nothing_left 'nothing is left'
done_testing
