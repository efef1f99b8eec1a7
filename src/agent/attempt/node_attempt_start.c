/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LAUNCH forks all ranks first and waits for START_MS in all until their programs are executed;
 * programs on slow file systems are looked at by a timer later. A rank that cannot be executed
 * stops the others. With PMIx, begin_pmix_wait() stands between node_attempt_start() and
 * start_processes() and waits for the helper.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/node_attempt_private.h"
#include "agent/contain/guard.h"
#include "agent/core/proc.h"
#include "agent/endpoint/port.h"
#include "agent/endpoint/store_access.h"
#include "agent/files/push_receiver.h"
#include "agent/pmi/pmi_library_file.h"
#include "agent/pmi/pmi_link.h"
#include "agent/pmix/pmix_service.h"
#include "agent/rank/base_env.h"
#include "agent/rank/limits.h"
#include "agent/ready/ready_probes.h"
#include "base/error_number.h"
#include "base/exec_failure.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/env/nccl_env.h"
#include "wire/env/subst.h"
#include "wire/env/worker_env.h"
#include "wire/env_names.h"

enum {
        START_MS = 50, /* for programs to be executed before the loop goes on */
        /* ... and between looks then: each pause is longer than the one before, since a look reads
         * for each rank. */
        START_LOOK_MS = 20,
        START_LONGER_MS = 5,
        START_LOOK_MOST_MS = 200,
        STOPPED_LOOKS = 10, /* from one look for stopped processes to the next */
};

extern char **environ;

/* --- programs that are executed, or not ------------------------------------------------------- */

/* Reports that an order, or a rank of the order, cannot be carried out. The head waits for GONE
 * after every order: GONE follows a refused order unless ranks run. */
static void refuse_launch(struct node_attempt *t, uint32_t rank, enum refusal why, int error,
                          const char *text)
{
        struct refused m = { .rank = rank, .why = why, .error = (uint32_t)error };

        memcpy(m.text, text, strnlen(text, sizeof(m.text) - 1));
        refused_encode(&t->deps.up->out, &m);
        if (why == REFUSED_ORDER && t->phase == IDLE)
                empty_encode(&t->deps.up->out, MSG_GONE);
}

void node_attempt_refuse_order(struct node_attempt *t, const struct launch_order *l,
                               const char *text)
{
        if (t->refused)
                t->groups.more &= l->more_orders;
        refuse_launch(t, UINT32_MAX, REFUSED_ORDER, 0, text);
}

/* Reports to -v that PATH leads to a link without a target first. */
static void note_skipped(const struct worker *w)
{
        CLEANUP(free_textp)
        char *skipped = w->path ? exec_failure_find_skipped(w->program, w->cwd, w->path) : NULL;

        if (skipped)
                log_line(LOG_INFO, "%s", skipped);
}

void node_attempt_confirm_starts(struct node_attempt *t, uint64_t ms)
{
        static const enum refusal why[] = {
                [SPAWN_FORK] = REFUSED_FORK, [SPAWN_CWD] = REFUSED_CWD, [SPAWN_EXEC] = REFUSED_EXEC
        };
        uint64_t end = uv_hrtime() / 1000000 + ms, now;
        enum spawn_step step;
        struct error err;
        size_t n = 0;

        for (size_t i = 0; i < t->n_workers; i++) {
                struct worker *w = t->workers[i];
                int r = 0;

                now = uv_hrtime() / 1000000;
                if (!w->started)
                        r = worker_confirm(w, now < end ? (int)(end - now) : 0, &step, &err);
                if (r >= 0)
                        t->workers[n++] = w;
                if (r == 0)
                        continue;
                t->n_starting--;
                if (r > 0) {
                        if (i == 0)
                                /* All ranks search the same PATH: one note is enough. */
                                note_skipped(w);
                        started_encode(
                                &t->deps.up->out,
                                &(struct started){ .rank = w->rank, .pid = (uint32_t)w->pid });
                        ready_probes_start(node_attempt_find_world(t, w->rank)->ready, w->rank);
                        continue;
                }
                t->n_alive--;
                /* Only the first refusal is sent: most often all ranks have the same reason. */
                if (!t->refused)
                        refuse_launch(t, w->rank, why[step], err.code, err.text);
                t->refused = true;
                worker_destroy(w);
        }
        t->n_workers = n;
        for (size_t i = 0; i < t->groups.n; i++)
                order_binding_check(t->groups.v[i]->binding);
        if (t->n_starting)
                return;
        uv_timer_stop(&t->timers.starting);
        /* The order needs all of its ranks. */
        if (t->refused && t->phase != KILLING)
                node_attempt_kill(t);
}

