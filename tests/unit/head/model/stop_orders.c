/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of one cause are one order; only a second Ctrl-C, or a late second TERM, is another. */
#include "head/model/stop_orders.h"

#include <signal.h>

#include "lib/unit.h"

enum { BEGIN = 1000 }; /* the time of the first signal */

/* Returns what @second is @gap_ms after @first. */
static enum stop_order second(int first, int gap_ms, int second)
{
        struct stop_orders o = { 0 };

        assert_int_equal(stop_orders_take(&o, first, BEGIN), STOP_ORDER_FIRST);
        return stop_orders_take(&o, second, BEGIN + gap_ms);
}

TEST(hup_is_never_a_second_order)
{
        static const int gaps[] = { 0, 10, 100, 1000, 1500, 60000 };

        for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
                assert_int_equal(second(SIGHUP, gaps[i], SIGHUP), STOP_ORDER_SAME);
                assert_int_equal(second(SIGHUP, gaps[i], SIGTERM), STOP_ORDER_SAME);
                assert_int_equal(second(SIGTERM, gaps[i], SIGHUP), STOP_ORDER_SAME);
                assert_int_equal(second(SIGINT, gaps[i], SIGHUP), STOP_ORDER_SAME);
                assert_int_equal(second(SIGINT, gaps[i], SIGTERM), STOP_ORDER_SAME);
        }
}

TEST(term_is_another_order_after_a_second)
{
        struct stop_orders o = { 0 };

        assert_int_equal(second(SIGTERM, 0, SIGTERM), STOP_ORDER_SAME);
        assert_int_equal(second(SIGTERM, 100, SIGTERM), STOP_ORDER_SAME);
        assert_int_equal(second(SIGTERM, 1000, SIGTERM), STOP_ORDER_SAME);
        assert_int_equal(second(SIGTERM, 1500, SIGTERM), STOP_ORDER_AGAIN);

        assert_int_equal(stop_orders_take(&o, SIGHUP, BEGIN), STOP_ORDER_FIRST);
        assert_int_equal(stop_orders_take(&o, SIGTERM, BEGIN + 2000), STOP_ORDER_SAME);
        assert_int_equal(stop_orders_take(&o, SIGTERM, BEGIN + 2600), STOP_ORDER_SAME);
        assert_int_equal(stop_orders_take(&o, SIGTERM, BEGIN + 3200), STOP_ORDER_AGAIN);
}

TEST(ctrl_c_is_another_order_at_once)
{
        struct stop_orders o = { 0 };

        assert_int_equal(second(SIGINT, 10, SIGINT), STOP_ORDER_SAME); /* by a wrapper */
        assert_int_equal(second(SIGINT, 100, SIGINT), STOP_ORDER_AGAIN);
        assert_int_equal(second(SIGHUP, 10, SIGINT), STOP_ORDER_SAME);
        assert_int_equal(second(SIGTERM, 1500, SIGINT), STOP_ORDER_AGAIN);

        /* A key that is held down is repeated every 30 ms. */
        assert_int_equal(stop_orders_take(&o, SIGINT, BEGIN), STOP_ORDER_FIRST);
        assert_int_equal(stop_orders_take(&o, SIGINT, BEGIN + 30), STOP_ORDER_SAME);
        assert_int_equal(stop_orders_take(&o, SIGINT, BEGIN + 60), STOP_ORDER_AGAIN);
}
