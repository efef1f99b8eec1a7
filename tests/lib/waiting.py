# SPDX-License-Identifier: Apache-2.0
"""Waiting for a state instead of sleeping; the twin of wait.sh. Limits are for a quiet machine and grow with the load."""

import os
import sys
import time


def slowness():
    """How many times as long as on a quiet machine a program may take now."""
    with open(os.environ.get("LOADAVG", "/proc/loadavg"), encoding="ascii") as f:
        words = f.read().split()
    load = max(float(words[0]), float(words[3].split("/")[0]))
    return max(1, -int(-load // os.cpu_count()))


def scaled(seconds):
    """@seconds of a quiet machine, for the load of now."""
    return seconds * slowness()


def wait_for(condition, seconds=60):
    """Polls @condition until it holds; False when it did not in time. An OSError is one that does not hold yet."""
    begin, limit, last = time.monotonic(), seconds, None
    while True:
        try:
            last = condition()
        except OSError as error:
            last = error
        else:
            if last:
                return True
        took = time.monotonic() - begin
        if took >= limit:
            limit = scaled(seconds)
            if took >= limit:
                print("# waited %.0f s (%g s on a quiet machine) in vain; last: %.200r" % (took, seconds, last),
                      file=sys.stderr, flush=True)
                return False
        time.sleep(0.02)
