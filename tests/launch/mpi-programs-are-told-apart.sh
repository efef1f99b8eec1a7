#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of Open MPI are served with PMIx, others with PMI. Several ranks of an MPI program with --mpi none would
# each be a world of one: that is told before they start. The libraries are empty ones with the right names.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

type -P cc >/dev/null || skip_all 'no compiler here'
echo 'int MPI_Init(void) { return 0; }' >lib.c
printf 'int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n' >main.c
for name in libmpi.so.40 libmpich.so.12 libmpi.so.12 libmpi_mpifh.so.40 libmpilike.so.1; do
    cc -shared -fPIC -Wl,-soname,"$name" -o "$name" lib.c || skip_all 'the compiler makes no libraries'
    cc -o "with-$name" main.c "$PWD/$name" -Wl,-rpath,"$PWD"
done

for name in libmpi.so.12 libmpich.so.12; do
    hn --local 2 "./with-$name"
    lacks "$name: its ranks find each other" "$ERR" HN313
    hn --local 2 --mpi none "./with-$name"
    exits "$name with --mpi none: it starts" 0
    has 'with a warning' "$ERR" "warning[HN313]: ./with-$name uses MPI ($name), and with --mpi none each of its 2 ranks"
    has 'and what to do' "$ERR" '= help: leave out --mpi none'
done
for name in libmpi.so.40 libmpi_mpifh.so.40; do
    hn --local 2 --mpi none "./with-$name"
    has "$name with --mpi none: a warning" "$ERR" "warning[HN313]: ./with-$name uses MPI ($name), and with --mpi none each of its 2 ranks"
    hn plan --local 2 --ranks 0 "./with-$name"
    has "$name: Open MPI is served with PMIx" "$OUT" 'PMIX_*='
    has 'and told that it was launched' "$OUT" OMPI_COMM_WORLD_SIZE=2
    lacks 'and with nothing else' "$OUT" PMI_FD=
    hn plan --local 2 --ranks 0 --mpi pmi1 "./with-$name"
    has '--mpi wins' "$OUT" PMI_FD=
done
PATH=$PATH:$PWD hn plan --local 2 --ranks 0 --chdir / with-libmpi.so.40
has 'a program in PATH' "$OUT" 'PMIX_*='
hn plan --local 2 --ranks 0 ./with-libmpi.so.12
has 'a program of MPICH has PMI' "$OUT" PMI_FD=
lacks 'and not PMIx' "$OUT" 'PMIX_*='

# The fake library asks for nothing: each rank is alone, which is told once.
hn --local 2 ./with-libmpi.so.12
exits 'ranks that do not ask for each other: they end well' 0
has 'with a warning' "$ERR" 'on localhost uses MPI (libmpi.so.12), and has ended without asking for the other ranks'
is 'once' "$(grep -c 'warning\[HN407\]' "$ERR")" 1
has 'and what to do' "$ERR" '--mpi pmix for Open MPI'
hn --local 1 ./with-libmpi.so.12
lacks 'one rank needs no other' "$ERR" HN407

# mpi4py itself is not needed to see that it is imported.
echo 'MPI = None' >mpi4py.py
printf 'import os\nfrom mpi4py import MPI\n' >top.py
printf 'try:\n    import mpi4py\nexcept ImportError:\n    pass\n' >maybe.py
printf '#!%s\nimport mpi4py\n' "$(type -P python3)" >script.py
chmod +x script.py
ln -s top.py link.py
hn --local 2 --mpi none python3 link.py
has 'a link to a script' "$ERR" 'warning[HN313]: link.py uses MPI'
hn --local 2 --mpi none python3 -u -W ignore top.py
has 'a script that imports mpi4py' "$ERR" 'warning[HN313]: top.py uses MPI (mpi4py), and with --mpi none each of its 2 ranks'
hn --local 2 python3 top.py
lacks 'whose ranks find each other else' "$ERR" HN313
has 'or are said to be alone' "$ERR" 'uses MPI (mpi4py), and has ended without asking'
hn --local 2 --mpi none ./script.py
has 'one that is a program itself' "$ERR" 'warning[HN313]: ./script.py uses MPI (mpi4py)'
hn --local 2 --mpi none python3 -m mpi4py
has 'the module' "$ERR" 'warning[HN313]: python -m mpi4py uses MPI (mpi4py)'
for odd in maybe.py '-c pass' '-m this' no-such-script.py ''; do
    # shellcheck disable=SC2086
    hn --local 2 --mpi none --stdin none python3 $odd
    lacks "python3 $odd: no word of MPI" "$ERR" HN313
done

hn --local 1 --mpi none ./with-libmpi.so.40
lacks 'one rank is a world' "$ERR" HN313
hn --local 2 --mpi none ./with-libmpilike.so.1
exits 'a library of another name' 0
lacks 'is none' "$ERR" HN313
hn --local 2 --mpi none true
lacks 'nor is a usual program' "$ERR" HN313
head -c 3000 with-libmpi.so.40 >cut
printf '#!/bin/sh\n' >script
chmod +x cut script
for odd in ./cut ./script . no-such-program; do
    hn --local 2 "$odd"
    lacks "$odd: no word of MPI" "$ERR" MPI
done
nothing_left 'nothing is left'
done_testing
