/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop orders: tells signals that order the end from repetitions of the same order
 *
 * A single cause may send several signals: a closing terminal sends HUP by the shell and a moment
 * later by the kernel, timeout(1) sends TERM to a process and to the group, session managers send
 * TERM and HUP, a wrapper passes on a Ctrl-C sent to the whole group. Pure.
 */
#pragma once

#include <stdint.h>

struct stop_orders {
        int64_t first_ms; /* time of the first order; 0 = none */
        int64_t int_ms;   /* of the last INT that was an order */
        int64_t term_ms;  /* of the first TERM */
};

enum stop_order {
        STOP_ORDER_SAME,  /* another signal of the same cause: to be ignored */
        STOP_ORDER_FIRST, /* end in order */
        STOP_ORDER_AGAIN, /* end at once */
};

/* Takes INT, TERM or HUP, which came at @now_ms, of any clock that begins above 0. HUP is never
 * STOP_ORDER_AGAIN, TERM is later than a second after the first TERM. */
enum stop_order stop_orders_take(struct stop_orders *o, int signo, int64_t now_ms);
