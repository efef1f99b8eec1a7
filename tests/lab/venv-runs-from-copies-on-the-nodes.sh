#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --venv and --stage: ranks run from whole copies on their nodes, which later runs find; faults are told before the start.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

python=$(realpath "$(python3 -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))')")
python3 -m venv --help >/dev/null 2>&1 || skip_all 'needs python3 with venv'

# Every node has a cache of its own. It sees of the login node's files nothing but $LAB_DIR, and no copies of others.
export LAB_PRIVATE='/dev/shm /run /tmp /var/tmp'
export XDG_CACHE_HOME=$TMP/login # of the login node: the user's lists of files stay
mkdir "$XDG_CACHE_HOME"
lab_up 3 1
on() { (cd / && lab exec "$@"); } # the nodes do not have this folder
hnv() { lab_hn -v -H "$TMP/hosts.txt" --chdir / --label none "$@"; }
sent() { grep -o '[0-9]* bytes were sent' "$ERR" | awk '{ n += $1 } END { print n + 0 }'; }
root=$TMP/cache/hnlaunch-stage-0
# Folders that are being unpacked, and half-fetched files.
unfinished() {
    local node
    for node in node001 node002 node003; do
        on "$node" find "$root" -mindepth 1 -maxdepth 2 -name '.*' 2>/dev/null
    done
}

"$python" -m venv --without-pip env
site=$(echo env/lib/python*/site-packages)
mkdir "$site/pkg" src
cat >"$site/pkg/__init__.py" <<'END'
import os
def main():
    print('tool of', os.environ['VIRTUAL_ENV'] == os.path.realpath(__file__ + '/../../../../..'))
END
printf '#!%s/env/bin/python\nimport pkg\npkg.main()\n' "$PWD" >env/bin/tool
chmod +x env/bin/tool
printf 'print("by env", __import__("pkg").__file__)\n' >script.py
echo "$PWD/env/lib" >"$site/own.pth"
sleep 3 # what has just changed is not remembered

hnv --venv env sh -c 'tool; python -c "import sys, pkg; print(sys.prefix == sys.argv[1], pkg.__file__.startswith(sys.argv[1]))" "$HN_VENV"; echo "$HN_VENV $PYTHONHOME"; pwd'
exits 'a run in an environment' 0
is 'programs of packages are those of the copy' "$(grep -c '^tool of True$' "$OUT")" 3
is 'Python and its modules, too' "$(grep -c '^True True$' "$OUT")" 3
is 'in the folder of the node' "$(grep -c "^$root/[0-9a-f]* \$" "$OUT")" 3
is 'the working directory stays' "$(grep -cx / "$OUT")" 3
ok 'files were sent' test "$(sent)" -gt 1000
exits 'with a pushed script' 0 hnv --venv env --push script.py sh -c 'python $HN_PUSH_DIR/script.py'
is 'whose imports come from the copy' "$(grep -c "^by env $root/" "$OUT")" 3
is 'only the script was sent' "$(sent)" $((3 * $(stat -c %s script.py)))
hnv --venv env true
is 'a second run sends nothing' "$(sent)" 0
hnr() { XDG_CACHE_HOME=$TMP/remembered hnv --venv env "$@"; }
mkdir "$TMP/remembered"
hnr true
is 'the list of the environment is remembered' "$(find "$TMP/remembered/hnlaunch/folders" -type f | wc -l)" 1
rm "$TMP/remembered/hnlaunch/hashes"
hnr tool
exits 'a run with the remembered list' 0
is 'sends nothing' "$(sent)" 0
ok 'and reads no file for its hash' test ! -e "$TMP/remembered/hnlaunch/hashes"
is 'programs are those of the copy' "$(grep -c '^tool of True$' "$OUT")" 3
mkfifo "$site/pkg/pipe"
hnr touch "$LAB_DIR/ran"
exits 'a pipe that has come since' 66
has 'is told' "$ERR" "error[HN232]: --venv: cannot send $PWD/$site/pkg/pipe: it is a pipe"
ok 'no rank was started' test ! -e "$LAB_DIR/ran"
rm "$site/pkg/pipe"
printf '# more\n' >>"$site/pkg/__init__.py"
hnv --venv env true
is 'a changed file alone is sent' "$(sent)" $((3 * $(stat -c %s "$site/pkg/__init__.py")))

# A hold brings it as well, and its interpreters are those of the copy.
runtime_dir
exits 'a hold with an environment' 0 lab_hn hold -H "$TMP/hosts.txt" --venv env --warm python:pkg
lab_hn stage -H "$TMP/hosts.txt" --list
is 'keeps the copies in use' "$(grep -c '^node00[123]  *venv .* in use ' "$OUT")" 3
exits 'a run in this environment' 0 lab_hn -v -H "$TMP/hosts.txt" --label none --venv env --push script.py python script.py
is 'continues in prepared interpreters' "$(grep -c ': 1 of 1 ranks run in prepared interpreters$' "$ERR")" 3
is 'with modules of the copy' "$(grep -c "^by env $root/" "$OUT")" 3
hnv python3 -c 'import os; print(os.environ.get("VIRTUAL_ENV"))'
is 'a run without --venv is in none' "$(sort -u "$OUT")" None
exits 'the hold is released' 0 lab_hn release --all
unset XDG_RUNTIME_DIR

