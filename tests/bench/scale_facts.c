/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node of eight GPUs and two networks answers to `hnlaunch check`, in the parts of
 * agent/check/node_check.c. Sizes that are free differ from node to node, as they do.
 */
#include "bench/scale.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/strv.h"
#include "wire/check_msg.h"
#include "wire/measure_msg.h"

enum { LISTEN_PORT = 40000 };

static const struct {
        const char *name, *value;
} plain_facts[] = {
        { "limit.files", "1048576" },
        { "limit.memlock", "unlimited" },
        { "limit.processes", "4126591" },
        { "cpu.quota", "none" },
        { "memory.quota", "none" },
        { "memory", "2164000000000" },
        { "kernel", "6.8.0-49-generic" },
        { "hugepages", "0" },
        { "thp", "madvise" },
        { "ib.ports", "8 of 8 active, 400 Gb/sec (4X NDR)" },
        { "ib.errors", "0" },
        { "leftovers", "none" },
};

static const struct {
        const char *name, *value;
} gpu_facts[] = {
        { "gpu.processes", "0" },
        { "gpu.remap", "none" },
        { "gpu.fabric", "ready" },
};

enum scale_fault scale_fault_of(uint32_t node)
{
        uint32_t place = node % SCALE_FAULT_PERIOD;

        /* Not of neighbours, and not of node 0. */
        return place % 30 == 7 && place / 30 < SCALE_FAULTS ? place / 30 : SCALE_FAULTS;
}

static void add_size(struct checked *m, const char *name, uint64_t size)
{
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, size);
        checked_add(m, name, text, "");
}

static void send_part(struct buf *to, struct checked *m, bool more)
{
        uint32_t number = m->number;

        m->more = more;
        checked_encode(to, m);
        checked_finish(m);
        *m = (struct checked){ .number = number };
}

static void add_clock(struct checked *m)
{
        struct timespec wall;
        char text[32];

        clock_gettime(CLOCK_REALTIME, &wall);
        snprintf(text, sizeof(text), "%" PRId64,
                 (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - clock_ns());
        checked_add(m, "clock", text, "");
}

static void add_machine(struct checked *m, uint32_t i, enum scale_fault fault)
{
        add_clock(m);
        for (size_t k = 0; k < ARRAY_SIZE(plain_facts); k++)
                checked_add(m, plain_facts[k].name, plain_facts[k].value, "");
        add_size(m, "shm.size", fault == SCALE_SMALL_SHM ? 64 << 20 : UINT64_C(1082000000000));
        add_size(m, "shm.free", UINT64_C(1081000000000) - i * UINT64_C(4096));
        add_size(m, "tmp.free", UINT64_C(900000000000) - i * UINT64_C(1000003));
}

static void add_gpus(struct checked *m, enum scale_fault fault)
{
        static const char no_domain[] = "the GPUs are of no NVLink domain of several nodes";

        checked_add(m, "gpu.driver", fault == SCALE_OLD_DRIVER ? "570.86.15" : "575.57.08", "");
        checked_add(m, "gpu.xid",
                    fault == SCALE_XID ? "79 (fallen off the bus) of GPU 0000:18:00" : "none", "");
        checked_add(m, "gpu.ecc", fault == SCALE_ECC ? "4 (4 of GPU 2)" : "0", "");
        for (size_t k = 0; k < ARRAY_SIZE(gpu_facts); k++)
                checked_add(m, gpu_facts[k].name, gpu_facts[k].value, "");
        checked_add(m, "gpu.imex", "", no_domain);
        checked_add(m, "gpu.imex.daemon", "", no_domain);
}

/* The paths of the order, and the versions that belong to a program. */
static void add_program(struct checked *m, const struct check_order *o)
{
        static const char *const versions[][2] = {
                { "python", "3.11.2" }, { "torch", "2.7.0" },      { "cuda", "12.8" },
                { "nccl", "2.26.2" },   { "nccl.plugin", "none" },
        };

        for (uint32_t i = 0; i < o->n_paths; i++)
                checked_add(m, o->paths[i].name,
                            o->paths[i].kind == CHECK_FOLDER ? "there"
                                                             : "6831736 bytes, 5f0c1d2e3a4b",
                            "");
        for (size_t i = 0; i < ARRAY_SIZE(versions) && o->n_programs; i++)
                checked_add(m, versions[i][0], versions[i][1], "");
}

/* Nodes are named node00007, and have two addresses (scale_agents.c). */
static void add_names(struct checked *m, const struct check_order *o)
{
        char text[32];

        for (uint32_t i = 0; i < o->names.n; i++) {
                uint32_t node = (uint32_t)strtoul(o->names.v[i].host + 4, NULL, 10);

                snprintf(text, sizeof(text), "10.%u.%u.%u", node >> 16, node >> 8 & 255,
                         node & 255);
                checked_add(m, o->names.v[i].fact, text, "");
        }
}

void scale_answer_check(struct buf *to, uint32_t i, const struct check_order *o)
{
        struct checked m = { .number = o->number };
        enum scale_fault fault = scale_fault_of(i);

        add_machine(&m, i, fault);
        send_part(to, &m, true);
        add_gpus(&m, fault);
        send_part(to, &m, true);
        add_program(&m, o);
        send_part(to, &m, true);
        checked_add(&m, "hostname", "a network address", "");
        add_names(&m, o);
        send_part(to, &m, false);
}

/* The number of a node stands in its addresses (scale_agents.c). */
static uint32_t node_at(const char *address)
{
        unsigned part[4];

        return sscanf(address, "%u.%u.%u.%u", &part[0], &part[1], &part[2], &part[3]) == 4
                       ? part[1] << 16 | part[2] << 8 | part[3]
                       : 0;
}

void scale_answer_measure(struct buf *to, const struct measure_order *o)
{
        struct measured m = { .number = o->number,
                              .port = o->listen ? LISTEN_PORT : 0,
                              .n_results = o->n_targets,
                              .results = xcalloc(o->n_targets, sizeof(*m.results)) };

        for (uint32_t k = 0; k < o->n_targets; k++)
                if (scale_fault_of(node_at(o->targets[k].addrs.v[0])) == SCALE_REFUSES)
                        m.results[k].error = ECONNREFUSED;
                else
                        m.results[k].latency_us = 60;
        measured_encode(to, &m);
        measured_finish(&m);
}
