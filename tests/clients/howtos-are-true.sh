#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every page of docs/howto is run from top to bottom and prints what it says, where its needs are met (tests/lib/page.sh).
# HOWTO=NAME runs that page alone; the folder of TORCH_PYTHON (default /usr/bin/python3) comes early in PATH.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/page.sh" || exit 1

TORCH_PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
export PATH=$PLAIN:${TORCH_PYTHON%/*}:$PATH PKG_CONFIG_PATH=$PLAIN/meson-uninstalled LD_LIBRARY_PATH=$PLAIN OMP_NUM_THREADS=1
export HNLAUNCH_LIBRARY=$PLAIN/libhnlaunch.so.0
LIMIT=120

run_page() { # PAGE
    local nodes
    export PYTHONPATH=${PAGE_MODULES:+$PAGE_MODULES:}$ROOT/packaging/python
    nodes=$(page_words "$1" | grep -o 'lab:[0-9]*')
    if [[ -n $nodes ]]; then
        lab_up "${nodes#lab:}" 2
        cp "$TMP/hosts.txt" .
        page_run() { lab_run bash -c "$1"; }
    else
        page_run() { run bash -c "$1"; }
    fi
    page_files "$1"
    page_commands "$1"
    [[ -z $nodes ]] || lab down
}

pages=0
for page in "$ROOT"/docs/howto/${HOWTO:-*}.md; do
    [[ -e $page ]] || continue
    pages=$((pages + 1))
    [[ " $(page_words "$page") " != *' slurm '* ]] || continue # lab/slurm-page-is-true.sh
    [[ " $(page_words "$page") " != *' sge '* ]] || continue   # lab/sge-page-is-true.sh
    [[ " $(page_words "$page") " != *' ray-cluster '* ]] || continue # frameworks/ray-cluster-runs-jobs.sh
    name=$(basename "$page" .md)
    echo "# $page"
    page_needs "$page"
    if [[ -n $LACKS ]]; then
        skip "the page $name" "it needs$LACKS"
        continue
    fi
    mkdir "$TMP/work/$name"
    cd "$TMP/work/$name" || exit 1
    before=$tests
    run_page "$page"
    ok "the page $name has commands" test "$tests" -gt "$before"
    cd "$TMP/work" || exit 1
done
ok 'there are pages' test "$pages" -gt 0
done_testing