# systemd-tmpfiles removes what nobody has read for some days; the files of a copy are counted once a day.
on node002 sh -c "sed -i 's/^\\([0-9]* [0-9]* [0-9]* [0-9]*\\) [0-9]*/\\1 1000/' $root/*.keep
    for f in $root/*/lib/python*/site-packages/pkg/__init__.py; do find $root -samefile \$f -exec rm {} +; done"
exits 'a copy that has lost a file' 0 hnv --venv env sh -c 'tool'
is 'is made whole' "$(grep -c '^tool of True$' "$OUT")" 3
is 'with that file' "$(sent)" "$(stat -c %s "$site/pkg/__init__.py")"

mkdir data
echo 'a b' >data/words
hnv --stage data sh -c 'cat $HN_STAGE_DIR/data/words'
is 'staged data are read' "$(sort -u "$OUT")" 'a b'
exits 'hnlaunch stage' 0 lab_hn stage -H "$TMP/hosts.txt" data
exits 'stage --list' 0 lab_hn stage -H "$TMP/hosts.txt" --list
is 'lists all copies' "$(grep -c '^node00[123]  *\(venv\|stage\) .* unused ' "$OUT")" 9
lab_start -H "$TMP/hosts.txt" --chdir / --stage data sh -c "touch $LAB_DIR/on-\$HN_RANK; exec sleep 60"
ok 'ranks use the data' wait_for test -e "$LAB_DIR/on-0" -a -e "$LAB_DIR/on-1" -a -e "$LAB_DIR/on-2"
for node in node001 node002 node003; do on "$node" sh -c "touch -d '2 days ago' $root/*.keep"; done
run "$LAB" run "$LAB_HNLAUNCH" stage -H "$TMP/hosts.txt" --gc --stage-keep 1M --unused 1d --json
kill -INT "$PID"
exits 'stage --gc' 0
is 'removes what nobody uses' "$(grep -A6 "\"folder\": \"$TMP/" "$OUT" | grep -c '"removed": true')" 6
is 'and nothing else' "$(grep -c '"in_use": true' "$OUT")" 3
OUT=$TMP/out.2 ERR=$TMP/err.2 wait "$PID"
is 'no folder of an environment is left' "$(on node001 sh -c "ls -d $root/*/bin" 2>/dev/null)" ''

# Killed in the middle, KILLS times: never a half folder under a final name, and nothing of it after the next run.
kills=${KILLS:-20}
head -c 6000000 /dev/urandom >env/large
lab run tc qdisc replace dev br0 root tbf rate 8mbit burst 64k latency 200ms
whole=yes
for ((i = 1; i <= kills; i++)); do
    lab_start -H "$TMP/hosts.txt" --chdir / --venv env true
    sleep "0.$((RANDOM % 9 + 1))"
    [[ $i == 1 ]] && ok 'an environment is on its way' wait_for on node001 sh -c "ls -d $root/.*.2"
    for node in node001 node002 node003; do on "$node" pkill -KILL -f agent-; done
    wait "$PID" 2>/dev/null
    for node in node001 node002 node003; do
        for folder in $(on "$node" sh -c "ls -d $root/*/pyvenv.cfg" 2>/dev/null); do
            [[ $(on "$node" stat -c %s "${folder%/*}/large" 2>/dev/null) == 6000000 ]] || whole=no
        done
    done
done
is "no half folder has a final name after $kills kills" "$whole" yes
lab run tc qdisc replace dev br0 root tbf rate 500mbit burst 1m latency 200ms
hnv --venv env sh -c 'cksum <$HN_VENV/large'
is 'the next run has all of it' "$(sort -u "$OUT")" "$(cksum <env/large)"
ok 'and nothing unfinished is left' wait_for test -z "$(unfinished)"

# Faults.
mkdir base
cp "$python" base/python3.own
ln -sf "$PWD/base/python3.own" env/bin/python3
ln -sf python3 env/bin/python
exits 'a Python that the nodes do not have' 69 hnv --venv env touch "$LAB_DIR/ran"
has 'is told' "$ERR" 'error[HN623]: no Python of the environment on node[001-003]'
has 'with its path' "$ERR" "node001:$PWD/base/python3.own"
cp "$python" "$LAB_DIR/python"
ln -sf "$LAB_DIR/python" env/bin/python3
echo another >"$LAB_DIR/other"
on node002 mount --bind "$LAB_DIR/other" "$LAB_DIR/python"
exits 'another Python on one node' 69 hnv --venv env touch "$LAB_DIR/ran"
has 'is told' "$ERR" 'error[HN623]: another Python than that of the environment on node002'
for place in "$TMP/cache" /tmp /var/tmp "$TMP/cache/hnlaunch" /run/user/0 /dev/shm; do
    on node003 sh -c "mkdir -p $place/hnlaunch-stage-0 && mount -t tmpfs -o ro lab $place/hnlaunch-stage-0"
done
exits 'a node where nothing can be written' 73 lab_hn -w node001,node003 --chdir / --stage data touch "$LAB_DIR/ran"
has 'is told' "$ERR" 'error[HN626]: no folder for the staged files on node003'
has 'with the reason' "$ERR" 'Read-only file system'
ok 'no rank was started' test ! -e "$LAB_DIR/ran"
lab_nothing_left 'no process is left'
done_testing