/* Continues a process that was stopped after becoming the rank's process but before running the
 * program: nothing else would. */
static void continue_starts(const struct node_attempt *t)
{
        struct proc_stat p;

        for (size_t i = 0; i < t->n_workers; i++) {
                const struct worker *w = t->workers[i];

                if (w->started || w->reaped || !proc_read_stat(&p, w->pid) || p.state != 'T')
                        continue;
                log_line(LOG_INFO, "rank %u was stopped before its program ran, and goes on",
                         w->rank);
                kill(w->pid, SIGCONT);
        }
}

/* Looks again after a pause. A confirmed start of the last rank ends the looks. */
static void on_starting(uv_timer_t *timer)
{
        struct node_attempt *t = timer->data;
        unsigned looks = ++t->timers.start_looks;

        uv_timer_start(timer, on_starting,
                       MIN(START_LOOK_MS + looks * START_LONGER_MS, START_LOOK_MOST_MS), 0);
        if (looks % STOPPED_LOOKS == 0)
                continue_starts(t);
        node_attempt_confirm_starts(t, 0);
}

/* --- starting --------------------------------------------------------------------------------- */

/* Facts and files that all ranks of an order share. */
struct common_start {
        struct strv env;          /* without the rank's own variables */
        unsigned older_names;     /* of nccl_env_build_all() */
        struct torch_note *torch; /* NULL = nothing to be found out by one rank for others */
        int null;                 /* /dev/null, opened once for the standard input of all */
        struct near_nics nics;
};

/* The port of NCCL's RAS is free when the ranks start: with the default, two jobs of a node would
 * share a port. */
static const char *pick_ras_addr(char *to, size_t size)
{
        struct sockaddr_in addr = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = port_bind((struct sockaddr *)&addr, sizeof(addr), 0);

        snprintf(to, size, "127.0.0.1:%u", ntohs(addr.sin_port));
        if (fd < 0)
                return NULL;
        fd_close(fd);
        return to;
}

static void add_pmix_env(const struct rank_world *w, uint32_t rank, struct strv *env)
{
        const struct pmix_service *service = w->pmix.service;
        const struct strv *vars = service ? pmix_service_env(service, rank) : NULL;

        CLEANUP(free_textp) char *session = xasprintf("%s/pmix/session", w->folder);

        if (!vars)
                return;
        strv_env_merge(env, vars);
        open_mpi_place_segments(env, session);
}

static void on_ready(void *ctx, uint32_t rank)
{
        struct rank_world *g = ctx;

        number_encode(&g->attempt->deps.up->out, MSG_RANK_READY, rank);
}

/* Registers the probe that finds out when the rank is ready. */
static int prepare_ready(struct rank_world *g, const struct launch_rank *r,
                         const struct launch_ready *how, const struct worker_setup *s,
                         struct error *err)
{
        if (how->kind == READY_START || (how->is_first_only && r->rank))
                return 0;
        if (!g->ready)
                g->ready = ready_probes_create(g->attempt->deps.loop,
                                               g->attempt->contain.level == CONTAIN_PIDNS, on_ready,
                                               g);
        /* The environment must be complete: the port to be asked may come from there. */
        return ready_probes_add(g->ready, s->rank, how, s->env, s->cwd, err);
}

