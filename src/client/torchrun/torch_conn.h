/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link: one connection to the TCPStore that torchrun's agent hosts, used by one thread at a time
 *
 * A connection carries one command at a time, and a WAIT holds it. After a failure it is of no use:
 * bytes of an answer may still be under way. Protocol: wire/tcpstore.h.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>

#include "base/buf.h"
#include "wire/tcpstore.h"

struct link {
        int fd;
        struct link *next; /* its owner's list */
};

struct link_server {
        char host[256], port[8];
        enum tcpstore_dialect dialect; /* TCPSTORE_UNKNOWN until link_greet() */
};

/*
 * Finds out which dialect the server speaks, and waits for a server that does not listen yet. @ret
 * is a connection that can be used on. HN_ERR_TIMEOUT, HN_ERR_SYSTEM (no such name, ...).
 */
hn_status link_greet(struct link_server *server, int64_t deadline, struct link **ret);

/* HN_ERR_ABORTED when the server is gone. */
hn_status link_open(const struct link_server *server, int64_t deadline, struct link **ret);
void link_close(struct link *l); /* NULL is fine */

/* All of them HN_ERR_TIMEOUT, or HN_ERR_ABORTED when the connection is lost. */
hn_status link_send(struct link *l, const struct buf *b, int64_t deadline);
hn_status link_read(struct link *l, void *to, size_t n, int64_t deadline);
hn_status link_read_i64(struct link *l, int64_t *ret, int64_t deadline);
/* A malloc'ed value with a NUL behind it; HN_ERR_PROTOCOL when it is absurdly long. */
hn_status link_read_bytes(struct link *l, void **ret, size_t *ret_len, int64_t deadline);
