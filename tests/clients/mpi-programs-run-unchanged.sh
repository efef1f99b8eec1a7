#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of real MPI libraries on this machine: their ranks meet, abort and leave as under their own launchers.
#
# PyPI's MPICH 5 and Debian's client of PMI-2 are fetched; with MPI_TESTS=long also Debian's MPICH 4 and Intel MPI, which
# else are used only if they are there.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

type -P cc python3 >/dev/null || skip_all 'needs cc and python3'
kit=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/mpi
sources=$ROOT/tests/clients/mpi
libs=usr/lib/$(cc -print-multiarch)

have() { # NAME [large]: sets $home
    home=$kit/$1
    [[ -e $home/ready || ${2-} != large || ${MPI_TESTS-} == long ]] || return
    bash "$ROOT/tests/lib/mpi_kit.sh" "$kit" "$1" 2>"$TMP/kit.log" || return
}

check() { # NAME PROGRAM ENV-ARG...
    local name=$1 program=$2
    shift 2
    hn --local 4 --label none "$@" "$program"
    is "$name: four ranks meet" "$RC $(cat "$OUT")" '0 4 ranks met, 4 to 4 on a node'
    hn --local 1 --label none "$@" "$program"
    is "$name: one rank is a world, too" "$RC $(cat "$OUT")" '0 1 ranks met, 1 to 1 on a node'
    hn --local 3 --label none --mpi none "$@" "$program"
    is "$name: with --mpi none each is alone" "$RC $(sort -u "$OUT")" '0 1 ranks met, 1 to 1 on a node'
    hn_exits "$name: the code of MPI_Abort() is the exit code" 17 --local 3 "$@" "$program" abort 17
    has "$name: and its rank is named" "$ERR" ': rank 2 on localhost aborted the job: MPI_Abort() with code 17'
    hn_exits "$name: a rank that leaves is a failure" 1 --local 3 "$@" "$program" leave
    has "$name: and is named" "$ERR" 'error[HN406]: a rank left without MPI_Finalize()'
    hn --local 3 --label none "$@" "$program" names
    is "$name: a published name is found" "$(cat "$OUT")" 'the name was found'
    hn --local --label none -n 1 "$@" "$program" programs : -n 2 "$program" programs
    is "$name: MPI_APPNUM is the number of the program" "$(cat "$OUT")" '0 1 1'
    hn -w localhost:4,127.0.0.1:4 --gpus-per-rank 0 --role a --nodes 1 -n 2 "$@" "$program" : --role b -n 3 "$program"
    is "$name: roles are worlds of their own" "$RC $(sort "$OUT" | xargs)" \
        '0 a:0 | 2 ranks met, 2 to 2 on a node b:0 | 3 ranks met, 3 to 3 on a node'
}

