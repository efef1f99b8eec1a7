/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why_find() derives from the evidence which ranks wait, groups the waiting ranks by operation, and
 * looks for outliers in this order:
 *
 * 1. ranks that are stopped, gone, silent, or sleep outside of any known wait
 * 2. ranks that compute: then no hang is visible, only a slow rank
 * 3. without these: ranks that wait in another operation than most
 *
 * A stopped rank does not wait, whatever its stack is.
 */
#include "head/why/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/why/why_private.h"

enum {
        BUSY_PERMILLE = 100, /* of a core */
        WEAK_PERMILLE = 200,
        TOLD_MAX = 3,    /* outliers of different kinds in the sentence */
        YOUNG_MS = 1000, /* a younger wait is no sign of a hang */
        PATH_FRAMES = 6, /* callers compared to tell two calls of one function apart */
        IO_KIB = 64,     /* in a second: more than a thread needs to keep in touch */
};

/* --- one rank --------------------------------------------------------------------------------- */

bool why_is_unseen(const struct why_rank *r)
{
        return r->life == WHY_SILENT || r->life == WHY_LOST;
}

void why_rank_finish(struct why_rank *r)
{
        inspected_finish(&r->seen);
        stack_finish(&r->stack);
        free(r->caller);
        r->caller = NULL;
}

/* Whether the processor time is known, which the agent measures over a second. */
static bool is_measured(const struct why_rank *r)
{
        return r->seen.pid && r->seen.cpu_permille != STATUS_NEVER;
}

/* Whether the rank reads or writes: no hang, however slow the file system. */
static bool moves_data(const struct why_rank *r)
{
        return is_measured(r) && r->seen.io_kib >= IO_KIB;
}

/* Whether the process cannot go on by itself: stopped, traced, or in the kernel for a device. State
 * D for a moment is common in programs that read; such a rank moves data, or had another state at
 * the other look. */
static bool is_halted(const struct why_rank *r)
{
        if (r->seen.state == 'D' && (moves_data(r) || r->changed))
                return false;
        return r->seen.pid && r->seen.state && strchr("TtD", r->seen.state);
}

/* Whether the rank does something: has moved between two looks, moves data or uses the
 * processor. */
static bool is_busy(const struct why_rank *r)
{
        if (r->moved || moves_data(r))
                return true;
        /* A rank in state R would compute if the processor were free. The agent raises the time of
         * a rank that has waited for the processor to BUSY_PERMILLE: a rank in a known wait is busy
         * only above that. */
        return r->seen.pid &&
               (r->seen.state == 'R' ||
                (is_measured(r) && r->seen.cpu_permille >= BUSY_PERMILLE + (unsigned)r->waits));
}

/* Derives the operation, its caller and .waits from the evidence. */
static void settle_rank(struct why_rank *r)
{
        struct stack_wait w;
        bool known;

        stack_finish(&r->stack);
        free(r->caller);
        r->caller = NULL;
        *r->operation = '\0';
        /* The kernel's own stack has no calls of the program. */
        if (r->seen.stack && strcmp(r->seen.source, "kernel") != 0)
                stack_parse(&r->stack, r->seen.stack);
        /* A weak call (backward()) waits only while it does not compute. */
        known = stack_find_wait(&r->stack, &w) &&
                (!w.weak || (is_measured(r) && r->seen.cpu_permille < WEAK_PERMILLE));
        if (known) {
                snprintf(r->operation, sizeof(r->operation), "%s (%s)", w.operation, w.library);
                r->callers = w.frame + 1;
                r->caller = stack_where(&r->stack, r->callers);
        }
        r->waits = r->life == WHY_ALIVE && !is_halted(r) && (known || *r->wait);
}

/* Returns the position of a rank without parts that change while the rank polls: the waiting call,
 * or the function. */
static char *describe_position(const struct why_rank *r)
{
        char *where;

        if (*r->operation)
                return xasprintf("%s %s", r->operation, r->caller);
        where = stack_where(&r->stack, 0);
        where[strcspn(where, " ")] = '\0';
        return where;
}

