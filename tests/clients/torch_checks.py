# SPDX-License-Identifier: Apache-2.0
"""What the PyTorch test programs share: counted checks, and the store that env:// means.

They are ordinary programs for torch.distributed: any launcher that sets RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT may start them (torchrun as well).
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])

RANK = int(os.environ["RANK"])
WORLD_SIZE = int(os.environ["WORLD_SIZE"])

torch.set_num_threads(1)

passed = 0
unsupported = []


def seconds(n):
    return datetime.timedelta(seconds=n)


def equal(what, got, want):
    """Ends the process with a line on stderr unless both are the same."""
    global passed
    if isinstance(want, torch.Tensor):
        same = isinstance(got, torch.Tensor) and got.shape == want.shape and torch.equal(got, want)
    else:
        same = got == want
    if not same:
        sys.stderr.write("rank %d: %s: got %.300r, want %.300r\n" % (RANK, what, got, want))
        sys.stderr.flush()
        os._exit(3)
    passed += 1


def true(what, condition):
    equal(what, bool(condition), True)


def raises(what, call, *texts):
    """The call fails with an exception that has one of the texts in its words; returns the words."""
    try:
        call()
    except (RuntimeError, ValueError, TimeoutError) as e:
        words = str(e)
        true("%s: in %r" % (what, words[:300]), not texts or any(text in words for text in texts))
        return words
    true(what + ": an exception", False)


def may_be_unsupported(name, call):
    """Runs a part that some versions refuse in so many words."""
    try:
        call()
    except (NotImplementedError, RuntimeError) as e:
        words = str(e).lower()
        if not any(text in words for text in ("not support", "no support", "unsupported", "not implement")):
            raise
        unsupported.append(name)


def served():
    """Whether the launcher has a store; otherwise rank 0's process is the server."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def connect(timeout=60):
    """The store that init_process_group would use."""
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), WORLD_SIZE,
                         not served() and RANK == 0, timeout=seconds(timeout))


def meet(store, name):
    """A barrier by hand; its two keys are there as soon as anybody has come."""
    if store.add(name, 1) == WORLD_SIZE:
        store.set(name + "/open", "yes")
    store.wait([name + "/open"])


def part(store):
    """The end of a program; where rank 0's process is the server, it goes last."""
    meet(store, "the end")
    if not served():
        store.add("left", 1)
        while RANK == 0 and store.add("left", 0) < WORLD_SIZE:
            time.sleep(0.02)


def done(title, say=""):
    """One line of rank 0 on stdout."""
    if RANK == 0:
        text = "%s: ok on %d ranks, %d checks" % (title, WORLD_SIZE, passed)
        if unsupported:
            text += ", unsupported: " + " ".join(unsupported)
        print(text + (", " + say if say else ""), flush=True)
