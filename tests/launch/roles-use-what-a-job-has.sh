#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Options of a job hold in a job of roles: --ranks, --stdin, --pty, --wrap, --timeout, --max-restarts and --detach take numbers of the job, and
# all roles restart and stop together.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hosts=(-w localhost:4,127.0.0.1:4 --gpus-per-rank 0)
a() { # PROGRAM...: the same program in two roles
    local first=("$@")
    a=(--role a --nodes 1 -n 2 "${first[@]}" : --role b --nodes 1 -n 2 "${first[@]}")
}

a sh -c 'echo "$HN_JOB_RANK"'
hn_exits '--ranks runs some ranks' 0 "${hosts[@]}" --ranks 1,2 "${a[@]}"
is 'by their numbers in the job' "$(sort "$OUT")" 'a:1 | 1
b:0 | 2'

a cat
hn "${hosts[@]}" --stdin all "${a[@]}" <<<hello
is '--stdin all feeds all roles' "$(sort "$OUT")" 'a:0 | hello
a:1 | hello
b:0 | hello
b:1 | hello'
hn "${hosts[@]}" --stdin 0 "${a[@]}" <<<hello
is '--stdin 0 feeds rank 0 of the job' "$(cat "$OUT")" 'a:0 | hello'

if type -P script >/dev/null; then
    a sh -c 'test -t 0 && echo "$HN_ROLE $RANK is it" || sleep 0.2'
    script -qec "'$HNLAUNCH' --label none -q ${hosts[*]} --pty=3 $(printf '%q ' "${a[@]}")" /dev/null </dev/null >"$OUT" 2>"$ERR"
    has '--pty gives the terminal to a rank of any role' "$OUT" 'b 1 is it'
else
    skip '--pty' 'no program script here'
fi

a sh -c 'echo "$SELF"'
hn "${hosts[@]}" --wrap 'env SELF={rank}@{host}' "${a[@]}"
is '--wrap stands in front of all programs, with ranks of their worlds' "$(sort "$OUT")" 'a:0 | 0@localhost
a:1 | 1@localhost
b:0 | 0@127.0.0.1
b:1 | 1@127.0.0.1'

show=(sh -c 'echo "$HN_ROLE $RANK ${PMI_RANK-none} ${PMI_JOBID-none}"')
hn "${hosts[@]}" --label none --role a --nodes 1 -n 1 --mpi pmi1 "${show[@]}" : --role b --nodes 1 -n 1 --mpi none "${show[@]}" : --role c --on a --mpi pmi2 "${show[@]}"
exits '--mpi differs by role' 0
is 'and each has what it asks for' "$(sed 's/\(c 0 0\) ..*-2$/\1 its own/' "$OUT" | sort)" 'a 0 0 none
b 0 none none
c 0 0 its own'
hn "${hosts[@]}" --role a --nodes 1 --world w true : --role b --on a --world w --mpi none true
exits 'two ways in one world' 64
has 'are refused' "$ERR" 'error[HN729]: role `b` has another --mpi than role `a` of the same world'
hn "${hosts[@]}" --role a --nodes 1 --world w true : --role b --on a --per-node --world w true
has 'and so is a role without ranks in a world of others' "$ERR" 'error[HN729]: role `b`: --per-node and --world exclude each other'

hn "${hosts[@]}" --role a --nodes 1 --per-node --mpi pmi1 true
has 'or one that asks for MPI' "$ERR" 'error[HN729]: role `a`: --per-node and --mpi exclude each other'

a true
hn "${hosts[@]}" --spares auto "${a[@]}"
has 'roles have no spare hosts by themselves' "$ERR" 'error[HN729]: --spares auto: a job of roles'

a sleep 60
hn_exits '--timeout ends all roles' 124 "${hosts[@]}" --hang-after never --timeout 500ms "${a[@]}"
nothing_left 'nothing is left'

a sh -c 'echo "$HN_ROLE $RANK $HN_RESTART"; [ "$HN_RESTART" = 1 ] && exit 0; [ "$HN_JOB_RANK" = 3 ] || exec sleep 60; exit 5'
hn_exits 'a rank of one role fails, and the job restarts' 0 "${hosts[@]}" --label none --max-restarts 1 "${a[@]}"
is 'all worlds start again' "$(grep -c ' 1$' "$OUT")" 4
has 'the reason names the role' "$ERR" 'restart 1 of 1: role b, rank 1 on 127.0.0.1 exited with code 5'

export XDG_RUNTIME_DIR=$TMP/runtime XDG_STATE_HOME=$TMP/state
mkdir -m 700 "$XDG_RUNTIME_DIR"
a sh -c 'echo up; while [ ! -e go ]; do sleep 0.05; done; echo done'
hn_exits 'a job of roles goes on without its terminal' 0 "${hosts[@]}" --log-dir auto --detach "${a[@]}"
run=$(cat "$OUT")
"$HNLAUNCH" attach "$run" >attached 2>attached.err &
pid=$!
wait_for grep -q '| up' attached
: >go
code=0
wait "$pid" || code=$?
is 'attach ends with its code' "$code" 0
is 'and shows the lines of all roles' "$(grep -c "| done" attached)" 4
nothing_left 'nothing is left'
done_testing