void why_rank_take(struct why_rank *r, struct inspected *seen)
{
        /* An answer without a measurement leaves the one before in place. */
        bool keep = seen->cpu_permille == STATUS_NEVER && r->seen.pid;
        uint32_t cpu = keep ? r->seen.cpu_permille : seen->cpu_permille;
        uint32_t io = keep ? r->seen.io_kib : seen->io_kib;
        char *before = r->seen.stack ? describe_position(r) : NULL, *now;

        if (!seen->stack || !*seen->stack) {
                free(seen->stack);
                seen->stack = r->seen.stack; /* an older stack is better than none */
                r->seen.stack = NULL;
                if (seen->stack)
                        memcpy(seen->source, r->seen.source, sizeof(seen->source));
        }
        r->changed |= r->seen.pid && seen->pid && r->seen.state != seen->state;
        inspected_finish(&r->seen);
        r->seen = *seen;
        r->seen.cpu_permille = cpu;
        r->seen.io_kib = io;
        memset(seen, 0, sizeof(*seen));
        if (r->life == WHY_SILENT)
                r->life = WHY_ALIVE;
        /* The node has answered, and has no process of the rank. */
        if (r->life == WHY_ALIVE && !r->seen.pid)
                r->life = WHY_ENDED;
        settle_rank(r);
        now = before ? describe_position(r) : NULL;
        /* Once moved, always moved: the finding is about the time of all looks. */
        r->moved = r->moved || (before && strcmp(before, now) != 0);
        free(before);
        free(now);
}

void why_rank_miss(struct why_rank *r, uint32_t number)
{
        if (!r->seen.pid || r->seen.number != number)
                r->life = WHY_SILENT;
}

/* --- groups of waiting ranks ------------------------------------------------------------------ */

/* Whether two ranks wait in the same operation. The store names its operations exactly, so that the
 * name decides where the wait is known to be one in the store; of other libraries call and caller
 * must agree. */
static bool is_same_wait(const struct why_rank *a, const struct why_rank *b)
{
        bool same_call = *a->operation && !strcmp(a->operation, b->operation) &&
                         !strcmp(a->caller, b->caller);

        if (*a->wait && *b->wait && (!*a->operation || strstr(a->operation, "libhnlaunch")))
                return !strcmp(a->wait, b->wait);
        return same_call || (*a->wait && !strcmp(a->wait, b->wait));
}

/* Ranks that wait in one operation; the first stands for all. */
struct why_group {
        const struct why_rank *first;
        struct intlist ranks;
        uint32_t longest_ms;
};

struct why_groups {
        struct why_group *v; /* the largest first */
        size_t n;
};

/* The largest first, of equal ones that with the lowest rank. */
static int compare_groups(const void *a, const void *b)
{
        const struct why_group *x = a, *y = b;

        if (x->ranks.n != y->ranks.n)
                return x->ranks.n > y->ranks.n ? -1 : 1;
        return x->first->rank - y->first->rank;
}

/* Sorts the waiting ranks into groups. A handful of groups is usual: no hash is needed. */
static void group_waits(struct why_rank *ranks, size_t n, struct why_groups *to)
{
        *to = (struct why_groups){ 0 };
        for (size_t i = 0; i < n; i++) {
                struct why_group *g = NULL;

                if (!ranks[i].waits)
                        continue;
                for (size_t k = 0; k < to->n && !g; k++)
                        if (is_same_wait(to->v[k].first, &ranks[i]))
                                g = &to->v[k];
                if (!g) {
                        to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));
                        g = &to->v[to->n++];
                        *g = (struct why_group){ .first = &ranks[i] };
                }
                intlist_add(&g->ranks, ranks[i].rank);
                /* Only the store knows since when a rank waits. */
                if (*ranks[i].wait)
                        g->longest_ms = MAX(g->longest_ms, ranks[i].wait_ms);
        }
        if (to->n)
                qsort(to->v, to->n, sizeof(*to->v), compare_groups);
}

/* Ranks may wait in one call and have come by different ways, for example through a function that
 * waits in a given group. True = the callers of all ranks are now these ways. */
static bool tell_ways_apart(struct why_rank *ranks, size_t n)
{
        bool differ = false;
        char **ways = xcalloc(n, sizeof(*ways));

        for (size_t i = 0; i < n; i++) {
                ways[i] = stack_line(&ranks[i].stack, ranks[i].callers, PATH_FRAMES);
                /* Ranks without a stack have no way to compare. */
                differ |= ranks[i].caller && ranks[0].caller && strcmp(ways[i], ways[0]) != 0;
        }
        for (size_t i = 0; i < n; i++) {
                if (differ && ranks[i].caller) {
                        free(ranks[i].caller);
                        ranks[i].caller = STEAL(&ways[i]);
                }
                free(ways[i]);
        }
        free(ways);
        return differ;
}

static void drop_groups(struct why_groups *g)
{
        for (size_t i = 0; i < g->n; i++)
                intlist_finish(&g->v[i].ranks);
        free(g->v);
}

