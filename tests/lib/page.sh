# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs what a page of docs/ shows: source after tap.sh.
#
#   page_files PAGE             writes the blocks of c, python and text that begin with the name of their file
#                               (/* pi.c */, # train.py or <!-- name -->), in the current folder
#   page_commands PAGE          runs the commands of the console blocks, each a test
#   page_needs PAGE             sets LACKS to what the page needs and this machine lacks ("" = nothing), and
#                               PAGE_MODULES to the folder of the Python modules that were fetched for it
#
# A command of a console block begins with "$ ", goes on in lines that begin with "> ", and ends with code 0. Other
# lines are what it prints, in any order, because ranks print in any order; a line "..." stands for any lines.
# The first line of a page may name its needs: <!-- needs: WORD... -->. A word is the name of a command,
# python3:MODULE, file:PATH, mpich, kit:NAME (Python modules that tests/lib/NAME_kit.sh fetches), or lab:N: the commands then
# run on the head of N lab nodes, whose names are in hosts.txt. A page that needs slurm is run by
# lab/slurm-page-is-true.sh.

page_files() { # PAGE
    awk '
        /^```(c|python|text)$/ {
            getline
            file = $2
            if ($0 ~ /^(\/\*|#|<!--) [^ ]+\.[a-z]+/ && file !~ "/") { sub(":", "", file); inside = 1; printf "" >file }
        }
        /^```$/ { inside = 0 }
        inside { print >file }' "$1"
}

# Prints the first lines, which are not in the second file; both are sorted.
page_missing() { comm -23 "$1" "$2"; } # WANTED GOT

page_compare() { # COMMAND FILE-WITH-ITS-OUTPUT
    local wanted=$TMP/page.wanted got=$TMP/page.got
    page_run "$1"
    sort "$2" >"$wanted"
    sort "$OUT" >"$got"
    if grep -qxF ... "$wanted"; then
        sed -i '/^\.\.\.$/d' "$wanted"
        is "$1" "$RC: $(page_missing "$wanted" "$got")" '0: '
    else
        is "$1" "$RC: $(cat "$got")" "0: $(cat "$wanted")"
    fi
}

# Scripts may replace both: how a command is run, and whether it is.
page_run() { run bash -c "$1"; } # COMMAND

page_check() { page_compare "$@"; } # COMMAND FILE-WITH-ITS-OUTPUT

page_commands() { # PAGE
    local line command='' output=$TMP/page.output
    while IFS= read -r line <&7; do
        case $line in
            '$ '*)
                [[ -z $command ]] || page_check "$command" "$output"
                command=${line#??}
                : >"$output"
                ;;
            '> '*) [[ -s $output ]] && printf '%s\n' "$line" >>"$output" || command+=$'\n'${line#??} ;;
            *) printf '%s\n' "$line" >>"$output" ;;
        esac
    done 7< <(awk '/^```console$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$1")
    [[ -z $command ]] || page_check "$command" "$output"
}

page_words() { # PAGE
    sed -n '1s/^<!-- needs: \(.*\) -->$/\1/p' "$1"
}

page_needs() { # PAGE
    local word kits=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests
    LACKS=
    PAGE_MODULES=
    for word in $(page_words "$1"); do
        case $word in
            python3:*) python3 -c "import ${word#*:}" 2>/dev/null || LACKS+=" the Python module ${word#*:}" ;;
            kit:*) PAGE_MODULES=$(timeout 150 bash "$ROOT/tests/lib/${word#*:}_kit.sh" "$kits/${word#*:}" 2>/dev/null) || LACKS+=" ${word#*:}" ;;
            file:*) [[ -e ${word#*:} ]] || LACKS+=" ${word#*:}" ;;
            mpich) echo '#include <mpi.h>' | mpicc -E -dM -x c - 2>/dev/null | grep -q MPICH_VERSION || LACKS+=' MPICH with its mpicc' ;;
            lab:*) [[ $(id -u) == 0 ]] && unshare --net --uts --ipc --mount true 2>/dev/null || LACKS+=" root (network namespaces)" ;;
            *) command -v "$word" >/dev/null || LACKS+=" $word" ;;
        esac
    done
}
