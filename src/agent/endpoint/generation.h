/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generation: keeps apart the groups that PyTorch makes one after the other
 *
 * Each init_process_group() makes a TCPStore client, and its backends exchange addresses under the
 * same keys every time, below default_pg/. In a store that outlives the clients, the ranks of a
 * second group would find the addresses of the first. Therefore the keys of each later group have
 * names of their own in the store: in generation N > 0 the part "default_pg" of a key becomes
 * "pgNNNNNNNN", N in hexadecimal, which has the same length. Generation 0 changes nothing.
 *
 * A client's generation is decided when the client first names such a key:
 *
 *   - A member is a client that has sent ADD init/, as the constructor of TCPStore does. It joins
 *     the newest generation, or begins the next one if it belongs to a later group:
 *       - a member of the newest generation had closed before the client came (ADD init/); or
 *       - its first command sets the key of a rank which was the first of another member, too: this
 *         rank comes again, and its old connection is still open; or
 *       - as many members have joined as the endpoint serves ranks, one of them from the same
 *         process: so does a rank of NCCL that waits for the id of the new group.
 *   - Any other client is a clone: it has the generation of the newest member from its process, or
 *     else the newest generation. Since 2.5 the number of the process is in PING.
 *
 * The names that clients set in a generation are remembered. They are handed out for deletion when
 * the clients of the generation have gone and two later generations have begun; until then a slow
 * rank on a node with another endpoint may still read them. Names above GENERATION_NAMES_MAX bytes
 * in all are not remembered, and their keys stay.
 *
 * Pure: no descriptors, no clock. Source of the keys: torch/distributed/distributed_c10d.py and
 * rendezvous.py, 1.13 and 2.15.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/tcpstore.h"

enum { GENERATION_NAMES_MAX = 16 << 20 };

struct generations;
struct generation;

/* A client of the endpoint; zeroed when its connection begins. */
struct generation_client {
        struct generation *of; /* NULL = has named no key of a group */
        uint64_t born;         /* time of its ADD init/; 0 = none */
        uint64_t process;      /* host and process; 0 = not known */
};

struct generations *generations_create(void);
void generations_destroy(struct generations *g); /* all clients must have left; NULL is fine */

/* Says how many ranks the endpoint serves. */
void generations_expect(struct generations *g, size_t ranks);

/* Looks at a command before it goes to the store, and renames its keys in place if necessary; the
 * bytes of the keys must be writable. @host is the address of the client. */
void generation_command(struct generations *g, struct generation_client *c, const char *host,
                        const struct tcpstore_command *cmd);

/* Appends the answer to a LIST_KEYS, per key a u64 length and bytes, as the client knows the keys:
 * its own generation's as default_pg, without those of generation 0. Returns the number of keys;
 * check buf_failed(). */
uint32_t generation_list(const struct generation_client *c, struct bytes answer, struct buf *to);
/* Whether the answer must be changed so. */
bool generation_renames(const struct generation_client *c);

/* The client's connection is closed. */
void generation_leave(struct generations *g, struct generation_client *c);

/* Takes a name from the list of keys to delete. False: none. @ret is valid until the next call. */
bool generations_take_leftover(struct generations *g, struct bytes *ret);