/* A bound rank has threads for its processors, unless the user has said how many. */
static void set_threads(const struct rank_world *g, const struct launch_order *l,
                        const struct launch_rank *r, struct strv *env)
{
        struct bind_note *unused;
        const struct binding *b = order_binding_get(g->binding, (uint32_t)(r - l->ranks), &unused);

        if (b && !strv_env_get(env, "OMP_NUM_THREADS"))
                strv_env_set_number(env, "OMP_NUM_THREADS", b->threads);
}

/* Leads the rank to the files that were brought to this node. Without copies the environment is
 * used where the head has it. */
static void set_file_variables(const struct node_attempt *t, struct strv *env)
{
        const char *pushed = push_receiver_dir(t->deps.push, PUSH_RANKS);
        const char *staged = push_receiver_dir(t->deps.push, PUSH_STAGE);
        const char *venv = push_receiver_dir(t->deps.push, PUSH_VENV);

        if (pushed)
                strv_env_set(env, HN_PUSH_DIR, pushed);
        if (staged)
                strv_env_set(env, HN_STAGE_DIR, staged);
        if (venv)
                strv_env_set(env, HN_VENV, venv);
        base_env_use_venv(env);
}

/* Forks the process of a rank of @g; node_attempt_confirm_starts() finds out whether the program
 * could be executed. */
static int start_rank(struct rank_world *g, const struct launch_order *l,
                      const struct launch_rank *r, const struct common_start *common)
{
        struct node_attempt *t = g->attempt;
        uint32_t rank = g->first + r->rank; /* in the job */
        CLEANUP(strv_finish) struct strv env = STRV_INIT, argv = STRV_INIT;
        const struct launch_program *program = &l->programs[r->program];
        char *error_file = xasprintf("%s/error-%u.json", t->deps.dir->path, rank);
        struct worker_setup setup = {
                .loop = t->deps.loop,
                .up = t->deps.up,
                .order = l,
                .rank = rank,
                .argv = &argv,
                .env = &env,
                .cwd = *program->cwd ? program->cwd : t->cwd,
                .contain = &t->contain,
                .trace = t->deps.trace,
                .older_names = common->older_names,
                .torch = common->torch,
                .null = common->null,
                .warm = t->warm,
        };
        const struct owed_output *owed = rank_world_owed(g, rank);
        CLEANUP(fd_closep) int pmi = -1;
        struct error err;
        struct worker *w;
        int ret;

        if (owed)
                memcpy(setup.unwritten, owed->bytes, sizeof(setup.unwritten));

        subst_arguments(&argv, l, r);
        strv_copy(&env, &common->env);
        subst_variables(&env, l, r);
        set_threads(g, l, r, &env);
        near_nics_add_env(&common->nics, (uint32_t)(r - l->ranks), &env);
        worker_env_build(&env, l, r, g->socket, error_file, t->node.cores);
        ret = g->pmi ? pmi_link_open(g->pmi, r->rank, &env, &pmi) : 0;
        if (ret < 0) {
                err_set(&err, -ret, "cannot open a connection for MPI: %s", strerror(-ret));
                refuse_launch(t, rank, REFUSED_FORK, err.code, err.text);
                free(error_file);
                return ret;
        }
        setup.binding = order_binding_get(g->binding, (uint32_t)(r - l->ranks), &setup.bind_note);
        /* 0 = no descriptor is passed on. */
        setup.pass = MAX(pmi, 0);
        if (l->mpi.kind == MPI_PMI1)
                pmi_library_add_env(&env, t->deps.dir->path, l);
        add_pmix_env(g, r->rank, &env);
        set_file_variables(t, &env);
        if (launch_order_terminal(l, rank) && *l->terminal.term)
                strv_env_set(&env, "TERM", l->terminal.term);
        ret = prepare_ready(g, r, &program->ready, &setup, &err);
        w = ret == 0 ? worker_start(&setup, &err) : NULL;
        free(error_file);
        if (!w) {
                refuse_launch(t, rank, ret ? REFUSED_ORDER : REFUSED_FORK, err.code, err.text);
                return -err.code;
        }
        t->workers[t->n_workers++] = w;
        t->n_alive++;
        t->n_starting++;
        return 0;
}

