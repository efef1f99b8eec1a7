/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caller: a node's connection to a listening head, over Noise, up to WELCOME
 *
 * A node of --dial-in calls node 0, and an agent started by a manager calls the head. All functions
 * block, with deadlines. After WELCOME the carrier of the agent's bytes takes over @fd, @stream and
 * @in, and first of all the records in @in: the head may have sent more in the same packet. The
 * stream is of wire/noise/dial.h.
 */
#pragma once

#include <sys/socket.h>

#include "base/buf.h"
#include "wire/noise/dial.h"

struct caller {
        int fd; /* blocking; -1 = closed */
        struct dial_stream stream;
        struct buf in; /* sealed bytes from the head */
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

/* Closes the connection; @c may be used for another connection. */
void caller_finish(struct caller *c);
