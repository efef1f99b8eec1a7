# SPDX-License-Identifier: Apache-2.0
"""A rank of a role, steered by files (role_jobs.py).

usage: role_rank.py FOLDER FIRST COUNT SIZE ON-TERM READY NEEDS...

FIRST is the first rank of the role in the job, COUNT the ranks of its world, SIZE those of an instance. ON-TERM: now, wait (for the file
exit.*), deaf. READY: start, tcp:PORT, http:PORT, file:PATH, line:TEXT. NEEDS are files that must be there when the rank starts. The names of all
files end with ROLE.RANK, the rank's number in the role:

  started.*   written at the start, with host and control group
  ready.*     the rank becomes ready
  isready.*   written just before it is
  exit.*      the rank ends: "code N" or "signal N"
  term.*      written when SIGTERM comes
  wrong.*     what is not as it should be
"""
import os
import select
import signal
import socket
import sys

LIFE = 150

folder, first, count, size, on_term, ready, *needs = sys.argv[1:]
job_rank = int(os.environ["HN_JOB_RANK"])
rank = job_rank - int(first)
me = "%s.%d" % (os.environ["HN_ROLE"], rank)
told = False


def show(what, text=""):
    path = "%s/%s.%s" % (folder, what, me)
    with open(path + ".new", "a") as f:
        f.write(text)
    os.rename(path + ".new", path)


def is_there(what):
    return os.path.exists("%s/%s.%s" % (folder, what, me))


def wrong(text):
    with open("%s/wrong.%s" % (folder, me), "a") as f:
        f.write(text + "\n")


def end():
    with open("%s/exit.%s" % (folder, me)) as f:
        kind, number = f.read().split()
    sys.stdout.flush()
    if kind == "code":
        os._exit(int(number))
    signal.signal(int(number), signal.SIG_DFL) if int(number) != signal.SIGKILL else None
    os.kill(os.getpid(), int(number))


def on_signal(_signo, _frame):
    global told
    if not told:
        show("term")
    told = True


def listen(port):
    server = socket.create_server(("127.0.0.1", int(port)))
    server.setblocking(False)
    return server


def answer(server, status):
    try:
        peer, _ = server.accept()
    except OSError:
        return
    with peer:
        if status:
            peer.settimeout(1)
            try:
                peer.recv(999)
                peer.sendall(b"HTTP/1.0 %d x\r\nContent-Length: 0\r\n\r\n" % status)
            except OSError:
                pass


def become_ready(kind, where):
    """Returns the server, if the rank has one."""
    show("isready")
    if kind == "tcp":
        return listen(where)
    if kind == "file":
        open(where, "w").close()
    elif kind == "line":
        print("\033[32m%s\033[0m of %s" % (where, me), file=sys.stderr if rank % 2 else sys.stdout, flush=True)
    return None


def main():
    server, is_ready = None, False
    kind, _, where = ready.partition(":")
    signal.signal(signal.SIGTERM, on_signal)
    signal.alarm(LIFE)
    if is_there("started"):
        wrong("started twice")
    if int(os.environ["RANK"]) != rank % int(count) or int(os.environ["WORLD_SIZE"]) != int(count):
        wrong("rank %s of %s" % (os.environ["RANK"], os.environ["WORLD_SIZE"]))
    for need in needs:
        if not os.path.exists(folder + "/" + need):
            wrong("started before " + need)
    with open("/proc/self/cgroup") as f:
        groups = [line[3:].strip() for line in f if line.startswith("0::")]
    if kind == "line":
        print("not %s yet" % where, flush=True)
    if kind == "http" and rank % int(size) == 0:
        server = listen(where)  # answers, but with 503
    show("started", "%s %s\n" % (os.uname().nodename, groups[0] if groups else "/"))
    while True:
        select.select([server] if server else [], [], [], 0.015)
        if not is_ready and is_there("ready"):
            server, is_ready = become_ready(kind, where) or server, True
        if server:
            answer(server, 0 if kind == "tcp" else 204 if is_ready else 503)
        if is_there("exit") and (not told or on_term != "deaf"):
            end()
        if told and on_term == "now":
            os._exit(rank % 3)


main()
