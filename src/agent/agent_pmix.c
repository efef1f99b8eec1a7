/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_pmix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_attempt_private.h"
#include "agent/agent_store.h"
#include "agent/pmi/pmi_library_file.h"
#include "agent/pmix/pmix_service.h"
#include "base/log.h"
#include "base/memory.h"

static void forget_order(struct pmix_wait *p)
{
        launch_order_finish(p->order);
        free(p->order);
        p->order = NULL;
        strv_finish(&p->base);
}

static void on_service_ready(void *ctx)
{
        struct node_attempt *t = ctx;
        struct pmix_wait *p = &t->pmix;

        if (!p->order)
                return;
        node_attempt_start_processes(t, p->order, &p->base);
        forget_order(p);
}

static void refuse_attempt(struct node_attempt *t, int error, const char *why)
{
        CLEANUP(free_textp) char *text = xasprintf("cannot serve PMIx: %s", why);

        forget_order(&t->pmix);
        node_attempt_refuse(t, UINT32_MAX, REFUSED_PMIX, error, text);
        node_attempt_stop(t, 0);
}

/* Ranks would wait for a service that has ended: the first of them aborts the job. */
static void on_service_failed(void *ctx, const char *why)
{
        struct node_attempt *t = ctx;
        struct pmix_wait *p = &t->pmix;

        if (p->order) {
                refuse_attempt(t, ENOENT, why);
        } else {
                log_line(LOG_WARN, "PMIx is not served any more: %s [HN%d]", why, HN_PMIX_ENDED);
                pmix_service_abort(p->service, "the node's PMIx service has ended");
        }
}

void pmix_wait_begin(struct node_attempt *t, struct launch_order *l, struct strv *base)
{
        static const struct pmix_service_ops ops = { on_service_ready, on_service_failed };
        struct pmix_wait *p = &t->pmix;
        struct pmix_setup setup = { .loop = t->deps.loop,
                                    .relay = store_access_relay(t->deps.store),
                                    .folder = t->deps.dir->path,
                                    .cores = t->cores };
        struct error err;

        p->order = xcalloc(1, sizeof(*p->order));
        *p->order = *l;
        p->base = *base;
        *l = (struct launch_order){ .argv = STRV_INIT };
        *base = (struct strv)STRV_INIT;
        setup.order = p->order;
        setup.base = &p->base;
        p->service = pmix_service_start(&setup, ops, t, &err);
        if (!p->service)
                refuse_attempt(t, err.code, err.text);
}

void pmix_wait_cancel(struct node_attempt *t)
{
        if (!t->pmix.order)
                return;
        forget_order(&t->pmix);
        node_attempt_refuse(t, UINT32_MAX, REFUSED_PMIX, ECANCELED,
                            "the ranks were stopped before PMIx was served");
}

void pmix_wait_end(struct node_attempt *t)
{
        struct pmix_wait *p = &t->pmix;

        pmix_wait_cancel(t);
        pmix_service_end(p->service);
        p->service = NULL;
}

void pmix_wait_add_env(const struct node_attempt *t, uint32_t rank, struct strv *env)
{
        const struct pmix_service *service = t->pmix.service;
        const struct strv *vars = service ? pmix_service_env(service, rank) : NULL;

        CLEANUP(free_textp) char *session = xasprintf("%s/pmix/session", t->deps.dir->path);

        if (!vars)
                return;
        strv_env_merge(env, vars);
        open_mpi_place_segments(env, session);
}

enum rank_mpi pmix_wait_state(const struct node_attempt *t, uint32_t rank)
{
        struct pmix_service *service = t->pmix.service;

        return service ? pmix_service_state(service, rank) : RANK_MPI_UNUSED;
}

bool pmix_wait_is_helper(const struct node_attempt *t, pid_t pid)
{
        const struct pmix_service *service = t->pmix.service;

        return service && pmix_service_pid(service) == pid;
}
