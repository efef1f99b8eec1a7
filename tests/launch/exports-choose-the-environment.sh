#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole environment goes out; -x, --export, --env-file and --unset change that.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

seen() { # NAME: what rank 0 saw
    grep -z "^$1=" "$TMP/dump/0.env" | tr '\0' '\n'
}
dump() {
    hn "$@" "$WORKERS/worker_dump"
    [[ $RC == 0 ]] || fail "dump $*"
}

export FOO=1 FOOD=2 BAR='3 4'
dump --local 1
is 'a variable of the shell goes out' "$(seen FOO)" FOO=1

dump --local 1 -x FOO=changed -x NEW=n
is '-x NAME=VALUE replaces' "$(seen FOO)" FOO=changed
is '-x NAME=VALUE adds' "$(seen NEW)" NEW=n

dump --local 1 -x EMPTY=
is '-x NAME= is empty, not unset' "$(seen EMPTY)" EMPTY=

dump --local 1 --unset FOO
is '--unset removes' "$(seen FOO)" ''
is '--unset removes only that name' "$(seen FOOD)" FOOD=2

dump --local 1 --export NONE -x BAR -x "DUMP_TO=$DUMP_TO"
is '--export NONE with -x NAME sends that one' "$(seen BAR)" 'BAR=3 4'

dump --local 1 --export NONE -x 'FOO*' -x "DUMP_TO=$DUMP_TO"
is '-x takes patterns' "$(seen FOO)$(seen FOOD)" FOO=1FOOD=2

printf '# a comment\nFILE_A=one two\n\nFILE_B="quoted"\nFOO=from file\n' >vars
dump --local 1 --env-file vars
is '--env-file sets' "$(seen FILE_A)" 'FILE_A=one two'
is '--env-file replaces what the shell has' "$(seen FOO)" 'FOO=from file'
dump --local 1 --env-file vars -x FOO=mine
is '-x wins over --env-file' "$(seen FOO)" FOO=mine

hn --local 1 --env-file nowhere true
ok 'a missing --env-file is an error' test "$RC" != 0
has 'it is named' "$ERR" nowhere
done_testing
