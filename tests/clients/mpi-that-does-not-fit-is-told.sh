#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Scripts that load an MPI which no file shows: the libraries that a rank has mapped tell. With real libraries, of Open
# MPI 5 and of MPICH 5, called by ctypes.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/openmpi.sh
. "$ROOT/tests/lib/openmpi.sh" || exit 1

openmpi_kit
clear_openmpi
. "$KIT/openmpi5/env.sh"
open_mpi=$LD_LIBRARY_PATH/libmpi.so.40
bash "$ROOT/tests/lib/mpi_kit.sh" "$KIT" mpich5 2>"$TMP/why" || skip_all "no MPICH: $(tail -n 1 "$TMP/why")"
mpich=$KIT/mpich5/lib/libmpi.so.12

# Loads libraries, uses the first, and ends when the test has seen what it waits for.
cat >rank.py <<'END'
import ctypes, os, sys, time
libraries = [ctypes.CDLL(path) for path in sys.argv[2:]]
if sys.argv[1] == "init":
    libraries[0].MPI_Init(None, None)
    size = ctypes.c_int()
    world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(libraries[0], "ompi_mpi_comm_world")))
    libraries[0].MPI_Comm_size(world, ctypes.byref(size))
    print("world of", size.value, flush=True)
while not os.path.exists("stop"):
    time.sleep(0.02)
if sys.argv[1] == "init":
    libraries[0].MPI_Finalize()
END
python=$(type -P python3)

# Runs until LINE is on standard error, then lets the ranks end.
until_told() { # LINE OPTION...
    local line=$1
    shift
    rm -f stop
    start -x 'OPAL_*' --oversubscribe --local 2 --label none "$@"
    ok "it is seen: $line" wait_for grep -q "$line" "$ERR"
    : >stop
    finish
    exits 'the ranks end well' 0
}

until_told 'rank 0 has loaded .*/libmpi.so.40' -v "$python" rank.py init "$open_mpi"
is 'Open MPI over PMI: two worlds of one' "$(cat "$OUT")" "$(printf 'world of 1\nworld of 1')"
has 'it is told' "$ERR" 'warning[HN407]: rank 0 on localhost uses MPI (Open MPI), and has ended without asking for the other ranks'
has 'with the way that fits' "$ERR" 'name the way of its MPI: --mpi pmix'
is 'once' "$(grep -c HN407 "$ERR")" 1

until_told 'rank 0 has loaded .*/libmpi.so.40' -v --mpi pmix "$python" rank.py init "$open_mpi"
is 'that way: one world of two' "$(cat "$OUT")" "$(printf 'world of 2\nworld of 2')"
lacks 'and no word' "$ERR" HN407

until_told 'rank 0 has loaded .*/libmpi.so.12' -v --mpi pmix "$python" rank.py load "$mpich"
has 'MPICH with PMIx: it is told' "$ERR" 'warning[HN407]: rank 0 on localhost uses MPI (MPICH'
has 'with the way that fits it' "$ERR" 'name the way of its MPI: --mpi pmi1'
until_told 'rank 0 has loaded .*/libmpi.so.12' -v "$python" rank.py load "$mpich"
lacks 'a library that fits and was not called: no word' "$ERR" HN407

# Two MPIs in one process, while it runs; also behind a shell.
until_told HN245 sh -c "$python rank.py load $open_mpi $mpich; true"
has 'two MPIs: a warning' "$ERR" 'rank 0 has loaded two MPI libraries that exclude each other: /'
has 'the one' "$ERR" '/libmpi.so.40'
has 'and the other' "$ERR" '/libmpi.so.12'
is 'once, though two ranks have them' "$(grep -c HN245 "$ERR")" 1
nothing_left 'nothing is left'
done_testing
