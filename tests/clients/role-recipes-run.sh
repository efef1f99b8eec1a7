#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The recipes of docs/howto with several programs in one job: each is short, sleeps nowhere and has no port of its own, so that
# two of them run at once on the same hosts (HN_ROUNDS pairs, default 10). What they print is compared in howtos-are-true.sh, too.
rounds=${HN_ROUNDS:-10} # the next line unsets it
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/page.sh" || exit 1

export PATH=$PLAIN:$PATH LD_LIBRARY_PATH=$PLAIN OMP_NUM_THREADS=1
howto=$ROOT/docs/howto
recipes=$(sed -n '/^Jobs of several programs/,/^Coming from/s/^| \[\(.*\)\.md\].*/\1/p' "$howto/README.md")

# shellcheck disable=SC2086 # names
is 'every page with roles is listed as a job of several programs' \
    "$(cd "$howto" && grep -lE '^>? *--role |\[role ' -- *.md | sort | xargs)" "$(printf '%s.md\n' $recipes | sort | xargs)"

page_check() { # COMMAND FILE-WITH-ITS-OUTPUT
    if [[ $1 == hnlaunch* && $command_of_page == '' ]]; then
        command_of_page=$1
        sort "$2" >"$TMP/wanted"
    elif [[ $1 != hnlaunch* ]]; then
        ok "$1" bash -c "$1"
    fi
}

recipe() { # NAME: makes its files here, and sets command_of_page
    command_of_page=
    mkdir "$TMP/work/$1" && cd "$TMP/work/$1" || exit 1
    page_files "$howto/$1.md"
    page_commands "$howto/$1.md"
}

for name in $recipes; do
    recipe "$name"
    lines=$(wc -l <<<"$command_of_page")
    ok "$name: a command line of $lines lines, at most 15" test -n "$command_of_page" -a "$lines" -le 15
    is "$name: no port is fixed, and nothing sleeps" \
        "$(grep -noE '(:|port[= ])[0-9]{4,5}\b|sleep' <<<"$command_of_page"; grep -nE '\bsleep' -- *.py *.c *.ini 2>/dev/null)" ''
done

one() { # FOLDER: a run of the recipe in a folder of its own
    cp -r "$TMP/work/rl" "$1" && cd "$1" && timeout 100 bash -c "$command_of_page" >out 2>err
    echo $? >code
    sort out >sorted
}

rm -rf "$TMP/work/rl"
recipe rl
cd "$TMP/work" || exit 1
bad=
for ((i = 0; i < rounds; i++)); do
    one "$TMP/pair.a" &
    first=$!
    one "$TMP/pair.b" &
    wait "$first" $!
    for run in a b; do
        cmp -s "$TMP/wanted" "$TMP/pair.$run/sorted" && [[ $(cat "$TMP/pair.$run/code") == 0 ]] ||
            bad+="round $i: exit code $(cat "$TMP/pair.$run/code"): $(tail -n 5 "$TMP/pair.$run/err")"$'\n'
    done
    rm -rf "$TMP/pair.a" "$TMP/pair.b"
done
is "two jobs of one recipe run at once on the same hosts, $rounds times" "$bad" ''
nothing_left 'nothing is left'

cd rl || exit 1
sed -i 's/^    global weights$/&\n    if path[0] == "generate":\n        sys.stderr.write("out of memory\\n"), os._exit(3)/; s/^import sys/import os\n&/' infer.py
run bash -c "$command_of_page"
exits 'a server that dies under way ends the job with its exit code' 3
verdict_has 'and its name' 'role infer, rank ' 'out of memory'
nothing_left 'nothing is left'
done_testing
