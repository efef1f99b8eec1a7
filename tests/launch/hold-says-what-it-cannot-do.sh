#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Commands about holds name their mistakes, and a hold that is not fit is no obstacle. tests/lab/runs-start-on-a-hold.sh has what holds do.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir

says() { # NAME CODE HN TEXT ARG...
    local name=$1 code=$2 number=$3 text=$4
    shift 4
    hn_exits "$name" "$code" "$@"
    has "$name: the number" "$ERR" "error[$number]"
    has "$name: the reason" "$ERR" "$text"
}
says 'a hold without hosts' 64 HN708 'no hosts given' hold
says 'a hold with a program' 64 HN808 '`hold` starts no program: `true`' hold -w localhost true
HNLAUNCH_SSH_TREE=4 says 'a hold of a tree' 64 HN704 'hold and --tree exclude each other' hold -w other.invalid
says 'a hold by dial-in' 64 HN704 '--dial-in is an option of run, plan, check, rerun and config, not of hold' hold --dial-in other.invalid:4000
says 'a run on a hold and a tree' 64 HN704 '--hold abcde and --tree exclude each other' --hold abcde --tree 4 -w other.invalid true
has 'a run on a hold and a tree: the next step' "$ERR" 'leave one of the two out'
says 'a run on a hold by dial-in' 64 HN704 '--hold abcde and --dial-in exclude each other' --hold abcde --dial-in other.invalid:4000 --node-rank 0 --nodes 2 true
says 'a run on a hold and this machine' 64 HN704 '--hold abcde and --local exclude each other' --hold abcde --local 2 true
says 'a hold of this machine' 64 HN636 'all hosts are this machine' hold -w localhost
says 'a hold that is not there' 69 HN631 'there is no hold abcde' --hold abcde -w other.invalid true
says 'a release of a hold that is not there' 69 HN631 'there is no hold abcde' release abcde
says 'a release of one and all' 64 HN808 '--all releases all holds' release abcde --all
says '--idle of a run' 64 HN704 '--idle' --idle 5m --local 1 true

hn_exits 'release without holds' 0 release
has 'says that there are none' "$ERR" 'you have no holds here'
hn ps --json
is 'ps has none' "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["holds"])' "$OUT")" '[]'

# --- a hold that answers as told -------------------------------------------------------------------------------

mkdir -m 700 "$XDG_RUNTIME_DIR/hnlaunch"
fake() { # ANSWER: to a run
    rm -f "$XDG_RUNTIME_DIR/hnlaunch/holds/a.sock"
    python3 "$ROOT/tests/lib/fake_hold.py" "$XDG_RUNTIME_DIR/hnlaunch/holds/a.sock" "$1" 2>/dev/null &
    fake=$!
    wait_for test -S "$XDG_RUNTIME_DIR/hnlaunch/holds/a.sock"
}
fake '{"error": "it is busy"}'
says 'a hold that refuses' 69 HN633 'hold fake1 does not serve this run: it is busy' --hold fake1 -w other.invalid true
hn ps
has 'ps shows who uses it' "$OUT" 'used by k3f9q'
has 'and its age' "$OUT" '1m01s'
hn release fake1
has 'a release waits for the run' "$ERR" 'hold fake1 ends when run k3f9q has ended'
kill "$fake"
fake '{"used": "k3f9q", "host": "other.invalid", "hold": "fake1"}'
says 'a hold in use' 69 HN630 'run k3f9q uses other.invalid on hold fake1' --hold fake1 -w other.invalid true
kill "$fake"
fake '{"differs": "--user"}'
says 'a hold with other settings' 69 HN632 'hold fake1 has other settings: --user' --hold fake1 -w other.invalid true
kill "$fake"
wait_for not ps -p "$fake" >/dev/null 2>&1
sleep 2 # a young socket may be one of a hold that does not listen yet
is 'a socket without a hold is no hold' "$("$HNLAUNCH" ps --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["holds"])')" '[]'

ok 'and goes, with the folder' test ! -e "$XDG_RUNTIME_DIR/hnlaunch/holds"

# --- what a run without a hold pays ----------------------------------------------------------------------------

rm -rf "$XDG_RUNTIME_DIR/hnlaunch"
if command -v strace >/dev/null; then
    ASAN_OPTIONS=detect_leaks=0 strace -o calls -e trace=%file "$HNLAUNCH" --log-dir none -w other.invalid --ssh-command false true >/dev/null 2>&1
    is 'a run without holds looks once' "$(grep -c '/holds' calls)" 1
else
    skip 'a run without holds looks once' 'no strace'
fi

printf 'x' >"$TMP/file"
XDG_RUNTIME_DIR=$TMP/file hn hold -w other.invalid --ssh-command false
exits 'a hold that cannot be reached' 69
verdict_has 'ends with a last line, as a run' 'hnlaunch: nothing was started  (exit 69)'
done_testing
