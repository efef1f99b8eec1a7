/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings are exact, however relays bring ranks together: random ranks on random nodes, alone,
 * below each other, with every way as slow as chance has it, who give up, die, come again and
 * sometimes differ. Every call brings a value of its own, so an answer shows which calls met.
 */

#include "head/job/store_server.h"
#include "lib/dice.h"
#include "lib/relays.h"
#include "lib/unit.h"

enum {
        NODES = 4,
        PER_NODE = 3,
        RANKS = NODES * PER_NODE,
        NAMES = 2,
        STEPS = 1200,
        GAMES = 3000,
        ENOUGH = 10000
};

/* In what a rank says when it comes to a meeting. */
struct call {
        int rank, name;
        uint8_t op, status;
        bool answered, cancelled, killed;
        bool met;        /* an answer has it in it */
        int with[RANKS]; /* answered OK: the calls of the members */
};

struct client {
        struct game *game;
        struct relay_client *peer; /* NULL = gone */
        int rank;
        bool joined; /* its HELLO is answered */
        int call;    /* it waits for; -1 = none */
};

struct game {
        struct relays *rs;
        struct client clients[RANKS];
        struct call calls[STEPS];
        int n_calls, n_nodes, n_ranks;
        uint32_t members[NAMES][RANKS], n_members[NAMES];
        bool tree;   /* here what passes beside may overtake; the real tap keeps the order */
        bool differ; /* now and then they say something else */
};

/* --- what is claimed -------------------------------------------------------------------------- */

/* The same calls for all, each of its own rank, and none that has been told otherwise. */
static void check_together(struct game *g, struct call *c, int me, struct bytes value)
{
        uint32_t n = g->n_members[c->name];

        assert_int_equal(value.len, n * sizeof(int));
        memcpy(c->with, value.p, value.len);
        for (uint32_t i = 0; i < n; i++) {
                struct call *other = &g->calls[c->with[i]];

                assert_in_range(c->with[i], 0, g->n_calls - 1);
                assert_int_equal(other->rank, g->members[c->name][i]);
                assert_int_equal(other->name, c->name);
                other->met = true;
                if (!other->answered || other->killed)
                        continue;
                assert_int_equal(other->status, STORE_OK);
                if (c->with[i] != me)
                        assert_memory_equal(other->with, c->with, value.len);
        }
}

static void check_missing(const struct game *g, const struct call *c, const struct store_reply *r)
{
        assert_true(c->cancelled);
        assert_false(c->met);
        assert_true(r->n_ranks > 0);
        for (uint32_t i = 0; i < r->n_ranks; i++) {
                bool is_member = false;

                assert_int_not_equal(r->ranks[i], c->rank);
                for (uint32_t j = 0; j < g->n_members[c->name]; j++)
                        is_member |= g->members[c->name][j] == r->ranks[i];
                assert_true(is_member);
        }
}

static void on_reply(void *ctx, const struct store_reply *reply)
{
        struct client *me = ctx;
        struct game *g = me->game;
        struct call *c = &g->calls[reply->tag];

        if (reply->tag == STEPS) {
                assert_int_equal(reply->status, STORE_OK);
                me->joined = true;
                return;
        }
        assert_int_equal(me->call, reply->tag);
        assert_int_equal(reply->n_whom, 0);
        c->answered = true;
        c->status = reply->status;
        me->call = -1;
        if (reply->status == STORE_OK && c->op == STORE_GATHER)
                check_together(g, c, (int)reply->tag, reply->value);
        else if (reply->status == STORE_TIMEOUT)
                check_missing(g, c, reply);
        else if (reply->status != STORE_OK && !(g->differ && reply->status == STORE_MISMATCH))
                fail_msg("call %u: %.*s", reply->tag, (int)reply->text.len,
                         (const char *)reply->text.p);
}

/* Everything has come where it goes: then nobody waits for a meeting that all have come to. */
static void check_nobody_is_forgotten(const struct game *g)
{
        for (int name = 0; name < NAMES; name++) {
                uint32_t there = 0;

                for (uint32_t i = 0; i < g->n_members[name]; i++) {
                        int call = g->clients[g->members[name][i]].call;

                        there += call >= 0 && g->calls[call].name == name;
                }
                assert_true(there < g->n_members[name]);
        }
}

/* --- the game --------------------------------------------------------------------------------- */

static void come(struct game *g, int rank)
{
        const struct relay_client_ops ops = { .reply = on_reply };
        struct client *c = &g->clients[rank];

        *c = (struct client){ .game = g, .rank = rank, .call = -1 };
        c->peer = relay_client_create(relays_at(g->rs, rank / PER_NODE), ops, c);
        assert_non_null(c->peer);
        relay_request(c->peer,
                      &(struct store_request){ .op = STORE_HELLO, .tag = STEPS, .number = rank });
}

