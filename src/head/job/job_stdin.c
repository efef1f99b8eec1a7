/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input of a job: read once, sent to rank 0 or, once per node, to every rank. Reading
 * pauses while the slowest rank that still lives has a window full of bytes before it.
 */
#include <stdlib.h>

#include "head/job/job_private.h"

static bool is_fed(const struct job *j, int rank)
{
        return j->feed_all || rank == 0;
}

/* Bytes on their way to the rank that has read least. */
static uint64_t behind(const struct job *j)
{
        uint64_t least = j->feed_sent;

        for (int r = 0; r < (j->feed_all ? j->plan->world_size : 1); r++)
                least = MIN(least, j->stdin_reader_read[r]);
        return j->feed_sent - least;
}

static void send_to(struct node *n, uint32_t rank, const void *data, size_t len)
{
        if (n->state != NODE_RUNNING)
                return;
        stdin_encode(node_out(n), rank, data, len);
        node_flush(n);
}

static void bytes_came(void *ctx, const void *data, size_t len)
{
        struct job *j = ctx;

        if (!j->feed_all)
                send_to(&j->nodes[j->plan->ranks[0].node], 0, data, len);
        for (size_t i = 0; i < j->n_nodes && j->feed_all; i++)
                send_to(&j->nodes[i], MSG_EVERY_RANK, data, len);
        j->feed_sent += len;
        stdin_reader_pause(j->feed, behind(j) >= MSG_WINDOW);
}

void job_stdin_start(struct job *j, int fd, bool all)
{
        j->feed_all = all;
        j->stdin_reader_read = xcalloc((size_t)j->plan->world_size, sizeof(*j->stdin_reader_read));
        j->feed = stdin_reader_create(&j->loop, j->pool, fd, bytes_came, j);
}

void job_stdin_credit(struct job *j, int rank, uint32_t bytes)
{
        if (!j->stdin_reader_read || !is_fed(j, rank))
                return;
        if (j->stdin_reader_read[rank] != UINT64_MAX)
                j->stdin_reader_read[rank] += bytes;
        stdin_reader_pause(j->feed, behind(j) >= MSG_WINDOW);
}

void job_stdin_left(struct job *j, int rank)
{
        if (!j->stdin_reader_read || !is_fed(j, rank))
                return;
        j->stdin_reader_read[rank] = UINT64_MAX;
        stdin_reader_pause(j->feed, behind(j) >= MSG_WINDOW);
}

void job_stdin_stop(struct job *j)
{
        stdin_reader_destroy(j->feed);
        j->feed = NULL;
        free(j->stdin_reader_read);
        j->stdin_reader_read = NULL;
        j->feed_sent = 0;
}
