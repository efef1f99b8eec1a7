# SPDX-License-Identifier: Apache-2.0
"""One rank fails and ends in its own way and time; the others lose their connection to it, and end of that.

usage: ending.py VICTIM HOW ECHO

Rank 0 is the hub of real TCP connections. A rank that fails closes its own; the hub then closes those of all others, so
that these fail one after the other.

HOW   raise      an exception that nobody catches
      atexit=S   the same, and S seconds of work at the exit
      finally=S  the connections are closed and S seconds of work done before the traceback is printed
      exit42=S   the traceback is printed, sys.exit(42), and S seconds of work at the exit
      thread     an exception; a thread that is no daemon never ends
      deaf       the same, and SIGTERM is ignored
      keep       an exception; a thread that is no daemon never ends, nor do the connections
      record=S   the exception goes into TORCHELASTIC_ERROR_FILE alone; S seconds of work at the exit
      zero       prints the traceback and ends with 0
      chained    the connections break while the exception is on its way
      noise      an exception, and then words about connections
      message=S  sys.exit("text"), and S seconds of work at the exit
      code       exits with 5 without a word
      kill, crash    SIGKILL, SIGSEGV
      leave      closes its connections and ends with 0, without a word
      hang       closes its connections and stays, without a word
      database   connects to a port where nobody listens
ECHO  raise      Gloo's exception
      reset      the exception of the socket
      timeout    the exception of a collective with a limit of time
      code       a line, and code 9
      silent     code 3 without a word
      zero       a line, and code 0
      abort      the words of C++, and SIGABRT
      pipe       SIGPIPE
      thread     Gloo's exception, and a thread that never ends
"""
import atexit
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
VICTIM, (HOW, _, SECONDS), ECHO = int(sys.argv[1]), sys.argv[2].partition("="), sys.argv[3]
PEER = "[192.0.2.7]:4711"
links = []


def meet():
    if RANK == 0:
        server = socket.create_server(("", 0))
        with open("hub.new", "w") as f:
            f.write("%d" % server.getsockname()[1])
        os.rename("hub.new", "hub")
        links.extend(server.accept()[0] for _ in range(SIZE - 1))
        for link in links:
            link.sendall(b"!")
        return
    while not os.path.exists("hub"):
        time.sleep(0.01)
    with open("hub") as f:
        links.append(socket.create_connection((os.environ["MASTER_ADDR"], int(f.read()))))
    links[0].recv(1)


def leave():
    for link in links:
        if ECHO == "reset":
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.close()


def forever():
    while True:
        time.sleep(1)


def stay():
    threading.main_thread().join()  # its traceback is written then
    leave()
    forever()


def wait_for_peers():
    gone = threading.Event()

    def watch(link):
        try:
            link.recv(1)
        except OSError as e:
            watch.error = e
        gone.set()

    watch.error = None
    for link in links:
        threading.Thread(target=watch, args=(link,), daemon=True).start()
    gone.wait()
    return watch.error


def fail():
    if HOW == "code":
        os._exit(5)
    if HOW == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if HOW == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if HOW == "hang":
        leave()
        forever()
    if HOW == "leave":
        leave()
        sys.exit(0)
    if HOW == "database":
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        socket.create_connection(("127.0.0.1", port))
    if HOW == "keep":
        threading.Thread(target=forever).start()
    if HOW in ("thread", "deaf"):
        threading.Thread(target=stay).start()
    if HOW == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if HOW == "message":
        atexit.register(time.sleep, float(SECONDS))
        atexit.register(leave)
        sys.exit("error: the mesh has no cells")
    if HOW in ("atexit", "exit42"):
        atexit.register(time.sleep, float(SECONDS))
        atexit.register(leave)
    try:
        raise ValueError("sample 17 has no label")
    except ValueError as e:
        if HOW == "record":
            with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
                json.dump({"message": {"message": "ValueError: %s" % e,
                                       "extraInfo": {"py_callstack": traceback.format_exc()}}}, f)
            leave()
            atexit.register(time.sleep, float(SECONDS))
            sys.exit(1)
        if HOW == "exit42":
            traceback.print_exc()
            sys.exit(42)
        if HOW == "zero":
            traceback.print_exc()
            sys.exit(0)
        if HOW == "chained":
            leave()
            raise RuntimeError("Connection closed by peer " + PEER)
        if HOW == "noise":
            atexit.register(sys.stderr.write, "Exception ignored in: <function link>\n"
                            "BrokenPipeError: [Errno 32] Broken pipe\n")
        raise
    finally:
        if HOW == "finally":
            leave()
            time.sleep(float(SECONDS))


def follow(error):
    leave()
    if ECHO == "reset" and error:
        raise error
    if ECHO == "timeout":
        raise RuntimeError("[../gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 500ms for recv operation to complete")
    if ECHO in ("code", "zero"):
        sys.stderr.write("step 3: lost rank %d: Connection reset by peer\n" % VICTIM)
        sys.exit(9 if ECHO == "code" else 0)
    if ECHO == "silent":
        os._exit(3)
    if ECHO == "abort":
        sys.stderr.write("terminate called after throwing an instance of 'gloo::IoException'\n"
                         "  what():  [pair.cc:534] Connection closed by peer %s\n" % PEER)
        sys.stderr.flush()
        os.abort()
    if ECHO == "pipe":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    if ECHO == "thread":
        threading.Thread(target=forever).start()
    raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer " + PEER)


meet()
if RANK == VICTIM:
    fail()
else:
    follow(wait_for_peers())
