/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table is short on purpose: each row has its source above, and a range of versions from there.
 * Versions are as of NCCL_VERSION_CODE, 10000 * major + 100 * minor + patch. The first row that
 * fits is told; a version outside of all rows is not said to be good.
 */
#include "head/model/known_bad.h"

#include <string.h>

#include "base/macros.h"

static const struct known_bad table[] = {
        /* Release notes of 2.29.3; NVIDIA/nccl issue 2353: 2.28.9 and 2.29.2 hang, 2.29.3 does not;
         * marin-community/marin pull request 8038: 7 of 7 runs on 128 GB200. */
        { 20000, 22903, "aarch64", 1, "can hang for ever without an error, within seconds or hours",
          "a compare-and-swap that fails now and then loses operations of the proxy, in builds "
          "with "
          "gcc before 10 such as NVIDIA's wheels (release notes of NCCL 2.29.3)",
          "use NCCL 2.29.3 or newer, for example pip install 'nvidia-nccl-cu12>=2.29.3'" },
        /* Release notes of 2.18.3. */
        { 21801, 21803, NULL, 2, "can corrupt data where each GPU has a network device of its own",
          "Tree with LL128 (release notes of NCCL 2.18.3)",
          "use NCCL 2.18.3 or newer; until then set NCCL_PROTO=^LL128" },
};

const struct known_bad *known_bad_find(uint32_t version, const char *arch, int nodes)
{
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (version >= table[i].first && version < table[i].fixed &&
                    nodes >= table[i].min_nodes && (!table[i].arch || !strcmp(table[i].arch, arch)))
                        return &table[i];
        return NULL;
}
