#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/howto/slurm.md is run from top to bottom with a real Slurm on four nodes, and prints what it says.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/page.sh" || exit 1
. "$ROOT/tests/lib/slurm.sh" || exit 1

export PATH=$PLAIN:$PATH
lab_up 4
slurm_up
page_run() { lab_run bash -c "$1"; }
page_files "$ROOT/docs/howto/slurm.md"
page_commands "$ROOT/docs/howto/slurm.md"
slurm_nothing_left 'nothing is left on the nodes'
done_testing
