/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics server: a text at http://ADDRESS/metrics (--metrics)
 *
 * Knows GET of HTTP/1.x and nothing else, reads at most 8 KiB of a request, and closes each
 * connection behind the answer: a client can read the text and change nothing. Each client has 10 s
 * for the request, and 10 s without progress for the answer; above 64 at once the oldest without a
 * request goes. A browser that was led here by the name of another site gets 421. The text is made
 * at most once a second. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"

struct metrics_address {
        char host[256]; /* a name or an address without brackets */
        int port;       /* 0 = any free one */
};

/* Parses PORT (of 127.0.0.1), HOST:PORT or [V6]:PORT. 0, or -EINVAL with @err. Pure. */
int metrics_address_parse(struct metrics_address *a, const char *text, struct error *err);

/* Returns the status of the answer to a request that has come so far: 200, 400, 404 or 405; 0: more
 * must come. Pure. */
int metrics_request_status(const char *text, size_t len);

/* Whether each Host of a whole request is an address, localhost or one of @names, which NULL ends;
 * without a port and in any case of letters. Pure. */
bool metrics_request_knows_host(const char *text, size_t len, const char *const *names);

struct metrics_server;

/* Listens. @text appends the text. NULL with @err: the address cannot be used. */
struct metrics_server *metrics_server_open(uv_loop_t *loop, const struct metrics_address *a,
                                           void (*text)(void *ctx, struct buf *to), void *ctx,
                                           struct error *err);
/* Returns "http://127.0.0.1:9400/metrics". */
const char *metrics_server_url(const struct metrics_server *s);
/* Closes all connections; the memory is freed when the loop turns. NULL is fine. */
void metrics_server_close(struct metrics_server *s);
