/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first signal is the first order. A later one is another order only if no single cause sends
 * both: a second INT by a key, or a second TERM after a while. HUP comes twice from each terminal
 * that closes, so HUP never repeats an order.
 */
#include "head/model/stop_orders.h"

#include <signal.h>
#include <stdbool.h>

enum {
        SAME_KEY_MS = 50, /* between two Ctrl-C; a wrapper that passes one on is faster */
        SAME_CAUSE_MS = 1000,
};

static bool is_again(const struct stop_orders *o, int signo, int64_t now_ms)
{
        if (signo == SIGINT && o->int_ms)
                return now_ms - o->int_ms > SAME_KEY_MS;
        /* The first INT behind a TERM or HUP: of the same cause within a second, else of a user. */
        if (signo == SIGINT)
                return now_ms - o->first_ms > SAME_CAUSE_MS;
        return signo == SIGTERM && o->term_ms && now_ms - o->term_ms > SAME_CAUSE_MS;
}

enum stop_order stop_orders_take(struct stop_orders *o, int signo, int64_t now_ms)
{
        enum stop_order order = !o->first_ms                 ? STOP_ORDER_FIRST
                                : is_again(o, signo, now_ms) ? STOP_ORDER_AGAIN
                                                             : STOP_ORDER_SAME;

        if (!o->first_ms)
                o->first_ms = now_ms;
        if (signo == SIGINT && order != STOP_ORDER_SAME)
                o->int_ms = now_ms;
        if (signo == SIGTERM && !o->term_ms)
                o->term_ms = now_ms;
        return order;
}
