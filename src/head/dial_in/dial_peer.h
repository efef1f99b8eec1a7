/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_peer: a connection of a node to node 0's listener, at either end
 *
 *   FREE -> GREETING -> JOINING -> JOINED -> CLOSING -> FREE
 *   with munge GREETING -> PROVING -> JOINING
 *
 * Before the proof by the greeting a peer needs no memory beside the struct. All callbacks run on
 * the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/buf.h"
#include "wire/noise/dial.h"

enum dial_peer_state {
        PEER_FREE,
        PEER_GREETING, /* no bytes, or a part of the greeting */
        PEER_PROVING,  /* the greeting is right; a credential proves the user */
        PEER_JOINING,  /* the greeting is right; the first record rules out a replay */
        PEER_JOINED,
        PEER_CLOSING,
};

enum dial_peer_fault { PEER_FOREIGN, PEER_SILENT, PEER_REPLAYED, PEER_CLOSED };

struct dial_peer;

struct dial_peer_ops {
        /* The first record is a credential; dial_peer_prove() or dial_peer_refute() follows. NULL:
         * there are none. */
        void (*proof)(struct dial_peer *p, const struct dial_record *r);
        /* The node has proved the secret, and tells name and number. */
        void (*joined)(struct dial_peer *p, const struct dial_join *m);
        void (*record)(struct dial_peer *p, const struct dial_record *r); /* of a JOINED peer */
        void (*writable)(struct dial_peer *p);
        /* The connection is over and closes now. @text says why. */
        void (*broken)(struct dial_peer *p, enum dial_peer_fault fault, const char *text);
        void (*closed)(struct dial_peer *p); /* FREE again; the last callback */
};

struct dial_peer {
        enum dial_peer_state state;
        const struct dial_peer_ops *ops;
        void *owner; /* the listener's */
        const uint8_t *psk;
        uv_tcp_t tcp;
        uv_write_t write;
        bool writing;
        bool ended;  /* END was put: nothing more is sent */
        bool paused; /* nothing is read */
        uint8_t greeting[DIAL_GREETING];
        size_t got;       /* bytes of @greeting */
        int64_t since_ns; /* of the connection, or of the end */
        struct dial_stream stream;
        struct buf in, out, in_flight;
        char address[64];
        struct dial_join join;       /* name and number, as the node says */
        void *check;                 /* of a credential; NULL = none goes on */
        LIST_ENTRY(dial_peer) entry; /* the listener's */
};

/* Accepts a connection of @listener into a FREE peer. 0, or a negative error of libuv: the peer is
 * closing. */
int dial_peer_accept(struct dial_peer *p, uv_stream_t *listener);
/* Makes a FREE peer of a node's end of a connection, JOINED, after dial_call(). @fd is taken over,
 * and so are the bytes of @in: the records in @in come during the call, all others from the loop.
 * 0, or a negative error of libuv: the peer is closing. */
int dial_peer_adopt(struct dial_peer *p, uv_loop_t *loop, int fd, const struct dial_stream *stream,
                    struct buf *in);
/* Goes on with a PROVING peer, to which @credential is sent. */
void dial_peer_prove(struct dial_peer *p, const char *credential);
/* Ends a PROVING peer. */
void dial_peer_refute(struct dial_peer *p, const char *why);
/* Reads a greeting ahead of the loop, if the bytes are there. Whether the peer is past the greeting
 * now. */
bool dial_peer_read_now(struct dial_peer *p);
/* Stops or goes on reading. */
void dial_peer_pause(struct dial_peer *p, bool pause);
/* Sends a record of a JOINED peer. */
void dial_peer_send(struct dial_peer *p, enum dial_type type, const void *body, size_t len);
/* Sends bytes as DATA until 1 MiB waits to be sent; the rest stays in @out. */
void dial_peer_send_bytes(struct dial_peer *p, struct buf *out);
/* Tells the node of a JOINED peer the reason of the wait. */
void dial_peer_notify(struct dial_peer *p, const struct dial_end *m);
/* Sends the last record, and closes after the node has read all and closed the other side. */
void dial_peer_end(struct dial_peer *p, enum dial_type type, const struct dial_end *m);
/* Ends a JOINED peer with REFUSED, which is logged. */
void dial_peer_refuse(struct dial_peer *p, uint8_t code, const char *fmt, ...) PRINTF(3, 4);
/* Bytes not sent yet. */
size_t dial_peer_waiting(const struct dial_peer *p);
/* Closes at once; closed() follows. */
void dial_peer_close(struct dial_peer *p);
