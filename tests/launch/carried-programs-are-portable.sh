#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The agent carries its helpers for PMIx and GPUs, which run on nodes with glibc 2.28: no symbol is newer, and they need
# libc only.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

type -P objdump readelf >/dev/null || skip_all 'no binutils'
for helper in "$PLAIN"/src/carried/{pmix/hnlaunch-pmix,hnlaunch-nvml,hnlaunch-nccl}; do
    name=${helper##*-}
    [[ -x $helper ]] || skip_all "no $helper"
    objdump -T "$helper" | grep -oE 'GLIBC_[0-9.]+' | sort -uV >versions
    ok "$name has versions of symbols" test -s versions
    is 'the newest version of a symbol is at most GLIBC_2.28' \
        "$({ cat versions; echo GLIBC_2.28; } | sort -V | tail -n 1)" GLIBC_2.28
    is 'it needs libc and its parts only' "$(readelf -d "$helper" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort | xargs)" \
        'libc.so.6 libdl.so.2 libpthread.so.0'
    size=$(stat -c %s "$helper")
    echo "# $size bytes"
    ok 'it weighs less than 64 KiB' test "$size" -lt 65536
    # Packed, as by gzip but without its header and end.
    ok 'the agent carries it' python3 - <(gzip -9nc <"$helper") "$PLAIN/hnlaunch-agent" <<'END'
import sys
helper, agent = (open(path, "rb").read() for path in sys.argv[1:])
sys.exit(helper[10:-8] not in agent)
END
done

# The library for Open MPI 3 and 4 is loaded into ranks.
library=$PLAIN/src/carried/pmix/libhnlaunch-pmi.so
is 'the library of PMI-1 needs no other' "$(readelf -d "$library" | grep -c NEEDED)" 0
is 'and no version of a symbol' "$(objdump -T "$library" | grep -c GLIBC)" 0
is 'its functions are those of PMI-1' "$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -vc '^PMI_')" 0
done_testing
