#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# No shell stands between: arguments, variables and the directory arrive as they are.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

every_byte=$(python3 -c 'import sys; sys.stdout.buffer.write(bytes(b for b in range(1, 256) if b != 10) + b"\n.")')
long=$(head -c 100000 /dev/zero | tr '\0' 'l')

args=('' ' ' "$every_byte" '$HOME `id` "quoted" '"'single'" '*' '-n' '--local' '--' 'a;b|c&d' "$long" '' $'two\nlines' '\' '')
printf '%s\0' "${args[@]}" >want.argv

export ODD="$every_byte" EMPTY='' EQUALS='a=b=' LONG="$long" MULTI=$'one\ntwo\n'
mkdir "$(printf 'odd \377 dir $x')"
cd "$(printf 'odd \377 dir $x')" || exit 1

hn_exits 'odd arguments are no problem' 0 --local 2 "$WORKERS/worker_dump" "${args[@]}"
for r in 0 1; do
    same "rank $r: argv" "$TMP/dump/$r.argv" "$TMP/work/want.argv"
    printf '%s\0' "$(pwd -P)" >want.cwd
    same "rank $r: cwd" "$TMP/dump/$r.cwd" want.cwd
    for name in ODD EMPTY EQUALS LONG MULTI; do
        printf '%s=%s\0' "$name" "${!name}" >want.env
        grep -za "^$name=" "$TMP/dump/$r.env" >got.env
        # grep -z takes lines apart at NUL only, so the whole value must match.
        same "rank $r: \$$name" got.env want.env
    done
done

hn --local 1 -- "$WORKERS/worker_dump" -- x
printf -- '--\0x\0' >want
same 'only the first -- belongs to hnlaunch' "$TMP/dump/0.argv" want

hn --local 1 "$WORKERS/worker_dump" --hostfile h -n 3
printf -- '--hostfile\0h\0-n\0003\0' >want
same 'options after the program belong to the program' "$TMP/dump/0.argv" want

cd "$TMP/work" || exit 1
mkdir there
hn --local 1 --chdir there "$WORKERS/worker_dump"
printf '%s\0' "$TMP/work/there" >want
same '--chdir' "$TMP/dump/0.cwd" want

mkdir gone
cd gone || exit 1
rmdir "$TMP/work/gone"
for way in '--local 1' '-w nowhere.invalid' 'plan --local 1' '--local 1 --chdir there' '--local 1 --chdir / --push x'; do
    # shellcheck disable=SC2086
    hn $way true
    exits "a directory that was deleted: $way" 66
    told_once 'the error says why, once' 'the current directory no longer exists'
    [[ $way == plan* ]] || verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 66)'
    has 'the next step is named' "$ERR" '--chdir DIR'
done
# The name of the shell for its folder counts, links and all, as far as it is true.
mkdir "$TMP/work/real"
ln -s real "$TMP/work/named"
folder_of() { # PWD [OPTION...]: what the plan has
    (cd "$TMP/work/real" && PWD=$1 "$HNLAUNCH" plan --local 1 "${@:2}" true 2>&1 | sed -n 's/^program .*  in  //p')
}
is 'a folder below a link keeps its name' "$(folder_of "$TMP/work/named")" "$TMP/work/named"
is '--chdir counts from there' "$(folder_of "$TMP/work/named" --chdir ../there)" "$TMP/work/named/../there"
is 'PWD of another folder does not' "$(folder_of "$TMP/work/there")" "$TMP/work/real"
is 'nor one that does not exist' "$(folder_of "$TMP/work/nowhere")" "$TMP/work/real"
is 'nor a relative one' "$(folder_of .)" "$TMP/work/real"
is 'nor one that only this process has' "$(folder_of /proc/self/cwd)" "$TMP/work/real"
(cd "$TMP/work/named" && "$HNLAUNCH" --local 1 --label none sh -c 'cd -P . && pwd -P' >"$OUT" 2>"$ERR")
is 'ranks start in it' "$(cat "$OUT")" "$TMP/work/real"

hn_exits '--chdir names another' 0 --local 1 --chdir "$TMP/work/there" "$WORKERS/worker_dump"
same 'and ranks start there' "$TMP/dump/0.cwd" "$TMP/work/want"
hn_exits 'a plan with --chdir' 0 plan --local 1 --chdir "$TMP/work/there" true
cd "$TMP/work" || exit 1

seq -f 'V%.0f=value' 1 3000 >many
run env "$(head -n1 many)" bash -c 'set -a; . ./many; "$@"' sh "$HNLAUNCH" --local 1 "$WORKERS/worker_dump"
is 'three thousand variables arrive' "$(tr '\0' '\n' <"$TMP/dump/0.env" | grep -c '^V[0-9]*=value$')" 3000
done_testing
