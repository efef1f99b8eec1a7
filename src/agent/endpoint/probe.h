/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe: finds out which addresses of another node's TCP endpoint can be reached from here
 *
 * All candidates are tried at once. A candidate that refuses is tried again, after 2 ms and then at
 * growing intervals, until the time is up, because the endpoint may not be open yet. After the
 * first answer the endpoint is known to be open: refusals are final, and silent candidates get
 * another 100 ms, or four times the duration of that answer if longer, so that a dead address costs
 * no time beside a live one. Time in which the loop did not turn does not count. The probe sends
 * the first half of the token; only the endpoint can answer with the second half. Call everything
 * on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "wire/endpoint_msg.h"

struct probe;

/* Called once, when every candidate has a result or the time is up. @result is borrowed and in the
 * order of the candidates. error is 0, the errno of connecting, ECONNRESET (closed without an
 * answer: the endpoint does not know us), EPROTO (another answer), EINVAL (not a numeric address),
 * ETIMEDOUT. The probe is freed after the call. */
typedef void (*probe_done)(void *ctx, const struct probed *result);

/* @order is lent for the call. */
struct probe *probe_start(uv_loop_t *loop, const struct probe_order *order, probe_done done,
                          void *ctx);
/* Gives up; done() is not called. The memory is freed by close callbacks. NULL is fine. */
void probe_cancel(struct probe *p);
