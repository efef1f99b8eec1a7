#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of MPICH's own tests under two launchers, and compares how they end.

usage: mpich_suite.py [-f FOLDER,...] [-x FOLDER/NAME,...] [-s SEED] [-n COUNT] [-m RANKS] [-t SECONDS] [-l] TESTS LAUNCHER OTHER

  TESTS      the configured folder test/mpi of MPICH, as tests/lib/mpi_kit.sh makes it; programs that are not there
             yet are compiled
  LAUNCHER   a command to which "-n RANKS PROGRAM ARG..." is added; OTHER likewise: the launcher to compare with
  -f FOLDER  these folders (default: all but those for other languages, MPI-IO, fault tolerance and performance)
  -x NAME    not these programs; FOLDER/ leaves a folder and those inside out
  -n COUNT   so many programs, drawn with SEED (default: all)
  -m RANKS   only programs of at most so many ranks (default 16)
  -t SECONDS limit of a program (default 60); 124 is its exit code then. Most programs wait by polling: with more ranks
             than processors they take long under any launcher. So a program counts as different only if OTHER needs
             less than a quarter of the limit
  -l         asks OTHER only about programs that fail under LAUNCHER

Prints a line for each program that ends differently, a line for each that fails under both, the slowest ones, and the
numbers. The exit code is 1 if a program that ends as it should under OTHER does not under LAUNCHER.
"""

import argparse
import fcntl
import os
import random
import shlex
import subprocess
import sys
import time

FOLDERS = "attr coll comm datatype errhan group info init mpi_t part pt2pt rma spawn threads topo".split()
SLOW = 5  # seconds from which a program is named
SPECIAL = {"TestStatus", "TestErrFatal", "TestStatusNoErrors"}


class Program:
    def __init__(self, folder, line):
        words = shlex.split(line)
        self.folder, self.name, self.ranks = folder, words[0], 2
        self.args, self.env, self.result, self.unusual, self.limit = [], {}, None, False, 0
        self.seconds = 0
        for word in words[1:]:
            key, _, value = word.partition("=")
            if word.isdigit():
                self.ranks = int(word)
            elif key == "arg":
                self.args.append(value)
            elif key == "env":
                name, _, text = value.partition("=")
                self.env[name] = text
            elif key == "resultTest":
                self.result = value
            elif key == "timeLimit":
                self.limit = int(value)
            elif key in ("strict", "xfail", "mpiexecarg"):
                self.unusual = True

    @property
    def path(self):
        return self.folder.partition("/./")[2] + "/" + self.name

    def __str__(self):
        return "%s -n %d %s" % (self.path, self.ranks, " ".join(self.args))

    def is_built(self):
        """Compiles the program if need be. Others may do so in the same folders at the same time."""
        if not os.path.exists(os.path.join(self.folder, self.name)):
            with open(os.path.join(self.folder.partition("/./")[0], "lock"), "w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                subprocess.run(["make", "-s", "-C", self.folder, self.name], stdin=subprocess.DEVNULL, capture_output=True,
                               check=False)
        return os.path.isfile(os.path.join(self.folder, self.name))

    def run(self, launcher, limit):
        """(exit code, whether it ended as it should)"""
        command = launcher + ["-n", str(self.ranks), "./" + self.name] + self.args
        begin = time.monotonic()
        try:
            done = subprocess.run(command, cwd=self.folder, env={**os.environ, **self.env}, timeout=max(limit, self.limit),
                                  stdin=subprocess.DEVNULL, capture_output=True)
        except subprocess.TimeoutExpired:
            return 124, False
        finally:
            self.seconds = max(self.seconds, time.monotonic() - begin)
        if self.result in SPECIAL:
            return done.returncode, done.returncode != 0
        return done.returncode, done.returncode == 0 and b"no errors" in done.stdout.lower()


def programs(tests, folders):
    found = []
    lists = [place for name in folders for place, _, files in os.walk(os.path.join(tests, ".", name)) if "testlist" in files]
    for folder in sorted(lists):
        with open(os.path.join(folder, "testlist"), encoding="utf-8") as f:
            lines = [line.split("#")[0].strip() for line in f]
        for line in filter(None, lines):
            program = Program(folder, line)
            if not program.unusual and not os.path.isdir(os.path.join(folder, program.name)):
                found.append(program)
    return found


def chosen(options):
    left_out = options.x.split(",")
    folders = tuple(word for word in left_out if word.endswith("/"))
    found = [p for p in programs(options.tests, [f for f in options.f.split(",") if f] or FOLDERS)
             if p.ranks <= options.m and p.path not in left_out and not p.path.startswith(folders)]
    random.Random(options.s).shuffle(found)
    if not options.n:
        return sorted(found, key=str)
    return found[:options.n]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("-f", default="")
    parser.add_argument("-x", default="")
    parser.add_argument("-s", type=int, default=1)
    parser.add_argument("-n", type=int, default=0)
    parser.add_argument("-m", type=int, default=16)
    parser.add_argument("-t", type=int, default=60)
    parser.add_argument("-l", action="store_true")
    for name in "tests", "launcher", "other":
        parser.add_argument(name)
    return parser.parse_args()


def main():
    o = arguments()
    all_of_them = chosen(o)
    ran = worse = better = both = late = 0
    for p in all_of_them:
        if not p.is_built():
            print("%s: cannot be compiled" % p, flush=True)
            continue
        ran += 1
        code, good = p.run(shlex.split(o.launcher), o.t)
        if good and o.l:
            continue
        begin = time.monotonic()
        other, other_good = p.run(shlex.split(o.other), o.t)
        if 124 in (code, other) and time.monotonic() - begin > o.t / 4:
            print("%s: takes long: %d, %d" % (p, code, other), flush=True)
            late += 1
        elif good != other_good:
            print("%s: %d, under the other launcher %d" % (p, code, other), flush=True)
            worse, better = worse + other_good, better + good
        elif not good:
            print("%s: fails under both: %d, %d" % (p, code, other), flush=True)
            both += 1
    slow = sorted((p for p in all_of_them if p.seconds >= SLOW), key=lambda p: -p.seconds)
    if slow:
        print("slow: " + ", ".join("%s %.0f s" % (str(p).strip(), p.seconds) for p in slow))
    print("%d programs: %d end as under the other launcher (%d of them fail), %d take long, %d worse, %d better" %
          (ran, ran - worse - better - late, both, late, worse, better))
    return 1 if worse or late * 2 > ran or not ran else 0


sys.exit(main())
