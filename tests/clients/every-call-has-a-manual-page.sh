#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whatever the library exports has a page in section 3, with its prototype and a description.
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
sed -nE 's,^/\* --- (.*[^ -]) -+( \*/)?$,\1,p' "$ROOT"/include/hnlaunch/*.h >"$TMP/titles"
sed -nE 's,^ \* [a-z]+: (.*),\1,p' "$ROOT"/include/hnlaunch/*.h >>"$TMP/titles"
ok 'the headers have sections' test "$(wc -l <"$TMP/titles")" -gt 6
sed -n '/^\.SH NAME/{n;s/\\-/-/g;p}' "$pages"/hn_*.3 >"$TMP/names"
is 'the NAME of a page is what its calls do, not the title of a section' \
    "$(sed 's/^[^-]* - //' "$TMP/names" | grep -Fxf "$TMP/titles")" ''
python3 - "$ROOT/docs/man3.py" >"$TMP/purposes" <<'END'
import ast, sys
tree = ast.parse(open(sys.argv[1]).read())
table = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "PURPOSE")
print("\n".join(key.value for key in table.keys))
END
sed 's/[, ].*//' "$TMP/names" | sort >"$TMP/pages"
is 'every page has a purpose, and no other' "$(sort "$TMP/purposes" | diff - "$TMP/pages")" ''
has 'hn_init(3) names its flag' "$pages/hn_init.3" 'HN_INIT_ALLOW_SINGLETON:'
if command -v groff >/dev/null; then
    cat "$pages"/hnlaunch*.3 "$pages"/hn_*.3 | grep -v '^\.so' >"$TMP/all"
    run groff -man -Tutf8 -ww "$TMP/all"
    is 'groff has no word of warning' "$(cat "$ERR")" ''
else
    skip 'groff has no word of warning' 'there is no groff'
fi
done_testing
