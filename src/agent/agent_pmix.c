/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_pmix.h"

#include <errno.h>
#include <string.h>

#include "agent/agent_private.h"
#include "agent/pmi/pmi_library_file.h"
#include "agent/pmix/pmix_service.h"
#include "base/log.h"

static void forget_order(struct agent_pmix *p)
{
        p->waiting = false;
        launch_order_finish(&p->order);
        strv_finish(&p->base);
}

static void on_service_ready(void *ctx)
{
        struct agent *a = ctx;
        struct agent_pmix *p = &a->attempt.pmix;

        if (!p->waiting)
                return;
        agent_start_processes(a, &p->order, &p->base);
        forget_order(p);
}

static void refuse_attempt(struct agent *a, int error, const char *why)
{
        CLEANUP(free_textp) char *text = xasprintf("cannot serve PMIx: %s", why);

        forget_order(&a->attempt.pmix);
        agent_refuse(a, UINT32_MAX, REFUSED_PMIX, error, text);
        agent_stop(a, 0);
}

/* Ranks would wait for a service that has ended: the first of them aborts the job. */
static void on_service_failed(void *ctx, const char *why)
{
        struct agent *a = ctx;
        struct agent_pmix *p = &a->attempt.pmix;

        if (p->waiting) {
                refuse_attempt(a, ENOENT, why);
        } else {
                log_line(LOG_WARN, "PMIx is not served any more: %s [HN%d]", why, HN_PMIX_ENDED);
                pmix_service_abort(p->service, "the node's PMIx service has ended");
        }
}

void agent_pmix_begin(struct agent *a, struct launch_order *l, struct strv *base)
{
        static const struct pmix_service_ops ops = { on_service_ready, on_service_failed };
        struct agent_pmix *p = &a->attempt.pmix;
        struct pmix_setup setup = { .loop = a->loop,
                                    .relay = store_access_relay(a->store),
                                    .folder = a->dir.path,
                                    .cores = a->attempt.cores };
        struct error err;

        p->order = *l;
        p->base = *base;
        *l = (struct launch_order){ .argv = STRV_INIT };
        *base = (struct strv)STRV_INIT;
        p->waiting = true;
        setup.order = &p->order;
        setup.base = &p->base;
        p->service = pmix_service_start(&setup, ops, a, &err);
        if (!p->service)
                refuse_attempt(a, err.code, err.text);
}

void agent_pmix_cancel(struct agent *a)
{
        if (!a->attempt.pmix.waiting)
                return;
        forget_order(&a->attempt.pmix);
        agent_refuse(a, UINT32_MAX, REFUSED_PMIX, ECANCELED,
                     "the ranks were stopped before PMIx was served");
}

void agent_pmix_end(struct agent *a)
{
        struct agent_pmix *p = &a->attempt.pmix;

        agent_pmix_cancel(a);
        pmix_service_end(p->service);
        p->service = NULL;
}

void agent_pmix_add_env(const struct agent *a, uint32_t rank, struct strv *env)
{
        const struct pmix_service *service = a->attempt.pmix.service;
        const struct strv *vars = service ? pmix_service_env(service, rank) : NULL;

        CLEANUP(free_textp) char *session = xasprintf("%s/pmix/session", a->dir.path);

        if (!vars)
                return;
        strv_env_merge(env, vars);
        open_mpi_place_segments(env, session);
}

enum rank_mpi agent_pmix_state(const struct agent *a, uint32_t rank)
{
        struct pmix_service *service = a->attempt.pmix.service;

        return service ? pmix_service_state(service, rank) : RANK_MPI_UNUSED;
}

bool agent_pmix_is_helper(const struct agent *a, pid_t pid)
{
        const struct pmix_service *service = a->attempt.pmix.service;

        return service && pmix_service_pid(service) == pid;
}
