#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hn_role(), hn_role_index() and hn_role_group(), in C and Python: roles in one world and in several.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

roles=$BUILD/tests/clients/roles
hosts=(-w localhost:4,127.0.0.1:4 --gpus-per-rank 0 --label none)

hn "${hosts[@]}" --role trainer --nodes 2 --ppn 2 --world all "$roles" shared : --role router --on trainer:last --world all "$roles" shared
exits 'two roles in one world' 0
is 'know their groups, and a name that no role has' "$(sort "$OUT")" \
    'no role `route` in this world, which has trainer:0-3,router:4: hnlaunch --world NAME puts roles into one
router.0 ok
trainer.0 ok
trainer.0 ok
trainer.0 ok
trainer.0 ok'

hn "${hosts[@]}" --role trainer --replicas 2 --nodes 1 -n 2 "$roles" alone : --role router --on trainer:0 "$roles" alone
exits 'roles and replicas in worlds of their own' 0
is 'refuse the role of another world' "$(sort "$OUT")" \
    'no role `router` in this world, which has trainer:0-1: hnlaunch --world NAME puts roles into one
no role `router` in this world, which has trainer:0-1: hnlaunch --world NAME puts roles into one
no role `trainer` in this world, which has router:0: hnlaunch --world NAME puts roles into one
router.0 ok
trainer.0 ok
trainer.0 ok
trainer.1 ok
trainer.1 ok'

hn --local 1 --label none "$roles" shared
exits 'a program that needs a role' 1
has 'has none in a job without' "$ERR" 'hn_role() &&'

# A library with sanitizers does not load into a Python without.
HNLAUNCH=$PLAIN/hnlaunch
export HNLAUNCH_LIBRARY=$PLAIN/libhnlaunch.so.0 PYTHONPATH=$ROOT/packaging/python
cat >roles.py <<'EOF'
import hnlaunch as hn

assert hn.role() is None
hn.init()
trainers, mine = hn.role_group("trainer"), hn.role_group()
words = [] if trainers is None else trainers.ranks()
try:
    hn.role_group("route")
except hn.Error as e:
    words.append(e.name)
print(hn.role(), hn.role_index(), mine.ranks(), *words)
EOF
hn -x HNLAUNCH_LIBRARY -x PYTHONPATH "${hosts[@]}" --role trainer --nodes 1 -n 2 --world all python3 roles.py : --role router --on trainer --world all python3 roles.py
exits 'in Python, too' 0
is 'with the same groups' "$(sort "$OUT")" 'router 0 [2] HN_ERR_INVALID
trainer 0 [0, 1] 0 1 HN_ERR_INVALID
trainer 0 [0, 1] 0 1 HN_ERR_INVALID'
done_testing
