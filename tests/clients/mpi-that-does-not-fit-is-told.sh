#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Scripts that load an MPI which no file shows: the libraries that a rank has mapped tell. With real libraries, of Open
# MPI 5 and of MPICH 5, called by ctypes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/openmpi.sh" || exit 1

openmpi_kit
clear_openmpi
# shellcheck source=/dev/null
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

# Runs until LINE is on standard error, then lets the ranks end, with CODE in the end.
until_told() { # LINE CODE OPTION...
    local line=$1 code=$2
    shift 2
    rm -f stop
    start -x 'OPAL_*' --oversubscribe --local 2 --label none "$@"
    ok "it is seen: $line" wait_for grep -q "$line" "$ERR"
    : >stop
    exits 'the end' "$code" finish
}

until_told 'rank 0 has loaded .*/libmpi.so.40' 78 -v "$python" rank.py init "$open_mpi"
is 'Open MPI over PMI: two worlds of one' "$(cat "$OUT")" "$(printf 'world of 1\nworld of 1')"
ok 'it is told' grep -q 'warning.HN407.: rank [01] on localhost uses MPI (Open MPI), and has ended without asking for the other ranks' "$ERR"
has 'with the way that fits' "$ERR" 'name the way of its MPI: --mpi pmix'
is 'once' "$(grep -c HN407 "$ERR")" 1
has 'and the job fails, as there are two' "$ERR" 'error[HN510]: ranks were worlds of one'
verdict_has 'the last line says so' 'ranks 0 and 1 were each a world of one: their MPI (Open MPI) needs --mpi pmix  (exit 78)'
until_told 'rank 0 has loaded .*/libmpi.so.40' 0 -v "$python" rank.py load "$open_mpi"
has 'a library that was not called: the warning' "$ERR" 'uses MPI (Open MPI), and has ended without asking'
lacks 'and no more' "$ERR" HN510

until_told 'rank 0 has loaded .*/libmpi.so.40' 0 -v --mpi pmix "$python" rank.py init "$open_mpi"
is 'that way: one world of two' "$(cat "$OUT")" "$(printf 'world of 2\nworld of 2')"
lacks 'and no word' "$ERR" HN407

until_told 'rank 0 has loaded .*/libmpi.so.12' 0 -v --mpi pmix "$python" rank.py load "$mpich"
has 'MPICH with PMIx: it is told' "$ERR" 'warning[HN407]: rank 0 on localhost uses MPI (MPICH'
has 'with the way that fits it' "$ERR" 'name the way of its MPI: --mpi pmi1'
until_told 'rank 0 has loaded .*/libmpi.so.12' 0 -v "$python" rank.py load "$mpich"
lacks 'a library that fits and was not called: no word' "$ERR" HN407

# Two MPIs in one process, while it runs; also behind a shell.
until_told HN245 0 sh -c "$python rank.py load $open_mpi $mpich; true"
has 'two MPIs: a warning' "$ERR" 'rank 0 has loaded two MPI libraries that exclude each other: /'
has 'the one' "$ERR" '/libmpi.so.40'
has 'and the other' "$ERR" '/libmpi.so.12'
is 'once, though two ranks have them' "$(grep -c HN245 "$ERR")" 1

# Programs that live only a moment, and are hidden from the command line. One rank may use an MPI of its own.
cat >moment.py <<'END'
import ctypes, os, subprocess, sys, time
if os.environ.get("ONLY", os.environ.get("RANK")) == os.environ.get("RANK"):
    if sys.argv[2:]:
        sys.exit(subprocess.call([sys.executable, __file__, sys.argv[1]]))
    library = ctypes.CDLL(sys.argv[1])
    library.MPI_Init(None, None)
    time.sleep(0.3) # some looks of an agent on a busy machine
    library.MPI_Finalize()
END
moment() { hn -x 'OPAL_*' --oversubscribe --local 3 --label none "$@"; }
exits 'Open MPI for a moment in each rank: the job fails' 78 moment "$python" moment.py "$open_mpi"
ok 'with the way that fits' grep -qE '^hnlaunch: failed after .*: ranks [01] and [12] were each a world of one: their MPI .Open MPI. needs --mpi pmix' "$ERR"
exits 'two processes below it, too' 78 moment sh -c "ulimit -c 0; '$python' moment.py '$open_mpi' below; true"
exits 'or with an environment that hides hnlaunch' 78 moment --mpi pmix env -u PMIX_RANK -u PMIX_NAMESPACE "$python" moment.py "$open_mpi"
has 'which is told' "$ERR" 'the variables PMIX_* of hnlaunch did not reach their MPI (Open MPI)'
exits 'MPICH, likewise' 78 moment env -u PMI_FD -u PMI_RANK -u PMI_SIZE "$python" moment.py "$mpich"
has 'it is told, too' "$ERR" "the variables PMI_* of hnlaunch did not reach their MPI (MPICH's ABI)"
exits 'so does PMIx for Open MPI' 0 moment --mpi pmix "$python" moment.py "$open_mpi"
exits 'one rank alone is no failure' 0 moment -x ONLY=1 "$python" moment.py "$open_mpi"
for library in "$open_mpi" "$mpich"; do
    exits 'nor are all with --mpi none' 0 moment --mpi none "$python" moment.py "$library"
    lacks 'and no word of it' "$ERR" '[HN'
done

# A launcher inside: its processes find each other.
if [[ -x $OPAL_PREFIX/bin/mpirun ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for way in '--per-node --local 1' '--local 2'; do
        # shellcheck disable=SC2086
        hn -x 'OPAL_*' -x 'OMPI_ALLOW*' --oversubscribe $way --label none "$OPAL_PREFIX/bin/mpirun" --oversubscribe -n 2 "$python" moment.py "$open_mpi"
        lacks "$way mpirun: no world of one" "$ERR" HN510
        exits 'and it ends well' 0
    done
fi
nothing_left 'nothing is left'
done_testing
