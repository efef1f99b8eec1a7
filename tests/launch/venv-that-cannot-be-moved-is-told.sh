#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --venv on this machine is used in place; what cannot be moved to other nodes is told before the start.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
export XDG_CACHE_HOME=$TMP/cache # the user's lists of files stay
mkdir "$XDG_CACHE_HOME"

python3 -m venv --without-pip env 2>/dev/null || skip_all 'needs python3 with venv'
site=$(echo env/lib/python*/site-packages)

PYTHONHOME=/nothing hn --local 1 --venv env --label none sh -c 'command -v python; echo "$VIRTUAL_ENV $HN_VENV ${PYTHONHOME-none}"; pwd'
exits '--local --venv gives 0' 0
is 'the rank has the environment, and stays in its folder' "$(cat "$OUT")" "$PWD/env/bin/python
$PWD/env $PWD/env none
$PWD"
mkdir data
hn --local 1 --stage data --label none sh -c 'echo "$HN_STAGE_DIR"'
is 'staged files are used in place' "$(cat "$OUT")" "$PWD"
ok 'nothing is copied' test ! -e "$TMP/stage"

wrong() { # NAME EXIT NUMBER TEXT OPTION...
    hn_exits "$1: exit $2" "$2" --local 1 "${@:5}" true
    has "$1 is told" "$ERR" "error[$3]: $4"
}
wrong 'no environment' 66 HN620 "--venv: $PWD/data is not a virtual environment: no pyvenv.cfg" --venv data
wrong 'no folder' 66 HN620 "--venv: $PWD/nothing does not exist" --venv nothing
mkdir env/conda-meta
wrong 'an environment of conda' 66 HN621 "--venv: $PWD/env is an environment of conda" --venv env
rmdir env/conda-meta
ln -sf /nothing/python3 env/bin/python3
wrong 'an environment whose Python is gone' 66 HN620 "--venv: $PWD/env has no Python" --venv env
ln -sf "$(realpath "$(python3 -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))')")" env/bin/python3
wrong '--venv in a container' 64 HN704 '--venv and --container exclude each other' --venv env --container docker:image
wrong 'no data' 66 HN230 "--stage: cannot read $PWD/nothing: No such file" --stage nothing

echo /home/me/src >"$site/__editable__.pkg.pth"
touch env/bin/su
chmod 4755 env/bin/su
hn_exits 'an editable install and a set-user-ID file: 0' 0 --local 1 --venv env true
has 'the first is a warning' "$ERR" 'warning[HN622]: --venv: the environment leads to files outside of it'
has 'with its path' "$ERR" '__editable__.pkg.pth names /home/me/src'
has 'the second, too' "$ERR" 'warning[HN625]'

# An agent of another machine.
VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export VERSION PYTHONPATH=$ROOT/tests/lib
printf '#!/bin/sh\nARCH=riscv64 exec python3 %s/tests/lib/fake_agent.py\n' "$ROOT" >remote
chmod +x remote
hn_exits 'a node of another architecture: 69' 69 --ssh-command ./remote -w n1 --venv env true
has 'is told' "$ERR" 'error[HN624]: --venv: the environment is for '
has 'with what it is' "$ERR" 'n1 is riscv64'
nothing_left 'no process is left'
done_testing
