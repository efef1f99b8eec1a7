/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Door: the Unix socket through which this node's workers reach the store
 *
 * Clients (libhnlaunch) speak frames of type MSG_STORE. The door checks that a frame is well-formed
 * and within the limits of wire/store_msg.h, writes the client's number into its first bytes and
 * passes the body up; bodies from the head are handed to the client they name, or to all. It never
 * looks at keys or values and keeps no state but its connections.
 *
 * Only processes of the agent's own uid are let in (SO_PEERCRED). A client that breaks a rule, or
 * does not read what it asked for, loses its connection and nobody else's; the head then hears that
 * it is gone and forgets what it waited for. Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"

struct door;

struct door_ops {
        /* Put a MSG_STORE with this body on the way to the head; @body is lent for the call. */
        void (*send)(void *ctx, const void *body, size_t len);
};

/*
 * Listens on @path, mode 0600. Its folder is made with mode 0700 when it does not exist; one that
 * exists must belong to us and be closed to others. An old socket at @path is replaced. @ops is
 * copied, @ctx is borrowed until door_destroy(). NULL: failed and told in @err.
 */
struct door *door_create(uv_loop_t *loop, const char *path, struct door_ops ops, void *ctx,
                         struct error *err);

/* The body of a MSG_STORE that came from the head. One for a client that is gone is dropped.
 * -EPROTO: the head sent nonsense. */
int door_deliver(struct door *d, const void *body, size_t len, struct error *err);

/* Back pressure: while paused no client is read, so nothing is sent. Pausing twice counts once. */
void door_pause(struct door *d, bool paused);

/* Closes every connection, removes the socket and a folder that door_create() made. The memory is
 * freed by close callbacks, so let the loop turn once more. No ops after this. NULL is fine. */
void door_destroy(struct door *d);
