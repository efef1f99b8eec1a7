/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caller: a node's connection to a head that listens, over Noise, up to WELCOME
 *
 * A node of --dial-in calls node 0, and an agent that a manager has started calls the head. All
 * functions block, with deadlines; what carries the bytes of the agent afterwards takes over
 * @fd, @stream and @in. The stream is that of wire/noise/dial.h.
 */
#pragma once

#include <sys/socket.h>

#include "base/buf.h"
#include "wire/noise/dial.h"

struct caller {
        int fd; /* blocking; -1 = closed */
        struct dial_stream stream;
        struct buf in; /* sealed bytes that have come */
};

#define CALLER_INIT                                                                                \
        {                                                                                          \
                .fd = -1                                                                           \
        }

/* Connects within 5 s. The connection notices within 20 s when the other machine is gone. 0, or
 * -errno. */
int caller_connect(struct caller *c, const struct sockaddr *to, socklen_t len);

/* Exchanges the greetings. -ETIMEDOUT: no bytes came for @answer_ms; -ECONNRESET: the connection
 * was closed; -EPROTO: another service answered; -EBADMSG: the other side has another secret; or
 * another -errno. */
int caller_greet(struct caller *c, const uint8_t psk[NOISE_KEY], int answer_ms);

/* Send a record. 0, or -errno. */
int caller_put(struct caller *c, enum dial_type type, const void *body, size_t len);
int caller_join(struct caller *c, const struct dial_join *m);

/* Waits for a record as long as it takes; then call buf_consume() of @c->in with ret->whole.
 * -ECONNRESET: the connection was closed; -EBADMSG: the record is damaged; or another -errno. */
int caller_take(struct caller *c, struct dial_record *ret);

/* Closes the connection; @c may be used for another one. */
void caller_finish(struct caller *c);
