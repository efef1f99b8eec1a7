#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each sentence of SECURITY.md is one line that ends with a test, and the test exists.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
page=$ROOT/SECURITY.md

claims() { sed -n '/^## Report a defect/q; /^## /,$p' "$page" | grep -v -e '^## ' -e '^$'; }

sentences=$(claims | wc -l)
ok 'there are sentences' test "$sentences" -ge 30
is 'each is a line of its own, and ends with a test' "$(claims | grep -vE '^- [^:]+: `tests/[^` ]+`$')" ''
is 'each is one sentence' "$(claims | sed 's/: `tests.*//' | grep -E '[.!?] +[A-Z]')" ''
is 'each test exists' "$(claims | grep -oE '`tests/[^`]+`$' | tr -d '`' | while read -r t; do
    [[ -f $ROOT/$t ]] || echo "$t"
done)" ''
is 'no sentence stands there twice' "$(claims | sort | uniq -d)" ''
has 'README.md names the page' "$ROOT/README.md" SECURITY.md
has 'and docs/architecture.md' "$ROOT/docs/architecture.md" SECURITY.md
done_testing
