# SPDX-License-Identifier: Apache-2.0
"""Scripts whose run must look the same in a prepared interpreter and in a new one: SCRIPTS by name, as text, arguments, and a
signal that ends them."""
import signal

# Addresses, and what two processes never share, are left out.
STATE = r"""
import ctypes, gc, json, os, re, resource, signal, subprocess, sys, threading
SKIP = {"HN_STORE", "NCCL_RAS_ADDR", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID"}
def pairs(data):
    return sorted(p for p in os.fsdecode(data).split("\0") if p and p.partition("=")[0] not in SKIP)
main = {k: re.sub(" at 0x[0-9a-f]+", "", repr(v)) for k, v in list(vars().items()) if k not in ("pairs", "SKIP", "__warningregistry__")}
death = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(death))  # PR_GET_PDEATHSIG
mask = os.umask(0)
os.umask(mask)
state = {
    "argv": sys.argv, "orig_argv": getattr(sys, "orig_argv", None), "path": sys.path, "flags": str(sys.flags),
    "executable": [sys.executable, sys.prefix, sys.base_prefix], "options": [sys.warnoptions, sys._xoptions, sys.dont_write_bytecode],
    "main": main, "environ": pairs("\0".join("%s=%s" % p for p in os.environ.items()).encode(errors="surrogateescape")),
    "environ of C": pairs(subprocess.check_output(["env", "-0"])),
    "cwd": os.getcwd(), "umask": mask,
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
    "handlers": {int(s): str(signal.getsignal(s)) for s in signal.valid_signals()},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "status": [l for l in open("/proc/self/status") if l.split(":")[0] in ("SigBlk", "SigIgn", "SigCgt", "Threads", "Name", "Umask", "Cpus_allowed")],
    "descriptors": {f: os.readlink("/proc/self/fd/" + f).split("[")[0] for f in os.listdir("/proc/self/fd") if os.path.islink("/proc/self/fd/" + f)},
    "streams": [(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, type(s.buffer).__name__, repr(s)) for s in (sys.stdin, sys.stdout, sys.stderr)],
    "own streams": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "threads": [threading.active_count(), threading.current_thread() is threading.main_thread()],
    "session": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
    "death signal": death.value, "gc": [gc.get_threshold(), gc.isenabled()],
    "recursion": sys.getrecursionlimit(),
}
if os.path.exists("/proc/sys/kernel/ns_last_pid"):  # CONFIG_CHECKPOINT_RESTORE
    state["cmdline"], state["environ of /proc"] = open("/proc/self/cmdline").read(), pairs(open("/proc/self/environ", "rb").read())
json.dump(state, sys.stdout, indent=1, sort_keys=True, default=str)
"""

SLEEP = "import os, time\nos.write(1, b'r\\n')\ntime.sleep(60)\n"
SCRIPTS = {
    "state": (STATE, ["a"], 0),
    "hello": ("print('hello')\n", ["a", "b c", "", "\udcff"], 0),
    "exit 3": ("import sys; print('x'); sys.exit(3)\n", [], 0),
    "exit with a text": ("import sys; sys.exit('bye')\n", [], 0),
    "exit without a value": ("import sys; sys.exit()\n", [], 0),
    "exit 300": ("import sys; sys.exit(300)\n", [], 0),
    "os._exit": ("import os; print('x', flush=True); os._exit(4)\n", [], 0),
    "exception": ("def f():\n    raise ValueError('\u00e9')\nprint('before')\nf()\n", [], 0),
    "chained exceptions": ("try:\n    1 / 0\nexcept Exception as e:\n    raise RuntimeError('b') from e\n", [], 0),
    "syntax error": ("print(1)\ndef f(:\n", [], 0),
    "excepthook": ("import sys\nsys.excepthook = lambda *a: print('hook', a[0])\n1 / 0\n", [], 0),
    "stdin": ("import sys\nprint(repr(sys.stdin.read()), sys.stdin.isatty())\n", [], 0),
    "KeyboardInterrupt": ("raise KeyboardInterrupt\n", [], 0),
    "SIGINT": (SLEEP, [], signal.SIGINT),
    "SIGTERM": (SLEEP, [], signal.SIGTERM),
    "atexit": ("import atexit, sys\natexit.register(lambda: print('at exit'))\nprint('main')\nsys.exit(5)\n", [], 0),
    "thread": ("import threading, time\ndef f():\n    time.sleep(.1)\n    print('t')\nthreading.Thread(target=f).start()\nprint('m')\n", [], 0),
    "exception in a thread": ("import threading\ndef f():\n    1 / 0\nt = threading.Thread(target=f)\nt.start()\nt.join()\nprint('ok')\n", [], 0),
    "class in pickle": ("import pickle\nclass A:\n    pass\nprint(pickle.loads(pickle.dumps(A())).__class__)\n", [], 0),
    "__main__": ("import __main__\nprint(__name__, __main__.__file__, __file__, __loader__.path, __loader__.name, __spec__)\n", [], 0),
    "module beside it": ("import sibling\nprint(sibling.__file__)\n", [], 0),
    "spawned processes": ("import multiprocessing as m\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p:\n        print(p.map(f, [1, 2, 3]))\n", [], 0),
    "forked processes": ("import multiprocessing as m\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p:\n        print(p.map(f, [1, 2, 3]))\n", [], 0),
    "warnings": ("import warnings\nwarnings.warn('w')\ndef f():\n    warnings.warn('x', stacklevel=2)\nf()\n", [], 0),
    "subprocess": ("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout)\n", [], 0),
    "no last newline": ("import os, sys\nos.write(2, b'raw\\n')\nsys.stderr.write('no newline')\nprint('o', end='')\n", [], 0),
    "__future__": ("from __future__ import annotations\nx: int = 3\nprint(__annotations__)\n", [], 0),
    "closed output": ("import os\nos.close(1)\nprint('x')\n", [], 0),
    "destructor": ("class A:\n    def __del__(self):\n        print('del')\na = A()\nprint('end')\n", [], 0),
    "handler": ("import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('usr1'))\nos.kill(os.getpid(), signal.SIGUSR1)\nprint('x')\n", [], 0),
    "asyncio": ("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    print('as')\nasyncio.run(f())\n", [], 0),
    "carriage returns": ("print('a')\r\nprint('b')\r\n", [], 0),
    "seeded random": ("import random\nrandom.seed(1)\nprint(random.random())\n", [], 0),
}
