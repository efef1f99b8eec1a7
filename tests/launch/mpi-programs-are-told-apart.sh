#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of Open MPI are served with PMIx, others with PMI. Several ranks of an MPI program with --mpi none would
# each be a world of one: that is told before they start. The libraries are empty ones with the right names.
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
    hn_exits "$name with --mpi none: it starts" 0 --local 2 --mpi none "./with-$name"
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

# Each role is served as it needs; roles of one world as the first MPI among them.
ways() { awk '/^# rank/ { rank = $3 } /^(PMIX_[*]|PMI_FD)=/ { sub("=.*", ""); print rank, $0 }' "$OUT" | paste -sd,; }
hn plan -w localhost:2 --gpus-per-rank 0 --ranks 0,2,4 --role a ./with-libmpi.so.40 : --role b --on a --ppn 2 ./with-libmpi.so.12 : --role c --on a --ppn 2 true
is 'Open MPI in one role leaves the others as they are' "$(ways)" '0 PMIX_*,2 PMI_FD,4 PMI_FD'
hn plan -w localhost:2 --gpus-per-rank 0 --ranks 0,2 --role a --world w true : --role b --on a --ppn 2 --world w ./with-libmpi.so.40
is 'but those of its world' "$(ways)" '0 PMIX_*,2 PMIX_*'
hn plan -w localhost:2 --gpus-per-rank 0 --mpi none --ranks 0,2 --role a --mpi pmi1 true : --role b --on a --ppn 2 true
is '--mpi of the job is for roles without one' "$(ways)" '0 PMI_FD'

# MPI behind two other libraries, which the loader finds in its own ways: DT_RPATH of the program serves the libraries of
# its libraries, DT_RUNPATH does not.
mkdir deep
echo 'int MPI_Init(void); int deep(void); int deep(void) { return MPI_Init(); }' >deep.c
echo 'int deep(void); int middle(void); int middle(void) { return deep(); }' >middle.c
printf 'int middle(void);\nint main(void) { return middle(); }\n' >outer.c
cc -shared -fPIC -Wl,-soname,libdeep.so -o deep/libdeep.so deep.c "$PWD/libmpi.so.40"
cc -shared -fPIC -Wl,-soname,libmiddle.so -o deep/libmiddle.so middle.c "$PWD/deep/libdeep.so"
for tags in disable enable; do
    cc -o "outer-$tags" outer.c "$PWD/deep/libmiddle.so" -Wl,-rpath,"\$ORIGIN/deep:$PWD" -Wl,--$tags-new-dtags \
        -Wl,-rpath-link,"$PWD/deep:$PWD"
done
hn plan --local 2 --ranks 0 ./outer-disable
has 'a library of a library leads to Open MPI: DT_RPATH' "$OUT" 'PMIX_*='
hn plan --local 2 --ranks 0 ./outer-enable
lacks 'DT_RUNPATH serves the program only, as for the loader' "$OUT" 'PMIX_*='
hn plan --local 2 --ranks 0 -x LD_LIBRARY_PATH="$PWD/deep" ./outer-enable
has 'LD_LIBRARY_PATH of the ranks serves all' "$OUT" 'PMIX_*='
LD_LIBRARY_PATH=$PWD/deep hn plan --local 2 --ranks 0 ./outer-enable
has 'so does that of this shell' "$OUT" 'PMIX_*='
LD_LIBRARY_PATH=$PWD/deep hn plan --local 2 --ranks 0 --unset LD_LIBRARY_PATH ./outer-enable
lacks 'unless it is unset' "$OUT" 'PMIX_*='
hn --local 2 --mpi none -x LD_LIBRARY_PATH="$PWD/deep:$PWD" ./outer-enable
has 'the ranks have the same libraries' "$ERR" 'warning[HN313]: ./outer-enable uses MPI (libmpi.so.40)'
exits 'and start' 0

