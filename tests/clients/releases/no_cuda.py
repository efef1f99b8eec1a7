# SPDX-License-Identifier: Apache-2.0
"""Makes the libraries of CUDA 12 that a PyTorch from PyPI is linked with, of functions that do nothing.

usage: no_cuda.py TORCH-LIB CUDART TO

TORCH-LIB is the folder torch/lib; CUDART the runtime on simulated GPUs, which is used as it is. What it lacks goes to
TO/libmissing.so, for LD_PRELOAD. With these, PyTorch finds the simulated GPUs and makes process groups of NCCL; it cannot
compute on them.
"""
import collections
import glob
import os
import re
import subprocess
import sys

LIB, CUDART, TO = sys.argv[1:4]
LIBRARIES = glob.glob(LIB + "/*.so*")
RUNTIME = "libcudart.so.12"
# The first letters of the functions of a library.
FIRST = {"libcublas": "cublas(?!Lt)", "libcublasLt": "cublasLt", "libcuda": "cu[A-Z](?!File)", "libnvToolsExt": "nvtx", "libcufile": "cuFile"}


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make(name, functions):  # functions: of each version of symbols, "" = without one
    source = "\n".join("int %s(void) { return 0; }" % f for fs in functions.values() for f in sorted(fs))
    script = "\n".join("%s { global: %s };" % (v, " ".join(f + ";" for f in sorted(fs))) for v, fs in functions.items() if v)
    with open(TO + "/none.c", "w") as c, open(TO + "/none.map", "w") as m:
        c.write(source + "\n")
        m.write(script + "\n")
    subprocess.run(["cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-Wl,-soname," + name, "-o", TO + "/" + name, TO + "/none.c"]
                   + (["-Wl,--version-script=" + TO + "/none.map"] if script else []), check=True)


needed, wanted, own = set(), collections.defaultdict(set), set()
for library in LIBRARIES:
    needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "-d", library)))
    for line in read("nm", "-D", library).splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@")
        if kind == "U":
            wanted[version.strip("@")].add(name)
        elif kind not in "wv":
            own.add(name)
there = {line.split()[-1].partition("@")[0] for line in read("nm", "-D", "--defined-only", CUDART).splitlines()}
wanted[""] -= own
for library in needed - {os.path.basename(path) for path in LIBRARIES} - {RUNTIME}:
    stem = library.partition(".so")[0]
    if re.match("lib(cu|nccl|nv)", stem):
        first = re.compile(FIRST.get(stem, stem[3:]))
        make(library, {v: {f for f in wanted[v] if first.match(f)} for v in ("", library) if v in wanted} or {"": set()})
make("libmissing.so", {RUNTIME: {f for v in ("", RUNTIME) for f in wanted[v] if re.match("(__)?cuda[A-Z]", f)} - there})
