/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which columns of a table are left out at a width, and which are cut.
 */

#include "head/output/text_table.h"
#include "lib/unit.h"

static const struct text_column columns[] = {
        { "RUN", 0, 0, 0 },
        { "HOST", 0, 2, 0 },
        { "STEP", TEXT_RIGHT, 1, 0 },
        { "STATE", 0, 0, 6 },
        { "PROGRAM", TEXT_TRUNCATE, 0, 10 },
};

enum { N = sizeof(columns) / sizeof(*columns) };

/* Checks the widths of columns that are 5, 8, 7, 9 and 20 wide by themselves. */
static void fits(size_t width, const size_t *want)
{
        size_t widths[N] = { 5, 8, 7, 9, 20 };

        text_columns_fit(columns, N, TEXT_GAP, width, widths);
        for (int i = 0; i < N; i++)
                assert_int_equal(widths[i], want[i]);
}

TEST(all_columns_fit)
{
        fits(57, (size_t[N]){ 5, 8, 7, 9, 20 });
        fits(500, (size_t[N]){ 5, 8, 7, 9, 20 });
}

TEST(one_column_has_the_rest)
{
        fits(56, (size_t[N]){ 5, 8, 7, 9, 19 });
        fits(47, (size_t[N]){ 5, 8, 7, 9, 10 });
}

TEST(the_highest_rank_is_left_out_first)
{
        fits(46, (size_t[N]){ 5, 0, 7, 9, 19 });
        fits(37, (size_t[N]){ 5, 0, 7, 9, 10 });
        fits(36, (size_t[N]){ 5, 0, 0, 9, 18 });
        fits(28, (size_t[N]){ 5, 0, 0, 9, 10 });
}

TEST(then_cells_are_cut)
{
        fits(27, (size_t[N]){ 5, 0, 0, 8, 10 });
        fits(25, (size_t[N]){ 5, 0, 0, 6, 10 });
        fits(20, (size_t[N]){ 5, 0, 0, 6, 5 });
        fits(1, (size_t[N]){ 5, 0, 0, 6, 1 });
}

TEST(hidden_columns_take_nothing)
{
        size_t widths[N] = { 5, 0, 7, 0, 20 };

        text_columns_fit(columns, N, TEXT_GAP, 36, widths);
        assert_int_equal(widths[2], 7);
        assert_int_equal(widths[4], 20);
}
