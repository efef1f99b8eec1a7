/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lending the user's ssh-agent to a node that carries others (--tree-auth forward): for every
 * connection that something on the node makes to the socket that its sshd has made, the server
 * opens a channel, which is joined to a connection to the agent here. What is said there is between
 * the two (draft-ietf-sshm-ssh-agent, section 5).
 */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/strv.h"
#include "head/core/ssh_agent.h"
#include "head/ssh/ssh_session_private.h"

/* Beside one for the login to each host: a node that asks for more is up to something. */
#define LENT_SPARE 16

struct lent {
        struct ssh_stream *stream;
        struct lent *next;
};

static void lent_noise(void *ctx UNUSED, const char *text UNUSED, size_t len UNUSED)
{
}

static void lent_ready(void *ctx)
{
        hop_run(ctx);
}

static const struct ssh_stream_ops lent_ops = { .noise = lent_noise, .ready = lent_ready };

static void keep(struct ssh_hop *h, ssh_channel channel, int fd)
{
        struct lent *l = xcalloc(1, sizeof(*l));

        l->stream = ssh_stream_join(h->hops->loop, h->session, &lent_ops, h, channel, fd);
        l->next = h->lent_out;
        h->lent_out = l;
        h->lent_count++;
}

/* Called by libssh, which answers the server once we are back. */
static ssh_channel on_request(ssh_session session, void *ctx)
{
        struct ssh_hop *h = ctx;
        ssh_channel channel;
        struct error err = { 0 };
        int fd;

        if (h->lent_count >= ssh_site_options(h->hops->site)->hosts + LENT_SPARE)
                return NULL;
        fd = ssh_agent_connect(&err);
        if (fd < 0) {
                h->ops->noise(h->ctx, err.text, strlen(err.text));
                return NULL;
        }
        channel = ssh_channel_new(session);
        if (channel)
                keep(h, channel, fd);
        else
                fd_close(fd);
        return channel;
}

void lend_begin(struct ssh_hop *h)
{
        h->callbacks = (struct ssh_callbacks_struct){ .userdata = h,
                                                      .channel_open_request_auth_agent_function =
                                                              on_request };
        ssh_callbacks_init(&h->callbacks);
        ssh_set_callbacks(h->session, &h->callbacks);
        ssh_stream_ask_agent(h->exec);
}

static void drop(struct ssh_hop *h, struct lent **at)
{
        struct lent *l = *at;

        *at = l->next;
        h->lent_count--;
        ssh_stream_close(l->stream);
        free(l);
}

int lend_pump(struct ssh_hop *h, bool *ret_active)
{
        struct lent **at = &h->lent_out;

        while (*at) {
                if (ssh_stream_pump((*at)->stream) < 0)
                        return -1;
                if (ssh_stream_done((*at)->stream)) {
                        drop(h, at);
                        continue;
                }
                *ret_active = *ret_active || ssh_stream_active((*at)->stream);
                at = &(*at)->next;
        }
        return 0;
}

void lend_end(struct ssh_hop *h)
{
        while (h->lent_out)
                drop(h, &h->lent_out);
}
