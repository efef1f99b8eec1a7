/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/bind_policy.h"

TEST(words_of_all_launchers_mean_a_kind)
{
        static const struct {
                const char *text;
                enum bind_kind kind;
                uint32_t cores;
        } rows[] = {
                { "auto", BIND_AUTO, 1 },
                { "none", BIND_NO, 1 },
                { "", BIND_NO, 1 },
                { "no", BIND_NO, 1 },
                { "numa", BIND_NUMA, 1 },
                { "node", BIND_NUMA, 1 },
                { "ldoms", BIND_NUMA, 1 },
                { "socket", BIND_SOCKET, 1 },
                { "sockets", BIND_SOCKET, 1 },
                { "package", BIND_SOCKET, 1 },
                { "core", BIND_CORES, 1 },
                { "cores", BIND_CORES, 1 },
                { "core:1", BIND_CORES, 1 },
                { "core:64", BIND_CORES, 64 },
                { "exclusive", BIND_EXCLUSIVE, 1 },
        };
        struct bind_policy p;
        struct error err;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(bind_policy_parse(&p, rows[i].text, &err), 0);
                assert_int_equal(p.kind, rows[i].kind);
                assert_int_equal(p.cores, rows[i].cores);
                bind_policy_finish(&p);
        }
}

TEST(a_list_has_processors_for_each_rank)
{
        CLEANUP(free_textp) char *second = NULL;
        struct bind_policy p;
        struct error err;

        assert_int_equal(bind_policy_parse(&p, "list:0-3,9;4-7", &err), 0);
        assert_int_equal(p.kind, BIND_LIST);
        assert_int_equal(p.n_masks, 2);
        assert_int_equal(cpu_mask_count(&p.masks[0]), 5);
        second = cpu_mask_format(&p.masks[1]);
        assert_string_equal(second, "4-7");
        bind_policy_finish(&p);
        assert_int_equal(p.kind, BIND_NO);
}

TEST(what_is_none_of_them_is_refused)
{
        static const char *const texts[] = { "both",   "AUTO",     "core:",      "core:0",
                                             "core:x", "core:1x",  "core:16385", "core:-1",
                                             "list:",  "list:0;",  "list:;0",    "list:0-",
                                             "list:a", "list:0 1", "list:0\n",   "numa:1" };
        struct bind_policy p;
        struct error err;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                assert_int_equal(bind_policy_parse(&p, texts[i], &err), -EINVAL);
                assert_true(*err.text);
        }
}
