#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# However a rank tries to outlive its job, it is gone at the end; so are hnlaunch's own files.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn_exits 'a rank that leaves a session of its own behind' 0 --local 2 sh -c 'setsid sleep 300 >/dev/null 2>&1 & exit 0'
nothing_left 'the session is gone'

hn_exits 'a rank that forks twice' 0 --local 2 sh -c '(setsid sh -c "sleep 300 & sleep 300 & wait" >/dev/null 2>&1 &) ; exit 0'
nothing_left 'its grandchildren are gone'

hn --local 2 sh -c 'setsid sh -c "trap \"\" TERM HUP; while :; do sleep 1; done" >/dev/null 2>&1 & [ $RANK = 0 ] || exit 3; sleep 60'
exits 'a failing rank with a deaf child' 3
nothing_left 'the deaf child is gone'

# A service that cleans up when its client, which the rank started and leaves behind, is gone. SIGTERM would end it before.
cat >service.sh <<'END'
mkfifo "client.$RANK"
setsid sh -c 'touch "kept.$RANK"; read -r line; sleep 1; rm "kept.$RANK"' <"client.$RANK" >/dev/null 2>&1 &
sleep 300 >"client.$RANK" &
until [ -e "kept.0" ] && [ -e "kept.1" ]; do sleep 0.05; done
case $1.$RANK in
    exit.?) exit 0 ;;
    fail.1) exit 3 ;;
    kill.1) kill -KILL $$ ;;
esac
echo up
wait
END
for end in exit:0 fail:3 kill:137; do
    rm -f client.*
    hn_exits "ranks with services: $end" "${end#*:}" --local 2 sh service.sh "${end%:*}"
    is '... whose files are gone' "$(echo kept.*)" 'kept.*'
done
rm -f client.*
start --local 2 --label none sh service.sh stop
wait_for lines_are "$OUT" 2
finish_by TERM
is 'so they are after SIGTERM' "$RC $(echo kept.*)" '143 kept.*'
nothing_left 'nothing else is left of them'

begin=$SECONDS
hn_exits 'a child that holds the output open does not hold up the end' 0 --local 1 --grace 1s sh -c 'sleep 300 & echo done'
ok 'the end comes soon' test $((SECONDS - begin)) -lt "$(scaled 8)"
nothing_left 'that child is gone, too'

# Known by a time that no other test sleeps.
export NAP=300.$BASHPID$RANDOM
gone() { ! pgrep -f "^sleep $NAP\$" >/dev/null; }
hn --local 2 env -u HN_RUN_ID -u HN_STORE sh -c 'setsid env -u HN_STORE sleep $NAP & exit 0'
ok 'a child without the marks of the job is gone' wait_for gone

# A service that starts a process for a rank: it is no child of ours, but it has the job's variables.
mkfifo orders
while [[ -p orders ]]; do
    read -r store <orders || continue # the last writer had not closed it yet
    HN_STORE=$store setsid sh -c 'echo >>served; exec sleep $NAP' &
done &
service=$!
order='echo "$HN_STORE" >orders; until [ -s served ]; do sleep 0.05; done'

hn_exits 'a rank whose process a service has started' 0 --local 1 sh -c "$order"
ok 'the service did that' test -s served
ok 'the process is gone' wait_for gone
rm served
hn_exits 'an agent that is killed after that' 125 --local 1 sh -c "$order; kill -KILL \$PPID"
ok 'the process was there' test -s served
ok 'it is gone, too' wait_for gone
kill "$service"

export TMPDIR=$TMP/tmp
mkdir "$TMPDIR"
unset XDG_RUNTIME_DIR
hn --local 2 sh -c 'exit $RANK'
is_empty() { [[ -z $(ls -A "$TMPDIR") ]]; }
ok 'no temporary file is left' wait_for is_empty # hnlaunch waits two seconds for its agent to leave, no longer
done_testing
