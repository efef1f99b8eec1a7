#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --restart auto: the evidence of all attempts decides whether the next one begins, and on which hosts. Nodes are agents of
# this machine with names of their own.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf 'a slots=1\nb slots=1\nc slots=1 spare\nd slots=1 spare\n' >hosts
# shellcheck disable=SC2054
nodes=(-H hosts --oversubscribe --start-with 'env NODE={host}' --label none --log-dir logs --grace 1s --bad-hosts none)
auto() { hn "${nodes[@]}" --restart auto "$@"; }
# Rank 1 does the deed, rank 0 waits for its end.
rank_one() { echo "[ \$RANK = 1 ] || exec sleep 60; $1"; }
ends() { echo "[ \$HN_RESTART != $1 ] || exit 0; $(rank_one "$2")"; } # ATTEMPT DEED: until then
decisions() { python3 -c '
import json
for a in json.load(open("logs/latest/summary.json", encoding="utf-8"))["attempts"]:
    print(a["attempt"], a.get("evidence", "-"), a.get("decision", "-"), a.get("host", "-"), sep=":")' | xargs; }

auto sh -c "$(rank_one 'echo "ValueError: bad shard $RANDOM of /data/$$" >&2; exit 7')"
exits 'a program that fails twice in one way: its code' 7
has 'the first time the same hosts go on' "$ERR" 'attempt 2: same hosts: nothing points to one host (rank 1 on b'
has 'the second time it ends' "$ERR" "no attempt 3: the same failure twice without progress: it is the program's"
is 'the summary has both attempts' "$(decisions)" '1:exit:same hosts:b 2:exit:stop:b'
is 'each decision is an event' "$(grep -c '"ev":"run.decision"' logs/latest/events.ndjson)" 2
has 'with the number of the attempt and the reason' logs/latest/events.ndjson '"attempt":2,"text":"stop: the same failure twice'

exits 'exit 93: no other attempt' 93 auto sh -c "$(rank_one 'exit 93')"
has 'that is told' "$ERR" 'no attempt 2: a rank exited with 93: the program wants no other attempt'
auto --give-up 4 sh -c "$(rank_one 'exit 4')"
has '--give-up is another code' "$ERR" 'no attempt 2: a rank exited with 4'

exits 'a host with faults is replaced, and the job ends well' 0 auto sh -c "$(ends 2 'kill -SEGV $$')"
has 'not the first time' "$ERR" 'attempt 2: same hosts: the first time on b'
has 'the second time' "$ERR" 'host out: a second time on b, without progress'
has 'by a spare host' "$ERR" 'c takes the place of b'
is 'the third attempt has no decision' "$(decisions)" '1:fault:same hosts:b 2:fault:host out:b 3:-:-:-'
is 'the host has its event' "$(grep -c '"ev":"node.retired","node":1,"host":"b"' logs/latest/events.ndjson)" 1

exits 'the same fault on the next host is of the program: its code' 139 auto sh -c "$(rank_one 'kill -SEGV $$')"
has 'and told so' "$ERR" "no attempt 4: the failure of b came again on c: it is the program's"

exits 'an agent that was killed: its host is replaced at once' 0 auto sh -c "$(ends 1 'kill -KILL $PPID')"
has 'by a spare host, too' "$ERR" 'host out: b or its agent was lost'
lacks 'the other host stays' "$ERR" 'the place of a'

mv hosts all
sed 's/ spare//' all >hosts
exits '--spares alone: the job ends well' 0 auto --spares 2 sh -c "$(ends 2 '[ $HN_RESTART = 0 ] && kill -BUS $$; kill -KILL $PPID')"
is 'each restart tells how many spare hosts are left' \
    "$(sed -n 's/.*"run.restart".*"spares":\([0-9]*\),.*/\1/p' logs/latest/events.ndjson | xargs)" '2 1'
auto --nodes 2 --spares auto sh -c "$(ends 1 'kill -KILL $PPID')"
is 'and names the host that failed, not the one in its place' \
    "$(sed -n 's/.*"run.restart".*"host":"\([a-z]\)".*/\1/p' logs/latest/events.ndjson | xargs)" b
printf 'n slots=1\nn1 slots=1\nn12 slots=1 spare\n' >hosts
auto sh -c "$(ends 1 'kill -KILL $PPID')"
hn report
has 'report names the host and the one in its place' "$OUT" 'replaced     n1  n12 takes its place'
head -n 2 all >hosts
exits 'no other host is in the list: 125' 125 auto --bad-hosts "$PWD/bad" sh -c "$(rank_one 'kill -SEGV $$')"
has 'with the hosts that were put out, and why' "$ERR" 'warning[HN317]: no host is left to take the place of 1 host that was put out'
has 'each in a row' "$ERR" '| b: SIGSEGV of rank 1, a second time on b, without progress'
is 'it is not noted for later runs: no other host has shown whose fault it is' "$(grep -s '"b"' bad)" ''
mv all hosts

full='echo "Traceback (most recent call last):
  File \"a.py\", line 1, in f
OSError: [Errno 28] No space left on device: '"'%s'"'" >&2; exit 1'
# shellcheck disable=SC2059
exits 'a full file system of nobody in particular: one more try' 1 auto sh -c "$(rank_one "$(printf "$full" /checkpoints/step-7)")"
has 'and it is named' "$ERR" 'no attempt 3: No space left on device (/checkpoints/step-7): twice, and no host is to blame'
is 'no host is put out' "$(grep -c 'takes the place' "$ERR")" 0
# shellcheck disable=SC2059
exits 'the /tmp of a node is its own' 0 auto sh -c "$(ends 1 "$(printf "$full" /tmp/cache/x)")"
has 'its host goes' "$ERR" 'host out: what failed belongs to b alone'

# Elsewhere the agents tell. Those of this machine see one file system, unless a node has mounted its own.
# shellcheck disable=SC2059
auto sh -c "$(rank_one "$(printf "$full" /srv/step-7)")"
is 'a file system that two nodes see with one id is shared' "$(decisions)" '1:full:same hosts:b 2:full:stop:b'
if [[ $EUID == 0 ]] && unshare --mount true 2>/dev/null; then
    cat >own-mount <<'END'
#!/bin/sh
export NODE="$1"
shift
[ "$NODE" != b ] || exec unshare --mount sh -c 'mount -t tmpfs none /srv && exec "$@"' sh "$@"
exec "$@"
END
    chmod +x own-mount
    # shellcheck disable=SC2059
    auto --start-with "$PWD/own-mount {host}" sh -c "$(ends 1 "$(printf "$full" /srv/step-7)")"
    exits 'a local file system that no other node sees is of the node alone' 0
    is 'its host goes' "$(decisions)" '1:node:host out:b 2:-:-:-'
else
    skip 'a local file system that no other node sees is of the node alone' 'needs root (a mount namespace)'
fi

# Steps of --progress-re, of which the second attempt wins none.
auto --progress-re 'step ([0-9]+)' sh -c "$(rank_one 'echo step $((HN_RESTART < 2 ? 5 + HN_RESTART : 6)); sleep 0.2; exit 3')"
exits 'with progress the same failure does not end it' 3
is 'an attempt without does not count before the second' "$(decisions)" \
    '1:exit:same hosts:b 2:exit:same hosts:b 3:exit:same hosts:b 4:exit:stop:b'
auto --progress-file "$PWD/ckpt.*" sh -c "$(rank_one '[ $HN_RESTART -ge 2 ] || : >'"$PWD"'/ckpt.$HN_RESTART; exit 3')"
is 'a newer file is progress, too' "$(decisions)" \
    '1:exit:same hosts:b 2:exit:same hosts:b 3:exit:same hosts:b 4:exit:stop:b'
# Steps do not protect a host that faults each time.
wins='echo step $((HN_RESTART + 1)); sleep 0.2'
auto --progress-re 'step ([0-9]+)' sh -c "[ \$NODE = b ] || [ \$HN_RESTART = 3 ] || exec sleep 60; $wins; [ \$NODE != b ] || kill -SEGV \$\$"
exits 'a host that faults in each attempt is replaced, although each wins a step' 0
is 'the third time' "$(decisions)" '1:fault:same hosts:b 2:fault:same hosts:b 3:fault:host out:b 4:-:-:-'
has 'with the reason' "$ERR" 'host out: 3 times on b, and on no other host'
auto --bad-hosts "$PWD/bad" --progress-re 'step ([0-9]+)' sh -c "$(ends 4 "$wins; kill -SEGV \$\$")"
exits 'a fault that goes with its rank ends nothing while steps are won' 0
is 'and no other host is put out' "$(decisions)" \
    '1:fault:same hosts:b 2:fault:same hosts:b 3:fault:host out:b 4:fault:same hosts:c 5:-:-:-'
has 'which is told' "$ERR" 'waiting 4.0s before attempt 5: same hosts: the failure of b came again on c: no host is to blame'
is 'nor is one noted for later runs' "$(grep -s '"b"\|"c"' bad)" ''
auto --no-progress 2 sh -c "$(rank_one 'kill -KILL $$')"
has '--no-progress is the number of attempts in all' "$ERR" 'no attempt 3: 2 attempts without progress'
auto --max-restarts 1 sh -c "$(rank_one 'kill -KILL $$')"
is '--max-restarts is a limit beside' "$(grep -c 'attempt 2: same hosts' "$ERR")$(grep -c 'attempt 3' "$ERR")" 10

auto --max-restarts 1 sh -c "$(rank_one 'kill -SEGV $$')"
exits 'at that limit the code is that of the program, also when a host is put out' 139
lacks 'and no spare host is missed' "$ERR" HN317

exits 'a limit of time is no failure' 124 auto --timeout 1s sleep 60
lacks 'and nothing is decided' "$ERR" 'no attempt'
hn "${nodes[@]}" --max-restarts 1 sh -c "$(ends 1 'exit 7')"
has 'without it restarts are counted as ever' "$ERR" 'restart 1 of 1: rank 1 on b exited with code 7'
lacks 'without a list of attempts' logs/latest/summary.json attempts

hn_exits 'the table of decisions is printed' 0 explain restart
is 'each row with what is seen and what is done' "$(grep -c '^  seen:' "$OUT")$(grep -c '^  decision:' "$OUT")" 1010
hn explain --json restart
ok 'also as JSON' python3 -c 'import json; r = json.load(open("'"$OUT"'"))["restart"]; assert len(r) == 10 and all(x["seen"] and x["decision"] for x in r)'
nothing_left 'nothing is left of any attempt'
done_testing
