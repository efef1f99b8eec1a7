# SPDX-License-Identifier: Apache-2.0
"""Runs one random job of roles and compares what hnlaunch does with the rules of src/head/model/role_order.h.

usage: role_jobs.py SEED ROUND FOLDER HOSTFILE LAB HNLAUNCH NODE...

Prints "ROUND|BAD or empty|exit code|what was done|what was wrong". A round is a walk: one rank after another becomes ready or ends, each time
after hnlaunch has reacted to the step before (its events, and the files of role_rank.py), so that one outcome is right. The Model says which.
FOLDER/line is the command, FOLDER/crashed the node that was powered off, FOLDER/groups the control groups of its ranks.
"""
import copy
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time

SLOTS = 4
LIMIT = 15  # seconds of a quiet machine
RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "role_rank.py")


class Wrong(Exception):
    pass


def unique(pairs):
    """An object whose names are different."""
    if len(dict(pairs)) < len(pairs):
        raise Wrong("a name stands twice in %s" % pairs)
    return dict(pairs)


class Role:
    def __init__(self, name):
        self.name = name
        self.options = []
        self.after, self.refers = [], []
        self.n, self.instances, self.first, self.hosts = 1, 1, 0, 1
        self.ready, self.ready_timeout = "start", None
        self.main = self.ends_ok = False
        self.drain, self.on_term = None, "now"

    def instance(self, rank):
        return rank * self.instances // self.n

    def leader(self, instance):
        return -(-instance * self.n // self.instances)

    def probed(self):
        return self.ready != "start"


class Model:
    """The rules at the top of role_order.h."""

    def __init__(self, roles):
        self.roles = roles
        self.has_main = any(r.main for r in roles)
        self.life = ["waiting"] * len(roles)
        self.living = [set(range(r.n)) for r in roles]
        self.ready = [set() for _ in roles]
        self.phase, self.end, self.told = "going", None, {}
        self.start()

    def is_ready(self, i):
        return len(self.ready[i]) == self.roles[i].instances

    def awaited(self, i):
        return self.roles[i].main or not self.has_main

    def start(self):
        again = self.phase == "going"
        while again:
            again = False
            for i, r in enumerate(self.roles):
                if self.life[i] == "waiting" and all(self.is_ready(a) for a in r.after):
                    self.life[i], again = "running", True
                    if not r.probed():
                        self.ready[i] = set(range(r.instances))

    def set_ready(self, i, instance):
        self.ready[i].add(instance)
        self.start()

    def classify(self, i, rank, code):
        r = self.roles[i]
        instance = r.instance(rank)
        last = not any(r.instance(k) == instance for k in self.living[i])
        needed = any(self.life[k] != "ended" and (i in o.after or i in o.refers) for k, o in enumerate(self.roles) if k != i)
        waits = instance not in self.ready[i] and any(self.life[k] == "waiting" and i in o.after for k, o in enumerate(self.roles))
        allowed = r.ends_ok and not r.main
        if code and not allowed and (self.awaited(i) or needed):
            return "failed", i, rank, code
        if last and r.probed() and waits:
            return "unready", i, rank, code or 1
        if last and not code and not allowed and not self.awaited(i) and needed:
            return "left", i, rank, 1
        return None

    def exited(self, i, rank, code):
        self.living[i].discard(rank)
        if not self.living[i]:
            self.life[i] = "ended"
        if self.phase == "lingering":
            self.finish()
        elif self.phase == "draining":
            self.finish_drain()
        if self.phase != "going":
            return
        end = self.classify(i, rank, code)
        if not end or end[0] != "failed":
            self.finish()
        if self.phase != "going":
            return
        if end:
            self.fail(end)
            return
        if not self.awaited(i) and not self.roles[i].ends_ok and i not in self.told and (code or self.life[i] == "ended"):
            self.told[i] = (rank, code)
        self.start()

    def finish(self):
        if any(self.awaited(i) and self.life[i] != "ended" for i in range(len(self.roles))):
            return
        self.phase, self.end = "lingering", ("done", -1, -1, 0)
        if "running" not in self.life:
            self.phase = "over"

    def drains(self):
        return [i for i, r in enumerate(self.roles) if r.drain and self.life[i] == "running"]

    def finish_drain(self):
        if not self.drains():
            self.phase = "over"

    def fail(self, end):
        self.end, self.phase = end, "draining"
        self.finish_drain()

    def lose(self, lost, end):
        """Ranks of a node are gone, which is a failure of no role."""
        self.end, self.phase = end, "draining"
        for i, rank in lost:
            self.living[i].discard(rank)
            if not self.living[i]:
                self.life[i] = "ended"
        self.finish_drain()


def choose_nodes(rng, roles):
    """Gives the roles the four nodes; roles that have none stand --on one that has."""
    free, rest = 4, rng.random() < 0.4
    for i, r in enumerate(roles):
        based = [o for o in roles[:i] if o.hosts]
        if based and (not free or rng.random() < 0.35):
            base = rng.choice(based)
            where = rng.choice(["", ":0", ":last"])
            r.hosts = 0
            r.n = 1 if where else base.hosts
            r.options += ["--on", base.name + where]
            if rng.random() < 0.4:
                r.n = r.n + rng.randrange(2)
                r.options += ["-n", str(r.n)]
            continue
        each = rng.randint(1, min(2, free))
        if rest and not any("rest" in o.options for o in roles[:i]) and i == len(roles) - 1:
            each = free
            r.options += ["--nodes", "rest"]
        elif each == 1 and free >= 2 and rng.random() < 0.35:
            r.instances = 2
            r.options += ["--nodes", "1", "--replicas", "2"]
        else:
            r.options += ["--nodes", str(each)]
        r.hosts = each * r.instances
        if rng.random() < 0.5:
            n = rng.randint(each, each + 1)
            r.options += ["-n", str(n)]
            if rng.random() < 0.5:
                r.options += ["--map", "node"]
            else:
                each = -(-n // SLOTS)
        else:
            n = each * rng.randint(1, 2)
            r.options += ["--ppn", str(n // each)]
        r.n = n * r.instances
        free -= r.hosts
        r.hosts = each * r.instances
    first = 0
    for r in roles:
        if "--replicas" not in r.options:
            r.instances = r.n
        r.first, first = first, first + r.n


def choose_rules(rng, roles, mode):
    names = [r.name for r in roles]
    order = list(range(len(roles)))
    rng.shuffle(order)
    for at, i in enumerate(order):
        r = roles[i]
        r.after = sorted(k for k in order[:at] if rng.random() < 0.45)
        if r.after:
            r.options += ["--after", ",".join(names[k] for k in r.after)]
        for k in range(len(roles)):
            if k != i and rng.random() < 0.12:
                r.refers.append(k)
                r.options += ["-x", "REF_%s={%s.%s}" % (names[k].upper(), names[k], rng.choice(["addr", "port:p"]))]
        r.ready = rng.choice(["start", "tcp", "http", "file", "line"])
        if rng.random() < 0.4:
            r.drain, r.on_term = "10m", "wait"
            if mode == "fail" and rng.random() < 0.15:
                r.drain, r.on_term = "500ms", "deaf"
            r.options += ["--drain", r.drain]
    if rng.random() < 0.6:
        for i in rng.sample(order, rng.randint(1, max(1, len(roles) - 1))):
            roles[i].main = True
    for r in roles:
        if not r.main and rng.random() < 0.25:
            r.ends_ok = True
            r.options += ["--ends", "ok"]
    if mode == "timeout":
        r = rng.choice(roles)
        r.ready = r.ready if r.probed() else "line"
        # The ranks have begun by then.
        r.ready_timeout = "%ds" % (1 + os.getloadavg()[0] / (os.cpu_count() or 1))
        r.options += ["--ready-timeout", r.ready_timeout]


def choose_job(rng):
    mode = rng.choices(["clean", "fail", "timeout", "crash", "interrupt"], [4, 10, 2, 2, 1])[0]
    roles = [Role(name) for name in rng.sample(["trainer", "infer", "router", "orch", "store", "log-2"], rng.randint(2, 5))]
    choose_nodes(rng, roles)
    choose_rules(rng, roles, mode)
    linger = None
    if any(r.main for r in roles) and rng.random() < 0.5:
        linger = rng.choice(["200ms", "120s"])
    return mode, roles, linger


class Round:
    def __init__(self, seed, number, folder, hostfile, lab, hnlaunch, nodes):
        self.rng = random.Random("%s/%s" % (seed, number))
        self.folder, self.lab, self.nodes = folder, lab, nodes
        self.mode, self.roles, self.linger = choose_job(self.rng)
        self.model = Model(self.roles)
        self.steps, self.events_seen, self.lost = [], 0, set()
        self.events = []
        self.line = [hnlaunch, "-H", hostfile, "--json=%s/events" % folder, "--gpus-per-rank", "0", "--connect-timeout", "20s",
                     "--node-timeout", "2s", "--grace", "5s"]
        mains = [r.name for r in self.roles if r.main]
        self.line += ["--main", ",".join(mains)] if mains else []
        self.line += ["--linger", self.linger] if self.linger else []
        # In a tree other nodes are lost with a parent.
        self.line += ["--tree", "2"] if self.rng.random() < 0.2 and self.mode != "crash" else []
        for i, r in enumerate(self.roles):
            self.line += [":"] if i else []
            self.line += ["--role", r.name] + r.options + self.program(r)

    def program(self, r):
        ready = {
            "start": ([], "start"),
            "tcp": (["--ready", "tcp:web"], "tcp:{port:web}"),
            "http": (["--ready", "http:/health"], "http:{port:http}"),
            "file": (["--ready", "file:%s/is.%s" % (self.folder, r.name)], "file:%s/is.%s" % (self.folder, r.name)),
            "line": (["--ready", "line:^READY of %s" % r.name], "line:READY"),
        }[r.ready]
        needs = ["isready.%s.%d" % (o.name, o.leader(k))
                 for o in (self.roles[a] for a in r.after) if o.probed() for k in range(o.instances)]
        size = r.n // r.instances
        count = size if "--replicas" in r.options else r.n
        return ready[0] + ["/usr/bin/python3", "-S", "-E", RANK, self.folder, str(r.first), str(count), str(size), r.on_term, ready[1]] + needs

    # --- what is seen ---

    def write(self, what, i, rank, text=""):
        path = "%s/%s.%s.%d" % (self.folder, what, self.roles[i].name, rank)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def is_there(self, what, i, rank):
        return os.path.exists("%s/%s.%s.%d" % (self.folder, what, self.roles[i].name, rank))

    def read_events(self):
        try:
            with open(self.folder + "/events", "rb") as f:
                f.seek(self.events_seen)
                data = f.read()
        except FileNotFoundError:
            return
        data = data[:data.rfind(b"\n") + 1]
        self.events_seen += len(data)
        self.events += [json.loads(line, object_pairs_hook=unique) for line in data.splitlines()]

    def event(self, ev, **fields):
        return any(e["ev"] == ev and all(e.get(k) == v for k, v in fields.items()) for e in self.events)

    def wait(self, what, condition, ends=False):
        limit = time.monotonic() + LIMIT
        while True:
            over = self.head.poll() is not None
            self.read_events()
            if condition():
                return
            if over and not ends:
                raise Wrong("the job ended before %s" % what)
            if time.monotonic() > limit:
                load = os.getloadavg()[0] / (os.cpu_count() or 1)
                if time.monotonic() > limit + LIMIT * load:
                    raise Wrong("no sign of: %s" % what)
            time.sleep(0.01)

    def wait_for_starts(self):
        m = self.model
        for i, r in enumerate(self.roles):
            if m.life[i] == "running":
                for rank in m.living[i]:
                    self.wait("start of %s.%d" % (r.name, rank), lambda i=i, k=rank: self.is_there("started", i, k))

    # --- steps ---

    def make_ready(self, i, instances):
        r = self.roles[i]
        self.steps.append("ready %s %s" % (r.name, ",".join(map(str, instances))))
        if r.ready == "file":
            for k in range(1, r.instances):
                self.write("isready", i, r.leader(k))
            # The file is there for all ranks at once; a rank that lives writes it.
            rank = min(self.model.living[i])
            if rank:
                self.write("isready", i, 0)
            self.write("ready", i, rank)
        else:
            for k in instances:
                self.write("ready", i, r.leader(k))
        for k in instances:
            if self.mode != "timeout" or r.ready_timeout is None:
                self.wait("readiness of %s %d" % (r.name, k), lambda k=k: self.event("role.ready", role=r.name, instance=k))
        for k in instances:
            self.model.set_ready(i, k)

    def end_ranks(self, i, ranks, code, wait=True):
        """@code above 128: a signal."""
        self.steps.append("end %s.%s with %d" % (self.roles[i].name, ",".join(map(str, ranks)), code))
        for rank in ranks:
            self.write("exit", i, rank, "signal %d" % (code - 128) if code > 128 else "code %d" % code)
        for rank in ranks:
            self.model.exited(i, rank, code)
        if wait and self.model.phase != "over":
            for rank in ranks:
                self.wait("end of %s.%d" % (self.roles[i].name, rank), lambda k=rank: self.event("rank.exited", rank=self.roles[i].first + k))

    def candidates(self):
        m, found = self.model, []
        for i, r in enumerate(self.roles):
            if m.life[i] != "running":
                continue
            left = [k for k in range(r.instances) if k not in m.ready[i] and r.leader(k) in m.living[i]]
            if r.probed() and left and not (r.ready == "file" and m.ready[i]):
                found.append(("ready", i, left))
            found.append(("end", i, sorted(m.living[i])))
        return found

    def safe_end(self, i, ranks):
        """Whether the ranks may end with 0 at once: the order changes nothing."""
        for order in (ranks, ranks[::-1]):
            m = copy.deepcopy(self.model)
            for n, rank in enumerate(order):
                m.exited(i, rank, 0)
                if m.phase == "draining" or (m.end and m.end[0] != "done") or (m.phase != "going" and n + 1 < len(order)):
                    return False
        return True

    def step(self, wild):
        rng = self.rng
        all_of_them = self.candidates()
        what, i, ks = rng.choice(all_of_them)
        if wild and what == "end":
            self.end_ranks(i, [rng.choice(ks)], rng.choice([0, 0, 1, 3, 42, 125, 128 + signal.SIGKILL, 128 + signal.SIGABRT, 128 + signal.SIGUSR1]))
            return
        calm = [c for c in all_of_them if c[0] == "ready" or self.safe_end(c[1], c[2]) or self.safe_end(c[1], c[2][:1])]
        if not calm:  # only a failure is left
            self.end_ranks(i, [rng.choice(ks)], 0)
            return
        # What is not ready comes first more often: later roles then start.
        readies = [c for c in calm if c[0] == "ready"]
        what, i, ks = rng.choice(readies if readies and rng.random() < 0.7 else calm)
        if what == "ready":
            some = ks if self.roles[i].ready == "file" or rng.random() < 0.6 else [rng.choice(ks)]
            self.make_ready(i, some)
        else:
            some = ks if self.safe_end(i, ks) else ks[:1]
            code = 0
            if self.roles[i].ends_ok and len(some) == 1 and rng.random() < 0.5:
                m = copy.deepcopy(self.model)
                m.exited(i, some[0], 5)
                code = 5 if m.phase in ("going", "lingering") else 0
            self.end_ranks(i, some, code)

    def on_nodes(self):
        """Living ranks by node."""
        nodes = {}
        for i, r in enumerate(self.roles):
            for rank in self.model.living[i] if self.model.life[i] == "running" else ():
                with open("%s/started.%s.%d" % (self.folder, r.name, rank)) as f:
                    host, group = f.read().split()
                nodes.setdefault(host, []).append((i, rank, group))
        return nodes

    def crash(self):
        nodes = self.on_nodes()
        self.node = self.rng.choice(sorted(nodes))
        self.steps.append("crash " + self.node)
        with open(self.folder + "/groups", "w") as f:
            f.write("".join(sorted({g + "\n" for _, _, g in nodes[self.node]})))
        with open(self.folder + "/crashed", "w") as f:
            f.write(self.node + "\n")
        subprocess.run([self.lab, "crash", self.node], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.lost = {(i, rank) for i, rank, _ in nodes[self.node]}
        self.model.lose(self.lost, ("lost", -1, -1, 125))

    def interrupt(self):
        self.steps.append("SIGINT")
        for i in self.model.drains():
            for rank in self.model.living[i]:
                self.write("exit", i, rank, "code 0") if self.roles[i].on_term == "deaf" else None
        self.head.send_signal(signal.SIGINT)
        for i, rank in self.alive():
            self.wait("SIGTERM at %s.%d" % (self.roles[i].name, rank), lambda i=i, k=rank: self.is_there("term", i, k), ends=True)
            self.write("exit", i, rank, "code 0")
        self.model.end, self.model.phase = ("order", -1, -1, 130), "over"

    def alive(self):
        return [(i, rank) for i, r in enumerate(self.roles) if self.model.life[i] == "running" for rank in sorted(self.model.living[i])]

    def drain(self):
        """Roles with --drain have got SIGTERM, and no other."""
        m, drains = self.model, self.model.drains()
        before = self.alive()
        for i in drains:
            for rank in sorted(m.living[i]):
                self.wait("SIGTERM at %s.%d" % (self.roles[i].name, rank), lambda i=i, k=rank: self.is_there("term", i, k))
        deaf = any(self.roles[i].on_term == "deaf" for i in drains)
        if not deaf:
            told = ["%s.%d" % (self.roles[i].name, k) for i, k in before if i not in drains and self.is_there("term", i, k)]
            if told:
                raise Wrong("SIGTERM during a drain came to " + ", ".join(told))
        others = [(i, k) for i, k in before if i not in drains]
        if others and not deaf and self.rng.random() < 0.5:
            i, rank = self.rng.choice(others)
            self.end_ranks(i, [rank], self.rng.choice([0, 9, 137]))
        for i in drains:
            if self.roles[i].on_term == "wait":
                self.end_ranks(i, sorted(m.living[i]), self.rng.choice([0, 0, 6]), wait=False)
        if deaf:
            m.phase = "over"

    # --- the whole ---

    def walk(self):
        m, rng = self.model, self.rng
        late = rng.randint(1, 8)
        self.wait("the events", lambda: self.event("run.start"))
        if self.mode == "timeout":
            self.walk_to_timeout()
        count = 0
        while m.phase == "going":
            self.wait_for_starts()
            count += 1
            if self.mode in ("crash", "interrupt") and count >= late:
                self.crash() if self.mode == "crash" else self.interrupt()
                break
            self.step(self.mode == "fail" and rng.random() < 0.2)
        if m.phase == "draining":
            self.drain()
        while m.phase == "lingering" and self.linger == "120s":
            i, rank = rng.choice(self.alive())
            self.end_ranks(i, [rank], rng.choice([0, 0, 7, 137]))

    def walk_to_timeout(self):
        m = self.model
        late = next(i for i, r in enumerate(self.roles) if r.ready_timeout)
        need, todo = set(), [late]
        while todo:
            for a in self.roles[todo.pop()].after:
                need.add(a)
                todo.append(a)
        while m.life[late] == "waiting":
            self.wait_for_starts()
            _, i, ks = self.rng.choice([c for c in self.candidates() if c[0] == "ready" and c[1] in need])
            self.make_ready(i, ks)
        r = self.roles[late]
        if r.instances > 1 and r.ready != "file":
            for k in range(1, r.instances):
                if self.rng.random() < 0.5:
                    self.write("ready", late, r.leader(k))
        self.steps.append("never ready: " + r.name)
        self.wait_for_starts()
        m.fail(("timeout", late, 0, 124))

    def code(self):
        """As a shell tells it."""
        return self.head.returncode if self.head.returncode >= 0 else 128 - self.head.returncode

    def wrongs(self):
        m, roles = self.model, self.roles
        kind, role, rank, code = m.end or ("nothing", -1, -1, -1)
        with open(self.folder + "/err") as f:
            err = f.read()
        last = (err.splitlines() or [""])[-1]
        end = next((e for e in self.events if e["ev"] == "run.end"), {})
        if self.code() != code:
            yield "exit code %d, not %d (%s)" % (self.code(), code, kind)
        if role >= 0:
            texts = {"failed": "was killed by" if code > 128 else "exited with code %d" % code, "unready": "before it was ready, and role",
                     "left": "ended with 0, but role", "timeout": "was not ready in"}
            for text in ("role " + roles[role].name, texts[kind]):
                if text not in last:
                    yield "the last line lacks `%s`" % text
            if (end.get("role"), end.get("rank")) != (roles[role].name, roles[role].first + rank):
                yield "run.end names %s, rank %s, not %s, rank %d" % (end.get("role"), end.get("rank"), roles[role].name, roles[role].first + rank)
        if kind == "lost" and self.node not in last:
            yield "the last line lacks " + self.node
        for i, r in enumerate(roles):
            for k in range(r.n):
                name = "%s.%d" % (r.name, k)
                if self.is_there("started", i, k) != (m.life[i] != "waiting"):
                    yield name + (" was not started" if m.life[i] != "waiting" else " was started")
                if os.path.exists("%s/wrong.%s" % (self.folder, name)):
                    with open("%s/wrong.%s" % (self.folder, name)) as f:
                        yield "%s: %s" % (name, f.read().replace("\n", "; "))
                if m.life[i] == "running" and k in m.living[i] and not self.is_there("term", i, k) and self.is_there("started", i, k):
                    yield name + " got no SIGTERM"
        for i, (rank, status) in m.told.items():
            text = "ended with code %d; no role" % status if status else "role %s has ended; no role" % roles[i].name
            if not any("HN730" in l and "role " + roles[i].name in l and text in l for l in err.splitlines()):
                yield "no warning tells the end of " + roles[i].name
        warned = sum("warning[HN730]" in l for l in err.splitlines())
        if warned != len(m.told):
            yield "%d warnings HN730, not %d" % (warned, len(m.told))
        yield from self.wrong_order()

    def wrong_order(self):
        at = {}
        for n, e in enumerate(self.events):
            if e["ev"] in ("rank.started", "role.ready"):
                at.setdefault((e["ev"], e["role"]), []).append(n)
        for r in self.roles:
            for a in (self.roles[k] for k in r.after):
                ready = at.get(("role.ready" if a.probed() else "rank.started", a.name), [])
                mine = at.get(("rank.started", r.name))
                if mine and (len(ready) < a.instances or max(ready) > min(mine)):
                    yield "%s was started before %s was ready" % (r.name, a.name)

    def run(self):
        why = []
        with open(self.folder + "/line", "w") as f:
            f.write(shlex.join(self.line) + "\n")
        with open(self.folder + "/out", "w") as out, open(self.folder + "/err", "w") as err:
            self.head = subprocess.Popen([self.lab, "run", "env", "--default-signal"] + self.line, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            self.walk()
            self.steps.append("-> %s" % self.model.end[0])
            self.wait("the end of the job", lambda: self.head.poll() is not None, ends=True)
            self.read_events()
            why = list(self.wrongs())
        except Wrong as e:
            why = [str(e)]
        finally:
            if self.head.poll() is None:
                self.head.kill()
            self.head.wait()
        with open(self.folder + "/err") as f:
            last = (f.read().splitlines() or [""])[-1]
        return self.code(), "; ".join(self.steps), "; ".join(why) + (" [%s]" % last if why else "")


def main():
    seed, number, folder, hostfile, lab, hnlaunch, *nodes = sys.argv[1:]
    code, steps, why = Round(seed, number, folder, hostfile, lab, hnlaunch, nodes).run()
    print("|".join([number, "BAD" if why else "", str(code), steps.replace("|", "/"), why.replace("|", "/")]))


main()
