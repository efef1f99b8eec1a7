/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three habits of libssh that a server could use: requests of the server are kept for a program
 * that never asks, answers are queued without a limit, and reading goes on after an error. The
 * first is refused by a callback, the second found by counting packets, the third by the status of
 * the session.
 */
#include "head/ssh/ssh_misuse.h"

#include <libssh/server.h>

#include "base/macros.h"

/* Packets that wait for the server to read. A stream stops after one; the channels of a jump host
 * may all close at once. */
#define UNREAD_MAX 16384

static int refuse_message(ssh_session session UNUSED, ssh_message message UNUSED, void *ctx UNUSED)
{
        return 1; /* libssh refuses, and frees the message */
}

void ssh_misuse_watch(struct ssh_misuse *m, ssh_session session)
{
        *m = (struct ssh_misuse){ 0 };
        ssh_set_message_callback(session, refuse_message, NULL);
        ssh_set_counters(session, NULL, &m->sent);
}

bool ssh_misuse_found(struct ssh_misuse *m, ssh_session session)
{
        if (!(ssh_get_status(session) & SSH_WRITE_PENDING))
                /* Nothing waits to be written: the server has read all packets so far. */
                m->read = m->sent.out_packets;
        return m->sent.out_packets - m->read > UNREAD_MAX;
}

bool ssh_session_is_dead(ssh_session session)
{
        return ssh_get_status(session) & SSH_CLOSED_ERROR;
}