# The program stands behind other words, on the command line or in a script.
mkdir -p bin wrappers/sub
cp with-libmpi.so.40 bin/solver
cp with-libmpi.so.40 wrappers/sub/solver
printf '#!/bin/sh\n# runs ./with-libmpi.so.12\nulimit -c 0\nexec ./with-libmpi.so.40 "$@"\n' >wrapper.sh
printf 'cd wrappers/sub\n./solver\n' >plain.txt
printf '#!/usr/bin/env bash\nHERE=$(cd "$(dirname "$0")" && pwd)\nexec nice "$HERE/sub/solver"\n' >wrappers/run
printf '#!/bin/sh\nexec "$@"\n' >forwards.sh
chmod +x wrapper.sh wrappers/run forwards.sh
program=./with-libmpi.so.40
while read -r words; do
    eval "set -- $words"
    PATH=$PATH:$PWD/bin hn plan --local 2 --ranks 0 "$@"
    has "served with PMIx: $words" "$OUT" 'PMIX_*='
    lacks 'and with nothing else' "$OUT" PMI_FD=
done <<END
env A=1 $program
env -u A solver
timeout -k 1 5 $program
nice -n 3 $program
taskset 0x1 $program
stdbuf -oL $program
sh -c $program
sh -c 'ulimit -c 0; exec $program -x'
bash -c 'cd wrappers && ./sub/solver'
env nice sh -c "timeout 5 '$program'"
./wrapper.sh
bash wrapper.sh
sh plain.txt
timeout 5 bash -e ./wrapper.sh in.dat
wrappers/run
./forwards.sh $program
python3 -c 'import subprocess; subprocess.run(["$program"])'
END
for words in 'env ./with-libmpi.so.12' 'sh -c true' 'mpirun -n 2 ./with-libmpi.so.40' 'env mpiexec ./with-libmpi.so.40' 'cat no-such-file'; do
    # shellcheck disable=SC2086
    hn plan --local 2 --ranks 0 $words
    has "served with PMI: $words" "$OUT" PMI_FD=
    lacks 'and with nothing else' "$OUT" 'PMIX_*='
done
hn --local 2 --mpi none env ./with-libmpi.so.12
has '--mpi none: the program is named, not the word before it' "$ERR" 'warning[HN313]: ./with-libmpi.so.12 uses MPI (libmpi.so.12)'
hn --local 2 --mpi none sh -c 'exec ./bin/../with-libmpi.so.12'
has 'so it is in a text' "$ERR" 'warning[HN313]: ./bin/../with-libmpi.so.12 uses MPI (libmpi.so.12)'

# Two MPIs in one process.
cc -o both -Wl,--no-as-needed outer.c "$PWD/deep/libmiddle.so" "$PWD/libmpich.so.12" -Wl,-rpath,"$PWD/deep:$PWD" \
    -Wl,--disable-new-dtags
hn plan --local 2 --ranks 0 ./both
has 'two MPIs: a warning' "$ERR" 'warning[HN245]: ./both would load two MPI libraries that exclude each other: libmpi.so.40 (Open MPI) and libmpich.so.12'
has 'which library needs the one' "$ERR" 'note: libdeep.so needs libmpi.so.40'
has 'and which the other' "$ERR" 'note: ./both needs libmpich.so.12'
has 'whose functions are called' "$ERR" 'its calls of MPI go to libmpich.so.12, which comes first'
has 'and what to do' "$ERR" 'build the program and all of its libraries with one MPI'
has 'PMI is for the first' "$OUT" PMI_FD=
hn plan --local 1 --ranks 0 ./both
lacks 'one rank: no word' "$ERR" HN245
for name in with-libmpi.so.40 with-libmpi.so.12 outer-disable; do
    hn plan --local 2 --ranks 0 "./$name"
    lacks "$name has one MPI" "$ERR" HN245
done

# The fake library asks for nothing: each rank is alone, which is told once.
hn_exits 'ranks that do not ask for each other: they end well' 0 --local 2 ./with-libmpi.so.12
has 'with a warning' "$ERR" 'on localhost uses MPI (libmpi.so.12), and has ended without asking for the other ranks'
is 'once' "$(grep -c 'warning\[HN407\]' "$ERR")" 1
has 'and what to do' "$ERR" '--mpi pmix for Open MPI'
hn --local 1 ./with-libmpi.so.12
lacks 'one rank needs no other' "$ERR" HN407

