#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs end in many ways; the last line and summary.json name the rank, the exit code and the reason of the first cause.
#
# The ways are rows of endings/*.table; tests/lib/endings.sh says how they are read. ENDINGS=NAME runs one table.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
type -P cc c++ >/dev/null || skip_all 'needs cc and c++'
. "$ROOT/tests/lib/endings.sh" || exit 1

# shellcheck disable=SC2086
endings_run "$ROOT"/tests/clients/endings/${ENDINGS:-*}.table
nothing_left 'nothing is left'
done_testing
