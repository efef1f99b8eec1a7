#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a program that cannot be executed lacks is told as it is: its interpreter, not itself; that it is a directory;
# and the limit that does not let so many processes start.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf '#!/bin/sh\r\nexit 0\r\n' >crlf.sh
printf '#! /opt/none/python3 -u\nexit 0\n' >missing.sh
chmod +x crlf.sh missing.sh
mkdir folder

for program in ./crlf.sh "$PWD/crlf.sh"; do
    hn --local 2 "$program"
    exits "CR LF in $program: 127" 127
    verdict_has 'its interpreter is told' "cannot execute '$program': its interpreter '/bin/sh\\r' does not exist"
    has 'and the way out' "$ERR" "help: convert its line ends: dos2unix $program"
    lacks 'it is not said to be missing' "$ERR" 'must exist on every node'
done

hn --local 1 ./missing.sh
exits 'a missing interpreter: 127' 127
verdict_has 'is told' "its interpreter '/opt/none/python3' does not exist"
has 'with the way out' "$ERR" 'help: install it on every node, or mend the first line of ./missing.sh'

hn --local 1 ./folder
exits 'a directory: 126' 126
verdict_has 'is told' "cannot execute './folder': it is a directory"
lacks 'and chmod is no help' "$ERR" chmod

hn --local 1 ./nothing-here
exits 'a missing program: 127' 127
has 'has the help of old' "$ERR" 'must exist on every node'

few() { (ulimit -n 80 && hn --local 60 --label none true; exit "$RC"); }
RC=0
few || RC=$?
exits 'too few open files for so many ranks: 125' 125
has 'the limit is named' "$ERR" 'ulimit -n'
nothing_left 'nothing is left'
done_testing
