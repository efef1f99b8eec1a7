/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh misuse: what libssh accepts from a server and should not
 *
 * libssh keeps every request of a server for a program that never asks for them, queues answers
 * for a server that reads none, and goes on to read after an error. For the session's thread only.
 */
#pragma once

#include <libssh/libssh.h>
#include <stdbool.h>

struct ssh_misuse {
        struct ssh_counter_struct sent;
        uint64_t read; /* packets sent until the output was last empty */
};

/* Refuses all requests of the server that have no callback, and counts the answers. @m stays valid
 * as long as the session. */
void ssh_misuse_watch(struct ssh_misuse *m, ssh_session session);

/* Tells whether the server sends request after request and reads no answer. */
bool ssh_misuse_found(struct ssh_misuse *m, ssh_session session);

/* Tells whether libssh has given the session up: after a disconnect message, or because the server
 * broke the protocol. The socket may still be open, and libssh reads without end. */
bool ssh_session_is_dead(ssh_session session);
