/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/memory.h"
#include "base/strv.h"
#include "lib/unit.h"

TEST(pushed_strings_end_with_null)
{
        struct strv s = STRV_INIT;

        for (int i = 0; i < 100; i++) {
                strv_pushf(&s, "%d", i);
                assert_int_equal(s.n, i + 1);
                assert_null(s.v[s.n]);
        }
        assert_string_equal(s.v[0], "0");
        assert_string_equal(s.v[99], "99");
        strv_finish(&s);
        assert_int_equal(s.n, 0);
}

TEST(every_way_to_push_owns_its_copy)
{
        struct strv s = STRV_INIT, copy = STRV_INIT;
        char text[] = "abc";

        strv_push(&s, text);
        strv_push_mem(&s, text, 2);
        strv_push_take(&s, xstrdup(text));
        text[0] = 'X';
        assert_string_equal(s.v[0], "abc");
        assert_string_equal(s.v[1], "ab");
        assert_string_equal(s.v[2], "abc");
        strv_copy(&copy, &s);
        strv_finish(&s);
        assert_int_equal(copy.n, 3);
        assert_true(strv_has(&copy, "ab"));
        assert_false(strv_has(&copy, "a"));
        strv_finish(&copy);
}

TEST(env_set_replaces)
{
        CLEANUP(strv_finish) struct strv s = STRV_INIT;

        strv_env_set(&s, "A", "1");
        strv_env_set(&s, "AB", "2");
        strv_env_set(&s, "A", "3");
        strv_env_setf(&s, "C", "%d", 4);
        assert_int_equal(s.n, 3);
        strv_env_set_number(&s, "D", 0);
        strv_env_set_number(&s, "E", UINT32_MAX);
        assert_string_equal(s.v[3], "D=0");
        assert_string_equal(s.v[4], "E=4294967295");
        assert_null(s.v[5]);
        assert_string_equal(strv_env_get(&s, "A"), "3");
        assert_string_equal(strv_env_get(&s, "AB"), "2");
        assert_string_equal(strv_env_get(&s, "C"), "4");
        assert_null(strv_env_get(&s, "NOT_THERE"));
}

TEST(env_unset_removes_a_name_or_a_prefix)
{
        CLEANUP(strv_finish) struct strv s = STRV_INIT;

        strv_env_unset(&s, "A");
        strv_push(&s, "A=1");
        strv_push(&s, "AB=2");
        strv_push(&s, "A=3");
        strv_push(&s, "B=4");
        strv_env_unset(&s, "A");
        assert_int_equal(s.n, 2);
        assert_string_equal(s.v[0], "AB=2");
        strv_env_unset(&s, "A*");
        assert_int_equal(s.n, 1);
        assert_string_equal(s.v[0], "B=4");
        assert_null(s.v[1]);
}

TEST(env_values_may_be_empty_or_hold_equal_signs)
{
        CLEANUP(strv_finish) struct strv s = STRV_INIT;

        strv_env_set(&s, "EMPTY", "");
        strv_env_set(&s, "EQ", "a=b=c");
        assert_string_equal(strv_env_get(&s, "EMPTY"), "");
        assert_string_equal(strv_env_get(&s, "EQ"), "a=b=c");
        assert_null(strv_env_get(&s, "E"));
}

TEST(merge_is_as_many_sets)
{
        static const char *const old[] = { "A=1", "none", "B=2", "A=3", "AB=4" };
        static const char *const more[] = {
                "B=x", "C=5", "=odd", "bare", "A=", "C=6", "D==", "A=7"
        };
        CLEANUP(strv_finish) struct strv merged = STRV_INIT, set = STRV_INIT, pairs = STRV_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
                strv_push(&merged, old[i]);
                strv_push(&set, old[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
                CLEANUP(free_textp) char *name = xstrndup(more[i], strcspn(more[i], "="));

                strv_push(&pairs, more[i]);
                if (*name && strchr(more[i], '='))
                        strv_env_set(&set, name, strchr(more[i], '=') + 1);
        }
        strv_env_merge(&merged, &pairs);
        assert_int_equal(merged.n, set.n);
        for (size_t i = 0; i < set.n; i++)
                assert_string_equal(merged.v[i], set.v[i]);
        assert_null(merged.v[merged.n]);
}

TEST(move_is_a_merge_that_empties_the_pairs)
{
        static const char *const old[] = { "A=1", "none", "B=2", "AB=4" };
        static const char *const more[] = { "B=x", "C=5", "A=", "D==", "AC=6" };
        struct strv merged = STRV_INIT, moved = STRV_INIT, pairs = STRV_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
                strv_push(&merged, old[i]);
                strv_push(&moved, old[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(more); i++)
                strv_push(&pairs, more[i]);
        strv_env_merge(&merged, &pairs);
        strv_env_move(&moved, &pairs);
        assert_int_equal(pairs.n, 0);
        assert_int_equal(moved.n, merged.n);
        for (size_t i = 0; i < merged.n; i++)
                assert_string_equal(moved.v[i], merged.v[i]);
        assert_null(moved.v[moved.n]);
        strv_finish(&merged);
        strv_finish(&moved);
}

static double cost_of_merge(unsigned n)
{
        struct strv env = STRV_INIT, pairs = STRV_INIT;
        clock_t begin;

        for (unsigned i = 0; i < n; i++) {
                strv_pushf(&env, "OLD%u=x", i);
                strv_pushf(&pairs, i % 2 ? "OLD%u=y" : "NEW%u=y", i);
        }
        begin = clock();
        strv_env_merge(&env, &pairs);
        begin = clock() - begin;
        assert_int_equal(env.n, n + n / 2);
        strv_finish(&env);
        strv_finish(&pairs);
        return (double)begin;
}

/* Sixteen times the variables take sixteen times as long, or a few times more, since they do not
 * fit a cache; a quadratic merge takes 256 times as long. */
TEST(merge_is_linear)
{
        double few = 1e12, many = 1e12;

        for (int i = 0; i < 5; i++) {
                few = MIN(few, cost_of_merge(5000));
                many = MIN(many, cost_of_merge(80000));
        }
        assert_true(many < 80 * few);
}
