#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian's PETSc, BLACS, mpi4py and HPC Challenge run with Open MPI as under its mpirun. With MPI_TESTS=long (that is
# tests/clients/run.sh --mpi) all of PETSc's tests of three solvers on several ranks, and the benchmarks on four.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/openmpi.sh" || exit 1

openmpi_kit programs
clear_openmpi
# shellcheck source=/dev/null
. "$KIT/openmpi-programs/env.sh"
OPENMPI=(-x 'OPAL_*' --oversubscribe --label none)

# A library of a library leads to MPI here: the program itself names none.
run gcc -O1 -o blacs "$ROOT/tests/clients/mpi/blacs_sum.c" "$LIBRARIES"/libscalapack-openmpi.so.2.? \
    -Wl,--as-needed -Wl,-rpath-link,"$LIBRARIES"
exits 'a program of BLACS: it is linked' 0
is 'without MPI' "$(readelf -d blacs | grep -c 'NEEDED.*libmpi')" 0
hn_exits 'it runs' 0 "${OPENMPI[@]}" --local 4 ./blacs
is 'and its processes find each other' "$(sort "$OUT")" "$(printf '%s 4 6\n' 0 1 2 3)"
lacks 'one MPI: no word of two' "$ERR" HN245

# A tutorial of PETSc, with the output that PETSc's own tests expect.
build_tutorial() { # NAME
    run gcc -O1 -w -o "$1" "$TUTORIALS/$1.c" -I"$PETSC/include" "$LIBRARIES"/libpetsc_real.so.?.?? -Wl,-rpath-link,"$LIBRARIES" \
        "${BUILD_ARGS[@]}" -lm
}
build_tutorial ex2
exits "PETSc's tutorial is built" 0
hn "${OPENMPI[@]}" --local 4 ./ex2 -pc_type bjacobi -pc_bjacobi_blocks 1 -ksp_monitor_short -sub_pc_type jacobi -sub_ksp_type gmres
exits 'it runs on 4 ranks' 0
is "and prints what PETSc's tests expect" "$(cat "$OUT")" "$(cat "$TUTORIALS/output/ex2_bjacobi.out")"

# Debian's own Python has mpi4py of Open MPI: a script does not show it.
if /usr/bin/python3 -c 'import mpi4py.MPI' 2>"$TMP/why"; then
    hn_exits 'mpi4py runs with --mpi pmix' 0 "${OPENMPI[@]}" --mpi pmix --local 3 /usr/bin/python3 -m mpi4py.bench helloworld
    is 'in one world' "$(cut -d, -f1 "$OUT" | sort)" "$(printf 'Hello, World! I am process %s of 3\n' 0 1 2 | cut -d, -f1)"
    hn_exits 'its messages go round' 0 "${OPENMPI[@]}" --mpi pmix --local 3 /usr/bin/python3 -m mpi4py.bench ringtest -n 65536
    has 'and are measured' "$OUT" 'time for 1 loops'
else
    skip 'mpi4py of Debian' "$(tail -n 1 "$TMP/why")"
fi

# HPC Challenge checks its results itself.
challenge() { # RANKS SIZE
    sed "s/^1000 /$2 /; s/^2 \(.*[PQ]s\)/1 \1/; s/^1 \(.*Qs\)/$1 \1/" "$KIT"/openmpi-programs/usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
    rm -f hpccoutf.txt
    hn_exits "HPC Challenge on $1 ranks: it ends well" 0 "${OPENMPI[@]}" --local "$1" "$KIT/openmpi-programs/usr/bin/hpcc"
    is 'with the right number of processes' "$(awk -F= '$1 == "CommWorldProcs" { print $2 }' hpccoutf.txt)" "$1"
    is 'and success' "$(awk -F= '$1 == "Success" { print $2 }' hpccoutf.txt)" 1
    is 'no check failed' "$(grep -c FAILED hpccoutf.txt)" 0
}
challenge 2 50

if [[ ${MPI_TESTS-} == long ]]; then
    challenge 4 1000
    while read -r name ranks test args; do
        [[ -x $name ]] || build_tutorial "$name"
        # shellcheck disable=SC2086
        hn "${OPENMPI[@]}" --local "$ranks" "./$name" $args </dev/null
        cp "$OUT" ours
        # shellcheck disable=SC2086
        "$KIT/openmpi-programs/usr/bin/orterun" --allow-run-as-root --oversubscribe -n "$ranks" "./$name" $args >theirs </dev/null 2>"$TMP/theirs.err"
        is "$name on $ranks ranks as under mpirun ($test)" "$(grep . ours)" "$(grep . theirs || echo 'mpirun: no output')"
    done < <(python3 "$ROOT/tests/clients/mpi/petsc_tests.py" "$TUTORIALS" ex2 ex23 ex5)
else
    skip "PETSc's tests on several ranks, and HPC Challenge on four" 'long: sh tests/clients/run.sh --mpi'
fi
nothing_left 'nothing is left'
done_testing
