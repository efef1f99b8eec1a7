/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/hosts.h"

#include "lib/unit.h"

static bool is_equal_char(const void *ctx, size_t a, size_t b)
{
        const char *text = ctx;

        return text[a] == text[b];
}

TEST(groups_keep_the_order_of_their_hosts)
{
        CLEANUP(host_groups_finish) struct host_groups groups = { 0 };
        const char *text = "babcab";

        for (size_t i = 0; i < strlen(text); i++)
                host_groups_add(&groups, i, is_equal_char, text);
        assert_int_equal(groups.n, 3);
        assert_int_equal(groups.v[0].n, 3);
        assert_memory_equal(groups.v[0].hosts, ((size_t[]){ 0, 2, 5 }), 3 * sizeof(size_t));
        assert_int_equal(groups.v[1].n, 2);
        assert_memory_equal(groups.v[1].hosts, ((size_t[]){ 1, 4 }), 2 * sizeof(size_t));
        assert_int_equal(groups.v[2].n, 1);
        assert_int_equal(groups.v[2].hosts[0], 3);
}
