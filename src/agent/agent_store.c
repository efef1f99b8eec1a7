/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_private.h"
#include "base/log.h"
#include "base/strv.h"

/* --- the TCP endpoint
 * ----------------------------------------------------------------------------- */

static void tell_endpoint_opened(struct agent *a, const struct error *err)
{
        struct endpoint_opened m = { .port = a->tcp ? endpoint_tcp_port(a->tcp) : 0 };

        if (!m.port)
                memcpy(m.text, err->text, strnlen(err->text, sizeof(m.text) - 1));
        endpoint_opened_encode(uplink_out(&a->up), &m);
}

static void close_tcp_endpoint(struct agent *a)
{
        endpoint_tcp_destroy(a->tcp);
        a->tcp = NULL;
}

/* The held port becomes the endpoint's. One that is open already stays where it is: the head tells
 * the others its number before it hears from us. */
static void open_tcp_endpoint(struct agent *a, const struct endpoint_order *order)
{
        struct error err = { 0 };
        int fd;

        if (a->tcp && !a->tcp_used && a->tcp_mode == order->mode) {
                endpoint_tcp_renew(a->tcp, order);
        } else {
                if (a->tcp_used) {
                        a->port.number = 0;
                        port_hold(&a->port); /* another one: theirs is not free yet */
                }
                close_tcp_endpoint(a);
                a->tcp_used = false;
                port_hold(&a->port);
                fd = a->port.fd;
                a->port.fd = -1;
                a->tcp = endpoint_tcp_create(a->loop, fd, order, a->relay, &err);
                a->tcp_mode = order->mode;
        }
        tell_endpoint_opened(a, &err);
}

void agent_on_endpoint(struct agent *a, const struct frame *f)
{
        struct error err = { 0 };
        struct endpoint_order m;

        if (endpoint_order_decode(&m, f, &err) < 0) {
                close_tcp_endpoint(a);
                tell_endpoint_opened(a, &err);
                return;
        }
        open_tcp_endpoint(a, &m);
        endpoint_order_finish(&m);
}

/* --- the way to another node's ---------------------------------------------------------------- */

static void on_reached(void *ctx, const struct probed *result)
{
        struct agent *a = ctx;

        a->probe = NULL;
        probed_encode(uplink_out(&a->up), result);
}

/* A new order takes the place of an old one that nobody waits for any more. */
void agent_on_probe(struct agent *a, const struct frame *f)
{
        struct probe_order m;
        struct error err;

        if (probe_order_decode(&m, f, &err) < 0) {
                log_line(LOG_WARN, "%s", err.text);
                return;
        }
        probe_cancel(a->probe);
        a->probe = probe_start(a->loop, &m, on_reached, a);
        probe_order_finish(&m);
}

/* --- the loop --------------------------------------------------------------------------------- */

/* It ends the turn of the loop, which is enough. */
static void on_held(uv_timer_t *timer UNUSED)
{
}

void agent_store_turn(struct agent *a)
{
        int wait;

        relay_turn(a->relay);
        wait = relay_wait_ms(a->relay);
        if (wait < 0)
                uv_timer_stop(&a->held);
        else if (!uv_is_active((uv_handle_t *)&a->held))
                uv_timer_start(&a->held, on_held, (uint64_t)wait, 0);
        if (a->tcp)
                endpoint_tcp_turn(a->tcp);
        if (uplink_full(&a->up))
                agent_store_pause(a, true);
}

void agent_store_pause(struct agent *a, bool paused)
{
        if (a->endpoint)
                endpoint_unix_pause(a->endpoint, paused);
        if (a->tcp)
                endpoint_tcp_pause(a->tcp, paused);
}

void agent_store_hang_up(struct agent *a)
{
        if (a->endpoint)
                endpoint_unix_hang_up(a->endpoint);
        a->tcp_used = a->tcp;
}

void agent_store_close(struct agent *a)
{
        probe_cancel(a->probe);
        a->probe = NULL;
        close_tcp_endpoint(a);
        endpoint_unix_destroy(a->endpoint);
        a->endpoint = NULL;
}
