/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jump host is a hop without a remote command. Each connection onward is a forward: a channel
 * joined to a socketpair, and the other end of the pair is the socket of an inner hop. Both hops
 * live in the same thread. ssh_jump_pump() walks the list of forwards; an inner hop may drop the
 * connection during the walk, so ssh_jump_hang_up() only marks the forward (inner = NULL) and the
 * walk frees.
 *
 * A jump host is shared by all hops of the thread over the same chain of names, counted in @users.
 */
#include "head/ssh/ssh_hop_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/printable.h"

void ssh_jump_dial(struct ssh_hop *h)
{
        struct jump_forward *f;

        if (h->jump.via->state == HOP_CLOSED) {
                struct link_failure why = { .phase = LINK_CONNECTING,
                                            .cause = h->jump.via->refused_cause,
                                            .at_jump_host = true };

                snprintf(why.fact, sizeof(why.fact), "jump host %.60s: %.180s",
                         h->jump.via->jump.name, h->jump.via->refused);
                ssh_hop_fail(h, &why);
                return;
        }
        f = xcalloc(1, sizeof(*f));
        f->jump = h->jump.via;
        f->inner = h;
        f->next = h->jump.via->jump.forwards;
        h->jump.via->jump.forwards = f;
        h->jump.forward = f;
        /* A running jump host comes to the new forward by itself. */
        if (h->jump.via->state == HOP_UP && !h->jump.via->running)
                ssh_hop_run(h->jump.via);
}

void ssh_jump_hang_up(struct ssh_hop *h)
{
        struct jump_forward *f = h->jump.forward;

        if (!f)
                return;
        h->jump.forward = NULL;
        f->inner = NULL;
        /* A running jump host frees the forward at the end of its walk. */
        if (!f->jump->running && f->jump->state == HOP_UP)
                ssh_hop_run(f->jump);
}

/* Ends a forward for its inner hop: fails the hop if it still waits for the connection. */
static void fail_inner(struct jump_forward *f, const char *why)
{
        struct ssh_hop *inner = f->inner;
        const struct ssh_host *to = &inner->target->host;
        struct link_failure onward = { .phase = LINK_CONNECTING,
                                       .cause = LINK_REFUSED,
                                       .at_jump_host = true };

        f->inner = NULL;
        inner->jump.forward = NULL;
        if (inner->state != HOP_TCP)
                return; /* the inner hop sees the end of the socket */
        snprintf(onward.fact, sizeof(onward.fact), "the jump host cannot connect to port %d: %s",
                 to->port, why);
        printable_one_line(onward.fact);
        snprintf(onward.detail, sizeof(onward.detail), "%s", to->hostname);
        ssh_hop_fail(inner, &onward);
}

static void free_forward(struct jump_forward **at)
{
        struct jump_forward *f = *at;

        *at = f->next;
        if (f->stream)
                ssh_stream_close(f->stream);
        free(f);
}

int ssh_jump_pump(struct ssh_hop *h, bool *ret_active)
{
        struct jump_forward **at = &h->jump.forwards;

        /* Nothing is freed in this walk, as an inner hop may hang up or add a forward meanwhile. */
        for (struct jump_forward *f = h->jump.forwards; f; f = f->next) {
                int fd, r;

                if (!f->stream && f->inner) {
                        const struct ssh_host *to = &f->inner->target->host;
                        struct ssh_stream_order order = { .host = to->hostname, .port = to->port };

                        f->stream = ssh_stream_create(h->hops->loop, h->session.ssh,
                                                      &ssh_hop_stream_ops, h, &order);
                        if (!f->stream)
                                fail_inner(f, strerror(errno));
                }
                r = f->stream ? ssh_stream_pump(f->stream) : 0;
                if (r < 0)
                        return r;
                fd = f->stream && f->inner ? ssh_stream_take_fd(f->stream) : -1;
                if (fd >= 0)
                        ssh_hop_connected(f->inner, fd, false);
        }
        while (*at) {
                struct jump_forward *f = *at;
                const struct ssh_stream_end *end = f->stream ? ssh_stream_done(f->stream) : NULL;

                if (f->inner && !end) {
                        *ret_active = *ret_active || !f->stream || ssh_stream_active(f->stream);
                        at = &f->next;
                        continue;
                }
                if (f->inner)
                        fail_inner(f, end->refused);
                free_forward(at);
        }
        return 0;
}

void ssh_jump_end_forwards(struct ssh_hop *h, const struct link_failure *why)
{
        while (h->jump.forwards) {
                struct ssh_hop *inner = h->jump.forwards->inner;

                free_forward(&h->jump.forwards);
                if (inner)
                        inner->jump.forward = NULL;
                /* A hop with a connection sees the end of its socket instead. */
                if (inner && why && inner->state == HOP_TCP) {
                        struct link_failure onward = *why;

                        snprintf(onward.fact, sizeof(onward.fact), "jump host %.60s: %.180s",
                                 h->jump.name, why->fact);
                        onward.at_jump_host = true;
                        ssh_hop_fail(inner, &onward);
                }
        }
}

struct ssh_hop *ssh_jump_acquire(struct ssh_hop *h)
{
        struct ssh_hops *hops = h->hops;
        struct ssh_hop *jump;

        for (jump = hops->jumps; jump; jump = jump->jump.next)
                /* A closed jump host stays in the list for its users, and new ones get another. */
                if (jump->state != HOP_CLOSED && strcmp(jump->jump.name, h->target->via_name) == 0)
                        break;
        if (!jump) {
                jump = ssh_hop_open(hops, h->target->via, h->target->via_name, false, NULL, NULL);
                jump->jump.next = hops->jumps;
                hops->jumps = jump;
        }
        jump->jump.users++;
        return jump;
}

void ssh_jump_release(struct ssh_hop *h)
{
        struct ssh_hop *jump = h->jump.via, **at = &h->hops->jumps;

        h->jump.via = NULL;
        if (!jump || --jump->jump.users)
                return;
        while (*at != jump)
                at = &(*at)->jump.next;
        *at = jump->jump.next;
        ssh_hop_close(jump);
}
