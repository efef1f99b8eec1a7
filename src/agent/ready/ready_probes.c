/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ready/ready_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ready/rank_probe.h"
#include "base/memory.h"
#include "wire/port_name.h"

struct probed_rank {
        uint32_t rank;
        struct rank_probe_order order; /* owns the path */
        struct rank_probe *probe;      /* NULL = not started, or ready */
};

/* @ready and @ctx are called for each rank that becomes ready; @alone is passed on to each
 * probe. */
struct ready_probes {
        uv_loop_t *loop;
        bool alone;
        void (*ready)(void *ctx, uint32_t rank);
        void *ctx;
        struct probed_rank *v;
        size_t n;
};

struct ready_probes *ready_probes_create(uv_loop_t *loop, bool alone,
                                         void (*ready)(void *ctx, uint32_t rank), void *ctx)
{
        struct ready_probes *p = xcalloc(1, sizeof(*p));

        *p = (struct ready_probes){ .loop = loop, .alone = alone, .ready = ready, .ctx = ctx };
        return p;
}

void ready_probes_destroy(struct ready_probes *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < p->n; i++) {
                rank_probe_end(p->v[i].probe);
                free((char *)p->v[i].order.path);
        }
        free(p->v);
        free(p);
}

/* Returns the number of a port; 0 = there is none. */
static uint16_t find_probe_port(const char *port, const struct strv *env)
{
        const char *text = port;
        unsigned long number;
        char *end;

        /* A name stands for a port of the rank, whose number is in the environment. */
        if (port_name_is_valid(port, strlen(port))) {
                CLEANUP(free_textp) char *variable = port_name_variable(port);

                text = strv_env_get(env, variable);
        }
        if (!text || *text < '0' || *text > '9')
                return 0;
        number = strtoul(text, &end, 10);
        return !*end && number <= UINT16_MAX ? (uint16_t)number : 0;
}

int ready_probes_add(struct ready_probes *p, uint32_t rank, const struct launch_ready *how,
                     const struct strv *env, const char *cwd, struct error *err)
{
        struct probed_rank r = { .rank = rank, .order = { .kind = how->kind, .alone = p->alone } };
        bool relative = how->kind == READY_FILE && *how->path != '/' && *cwd;

        if (how->kind != READY_FILE)
                r.order.port = find_probe_port(how->port, env);
        if (how->kind != READY_FILE && !r.order.port)
                return err_set(err, EINVAL,
                               "--ready asks the port `%s`, and this rank has no port of this name",
                               how->port);
        r.order.path = relative ? xasprintf("%s/%s", cwd, how->path) : xstrdup(how->path);
        p->v = xrealloc(p->v, p->n + 1, sizeof(*p->v));
        p->v[p->n++] = r;
        return 0;
}

static struct probed_rank *find_probed_rank(struct ready_probes *p, uint32_t rank)
{
        for (size_t i = 0; p && i < p->n; i++)
                if (p->v[i].rank == rank)
                        return &p->v[i];
        return NULL;
}

/* The probe frees itself after this call. */
static void on_rank_ready(void *ctx, uint32_t rank)
{
        struct ready_probes *p = ctx;

        find_probed_rank(p, rank)->probe = NULL;
        p->ready(p->ctx, rank);
}

void ready_probes_start(struct ready_probes *p, uint32_t rank)
{
        struct probed_rank *r = find_probed_rank(p, rank);

        if (r && !r->probe)
                r->probe = rank_probe_start(p->loop, &r->order, on_rank_ready, p, rank);
}

void ready_probes_end(struct ready_probes *p, uint32_t rank)
{
        struct probed_rank *r = find_probed_rank(p, rank);

        if (!r)
                return;
        rank_probe_end(r->probe);
        r->probe = NULL;
}
