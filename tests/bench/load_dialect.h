/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load_dialect: what a client of a store says, and how long the answer is, in five protocols
 *
 *   hn     libhnlaunch's frames (wire/store_msg.h), spoken at the agent's Unix endpoint
 *   a, c   PyTorch's TCPStore, up to 2.0 and from 2.2 on (wire/tcpstore.h)
 *   resp   Redis
 *   echo   requests and answers as long as those of another dialect, for echo_server
 *
 * One operation is one write, so that the same loop loads every server. SET of TCPStore has no
 * answer: there it is followed in the same write by a CHECK of the key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

enum load_op { LOAD_SET, LOAD_GET, LOAD_ADD, LOAD_WAIT, LOAD_OPS };

enum { LOAD_VALUE = 128 }; /* bytes of every value: an ncclUniqueId */

struct load_dialect {
        const char *name;
        /* What a new connection says first, and how many bytes answer it. */
        void (*greet)(struct buf *b); /* NULL = nothing */
        size_t greeting_answer;
        /* Appends the request. ADD adds 1; a key that WAIT and GET name has been SET. */
        void (*request)(struct buf *b, enum load_op op, const char *key);
        /* The length of the whole answer at the front of @p; 0 = it is not all there, -1 = it is
         * not the one that is due. */
        ssize_t (*answer)(enum load_op op, const unsigned char *p, size_t n);
        /* The length that a good answer has; that of a number is the shortest. */
        size_t (*answer_size)(enum load_op op);
};

/* NULL = no such. "echo:hn" is an echo with the lengths of hn. */
const struct load_dialect *load_dialect_find(const char *name);

const char *load_op_name(enum load_op op); /* "get" */
/* LOAD_OPS = no such. */
enum load_op load_op_find(const char *name);
