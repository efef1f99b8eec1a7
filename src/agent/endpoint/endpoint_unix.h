/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoint_unix: the Unix socket through which this node's workers reach the store
 *
 * Clients (libhnlaunch) speak frames of type MSG_STORE. The endpoint checks that a frame is
 * well-formed and within the limits of wire/store_msg.h and hands the request to the node's relay,
 * which sends answers and events.
 *
 * Only processes of the agent's own uid are accepted (SO_PEERCRED). A client that breaks a rule, or
 * does not read its answers, loses its connection; no other client is affected. Incomplete frames
 * of all clients take 64 MiB, as in unfinished.h, without a patience: a rank may be stopped within
 * a frame. Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"
#include "store/relay/relay.h"

struct endpoint_unix;

/*
 * Listens on @path, mode 0600. The folder is made with mode 0700; an existing folder must be ours
 * and closed to other users. An old socket at @path is replaced. @relay is borrowed until the close
 * callbacks of endpoint_unix_destroy() have run. NULL on failure, with @err.
 */
struct endpoint_unix *endpoint_unix_create(uv_loop_t *loop, const char *path, struct relay *relay,
                                           struct error *err);

/* Calls @fn for every connection, in the order of arrival; @fn must not make or destroy any. */
void endpoint_unix_each(const struct endpoint_unix *e,
                        void (*fn)(void *ctx, const struct relay_client *client), void *ctx);

/* Back pressure: while paused no client is read, so nothing is sent. Pausing twice counts once. */
void endpoint_unix_pause(struct endpoint_unix *e, bool paused);

/* Closes every connection; new ones may come. */
void endpoint_unix_hang_up(struct endpoint_unix *e);
/* Closes every connection, removes the socket and a folder that endpoint_unix_create() made. The
 * memory is freed by close callbacks, so let the loop turn once more. NULL is fine. */
void endpoint_unix_destroy(struct endpoint_unix *e);