/* Makes the world of the order. NULL with @err. */
static struct rank_world *open_world(struct node_attempt *t, const struct launch_order *l,
                                     struct store_access *store, struct error *err)
{
        struct rank_world *g =
                rank_world_create(t, store, t->deps.dir->path, t->deps.dir->store, l, err);

        /* With PMIx the service comes later: begin_pmix_wait(). */
        if (!g || l->mpi.kind == MPI_NONE || l->mpi.kind == MPI_PMIX)
                return g;
        if (l->mpi.kind == MPI_PMI1)
                pmi_library_write(t->deps.dir->path);
        g->pmi = pmi_link_create(t->deps.loop, store_access_relay(store), l, err);
        if (g->pmi)
                return g;
        rank_world_destroy(g);
        return NULL;
}

/* Replaces a world with ended ranks by a new one. */
static int renew_world(struct node_attempt *t, const struct launch_order *l,
                       struct rank_world **place, struct error *err)
{
        struct rank_world *old = *place, *g;

        /* The old helper of PMIx ends before the next begins. */
        struct rank_again kept = { .owed = STEAL(&old->again.owed),
                                   .n_owed = old->again.n_owed,
                                   .before = true };
        struct store_access *store = old->store;

        order_binding_release(old->binding, t->node.binding);
        rank_world_destroy(old);
        g = open_world(t, l, store, err);
        *place = g;
        if (g)
                g->again = kept;
        else
                free(kept.owed);
        return g ? 0 : -err->code;
}

/* Returns 0 with the world in @ret, or -errno with @err. The first world of an attempt opens the
 * containment, which is closed again if the world cannot be made. */
static int add_world(struct node_attempt *t, const struct launch_order *l,
                     struct store_access *store, struct rank_world **ret, struct error *err)
{
        struct rank_world *g;

        for (size_t i = 0; i < t->groups.n; i++)
                if (rank_world_has(t->groups.v[i], l->world.first)) {
                        int r = renew_world(t, l, &t->groups.v[i], err);

                        *ret = t->groups.v[i];
                        if (!*ret)
                                /* The old world is gone and has no successor: the last world takes
                                 * the place. */
                                t->groups.v[i] = t->groups.v[--t->groups.n];
                        return r;
                }
        if (t->phase == IDLE && contain_open(&t->contain, l->contain, t->deps.dir->store, err) < 0)
                return -err->code;
        g = open_world(t, l, store, err);
        if (!g) {
                if (t->phase == IDLE)
                        contain_close(&t->contain);
                return -err->code;
        }
        t->groups.v = xrealloc(t->groups.v, t->groups.n + 1, sizeof(struct rank_world *));
        t->groups.v[t->groups.n++] = *ret = g;
        return 0;
}

/* Whether all ranks execute one program; the first word of --wrap may have a place-holder. */
static bool is_program_shared(const struct launch_order *l)
{
        const struct strv *wrap = &l->programs[0].arguments.wrap;

        return l->n_programs == 1 && (!wrap->n || !subst_has_any(wrap->v[0]));
}

/* Forks the ranks of @l, and waits for START_MS at most. A failed fork ends the loop; the other
 * ranks are killed in node_attempt_confirm_starts(). */