# Ranks that begin an MPI of their own, which no file shows: MPI_Init() opens such a file, and keeps it.
cat >world.c <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
        char name[64];
        const char *only = getenv("ONLY");
        if (only && strcmp(only, getenv("RANK")) != 0)
                return 0;
        snprintf(name, sizeof(name), "/dev/shm/%s%d", argc > 1 ? argv[1] : "", getpid());
        if (open(name, O_CREAT | O_RDWR, 0600) < 0 || unlink(name) < 0)
                return 9;
        sleep(argc > 2 ? atoi(argv[2]) : 1);
        return 0;
}
END
cc -o world world.c
"$HNLAUNCH" --local 2 ./world open_mpi. 100 2>long.err &
long=$!
hn_exits 'two ranks, each in a world of one: the job fails' 78 --local 2 ./world open_mpi.
has 'with a number' "$ERR" 'error[HN510]: ranks were worlds of one'
has 'and what to do if that is right' "$ERR" 'help: ranks that are worlds of one on purpose need --mpi none'
verdict_has 'the last line says so' 'ranks 0 and 1 were each a world of one: their MPI (Open MPI) needs --mpi pmix  (exit 78)'
hn_exits 'below a shell, too' 78 --local 2 sh -c './world open_mpi.; true'
hn --local 2 ./world mpich_shm_
has "MPICH's" "$ERR" "ranks 0 and 1 were each a world of one: the variables PMI_* of hnlaunch did not reach their MPI (MPICH's ABI)"
hn_exits 'one of two: no failure' 0 --local 2 -x ONLY=1 ./world open_mpi.
has 'but a warning' "$ERR" 'warning[HN407]: rank 1 on localhost uses MPI (Open MPI)'
hn --local 2 --max-restarts 1 sh -c 'if [ "$RANK" = "$HN_RESTART" ]; then ./world open_mpi.; elif [ "$RANK" = 1 ]; then sleep 3; exit 3; fi'
exits 'one of two in each of two attempts: no failure' 0
has 'of which there were two' "$ERR" 'restart 1 of 1: rank 1'
hn_exits '--mpi none: no failure' 0 --local 2 --mpi none ./world open_mpi.
lacks 'and no word' "$ERR" '[HN'
hn_exits 'one rank is a world' 0 --local 1 ./world open_mpi.
lacks 'of which nothing is said' "$ERR" '[HN'
hn -w localhost:2 --gpus-per-rank 0 --role a --nodes 1 -n 1 ./world open_mpi. : --role b --on a ./world open_mpi.
exits 'a rank in each of two roles: no failure' 0
lacks 'as a world of one is right there' "$ERR" '[HN'
hn -w localhost:4 --gpus-per-rank 0 --role a --nodes 1 -n 1 ./world open_mpi. : --role b --on a --ppn 2 ./world open_mpi.
exits 'two ranks of a role' 78
verdict_has 'are named by their role' 'role b, rank 0 and role b, rank 1 were each a world of one: their MPI (Open MPI) needs --mpi pmix  (exit 78)'
cp world mpirun
ok 'a rank that is alone for long is told' wait_for grep -q 'HN511.: .*rank [01] has called MPI_Init() of Open MPI, and is a world of one:' long.err
kill -TERM "$long"
wait "$long"
is 'once' "$(grep -c HN511 long.err)" 1
lacks 'ranks that are stopped are no failure' long.err HN510
hn_exits 'what a launcher does is its own' 0 --local 2 sh -c './mpirun open_mpi.; true'
hn_exits 'another file is none of MPI' 0 --local 2 ./world other.

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
printf 'exec python3 -u top.py\n' >runs.sh
for words in 'env -u A python3 top.py' 'timeout 5 ./script.py' 'sh runs.sh'; do
    # shellcheck disable=SC2086
    hn --local 2 --mpi none $words
    has "behind other words: $words" "$ERR" 'uses MPI (mpi4py), and with --mpi none each of its 2 ranks'
done
for odd in maybe.py '-c pass' '-m this' no-such-script.py ''; do
    # shellcheck disable=SC2086
    hn --local 2 --mpi none --stdin none python3 $odd
    lacks "python3 $odd: no word of MPI" "$ERR" HN313
done

hn --local 1 --mpi none ./with-libmpi.so.40
lacks 'one rank is a world' "$ERR" HN313
hn_exits 'a library of another name' 0 --local 2 --mpi none ./with-libmpilike.so.1
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
