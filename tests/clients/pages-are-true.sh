#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# README.md and the pages of docs/: the commands of their console blocks are run and print what the page says
# (tests/lib/page.sh), and every other command line of hnlaunch, in a block of sh or between backquotes, is one that
# hnlaunch reads: a job as plan, a command without any run. The how-tos are run by howtos-are-true.sh, the tutorial by
# tutorial-is-true.sh; their other command lines are read here. What protocol.md quotes are bytes of a connection.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/page.sh" || exit 1

# No command of a page may meet a run of another test.
export XDG_STATE_HOME=$TMP/state XDG_RUNTIME_DIR=$TMP/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
export PATH=$PLAIN:$PATH PKG_CONFIG_PATH=$PLAIN/meson-uninstalled LD_LIBRARY_PATH=$PLAIN

# --- the commands that are run ------------------------------------------------------------------

for page in "$ROOT"/README.md "$ROOT"/docs/*.md; do
    name=$(basename "$page" .md)
    [[ $name != tutorial ]] || continue
    mkdir "$TMP/work/$name"
    cd "$TMP/work/$name" || exit 1
    page_files "$page"
    page_commands "$page"
done
ok "commands were run ($tests)" test "$tests" -gt 10

# --- the command lines that are read ------------------------------------------------------------

# Prints "PAGE:LINE<tab>COMMAND"; a line that ends with \ goes on in the next one.
command_lines() { # PAGE...
    awk '
        FNR == 1 { kind = ""; line = "" }
        /^```/ { kind = kind == "" ? substr($0, 4) " " : ""; next }
        kind == "sh " {
            sub(/^[ \t]+/, line == "" ? "" : " ")
            line = line $0
            if (sub(/\\$/, "", line)) next
            if (gsub(/\047/, "&", line) % 2) { line = line ";"; next }
            if (line ~ /^hnlaunch /) print FILENAME ":" FNR "\t" line
            line = ""
        }
        kind == "" {
            n = split($0, span, "`")
            for (i = 2; i <= n; i += 2) if (span[i] ~ /^hnlaunch .*[ .\/]./ && i < n) print FILENAME ":" FNR "\t" span[i]
        }' "$@"
}

mkdir "$TMP/work/read"
cd "$TMP/work/read" || exit 1
printf '%s slots=8\n' gpu001 gpu002 gpu003 gpu004 >hosts.txt

# As in an allocation of PBS, so that a job needs to name no hosts; with --dial-in the nodes are not known yet.
export PBS_ENVIRONMENT=PBS_BATCH PBS_JOBID=1 PBS_NODEFILE=$PWD/hosts.txt
hnlaunch() {
    [[ -e $ROOT/docs/hnlaunch-$1.1.scd ]] || set -- plan "$@"
    timeout 20 "$PLAIN/hnlaunch" "$@" </dev/null
    (($? != 64)) || [[ $(grep '^error' "$ERR") == *': --dial-in has no plan before the nodes are there' ]]
}
"$PLAIN/hnlaunch" --local 4 true 2>"$ERR" # the newest run
lines=0
: >"$TMP/wrong"
while IFS=$'\t' read -r place line; do
    lines=$((lines + 1))
    (eval "$line") >"$OUT" 2>"$ERR" || printf '%s: %s: %s\n' "${place#"$ROOT"/}" "$line" "$(head -n 1 "$ERR")" >>"$TMP/wrong"
done < <(command_lines "$ROOT"/README.md "$ROOT"/docs/*.md "$ROOT"/docs/howto/*.md | grep -v '/protocol\.md:')
is 'hnlaunch reads every command line of the pages' "$(cat "$TMP/wrong")" ''
ok "there are command lines ($lines)" test "$lines" -gt 50
done_testing
