#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whatever the library exports has a page in section 3, with its prototype and a description.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

pages=$PLAIN/docs
[[ -e $pages/hnlaunch.3 ]] || skip_all 'built without manual pages'
nm -D --defined-only "$PLAIN/libhnlaunch.so.0" | awk '$2 == "T" && $3 ~ /^hn_/ { print $3 }' >"$TMP/calls"
ok 'the library exports calls' test "$(wc -l <"$TMP/calls")" -gt 60
grep -ohE '^HN_INLINE [^(]*\bhn_[a-z0-9_]+\(' "$ROOT"/include/hnlaunch/*.h | grep -oE 'hn_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$TMP/inline"
ok 'nccl.h has calls, too' test "$(wc -l <"$TMP/inline")" -ge 7

described() { # CALL: on a page of its own, or on the one it refers to
    local page=$pages/$1.3 other
    other=$(sed -n 's/^\.so man3\///p' "$page")
    [[ -z $other ]] || page=$pages/$other
    grep -q "\\b$1(" "$page" &&
        [[ -n $(sed -n '/^\.SH DESCRIPTION/,/^\.SH/p' "$page" | grep -v '^\.') ]]
}
missing=
while read -r call; do
    described "$call" 2>/dev/null || missing+=" $call"
done < <(cat "$TMP/calls" "$TMP/inline")
is 'all of them are described' "$missing" ''
for page in hnlaunch hnlaunch-comm hnlaunch-nccl; do
    ok "$page.3 is about a header" grep -q "#include <hnlaunch/" "$pages/$page.3"
done
strangers=
for page in "$pages"/hn_*.3; do
    name=$(basename "$page" .3)
    grep -qx "$name" "$TMP/calls" "$TMP/inline" || strangers+=" $name"
done
is 'no page is about a call that is gone' "$strangers" ''
if command -v groff >/dev/null; then
    cat "$pages"/hnlaunch*.3 "$pages"/hn_*.3 | grep -v '^\.so' >"$TMP/all"
    run groff -man -Tutf8 -ww "$TMP/all"
    is 'groff has no word of warning' "$(cat "$ERR")" ''
else
    skip 'groff has no word of warning' 'there is no groff'
fi
done_testing
