#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of MPICH's own tests, drawn by SEED, end under hnlaunch as under MPICH's mpiexec. The whole takes hours:
# sh tests/clients/run.sh --mpich-suite. Those of spawn/ are left out, since hnlaunch refuses MPI_Comm_spawn(), and so
# are programs that poll for a minute on two processors.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

type -P cc make python3 apt-get >/dev/null || skip_all 'needs cc, make, python3 and apt-get'
kit=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/mpi
bash "$ROOT/tests/lib/mpi_kit.sh" "$kit" mpich-tests 2>"$TMP/kit.log" || skip_all "no tests of MPICH: $(tail -n 1 "$TMP/kit.log")"

slow=spawn/,threads/,part/,pt2pt/sendall,pt2pt/multisend4,coll/allredmany,coll/allgatherv4,rma/manyget
slow+=,rma/rma_contig,rma/fetch_and_op_int_hwacc,rma/fetch_and_op_long_double_hwacc
run python3 "$ROOT/tests/clients/mpich_suite.py" -l -s "${SEED:-1}" -n 25 -m 2 -t "$(scaled 20)" -x "$slow" "$kit/mpich-tests/mpi" \
    "$HNLAUNCH -q --label none -w localhost:64" "$kit/mpich5/bin/mpiexec"
exits 'each program ends as under mpiexec' 0
sed 's/^/# /' "$OUT"
ok 'all could be compiled' grep -q '^25 programs: ' "$OUT"
nothing_left 'nothing is left'
done_testing
