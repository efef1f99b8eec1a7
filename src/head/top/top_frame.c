/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_frame_read() works in three passes, as later ones need numbers of all ranks: read every host
 * and rank from the JSON; find the slow ranks (find_slow()), whether steps go on and how many ranks
 * wait for long; then give each rank its oddity and sum up its host (sum_up_host()). A rank is odd
 * after a failure, when stopped, when behind the middle of the steps, and after a long wait; but
 * while most ranks wait for long, the others are odd. While no rank makes steps, no rank is slow,
 * and a shorter wait counts as long: the run may hang. When the head has found a hang, the rank
 * that is the cause is odd, and waits are not.
 */
#include "head/top/top_frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/term/columns.h"

enum {
        LONG_WAIT_MS = 10000,
        STALL_MS = 3000, /* no rank goes on, and three mean steps */
        STALL_STEPS = 3,
        SILENT_MS = 4000, /* a sample comes each second */
        STILL_MS = 10000,
        WORKS_PERCENT = 5,  /* of a core */
        BEHIND_STEPS = 2,   /* reports of one step do not come at once */
        SPINS_PERCENT = 95, /* if all ranks are busier, waiting ranks may spin */
        SLOW_PERCENT = 10,  /* of the time, in which the others wait */
        STUCK_PERCENT = 95, /* the same; without steps it may hang */
};

/* --- reading ---------------------------------------------------------------------------------- */

/* Returns -1 when the member is missing or no integer: lines of other releases may lack members. */
static int64_t read_frame_number(const json_t *j, const char *name)
{
        const json_t *v = json_object_get(j, name);

        return json_is_integer(v) ? json_integer_value(v) : -1;
}

/* Returns "" when the member is missing; lent by @j. */
static const char *read_frame_word(const json_t *j, const char *name)
{
        const char *text = json_string_value(json_object_get(j, name));

        return text ? text : "";
}

static void read_frame_rank(struct top_frame_rank *r, const json_t *j)
{
        const char *life = read_frame_word(j, "life");

        r->rank = read_frame_number(j, "rank");
        r->role = json_string_value(json_object_get(j, "role"));
        r->role_rank = read_frame_number(j, "role_rank");
        r->replica = read_frame_number(j, "replica");
        r->alive = !strcmp(life, "alive");
        r->ended = !strcmp(life, "ended");
        r->silent = !strcmp(life, "silent");
        r->state = *read_frame_word(j, "state");
        r->exit = read_frame_number(j, "exit");
        r->step = read_frame_number(j, "step");
        r->lag = read_frame_number(j, "lag");
        r->cpu_percent = read_frame_number(j, "cpu_percent");
        r->memory_mib = read_frame_number(j, "memory_mib");
        r->quiet_ms = read_frame_number(j, "quiet_ms");
        r->wait_ms = read_frame_number(j, "wait_ms");
        r->wait = json_string_value(json_object_get(j, "wait"));
        r->busy_percent = read_frame_number(j, "busy_percent");
        /* "store": by the requests of the rank, which are exact; "looks": by the state of the
         * process. */
        r->busy_guessed = strcmp(read_frame_word(j, "busy_by"), "store") != 0;
}

/* Adds a known number of a GPU to the sum, which is -1 before the first. Returns whether the number
 * is known. */
static bool add_gpu_number(int64_t *sum, const json_t *gpu, const char *name)
{
        int64_t n = read_frame_number(gpu, name);

        if (n >= 0)
                *sum = MAX(*sum, INT64_C(0)) + n;
        return n >= 0;
}

static void read_frame_gpus(struct top_frame_gpus *to, const json_t *gpus)
{
        int64_t told = 0;
        const json_t *g;
        size_t i;

        *to = (struct top_frame_gpus){ -1, -1, -1, -1, -1 };
        json_array_foreach(gpus, i, g)
        {
                told += add_gpu_number(&to->percent, g, "use_percent");
                add_gpu_number(&to->memory_mib, g, "memory_mib");
                add_gpu_number(&to->total_mib, g, "memory_total_mib");
                add_gpu_number(&to->watts, g, "watts");
                to->celsius = MAX(to->celsius, read_frame_number(g, "celsius"));
        }
        /* The mean over GPUs that report a use; one that is divided (MIG) has none. */
        if (told)
                to->percent /= told;
}

