/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jump hosts: a hop that is up carries connections onward, each a channel joined to a socketpair
 * whose other end is the socket of an inner hop. Both hops live in the same thread. The inner one
 * may let go of its connection while the jump host's list is being walked, so letting go only
 * marks it, and the walk sweeps.
 */
#include "head/ssh/ssh_session_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/strv.h"

static void forward_opened(void *ctx, int fd)
{
        struct forward *f = ctx;

        if (f->inner)
                hop_connected(f->inner, fd, false);
        else
                fd_close(fd);
}

static void forward_refused(void *ctx, const char *why)
{
        struct forward *f = ctx;

        snprintf(f->refused, sizeof(f->refused), "%s", why);
}

static void forward_noise(void *ctx UNUSED, const char *text UNUSED, size_t len UNUSED)
{
}

static void forward_ready(void *ctx)
{
        struct forward *f = ctx;

        hop_run(f->jump);
}

static const struct ssh_stream_ops forward_ops = {
        .opened = forward_opened,
        .refused = forward_refused,
        .noise = forward_noise,
        .ready = forward_ready,
};

/* Once the jump host is up: asks it for its connections. */
static bool forward_begin(struct ssh_hop *jump, struct forward *f)
{
        const struct ssh_host *to = &f->inner->route->host;

        f->stream = ssh_stream_create(jump->hops->loop, jump->session, &forward_ops, f, NULL,
                                      to->hostname, to->port);
        return f->stream != NULL;
}

void jump_dial(struct ssh_hop *h)
{
        struct forward *f;

        if (h->via->state == HOP_CLOSED) {
                hop_failf(h, LINK_CONNECTING, h->via->refused_cause, "", "jump host %.60s: %.180s",
                          h->via->jump_name, h->via->refused);
                return;
        }
        f = xcalloc(1, sizeof(*f));
        f->jump = h->via;
        f->inner = h;
        f->next = h->via->forwards;
        h->via->forwards = f;
        h->forward = f;
        if (h->via->state == HOP_UP && !h->via->running)
                hop_run(h->via);
}

void jump_fail_waiting(struct ssh_hop *h, const struct link_failure *why)
{
        for (struct forward *f = h->forwards; f; f = f->next) {
                struct ssh_hop *inner = f->inner;
                struct link_failure onward = *why;

                if (!inner || inner->state != HOP_TCP)
                        continue;
                f->inner = NULL;
                inner->forward = NULL;
                snprintf(onward.fact, sizeof(onward.fact), "jump host %.60s: %.180s", h->jump_name,
                         why->fact);
                hop_fail(inner, &onward);
        }
}

void jump_hang_up(struct ssh_hop *h)
{
        struct forward *f = h->forward;

        if (!f)
                return;
        h->forward = NULL;
        f->inner = NULL;
        if (!f->jump->running && f->jump->state == HOP_UP)
                hop_run(f->jump);
}

static void forward_end(struct forward *f)
{
        struct ssh_hop *inner = f->inner;
        const struct ssh_host *to;

        if (!inner)
                return;
        f->inner = NULL;
        inner->forward = NULL;
        if (inner->state != HOP_TCP)
                return; /* it sees the end of its socket */
        to = &inner->route->host;
        hop_failf(inner, LINK_CONNECTING, LINK_REFUSED, to->hostname,
                  "the jump host cannot connect to port %d: %s", to->port, f->refused);
}

/* Pumps the connections onward and drops those that are over. -1 when the session is lost. */
int jump_pump(struct ssh_hop *h, bool *ret_active)
{
        struct forward **at = &h->forwards;

        for (struct forward *f = h->forwards; f; f = f->next) {
                if (!f->stream && f->inner && !forward_begin(h, f))
                        snprintf(f->refused, sizeof(f->refused), "%s", strerror(errno));
                if (f->stream && ssh_stream_pump(f->stream) < 0)
                        return -1;
        }
        while (*at) {
                struct forward *f = *at;

                if (f->stream && f->inner && !ssh_stream_done(f->stream)) {
                        *ret_active = *ret_active || ssh_stream_active(f->stream);
                        at = &f->next;
                        continue;
                }
                forward_end(f);
                *at = f->next;
                if (f->stream)
                        ssh_stream_close(f->stream);
                free(f);
        }
        return 0;
}

void jump_free_forwards(struct ssh_hop *h)
{
        while (h->forwards) {
                struct forward *f = h->forwards;

                h->forwards = f->next;
                if (f->inner)
                        f->inner->forward = NULL;
                if (f->stream)
                        ssh_stream_close(f->stream);
                free(f);
        }
}

static const struct ssh_hop_ops jump_ops = { 0 };

/* Shared by all of this thread, which is all that go over it. */
struct ssh_hop *jump_acquire(struct ssh_hop *h)
{
        struct ssh_hops *hops = h->hops;
        struct ssh_hop *jump;

        for (jump = hops->jumps; jump; jump = jump->next_jump)
                if (jump->state != HOP_CLOSED && strcmp(jump->jump_name, h->route->via_name) == 0)
                        break;
        if (!jump) {
                jump = hop_create(hops, h->route->via, &jump_ops, NULL);
                jump->jump_name = xstrdup(h->route->via_name);
                jump->next_jump = hops->jumps;
                hops->jumps = jump;
                hop_begin(jump);
        }
        jump->users++;
        return jump;
}

void jump_release(struct ssh_hop *h)
{
        struct ssh_hop *jump = h->via, **at = &h->hops->jumps;

        h->via = NULL;
        if (!jump || --jump->users)
                return;
        while (*at != jump)
                at = &(*at)->next_jump;
        *at = jump->next_jump;
        ssh_hop_close(jump);
}
