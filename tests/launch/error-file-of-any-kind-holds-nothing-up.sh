#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whatever a rank puts in the place of TORCHELASTIC_ERROR_FILE, its own end is told at once and nothing is left.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

mkdir -m 700 "$TMP/run"
export XDG_RUNTIME_DIR=$TMP/run
printf '{"message": "not for the verdict"}' >"$TMP/elsewhere"
export ELSEWHERE=$TMP/elsewhere

try() { # NAME COMMAND [OPTION...]: rank 0 makes it and fails, its neighbour sleeps
    hn --local 2 "${@:3}" sh -c "[ \$RANK = 0 ] || exec sleep 300; f=\$TORCHELASTIC_ERROR_FILE; $2; exit 3"
    exits "$1" 3
    verdict_has "$1: the rank is named" 'rank 0'
    lacks "$1: nothing of it is told" "$ERR" 'not for the verdict'
    lacks "$1: no node is lost" "$ERR" 'lost localhost'
    nothing_left "$1: no process is left"
    is "$1: no file is left" "$(ls "$TMP/run")" ''
}

try_all() { # [OPTION...]
    local with=${1:+, $*}
    try "a FIFO$with" 'mkfifo "$f"' "$@"
    try "a symbolic link to a file$with" 'ln -s "$ELSEWHERE" "$f"' "$@"
    try "a symbolic link to /dev/zero$with" 'ln -s /dev/zero "$f"' "$@"
    try "a folder$with" 'mkdir "$f"' "$@"
    try "a file of 1 GiB without content$with" 'truncate -s 1G "$f"' "$@"
}

try_all
has 'why it is not read is told' "$ERR" 'ignoring the error file of rank 0: larger than 1 MiB'

hn --local 1 sh -c 'printf "{\"message\": \"for the verdict\"}" >"$TORCHELASTIC_ERROR_FILE"; exit 3'
exits 'a file' 3
has 'a file is told' "$ERR" 'for the verdict'

LIMIT=30 hn --local 1 -o run.contain=pidns true
if [[ $RC == 0 ]]; then
    try_all -o run.contain=pidns
else
    skip 'the same with -o run.contain=pidns' 'no process namespaces here'
fi
done_testing