/* --- sentences -------------------------------------------------------------------------------- */

/* Returns "rank 3" or "ranks 0-2", numbers of the world; malloc'ed. */
static char *name_why_ranks(const struct intlist *ranks)
{
        CLEANUP(free_textp) char *list = intlist_fold(ranks);

        return xasprintf(ranks->n == 1 ? "rank %s" : "ranks %s", list);
}

/* "in all_reduce (torch.distributed), called in train (train.py:9)". */
static char *describe_wait(const struct why_rank *r)
{
        if (*r->operation && r->caller && *r->caller)
                return xasprintf("in %s, called in %s", r->operation, r->caller);
        if (*r->operation)
                return xasprintf("in %s", r->operation);
        return xstrdup(r->wait);
}

/* Returns the object that a call of the C library waits for, by a name among the innermost frames,
 * and its frame in *@ret; NULL = not known. */
static const char *awaited_thing(const struct stack *s, size_t *ret)
{
        static const struct {
                const char *function, *what;
        } calls[] = { { "pthread_mutex_lock", "a mutex" },
                      { "pthread_rwlock_", "a lock" },
                      { "pthread_join", "a thread" },
                      { "pthread_clockjoin", "a thread" },
                      { "sem_wait", "a semaphore" } };
        enum { FRAMES = 4 };

        for (*ret = 0; *ret < MIN(s->n, (size_t)FRAMES); ++*ret)
                for (size_t k = 0; k < ARRAY_SIZE(calls); k++)
                        if (strstr(s->v[*ret].function, calls[k].function))
                                return calls[k].what;
        return NULL;
}

/* Appends what a rank does that neither waits for another nor computes: by the open system call
 * (the agent's words), else by a function of the C library, else by the kernel's wait channel. */
static void describe_sleep(const struct why_rank *r, const char *where, struct buf *to)
{
        const char *channel = r->seen.channel;
        size_t frame;
        const char *awaited = awaited_thing(&r->stack, &frame);
        CLEANUP(free_textp) char *caller = awaited ? stack_where(&r->stack, frame + 1) : NULL;
        CLEANUP(free_textp) char *in = awaited && *caller ? xasprintf(" in %s", caller) : NULL;

        where = in ? in : where;
        if (!strncmp(r->seen.blocked, "wait ", 5))
                buf_printf(to, "waits%s%s", r->seen.blocked + 4, where);
        else if (*r->seen.blocked)
                buf_printf(to, "waits to %s%s", r->seen.blocked, where);
        else if (awaited)
                buf_printf(to, "waits for %s%s", awaited, where);
        /* These channels say nothing beyond sleeping. */
        else if (strstr(channel, "nanosleep") || strstr(channel, "syscall") || !*channel)
                buf_printf(to, "sleeps%s", where);
        else
                buf_printf(to, "sleeps%s, in the kernel's %s", where, channel);
}

/* Returns what a rank does, as the end of a sentence: "rank 3 ...". */
static char *describe_doing(const struct why_rank *r)
{
        CLEANUP(free_textp) char *inner = stack_where(&r->stack, 0);
        CLEANUP(free_textp) char *where = *inner ? xasprintf(" in %s", inner) : xstrdup("");
        struct buf b = BUF_INIT;

        if (r->life == WHY_ENDED)
                buf_appends(&b, *r->end ? r->end : "has ended");
        else if (r->life == WHY_SILENT)
                buf_appends(&b, "is on a node that does not answer");
        else if (r->life == WHY_LOST)
                buf_appends(&b, "is lost with its node");
        else if (r->life == WHY_NOT_STARTED)
                buf_appends(&b, "has not started");
        else if (is_halted(r) && r->seen.state == 'T')
                buf_printf(&b, "is stopped by a signal (state T)%s", where);
        else if (is_halted(r) && r->seen.state == 't')
                buf_printf(&b, "is stopped by a debugger (state t)%s", where);
        else if (is_halted(r))
                buf_printf(&b, "waits for a file system or a device (state D)%s%s%s", where,
                           *r->seen.channel ? ", in the kernel's " : "", r->seen.channel);
        else if (r->waits) {
                CLEANUP(free_textp) char *wait = describe_wait(r);

                buf_printf(&b, "waits %s", wait);
        } else if (r->moved)
                buf_printf(&b, "goes on%s", where);
        else if (moves_data(r))
                buf_printf(&b, "reads or writes (%u KiB in a second)%s", r->seen.io_kib, where);
        else if (is_busy(r) && is_measured(r))
                buf_printf(&b, "computes (%u %% of a core)%s", r->seen.cpu_permille / 10, where);
        else if (is_busy(r))
                buf_printf(&b, "runs%s", where);
        else
                describe_sleep(r, where, &b);
        return buf_steal(&b);
}

