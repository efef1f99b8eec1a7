#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The job's folder is made in the first of XDG_RUNTIME_DIR, /dev/shm and /tmp that takes it; when none does, the
# order is refused at once.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

in_folder() { # NAME FOLDER
    is "$1" "$(sort -u "$OUT")" "$2"
}
where='dirname "$(dirname "$HN_STORE")"'

export XDG_RUNTIME_DIR=$TMP/nowhere
hn --local 2 --label none sh -c "$where"
exits 'XDG_RUNTIME_DIR does not exist' 0
in_folder 'the next one serves' /dev/shm
is 'and nothing is said of it' "$(grep -c nowhere "$ERR")" 0

# Read-only in a mount namespace of the run.
hn_without() { # FOLDERS COMMAND...
    run unshare "${namespace[@]}" sh -c 'for d in $0; do mount --bind "$d" "$d" && mount -o remount,bind,ro "$d" || exit 99; done; exec "$@"' \
        "$1" "$HNLAUNCH" "${@:2}"
}
namespace=(-m)
[[ $EUID == 0 ]] || namespace=(-rm)
hn_without /dev/shm --local 1 --label none sh -c "$where"
if [[ $RC == 99 || ($RC == 1 && ! -s $OUT) ]]; then
    skip 'folders that are read-only' "no mount namespaces here: $(tail -n 1 "$ERR")"
    done_testing
fi
exits '/dev/shm is read-only, too' 0
in_folder 'the third one serves' /tmp

TMPDIR=$TMP hn_without '/dev/shm /tmp' --local 2 touch started
exits 'no folder at all' 125
verdict_has 'the verdict says which was tried last' 'cannot make a folder in /tmp'
lacks 'no node is lost' "$ERR" 'lost'
lacks 'nor waited for' "$ERR" 'silent for'
done_testing
