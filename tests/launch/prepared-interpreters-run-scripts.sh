#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One agent and a head made of Python: a script shows the same in an interpreter that was prepared and in a new one. What
# a prepared interpreter cannot run is started in the usual way, with the reason. PYTHONS="PYTHON..." tests these instead.
. "$(dirname "$0")/../lib/tap.sh"

python_tests <<'PYTHON'
import json
import signal
import shutil
import subprocess
import sys
import time

from fake_head import *
from warm_scripts import SCRIPTS

tap = Tap()
agent = Agent(env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
MODULES = ["json", "multiprocessing", "asyncio"]
here = os.getcwd()
open("sibling.py", "w").close()


def play(argv, number=0, **launch):
    """Runs it; the signal comes when the rank has written something."""
    agent.launch(argv, **launch)
    if number:
        first = agent.play(until=OUTPUT)
        time.sleep(0.3)  # it has gone on to wait, where a traceback points
        agent.signal(number)
        rest = agent.play()
        for key, data in first.streams.items():
            rest.streams[key] = data + rest.streams.get(key, b"")
        rest.log = first.log + rest.log
        return rest
    return agent.play()


def warm(python, argv, number=0, modules=MODULES, prepare=None, **launch):
    ready = agent.warm(python, modules, launch.get("ranks", 1), **(prepare or {}))
    return play(argv, number, **launch) if ready[0] else ready[1]


def how(result):
    """What -v is told about prepared interpreters."""
    return b"; ".join(line for line in result.log if b"prepared" in line)


def differs(a, b):
    """Of two states what is not the same."""
    try:
        a, b = json.loads(a.out()), json.loads(b.out())
    except ValueError:
        return None
    return [(key, a.get(key), b[key]) for key in b if a.get(key) != b[key]]


def seen(result):
    return result.out(), result.err(), result.status


for python in os.environ.get("PYTHONS", "python3").split():
    for unset in [], ["PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"]:
        options = {"cwd": here, "unset": unset, "env": [b"MINE=a\nb=c\xff"]}
        for name, (text, arguments, number) in SCRIPTS.items():
            with open("script.py", "w", encoding="utf-8", newline="") as f:
                f.write(text)
            for script in ("script.py", "./script.py", here + "/script.py") if name in ("state", "exception") else ("script.py",):
                argv = [python, script] + arguments
                cold = play(argv, number, **options)
                got = warm(python, argv, number, prepare={"unset": unset, "cwd": "/"}, **options)
                tap.ok("%s: %s as %s%s" % (python, name, script.replace(here, ""), ", buffered" if unset else ""),
                       seen(got) == seen(cold) and how(got) == b"1 of 1 ranks run in prepared interpreters",
                       differs(got, cold) if name == "state" else ("prepared", how(got), seen(got), "new", seen(cold)))
PYTHON = "python3"

# --- ranks
with open("script.py", "w", encoding="utf-8") as f:
    f.write("import os, random, sys\nprint(os.environ['RANK'], random.random(), os.environ['OMP_NUM_THREADS'])\n")
agent.warm(PYTHON, MODULES, 4)
result = play([PYTHON, "script.py"], ranks=4, cwd=here)
lines = [result.out(rank).split() for rank in range(4)]
tap.equal("each rank has its number", [line[0] for line in lines], [b"0", b"1", b"2", b"3"])
tap.ok("random numbers differ", len({line[1] for line in lines}) == 4, lines)
tap.equal("all ranks are told", how(result), b"4 of 4 ranks run in prepared interpreters")
agent.warm(PYTHON, MODULES, 4)
result = play([PYTHON, "script.py"], ranks=2, cwd=here, env=["OMP_NUM_THREADS=%d" % max(os.cpu_count() // 4, 1)])
tap.equal("fewer ranks than slots", (how(result), result.status), (b"2 of 2 ranks run in prepared interpreters", {0: 0, 1: 0}))
result = play([PYTHON, "script.py"], cwd=here)
tap.equal("a preparation is for one attempt, and the next one says so", (how(result), result.status),
          (b"ranks start in new interpreters: the prepared ones served the first attempt", {0: 0}))
hashes = set()
for _ in range(3):
    with open("script.py", "w", encoding="utf-8") as f:
        f.write("print(hash('x'))\n")
    hashes.add(warm(PYTHON, [PYTHON, "script.py"], cwd=here).out())
tap.ok("hash seeds differ from run to run", len(hashes) == 3, hashes)

# --- what is started in the usual way
with open("script.py", "w", encoding="utf-8") as f:
    f.write("import os, sys\nprint(sys.argv, os.environ.get('LC_TIME'))\n")
shutil.copy("script.py", "script")
os.mkdir("modules")
with open("modules/own.py", "w", encoding="utf-8") as f:
    f.write("VALUE = 1\n")


def is_cold(name, reason, argv, want, **options):
    got = warm(PYTHON, argv, **options)
    tap.ok(name, not isinstance(got, str) and reason in how(got) and got.out() == want and not got.err() and got.status == {0: 0},
           got if isinstance(got, str) else (how(got), seen(got), got.refused))


usual = b"['script.py'] None\n"
is_cold("-c", b"the first argument is no script", [PYTHON, "-c", "print(1)"], b"1\n", cwd=here)
is_cold("-m", b"the first argument is no script", [PYTHON, "-m", "script"], ("['%s/script.py'] None\n" % here).encode(), cwd=here)
is_cold("an option of Python", b"the first argument is no script", [PYTHON, "-O", "script.py"], usual, cwd=here)
is_cold("another program", b"the rank runs another program", ["echo", "script.py"], b"script.py\n", cwd=here)
is_cold("another word for the interpreter", b"the rank runs another program", ["/usr/bin/python3", "script.py"], usual, cwd=here)
is_cold("a variable that is read by the C library", b"LC_TIME differs", [PYTHON, "script.py"], b"['script.py'] C\n", cwd=here, env=["LC_TIME=C"])
is_cold("PYTHONPATH", b"PYTHONPATH differs", [PYTHON, "script.py"], usual, cwd=here, env=["PYTHONPATH=/x"])
is_cold("threads of OpenMP", b"OMP_NUM_THREADS differs", [PYTHON, "script.py"], usual, cwd=here, env=["OMP_NUM_THREADS=77"])
is_cold("PATH", b"PATH differs", [PYTHON, "script.py"], usual, cwd=here, env=["PATH=/usr/bin:/bin"])
is_cold("a relative folder of modules", b"PYTHONPATH has relative folders", [PYTHON, "script.py"], usual, cwd=here, env=["PYTHONPATH=modules"],
        prepare={"env": ["PYTHONPATH=modules"], "cwd": "/"})
is_cold("a name that is none of a Python source", b"script is no Python source", [PYTHON, "script"], b"['script'] None\n", cwd=here)
with open("watch.py", "w", encoding="utf-8") as f:
    f.write("import os\nos.environ.get('WATCHED')\nos.environ['SET_BY_MODULE'] = '1'\n")
prepare = {"env": ["PYTHONPATH=%s:%s/modules" % (here, here)]}
options = {"cwd": "/", "modules": ["own", "watch"], "prepare": prepare}
is_cold("a variable that a module has read", b"WATCHED differs", [PYTHON, here + "/script.py"], ("['%s/script.py'] None\n" % here).encode(),
        env=prepare["env"] + ["WATCHED=1"], **options)
with open("module.py", "w", encoding="utf-8") as f:
    f.write("import own, os, sys\nprint(own.VALUE, os.environ.get('SET_BY_MODULE'), 'json' in sys.modules)\n")
got = warm(PYTHON, [PYTHON, here + "/module.py"], env=prepare["env"], **options)
tap.equal("a module of one's own", (how(got), got.out()), (b"1 of 1 ranks run in prepared interpreters", b"1 1 False\n"))
agent.warm(PYTHON, ["own"], **prepare)
time.sleep(0.02)
with open("modules/own.py", "w", encoding="utf-8") as f:
    f.write("VALUE = 22\n")
got = play([PYTHON, here + "/module.py"], cwd="/", env=prepare["env"])
tap.ok("a module that has changed", b"modules/own.py has changed" in how(got) and got.out() == b"22 None False\n", how(got), seen(got))
shutil.copy("sibling.py", "json.py")
is_cold("a module beside the script", b"json.py would be imported in the place of a module", [PYTHON, "script.py"], usual, cwd=here)
os.unlink("json.py")
agent.warm(PYTHON, MODULES)
result = play([PYTHON, "nowhere.py"], cwd=here)
tap.ok("a script that is missing", b"nowhere.py cannot be read" in how(result) and b"can't open file" in result.err() and result.status == {0: 512},
       how(result), seen(result))
agent.warm(PYTHON, MODULES)
result = play([PYTHON, "script.py"], cwd="/nowhere")
tap.ok("a folder that is missing is refused as ever", result.refused and result.refused[0][1] == CWD and b"/nowhere" in result.refused[0][3], result.refused)

# --- what cannot be prepared
tap.equal("a module that is missing", agent.warm(PYTHON, ["json", "no_such"]), (0, "cannot import no_such: ModuleNotFoundError: No module named 'no_such'"))
tap.equal("a program that is missing", agent.warm("no-such-python", MODULES), (0, "cannot find 'no-such-python' in PATH"))
tap.equal("a program that is no Python", agent.warm("true", MODULES), (0, "a prepared process has ended"))
with open("threads.py", "w", encoding="utf-8") as f:
    f.write("import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n")
tap.equal("a module with a thread", agent.warm(PYTHON, ["threads"], env=["PYTHONPATH=" + here]),
          (0, "the modules start threads, which ranks would not have"))
with open("ranked.py", "w", encoding="utf-8") as f:
    f.write("import os\nos.environ.get('LOCAL_RANK')\n")
tap.equal("a module that reads a variable of each rank", agent.warm(PYTHON, ["ranked"], env=["PYTHONPATH=" + here]),
          (0, "a module reads LOCAL_RANK, which a rank has of its own, while it is imported"))
os.mkdir("shims")
real = os.path.realpath(shutil.which(PYTHON))
with open("shims/" + PYTHON, "w", encoding="utf-8") as f:
    f.write("#!/bin/sh\nPATH=%s:$PATH exec %s \"$@\"\n" % (os.path.dirname(real), real))
os.chmod("shims/" + PYTHON, 0o755)
tap.equal("a script that starts a Python", agent.warm(PYTHON, MODULES, env=["PATH=%s/shims:/usr/bin:/bin" % here]),
          (0, "%s is a program that starts %s: name the latter in --warm" % (PYTHON, real)))
with open("loud.py", "w", encoding="utf-8") as f:
    f.write("import sys\nprint('from a module')\nprint('error of a module', file=sys.stderr)\n")
got = warm(PYTHON, [PYTHON, "script.py"], modules=["loud"], prepare={"env": ["PYTHONPATH=" + here]}, cwd=here, env=["PYTHONPATH=" + here])
tap.equal("what a module writes is written by the rank", (got.out(), got.err()), (b"from a module\n" + usual, b"error of a module\n"))

# --- ends
agent.warm(PYTHON, MODULES, 3)
result = play(["true"], cwd=here)
tap.equal("a run of another program ends at once", (result.status, result.order[-1]), ({0: 0}, "GONE"))
with open("slow.py", "w", encoding="utf-8") as f:
    f.write("import time\ntime.sleep(60)\n")
for argv, reason in (["true"], b"the rank runs another program"), ([PYTHON, "script.py"], b"the modules are still being imported"):
    agent.begin_warm(PYTHON, ["slow"], env=["PYTHONPATH=" + here])
    result = play(argv, cwd=here, env=["PYTHONPATH=" + here])
    tap.ok("%s while the modules are imported" % argv[0], reason in b"; ".join(result.log) and result.status == {0: 0}, (result.log, result.status))
agent.warm(PYTHON, MODULES, 3)
result = agent.run(["sh", "-c", "pgrep -P $PPID -f hnlaunch-nothing; kill -9 $(pgrep -P $PPID python3)"])
result = play([PYTHON, "script.py"], cwd=here)
tap.equal("prepared interpreters that were killed", (result.out(), result.status), (usual, {0: 0}))
for name, word in ("was killed", "KILL"), ("is stopped", "STOP"):
    agent.warm(PYTHON, MODULES, 4)
    slot = subprocess.check_output(["pgrep", "-P", str(agent.hello["pid"]), "python3"]).split()[0].decode()
    subprocess.check_call(["kill", "-" + word, slot])
    while subprocess.run(["ps", "-o", "stat=", slot], stdout=subprocess.PIPE).stdout[:1] not in (b"", b"T", b"Z"):
        time.sleep(0.01)
    result = play([PYTHON, "script.py"], cwd=here, ranks=4)
    tap.equal("an interpreter that %s: its rank starts in the usual way" % name, (result.status, how(result).split(b"; ")[-2:]),
              ({0: 0, 1: 0, 2: 0, 3: 0}, [b"3 of 4 ranks run in prepared interpreters", b"not used: no prepared interpreter is left"]))
# Stops a process that has its rank already, where the script's folder is listed.
with open("stops.py", "w", encoding="utf-8") as f:
    f.write("import os, signal\nlist_folder = os.listdir\n\n\ndef listdir(path):\n    if os.path.exists(path + '/stop'):\n"
            "        os.kill(os.getpid(), signal.SIGSTOP)\n    return list_folder(path)\n\n\nos.listdir = listdir\n")
open("stop", "w").close()
result = warm(PYTHON, [PYTHON, "script.py"], cwd=here, modules=["stops"], prepare={"env": ["PYTHONPATH=" + here]}, env=["PYTHONPATH=" + here])
os.unlink("stop")
tap.equal("an interpreter that is stopped when it has its rank goes on",
          (result.out(), result.status, b"rank 0 was stopped before its program ran, and goes on" in result.log), (usual, {0: 0}, True))
agent.warm(PYTHON, MODULES, 3)
tap.equal("an agent that leaves takes them along", agent.leave(), 0)
tap.end()
PYTHON
