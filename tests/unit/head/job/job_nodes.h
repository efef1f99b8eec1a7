/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job nodes: nodes n0, n1 ... of a job, without agents, and their cluster
 */
#pragma once

#include <stdio.h>

#include "head/job/cluster.h"
#include "lib/unit.h"

enum { JOB_NODES = 4 };

struct job_nodes {
        uv_loop_t loop;
        struct options options;
        struct events events;
        struct host hosts[JOB_NODES];
        struct hosts list;
        struct node nodes[JOB_NODES];
        struct msg_addr addrs[JOB_NODES];
        struct cluster cluster;
};

/* Opens the first @n nodes, with addresses 10.0.0.1 ... */
static inline void job_nodes_open(struct job_nodes *j, int n, enum node_state state)
{
        static char names[JOB_NODES][4] = { "n0", "n1", "n2", "n3" };

        uv_loop_init(&j->loop);
        events_init(&j->events);
        for (int i = 0; i < n; i++) {
                j->hosts[i].name = names[i];
                node_init(&j->nodes[i], &j->loop, i, &j->hosts[i], NULL, NULL, NULL);
                j->nodes[i].state = state;
                j->addrs[i] = (struct msg_addr){ .iface = "eth0", .prefix = 24 };
                snprintf(j->addrs[i].addr, sizeof(j->addrs[i].addr), "10.0.0.%d", i + 1);
                j->nodes[i].hello.addrs = &j->addrs[i];
                j->nodes[i].hello.n_addrs = 1;
        }
        j->list = (struct hosts){ .v = j->hosts, .n = (size_t)n };
        j->cluster = (struct cluster){ .loop = &j->loop,
                                       .options = &j->options,
                                       .events = &j->events,
                                       .hosts = &j->list,
                                       .nodes = j->nodes,
                                       .n_nodes = (size_t)n };
}

/* Closes the nodes, and runs the loop until all that was closed has ended. */
static inline void job_nodes_close(struct job_nodes *j)
{
        for (size_t i = 0; i < j->cluster.n_nodes; i++) {
                j->nodes[i].hello = (struct hello){ 0 };
                node_close(&j->nodes[i]);
        }
        uv_run(&j->loop, UV_RUN_DEFAULT);
}

static inline void job_nodes_finish(struct job_nodes *j)
{
        for (size_t i = 0; i < j->cluster.n_nodes; i++)
                node_finish(&j->nodes[i]);
        assert_int_equal(uv_loop_close(&j->loop), 0);
}
