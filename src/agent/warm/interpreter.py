# SPDX-License-Identifier: Apache-2.0
#
# Imports modules, and waits in one process per slot until the agent hands over a rank (see warm.h).
# argv: the descriptor of this text, the descriptors of the sockets of the slots, the modules, the program's word and its PATH.
# Messages to the agent: "E REASON" (no slot will be ready); "R PID VERSION-OF-TORCH", then "W" (the script runs) or "C REASON" (a new interpreter runs).
import sys
base = frozenset(sys.modules)
import _signal, _socket, ctypes, gc, os

libc, api = ctypes.CDLL(None), ctypes.pythonapi
LOADED = (b"PYTHON", b"LD_", b"OMP_", b"GOMP_", b"KMP_", b"MKL_", b"OPENBLAS_", b"MALLOC_", b"LC_")
NAMED = (b"LANG", b"LANGUAGE", b"TZ", b"HOME")
OF_RANK = (b"RANK", b"LOCAL_RANK", b"WORLD_SIZE", b"MASTER_PORT")


class Watched(dict):
    """The environment, which notes the names that modules read."""
    def __getitem__(self, name):
        read.add(name)
        return dict.__getitem__(self, name)

    def __contains__(self, name):
        read.add(name)
        return dict.__contains__(self, name)


def stamp(path):
    try:
        s = os.stat(path)
        return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns
    except OSError:
        return None


def find_program(env):
    for folder in [b""] if b"/" in word else env.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin").split(b":"):
        path = os.path.join(folder, word)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path), stamp(path)
    return None


def find_torch():
    """Returns the version of PyTorch as 206 for 2.6, 0 = not installed."""
    for folder in sys.path:
        try:
            with open(folder + "/torch/version.py") as f:
                major, minor = f.read(1024).split("__version__ = '")[1].split(".")[:2]
                return int(major) * 100 + int(minor)
        except (OSError, ValueError, IndexError):
            pass
    return 0


