/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torch_private: single commands to the agent's store, shared by torch_*.c, and the parts above
 * them
 *
 * All take whole keys as on the wire, and wait for the server until the deadline. HN_ERR_TIMEOUT:
 * no answer.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "client/torchrun/torch_conn.h"
#include "client/torchrun/torch_store.h"

enum { TORCH_KEY = HN_KEY_MAX + 768 };

/* How many collectives of one name and member list this process has seen end. */
struct torch_round {
        struct torch_round *next;
        uint32_t ended;
        char base[];
};

struct torch_store {
        struct torch_server server;
        char prefix[512];
        uint32_t generation;   /* how often this rank has joined in this attempt */
        struct torch_job job;  /* for the numbers: the texts are lent to torch_store_open() only */
        char *error_file;      /* or NULL */
        pthread_mutex_t mutex; /* of the fields below */
        pthread_cond_t given;
        struct torch_conn *idle;
        unsigned n_conns, n_waiting;
        uint32_t marks;
        struct torch_round *rounds;
};

/* Writes a key to @to: prefix, kind (k user's, m collective, n node, w current collective, g
 * generation) and name. */
struct bytes torch_key(char *to, const struct torch_store *s, char kind, const char *fmt, ...)
        PRINTF(4, 5);
/* The same in a buffer living to the end of the block. */
#define TORCH_KEY_OF(s, ...) torch_key((char[TORCH_KEY]){ 0 }, (s), __VA_ARGS__)

static inline struct bytes torch_bytes(const struct buf *b)
{
        return (struct bytes){ buf_data(b), buf_len(b) };
}

/* The deadline of a command with an immediate answer, and of all functions without a @deadline. */
int64_t torch_soon(void);

/* Sends @n commands over a connection that is the caller's until torch_end(); the caller has to
 * read all the answers. On failure there is nothing to end. */
hn_status torch_begin(struct torch_store *s, const struct tcpstore_command *c, unsigned n,
                      int64_t deadline, struct torch_conn **ret);
void torch_end(struct torch_store *s, struct torch_conn *conn, hn_status status);

/* Reads without waiting; @ret's number is -1 when the key does not exist. Not for keys awaited by
 * other clients and possibly missing: new servers would wake the clients for nothing. */
hn_status torch_read(struct torch_store *s, struct bytes key, struct conn_answer *ret);
/* Waits for a key and reads the value; HN_ERR_NOT_FOUND at the deadline. */
hn_status torch_fetch(struct torch_store *s, struct bytes key, int64_t deadline,
                      struct conn_answer *ret);
/* COMPARE_SET; @now is the value afterwards. */
hn_status torch_swap(struct torch_store *s, struct bytes key, struct bytes expect,
                     struct bytes desired, struct conn_answer *now);
hn_status torch_set(struct torch_store *s, struct bytes key, struct bytes value);
hn_status torch_add(struct torch_store *s, struct bytes key, int64_t delta, int64_t *sum);
hn_status torch_delete(struct torch_store *s, struct bytes key, int64_t *existed);
hn_status torch_check(struct torch_store *s, const struct bytes *keys, uint32_t n, bool *all);
/* HN_ERR_NOT_FOUND: a key was still missing at the deadline. */
hn_status torch_wait(struct torch_store *s, const struct bytes *keys, uint32_t n, int64_t deadline);

/*
 * Swaps in @desired for the value read before, @old. *done = false: the value has changed. A
 * swapped-in value ends with a unique mark: COMPARE_SET only returns the value afterwards, so two
 * clients that swap in the same value could not tell which of them did. Readers remove the mark;
 * PyTorch's ADD stops at it.
 */
hn_status torch_replace(struct torch_store *s, struct bytes key, const struct conn_answer *old,
                        struct buf *desired, bool *done);
size_t torch_unmarked(const void *value, size_t len); /* the length without the mark */

/* HELLO and TOPOLOGY. */
hn_status torch_hello(struct torch_store *s);
hn_status torch_topology(struct torch_store *s, int64_t timeout_ms, struct conn_answer *ret);
/* Names the host of a rank for messages, without waiting. */
const char *torch_host_of(void *store, int rank);

/* BARRIER, GATHER, BROADCAST. */
hn_status torch_collective_call(struct torch_store *s, const struct store_request *req,
                                int64_t timeout_ms, struct conn_answer *ret);