static void read_frame_host(struct top_frame_host *h, const json_t *j)
{
        const json_t *ranks = json_object_get(j, "ranks"), *cpu = json_object_get(j, "cpu_percent");

        h->name = read_frame_word(j, "host");
        h->state = read_frame_word(j, "state");
        h->node = read_frame_number(j, "node");
        h->age_ms = read_frame_number(j, "age_ms");
        h->silent_ms = read_frame_number(j, "silent_ms");
        h->memory_mib = read_frame_number(j, "memory_mib");
        h->memory_total_mib = read_frame_number(j, "memory_total_mib");
        h->in_kib = read_frame_number(j, "in_kib");
        h->out_kib = read_frame_number(j, "out_kib");
        h->cpu_percent = json_is_number(cpu) ? json_number_value(cpu) : -1;
        h->n_ranks = json_array_size(ranks);
        h->ranks = xcalloc(h->n_ranks, sizeof(*h->ranks));
        for (size_t i = 0; i < h->n_ranks; i++)
                read_frame_rank(&h->ranks[i], json_array_get(ranks, i));
        read_frame_gpus(&h->gpus, json_object_get(j, "gpus"));
}

/* --- what is odd ------------------------------------------------------------------------------ */

/* Whether a living rank has waited for others for @ms or longer. */
static bool waits_since(const struct top_frame_rank *r, int64_t ms)
{
        return r->alive && r->wait && r->wait_ms >= ms;
}

/* In a run that goes on waits of a few seconds are common, such as for a checkpoint of another
 * rank. Once no step comes, even a short wait is a trace. */
static int64_t long_wait_ms(const struct top_frame *f)
{
        return f->pace.going ? LONG_WAIT_MS : STALL_MS;
}

static bool has_waited_long(const struct top_frame *f, const struct top_frame_rank *r)
{
        return waits_since(r, long_wait_ms(f));
}

static size_t count_long_waits(const struct top_frame *f, int64_t ms)
{
        size_t n = 0;

        for (size_t i = 0; i < f->n_hosts; i++)
                for (size_t k = 0; k < f->hosts[i].n_ranks; k++)
                        n += waits_since(&f->hosts[i].ranks[k], ms);
        return n;
}

/* Whether a rank has made a step of late or, without steps, at most half of the ranks wait for some
 * time. */
static bool steps_go_on(const struct top_frame *f)
{
        const struct top_frame_pace *p = &f->pace;

        if (p->since_step_ms >= 0)
                return p->since_step_ms < MAX((int64_t)STALL_MS, p->step_ms * STALL_STEPS);
        /* Programs that tell no steps. */
        return count_long_waits(f, STALL_MS) * 2 <= (size_t)MAX(f->alive, INT64_C(0));
}

/* Whether more than half of the living ranks are in a long wait. */
static bool most_ranks_wait(const struct top_frame *f)
{
        return f->waiting * 2 > (size_t)MAX(f->alive, INT64_C(0));
}