static void go(struct client *c)
{
        if (c->call >= 0) {
                c->game->calls[c->call].answered = c->game->calls[c->call].killed = true;
                c->call = -1;
        }
        relay_client_destroy(c->peer);
        c->peer = NULL;
}

static void call(struct client *c)
{
        static const char *const names[NAMES] = { "one", "two" };
        struct game *g = c->game;
        int serial = g->n_calls, name = (int)dice(NAMES);
        struct call *new = &g->calls[serial];
        struct store_request req = { .op = STORE_GATHER,
                                     .tag = (uint32_t)serial,
                                     .key = bytes_of(names[name]),
                                     .value = { &serial, sizeof(serial) },
                                     .members = g->members[name],
                                     .n_members = g->n_members[name] };
        bool member = false;

        for (uint32_t i = 0; i < req.n_members; i++)
                member |= req.members[i] == (uint32_t)c->rank;
        if (!member)
                return;
        if (g->differ && dice(12) == 0)
                req.op = STORE_BARRIER;
        *new = (struct call){ .rank = c->rank, .name = name, .op = req.op };
        c->call = g->n_calls++;
        relay_request(c->peer, &req);
}

static void cancel(struct client *c)
{
        if (c->call < 0)
                return;
        c->game->calls[c->call].cancelled = true;
        relay_request(c->peer,
                      &(struct store_request){ .op = STORE_CANCEL, .tag = (uint32_t)c->call });
}

static void step(struct game *g)
{
        struct client *c = &g->clients[dice((uint32_t)g->n_ranks)];
        int node = (int)dice((uint32_t)g->n_nodes);
        uint32_t what = dice(600);

        if (what < 210) {
                if (c->peer && c->call < 0 && (c->joined || !g->tree))
                        call(c);
        } else if (what < 330) {
                relays_now += relays_now ? dice(1 << 21) : 0;
                relays_turn(g->rs, node);
        } else if (what < 450) {
                relays_up(g->rs, node);
        } else if (what < 586) {
                relays_down(g->rs, node);
        } else if (what < 593) {
                if (c->peer)
                        cancel(c);
        } else if (what < 596) {
                if (c->peer)
                        go(c);
        } else if (!c->peer) {
                come(g, c->rank);
        }
}

static void end(struct game *g)
{
        relays_settle(g->rs);
        check_nobody_is_forgotten(g);
        for (int i = 0; i < g->n_ranks; i++)
                cancel(&g->clients[i]);
        relays_settle(g->rs);
        for (int i = 0; i < g->n_ranks; i++) {
                assert_int_equal(g->clients[i].call, -1);
                go(&g->clients[i]);
        }
        relays_settle(g->rs);
        assert_int_equal(store_server_waiting(relays_store_server(g->rs)), 0);
        relays_destroy(g->rs);
}

static void play(struct game *g, uint64_t number, bool tree, bool differ)
{
        memset(g, 0, sizeof(*g));
        seed = number * 0x9e3779b97f4a7c15u;
        /* In every other game ranks wait for each other, now and then until their patience ends. */
        relays_now = number % 2;
        g->tree = tree;
        g->differ = differ;
        g->n_nodes = 1 + (int)dice(NODES);
        g->n_ranks = g->n_nodes * PER_NODE;
        g->rs = relays_create(g->n_nodes, PER_NODE);
        for (int i = 1; tree && i < g->n_nodes; i++)
                relays_hang_below(g->rs, i, (int)dice((uint32_t)i));
        for (int name = 0; name < NAMES; name++)
                for (int i = 0; i < g->n_ranks; i++)
                        if (i == 0 || dice(2))
                                g->members[name][g->n_members[name]++] = (uint32_t)i;
        for (int i = 0; i < g->n_ranks; i++)
                come(g, i);
        relays_settle(g->rs);
        for (int i = 0; i < STEPS; i++)
                step(g);
        end(g);
}

/* How many calls met, so that it is no game in which nothing happens. */
static int play_all(bool tree, bool differ)
{
        static struct game g;
        int met = 0;

        for (unsigned number = 1; number <= GAMES; number++) {
                play(&g, number, tree, differ);
                for (int i = 0; i < g.n_calls; i++)
                        met += g.calls[i].met;
        }
        return met;
}

TEST(collectives_are_exact)
{
        assert_true(play_all(false, false) > ENOUGH);
}

TEST(collectives_of_a_tree_are_exact)
{
        assert_true(play_all(true, false) > ENOUGH);
}

TEST(a_differing_rank_spoils_only_its_own_collective)
{
        assert_true(play_all(true, true) > ENOUGH);
}