/* "rank 3 (gpu001, pid 4711)", or "ranks 3,4" without host and pid. */
static char *name_outliers(const struct intlist *ranks, const struct why_rank *first)
{
        CLEANUP(free_textp) char *names = name_why_ranks(ranks);

        if (ranks->n > 1)
                return STEAL(&names);
        if (first->life == WHY_ALIVE && first->seen.pid)
                return xasprintf("%s (%s, pid %u)", names, first->host, first->seen.pid);
        return xasprintf("%s (%s)", names, first->host);
}

/* Puts one group of outliers: rank @i and all ranks with the same text in @doing. Clears the
 * texts. */
static void put_outlier(const struct why_rank *ranks, size_t n, char **doing, size_t i,
                        bool does_not, struct buf *to)
{
        CLEANUP(intlist_finish) struct intlist same = { 0 };
        CLEANUP(free_textp) char *names = NULL;
        char *text = doing[i];

        for (size_t k = i; k < n; k++)
                if (doing[k] && !strcmp(doing[k], text)) {
                        intlist_add(&same, ranks[k].rank);
                        if (k > i)
                                free(doing[k]);
                        doing[k] = NULL;
                }
        names = name_outliers(&same, &ranks[i]);
        buf_appends(to, names);
        if (does_not)
                buf_printf(to, same.n > 1 ? " do not: each %s" : " does not: it %s", text);
        else
                buf_printf(to, same.n > 1 ? ": each %s" : " %s", text);
        free(text);
}

void why_put_outliers(const struct why_rank *ranks, size_t n, const struct intlist *outliers,
                      bool does_not, struct buf *to)
{
        char **doing = xcalloc(n, sizeof(*doing));
        size_t groups = 0, rest = 0;

        for (size_t i = 0, k = 0; i < n && k < outliers->n; i++)
                if (ranks[i].rank == outliers->v[k]) {
                        doing[i] = describe_doing(&ranks[i]);
                        k++;
                }
        for (size_t i = 0; i < n; i++) {
                if (!doing[i])
                        continue;
                /* Counted by ranks, not by groups, for "and N more". */
                if (groups++ >= TOLD_MAX) {
                        rest++;
                        free(doing[i]);
                        continue;
                }
                buf_appends(to, groups > 1 ? "; " : "");
                put_outlier(ranks, n, doing, i, does_not, to);
        }
        if (rest)
                buf_printf(to, "; and %zu more", rest);
        free(doing);
}

/* "Ranks 0-2 wait in X, for 41s". */
static void put_group(const struct why_group *g, bool is_first, struct buf *to)
{
        CLEANUP(free_textp) char *names = name_why_ranks(&g->ranks);
        CLEANUP(free_textp) char *wait = describe_wait(g->first);
        char age[32];

        buf_printf(to, "%s%s %s", is_first ? "" : "; ", names, g->ranks.n > 1 ? "wait" : "waits");
        buf_printf(to, " %s", wait);
        if (!g->longest_ms)
                return;
        format_duration(age, sizeof(age), (int64_t)g->longest_ms * 1000);
        buf_printf(to, ", for %s", age);
}

/* --- the finding ------------------------------------------------------------------------------ */

bool why_is_stuck(const struct why_rank *r)
{
        return !r->waits && (r->life != WHY_ALIVE || is_halted(r) || !is_busy(r));
}

/* Appends the largest groups. */
static void put_groups(const struct why_groups *g, struct buf *to)
{
        for (size_t i = 0; i < g->n && i < TOLD_MAX; i++)
                put_group(&g->v[i], i == 0, to);
        if (g->n > TOLD_MAX)
                buf_printf(to, "; others in %zu more", g->n - TOLD_MAX);
}

/* Whether the rank waits until the other end of a FIFO is opened, which none has done. */
static bool waits_for_partner(const struct why_rank *r)
{
        return r->life == WHY_ALIVE && r->seen.state == 'S' &&
               (!strncmp(r->seen.blocked, "wait for a writer of ", 21) ||
                !strncmp(r->seen.blocked, "wait for a reader of ", 21)) &&
               !is_busy(r);
}

