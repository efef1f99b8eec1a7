/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/pair_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/check/pair_dialer.h"
#include "agent/check/pair_listener.h"
#include "base/memory.h"

struct pair_test {
        uv_loop_t *loop;
        struct uplink *up;
        struct pair_listener *listener; /* NULL = no port is open */
        struct pair_dialer *dialer;     /* NULL = no peer is tried */
        uint32_t number;                /* of the order for @dialer */
        struct measure_nccl nccl;       /* of the last order with bytes to send */
};

struct pair_test *pair_test_create(uv_loop_t *loop, struct uplink *up)
{
        struct pair_test *t = xcalloc(1, sizeof(*t));

        t->loop = loop;
        t->up = up;
        return t;
}

void pair_test_close(struct pair_test *t)
{
        pair_dialer_cancel(STEAL(&t->dialer));
        pair_listener_close(STEAL(&t->listener));
}

void pair_test_destroy(struct pair_test *t)
{
        measure_nccl_finish(&t->nccl);
        free(t);
}

static void send_measured(struct pair_test *t, uint32_t number, const char *why,
                          const struct measured_target *results, uint32_t n)
{
        struct measured m = { .number = number,
                              .port = t->listener ? pair_listener_port(t->listener) : 0,
                              .results = (struct measured_target *)results,
                              .n_results = n };

        snprintf(m.text, sizeof(m.text), "%.*s", (int)sizeof(m.text) - 1, why);
        measured_encode(&t->up->out, &m);
}

/* The dialer frees itself after the call. */
static void on_peers_done(void *ctx, const struct measured_target *results, uint32_t n,
                          const char *why)
{
        struct pair_test *t = ctx;

        t->dialer = NULL;
        send_measured(t, t->number, why, results, n);
}

/* Opens, keeps or closes the port. 0, or -errno with @err. */
static int set_listener(struct pair_test *t, const struct measure_order *o, struct error *err)
{
        if (!o->listen || (t->listener && !pair_listener_port(t->listener)))
                pair_listener_close(STEAL(&t->listener));
        if (!o->listen)
                return 0;
        if (!t->listener)
                t->listener = pair_listener_open(t->loop, &t->nccl, err);
        if (!t->listener)
                return -err->code;
        pair_listener_renew(t->listener, o);
        return 0;
}

void pair_test_on_measure(void *test, const struct frame *f)
{
        struct pair_test *t = test;
        struct measure_order o;
        struct error err;
        int r;

        /* A malformed order has no number to answer to. */
        if (measure_order_decode(&o, f, NULL) < 0)
                return;
        if (t->dialer) { /* every order has an answer; the head waits only for the last */
                pair_dialer_cancel(STEAL(&t->dialer));
                send_measured(t, t->number, "", NULL, 0);
        }
        if (o.send_bytes) {
                measure_nccl_finish(&t->nccl);
                t->nccl = o.nccl;
                o.nccl = (struct measure_nccl){ 0 };
        }
        r = set_listener(t, &o, &err);
        t->number = o.number;
        if (o.n_targets)
                t->dialer = pair_dialer_start(t->loop, &o,
                                              measure_nccl_is_set(&t->nccl) ? &t->nccl : NULL,
                                              on_peers_done, t);
        else
                send_measured(t, o.number, r < 0 ? err.text : "", NULL, 0);
        measure_order_finish(&o);
}
