#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The ranks have --grace to save their state in whatever way a terminal, a session or a batch system ends hnlaunch:
# the signals of one cause are one order. A second Ctrl-C, or a late second TERM, ends at once.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >save.sh <<'END'
# Writes up.RANK; after TERM it takes $2 seconds to write saved.RANK, into the folder $1.
trap 'sleep "$2"; echo saved >"$1/saved.$RANK"; exit 0' TERM
echo up >"$1/up.$RANK"
while :; do sleep 0.05; done
END

cat >ends.py <<'END'
# Runs one hnlaunch of two ranks for each way to end, all at the same time.
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time

HNLAUNCH = sys.argv[1]
lock = threading.Lock()
TOLD = "told"
HUP, TERM, INT = signal.SIGHUP, signal.SIGTERM, signal.SIGINT


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def line(folder, seconds="2.2"):
    return [HNLAUNCH, "--local", "2", "--grace", "100s", "sh", "save.sh", folder, seconds]


def count(folder, what):
    return sum(name.startswith(what) for name in os.listdir(folder))


def fresh():
    """Signals as in a terminal."""
    os.setsid()
    for number in (HUP, TERM, INT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def tell(name, good, why):
    with lock:
        print(("ok " if good else "not ok ") + name)
        for text in [] if good else why.splitlines()[-20:]:
            print("# " + text)
        sys.stdout.flush()


def agents(pid):
    """The guard and the agent below hnlaunch."""
    found, front = [], [pid]
    while front:
        children = subprocess.run(["pgrep", "-P", ",".join(map(str, front))], capture_output=True, text=True).stdout.split()
        front = [int(c) for c in children if os.readlink(f"/proc/{c}/exe").endswith("hnlaunch-agent")]
        found += front
    return found


def signals(name, order, saved, code):
    """ORDER: signals, gaps in seconds, TOLD: until hnlaunch tells the first; a list: to the agent's processes. CODE None: HUP or TERM comes first."""
    folder = name.replace(" ", "_")
    os.mkdir(folder)
    errors = open(folder + "/err", "w+")
    p = subprocess.Popen(line(folder, "2.2" if saved else "60"), preexec_fn=fresh, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    good = wait_for(lambda: count(folder, "up") == 2)
    for what in order:
        if isinstance(what, float):
            time.sleep(what)
        elif what == TOLD:
            good = wait_for(lambda: ended(folder, "stopping all ranks")) and good
        elif isinstance(what, list):
            for pid in agents(p.pid):
                for number in what:
                    os.kill(pid, number)
        else:
            p.send_signal(what)
    try:
        p.wait(120)
    except subprocess.TimeoutExpired:
        p.kill()
    errors.seek(0)
    got = 128 - p.wait() if p.wait() < 0 else p.wait()
    said = f"code {got}, {count(folder, 'saved')} saved\n" + errors.read()
    tell(name, good and (got == code or not code and got in (129, 143)) and count(folder, "saved") == saved and ("killed at once" in said) == (saved == 0), said)


def ended(folder, verdict):
    return verdict in open(folder + "/err").read()


def terminal(name, shell):
    """hnlaunch in the foreground of an interactive shell, whose terminal closes."""
    folder = name.replace(" ", "_")
    os.mkdir(folder)
    pid, master = pty.fork()
    if pid == 0:
        for number in (HUP, TERM, INT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(shell[0], shell)
    os.write(master, (" ".join(line(folder)) + f" >{folder}/out 2>{folder}/err\n").encode())
    good = wait_for(lambda: count(folder, "up") == 2)
    time.sleep(0.1)
    os.close(master)
    good = wait_for(lambda: os.path.exists(folder + "/err") and ended(folder, "(exit 129)")) and good
    said = open(folder + "/err").read()
    os.waitpid(pid, 0)
    tell(name, good and count(folder, "saved") == 2 and "killed" not in said, said)


def tmux(name):
    folder = name.replace(" ", "_")
    os.mkdir(folder)
    at = ["tmux", "-S", folder + "/socket", "-f", "/dev/null"]
    subprocess.run(at + ["new-session", "-d", "sh", "-c", " ".join(line(folder)) + f" >{folder}/out 2>{folder}/err"], check=True)
    good = wait_for(lambda: count(folder, "up") == 2)
    subprocess.run(at + ["kill-session"], check=True)
    good = wait_for(lambda: ended(folder, "(exit 129)")) and good
    said = open(folder + "/err").read()
    tell(name, good and count(folder, "saved") == 2 and "killed" not in said, said)


ways = [(terminal, f"bash closes its terminal {i}", ["bash", "--norc", "-i"]) for i in (1, 2, 3)]
ways += [(terminal, "a shell without job control closes its terminal", ["sh", "-c", "read -r line; eval \"$line\""])]
for gap in (0.0, 0.01, 0.1, 1.0, 1.5):
    ways += [(signals, f"HUP {gap} s HUP", [HUP, gap, HUP], 2, 129), (signals, f"HUP {gap} s TERM", [HUP, gap, TERM], 2, 129)]
for gap in (0.0, 0.02, 0.1):
    ways += [(signals, f"TERM {gap} s TERM", [TERM, gap, TERM], 2, 143), (signals, f"TERM {gap} s HUP", [TERM, TOLD, gap, HUP] if gap else [TERM, HUP], 2, 143 if gap else None)]
ways += [
    (signals, "a terminal and then a batch system", [HUP, 0.01, HUP, 0.02, TERM], 2, 129),
    (signals, "INT and then TERM", [INT, 0.1, TERM], 2, 130),
    (signals, "all processes of a session but the ranks", [TERM, [TERM, HUP], HUP], 2, 143),
    (signals, "the agents first", [[TERM, HUP], 0.1, TERM, HUP], 2, None),
    (signals, "TERM 1.5 s TERM", [TERM, TOLD, 2.0, TERM], 0, 143),
    (signals, "INT 0.2 s INT", [INT, TOLD, 0.2, INT], 0, 130),
    (signals, "HUP TERM 1.5 s TERM", [HUP, TOLD, TERM, 2.0, TERM], 0, 129),
]
if shutil.which("tmux"):
    ways.append((tmux, "tmux kill-session"))
for i in range(0, len(ways), 16):
    threads = [threading.Thread(target=way[0], args=way[1:]) for way in ways[i : i + 16]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
END
tell_results python3 ends.py "$HNLAUNCH"

# A rank that fails of the same cause comes first: the others are being stopped already.
start --local 2 --grace 100s --label none sh -c 'trap "until [ -e told ]; do sleep 0.02; done; sleep 1; echo saved; exit 0" TERM; echo up; [ "$RANK" = 0 ] || { until [ -e go ]; do sleep 0.02; done; exit 5; }; while :; do sleep 0.05; done'
ok 'two ranks are up' wait_for lines_are "$OUT" 2
touch go
ok 'one fails, and the stop takes so long that it is told' wait_for grep -q 'stopping all ranks: rank 1 on localhost exited with code 5' "$ERR"
touch told
kill -HUP "$PID"
sleep 0.05
exits 'its code counts' 5 finish_by TERM
has 'the other rank has the grace time' "$OUT" saved
nothing_left 'nothing is left'
done_testing
