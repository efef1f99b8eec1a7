/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intlist.h"

#include "base/memory.h"
#include "lib/unit.h"

TEST(a_list_grows_in_the_order_given)
{
        struct intlist l = { 0 };

        for (int i = 100; i > 0; i--)
                intlist_add(&l, i);
        assert_int_equal(l.n, 100);
        assert_int_equal(l.v[0], 100);
        assert_int_equal(l.v[99], 1);
        assert_true(intlist_has(&l, 50));
        assert_false(intlist_has(&l, 0));
        intlist_finish(&l);
        assert_int_equal(l.n, 0);
        assert_false(intlist_has(&l, 50));
}

TEST(consecutive_numbers_fold_into_ranges)
{
        static const struct {
                int v[8];
                size_t n;
                const char *text;
        } rows[] = { { { 0 }, 0, "" },
                     { { 5 }, 1, "5" },
                     { { 0, 1, 2, 3 }, 4, "0-3" },
                     { { 0, 1, 4, 7, 8 }, 5, "0-1,4,7-8" },
                     { { 3, 2, 1 }, 3, "3,2,1" } };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(intlist_finish) struct intlist l = { 0 };
                CLEANUP(free_textp) char *text = NULL;

                for (size_t k = 0; k < rows[i].n; k++)
                        intlist_add(&l, rows[i].v[k]);
                text = intlist_fold(&l);
                assert_string_equal(text, rows[i].text);
        }
}
