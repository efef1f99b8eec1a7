#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --venv with --stage PYTHON: nodes without the Python of the environment get it with the copy, as one folder.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

python=python3
[[ -x /usr/bin/python3 ]] && python=/usr/bin/python3 # is linked with no library of its own
"$python" -m venv --help >/dev/null 2>&1 || skip_all 'needs python3 with venv'
name=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
library=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
program=$(realpath "$("$python" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))')")

# Every node has a cache of its own, and sees of the login node's files nothing but $LAB_DIR.
export LAB_PRIVATE='/dev/shm /run /tmp /var/tmp'
export XDG_CACHE_HOME=$TMP/login # of the login node: the user's lists of files stay
mkdir "$XDG_CACHE_HOME"
lab_up 3 1
on() { (cd / && lab exec "$@"); }
hnv() { lab_hn -v -H "$TMP/hosts.txt" --chdir / --label none "$@"; }
sent() { grep -o '[0-9]* bytes were sent' "$ERR" | awk '{ n += $1 } END { print n + 0 }'; }
root=$TMP/cache/hnlaunch-stage-0

# An installation in a folder, as of uv or pyenv, with another name that is a link.
base="$TMP/my pythons/own-3"
mkdir -p "$base/bin" "$base/lib/$name"
cp "$program" "$base/bin/$name"
ln -s "$name" "$base/bin/python3"
tar -C "$library" --exclude=./test --exclude=./site-packages --exclude=./dist-packages --exclude=__pycache__ \
    --exclude='./config-*' -cf - . | tar -C "$base/lib/$name" -xf -
ln -s own-3 "$TMP/my pythons/own"
"$TMP/my pythons/own/bin/python3" -m venv --without-pip env
is 'the installation is one' "$(env/bin/python -c 'import sys; print(sys.base_prefix)')" "$TMP/my pythons/own"
site=$(echo env/lib/python*/site-packages)
mkdir "$site/pkg" data
cat >"$site/pkg/__init__.py" <<'END'
import os, sys
def main():
    print('tool of', sys.prefix == os.environ['HN_VENV'], sys.base_prefix.startswith(sys.prefix + '/'))
END
printf '#!%s/env/bin/python\nimport pkg\npkg.main()\n' "$PWD" >env/bin/tool
chmod +x env/bin/tool
cat >script.py <<'END'
import json, multiprocessing, os, sys, sysconfig
def child(q):
    q.put(os.__file__)
if __name__ == '__main__':
    multiprocessing.set_start_method('spawn')
    q = multiprocessing.Queue()
    p = multiprocessing.Process(target=child, args=(q,))
    p.start()
    top = os.environ['HN_VENV'] + '/'
    print(sys.prefix + '/' == top, *(p.startswith(top) for p in (
        q.get(), json.__file__, sys.base_prefix, sysconfig.get_path('purelib'), os.path.realpath(sys.executable))))
    p.join()
END

exits 'a Python that the nodes do not have' 69 hnv --venv env touch "$LAB_DIR/ran"
has 'is told' "$ERR" 'error[HN623]: no Python of the environment on node[001-003]'
has 'with what mends it' "$ERR" "add --stage '$TMP/my pythons/own', and this Python is sent along"
exits 'so it is ahead of a run' 69 lab_hn stage -H "$TMP/hosts.txt" --venv env
has 'with the command' "$ERR" "add the path '$TMP/my pythons/own', and this Python is sent along; a run needs --stage '$TMP/my pythons/own' then"
exits 'another staged folder does not help' 69 hnv --venv env --stage data touch "$LAB_DIR/ran"
ok 'no rank was started' test ! -e "$LAB_DIR/ran"

