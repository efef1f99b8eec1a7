#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A .hnlaunch.ini of a cloned repository says what a job needs: whom to trust, what to run and what to read it may not.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

refused() { # KEY VALUE: the file is an error at that line, and nothing is started
    printf '[%s]\n%s = %b\n' "${1%%.*}" "${1#*.}" "$2" >.hnlaunch.ini
    hn --local 1 touch started
    is "$1 = $2: 78" "$RC" 78
    ok "$1: HN714 with key and line" awk -v key="\`$1\`" -v place="$PWD/.hnlaunch.ini:2:1" '
        /^error\[HN714\]/ && index($0, key) { fact = 1 }
        index($0, place) { line = 1 }
        END { exit !(fact && line) }' "$ERR"
}

# The keys that the manual calls forbidden; a unit test compares it with the table of options.
keys=$(awk '/^\*nothing\*$/ { on = 1; next } on && !NF { exit } on' "$ROOT/docs/hnlaunch.1.scd" |
    grep -oE '[a-z]+\.[a-z_]+')
ok 'the manual lists forbidden keys' test "$(wc -l <<<"$keys")" -ge 15
for key in $keys; do
    refused "$key" 1
done
refused run.stdin "$PWD/secret"
refused log.raw yes
refused net.store_door network
refused ssh.port 2222

refused env.pass 'LD_LIBRARY_PATH=/evil, PATH=/evil:/bin'
refused env.pass '*'
refused env.export ALL
refused env.set.LD_PRELOAD ./evil.so
refused run.hosts mallory@localhost
refused log.dir ../elsewhere
ln -s "$TMP" outside
refused log.dir outside/logs
refused log.label '\033]0;owned\007'
refused run.include 'n1\033c'
no_escape() { ! grep -q $'\033' "$OUT" "$ERR"; }
ok 'what is refused reaches no terminal' no_escape
ok 'nothing was started' test ! -e started

for words in 'user=mallory' 'port=2222' 'addr=192.0.2.1'; do
    printf '[run]\nhostfile = hosts.txt\n' >.hnlaunch.ini
    printf 'n1\nn2 %s\n' "$words" >hosts.txt
    hn plan true
    exits "a hostfile with $words: 78" 78
    has "$words: its key" "$ERR" "error[HN714]: a hostfile named by a project file may not set \`${words%=*}\`"
    has "$words: its line" "$ERR" "$PWD/hosts.txt:2:1"
    has "$words: who named the file" "$ERR" "$PWD/.hnlaunch.ini:2 names it"
done
hn plan -H hosts.txt true
exits 'the same hostfile is fine on the command line' 0

mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[safe]\ndirectory = %s\n' "$PWD" >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn plan true
exits 'and in a folder that the user trusts' 0
printf '[env]\npass = WORD=said\n' >.hnlaunch.ini
hn --local 1 --label none sh -c 'echo "$WORD"'
is 'there values are passed, too' "$(cat "$OUT")" said
done_testing
