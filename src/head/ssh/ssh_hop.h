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

enum ssh_hop_event_kind {
        DID_PHASE,
        DID_SLOW, /* no answer for a while: another hop may use the time */
        DID_OPEN,
        DID_FAIL,
        DID_END,    /* after DID_OPEN */
        DID_SAY,    /* a piece of the command's stderr */
        DID_NOTICE, /* see link_callbacks.notice */
        DID_CLOSE,  /* after ssh_hop_close(): the hop is freed */
};

struct ssh_hop_event {
        enum ssh_hop_event_kind kind;
        enum link_phase phase;   /* DID_PHASE */
        enum link_notice notice; /* DID_NOTICE */
        int fd;                  /* DID_OPEN: the callee owns the descriptor */
        const void *data;        /* DID_FAIL, DID_END: a struct link_failure, or the
                                  * struct link_host_key around it; DID_SAY,
                                  * DID_NOTICE: text, which has a NUL but with DID_SAY */
        size_t len;              /* of @data */
};

/* Called in the loop's thread, possibly from inside ssh_hop_open(), never from ssh_hop_close(). */
typedef void (*ssh_hop_report)(void *ctx, const struct ssh_hop_event *event);

/* Starts a hop. @target is borrowed until DID_CLOSE. @jump_name: the hop is a jump host with this
 * name, which reports nothing (@report is NULL). @forward_agent: the command may use the user's
 * ssh-agent while running, if the server allows forwarding. */
struct ssh_hop *ssh_hop_open(struct ssh_hops *hops, const struct ssh_target *target,
                             const char *jump_name, bool forward_agent, ssh_hop_report report,
                             void *ctx);
void ssh_hop_close(struct ssh_hop *h);
