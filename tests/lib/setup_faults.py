# SPDX-License-Identifier: Apache-2.0
"""
A rank dies, or hangs, in a call of CUDA while NCCL sets a communicator up; for every-call-of-setup-can-fail.sh.

usage: setup_faults.py PROGRAM all|N|REGEX      PROGRAM: tests/gpu/setup_faults.c on simulated GPUs

One launch writes down the calls that rank 1 of 3 makes until there is a communicator. A try is the first, middle or
last call of a function, and what happens in it: "cudaMalloc/2 die". The others ignore SIGTERM: what they say, they say
because of what they heard. After a death the others hear that it was rank 1. After a hang they have an answer within
their time limit: an error, or the communicator where NCCL has already told rank 1, too, that it is there. Prints "ok ..." and "not ok ..." lines, and with `all` or REGEX a table. Environment: HNLAUNCH, JOBS,
SEED, WORK (an empty folder).
"""

import collections
import concurrent.futures
import os
import random
import re
import signal
import subprocess
import sys

from waiting import slowness

RANKS, VICTIM = 3, 1
HANG_MS = 1500   # the time limit of a join when a rank hangs; more where it does not come so far
UNDO_MS = 3000   # beyond that: an abort takes a second, and the launcher's news another
DEATH_MS = 12000  # NCCL 2.22 would go on for 20 s
HARNESS_S = 120

Try = collections.namedtuple("Try", "function call place calls fault")
Said = collections.namedtuple("Said", "status what ms text")
LINE = re.compile(r"^rank (\d+): (HN_\w+), (a communicator|nothing), (\d+) ms: (.*)$", re.M)


def name_of(t):
    return "%s/%d %s" % (t.function, t.call, t.fault)


def launch(program, limit_ms, fault):
    """Runs the ranks. Returns the exit code of hnlaunch, what each rank said, in order, and both outputs."""
    command = [os.environ["HNLAUNCH"], "--local", str(RANKS), "--oversubscribe", "--label", "none",
               "--grace", "60s", "sh", "-c", "[ $HN_RANK = %d ] || trap '' TERM; exec \"$@\"" % VICTIM, "sh",
               program, "join", str(limit_ms), str(VICTIM), fault]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=HARNESS_S * slowness())
    said = collections.defaultdict(list)
    for rank, status, what, ms, text in LINE.findall(done.stdout):
        said[int(rank)].append(Said(status, what, int(ms), text))
    return done.returncode, said, done.stdout + done.stderr


def calls_of_setup(program):
    """How often rank 1 calls each function until it has a communicator, in the order of the first calls."""
    path = os.path.join(os.environ["WORK"], "calls")
    code, _, output = launch(program, 60000, "log:" + path)
    if code:
        sys.exit("not ok the calls of a good setup could not be written down: %s" % output)
    counts = collections.OrderedDict()
    with open(path, encoding="utf-8") as log:
        for line in log:
            if line == "joined\n":
                break
            function = line.split()[1]
            counts[function] = counts.get(function, 0) + 1
    return counts


def tries_of(counts):
    tries = []
    for function, calls in counts.items():
        places = {}
        for place, call in (("first", 1), ("middle", (calls + 1) // 2), ("last", calls)):
            places.setdefault(call, place)
        for call, place in places.items():
            tries += [Try(function, call, place, calls, fault) for fault in ("die", "hang")]
    return tries


def last_words(said, rank):
    return said[rank][-1] if said[rank] else None


def reaches(t, output):
    return t.fault == "die" or "fakegpu: hangs in " + t.function in output


def judge_late(t, code, said):
    """A function's last call may be so late that NCCL tells all ranks before it that the communicator is there."""
    if t.fault == "die":
        return None if code == 128 + signal.SIGKILL else "exit code %d" % code
    if code == 128 + signal.SIGALRM:  # NCCL joins the thread that hangs
        return None
    return None if said[VICTIM] and said[VICTIM][0].status == "HN_OK" else "only rank 1 has no communicator"


def judge(t, limit_ms, result, slow):
    """Returns what is wrong (None: nothing) and the longest time until another rank had its answer."""
    code, said, output = result
    others = [last_words(said, r) for r in range(RANKS) if r != VICTIM]
    if None in others:
        return "a rank said nothing", 0
    ms = max(o.ms for o in others)
    if t.call == t.calls and all(o.status == "HN_OK" for o in others):
        return judge_late(t, code, said), ms
    if t.fault == "die":
        if code != 128 + signal.SIGKILL:
            return "exit code %d" % code, ms
        if not all(o.status == "HN_ERR_PEER" and o.what == "nothing" and "rank 1 " in o.text for o in others):
            return "the others do not name rank 1", ms
        return ("late", ms) if ms > DEATH_MS * slow else (None, ms)
    if not reaches(t, output):
        return "the call was not reached", ms
    if code != 3:
        return "exit code %d" % code, ms
    if not all(o.status in ("HN_ERR_TIMEOUT", "HN_ERR_PEER") and o.what == "nothing" for o in others):
        return "the others have no error", ms
    return ("late", ms) if ms > limit_ms + UNDO_MS * slow else (None, ms)


def attempt(program, t):
    """Returns what is wrong, the milliseconds of judge(), and the output."""
    fault = "%s:%s:%d" % (t.fault, t.function, t.call)
    limit_ms, slow = (HANG_MS if t.fault == "hang" else 60000), slowness()
    try:
        result = launch(program, limit_ms, fault)
        while not reaches(t, result[2]) and limit_ms < 60000:
            limit_ms *= 2
            result = launch(program, limit_ms, fault)
    except subprocess.TimeoutExpired as late:
        return "no end within %d s" % late.timeout, 0, ""
    wrong, ms = judge(t, limit_ms, result, max(slow, slowness()))
    return wrong, ms, result[2]


def print_table(tries, results):
    """A row for each function: milliseconds until the others had an answer, or what went wrong."""
    rows = collections.OrderedDict()
    for t in tries:
        wrong, ms, _ = results[t]
        rows.setdefault((t.function, t.calls), {})[t.fault, t.place] = wrong or str(ms)
    columns = [(fault, place) for fault in ("die", "hang") for place in ("first", "middle", "last")]
    print("# %-36s %5s" % ("function", "calls") + "".join("%13s" % " ".join(c) for c in columns))
    for (function, calls), cells in rows.items():
        print("# %-36s %5d" % (function, calls) + "".join("%13s" % cells.get(c, "") for c in columns))


def main(program, wanted):
    tries = table = tries_of(calls_of_setup(program))
    if wanted.isdigit():
        tries = random.Random(os.environ.get("SEED") or "1").sample(table, min(int(wanted), len(table)))
    elif wanted != "all":
        tries = [t for t in table if re.search(wanted, name_of(t))]
    print("# %d of %d tries, SEED=%s" % (len(tries), len(table), os.environ.get("SEED") or "1"), flush=True)
    results = {}
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or "4")) as pool:
        running = {pool.submit(attempt, program, t): t for t in tries}
        for future in concurrent.futures.as_completed(running):
            t = running[future]
            wrong, ms, output = results[t] = future.result()
            print("%s %s: %s" % ("not ok" if wrong else "ok", name_of(t), wrong or "%d ms" % ms), flush=True)
            for line in output.splitlines() if wrong else ():
                print("#   " + line[:300], flush=True)
    if not wanted.isdigit():
        print_table(tries, results)


main(*sys.argv[1:])