def list_files():
    """Returns files and folders with their stamps: after a change the imported modules are old. Installing a package changes its folder."""
    found = {sys.prefix + "/pyvenv.cfg"}
    own = os.path.dirname(os.__file__) + "/"
    for module in list(sys.modules.values()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(path, str) and not path.startswith(own) and "/site-packages/" not in path and "/dist-packages/" not in path:
            found.add(path)
    found.update(p for p in sys.path if p.endswith(("/site-packages", "/dist-packages")))
    return {path: stamp(path) for path in found}


def count_threads():
    return len(os.listdir("/proc/self/task"))


def fork_or_end():
    try:
        return os.fork()
    except OSError as e:
        refuse("cannot start a process: %s" % e.strerror)


def refuse(why):
    os.write(sockets[0], b"E " + os.fsencode(why)[:1000])
    os._exit(1)


def import_modules():
    for name in modules:
        try:
            __import__(name)
        except BaseException as e:
            refuse("cannot import %s: %s%s" % (name, type(e).__name__, ": %s" % e if str(e) else ""))
    sys.stdout.flush()
    sys.stderr.flush()
    if "mpi4py.MPI" in sys.modules:
        refuse("mpi4py.MPI begins MPI while it is imported")
    for fd in os.listdir("/proc/self/fd"):
        try:
            device = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if device.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri")):
            refuse("a module has opened %s while it was imported" % device)
    # Some pools of threads (OpenBLAS) end before a fork, and begin anew at the next use: only a fork shows which threads stay.
    if count_threads() > 1:
        pid = fork_or_end()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        if count_threads() > 1:
            refuse("the modules start threads, which ranks would not have")


# --- a slot -------------------------------------------------------------------------------------

def wait_for_rank(fd):
    """Returns texts and descriptors of the rank, and the socket."""
    for other in sockets:
        if other != fd:
            os.close(other)
    while os.getppid() != agent:
        if os.getppid() not in (agent, starter):
            os._exit(0)
        libc.usleep(1000)
    libc.prctl(1, 9)  # PR_SET_PDEATHSIG
    os.setsid()
    s = _socket.socket(fileno=fd)
    s.send(b"R %d %d" % (os.getpid(), torch))
    data, control, _, _ = s.recvmsg(1, _socket.CMSG_SPACE(24), _socket.MSG_CMSG_CLOEXEC)
    if not data:
        os._exit(0)
    raw = control[0][2]
    fds = [int.from_bytes(raw[i:i + 4], sys.byteorder) for i in range(0, len(raw) // 4 * 4, 4)]
    size = os.fstat(fds[0]).st_size
    texts = os.pread(fds[0], size, 0).split(b"\0")[:-1]
    os.close(fds.pop(0))
    return texts, fds, s


def place(fds, s, target):
    """Moves the rank's descriptors to 0 to 2, and a further descriptor to @target. Returns the report's descriptor and the socket."""
    report = fds[3]
    for i in range(3):
        os.dup2(fds[i], i)
        os.close(fds[i])
    if len(fds) > 4 and target:
        if report == target:
            report = os.dup(report)
        if s.fileno() == target:
            moved = _socket.socket(fileno=os.dup(target))
            s.close()
            s = moved
        os.dup2(fds[4], target)
        if fds[4] != target:
            os.close(fds[4])
    return report, s


def fail(report, step, error):
    os.write(report, step.to_bytes(4, sys.byteorder) + error.to_bytes(4, sys.byteorder))
    os._exit(127)


def prefer_memory(node):
    """Calls set_mempolicy(MPOL_PREFERRED): memory allocated from now on comes from @node if possible."""
    number = {"x86_64": 238, "aarch64": 237}.get(os.uname().machine)
    if number:
        nodes = (ctypes.c_uint64 * 16)()
        nodes[node // 64] = 1 << node % 64
        libc.syscall(ctypes.c_long(number), 1, nodes, ctypes.c_ulong(1025))


def find_obstacle(argv, env):
    """Returns why the rank cannot run here, None = the rank can."""
    if find_program(env) != program:
        return "%s is another program than before" % os.fsdecode(word)
    for name in sorted(read.union(before, env)):
        if (name in read or name in NAMED or name.startswith(LOADED)) and before.get(name) != env.get(name):
            return "%s differs" % os.fsdecode(name)
    if os.getcwdb() != folder and not all(p.startswith(b"/") for p in env.get(b"PYTHONPATH", b"/").split(b":")):
        return "PYTHONPATH has relative folders, and the working folder differs"
    for path, mark in files.items():
        if stamp(path) != mark:
            return "%s has changed" % path
    script = argv[1]
    try:
        fd = os.open(script, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return "%s cannot be read" % os.fsdecode(script)
    regular = os.path.isfile(script) and script.endswith(b".py") and b"\0" not in os.read(fd, 512)
    os.close(fd)
    if not regular:
        return "%s is no Python source" % os.fsdecode(script)
    return None if getattr(sys.flags, "safe_path", False) else find_shadow(os.fsdecode(script))


def find_shadow(script):
    """Finds a file beside the script that a cold start would import in the place of an imported module; returns the reason, or None."""
    folder = os.path.dirname(os.path.realpath(script))
    for entry in os.listdir(folder):
        name, dot, kind = entry.partition(".")
        module = sys.modules.get(name)
        if name in base or not module or name == "__main__":
            continue
        path = os.path.join(folder, entry)
        if dot and not kind.endswith(("py", "so", "pyc")) or not dot and not os.path.exists(path + "/__init__.py"):
            continue
        loaded = getattr(module, "__dict__", {}).get("__file__") or ""
        if loaded not in (path, path + "/__init__.py"):
            return "%s would be imported in the place of a module" % path
    return None


def start_cold(report, argv, env):
    for signo in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(signo, _signal.SIG_DFL)
    try:
        os.execve(program[0] if find_program(env) == program else (find_program(env) or (word,))[0], argv, env)
    except OSError as e:
        fail(report, 3, e.errno)


def set_environment(env):
    data = os.environ._data
    for name in changed:
        if changed[name] is None:
            env.pop(name, None)
        else:
            env[name] = changed[name]
    for name in list(data):
        if name not in env:
            os.unsetenv(name)
    for name in env:
        if data.get(name) != env[name]:
            os.putenv(name, env[name])
    data.clear()
    data.update(env)


def show_arguments(argv, env):
    """Lets /proc/PID/cmdline and environ show the rank's, if the kernel has CONFIG_CHECKPOINT_RESTORE."""
    texts = [b"".join(t + b"\0" for t in argv), b"".join(b"%s=%s\0" % pair for pair in env.items())]
    libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
    start = libc.malloc(ctypes.c_size_t(len(texts[0]) + len(texts[1])))
    if not start:
        return
    ctypes.memmove(start, texts[0] + texts[1], len(texts[0]) + len(texts[1]))
    with open("/proc/self/stat", "rb") as f:
        fields = [0, 0, 0] + f.read().rsplit(b")", 1)[1].split()
    middle, end = start + len(texts[0]), start + len(texts[0]) + len(texts[1])
    places = [int(fields[i]) for i in (26, 27, 45, 46, 47)] + [libc.sbrk(0), int(fields[28]), start, middle, middle, end, 0, 0xffffffff << 32]
    libc.prctl(35, 14, (ctypes.c_uint64 * 13)(*places), ctypes.c_ulong(104), 0)  # PR_SET_MM, PR_SET_MM_MAP


def open_streams():
    """Opens the streams as Python does at the start; the objects stay, since modules may hold references."""
    import _io
    unbuffered = sys.__stdout__.write_through
    for fd, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        stream = getattr(sys, "__%s__" % name)
        buffering = 0 if unbuffered and fd else -1
        buffer = _io.open(fd, mode + "b", buffering, None, None, None, False)
        raw = buffer.raw if buffering else buffer
        raw.name = "<%s>" % name
        lines = not unbuffered and (raw.isatty() or fd == 2 and sys.version_info >= (3, 9))
        stream.__init__(buffer, stream.encoding, stream.errors, "\n", bool(lines), bool(unbuffered))
        stream.mode = mode
        setattr(sys, name, stream)


def renew_chance():
    """Seeds random numbers anew, or all slots would draw the same. Python's random does so after a fork."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def open_script(path):
    """Returns a FILE of C, None = the script cannot be read."""
    libc.fopen.restype = ctypes.c_void_p
    return libc.fopen(path, b"rbe")


def run_script(argv, file):
    """Runs as `python SCRIPT ARG...`. Returns when the script has ended, or an exception has been printed."""
    texts = [os.fsdecode(a) for a in argv]
    sys.argv[:] = texts[1:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = texts
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.realpath(texts[1])))
    sys.path_importer_cache.clear()
    name = texts[1]
    if sys.version_info >= (3, 9) and not name.startswith("/"):
        name = os.path.join(os.getcwd(), name)
    name = os.fsencode(name)
    api.PyRun_SimpleFileExFlags.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    gc.unfreeze()
    if api.PyRun_SimpleFileExFlags(file, name, 1, None) == 0:
        return
    # After a KeyboardInterrupt without a handler the interpreter ends by SIGINT on its own.
    if getattr(sys, "last_type", None) is not KeyboardInterrupt:
        raise SystemExit(1)


def serve(fd):
    texts, fds, s = wait_for_rank(fd)
    cwd, terminal, target, node, n = texts[0], *[int(t) for t in texts[1:5]]
    argv, env = texts[5:5 + n], {}
    for pair in texts[5 + n:]:
        name, equals, value = pair.partition(b"=")
        if name and equals:
            env.setdefault(name, value)
    outputs = [os.pread(fd, size, 0) for fd, size in zip((1, 2), sizes)]
    report, s = place(fds, s, target)
    if terminal:
        libc.ioctl(0, ctypes.c_ulong(0x540e), 0)  # TIOCSCTTY
    if node >= 0:
        prefer_memory(node)
    if cwd:
        try:
            os.chdir(cwd)
        except OSError as e:
            fail(report, 2, e.errno)
    try:
        why = find_obstacle(argv, env)
    except OSError as e:
        why = str(e)
    file = None if why else open_script(argv[1])
    if not why and not file:
        why = "%s cannot be read" % os.fsdecode(argv[1])
    s.send(b"C " + os.fsencode(why)[:1000] if why else b"W")
    s.close()
    if why:
        start_cold(report, argv, env)
    set_environment(env)
    show_arguments(argv, env)
    open_streams()
    renew_chance()
    os.close(report)
    for fd in (1, 2):
        write_all(fd, outputs[fd - 1])
    run_script(argv, file)


# --- the preparation ----------------------------------------------------------------------------

sockets, modules, word = [int(n) for n in sys.argv[2].split(",")], sys.argv[3].split(","), os.fsencode(sys.argv[4])
starter, agent, folder = os.getpid(), os.getppid(), os.getcwdb()
read, before = set(), dict(os.environ._data)
program = find_program({b"PATH": os.fsencode(sys.argv[5])} if sys.argv[5] else {})
if sys.version_info < (3, 8):
    refuse("Python %d.%d is older than 3.8" % sys.version_info[:2])
if not program or not os.path.samefile(program[0], sys.executable):
    refuse("%s is a program that starts %s: name the latter in --warm" % (os.fsdecode(word), sys.executable))
# The output of the import goes to a file: each rank writes a copy of its own.
for fd in (1, 2):
    captured = os.memfd_create("output")
    os.dup2(captured, fd)
    os.close(captured)
sys.argv[:] = [""]
if sys.path and sys.path[0] == "":
    sys.path.pop(0)
os.environ._data = os.environb._data = Watched(os.environ._data)
import_modules()
for name in OF_RANK:
    if name in read:
        refuse("a module reads %s, which a rank has of its own, while it is imported" % os.fsdecode(name))
os.environ._data = os.environb._data = dict(os.environ._data)
after = os.environ._data
changed = {name: after.get(name) for name in set(before).union(after) if after.get(name) != before.get(name)}
sizes = [os.fstat(1).st_size, os.fstat(2).st_size]
files, torch = list_files(), find_torch()
gc.collect()
gc.freeze()
for fd in sockets:
    if not fork_or_end():
        serve(fd)
        break
else:
    os._exit(0)
