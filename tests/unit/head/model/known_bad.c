/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/known_bad.h"

#include "lib/unit.h"

TEST(versions_before_the_fix_are_known)
{
        static const struct {
                uint32_t version;
                const char *arch;
                int nodes;
                bool bad;
        } table[] = {
                { 22809, "aarch64", 1, true },    { 22902, "aarch64", 128, true },
                { 22903, "aarch64", 128, false }, { 23007, "aarch64", 1, false },
                { 22809, "x86_64", 128, false },  { 21801, "x86_64", 2, true },
                { 21801, "x86_64", 1, false },    { 21800, "x86_64", 2, false },
                { 21803, "x86_64", 2, false },    { 21801, "aarch64", 1, true },
                { 0, "aarch64", 2, false },       { UINT32_MAX, "aarch64", 2, false },
                { 22809, "", 2, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const struct known_bad *bad =
                        known_bad_find(table[i].version, table[i].arch, table[i].nodes);

                if (!bad != !table[i].bad)
                        fail_msg("%u on %s, %d nodes", table[i].version, table[i].arch,
                                 table[i].nodes);
                assert_true(!bad || (bad->fact && bad->cause && bad->help));
        }
}
