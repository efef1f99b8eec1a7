/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of a world that have all ended here start again, while ranks of other worlds run. The order
 * waits in the world until the processes in the sessions of the ended ranks are gone (TERM, and
 * KILL after LINGER_MS) and the output has been sent. Processes that have left these sessions end
 * with the attempt.
 *
 * The head counts the output of a rank through all processes: bytes of the old process without
 * credit are taken off the window of the new process.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/attempt/node_attempt_private.h"
#include "agent/rank/rank_status.h"
#include "base/memory.h"

/* No signal tells of the end of processes with another parent than the agent. */
enum { AGAIN_LOOK_MS = 20 };

/* --- an order --------------------------------------------------------------------------------- */

/* A world with a living rank is not complete: the head orders a world as a whole. A waiting order
 * is not replaced. */
bool node_attempt_is_again(const struct node_attempt *t, const struct launch_order *l)
{
        const struct rank_world *g = node_attempt_find_world(t, l->world.first);

        if (t->phase != RUNNING || !t->groups.more || !g || g->first != l->world.first ||
            g->size != l->world_size || g->again.order || g->pmix.order)
                return false;
        for (size_t i = 0; i < t->n_workers; i++)
                if (rank_world_has(g, t->workers[i]->rank) && !t->workers[i]->reaped)
                        return false;
        return true;
}

/* Turns the loop, and so leads to node_attempt_start_again(). */
static void on_again_look(uv_timer_t *timer UNUSED)
{
}

void node_attempt_keep_order(struct node_attempt *t, struct launch_order *l)
{
        struct rank_world *g = node_attempt_find_world(t, l->world.first);

        g->again.order = xcalloc(1, sizeof(*g->again.order));
        *g->again.order = *l;
        /* The order has moved: the caller's copy must not free the memory. */
        *l = (struct launch_order){ .world_size = 0 };
        g->again.since_ns = 0;
        t->groups.more = g->again.order->more_orders;
}

static void drop_kept_order(struct rank_world *g)
{
        launch_order_finish(g->again.order);
        free(g->again.order);
        g->again.order = NULL;
}

/* The head counts each ordered rank until its end. */
void node_attempt_cancel_again(struct node_attempt *t)
{
        for (size_t i = 0; i < t->groups.n; i++) {
                struct rank_world *g = t->groups.v[i];

                for (uint32_t k = 0; g->again.order && k < g->again.order->n_ranks; k++)
                        exited_encode(
                                &t->deps.up->out,
                                &(struct exited){ .rank = g->first + g->again.order->ranks[k].rank,
                                                  .status = SIGTERM,
                                                  .mono_ns = uv_hrtime(),
                                                  .stopped = true });
                if (g->again.order)
                        drop_kept_order(g);
        }
}

/* --- leftovers of the ranks ----------------------------------------------------------------- */

/* Signals the processes of the session of an ended rank. False: none is left. */
static bool signal_session(const struct rank_status_scan *scan, pid_t session, int signo)
{
        size_t n;
        const struct proc_stat *p = rank_status_session(scan, session, &n);
        bool any = false;

        for (size_t i = 0; p && i < n; i++)
                if (p[i].pid == session)
                        return false; /* the number belongs to another process by now */
        for (size_t i = 0; p && i < n; i++) {
                if (p[i].state == 'Z' || p[i].state == 'X')
                        continue;
                any = true;
                if (signo)
                        kill(p[i].pid, signo);
        }
        return any;
}

static bool any_process_left(struct node_attempt *t, struct rank_world *g)
{
        bool first = !g->again.since_ns;
        struct rank_status_scan scan = { 0 };
        bool any = false;
        int signo;

        if (first)
                g->again.since_ns = uv_hrtime();
        /* TERM once, nothing while the leftovers have time, then KILL at each look. */
        signo = first                                                      ? SIGTERM
                : (uv_hrtime() - g->again.since_ns) / 1000000 >= LINGER_MS ? SIGKILL
                                                                           : 0;
        rank_status_scan(&scan);
        for (size_t i = 0; i < t->n_workers; i++)
                if (rank_world_has(g, t->workers[i]->rank))
                        any |= signal_session(&scan, t->workers[i]->pid, signo);
        rank_status_scan_finish(&scan);
        return any;
}

/* Reads the outputs to their end. False: some wait for the head. */
static bool drain_outputs(struct node_attempt *t, const struct rank_world *g)
{
        bool ended = true;

        for (size_t i = 0; i < t->n_workers; i++) {
                struct worker *w = t->workers[i];

                if (!rank_world_has(g, w->rank))
                        continue;
                worker_each_output(w, stream_drain);
                ended = ended && !w->out[0] && !w->out[1];
        }
        return ended;
}

/* A file of the process before would be taken for a file of the next. */
static void remove_error_file(const struct node_attempt *t, uint32_t rank)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/error-%u.json", t->deps.dir->path, rank);

        unlink(path);
}

/* Takes the ended ranks out of the attempt, but for the bytes not credited. */
static void drop_ended_ranks(struct node_attempt *t, struct rank_world *g)
{
        size_t n = 0;

        for (size_t i = 0; i < t->n_workers; i++) {
                struct worker *w = t->workers[i];

                if (!rank_world_has(g, w->rank)) {
                        t->workers[n++] = w;
                        continue;
                }
                rank_world_owe(g, w->rank, w->unwritten);
                remove_error_file(t, w->rank);
                worker_destroy(w);
        }
        t->n_workers = n;
}

/* --- the start -------------------------------------------------------------------------------- */

/* node_attempt_begin_order() puts a new world in the place of the old. */
static void start_world_again(struct node_attempt *t, struct rank_world *g)
{
        struct launch_order l = *g->again.order;
        struct store_access *store = g->store;

        free(g->again.order);
        g->again.order = NULL;
        drop_ended_ranks(t, g);
        node_attempt_begin_order(t, &l, store);
        launch_order_finish(&l);
}

void node_attempt_start_again(struct node_attempt *t)
{
        for (size_t i = 0; i < t->groups.n && t->phase == RUNNING; i++) {
                struct rank_world *g = t->groups.v[i];

                /* The timer serves all worlds, so a world may wait up to AGAIN_LOOK_MS longer. */
                if (!g->again.order || uv_is_active((uv_handle_t *)&t->timers.again))
                        continue;
                if (any_process_left(t, g))
                        uv_timer_start(&t->timers.again, on_again_look, AGAIN_LOOK_MS, 0);
                else if (drain_outputs(t, g))
                        start_world_again(t, g);
        }
        if (t->phase >= TERMINATING)
                node_attempt_cancel_again(t);
}