static void start_processes(struct rank_world *g, const struct launch_order *l,
                            const struct strv *base)
{
        struct node_attempt *t = g->attempt;
        size_t first = t->n_workers;
        char ras_addr[32];
        const struct nccl_values nccl = { pick_ras_addr(ras_addr, sizeof(ras_addr)),
                                          t->deps.dir->dumps, t->deps.dir->pipes };
        struct bind_query bind;
        struct common_start common = { .null = open("/dev/null", O_RDWR | O_CLOEXEC) };

        strv_copy(&common.env, base);
        common.older_names = nccl_env_build_all(&common.env, l, &nccl);
        /* The environment must be complete by now: OMP_NUM_THREADS and variables of ROCm count. */
        bind = order_binding_ask(l, &common.env);
        g->binding = order_binding_create(&bind, t->node.binding, true);
        near_nics_find(&common.nics, &bind, &t->node.binding->gpus, "/sys");
        near_nics_tell(&common.nics, &bind, &t->node.binding->warned_of_nics);
        free(bind.ranks);
        free(bind.others);
        /* The first rank finds out PyTorch's version, and the others read the result. Prepared
         * interpreters know it. */
        if (common.older_names && l->n_ranks > 1 && is_program_shared(l) && !warm_is_ready(t->warm))
                common.torch = torch_note_map();
        if (!first)
                warm_begin_attempt(t->warm);
        for (uint32_t i = 0; i < l->n_ranks && !t->refused; i++) {
                t->refused = start_rank(g, l, &l->ranks[i], &common) < 0;
                if (i == 0 && !t->refused)
                        torch_note_wait(common.torch, START_MS);
        }
        torch_note_unmap(common.torch);
        fd_close(common.null);
        strv_finish(&common.env);
        near_nics_finish(&common.nics);
        node_attempt_confirm_starts(t, START_MS);
        t->ops.started(t->ops.ctx);
        /* The first rank stands for all: each loads the same libraries. */
        if (!first && t->n_workers && !g->again.before &&
            (t->node.has_gpus || (l->mpi.kind != MPI_NONE && l->world_size > 1)))
                library_watch_start(t->libraries, t->workers[0]->pid, t->workers[0]->rank);
        for (size_t i = first; i < t->n_workers && l->mpi.kind != MPI_NONE && l->world_size > 1;
             i++)
                world_watch_add(t->worlds, t->workers[i]->pid, t->workers[i]->rank);
        if (!t->n_starting)
                return;
        log_line(LOG_INFO, "waiting for '%s' to be executed", l->programs[0].argv.v[0]);
        t->timers.start_looks = 0;
        uv_timer_start(&t->timers.starting, on_starting, START_LOOK_MS, 0);
}

/* --- waiting for PMIx ------------------------------------------------------------------------- */

static void forget_waiting_order(struct pmix_wait *p)
{
        launch_order_finish(p->order);
        free(p->order);
        p->order = NULL;
        strv_finish(&p->base);
}

static void on_pmix_ready(void *ctx)
{
        struct rank_world *g = ctx;
        struct pmix_wait *p = &g->pmix;

        /* Cancelled meanwhile by an order to stop. */
        if (!p->order)
                return;
        start_processes(g, p->order, &p->base);
        forget_waiting_order(p);
}

static void refuse_for_pmix(struct rank_world *g, int error, const char *why)
{
        struct node_attempt *t = g->attempt;
        CLEANUP(free_textp) char *text = xasprintf("cannot serve PMIx: %s", why);
        bool more = t->groups.more; /* no STOP of the head has come yet */

        forget_waiting_order(&g->pmix);
        refuse_launch(t, UINT32_MAX, REFUSED_PMIX, error, text);
        t->refused = true;
        node_attempt_stop(t, 0);
        t->groups.more = more;
}

/* Ranks would wait for a service that has ended: an abort in the name of the first rank ends the
 * job. */
static void on_pmix_failed(void *ctx, const char *why)
{
        struct rank_world *g = ctx;
        struct pmix_wait *p = &g->pmix;

        if (p->order) {
                refuse_for_pmix(g, ENOENT, why);
        } else {
                log_warning(HN_PMIX_ENDED, "PMIx is not served any more: %s", why);
                pmix_service_abort(p->service, "the node's PMIx service has ended");
        }
}