# Runs docs/howto/mpi.md from top to bottom: what follows a command is what it prints, in any order.
page() {
    local line command='' path=$PATH
    awk '/^```(c|python)$/ { getline; file = $2; inside = 1 } /^```$/ { inside = 0 } inside { print > file }' "$ROOT/docs/howto/mpi.md"
    PATH=${HNLAUNCH%/*}:$home/bin:$PATH
    while IFS= read -r line <&7; do
        case $line in
            '$ '*) page_command "$command" ; command=${line#??} ; : >want ;;
            *) printf '%s\n' "$line" >>want ;;
        esac
    done 7< <(awk '/^```console$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$ROOT/docs/howto/mpi.md")
    page_command "$command"
    PATH=$path
}

page_command() { # COMMAND
    [[ -n $1 ]] || return 0
    run bash -c "$1"
    is "the page about MPI: $1" "$RC: $(sort "$OUT")" "0: $(sort want)"
}

if have mpich5 && "$home/bin/mpicc" -o check5 "$sources/mpi_check.c"; then
    check MPICH "$PWD/check5"
    hn --local 2 --label none sh -c './check5 && ./check5' # older ones close the connection in MPI_Finalize()
    is 'MPICH: two programs of a script' "$RC $(uniq -c "$OUT" | xargs)" '0 2 2 ranks met, 2 to 2 on a node'
    hn --local 4 --label none --mpi pmi-port ./check5
    is 'MPICH: four ranks meet at a port' "$RC $(cat "$OUT")" '0 4 ranks met, 4 to 4 on a node'
    hn_exits 'MPICH: and the code of MPI_Abort() is the exit code' 17 --local 3 --mpi pmi-port ./check5 abort 17
    hn --local 2 --label none ./check5 spawn
    is 'MPICH: MPI_Comm_spawn() returns an error' "$RC $(cat "$OUT")" '0 spawn was refused'
    # Without NOLOCAL the ranks of a node meet in shared memory first.
    start --local 4 --wait-warn 1s --label none -x MPIR_CVAR_NOLOCAL=1 \
        sh -c 'until [ "$HN_RANK" != 2 ] || [ -e go ]; do sleep 0.1; done; exec ./check5'
    ok 'MPICH: ranks that wait in MPI_Init() are told' wait_for grep -q 'HN404.*ranks 0-1,3 wait in barrier `PMI` for' "$ERR"
    has 'MPICH: with the rank that has not come' "$ERR" 'rank 2 on localhost has not come'
    touch go
    exits 'MPICH: when it comes the job goes on' 0 finish
    cat >sum.py <<'END'
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.allreduce(world.rank), flush=True)
END
    hn --local 3 --label none "$home/bin/python" sum.py
    is 'mpi4py: three ranks add their numbers' "$(sort -u "$OUT")" 3
    hn --local 3 "$home/bin/python" -c 'from mpi4py import MPI; MPI.COMM_WORLD.rank == 1 and MPI.COMM_WORLD.Abort(5); MPI.COMM_WORLD.barrier()'
    exits 'mpi4py: the code of Abort()' 5
    cat >raises.py <<'END'
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 1:
    raise ValueError("sample 17 has no label")
world.barrier()
END
    start --local 3 "$home/bin/python" raises.py
    ok 'mpi4py: a rank that raises while the others wait for it is told' \
        wait_for grep -q 'HN504.*rank 1 on localhost waits in MPI_Finalize() for .* after ValueError: sample 17' "$ERR"
    finish_by TERM
    hn_exits 'mpi4py: with -m mpi4py it ends the job' 1 --local 3 "$home/bin/python" -m mpi4py raises.py
    verdict_has 'mpi4py: and gives the reason' 'rank 1 on localhost aborted the job' ': ValueError: sample 17 has no label'
    page
    if [[ ${MPI_TESTS-} == long ]]; then
        hn --local 200 --label none ./check5
        is 'MPICH: 200 ranks' "$(cat "$OUT")" '200 ranks met, 200 to 200 on a node'
    fi
else
    skip 'MPICH 5' "cannot fetch it: $(tail -n 1 "$TMP/kit.log")"
fi
if have impi large; then
    intel=(-x "LD_LIBRARY_PATH=$home/lib" -x "FI_PROVIDER_PATH=$home/lib")
    if [[ -e check5 ]]; then
        check 'Intel MPI' "$PWD/check5" "${intel[@]}"
    fi
    hn --local 4 --label none --mpi pmi-port "${intel[@]}" "$PWD/check5"
    is 'Intel MPI: four ranks meet at a port' "$RC $(cat "$OUT")" '0 4 ranks met, 4 to 4 on a node'
    echo 8 >lengths
    hn --local 2 --label none "${intel[@]}" "$home/bin/IMB-MPI1" -npmin 2 -msglen lengths PingPong Allreduce
    exits 'Intel MPI: its benchmarks' 0
    has 'run on all ranks' "$OUT" '#processes = 2'
else
    skip 'Intel MPI' 'MPI_TESTS=long fetches it (330 MB)'
fi
if have mpich4 large; then
    cc -o check4 "$sources/mpi_check.c" -I"$home/$libs/mpich/include" -L"$home/$libs" -lmpich -Wl,-rpath-link,"$home/$libs"
    check 'MPICH 4.0' "$PWD/check4" -x "LD_LIBRARY_PATH=$home/$libs"
    hn --local 4 --label none --mpi pmi-port -x "LD_LIBRARY_PATH=$home/$libs" sh -c './check4 && ./check4'
    is 'MPICH 4.0: two programs of a script at a port' "$RC $(uniq -c "$OUT" | xargs)" '0 2 4 ranks met, 4 to 4 on a node'
else
    skip 'MPICH 4.0' 'MPI_TESTS=long fetches it'
fi
if have pmi2 && cc -o pmi2 "$sources/pmi2_check.c" -I"$home/usr/include" -L"$home/$libs" -lpmi2; then
    for kind in auto pmi2; do
        hn --local 3 --label none --mpi "$kind" -x "LD_LIBRARY_PATH=$home/$libs" ./pmi2
        is "PMI-2 of Slurm's client with --mpi $kind" "$RC $(cat "$OUT")" '0 3 ranks met, here'
    done
    hn_exits 'is refused with --mpi pmi1' 1 --local 3 --mpi pmi1 -x "LD_LIBRARY_PATH=$home/$libs" ./pmi2
else
    skip "Slurm's PMI-2" "cannot fetch it: $(tail -n 1 "$TMP/kit.log")"
fi
nothing_left 'nothing is left'
done_testing
