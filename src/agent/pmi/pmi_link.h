/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_link: the ranks' connections to the PMI engine
 *
 * Every rank gets an end of a socket pair, named by PMI_FD; the agent keeps the other end. With
 * MPI_PMI_PORT the ranks connect to a port instead (pmi_port.h). One object per attempt. Call
 * everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strv.h"
#include "store/relay/relay.h"
#include "wire/msg.h"

struct pmi_link;

/* @l is borrowed for the call, @relay until pmi_link_destroy(). NULL with @err: the map of @l does
 * not fit its ranks, no port, or no memory. */
struct pmi_link *pmi_link_create(uv_loop_t *loop, struct relay *relay, const struct launch_order *l,
                                 struct error *err);
/* Closes the connections; the memory is freed by close callbacks, so let the loop turn once more.
 * The relay is not used any more. NULL is fine. */
void pmi_link_destroy(struct pmi_link *link);

/* Sets the variables in @env that lead the rank to the connection, and on several nodes
 * PMI_HOSTNAME unless @env has PMI_HOSTNAME. @ret_fd: the rank's end, closed on exec, with a number
 * above the numbers that shells and scripts use; the caller closes @ret_fd. -1: the rank inherits
 * no descriptor. 0, or a negative errno: out of descriptors. */
int pmi_link_open(struct pmi_link *link, uint32_t rank, struct strv *env, int *ret_fd);

/* A rank with at least one message so far. */
struct pmi_link_state {
        uint32_t rank;
        uint64_t heard_ns;     /* of the last message; uv_hrtime() */
        const char *waits_for; /* since then; see pmi_waits_for() */
};

/* Calls @fn for each connected rank with at least one message so far. */
void pmi_link_each(const struct pmi_link *link,
                   void (*fn)(void *ctx, const struct pmi_link_state *state), void *ctx);

/* Ends the connection of a rank, whose process has ended: reads the rest first, for example an
 * abort. Returns how the rank has used PMI. */
enum rank_mpi pmi_link_end(struct pmi_link *link, uint32_t rank);
/* Whether the rank has begun nothing with PMI so far. */
bool pmi_link_is_unused(const struct pmi_link *link, uint32_t rank);
