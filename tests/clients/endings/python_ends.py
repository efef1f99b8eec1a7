# SPDX-License-Identifier: Apache-2.0
"""Rank 1 fails in the way that is named; the others wait.

usage: python_ends.py HOW
"""
import atexit
import ctypes
import faulthandler
import gc
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import traceback
import warnings

LABEL = "sample 17 has no label"


def fail(text=LABEL):
    raise ValueError(text)


def deep(n):
    # Two functions, so that Python does not fold the frames.
    if n:
        deeper(n - 1)
    fail()


def deeper(n):
    deep(n)


def plain():
    fail()


def two_lines():
    fail(LABEL + "\nin shard 12\nof 40")


def note():
    error = ValueError(LABEL)
    error.add_note("while reading shard 12")
    raise error


def empty():
    assert False


def of_a_module():
    subprocess.run(["/nonexistent/label"], check=True)


def while_handling():
    try:
        raise KeyError("label")
    except KeyError:
        fail()


def caused():
    try:
        raise KeyError("label")
    except KeyError as error:
        raise ValueError(LABEL) from error


def cleanup_fails():
    try:
        fail()
    finally:
        raise RuntimeError("Connection closed by peer [192.0.2.7]:4711")


def group():
    errors = []
    for call in (fail, empty):
        try:
            call()
        except Exception as error:
            errors.append(error)
    raise ExceptionGroup("many", [ExceptionGroup("nested", errors), KeyError("b")])


def syntax():
    with open("broken.py", "w") as f:
        f.write("def (:\n")
    exec(compile(open("broken.py").read(), "broken.py", "exec"))


def deep_stack():
    deep(200)


def in_pool():
    with multiprocessing.Pool(1) as pool:
        pool.map(fail, [LABEL])


def child_failed():
    subprocess.run([sys.executable, __file__, "plain"], check=True)


def thread_too():
    def late():
        raise RuntimeError("the queue is closed")

    def start():
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()

    atexit.register(start)
    start()
    fail()


def ignored():
    class Loader:
        def __del__(self):
            raise RuntimeError("the queue is closed")

    loader = Loader()
    atexit.register(lambda: 1 / 0)
    try:
        fail()
    finally:
        del loader
        gc.collect()


def noise():
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(message)s")
    atexit.register(logging.info, "closing the run")
    atexit.register(warnings.warn, "1 leaked object")
    atexit.register(lambda: print("wandb: Synced 5 files", file=sys.stderr))
    fail()


def upload():
    atexit.register(lambda: print("upload done", file=sys.stderr))
    fail()


def code_42():
    try:
        fail()
    except ValueError:
        traceback.print_exc()
        print("wandb: Synced 5 files", file=sys.stderr)
        sys.exit(42)


def survived():
    try:
        raise OSError("read again")
    except OSError:
        traceback.print_exc()
    print("epoch 2", file=sys.stderr)
    print(LABEL, file=sys.stderr)
    sys.exit(3)


def with_rank():
    # As PyTorch prints it.
    def hook(kind, error, trace):
        for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
            print("[rank1]: " + line, file=sys.stderr)

    sys.excepthook = hook
    fail()


def fatal():
    faulthandler.enable()
    ctypes.string_at(0)


if os.environ["RANK"] != "1":
    time.sleep(60)
globals()[sys.argv[1]]()
