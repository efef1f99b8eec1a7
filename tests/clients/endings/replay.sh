# SPDX-License-Identifier: Apache-2.0
# Rank 1 prints what a program of another language printed when it failed, and ends as that one did: with a code, or
# by a signal. The others wait.
# usage: sh replay.sh FILE CODE|SIGNAL
[ "$RANK" = 1 ] || exec sleep 60
cat "$(dirname "$0")/recorded/$1" >&2
case $2 in
[0-9]*) exit "$2" ;;
*)
    ulimit -c 0
    kill -s "$2" $$
    ;;
esac
