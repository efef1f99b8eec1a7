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

#include "base/fd.h"
#include "base/memory.h"

static void on_forward_opened(void *ctx, int fd)
{
        struct jump_forward *f = ctx;

        if (f->inner)
                ssh_hop_connected(f->inner, fd, false);
        else
                fd_close(fd);
}

static void on_forward_refused(void *ctx, const char *why)
{
        struct jump_forward *f = ctx;

        snprintf(f->refused, sizeof(f->refused), "%s", why);
}

static void on_forward_ready(void *ctx)
{
        struct jump_forward *f = ctx;

        ssh_hop_run(f->jump);
}

static const struct ssh_stream_ops jump_forward_ops = {
        .opened = on_forward_opened,
        .refused = on_forward_refused,
        .ready = on_forward_ready,
};

/* Opens the channel of a forward, once the jump host is up. */
static bool start_forward(struct ssh_hop *jump, struct jump_forward *f)
{
        const struct ssh_host *to = &f->inner->target->host;

        f->stream = ssh_stream_create(jump->hops->loop, jump->session.ssh, &jump_forward_ops, f,
                                      NULL, to->hostname, to->port);
        return f->stream != NULL;
}

void ssh_jump_dial(struct ssh_hop *h)
{
        struct jump_forward *f;

        if (h->jump.via->state == HOP_CLOSED) {
                ssh_hop_failf(h, LINK_CONNECTING, h->jump.via->refused_cause, "",
                              "jump host %.60s: %.180s", h->jump.via->jump.name,
                              h->jump.via->refused);
                return;
        }
        f = xcalloc(1, sizeof(*f));
        f->jump = h->jump.via;
        f->inner = h;
        f->next = h->jump.via->jump.forwards;
        h->jump.via->jump.forwards = f;
        h->jump.forward = f;
        if (h->jump.via->state == HOP_UP && !h->jump.via->running)
                ssh_hop_run(h->jump.via);
}

void ssh_jump_fail_waiting(struct ssh_hop *h, const struct link_failure *why)
{
        for (struct jump_forward *f = h->jump.forwards; f; f = f->next) {
                struct ssh_hop *inner = f->inner;
                struct link_failure onward = *why;

                if (!inner || inner->state != HOP_TCP)
                        continue;
                f->inner = NULL;
                inner->jump.forward = NULL;
                snprintf(onward.fact, sizeof(onward.fact), "jump host %.60s: %.180s", h->jump.name,
                         why->fact);
                ssh_hop_fail(inner, &onward);
        }
}

void ssh_jump_hang_up(struct ssh_hop *h)
{
        struct jump_forward *f = h->jump.forward;

        if (!f)
                return;
        h->jump.forward = NULL;
        f->inner = NULL;
        if (!f->jump->running && f->jump->state == HOP_UP)
                ssh_hop_run(f->jump);
}

static void end_forward(struct jump_forward *f)
{
        struct ssh_hop *inner = f->inner;
        const struct ssh_host *to;

        if (!inner)
                return;
        f->inner = NULL;
        inner->jump.forward = NULL;
        if (inner->state != HOP_TCP)
                return; /* the inner hop sees the end of the socket */
        to = &inner->target->host;
        ssh_hop_failf(inner, LINK_CONNECTING, LINK_REFUSED, to->hostname,
                      "the jump host cannot connect to port %d: %s", to->port, f->refused);
}

int ssh_jump_pump(struct ssh_hop *h, bool *ret_active)
{
        struct jump_forward **at = &h->jump.forwards;

        for (struct jump_forward *f = h->jump.forwards; f; f = f->next) {
                if (!f->stream && f->inner && !start_forward(h, f))
                        snprintf(f->refused, sizeof(f->refused), "%s", strerror(errno));
                if (f->stream && ssh_stream_pump(f->stream) < 0)
                        return -1;
        }
        while (*at) {
                struct jump_forward *f = *at;

                if (f->stream && f->inner && !ssh_stream_done(f->stream)) {
                        *ret_active = *ret_active || ssh_stream_active(f->stream);
                        at = &f->next;
                        continue;
                }
                end_forward(f);
                *at = f->next;
                if (f->stream)
                        ssh_stream_close(f->stream);
                free(f);
        }
        return 0;
}

void ssh_jump_free_forwards(struct ssh_hop *h)
{
        while (h->jump.forwards) {
                struct jump_forward *f = h->jump.forwards;

                h->jump.forwards = f->next;
                if (f->inner)
                        f->inner->jump.forward = NULL;
                if (f->stream)
                        ssh_stream_close(f->stream);
                free(f);
        }
}

static const struct ssh_hop_ops jump_ops = { 0 };

struct ssh_hop *ssh_jump_acquire(struct ssh_hop *h)
{
        struct ssh_hops *hops = h->hops;
        struct ssh_hop *jump;

        for (jump = hops->jumps; jump; jump = jump->jump.next)
                if (jump->state != HOP_CLOSED && strcmp(jump->jump.name, h->target->via_name) == 0)
                        break;
        if (!jump) {
                jump = ssh_hop_create(hops, h->target->via, &jump_ops, NULL);
                jump->jump.name = xstrdup(h->target->via_name);
                jump->jump.next = hops->jumps;
                hops->jumps = jump;
                ssh_hop_begin(jump);
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