/* Orders percents for qsort(). */
static int compare_percents(const void *a, const void *b)
{
        const int64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Calls @fn for each living rank with a known busy_percent. */
static void each_busy_rank(const struct top_frame *f,
                           void (*fn)(void *ctx, const struct top_frame_host *h,
                                      const struct top_frame_rank *r),
                           void *ctx)
{
        for (size_t i = 0; i < f->n_hosts; i++)
                for (size_t k = 0; k < f->hosts[i].n_ranks; k++) {
                        const struct top_frame_rank *r = &f->hosts[i].ranks[k];

                        if (r->alive && r->busy_percent >= 0)
                                fn(ctx, &f->hosts[i], r);
                }
}

/* The percents of all ranks. */
struct busy_list {
        int64_t *v;
        size_t n;
};

/* Fits each_busy_rank(): appends the percent of a rank. */
static void list_busy(void *ctx, const struct top_frame_host *h, const struct top_frame_rank *r)
{
        struct busy_list *l = ctx;

        (void)h;
        l->v[l->n++] = r->busy_percent;
}

struct slow_count {
        struct top_slow *slow;
        const struct top_frame_host *host; /* of the first slow rank */
        size_t n, n_others;
        int64_t others; /* sum of their percents */
        bool spread;    /* slow ranks on several hosts */
};

/* Fits each_busy_rank(): counts a rank as slow or as one of the others, which wait. */
static void count_slow(void *ctx, const struct top_frame_host *h, const struct top_frame_rank *r)
{
        struct slow_count *c = ctx;

        if (r->busy_percent <= c->slow->above) {
                c->others += r->busy_percent;
                c->n_others++;
                c->slow->guessed |= r->busy_guessed;
                return;
        }
        c->spread |= c->n && h != c->host;
        c->host = h;
        c->n++;
}

/* Finds the slow ranks: one rank, or a few ranks of one host, that hardly wait while the others do.
 * The limit lies in the middle between the busiest rank and the median; no rank is slow when both
 * are close, or when slow ranks are on several hosts or more than a quarter: a cause is local. */
static void find_slow(struct top_frame *f)
{
        struct busy_list l = { 0 };
        struct slow_count c = { .slow = &f->slow };
        int64_t most, middle;
        size_t all = 0;

        f->slow.above = -1;
        for (size_t i = 0; i < f->n_hosts; i++)
                all += f->hosts[i].n_ranks;
        l.v = xcalloc(all + 1, sizeof(*l.v));
        each_busy_rank(f, list_busy, &l);
        f->knows_busy = l.n > 0;
        if (l.n > 1) {
                qsort(l.v, l.n, sizeof(*l.v), compare_percents);
                most = l.v[l.n - 1];
                middle = l.v[(l.n - 1) / 2];
                /* The least busy rank: if even this one never seems to wait, waits are spun
                 * away. */
                f->some_wait = l.v[0] < SPINS_PERCENT;
                f->slow.above = (most + middle) / 2;
                each_busy_rank(f, count_slow, &c);
                if (c.n_others)
                        f->slow.cost = most - c.others / (int64_t)c.n_others;
                if (most - middle < SLOW_PERCENT || c.spread || c.n > MAX(l.n / 4, (size_t)1))
                        f->slow.above = -1;
        }
        free(l.v);
}

/* Whether the ranks are of several roles. */
static bool has_several_roles(const struct top_frame *f)
{
        const char *first = NULL;

        for (size_t i = 0; i < f->n_hosts; i++)
                for (size_t k = 0; k < f->hosts[i].n_ranks; k++) {
                        const char *role = f->hosts[i].ranks[k].role;

                        first = first ? first : role;
                        if (role && strcmp(role, first) != 0)
                                return true;
                }
        return false;
}

/* Returns the worst oddity that applies. Ranks of several roles run different programs: steps and
 * waits are not compared between them. */
static enum top_oddity find_rank_oddity(const struct top_frame *f, const struct top_frame_rank *r)
{
        bool hardly_waits = f->slow.above >= 0 && r->busy_percent > f->slow.above;

        if (r->silent)
                return ODD_SILENT;
        if (r->ended && r->exit)
                return ODD_FAILED;
        if (f->pace.hang && r->rank == read_frame_number(f->pace.hang, "rank"))
                return ODD_HANGS;
        if (r->ended)
                return ODD_NOT;
        if (!r->alive)
                return ODD_NOT_STARTED;
        if (r->state == 'T')
                return ODD_STOPPED;
        if (f->pace.has_roles)
                return has_waited_long(f, r) && !f->pace.hang ? ODD_WAITS : ODD_NOT;
        /* Without a state there was no sample, and nothing is known of waits. */
        if ((most_ranks_wait(f) && !r->wait && r->state) || (!f->pace.going && hardly_waits))
                return ODD_ALONE;
        /* Behind the middle between the last rank and the first. */
        if (r->lag >= BEHIND_STEPS && r->lag * 2 > f->spread)
                return ODD_BEHIND;
        if (hardly_waits)
                return ODD_SLOW;
        return has_waited_long(f, r) && !f->one_is_alone && !f->pace.hang ? ODD_WAITS : ODD_NOT;
}

/* Sets the sums of a host and the oddities of its ranks. The step of a host is that of its last
 * rank, and its output that of the newest. */
static void sum_up_host(const struct top_frame *f, struct top_frame_host *h)
{
        h->step = h->lag = h->quiet_ms = -1;
        /* The head has not called the node silent yet, but samples are overdue. */
        if (h->silent_ms < 0 && h->age_ms > SILENT_MS && !strcmp(h->state, "running"))
                h->silent_ms = h->age_ms;
        h->odd.worst = !strcmp(h->state, "lost") ? ODD_LOST
                       : h->silent_ms >= 0       ? ODD_SILENT
                                                 : ODD_NOT;
        for (size_t i = 0; i < h->n_ranks; i++) {
                struct top_frame_rank *r = &h->ranks[i];

                r->odd = find_rank_oddity(f, r);
                h->alive += r->alive;
                if (r->step >= 0 && (h->step < 0 || r->step < h->step))
                        h->step = r->step;
                h->lag = MAX(h->lag, r->lag);
                if (r->quiet_ms >= 0 && (h->quiet_ms < 0 || r->quiet_ms < h->quiet_ms))
                        h->quiet_ms = r->quiet_ms;
                if (r->wait && (!h->longest || r->wait_ms > h->longest->wait_ms))
                        h->longest = r;
                if (r->alive && r->busy_percent >= 0 &&
                    (!h->busiest || r->busy_percent > h->busiest->busy_percent))
                        h->busiest = r;
                if (r->odd < h->odd.worst) {
                        h->odd.worst = r->odd;
                        h->odd.first = i;
                        h->odd.n = 0;
                }
                h->odd.n += r->odd == h->odd.worst && h->odd.worst != ODD_NOT;
        }
}

bool top_frame_read(struct top_frame *f, json_t *json)
{
        /* The last line of a run that has ended has a text and no hosts. */
        const json_t *hosts = json_object_get(json, "hosts");
        *f = (struct top_frame){ .json = json };
        if (!json_is_array(hosts)) {
                top_frame_finish(f);
                return false;
        }
        f->run = read_frame_word(json, "run");
        f->state = read_frame_word(json, "state");
        f->us = read_frame_number(json, "us");
        f->world_size = read_frame_number(json, "world_size");
        f->num_nodes = read_frame_number(json, "num_nodes");
        f->alive = read_frame_number(json, "alive");
        f->step = read_frame_number(json, "step");
        f->spread = read_frame_number(json, "spread");
        f->total = read_frame_number(json, "total");
        f->pace.rate = json_number_value(json_object_get(json, "steps_per_s"));
        f->pace.since_step_ms = read_frame_number(json, "since_step_ms");
        f->pace.step_ms = read_frame_number(json, "step_ms");
        f->pace.stalled_ms = read_frame_number(json, "stalled_ms");
        f->pace.hang = json_object_get(json, "hang");
        f->n_hosts = json_array_size(hosts);
        f->hosts = xcalloc(f->n_hosts, sizeof(*f->hosts));
        for (size_t i = 0; i < f->n_hosts; i++) {
                struct top_frame_host *h = &f->hosts[i];

                read_frame_host(h, json_array_get(hosts, i));
                /* Numbers of nodes index an array of the view: any other number would be no place
                 * in it. */
                if (h->node < 0 || h->node >= (int64_t)f->n_hosts)
                        h->node = (int64_t)i;
                f->name_width = MAX(f->name_width, columns_count(h->name, strlen(h->name)));
                f->has_gpus |= h->gpus.memory_mib >= 0;
        }
        f->pace.has_roles = has_several_roles(f);
        find_slow(f);
        if (f->pace.has_roles)
                f->slow.above = -1;
        /* In this order: what a long wait is depends on whether the run goes on. */
        f->pace.going = steps_go_on(f);
        f->waiting = count_long_waits(f, long_wait_ms(f));
        for (size_t i = 0; i < f->n_hosts && most_ranks_wait(f); i++)
                for (size_t k = 0; k < f->hosts[i].n_ranks; k++) {
                        const struct top_frame_rank *r = &f->hosts[i].ranks[k];

                        f->one_is_alone |= r->alive && !r->wait && r->state;
                }
        for (size_t i = 0; i < f->n_hosts; i++)
                sum_up_host(f, &f->hosts[i]);
        return true;
}

void top_frame_finish(struct top_frame *f)
{
        for (size_t i = 0; i < f->n_hosts; i++)
                free(f->hosts[i].ranks);
        free(f->hosts);
        json_decref(f->json);
        *f = (struct top_frame){ 0 };
}

/* --- notes ------------------------------------------------------------------------------------ */

void top_frame_age(int64_t ms, char *to, size_t size)
{
        int64_t s = ms / 1000;

        if (s < 60)
                snprintf(to, size, "%" PRId64 "s", s);
        else if (s < 3600)
                snprintf(to, size, "%" PRId64 "m", s / 60);
        else if (s < 100 * 3600)
                snprintf(to, size, "%" PRId64 "h%02dm", s / 3600, (int)(s / 60 % 60));
        else
                snprintf(to, size, "%" PRId64 "d", s / 86400);
}

/* Counts the ranks that wait for a slow rank, as looks tell. The sums of the count go into a
 * copy. */
static size_t count_others(const struct top_frame *f)
{
        struct top_slow slow = f->slow;
        struct slow_count c = { .slow = &slow };

        each_busy_rank(f, count_slow, &c);
        return c.n_others;
}

/* Writes "waits in barrier for 12s", "waits for a key for 12s". */
static void write_wait(const struct top_frame_rank *r, char *to, size_t size)
{
        bool in = strcmp(r->wait, "key") != 0 && strcmp(r->wait, "store") != 0;
        char age[24];

        top_frame_age(r->wait_ms, age, sizeof(age));
        snprintf(to, size, "waits %s %s for %s", in ? "in" : "for",
                 in                ? r->wait
                 : *r->wait == 'k' ? "a key"
                                   : "the store",
                 age);
}

/* Writes "slow: others wait 19 %". A rank that others wait for nearly all the time may as well
 * hang, if no step was ever told. */
static void write_cost(const struct top_frame *f, char *to, size_t size)
{
        bool may_hang = f->pace.since_step_ms < 0 && f->slow.cost >= STUCK_PERCENT;

        snprintf(to, size, "slow%s: others wait %s%" PRId64 " %%", may_hang ? " or hangs" : "",
                 f->slow.guessed ? "~" : "", f->slow.cost);
}

/* Writes how a rank ended; @code below 0 is a signal. A signal without a name (real-time signals)
 * has its number. */
static void write_exit(int64_t code, char *to, size_t size)
{
        const char *name = code < 0 ? sigabbrev_np((int)-code) : NULL;

        if (name)
                snprintf(to, size, "killed by SIG%s", name);
        else
                snprintf(to, size, code < 0 ? "killed by signal %d" : "exited with %d",
                         abs((int)code));
}

const char *top_frame_rank_name(const struct top_frame_rank *r, char to[TOP_RANK_NAME])
{
        if (r->role && r->replica >= 0)
                snprintf(to, TOP_RANK_NAME, "%.32s:%d:%d", r->role, (int)r->replica,
                         (int)r->role_rank);
        else if (r->role)
                snprintf(to, TOP_RANK_NAME, "%.40s:%" PRId64, r->role, r->role_rank);
        else
                snprintf(to, TOP_RANK_NAME, "rank %" PRId64, r->rank);
        return to;
}

void top_frame_rank_note(const struct top_frame *f, const struct top_frame_rank *r, char *to,
                         size_t size)
{
        *to = '\0';
        switch (r->odd) {
        /* Of a host only. */
        case ODD_LOST:
        case ODD_NOT:
                if (r->ended)
                        snprintf(to, size, "ended");
                break;
        case ODD_SILENT:
                snprintf(to, size, "silent");
                break;
        case ODD_FAILED:
                write_exit(r->exit, to, size);
                break;
        case ODD_HANGS:
                snprintf(to, size, r->ended ? "has ended, others wait" : "hangs");
                break;
        case ODD_STOPPED:
                snprintf(to, size, "stopped (T)");
                break;
        case ODD_ALONE:
                snprintf(to, size, "does not wait, %zu do", MAX(f->waiting, count_others(f)));
                break;
        case ODD_BEHIND:
                snprintf(to, size, "behind");
                break;
        case ODD_SLOW:
                snprintf(to, size, "is ");
                write_cost(f, to + 3, size - 3);
                break;
        case ODD_WAITS:
                write_wait(r, to, size);
                break;
        case ODD_NOT_STARTED:
                snprintf(to, size, "not started");
                break;
        }
}

void top_frame_slow_note(const struct top_frame *f, char *to, size_t size)
{
        const struct top_frame_host *host = NULL;
        const struct top_frame_rank *first = NULL;
        char note[64], name[TOP_RANK_NAME];
        size_t n = 0;

        for (size_t i = 0; i < f->n_hosts; i++)
                for (size_t k = 0; k < f->hosts[i].n_ranks; k++) {
                        if (f->hosts[i].ranks[k].odd != ODD_SLOW)
                                continue;
                        host = &f->hosts[i];
                        first = n++ ? first : &host->ranks[k];
                }
        *to = '\0';
        if (!first)
                return;
        write_cost(f, note, sizeof(note));
        if (n == 1)
                snprintf(to, size, "%s on %s is %s", top_frame_rank_name(first, name), host->name,
                         note);
        else
                snprintf(to, size, "%zu ranks on %s are %s", n, host->name, note);
}

void top_frame_host_note(const struct top_frame *f, const struct top_frame_host *h, char *to,
                         size_t size)
{
        const struct top_frame_rank *r = &h->ranks[h->odd.first];
        char note[64], age[24], others[48] = "", name[TOP_RANK_NAME];

        *to = '\0';
        if (h->odd.worst == ODD_NOT)
                return;
        /* The host itself is odd, not one of its ranks. */
        if (h->odd.worst == ODD_LOST || (h->odd.worst == ODD_SILENT && !r->silent)) {
                top_frame_age(MAX(h->silent_ms, INT64_C(0)), age, sizeof(age));
                if (h->odd.worst == ODD_LOST)
                        snprintf(to, size, "lost");
                else
                        snprintf(to, size, "silent for %s", age);
                return;
        }
        /* The rank whose wait is in the WAIT column. */
        if (h->odd.worst == ODD_WAITS && h->longest)
                r = h->longest;
        top_frame_rank_note(f, r, note, sizeof(note));
        if (h->odd.n > 1)
                snprintf(others, sizeof(others), ", %zu more", h->odd.n - 1);
        snprintf(to, size, "%s %s%s", top_frame_rank_name(r, name), note, others);
}

int64_t top_frame_still_ms(const struct top_frame *f)
{
        /* Ranks without output are quiet since the start. */
        int64_t least = f->us / 1000;
        size_t alive = 0;

        for (size_t i = 0; i < f->n_hosts; i++)
                for (size_t k = 0; k < f->hosts[i].n_ranks; k++) {
                        const struct top_frame_rank *r = &f->hosts[i].ranks[k];

                        if (!r->alive || r->ended)
                                continue;
                        /* Unknown counts as working: a false alarm is worse than a late one. */
                        if (r->silent || r->cpu_percent < 0 || r->cpu_percent >= WORKS_PERCENT)
                                return -1;
                        alive++;
                        if (r->quiet_ms >= 0)
                                least = MIN(least, r->quiet_ms);
                }
        return alive && least >= STILL_MS ? least : -1;
}
