# SPDX-License-Identifier: Apache-2.0
"""training.py STEPS: a training that saves when a host is drained, for drained-hosts-lose-no-step.sh.

Each step is a line in the file steps, and all ranks agree in each step whether they save. SAVES chooses how the ranks
learn of it, and how they answer: store (hn_draining() and exit), call (hn_draining() and hn_drained()), or signal (USR1 to
ranks of the host, and exit).
"""

import os
import signal
import sys
import time

import hnlaunch

told = False


def on_signal(*_: object) -> None:
    """Follows --drain-signal."""
    global told
    told = True


def main() -> int:
    """Goes on behind the saved step. With HANGS it goes on when it is told to save."""
    signal.signal(signal.SIGUSR1, on_signal)
    hnlaunch.init()
    rank, attempt, host = hnlaunch.rank(), hnlaunch.restart_count(), os.uname().nodename
    step = int(open("saved", encoding="utf-8").read()) if os.path.exists("saved") else 0
    print(f"rank {rank} on {host} attempt {attempt} begins behind step {step}", flush=True)
    while step < int(sys.argv[1]):
        step += 1
        hnlaunch.barrier()
        if rank == 0:
            with open("steps", "a", encoding="utf-8") as steps:
                print(step, file=steps)
        mine = told if os.environ.get("SAVES") == "signal" else rank == 0 and hnlaunch.draining()
        if any(flag == b"1" for flag in hnlaunch.all_gather(b"1" if mine else b"0")) and "HANGS" not in os.environ:
            hnlaunch.barrier()
            if rank == 0:
                with open("saved", "w", encoding="utf-8") as saved:
                    saved.write(str(step))
            print(f"rank {rank} saved step {step}", flush=True)
            hnlaunch.barrier()
            if os.environ.get("SAVES") != "call":
                return 0
            keys = [f"{before}hn/drain{behind}" for before in ("", "/") for behind in ("", "/node002")]
            print(f"rank {rank} sees", *(hnlaunch.store.get(key).decode() for key in keys), flush=True)
            hnlaunch.drained()
            time.sleep(1000)
        time.sleep(0.05)
    return 0


sys.exit(main())