/* Whether some ranks wait for the other end of a FIFO, and the others neither do nor compute. */
static bool some_miss_a_partner(const struct why_rank *ranks, size_t n)
{
        size_t missing = 0, living = 0;

        for (size_t i = 0; i < n; i++) {
                if (ranks[i].life != WHY_ALIVE)
                        continue;
                if (is_busy(&ranks[i]))
                        return false;
                living++;
                missing += waits_for_partner(&ranks[i]);
        }
        return missing && missing < living;
}

/* Writes the finding if no rank waits for another. Only a stopped or silent rank, or one without
 * the other end of a FIFO, is then named. */
static void find_without_waits(const struct why_rank *ranks, size_t n, struct why_finding *f,
                               struct buf *to)
{
        struct intlist living = { 0 };
        /* Ranks that sleep are no outliers here: without any known wait all may sleep for a
         * reason. */
        bool partner = some_miss_a_partner(ranks, n);

        for (size_t i = 0; i < n; i++)
                if (why_is_unseen(&ranks[i]) ||
                    (ranks[i].life == WHY_ALIVE && is_halted(&ranks[i])) ||
                    (partner && waits_for_partner(&ranks[i])))
                        intlist_add(&f->outliers, ranks[i].rank);
                else if (ranks[i].life == WHY_ALIVE)
                        intlist_add(&living, ranks[i].rank);
        f->kind = f->outliers.n ? WHY_HANG : WHY_NO_HANG;
        buf_appends(to, f->outliers.n ? "no rank is seen to wait for another, but "
                                      : "no hang is visible: no rank is seen to wait for another");
        if (f->outliers.n)
                why_put_outliers(ranks, n, &f->outliers, false, to);
        else if (living.n) {
                buf_appends(to, "; ");
                why_put_outliers(ranks, n, &living, false, to);
        }
        intlist_finish(&living);
}

/* Writes the finding if some ranks wait and others do not. */
static void find_beside_waits(const struct why_rank *ranks, size_t n, const struct why_groups *g,
                              struct why_finding *f, struct buf *to)
{
        struct intlist busy = { 0 };

        for (size_t i = 0; i < n; i++)
                if (why_is_stuck(&ranks[i]))
                        intlist_add(&f->outliers, ranks[i].rank);
                else if (!ranks[i].waits)
                        intlist_add(&busy, ranks[i].rank);
        f->kind = f->outliers.n ? WHY_HANG : WHY_NO_HANG;
        buf_appends(to, f->outliers.n ? "" : "no hang is visible: ");
        put_groups(g, to);
        buf_appends(to, "; ");
        why_put_outliers(ranks, n, f->outliers.n ? &f->outliers : &busy, true, to);
        if (!f->outliers.n)
                buf_appends(to, ", so it may only be slower");
        intlist_finish(&busy);
}

/* Whether a call of libhnlaunch waits in the store only. */
static bool is_store_call(const char *operation)
{
        return !strncmp(operation, "hn_barrier", 10) || !strncmp(operation, "hn_store_", 9);
}

/* MPI and NCCL wait in loops. */
static bool may_spin(const struct why_rank *r)
{
        return strstr(r->operation, "MPI)") || strstr(r->operation, "NCCL)");
}

/* Whether all ranks wait in such loops: ranks may then have met between two looks. */
static bool all_spin(const struct why_rank *ranks, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!ranks[i].waits || !may_spin(&ranks[i]) || !is_busy(&ranks[i]))
                        return false;
        return true;
}

/* Whether a rank goes on: the rank has moved, or the rank has used the processor in a wait without
 * a loop, or the store does not know of the rank's wait. */
static bool goes_on(const struct why_rank *r)
{
        if (is_store_call(r->operation) && !*r->wait)
                return true;
        return r->moved || (r->waits && !may_spin(r) && is_measured(r) && is_busy(r));
}

bool why_computes(const struct why_rank *r)
{
        return r->life == WHY_ALIVE && is_busy(r) && !(r->waits && may_spin(r));
}

/* Writes the finding if every rank waits. */
static void find_among_waits(const struct why_rank *ranks, size_t n, const struct why_groups *g,
                             struct why_finding *f, struct buf *to)
{
        /* A hang found in the first second of a wait would be a false alarm. */
        bool moves = false, young = g->v[0].longest_ms && g->v[0].longest_ms < YOUNG_MS;

