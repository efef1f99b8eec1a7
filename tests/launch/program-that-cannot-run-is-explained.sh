#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a program that cannot be executed lacks is told as it is: its interpreter, its loader or the target of a link, not
# itself; that it is a directory; and the limit that does not let so many processes start.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf '#!/bin/sh\r\nexit 0\r\n' >crlf.sh
printf '#! /opt/none/python3 -u\nexit 0\n' >missing.sh
chmod +x crlf.sh missing.sh
mkdir folder

for program in ./crlf.sh "$PWD/crlf.sh"; do
    hn_exits "CR LF in $program: 127" 127 --local 2 "$program"
    verdict_has 'its interpreter is told' "cannot execute '$program': its interpreter '/bin/sh\\r' does not exist"
    has 'and the way out' "$ERR" "help: convert its line ends: dos2unix $program"
    lacks 'it is not said to be missing' "$ERR" 'must exist on every node'
done

hn_exits 'a missing interpreter: 127' 127 --local 1 ./missing.sh
verdict_has 'is told' "its interpreter '/opt/none/python3' does not exist"
has 'with the way out' "$ERR" 'help: install it on every node, or mend the first line of ./missing.sh'

hn_exits 'a directory: 126' 126 --local 1 ./folder
lacks 'no rank is stopped' "$ERR" stop
verdict_has 'is told' "cannot execute './folder': it is a directory"
lacks 'and chmod is no help' "$ERR" chmod
printf '#!/bin/sh\nexit 0\n' >here.sh
chmod +x here.sh
hn_exits 'a program of this folder with --chdir: 127' 127 --local 1 --chdir folder ./here.sh
ok 'where it is sought is told' grep -qE 'help: with --chdir ranks start there: the program must exist on every node as (.*/)?folder/here\.sh$' "$ERR"
mkfifo fifo && chmod +x fifo
hn_exits 'a FIFO: 126' 126 --local 1 ./fifo
verdict_has 'is told' "cannot execute './fifo': it is no regular file"
lacks 'and chmod is no help' "$ERR" chmod
lacks 'nor are the logs of a rank that did not start' "$ERR" ' logs '
hn report
has 'the report lacks no trace' "$OUT" 'traces: none: no rank was started'

# --- what a program needs is missing ----------------------------------------------------------------
ln -s /opt/none/python3.11 py
ln -s py py3
mkdir -p venv/bin
ln -s ../../py3 venv/bin/python3
ln -s /opt/none moved
printf '#!%s/venv/bin/python3\nexit 0\n' "$PWD" >entry
printf '#!%s/entry\n' "$PWD" >entry2
LC_ALL=C sed 's/ld-linux/ld-nonne/' /bin/true >loader
printf '#!%s/loader\n' "$PWD" >script
{ head -c 18 /bin/true && printf '\363\0' && tail -c +21 /bin/true; } >elsewhere
: >empty
printf 'print(1)\n' >text
chmod +x entry entry2 loader script elsewhere empty text
printf '#!%s/text.txt\n' "$PWD" >unreadable
chmod +x unreadable
echo x >text.txt
target="'/opt/none/python3.11', which does not exist"

refuses() { # CODE WORDS PROGRAM [ARG...]: and says so
    local code=$1 words=$2
    shift 2
    hn --local 1 "$@"
    exits "$*: $code" "$code"
    verdict_has "$*: the reason" "$words"
    lacks "$*: it is not said to be missing" "$ERR" 'must exist on every node under'
}
refuses 127 "cannot execute './py': it is a link to $target" ./py -c 1
has 'the target has to be made' "$ERR" 'help: the target must exist on every node, too'
refuses 127 "cannot execute './py3': it leads to the link '$PWD/./py', whose target '/opt/none/python3.11' does not exist" ./py3
refuses 127 "it leads to the link '$PWD/./moved', whose target '/opt/none' does not exist" ./moved/bin/x
refuses 127 "its interpreter '$PWD/venv/bin/python3' leads to the link" ./entry
refuses 127 "the interpreter '$PWD/venv/bin/python3' of its interpreter '$PWD/entry' leads to the link" ./entry2
refuses 127 "cannot execute './loader': its loader '/lib" ./loader
has 'the C library is named' "$ERR" 'help: the nodes lack the C library of ./loader'
refuses 127 "the loader '/lib" ./script
refuses 126 "it is a program for riscv, and this machine is $(uname -m)" ./elsewhere
refuses 126 'it is empty' ./empty
refuses 126 'Exec format error' ./text
refuses 126 "its interpreter '$PWD/text.txt' may not be executed (mode 0644)" ./unreadable
refuses 126 'Permission denied (mode 0644)' ./text.txt
refuses 127 "cannot execute '$PWD/venv/bin/python3': it leads to the link" -x "PATH=$PWD/venv/bin" python3
mkdir good
printf '#!/bin/sh\necho good\n' >good/python3
chmod +x good/python3
PATH=$PWD/venv/bin:$PWD/good:$PATH hn -v --local 1 --label none python3
is 'a link without a target in PATH is skipped' "$(cat "$OUT")" good
has 'which -v tells' "$ERR" "'$PWD/venv/bin/python3' in PATH is a link to '/opt/none/python3.11', which does not exist"

echo 'print(1)' >train.py
for name in train.py ./train.py "$PWD/train.py"; do
    hn_exits "a Python script without a first line, $name: 126" 126 --local 1 "$name"
    has 'is started by its interpreter' "$ERR" "help: name its interpreter: hnlaunch python3 ${name#./}"
    chmod +x train.py
    hn --local 1 "$name"
    has 'also when it may be executed' "$ERR" "help: name its interpreter: hnlaunch python3 ${name#./}"
    chmod -x train.py
done
if [[ $EUID == 0 ]] && unshare --mount true 2>/dev/null; then
    mkdir mounted
    RC=0
    unshare --mount sh -c 'mount -t tmpfs -o noexec none mounted && cp /bin/true mounted/ && exec "$0" --local 1 ./mounted/true' \
        "$HNLAUNCH" >"$OUT" 2>"$ERR" || RC=$?
    exits 'a file system without execution: 126' 126
    verdict_has 'is told' 'it lies in a file system that is mounted noexec'
fi

hn_exits 'a missing program: 127' 127 --local 1 ./nothing-here
has 'has the help of old' "$ERR" 'must exist on every node'

hn_exits 'an option behind the program: its own code' 3 --local 2 sh -c 'exit 3' --timeout 5
has 'is told' "$ERR" 'help: `--timeout` stands behind the program, which got it'
hn --local 2 sh -c 'echo "unrecognized arguments: --timeout 5" >&2; exit 2' --timeout=5
has 'also when the program names it' "$ERR" 'help: `--timeout` stands behind'
hn --local 2 sh -c 'echo "no such file: data" >&2; exit 2' --timeout 5
lacks 'not when the program says something else' "$ERR" 'stands behind'
hn --local 2 sh -c 'exit 3' --no-option-of-any 5
lacks 'nor for words of its own' "$ERR" 'stands behind'

few() { (ulimit -n 80 && hn --local 60 --label none true; exit "$RC"); }
RC=0
few || RC=$?
exits 'too few open files for so many ranks: 125' 125
has 'the limit is named' "$ERR" 'ulimit -n'
nothing_left 'nothing is left'
done_testing
