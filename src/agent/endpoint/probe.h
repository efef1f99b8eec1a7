/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reach: proves which addresses of another node's TCP endpoint can be reached from here
 *
 * All candidates are tried at once. One that refuses is asked again, after 2 ms and then less and
 * less often, until the time is up, because the endpoint may still be on its way to being opened.
 * Once one has answered the endpoint is there: who refuses after that is not asked again, and who
 * says nothing gets 100 ms more, or four times what the one took, so that a dead address costs no
 * time where another one does. Time in which the loop did not turn does not count. Over a
 * connection the first half of the token is said; only who answers with the second half is the
 * endpoint. Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "wire/endpoint_msg.h"

struct probe;

/* Once, when every candidate has an answer or the time is up: what became of them, in the order of
 * the candidates, lent. error is 0, the errno of connecting, ECONNRESET (closed without an answer:
 * the endpoint does not know us), EPROTO (another answer), EINVAL (not a numeric address),
 * ETIMEDOUT.
 * @p is gone when it returns. */
typedef void (*probe_done)(void *ctx, const struct probed *result);

/* @order is lent for the call. */
struct probe *probe_start(uv_loop_t *loop, const struct probe_order *order, probe_done done,
                          void *ctx);
/* Gives up; done() is not called. The memory is freed by close callbacks. NULL is fine. */
void probe_cancel(struct probe *p);
