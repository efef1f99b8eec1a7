/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conn: the connection of this process to the store, shared by all threads
 *
 * Either the Unix socket of the node's agent, or a store engine in the process (a world of one), or
 * a table of functions (under torchrun: client/torchrun/torch_store.h). Requests carry tags. One of
 * the waiting threads reads the socket for all; once it has its own answer, another thread takes
 * over. All functions may be called from any thread.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>

#include "wire/store_msg.h"

struct conn;

struct conn_answer {
        int64_t number;
        void *value; /* malloc'ed, with a NUL after the bytes; NULL when the answer has no value */
        size_t len;
};

#define CONN_ANSWER_INIT                                                                           \
        {                                                                                          \
                0                                                                                  \
        }

void conn_answer_finish(struct conn_answer *a);

/* A store reached by functions instead of the agent's socket. */
struct conn_ops {
        hn_status (*call)(void *store, const struct store_request *req, int64_t timeout_ms,
                          struct conn_answer *ret);
        hn_status (*post)(void *store, const struct store_request *req);
        void (*close)(void *store);
};

hn_status conn_open(const char *path, int64_t timeout_ms, struct conn **ret);
hn_status conn_open_local(struct conn **ret);
/* Takes @store, also on failure. @ops must outlive the connection. */
hn_status conn_open_ops(const struct conn_ops *ops, void *store, struct conn **ret);
void conn_close(struct conn *c); /* NULL is fine; no thread may be in a call */

/* Sends @req (tag and client are filled in) and waits for the answer. @ret may be NULL. */
hn_status conn_call(struct conn *c, struct store_request *req, int64_t timeout_ms,
                    struct conn_answer *ret);
/* Sends a request without an answer. */
hn_status conn_post(struct conn *c, struct store_request *req);
/* Takes the oldest event, or returns HN_ERR_TIMEOUT. */
hn_status conn_event(struct conn *c, hn_event *ret, int64_t timeout_ms);
/* HN_ERR_PEER as soon as a rank has failed or a node is lost, HN_OK when neither happens in time.
 */
hn_status conn_health(struct conn *c, int64_t timeout_ms);
