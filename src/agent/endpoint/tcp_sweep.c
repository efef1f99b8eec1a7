/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes keys of past groups (generation.h), a few at a time, as a client of the relay. */
#include "agent/endpoint/endpoint_tcp_private.h"

enum { SWEEPS_MAX = 256 }; /* requests under way */

/* A deletion that fails leaves a key behind, which harms no other. */
static void on_swept(void *ctx, const struct store_reply *reply UNUSED)
{
        struct tcp_groups *g = ctx;

        g->under_way--;
}

void tcp_sweep_turn(struct endpoint_tcp *e)
{
        static const struct relay_client_ops relay_ops = { .reply = on_swept };
        struct store_request req = { .op = STORE_DELETE };
        struct tcp_groups *g = &e->groups;

        while (!e->paused && g->under_way < SWEEPS_MAX &&
               generations_take_leftover(g->generations, &req.key)) {
                if (!g->sweeper)
                        g->sweeper = relay_client_create(e->relay, relay_ops, g);
                if (!g->sweeper)
                        return;
                req.tag = ++g->tag;
                g->under_way++;
                relay_request(g->sweeper, &req);
        }
}

void tcp_sweep_end(struct endpoint_tcp *e)
{
        struct tcp_groups *g = &e->groups;

        if (g->sweeper)
                relay_client_destroy(g->sweeper);
        g->sweeper = NULL;
        g->under_way = 0;
}
