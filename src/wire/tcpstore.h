/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tcpstore: the wire protocol of PyTorch's TCPStore, from 1.9 to the newest
 *
 * Pure: bytes in, commands out, and vice versa. Four dialects share one port and are told apart by
 * their first bytes:
 *
 *   A   1.9 - 2.0   no greeting, two connections per client, no CANCEL_WAIT
 *   B   2.1         no greeting, other numbers from 7 on
 *   C   2.2 - 2.4   VALIDATE first
 *   D   2.5 ...     VALIDATE and PING first; later releases only append commands
 *
 * Integers are little-endian. A string is a u64 length and bytes; a list of keys a u64 count and
 * strings. Source: torch/csrc/distributed/c10d/TCPStore*.{hpp,cpp} of these releases.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/store_msg.h"

enum {
        TCPSTORE_KEY_MAX = 8 << 10,
        TCPSTORE_VALUE_MAX = 8 << 20,
        TCPSTORE_KEYS_MAX = 131072,      /* of a command */
        TCPSTORE_COMMAND_MAX = 24 << 20, /* bytes of a command */
};

#define TCPSTORE_MAGIC 0x3C85F7CEu /* of VALIDATE */

enum tcpstore_dialect {
        TCPSTORE_UNKNOWN, /* no bytes yet */
        TCPSTORE_A_OR_B,  /* all bytes so far mean the same in both */
        TCPSTORE_A,
        TCPSTORE_B,
        TCPSTORE_C, /* and D */
};

/* Numbers of this file; equal to C and D where these dialects have the command. */
enum tcpstore_op {
        TCPSTORE_VALIDATE,    /* (magic) */
        TCPSTORE_SET,         /* key, value */
        TCPSTORE_COMPARE_SET, /* key, expect, value */
        TCPSTORE_GET,         /* key */
        TCPSTORE_ADD,         /* key, number */
        TCPSTORE_CHECK,       /* keys */
        TCPSTORE_WAIT,        /* keys */
        TCPSTORE_NUM_KEYS,
        TCPSTORE_DELETE,    /* key */
        TCPSTORE_APPEND,    /* key, value */
        TCPSTORE_MULTI_GET, /* keys */
        TCPSTORE_MULTI_SET, /* keys, values */
        TCPSTORE_CANCEL_WAIT,
        TCPSTORE_PING,       /* number = nonce */
        TCPSTORE_QUEUE_PUSH, /* key, value */
        TCPSTORE_QUEUE_POP,  /* key */
        TCPSTORE_QUEUE_LEN,  /* key */
        TCPSTORE_LIST_KEYS,
        TCPSTORE_BARRIER,   /* key, number = world size */
        TCPSTORE_WATCH_KEY, /* key; A only */
        TCPSTORE_OPS,
};

struct tcpstore_command {
        enum tcpstore_op op;
        struct bytes key, expect, value;
        struct bytes *keys, *values;
        uint32_t n_keys;
        int64_t number;
};

struct tcpstore_limits {
        size_t key, value, command;
        uint32_t keys;
};

#define TCPSTORE_LIMITS                                                                            \
        {                                                                                          \
                TCPSTORE_KEY_MAX, TCPSTORE_VALUE_MAX, TCPSTORE_COMMAND_MAX, TCPSTORE_KEYS_MAX      \
        }

/*
 * The reader of a connection. A command that comes in pieces is parsed once, not from the start at
 * every piece.
 */
struct tcpstore_parser;

struct tcpstore_parser *tcpstore_parser_create(
        struct tcpstore_limits limits); /* NULL = no memory */
void tcpstore_parser_destroy(struct tcpstore_parser *p);
enum tcpstore_dialect tcpstore_parser_dialect(const struct tcpstore_parser *p);

/*
 * Parses the next command at the front of @in. 1: @ret is whole; it borrows from @in and @p until
 * tcpstore_parser_consume(), which removes the command from @in. 0: more bytes are needed. -EPROTO:
 * not a command of this dialect, a VALIDATE with another magic, or above a limit; the connection is
 * lost and @err says why.
 * @first_segment is the size of the first piece delivered by the connection: it tells A from B
 * where the same bytes could be both.
 */
int tcpstore_parser_next(struct tcpstore_parser *p, const struct buf *in, size_t first_segment,
                         struct tcpstore_command *ret, struct error *err);
void tcpstore_parser_consume(struct tcpstore_parser *p, struct buf *in);

/* --- a server's replies ----------------------------------------------------------------------- */

enum {
        TCPSTORE_READY = 0,         /* CHECK */
        TCPSTORE_NOT_READY = 1,     /* CHECK */
        TCPSTORE_STOP_WAITING = 0,  /* WAIT, BARRIER */
        TCPSTORE_WAIT_CANCELED = 1, /* CANCEL_WAIT */
        TCPSTORE_WATCHING = 3,      /* WATCH_KEY */
};

/* --- a client's commands ---------------------------------------------------------------------- */

/* Appends a command in the numbers of @dialect (A, B or C); false: not in this dialect. */
bool tcpstore_command_encode(struct buf *b, enum tcpstore_dialect dialect,
                             const struct tcpstore_command *c);

const char *tcpstore_op_name(enum tcpstore_op op); /* "MULTI_GET" */
