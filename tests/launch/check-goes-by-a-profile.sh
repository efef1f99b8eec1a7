#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check --profile FILE`: limits, expected values and weights; mistakes are told with their place, and nothing is asked.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir

printf '[limit]\ntmp_free = 1000T\n' >site.ini
hn_exits 'a limit that the node does not reach: 69' 69 check --local 1 --profile site.ini
has_row '... is told with the limit' 'tmp.free +fail +1 +localhost: .*, expected at least .*'
printf '[check]\ntmp.free = warn\n[limit]\ntmp_free = 1000T\n' >site.ini
hn_exits 'the check may only warn' 0 check --local 1 --profile site.ini
has_row '... and does' 'tmp.free +warn +1 +localhost: .*'
hn_exits '... and fails with --strict' 69 check --local 1 --profile site.ini --strict
printf '[check]\ntmp.free = ignore\n[limit]\ntmp_free = 1000T\n' >site.ini
hn_exits 'the check may be ignored' 0 check --local 1 --profile site.ini
ok '... and counts as not run' grep -qE '^not run: .*tmp\.free.*: the profile ignores it$' "$OUT"
printf '[expect]\nkernel = %s\n' "$(uname -r)" >site.ini
hn check --local 1 --profile site.ini
has_row 'the expected value passes' 'kernel +pass +1 +.*'
printf '[expect]\nkernel = "2.4.*"\n' >site.ini
hn_exits 'another value warns' 0 check --local 1 --profile site.ini
has_row '... with both' "kernel +warn +1 +localhost: $(uname -r | sed 's/[+.]/\\&/g'), expected 2\.4\.\*"

printf '[limit]\n\nshm_per_rnk = 1G\ntmp_free = much\n[check]\nthp = maybe\nkernl = warn\n[expect]\nnet.bandwidth = 100\n' >site.ini
hn_exits 'mistakes: 78' 78 check --local 1 --profile site.ini
has 'an unknown key has its place' "$ERR" 'site.ini:3:1'
has '... and a better one' "$ERR" 'did you mean `shm_per_rank`?'
has 'a value that is no size' "$ERR" 'tmp_free: `much` is no size'
has '... has its place' "$ERR" 'site.ini:4:12'
has 'an unknown weight' "$ERR" 'thp: `maybe` is not ignore, warn or fail'
has 'an unknown check' "$ERR" 'unknown key `kernl`'
has 'a check without a value of the node' "$ERR" 'cannot expect a value of net.bandwidth'
has '... has its place' "$ERR" 'site.ini:9:1'
lacks 'no node is asked' "$OUT" reach
hn_exits 'no file: 66' 66 check --local 1 --profile nowhere.ini
has '... is told' "$ERR" 'cannot read the profile nowhere.ini'

hn_exits 'a command that fails: 69' 69 check --local 1 --run 'echo one; echo two >&2; exit 4'
has_row '... with its last line' 'run +fail +1 +localhost: exit 4: two, expected exit 0'
hn_exits 'a command that does not' 0 check --local 1 --run true
has_row '... passes' 'run +pass +1 +exit 0'
nothing_left 'nothing is left'
done_testing
