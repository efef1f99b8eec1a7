# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The memory of a command at its peak, for the plain build. After tap.sh:
#
#   measure COMMAND...          as run(); sets CODE ("hangs": it had to be killed) and KIB
#   cut_short NAME CODE TEXT    tests that it ended with CODE and a short message that has TEXT, and took little memory

[[ -x $PLAIN/hnlaunch ]] || skip_all 'no plain build'
cat >"$TMP/measure" <<'END'
import resource, subprocess, sys
try:
    code = subprocess.call(sys.argv[2:], stdin=subprocess.DEVNULL, timeout=120)
except subprocess.TimeoutExpired:
    code = 'hangs'
with open(sys.argv[1], 'w', encoding='ascii') as out:
    print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=out)
END

measure() {
    rm -f "$TMP/measured"
    LIMIT=130 run python3 "$TMP/measure" "$TMP/measured" "$@"
    read -r CODE KIB <"$TMP/measured"
}

cut_short() {
    is "$1: the exit code" "$CODE" "$2"
    has "$1: the reason" "$ERR" "$3"
    ok "$1: less than 64 MiB ($KIB KiB)" test "$KIB" -lt 65536
    lacks "$1: no escape sequence" "$ERR" $'\e'
    ok "$1: a short message" test "$(wc -c <"$ERR")" -lt 4096
}
