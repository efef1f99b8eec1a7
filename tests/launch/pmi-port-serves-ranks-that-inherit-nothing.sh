#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --mpi pmi-port: ranks that inherit no descriptor reach PMI-1 at a port of their node, and nothing else is served
# there. Programs of real MPI libraries do the same in clients/mpi-programs-run-unchanged.sh.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >pmi.py <<'END'
import os, socket, sys

class Client:
    def __init__(self, rank=os.environ.get("PMI_ID", "0")):
        host, port = os.environ["PMI_PORT"].split(":")
        self.conn = socket.create_connection((host, int(port)))
        self.file = self.conn.makefile("rw", newline="\n")
        self.welcome = self.ask("cmd=initack pmiid=%s" % rank)
        if self.welcome:
            self.welcome += "".join(" " + self.file.readline().rstrip("\n") for _ in range(3))

    def ask(self, text):
        try:
            self.file.write(text + "\n")
            self.file.flush()
            return self.file.readline().rstrip("\n")
        except OSError:
            return ""

    def init(self):
        assert self.ask("cmd=init pmi_version=1 pmi_subversion=1").startswith("cmd=response_to_init rc=0"), "init"

rank, size = int(os.environ["PMI_ID"]), int(os.environ["PMI_SIZE"])

def meet():
    c = Client()
    assert c.welcome == "cmd=initack rc=0 cmd=set size=%d cmd=set rank=%d cmd=set debug=0" % (size, rank), c.welcome
    c.init()
    c.ask("cmd=put kvsname=x key=card-%d value=card of %d" % (rank, rank))
    assert c.ask("cmd=barrier_in") == "cmd=barrier_out rc=0", "barrier"
    cards = [c.ask("cmd=get kvsname=x key=card-%d" % i).partition("value=")[2] for i in range(size)]
    assert cards == ["card of %d" % i for i in range(size)], cards
    return c

def refused(client):
    return "served" if client.welcome else "refused"

mode = sys.argv[1]
if mode == "meet":
    assert meet().ask("cmd=finalize") == "cmd=finalize_ack rc=0", "finalize"
    print("rank %d of %d met" % (rank, size), flush=True)
elif mode == "leave":
    c = meet()
elif mode == "abort":
    meet().file.write("cmd=abort exitcode=42\n")
elif mode == "others": # what is no client of a rank; the rank itself is served all the same
    first = Client()
    first.init()
    print("again:", refused(Client()))
    print("no rank:", refused(Client(7)), refused(Client(-1)), refused(Client("x")))
    first.ask("cmd=finalize")
    second = Client()
    print("after finalize:", refused(second))
    second.conn.close()
    print("after a close:", refused(Client()), flush=True)
elif mode == "protocols":
    for text in "GET / HTTP/1.0\r\n\r\n", "cmd=init pmi_version=2 pmi_subversion=0\n", "x" * 300, \
            "cmd=initack pmiid=0\ncmd=init pmi_version=1\n":
        with socket.create_connection(os.environ["PMI_PORT"].split(":")) as s:
            s.sendall(text.encode())
            try:
                print(repr(s.recv(100)), flush=True)
            except OSError:
                print("b''", flush=True)
elif mode == "crowd": # connections that say nothing do not keep the rank out
    crowd = [socket.create_connection(os.environ["PMI_PORT"].split(":")) for _ in range(300)]
    print(refused(Client()), flush=True)
    print(crowd[0].recv(1), flush=True)
END

hn --local 3 --label none --mpi pmi-port python3 pmi.py meet
is 'three ranks meet at the port' "$RC $(sort "$OUT" | xargs)" '0 rank 0 of 3 met rank 1 of 3 met rank 2 of 3 met'
hn --local 2 --label none --mpi pmi-port sh -c 'python3 pmi.py meet && python3 pmi.py meet'
is 'programs of a script meet one after the other' "$RC $(grep -c met "$OUT")" '0 4'
hn --local 2 --label none --mpi pmi-port sh -c 'echo "${PMI_FD-no descriptor}"'
is 'no descriptor is inherited' "$(sort -u "$OUT")" 'no descriptor'
hn --local 2 --label none sh -c 'echo "${PMI_PORT-no port} ${PMI_ID-no number}"'
is 'without --mpi pmi-port there is no port' "$(sort -u "$OUT")" 'no port no number'
hn --local 2 --mpi pmi-port python3 pmi.py abort
exits 'the code of an abort is the exit code' 42
hn --local 2 --mpi pmi-port python3 pmi.py leave
exits 'a rank that leaves without finalizing is a failure' 1
has 'and is named' "$ERR" 'error[HN406]: a rank left without MPI_Finalize()'

hn --local 1 --label none --mpi pmi-port python3 pmi.py others
is 'a rank has one connection at a time' "$(cat "$OUT")" 'again: refused
no rank: refused refused refused
after finalize: served
after a close: served'
ok 'as a warning says' grep -q '^warning\[HN606\]: localhost: refused a connection to PMI_PORT from .*: rank 0 is served already$' "$ERR"
has 'and names a wrong rank' "$ERR" 'no rank 7 runs on this node'
hn --local 1 --label none --mpi pmi-port python3 pmi.py protocols
is 'other protocols are refused' "$(sort -u "$OUT")" "b''"
is 'each with a warning' "$(grep -c 'its first message is not that of a client of PMI_PORT' "$ERR")" 4
hn --local 1 --label none --mpi pmi-port python3 pmi.py crowd
is 'connections that say nothing do not keep a rank out' "$(xargs <"$OUT")" 'served b'
has 'since the oldest gives way' "$ERR" 'too many connections wait'

if [[ $(id -u) == 0 ]] && type -P setpriv >/dev/null; then
    hn --local 1 --label none --mpi pmi-port setpriv --reuid 65534 --clear-groups /bin/bash -c '
        exec 3<>"/dev/tcp/${PMI_PORT/://}"
        echo "cmd=initack pmiid=0" >&3
        read -r -u 3 line
        echo "answer: $line"'
    has 'a process of another user is refused' "$ERR" 'the process belongs to uid 65534'
    is 'and hears nothing' "$(cat "$OUT")" 'answer: '
else
    skip 'a process of another user is refused' 'needs root and setpriv'
fi
run "$HNLAUNCH" plan --ranks 0 --local 2 --mpi pmi-port true
has 'the plan shows the port' "$OUT" 'PMI_PORT=127.0.0.1:(free port there)'
has 'and the number of the rank' "$OUT" 'PMI_ID=0'
nothing_left 'nothing is left'
done_testing
