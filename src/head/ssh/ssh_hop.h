/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh hop: one ssh session, from the TCP connection to the last byte
 *
 * A hop either runs the remote command (the target) or forwards the connections of further hops (a
 * jump host). A hop belongs to the same thread and loop for life; hops of different threads share
 * only the site, which is thread-safe. Host keys are checked before any information about the user
 * is sent.
 */
#pragma once

#include <uv.h>

#include "head/nodes/transport.h"
#include "head/ssh/ssh_target.h"

struct ssh_hop;

/* State of all hops of a thread. Zeroed but for loop and site. */
struct ssh_hops {
        uv_loop_t *loop;
        struct ssh_site *site;
        struct ssh_hop *jumps; /* sessions to jump hosts in use */
};

/* Called in the loop's thread, possibly from inside ssh_hop_open(), never from ssh_hop_close(). */
struct ssh_hop_ops {
        void (*phase)(void *ctx, enum link_phase phase);
        /* No answer for a while: another hop may use the time. */
        void (*slow)(void *ctx);
        void (*opened)(void *ctx, int fd); /* the callee owns @fd */
        void (*failed)(void *ctx, const struct link_failure *why);
        void (*ended)(void *ctx, const struct link_failure *why);
        void (*noise)(void *ctx, const char *text, size_t len);
        void (*stored)(void *ctx, const char *text); /* a host key: ssh_hostkey_check() */
        void (*closed)(void *ctx);                   /* after ssh_hop_close(): the hop is freed */
};

/* Starts a hop. @target is borrowed until closed(). @forward_agent: the command may use the user's
 * ssh-agent while running, if the server allows forwarding. */
struct ssh_hop *ssh_hop_open(struct ssh_hops *hops, const struct ssh_target *target,
                             bool forward_agent, const struct ssh_hop_ops *ops, void *ctx);
void ssh_hop_close(struct ssh_hop *h);
