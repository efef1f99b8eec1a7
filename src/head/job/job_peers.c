/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First all nodes try whom they reach, then, with @measure, bandwidth and latency are measured in
 * rounds, and last the silent peers are tried again. The measure exists from the first port to the
 * end of the last try (head/job/job_measure.h); job_peers_find() ends the measure in any case.
 *
 * The list of tries takes the pairs of the ring, and the unconnected pairs of the rounds: both are
 * judged alike (head/check/peer_judge.h).
 */
#include "head/job/job_peers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/check/baseline.h"
#include "head/check/pair_judge.h"
#include "head/job/job_measure.h"

enum { PEER_MS = 1800 }; /* for a peer to answer: the kernel tries once more after 1 s */

/* Returns the nodes that take part, malloc'ed. */
static size_t *list_ready(const struct job *j, size_t n_nodes, size_t *ret_n)
{
        size_t *v = xcalloc(n_nodes, sizeof(*v));

        *ret_n = 0;
        for (size_t i = 0; i < n_nodes; i++)
                if (job_node(j, i)->state == NODE_READY)
                        v[(*ret_n)++] = i;
        return v;
}

/* Tries once more where no answer came: on a busy machine one may be late. */
static enum job_step try_silent_again(struct job *j, struct job_measure *m, struct job_peers *to)
{
        struct check_pair *again = xcalloc(to->n_tries, sizeof(*again));
        enum job_step r = JOB_DONE;
        size_t n = 0;

        for (size_t i = 0; i < to->n_tries; i++)
                if (to->tries[i].told && to->tries[i].result.error == ETIMEDOUT)
                        again[n++] = to->tries[i];
        if (n)
                r = job_measure_pairs(j, m, again, n, PEER_MS, false);
        n = 0;
        for (size_t i = 0; i < to->n_tries; i++)
                if (to->tries[i].told && to->tries[i].result.error == ETIMEDOUT && again[n++].told)
                        to->tries[i] = again[n - 1];
        free(again);
        return r;
}

/* Notes which nodes do not listen, then tries the ring of the others. The time is the seed of the
 * ring: repeated checks test other pairs. */
static enum job_step find_reachable(struct job *j, struct job_measure *m, struct job_peers *to)
{
        for (size_t i = 0; i < to->n_tested; i++) {
                const char *why = job_measure_refusal(m, to->tested[i]);

                to->refusals[to->tested[i]] = why ? xstrdup(why) : NULL;
        }
        to->tries = pair_ring(to->tested, to->n_tested, (uint64_t)clock_ns(), &to->n_tries);
        return job_measure_pairs(j, m, to->tries, to->n_tries, PEER_MS, false);
}

/* A pair that is not connected is as bad as a peer that is not reached. */
static void keep_failures(struct job_peers *to, const struct check_pair *pairs, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (!pairs[i].told || !pairs[i].result.error ||
                    pairs[i].result.error == MEASURE_NCCL_FAILED)
                        continue;
                to->tries = xrealloc(to->tries, to->n_tries + 1, sizeof(*to->tries));
                to->tries[to->n_tries++] = pairs[i];
        }
}

/* Earlier results name hosts: their nodes may have other numbers now. */
static void expect_as_before(const struct job *j, const json_t *base, struct job_peers *to)
{
        const char **hosts = xcalloc(to->n_tested, sizeof(*hosts));

        for (size_t i = 0; i < to->n_tested; i++)
                hosts[i] = job_node(j, to->tested[i])->host->name;
        baseline_expect(base, to->book, hosts, to->n_tested);
        free(hosts);
}

/* An order of a round has a single pair, so the text of the node that began is of this pair. */
static void explain_failures(struct job_measure *m, struct job_peers *to,
                             const struct check_pair *pairs, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (pairs[i].told && pairs[i].result.error == MEASURE_NCCL_FAILED)
                        pair_book_explain(to->book, &pairs[i],
                                          job_measure_failure(m, pairs[i].from));
}

/* One round is a matching, so no node takes part in two measurements at once. The book decides on
 * more rounds by the results so far. */
static enum job_step measure_rounds(struct job *j, struct job_measure *m,
                                    const struct peers_how *how, struct job_peers *to)
{
        struct check_pair *pairs = xcalloc(to->n_tested, sizeof(*pairs));
        enum job_step r = JOB_DONE;
        size_t n;

        to->book = pair_book_create(to->tested, to->n_tested, how->over);
        if (how->base)
                expect_as_before(j, how->base, to);
        while (r == JOB_DONE && (n = pair_book_next(to->book, pairs)) > 0) {
                r = job_measure_pairs(j, m, pairs, n, PEER_MS, true);
                pair_book_take(to->book, pairs, n);
                explain_failures(m, to, pairs, n);
                keep_failures(to, pairs, n);
        }
        free(pairs);
        return r;
}

enum job_step job_peers_find(struct job *j, size_t n_nodes, const struct peers_how *how,
                             struct job_peers *to)
{
        struct job_measure *m;
        enum job_step r;

        *to = (struct job_peers){ .refusals = xcalloc(n_nodes, sizeof(*to->refusals)),
                                  .n_nodes = n_nodes };
        to->tested = list_ready(j, n_nodes, &to->n_tested);
        if (to->n_tested < 2) {
                /* An empty book tells that measurements were asked for. */
                if (how->measure)
                        to->book = pair_book_create(to->tested, to->n_tested, how->over);
                return JOB_DONE;
        }
        r = job_measure_begin(j, how->nccl, &m);
        if (r == JOB_DONE)
                r = find_reachable(j, m, to);
        if (r == JOB_DONE && how->measure)
                r = measure_rounds(j, m, how, to);
        if (r == JOB_DONE)
                r = try_silent_again(j, m, to);
        job_measure_end(j, m);
        return r;
}

void job_peers_judge(const struct job_peers *p, struct check_report *r,
                     const struct peer_blame *how)
{
        peer_judge(r, p->tries, p->n_tries, (const char *const *)p->refusals, how);
        pair_judge(r, p->book, p->tested, p->n_tested);
}

void job_peers_finish(struct job_peers *p)
{
        for (size_t i = 0; i < p->n_nodes; i++)
                free(p->refusals[i]);
        free(p->refusals);
        free(p->tested);
        free(p->tries);
        pair_book_free(p->book);
        *p = (struct job_peers){ 0 };
}
