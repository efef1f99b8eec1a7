/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torch_topology: the hosts of the ranks
 *
 * Each node has one key, "FIRST-RANK RANKS HOST", written by the node's first rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "client/torchrun/torch_private.h"

enum { HOST_MAX = 255 };

/* --- one key per node ------------------------------------------------------------------------- */

#define NODE_KEY_OF(s, node) TORCH_KEY_OF((s), 'n', "%u", (node))

/*
 * The first rank of each node writes the node's key; ranks of a node have consecutive numbers.
 *
 * A program that runs after another one in the same worker, or joins again, finds the keys of
 * earlier collectives. All ranks have joined equally often, so they agree on a generation.
 */
hn_status torch_hello(struct torch_store *s)
{
        char host[HOST_MAX + 1] = "", text[HOST_MAX + 32];
        int64_t times = 0;
        hn_status status = torch_add(s, TORCH_KEY_OF(s, 'g', "%u", s->job.rank), 1, &times);

        s->generation = (uint32_t)times;
        if (status != HN_OK || s->job.rank != s->job.first_rank)
                return status;
        gethostname(host, HOST_MAX);
        snprintf(text, sizeof(text), "%u %u %s", s->job.first_rank, s->job.local_world_size, host);
        return torch_set(s, NODE_KEY_OF(s, s->job.node_rank), bytes_of(text));
}

/* Reads a node's key without waiting; false: not written yet. */
static bool read_node(struct torch_store *s, uint32_t node, uint32_t *first, uint32_t *n,
                      char host[HOST_MAX + 1])
{
        struct conn_answer a = CONN_ANSWER_INIT;
        bool good = torch_read(s, NODE_KEY_OF(s, node), &a) == HN_OK && a.value &&
                    sscanf(a.value, "%u %u %255s", first, n, host) == 3;

        conn_answer_finish(&a);
        return good;
}

const char *torch_host_of(void *store, int rank)
{
        static _Thread_local char host[HOST_MAX + 1];
        struct torch_store *s = store;
        uint32_t first, n;

        for (uint32_t node = 0; node < s->job.num_nodes; node++)
                if (read_node(s, node, &first, &n, host) && (uint32_t)rank - first < n)
                        return host;
        return "not started";
}

/* Waits for the keys of all nodes. */
static hn_status fill_topology(struct torch_store *s, struct topology *t, int64_t deadline)
{
        char host[HOST_MAX + 1];
        uint32_t first, n, known = 0;

        for (uint32_t node = 0; node < t->n_nodes; node++) {
                struct bytes key = NODE_KEY_OF(s, node);
                hn_status status = torch_wait(s, &key, 1, deadline);

                if (status == HN_ERR_NOT_FOUND)
                        return set_error(HN_ERR_TIMEOUT, "node %u has not registered its host",
                                         node);
                if (status != HN_OK)
                        return status;
                if (!read_node(s, node, &first, &n, host) || first > t->world_size ||
                    n > t->world_size - first)
                        return set_error(HN_ERR_PROTOCOL, "malformed entry of node %u", node);
                t->hosts[node] = strdup(host);
                if (!t->hosts[node])
                        return set_error(HN_ERR_NOMEM, "out of memory");
                known += n;
                for (; n > 0; n--)
                        t->node_of_rank[first++] = node;
        }
        if (known != t->world_size)
                return set_error(HN_ERR_PROTOCOL, "the nodes have %u ranks, not %u", known,
                                 t->world_size);
        return HN_OK;
}

hn_status torch_topology(struct torch_store *s, int64_t timeout_ms, struct conn_answer *ret)
{
        struct topology t = { .n_nodes = s->job.num_nodes, .world_size = s->job.world_size };
        int64_t deadline = deadline_in(timeout_ms);
        struct buf b = BUF_INIT;
        hn_status status;

        t.hosts = calloc(t.n_nodes, sizeof(*t.hosts));
        t.node_of_rank = calloc(t.world_size, sizeof(*t.node_of_rank));
        if (t.hosts && t.node_of_rank)
                status = fill_topology(s, &t, deadline);
        else
                status = set_error(HN_ERR_NOMEM, "out of memory");
        if (status == HN_OK) {
                topology_encode(&b, &t);
                ret->len = buf_len(&b);
                ret->value = buf_steal(&b);
                if (!ret->value)
                        status = set_error(HN_ERR_NOMEM, "out of memory");
        }
        buf_finish(&b);
        topology_finish(&t);
        return status;
}