hns() { hnv --venv env --stage "$TMP/my pythons/own" "$@"; }
hns --push script.py sh -c 'tool; python $HN_PUSH_DIR/script.py'
exits 'a run with what the message says' 0
is 'uses the copy of the environment' "$(grep -c '^tool of True True$' "$OUT")" 3
is 'and Python and its library from there' "$(grep -c '^True True True True True True$' "$OUT")" 3
hns tool
exits 'a second run' 0
is 'sends nothing' "$(sent)" 0
is 'and has the same' "$(grep -c '^tool of True True$' "$OUT")" 3
exits 'ahead of a run' 0 lab_hn stage -H "$TMP/hosts.txt" --venv env "$base"
hnv --venv env --stage "$base" tool
is 'a run by the other name finds it' "$(sent) $(grep -c '^tool of True True$' "$OUT")" '0 3'

# A changed Python.
printf '\nown = "changed"\n' >>"$base/lib/$name/sched.py"
hns python -c 'import sched; print(sched.own)'
exits 'a changed library' 0
is 'is that of the ranks' "$(sort "$OUT" | uniq -c | xargs)" '3 changed'
config=$(grep -vcE '^(home|command|executable) ' env/pyvenv.cfg)
is 'pyvenv.cfg has one line more on the nodes' "$(on node001 sh -c "cat $root/*/pyvenv.cfg" | wc -l)" $((2 * (config + 1)))
ok 'little more was sent' test "$(sent)" -ge "$(stat -c %s "$base/lib/$name/sched.py")" -a "$(sent)" -lt 20000

# Both stay while they are in use.
lab_start -H "$TMP/hosts.txt" --chdir / --label none --venv env --stage "$TMP/my pythons/own" sh -c "
    touch $LAB_DIR/on-\$HN_RANK; while test ! -e $LAB_DIR/go; do sleep 0.1; done; python -c 'import sched, email; print(sched.own)'"
ok 'ranks are there' wait_for test -e "$LAB_DIR/on-0" -a -e "$LAB_DIR/on-1" -a -e "$LAB_DIR/on-2"
for node in node001 node002 node003; do on "$node" sh -c "touch -d '2 days ago' $root/*.keep"; done
exits 'stage --gc' 0 run "$LAB" run "$LAB_HNLAUNCH" stage -H "$TMP/hosts.txt" --gc --stage-keep 1M --unused 1d --json
is 'leaves what is in use' "$(grep -c '"in_use": true' "$OUT")" 6
is 'and removes the others' "$(grep -c '"removed": true' "$OUT")" 9
touch "$LAB_DIR/go"
wait "$PID"
is 'the ranks go on with it' "$?" 0
run "$LAB" run "$LAB_HNLAUNCH" stage -H "$TMP/hosts.txt" --gc --stage-keep 1M --unused 1s
sleep 1.1
run "$LAB" run "$LAB_HNLAUNCH" stage -H "$TMP/hosts.txt" --gc --stage-keep 1M --unused 1s
is 'nothing is left after the last use' "$(on node001 sh -c "ls -A $root" 2>/dev/null)" ''

# What a service has removed from /tmp is brought anew, with the line of this node.
hns true
on node002 sh -c "sed -i 's/^\\([0-9]* [0-9]* [0-9]* [0-9]*\\) [0-9]*/\\1 1000/' $root/*.keep; rm -f $root/*/pyvenv.cfg"
hns tool
exits 'a copy that has lost pyvenv.cfg' 0
is 'is made whole' "$(grep -c '^tool of True True$' "$OUT")" 3

# A hold brings both, and its interpreters run from them.
runtime_dir
exits 'a hold with an environment and its Python' 0 lab_hn hold -H "$TMP/hosts.txt" --venv env --stage "$base" --warm python:pkg
exits 'a run on it' 0 lab_hn -v -H "$TMP/hosts.txt" --label none --venv env --stage "$base" --push script.py python script.py
is 'continues in prepared interpreters' "$(grep -c ': 1 of 1 ranks run in prepared interpreters$' "$ERR")" 3
is 'of the copy' "$(grep -c '^True True True True True True$' "$OUT")" 3
exits 'the hold is released' 0 lab_hn release --all
lab_nothing_left 'no process is left'
done_testing
