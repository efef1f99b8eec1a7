#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Options of roles: where they may stand, which exclude each other, and what the names in them must be.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn_exits 'a colon ends a program wherever it stands' 64 plan -w n1:2 --role a echo : b
has 'the program behind needs a role' "$ERR" 'error[HN729]: `b` behind `:` has no --role, but the first program has'
hn_exits 'but not behind --' 0 plan -w n1:2 --role a -- echo : b

refused() { # NAME TEXT ARG...
    local name=$1 text=$2

    shift 2
    hn "$@"
    ok "$name" test "$RC" -ne 0
    has 'it is told' "$ERR" "$text"
}
refused 'an unknown role' 'error[HN726]: --on train of role `b`: there is no role of this name' \
    plan -w n1 --role trains true : --role b --on train true
has 'a near name is told' "$ERR" 'did you mean `--on trains`?'
refused 'two roles of one name' 'error[HN727]: two roles are called `a`' plan -w n1 --role a true : --role a --on a true
refused 'a role on itself' 'error[HN728]: roles stand on each other: a --on a' plan -w n1 --role a --on a true
refused 'a circle' 'error[HN728]: roles stand on each other: a --on b --on a' plan -w n1 --role a --on b true : --role b --on a true
refused '--nodes beside --on' 'error[HN729]: role `b`: --on and --nodes exclude each other' \
    plan -w n1 --role a true : --role b --on a --nodes 1 true
refused '--replicas beside --on' '--on and --replicas exclude each other' plan -w n1 --role a true : --role b --on a --replicas 2 true
refused '--replicas beside --world' '--world and --replicas exclude each other' plan -w n1 --role a --replicas 2 --world w true
refused '--ppn beside --per-node' '--per-node and --ppn exclude each other' plan -w n1 --role a --per-node --ppn 2 true
refused '--gpus-per-rank beside --per-node' '--per-node and --gpus-per-rank exclude' plan -w n1 --role a --per-node --gpus-per-rank 2 true
refused '--share-gpus alone' 'error[HN729]: role `a`: --share-gpus without --on' plan -w n1 --role a --share-gpus true
refused 'two that take the rest' 'error[HN729]: roles `a` and `b` both take the rest of the nodes' \
    plan -w n[1-2] --role a --nodes rest true : --role b true
refused 'a number of ranks for the job' 'error[HN729]: -n in front of the first --role' plan -w n1 -n 2 --role a true
refused 'an option of a role without one' 'error[HN729]: `--on` stands in front of no --role' plan -w n1 --on a true
refused 'a role behind a program without' 'error[HN729]: `--role` behind `:`, but the first program has no --role' \
    plan -w n1 true : --role b true
refused 'two roles of one program' 'error[HN729]: a program is one role: --role a and --role b' plan -w n1 --role a --role b true
refused 'an option of the job behind a colon' 'error[HN725]: `--timeout` behind `:` is an option of the whole job' \
    plan -w n1 --role a true : --role b --timeout 5s true
refused 'a role without a program' 'error[HN725]: no program stands in front of `: --role`' plan -w n1 --role a : --role b true
has 'with the form of roles' "$ERR" 'help: each program stands behind its role: --role a ./a : --role b ./b'
refused 'a colon behind a colon' 'error[HN725]: no program stands in front of `: :`' plan -w n1 --role a true : : --role b true
refused 'nothing behind the last colon' 'error[HN725]: no program follows the last `:`' plan -w n1 --role a true :
refused 'a role without a program at the end' 'error[HN725]: no program follows --role b' plan -w n1 --role a true : --role b --nodes 1
refused 'a program without a name' 'error[HN705]: the name of the program of role b is empty' --local 1 --role a true : --role b --on a ''
for value in 'nodes 0' 'nodes 101%' 'nodes 5%x' 'on a:' 'on a:x' 'on :1' 'role 1a' 'role a.b' 'replicas 0'; do
    # shellcheck disable=SC2086
    hn plan -w n1 --role r --nodes 1 true : --$value true
    exits "--$value is refused" 64
    has 'with the right form' "$ERR" "error[HN703]: --${value% *} "
done
for option in '--min-nodes 1' '--nodes 1:2'; do
    # shellcheck disable=SC2086
    hn plan -w n1,n2 $option --role r -n 1 true
    exits "$option in a line with roles is refused" 64
    has 'for all nodes are needed' "$ERR" 'error[HN729]: --min-nodes and --nodes MIN:MAX: a job of roles needs all its nodes'
done
done_testing
