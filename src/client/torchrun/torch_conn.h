/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torch_conn: a connection to the TCPStore of torchrun's agent, used by one thread at a time
 *
 * A connection carries one command at a time, and a WAIT holds it. After a failure it can only be
 * closed: bytes of an answer may still be under way. Protocol: wire/tcpstore.h.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>

#include "base/buf.h"
#include "wire/tcpstore.h"

struct torch_conn {
        int fd;
        struct torch_conn *next; /* the owner's list */
};

struct torch_server {
        char host[256], port[8];
        enum tcpstore_dialect dialect; /* TCPSTORE_UNKNOWN until torch_conn_greet() */
};

/*
 * Finds out the dialect of the server, and waits for a server that does not listen yet. @ret is a
 * usable connection. HN_ERR_TIMEOUT, HN_ERR_SYSTEM (no such name, ...).
 */
hn_status torch_conn_greet(struct torch_server *server, int64_t deadline, struct torch_conn **ret);

/* HN_ERR_ABORTED when the server is gone. */
hn_status torch_conn_open(const struct torch_server *server, int64_t deadline,
                          struct torch_conn **ret);
void torch_conn_close(struct torch_conn *conn); /* NULL is fine */

/* Each returns HN_ERR_TIMEOUT, or HN_ERR_ABORTED when the connection is lost. */
hn_status torch_conn_send(struct torch_conn *conn, const struct buf *b, int64_t deadline);
hn_status torch_conn_read(struct torch_conn *conn, void *to, size_t n, int64_t deadline);
hn_status torch_conn_read_i64(struct torch_conn *conn, int64_t *ret, int64_t deadline);
/* Reads a malloc'ed value with a NUL after it; HN_ERR_PROTOCOL above 64 MiB. */
hn_status torch_conn_read_bytes(struct torch_conn *conn, void **ret, size_t *ret_len,
                                int64_t deadline);
