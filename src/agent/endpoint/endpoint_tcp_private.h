/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoint_tcp, inside: state shared by its files
 *
 *   endpoint_tcp.c  the listeners, the list of connections, and keys of past groups
 *   tcp_conn.c      one connection: bytes in and out
 *   tcp_command.c   one connection: commands to the relay and answers back
 *
 * Thousands of connections are idle and own next to no memory: bytes are read into one buffer of
 * the endpoint and parsed there; only the beginning of an incomplete command is kept. Answers
 * gather in another buffer of the endpoint, which belongs to one connection at a time, the writer,
 * and are written when the writer changes or the turn ends. Only the bytes that the kernel does not
 * take are copied; a large answer for many clients is copied once.
 */
#pragma once

#include "agent/endpoint/endpoint_tcp.h"
#include "agent/endpoint/generation.h"
#include "agent/endpoint/peer_check.h"
#include "agent/endpoint/peer_owners.h"
#include "agent/endpoint/unfinished.h"
#include "base/buf.h"
#include "wire/tcpstore.h"

enum {
        ENDPOINT_READ_SIZE = 64 << 10,
        ENDPOINT_WRITE_SIZE = 64 << 10,
};

enum tcp_state {
        TCP_FREE,
        TCP_ASKED,   /* an answer is under way, nothing more is read */
        TCP_WAITING, /* an answer is under way, but the next command cancels the wait */
};

/* A connection's request to the relay. */
struct tcp_request {
        enum tcp_state state;
        uint8_t op;          /* enum tcpstore_op of the command under way */
        uint32_t tag;        /* of the command under way; even */
        uint32_t unanswered; /* tag of the last write without an answer; odd */
        unsigned unfinished; /* ... and number of these writes without an acknowledgement of the
                                store */
        bool pending;        /* the relay has the request @tag */
        struct buf expect;   /* of a COMPARE_SET under way */
};

struct tcp_link {
        struct tcp_conn *prev, *next;
};

struct tcp_conn {
        uv_tcp_t tcp; /* .data = the connection */
        struct endpoint_tcp *endpoint;
        struct tcp_conn *prev, *next; /* all connections */
        struct tcp_link still_link;   /* connections not being read */
        struct relay_client *relay;   /* this and the parser: NULL until admitted */
        struct tcpstore_parser *parser;
        struct tcp_peer peer;
        struct peer_wait wait; /* for the answer of the other end's node */
        struct buf in;         /* beginning of the next command */
        size_t first;          /* length of the first piece */
        struct unfinished_part part;
        struct tcp_request request;
        struct generation_client group;
        bool proven; /* has sent a whole command */
        bool still, parsing, closing;
};

/* PyTorch's groups, and the deletion of keys of past ones. */
struct tcp_groups {
        struct generations *generations;
        struct relay_client *sweeper; /* NULL = nothing was deleted yet */
        uint32_t tag;
        unsigned under_way; /* deletions */
};

/* A large answer. */
struct tcp_shared {
        unsigned refs;
        size_t len;
        unsigned char bytes[];
};

struct endpoint_tcp {
        uv_tcp_t listeners[2];
        unsigned n_listeners;
        uint32_t port;
        struct peer_check *peer_check;
        struct relay *relay;
        struct peer_owners *owners; /* asked about connections from other nodes */
        struct tcpstore_limits limits;
        char token[ENDPOINT_TOKEN + 1];
        struct {
                struct tcp_conn *list;
                size_t n, max; /* other descriptors are left to ranks */
                bool told;     /* of one too many */
        } conns;
        struct tcp_conn *still;
        struct tcp_groups groups;
        struct unfinished unfinished;
        struct tcp_conn *writer;   /* owner of the answers in @out */
        struct tcp_shared *shared; /* of this turn, NULL = none yet */
        unsigned handles;          /* not closed yet */
        unsigned told;             /* number of log lines about broken rules */
        bool paused;
        size_t out_len;
        unsigned char out[ENDPOINT_WRITE_SIZE];
        unsigned char read[ENDPOINT_READ_SIZE];
};

void endpoint_tcp_unref(struct endpoint_tcp *e); /* a handle of the loop has been closed */
void endpoint_tcp_forget(struct tcp_conn *c);

/* Returns whether a new connection is one too many, and tells the first. */
bool endpoint_tcp_is_crowded(struct endpoint_tcp *e);

extern const struct unfinished_ops tcp_conn_unfinished;

/* Accepts one connection of @listener. */
void tcp_conn_accept(struct endpoint_tcp *e, uv_stream_t *listener);
/* The writer's answers go out. */
void tcp_conn_flush(struct endpoint_tcp *e);
void tcp_conn_close(struct tcp_conn *c);
/* Closes a connection that broke a rule, and logs the reason. */
void tcp_conn_fail(struct tcp_conn *c, const char *why);
/* Appends to the answers; @data is borrowed for the call. */
void tcp_conn_put(struct tcp_conn *c, const void *data, size_t len);
/* Call when a connection may have become ready or blocked: runs commands that have come, and starts
 * or stops to read. */
void tcp_conn_steer(struct tcp_conn *c);
void tcp_conn_forget_shared(struct endpoint_tcp *e);

/* Carries out a whole command. */
void tcp_command_run(struct tcp_conn *c, const struct tcpstore_command *cmd);

/* An answer of the relay; @ctx is the connection. */
void tcp_command_reply(void *ctx, const struct store_reply *reply);
