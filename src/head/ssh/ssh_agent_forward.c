/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent forwarding (-o ssh.tree_auth=forward): lets a node with children in the tree use the user's
 * ssh-agent. sshd makes a socket there; for every connection to that socket the server opens a
 * channel, which is joined to a connection to the agent here. The bytes are passed on unread (the
 * protocol is draft-ietf-sshm-ssh-agent, section 5). Channels are limited to one per host and some
 * spare.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/core/ssh_agent.h"
#include "head/ssh/ssh_hop_private.h"

/* Channels beyond one login per host; a node never needs more. */
#define CHANNELS_SPARE 16

struct agent_channel {
        struct ssh_stream *stream;
        struct agent_channel *next;
};

/* Called by libssh, which answers the server with the returned channel; NULL refuses. */
static ssh_channel on_agent_request(ssh_session session, void *ctx)
{
        struct ssh_hop *h = ctx;
        struct agent_channel *l;
        ssh_channel channel;
        struct error err = { 0 };
        int fd;

        /* A node with children logs in to each of them once; more channels are a flood. */
        if (h->agent_forward.count >= ssh_site_options(h->hops->site)->hosts + CHANNELS_SPARE)
                return NULL;
        fd = ssh_agent_connect(&err);
        if (fd < 0) {
                /* In the output of ssh, where sshd on the node would write. */
                ssh_hop_tell(h, (struct ssh_hop_event){ .kind = DID_SAY,
                                                        .data = err.text,
                                                        .len = strlen(err.text) });
                return NULL;
        }
        channel = ssh_channel_new(session);
        if (!channel) {
                fd_close(fd);
                return NULL;
        }
        l = xcalloc(1, sizeof(*l));
        /* The stream owns the descriptor, also on failure. */
        l->stream = ssh_stream_join(h->hops->loop, session, &ssh_hop_stream_ops, h, channel, fd);
        if (!l->stream) {
                ssh_channel_free(channel);
                free(l);
                return NULL;
        }
        l->next = h->agent_forward.channels;
        h->agent_forward.channels = l;
        h->agent_forward.count++;
        return channel;
}

void ssh_agent_forward_begin(struct ssh_hop *h)
{
        h->agent_forward.callbacks = (struct ssh_callbacks_struct){
                .userdata = h, .channel_open_request_auth_agent_function = on_agent_request
        };
        ssh_callbacks_init(&h->agent_forward.callbacks);
        ssh_set_callbacks(h->session.ssh, &h->agent_forward.callbacks);
}

static void drop_agent_channel(struct ssh_hop *h, struct agent_channel **at)
{
        struct agent_channel *l = *at;

        *at = l->next;
        h->agent_forward.count--;
        ssh_stream_close(l->stream);
        free(l);
}

int ssh_agent_forward_pump(struct ssh_hop *h, bool *ret_active)
{
        struct agent_channel **at = &h->agent_forward.channels;

        while (*at) {
                int r = ssh_stream_pump((*at)->stream);

                if (r < 0)
                        return r;
                if (ssh_stream_done((*at)->stream)) {
                        drop_agent_channel(h, at);
                        continue;
                }
                *ret_active = *ret_active || ssh_stream_active((*at)->stream);
                at = &(*at)->next;
        }
        return 0;
}

void ssh_agent_forward_end(struct ssh_hop *h)
{
        while (h->agent_forward.channels)
                drop_agent_channel(h, &h->agent_forward.channels);
}
