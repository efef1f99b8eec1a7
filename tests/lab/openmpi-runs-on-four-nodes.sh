#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of Open MPI 4 and 5 on four nodes: one world, the ranks of a node share memory, codes and names arrive.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/openmpi.sh" || exit 1

openmpi_kit
lab_up 4 2
for version in 4 5; do
    openmpi $version
    lab_hn "${OPENMPI[@]}" -H "$TMP/hosts.txt" --label none ./hello
    exits "Open MPI $version: eight ranks on four nodes" 0
    ok "Open MPI $version: one world, two ranks of a node share memory" hello_is 8 2
    lab_hn "${OPENMPI[@]}" -H "$TMP/hosts.txt" --map node --label none ./hello
    ok "Open MPI $version: ranks that go round the nodes" hello_is 8 2
    lab_hn "${OPENMPI[@]}" -H "$TMP/hosts.txt" --tree 1 --label none ./hello
    ok "Open MPI $version: through a tree" hello_is 8 2
    # Without collected data every rank asks for the data of its peers.
    lab_hn "${OPENMPI[@]}" -x OMPI_MCA_pmix_base_async_modex=1 -x OMPI_MCA_opal_pmix_collect_all_data=0 \
        -x OMPI_MCA_pmix_base_collect_data=0 -H "$TMP/hosts.txt" --label none ./hello
    ok "Open MPI $version: data of ranks on request" hello_is 8 2
    if [[ $version == 4 ]]; then
        lab_hn "${OPENMPI[@]}" --mpi pmi1 -H "$TMP/hosts.txt" --map node --label none ./hello
        ok "Open MPI $version: by PMI-1, with ranks that go round the nodes" hello_is 8 2
    fi
    lab_hn "${OPENMPI[@]}" -H "$TMP/hosts.txt" ./hello abort 42
    exits "Open MPI $version: MPI_Abort's code is the exit code" 42
    verdict_has "Open MPI $version: the rank is named" 'rank 7' node004
    lab_hn "${OPENMPI[@]}" -H "$TMP/hosts.txt" ./hello leave
    exits "Open MPI $version: a rank that leaves without MPI_Finalize() is a failure" 1
    verdict_has "Open MPI $version: it is named" 'rank 7' node004
done
lab_nothing_left 'nothing is left on the nodes'

done_testing
