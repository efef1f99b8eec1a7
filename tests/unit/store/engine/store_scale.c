/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What collectives and counters of very many ranks cost: four times the ranks take about four times
 * the CPU time, in whatever order the members stand. A quadratic step would take sixteen times as
 * long.
 */
#include "store/engine/store.h"

#include <stdio.h>
#include <time.h>

#include "lib/dice.h"
#include "lib/store_text.h"
#include "lib/unit.h"

enum { SMALL = 20000, LARGE = 4 * SMALL, RATIO = 10, TRIES = 2, MORE = 6, COLLECTIVES = 20 };

static size_t n_answered;

static void note(void *ctx UNUSED, uint64_t owner UNUSED, const struct store_reply *r)
{
        n_answered += r->n_whom ? r->n_whom : 1;
}

static double cpu_s(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum order { ASCENDING, DESCENDING, SHUFFLED };

/* All ranks below @n but rank 0, which is in no group. */
static uint32_t *members_of(uint32_t n, enum order order)
{
        uint32_t *list = malloc(n * sizeof(*list)), keep;

        seed = 1;
        assert_non_null(list);
        for (uint32_t i = 0; i + 1 < n; i++)
                list[i] = order == DESCENDING ? n - 1 - i : i + 1;
        for (uint32_t i = 0; order == SHUFFLED && i + 1 < n; i++) {
                uint32_t other = dice(n - 1);

                keep = list[i];
                list[i] = list[other];
                list[other] = keep;
        }
        return list;
}

struct scene {
        struct store *s;
        uint32_t n; /* members */
        uint32_t *members;
        struct store_request req;
};

static void ask(struct scene *c, uint32_t n_ranks)
{
        c->req.n_ranks = n_ranks;
        store_request(c->s, 1, -1, &c->req);
}

/* A node's relay brings all its ranks in one request. */
static void meet(struct scene *c)
{
        ask(c, c->n);
        assert_int_equal(n_answered, c->n);
}

/* A rank outside of the group has ended: the members come all the same. */
static void meet_without_one(struct scene *c)
{
        store_rank_exited(c->s, 0);
        meet(c);
}

static void leave(struct scene *c)
{
        ask(c, c->n - 1);
        c->req.op = STORE_LEAVE;
        c->req.number = 1;
        ask(c, c->n - 1);
        assert_int_equal(n_answered, c->n - 1);
}

/* Asks in vain, for ranks that have not come. */
static void leave_unknown(struct scene *c)
{
        ask(c, 1);
        c->req.op = STORE_LEAVE;
        c->req.number = 1;
        c->req.ranks = &c->members[c->n - 1];
        for (uint32_t i = 0; i < c->n; i++)
                ask(c, 1);
        assert_int_equal(n_answered, 0);
}

/* The ranks of a lost node, in none of the collectives under way. */
static void lose_others(struct scene *c)
{
        for (int i = 0; i < COLLECTIVES; i++) {
                char name[24];

                snprintf(name, sizeof(name), "group%d", i);
                c->req.key = bytes_of(name);
                c->req.tag = (uint32_t)i + 1;
                c->req.n_members = c->n / 2;
                ask(c, 1);
        }
        for (uint32_t i = c->n / 2; i < c->n; i++)
                store_rank_exited(c->s, (int)c->members[i]);
        assert_int_equal(store_waiting(c->s), COLLECTIVES);
}

/* Each rank waits for another number of one counter, which then passes a half of them. */
static void count(struct scene *c)
{
        for (uint32_t i = 0; i < c->n; i++) {
                c->req.tag = i + 1;
                c->req.number = LARGE + (int64_t)c->members[i];
                ask(c, 1);
        }
        assert_int_equal(store_waiting(c->s), c->n);
        c->req.op = STORE_ADD;
        c->req.tag = 0;
        c->req.number = LARGE + c->n / 2 - c->n;
        ask(c, 1);
        assert_int_equal(n_answered, c->n / 2 + 1);
        assert_int_equal(store_waiting(c->s), c->n - c->n / 2);
}

static double cost_of(void (*play)(struct scene *), uint8_t op, enum order order, uint32_t n)
{
        static const char values[LARGE];
        double best = 1e9;

        for (int i = 0; i < TRIES; i++) {
                struct scene c = { .n = n - 1, .members = members_of(n, order) };
                double begin;

                c.s = store_create((struct store_ops){ .reply = note, .host_of = store_one_host },
                                   NULL, (int)n);
                c.req = (struct store_request){ .op = op,
                                                .tag = 1,
                                                .key = bytes_of("name"),
                                                .members = c.members,
                                                .n_members = c.n,
                                                .ranks = c.members };
                if (op == STORE_GATHER)
                        c.req.value = (struct bytes){ values, c.n };
                n_answered = 0;
                begin = cpu_s();
                play(&c);
                best = MIN(best, cpu_s() - begin);
                store_destroy(c.s);
                free(c.members);
        }
        return best;
}

TEST(collectives_of_n_ranks_cost_n)
{
        static const struct {
                const char *name;
                void (*play)(struct scene *);
                uint8_t op;
        } plays[] = {
                { "BARRIER", meet, STORE_BARRIER },
                { "GATHER", meet, STORE_GATHER },
                { "BARRIER, another rank has ended", meet_without_one, STORE_BARRIER },
                { "LEAVE", leave, STORE_BARRIER },
                { "LEAVE of ranks that have not come", leave_unknown, STORE_BARRIER },
                { "other ranks end", lose_others, STORE_BARRIER },
                { "COUNT", count, STORE_COUNT },
        };
        static const char *const orders[] = { "ascending", "descending", "shuffled" };

        for (size_t i = 0; i < ARRAY_SIZE(plays); i++) {
                for (enum order order = ASCENDING; order <= SHUFFLED; order++) {
                        double few = cost_of(plays[i].play, plays[i].op, order, SMALL);
                        double many = cost_of(plays[i].play, plays[i].op, order, LARGE);

                        /* Other processes may have had the caches. */
                        for (int again = 0; again < MORE && many > few * RATIO; again++)
                                many = MIN(many, cost_of(plays[i].play, plays[i].op, order, LARGE));
                        print_message("%s, %s: %.2f ms and %.2f ms\n", plays[i].name, orders[order],
                                      few * 1e3, many * 1e3);
                        if (many > few * RATIO)
                                fail_msg("%s, %s: %.1f times the time for 4 times the ranks",
                                         plays[i].name, orders[order], many / few);
                }
        }
}
