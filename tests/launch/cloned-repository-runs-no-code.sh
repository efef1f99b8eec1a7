#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A cloned repository decides nothing: a .hnlaunch.ini in it is not read, only named, and modules of Python in the current
# folder are not imported.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

mkdir -p repository/sub bin
cd repository || exit 1
file=$PWD/.hnlaunch.ini
unread="warning[HN719]: $file is no longer read: --job FILE takes its place"

# --- whatever the file has, runs are the same, but for one line
settings() { # what config says of all keys
    hn config --json
    cat "$OUT"
}
before=$(settings)
for text in '[ssh]\ncommand = sh -c "touch ../owned"\nuser = eve\nhost_key = accept-new\n' \
    '[run]\nfrom = ray\nlocal = 7\nprogram = touch ../owned\nagent = ./evil\nwrap = touch ../owned\n' \
    '[env]\nset.LD_PRELOAD = ./evil.so\nset.PATH = .\nfile = .env\n[log]\ndir = elsewhere\nraw = yes\n' \
    '[run\nno key \0 \377\376' '[safe]\ndirectory = /\n' ''; do
    printf '%b' "$text" >.hnlaunch.ini
    is "no setting is from $text" "$(settings)" "$before"
    hn --local 1 --label none sh -c 'echo "$WORLD_SIZE"'
    is "it runs as ever with $text" "$RC $(cat "$OUT")" '0 1'
    is "one line is about $text" "$(grep -cF "$unread" "$ERR") $(grep -c '\.hnlaunch\.ini' "$ERR")" '1 1'
done
hn
exits 'it names no program: 64' 64
ok 'nothing of it was started' test ! -e ../owned
printf '[run]\nlocal = 1\nprogram = true\n' >.hnlaunch.ini
chmod 666 .hnlaunch.ini
hn --local 1 true
has 'its mode does not matter' "$ERR" "$unread"
rm .hnlaunch.ini
mkfifo .hnlaunch.ini
hn --local 1 true
is 'a FIFO is not waited for' "$RC $(grep -cF "$unread" "$ERR")" '0 1'
rm .hnlaunch.ini
printf '[run]\nlocal = 1\nprogram = true\n' >.hnlaunch.ini

# --- where it is looked for
cd sub || exit 1
hn --local 1 true
has 'it is named from below, too' "$ERR" "$unread"
mkdir .git
hn --local 1 true
lacks 'not beyond the root of a repository' "$ERR" HN719
rmdir .git
cd ..
for words in ps 'logs' 'explain HN719' 'help config' version; do
    # shellcheck disable=SC2086
    hn $words
    lacks "$words has no such line" "$ERR" HN719
done
hn --job .hnlaunch.ini
is 'who names it gets it' "$RC $(grep -c HN719 "$ERR")" '0 0'
HOME=$PWD/sub hn plan --local 1
has 'plan tells of it' "$ERR" "$unread"
mkdir odd$'\033'name
cp .hnlaunch.ini odd*/
(cd odd* && hn plan --local 1)
ok 'the name of a folder is escaped' not grep -q $'\033' "$ERR"
has 'and shown' "$ERR" 'name/.hnlaunch.ini is no longer read'

# --- modules in the current folder, with a Python that reads all modules from files, as those before 3.11 do
printf '#!/bin/sh\nexec %q -X frozen_modules=off "$@"\n' "$(type -P python3)" >../bin/python3
chmod +x ../bin/python3
export PATH=$TMP/work/bin:$PATH PYTHONPATH=$ROOT/packaging/python
for module in runpy importlib argparse json os site types subprocess ray hnlaunch sitecustomize; do
    printf 'open("%s", "w")\n' "$TMP/work/owned" >"$module.py"
done
rm .hnlaunch.ini
for words in 'plan --scheduler ray true' '--scheduler ray true' '--scheduler none --start-with ray -w n1 true'; do
    # shellcheck disable=SC2086
    hn $words
    ok "no module of the folder is imported by $words" test ! -e ../owned
    has "Python was started by $words" "$ERR" 'cannot import ray'
done
done_testing