        for (size_t i = 0; i < n && !moves; i++)
                moves = goes_on(&ranks[i]);
        for (size_t i = 0; i < n && !young && !moves; i++)
                if (!is_same_wait(g->v[0].first, &ranks[i]))
                        intlist_add(&f->outliers, ranks[i].rank);
        f->kind = young || moves ? WHY_NO_HANG : g->n > 1 ? WHY_MISMATCH : WHY_ALL_WAIT;
        if (f->kind == WHY_NO_HANG)
                buf_appends(to, "no hang is visible: ");
        else if (g->n > 1)
                buf_appends(to, "the ranks wait in different operations: ");
        put_groups(g, to);
        if (moves)
                buf_appends(to, "; the ranks go on");
        else if (young)
                buf_appends(to, "; that is not long");
        else if (g->n == 1)
                buf_appends(to,
                            "; no rank is elsewhere, so none is seen to keep the others waiting");
        if (f->kind != WHY_NO_HANG && all_spin(ranks, n))
                buf_appends(to, "; MPI and NCCL use the processor while they wait, so the ranks "
                                "may also go on");
}

/* Sets .brief: the outliers with what they do, and the number of ranks that wait. */
static void tell_briefly(const struct why_rank *ranks, size_t n, const struct intlist *outliers,
                         const struct why_groups *g, struct why_finding *f)
{
        struct buf b = BUF_INIT;
        char name[PLAN_RANK_NAME_MAX];
        size_t i = 0;

        if (all_spin(ranks, n))
                return;
        while (outliers->n && ranks[i].rank != outliers->v[0])
                i++;
        if (outliers->n == 1) {
                CLEANUP(free_textp) char *doing = describe_doing(&ranks[i]);

                f->culprit = ranks[i].rank;
                buf_printf(&b, "%s on %s %s",
                           role_rank_name(ranks[i].role, ranks[i].replica, ranks[i].rank, name),
                           ranks[i].host, doing);
        } else {
                why_put_outliers(ranks, n, outliers, false, &b);
        }
        if (g->n) {
                CLEANUP(free_textp) char *wait = describe_wait(g->v[0].first);

                buf_printf(&b, "%s%zu rank%s %s", outliers->n ? "; " : "", g->v[0].ranks.n,
                           g->v[0].ranks.n == 1 ? " waits" : "s wait", wait);
        }
        f->brief = buf_steal(&b);
}

/* Sets .brief to the only living rank: the others have left, perhaps waiting for it in vain. */
static void tell_last_rank(const struct why_rank *ranks, size_t n, struct why_finding *f)
{
        CLEANUP(intlist_finish) struct intlist living = { 0 };

        for (size_t i = 0; i < n; i++)
                if (ranks[i].life == WHY_ALIVE)
                        intlist_add(&living, ranks[i].rank);
        if (living.n == 1)
                tell_briefly(ranks, n, &living, &(struct why_groups){ 0 }, f);
}

void why_find_in_world(struct why_rank *ranks, size_t n, struct why_finding *ret)
{
        struct why_groups groups;
        struct buf text = BUF_INIT;
        size_t waiting = 0, silent = 0;

        *ret = (struct why_finding){ .culprit = -1 };
        for (size_t i = 0; i < n; i++) {
                settle_rank(&ranks[i]);
                waiting += ranks[i].waits;
                silent += why_is_unseen(&ranks[i]);
        }
        group_waits(ranks, n, &groups);
        /* All wait in one call: only the ways there can tell ranks apart. */
        if (waiting == n && groups.n == 1 && tell_ways_apart(ranks, n)) {
                drop_groups(&groups);
                group_waits(ranks, n, &groups);
        }
        if (!waiting)
                find_without_waits(ranks, n, ret, &text);
        else if (waiting < n)
                find_beside_waits(ranks, n, &groups, ret, &text);
        else
                find_among_waits(ranks, n, &groups, ret, &text);
        /* Beyond doubt only if every rank was seen, and no loop may have gone on meanwhile. */
        ret->is_sure = (waiting || some_miss_a_partner(ranks, n)) && !silent && !all_spin(ranks, n);
        if (ret->kind != WHY_NO_HANG)
                tell_briefly(ranks, n, &ret->outliers, &groups, ret);
        else if (!waiting)
                tell_last_rank(ranks, n, ret);
        ret->text = buf_steal(&text);
        drop_groups(&groups);
}

void why_finding_finish(struct why_finding *f)
{
        intlist_finish(&f->outliers);
        intlist_finish(&f->worlds);
        strv_finish(&f->notes);
        free(f->text);
        free(f->brief);
        *f = (struct why_finding){ 0 };
}
