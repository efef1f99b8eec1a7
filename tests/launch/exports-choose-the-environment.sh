#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole environment goes out; -x, --export, --env-file and --unset change that.
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

dump --local 1 --export=ALL,FOO=changed,NEW=n
is '--export ALL,NAME=VALUE replaces' "$(seen FOO)" FOO=changed
is 'and adds' "$(seen NEW)" NEW=n
lacks 'without a warning' "$ERR" warning
hn plan --local 1 --export=ALL,NEW=n true
ok 'all variables are counted' test "$(sed -n 's/^export *\([0-9]*\) .*/\1/p' "$OUT")" -gt 3
for way in --export=BAR,NOSUCH '-o env.export=BAR,NOSUCH' HNLAUNCH_ENV_EXPORT=BAR,NOSUCH; do
    case $way in
        HN*) export "${way?}" && set -- ;;
        *) read -ra words <<<"$way" && set -- "${words[@]}" ;;
    esac
    hn plan --local 1 "$@" true
    has "$way: one variable goes out" "$OUT" 'export    1 variable'
    has "$way: the other is told" "$ERR" 'warning[HN123]: --export NOSUCH: not set in this shell'
done
unset HNLAUNCH_ENV_EXPORT
hn plan --local 1 -x FOO,BAR true
has 'a list behind -x is told' "$ERR" 'help: write one -x for each name'
hn plan --local 1 --export=FOO=a,b true
has 'a value that is cut at its comma is told' "$ERR" "help: a comma parts words: a value with one is given by -x 'FOO=a,b'"
for list in ALL,NONE , "A='b" =1; do
    hn plan --local 1 --export="$list" true
    exits "--export=$list: 64" 64
done
hn plan --local 1 -x 'NOSUCH_*' true
has 'a pattern of the line without a variable is told' "$ERR" 'warning[HN123]: -x NOSUCH_*: no variable'
HNLAUNCH_ENV_PASS='NOSUCH_*' hn plan --local 1 true
lacks 'one of a configuration is for other shells' "$ERR" NOSUCH
for name in FOO,BAR 'F?O' 'F*O' FOO=1; do
    hn plan --local 1 --unset "$name" true
    exits "--unset $name, which removes nothing: 64" 64
done

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