/* Takes over @l and @base and starts the service. Then the ranks are started, or refused. */
static void begin_pmix_wait(struct rank_world *g, struct launch_order *l, struct strv *base)
{
        static const struct pmix_service_ops ops = { on_pmix_ready, on_pmix_failed };
        struct pmix_wait *p = &g->pmix;
        struct pmix_setup setup = { .loop = g->attempt->deps.loop,
                                    .relay = store_access_relay(g->store),
                                    .folder = g->folder,
                                    .cores = g->attempt->node.cores };
        struct error err;

        p->order = xcalloc(1, sizeof(*p->order));
        *p->order = *l;
        p->base = *base;
        *l = (struct launch_order){ .world_size = 0 };
        *base = (struct strv)STRV_INIT;
        setup.order = p->order;
        setup.base = &p->base;
        p->service = pmix_service_start(&setup, ops, g, &err);
        if (!p->service)
                refuse_for_pmix(g, err.code, err.text);
}

bool node_attempt_has_order(const struct node_attempt *t)
{
        for (size_t i = 0; i < t->groups.n; i++)
                if (t->groups.v[i]->pmix.order || t->groups.v[i]->again.order)
                        return true;
        return false;
}

void node_attempt_cancel_orders(struct node_attempt *t)
{
        /* The head counts on an answer for each order. */
        node_attempt_cancel_again(t);
        for (size_t i = 0; i < t->groups.n; i++) {
                if (!t->groups.v[i]->pmix.order)
                        continue;
                forget_waiting_order(&t->groups.v[i]->pmix);
                refuse_launch(t, UINT32_MAX, REFUSED_PMIX, ECANCELED,
                              "the ranks were stopped before PMIx was served");
        }
}

void node_attempt_drop_worlds(struct node_attempt *t)
{
        node_attempt_cancel_orders(t);
        for (size_t i = 0; i < t->groups.n; i++)
                rank_world_destroy(t->groups.v[i]);
        free(t->groups.v);
        t->groups.v = NULL;
        t->groups.n = 0;
}

/* --- an order --------------------------------------------------------------------------------- */

/* Begins the parts of an attempt that its first order brings. */
static void begin_first_order(struct node_attempt *t, const struct launch_order *l)
{
        char limits[160];

        limits_describe(limits, sizeof(limits));
        log_line(LOG_INFO, "processes are contained by: %s%s%s",
                 contain_level_name(t->contain.level),
                 *limits ? "; soft limits of ranks are raised to the hard ones: " : "", limits);
        if (t->deps.notes && t->contain.cgroup.path)
                snprintf(t->deps.notes->cgroup, sizeof(t->deps.notes->cgroup), "%s",
                         t->contain.cgroup.path);
        /* Kills counted from here on are kills of this attempt. */
        oom_read(&t->oom, t->contain.cgroup.path);
        dump_sender_begin(t->dumps, l->keep_dumps);
        node_attempt_forget_ended(t);
        t->stop.grace_ms = l->grace_ms;
        free(t->node.binding->taken);
        t->node.binding->taken = NULL;
        t->refused = false;
}

void node_attempt_start(struct node_attempt *t, struct launch_order *l, struct store_access *store)
{
        if (node_attempt_is_again(t, l))
                node_attempt_keep_order(t, l);
        else
                node_attempt_begin_order(t, l, store);
}

void node_attempt_begin_order(struct node_attempt *t, struct launch_order *l,
                              struct store_access *store)
{
        CLEANUP(strv_finish) struct strv base = STRV_INIT;
        struct rank_world *g = NULL;
        struct error err;

        if (add_world(t, l, store, &g, &err) < 0) {
                refuse_launch(t, UINT32_MAX, REFUSED_ORDER, err.code, err.text);
                return;
        }
        if (t->phase == IDLE)
                begin_first_order(t, l);
        t->phase = RUNNING;
        t->groups.more = l->more_orders;
        free(t->cwd);
        /* A container may lack the folder: ranks then start in the agent's own. */
        t->cwd = xstrdup(l->cwd_optional && access(l->cwd, X_OK) < 0 ? "" : l->cwd);
        base_env_build(&base, environ, l);
        /* Space for all ranks is made here, so start_rank() appends without a check. */
        t->workers = xrealloc(t->workers, t->n_workers + l->n_ranks, sizeof(struct worker *));
        if (l->mpi.kind == MPI_PMIX)
                begin_pmix_wait(g, l, &base);
        else
                start_processes(g, l, &base);
}
