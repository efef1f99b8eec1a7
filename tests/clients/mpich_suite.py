#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of MPICH's own tests under two launchers, and compares how they end.

usage: mpich_suite.py [-f FOLDER,...] [-s SEED] [-n COUNT] [-t SECONDS] TESTS LAUNCHER OTHER

  TESTS      the built folder test/mpi of MPICH
  LAUNCHER   a command to which "-n RANKS PROGRAM ARG..." is added; OTHER likewise: the launcher to compare with
  -f FOLDER  these folders (default: all that have a testlist and built programs)
  -n COUNT   so many programs, drawn with SEED (default: all)
  -t SECONDS limit of a program (default 60); 124 is its exit code then

TESTS, with the mpicc of tests/lib/mpi_kit.sh, from the source package mpich of Debian (test/mpi in its archive):

    ./configure CC=KIT/bin/mpicc --with-mpi=KIT --disable-fortran --disable-cxx --disable-romio
    for folder in dtpools util init info group comm attr topo errhan pt2pt; do make -k -C $folder check TESTS=; done

Prints a line for each program that ends differently, a line for each that fails under both, and the numbers. The
exit code is 1 if a program that ends as it should under OTHER does not under LAUNCHER.
"""

import argparse
import os
import random
import shlex
import subprocess
import sys

SPECIAL = {"TestStatus", "TestErrFatal", "TestStatusNoErrors"}


class Program:
    def __init__(self, folder, line):
        words = shlex.split(line)
        self.folder, self.name, self.ranks = folder, words[0], 2
        self.args, self.env, self.result, self.strict, self.limit = [], {}, None, False, 0
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
            elif key in ("strict", "xfail"):
                self.strict = True

    def __str__(self):
        return "%s/%s -n %d %s" % (os.path.basename(self.folder), self.name, self.ranks, " ".join(self.args))

    def run(self, launcher, limit):
        """(exit code, whether it ended as it should)"""
        command = launcher + ["-n", str(self.ranks), "./" + self.name] + self.args
        try:
            done = subprocess.run(command, cwd=self.folder, env={**os.environ, **self.env}, timeout=max(limit, self.limit),
                                  stdin=subprocess.DEVNULL, capture_output=True)
        except subprocess.TimeoutExpired:
            return 124, False
        if self.result in SPECIAL:
            return done.returncode, done.returncode != 0
        return done.returncode, done.returncode == 0 and b"no errors" in done.stdout.lower()


def programs(tests, folders):
    found = []
    for name in folders or sorted(os.listdir(tests)):
        folder = os.path.join(tests, name)
        try:
            with open(os.path.join(folder, "testlist"), encoding="utf-8") as f:
                lines = [line.split("#")[0].strip() for line in f]
        except OSError:
            continue
        for line in filter(None, lines):
            program = Program(folder, line)
            if not program.strict and os.access(os.path.join(folder, program.name), os.X_OK) and \
                    not os.path.isdir(os.path.join(folder, program.name)):
                found.append(program)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-f", default="")
    parser.add_argument("-s", type=int, default=1)
    parser.add_argument("-n", type=int, default=0)
    parser.add_argument("-t", type=int, default=60)
    parser.add_argument("-m", type=int, default=64)
    parser.add_argument("tests")
    parser.add_argument("launcher")
    parser.add_argument("other")
    o = parser.parse_args()
    all_of_them = [p for p in programs(o.tests, [f for f in o.f.split(",") if f]) if p.ranks <= o.m]
    if o.n:
        random.Random(o.s).shuffle(all_of_them)
        all_of_them = all_of_them[:o.n]
    worse = better = both = 0
    for p in all_of_them:
        code, good = p.run(shlex.split(o.launcher), o.t)
        other, other_good = p.run(shlex.split(o.other), o.t)
        if good != other_good:
            print("%s: %d, under the other launcher %d" % (p, code, other), flush=True)
            worse, better = worse + other_good, better + good
        elif not good:
            print("%s: fails under both: %d, %d" % (p, code, other), flush=True)
            both += 1
    print("%d programs: %d end as under the other launcher (%d of them fail), %d worse, %d better" %
          (len(all_of_them), len(all_of_them) - worse - better, both, worse, better))
    return 1 if worse or not all_of_them else 0


sys.exit(main())
