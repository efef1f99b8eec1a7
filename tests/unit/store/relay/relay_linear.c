/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays share, combine and hold back requests, yet the store behaves as a single store without
 * relays: random clients on random nodes, random delays of messages, and a check of each history:
 * is there an order of the requests, each at a moment between call and answer, in which a plain map
 * would have answered the same? (Wing and Gong, with a memory of states seen.)
 */
#include <stdio.h>

#include "lib/dice.h"
#include "lib/relays.h"
#include "lib/unit.h"

enum {
        NODES = 3,
        CLIENTS = 6,
        KEYS = 2,
        OPS_MAX = 28, /* of one key */
        STEPS = 140,
        SEEN = 1 << 18,
};

/* --- events ---------------------------------------------------------------------------------- */

struct op {
        uint8_t op;
        int client;
        int64_t arg, expect;  /* COMPARE_SET: -1 = expects none */
        int called, answered; /* moments; answered 0 = not yet */
        bool lost;            /* cancelled or its client was killed: it may have taken effect */
        bool ahead; /* its client did not wait for it: it takes effect before that client's next */
        int64_t number, value; /* of the answer; value -1 = none */
};

struct history {
        struct op ops[KEYS][OPS_MAX];
        int n[KEYS];
        int moment;
};

/* --- the checker ------------------------------------------------------------------------------ */

struct state {
        uint32_t done;
        int64_t value; /* -1 = no such key */
};

struct checker {
        const struct op *ops;
        int n;
        uint32_t before[OPS_MAX], needed;
        uint32_t round;
        struct {
                struct state state;
                uint32_t round;
        } seen[SEEN];
        bool full;
};

static struct checker checker;

/* Applies the op to a plain map; false: the answer would be another. */
static bool apply(const struct op *op, int64_t *value)
{
        int64_t was = *value, number = op->number;
        bool there = was >= 0, free = op->lost, swap;

        switch (op->op) {
        case STORE_SET:
                *value = op->arg;
                return true;
        case STORE_ADD:
                *value = (there ? was : 0) + op->arg;
                return free || number == *value;
        case STORE_COUNT: /* to 0: it does not wait, and is told of a later sum perhaps */
                *value = (there ? was : 0) + 1;
                return free || number >= *value;
        case STORE_DELETE:
                *value = -1;
                return free || number == there;
        case STORE_CHECK:
                return number == there;
        case STORE_GET:
                return there && op->value == was;
        case STORE_FETCH:
                return number == there && (!there || op->value == was);
        case STORE_WAIT:
                return there;
        default: /* STORE_COMPARE_SET */
                swap = was == op->expect;
                if (swap)
                        *value = op->arg;
                return free || (number == (swap ? 1 : there ? 0 : -1) && op->value == *value);
        }
}

/* Notes the state; false: seen before, without success. */
static bool is_new(struct checker *c, struct state s)
{
        uint32_t at = (s.done * 2654435761u ^ (uint32_t)s.value * 40503u) % SEEN;

        for (int i = 0; i < 64; i++, at = (at + 1) % SEEN) {
                if (c->seen[at].round != c->round) {
                        c->seen[at].round = c->round;
                        c->seen[at].state = s;
                        return true;
                }
                if (c->seen[at].state.done == s.done && c->seen[at].state.value == s.value)
                        return false;
        }
        c->full = true; /* no harm: it is looked at again */
        return true;
}

static bool goes_on(struct checker *c, struct state s)
{
        if ((s.done & c->needed) == c->needed)
                return true;
        if (!is_new(c, s))
                return false;
        for (int i = 0; i < c->n; i++) {
                struct state next = { s.done | 1u << i, s.value };

                if (s.done >> i & 1 || (c->before[i] & ~s.done))
                        continue;
                if (apply(&c->ops[i], &next.value) && goes_on(c, next))
                        return true;
        }
        return false;
}

static bool precedes(const struct op *a, const struct op *b)
{
        if (a->lost)
                return false;
        return a->answered < b->called ||
               (a->ahead && a->client == b->client && a->called < b->called);
}

static bool is_linearizable(const struct op *ops, int n)
{
        struct checker *c = &checker;

        c->ops = ops;
        c->n = n;
        c->round++;
        c->needed = 0;
        for (int i = 0; i < n; i++) {
                c->before[i] = 0;
                if (!ops[i].lost)
                        c->needed |= 1u << i;
                for (int j = 0; j < n; j++)
                        if (j != i && precedes(&ops[j], &ops[i]))
                                c->before[i] |= 1u << j;
        }
        return goes_on(c, (struct state){ 0, -1 });
}

/* --- clients ---------------------------------------------------------------------------------- */

struct client {
        struct game *game;
        struct relay_client *peer; /* NULL = killed */
        int id, node;
        struct op *op; /* it waits for this one */
        uint32_t tag;
        /* Those that it does not wait for. */
        struct op *ahead[OPS_MAX * KEYS + 1];
};

struct game {
        struct history h;
        struct relays *rs;
        struct client clients[CLIENTS];
        int n_clients, n_nodes, n_keys;
};

static int64_t number_in(struct bytes b)
{
        char text[24];

        snprintf(text, sizeof(text), "%.*s", (int)b.len, (const char *)b.p);
        return b.len ? strtoll(text, NULL, 10) : -1;
}

static void note(struct op *op, const struct store_reply *reply)
{
        struct bytes value = reply->value;

        assert_int_equal(reply->status, STORE_OK);
        if (op->op == STORE_FETCH) {
                value.p = (const char *)value.p + sizeof(uint64_t);
                value.len -= sizeof(uint64_t);
        }
        op->number = reply->number;
        op->value = number_in(value);
}

static void on_reply(void *ctx, const struct store_reply *reply)
{
        struct client *c = ctx;
        struct game *g = c->game;
        struct op *op = reply->tag == c->tag ? c->op : NULL;

        if (op)
                c->op = NULL;
        else
                op = c->ahead[reply->tag];
        assert_non_null(op);
        if (op->lost)
                return;
        if (reply->status == STORE_TIMEOUT) {
                op->lost = true;
                return;
        }
        note(op, reply);
        op->answered = ++g->h.moment;
}

static uint8_t any_op(void)
{
        static const uint8_t ops[] = { STORE_SET,   STORE_SET,    STORE_GET,  STORE_GET,
                                       STORE_GET,   STORE_ADD,    STORE_ADD,  STORE_ADD,
                                       STORE_CHECK, STORE_DELETE, STORE_WAIT, STORE_COMPARE_SET,
                                       STORE_FETCH, STORE_COUNT };

        return ops[dice(sizeof(ops))];
}

static void send(struct client *c, const struct op *op, int key, uint32_t tag)
{
        struct bytes name = bytes_of(key ? "b" : "a");
        struct store_request req = { .op = op->op, .tag = tag, .key = name };
        char value[24], expect[24];

        snprintf(value, sizeof(value), "%d", (int)op->arg);
        snprintf(expect, sizeof(expect), "%d", (int)op->expect);
        req.number = op->op == STORE_ADD ? op->arg : 0;
        req.value = bytes_of(value);
        req.expect = bytes_of(op->expect < 0 ? "" : expect);
        req.keys = &name;
        req.n_keys = op->op == STORE_WAIT || op->op == STORE_CHECK || op->op == STORE_FETCH;
        relay_request(c->peer, &req);
}

static void call(struct client *c)
{
        struct game *g = c->game;
        int key = (int)dice((uint32_t)g->n_keys);
        struct op *op = &g->h.ops[key][g->h.n[key]];

        if (g->h.n[key] == OPS_MAX)
                return;
        g->h.n[key]++;
        c->tag++;
        *op = (struct op){ .op = any_op(), .client = c->id, .called = ++g->h.moment };
        op->arg = op->op == STORE_ADD ? 1 + dice(3) : 1 + dice(6);
        op->expect = (int64_t)dice(8) - 1;
        op->ahead = op->op == STORE_SET && dice(2);
        if (op->ahead)
                c->ahead[c->tag] = op;
        else
                c->op = op;
        send(c, op, key, c->tag);
}

static void cancel(struct client *c)
{
        if (c->op)
                relay_request(c->peer,
                              &(struct store_request){ .op = STORE_CANCEL, .tag = c->tag });
}

static void join_world(struct game *g, struct client *c, bool last_look)
{
        const struct relay_client_ops ops = { .reply = on_reply, .last_look = last_look };

        c->game = g;
        c->id = (int)(c - g->clients);
        c->node = (int)dice((uint32_t)g->n_nodes);
        c->peer = relay_client_create(relays_at(g->rs, c->node), ops, c);
        assert_non_null(c->peer);
}

static void leave(struct client *c)
{
        if (c->op)
                c->op->lost = true;
        for (uint32_t tag = 1; tag <= c->tag; tag++)
                if (c->ahead[tag] && !c->ahead[tag]->answered)
                        c->ahead[tag]->lost = true;
        c->op = NULL;
        relay_client_destroy(c->peer);
        c->peer = NULL;
}

static void step(struct game *g)
{
        struct client *c = &g->clients[dice((uint32_t)g->n_clients)];
        int node = (int)dice((uint32_t)g->n_nodes);
        uint32_t what = dice(100);

        if (what < 34) {
                if (c->peer && !c->op)
                        call(c);
        } else if (what < 54) {
                relays_turn(g->rs, node);
        } else if (what < 75) {
                relays_up(g->rs, node);
        } else if (what < 94) {
                relays_down(g->rs, node);
        } else if (what < 98) {
                if (c->peer)
                        cancel(c);
        } else if (what == 98 && c->peer) {
                leave(c);
        }
}

/* No request waits for ever: pending requests are cancelled, all others have an answer. */
static void end(struct game *g)
{
        relays_settle(g->rs);
        for (int i = 0; i < g->n_clients; i++) {
                struct client *c = &g->clients[i];

                if (c->op) {
                        assert_true(c->op->op == STORE_GET || c->op->op == STORE_WAIT);
                        cancel(c);
                }
        }
        relays_settle(g->rs);
        for (int i = 0; i < g->n_clients; i++) {
                assert_null(g->clients[i].op);
                leave(&g->clients[i]);
        }
        relays_settle(g->rs);
        relays_destroy(g->rs);
}

/* Node 0 stays below the head, the others go below any earlier node. */
static void hang_up_tree(struct game *g)
{
        for (int i = 1; i < g->n_nodes; i++)
                relays_hang_below(g->rs, i, (int)dice((uint32_t)i));
}

static void play(struct game *g, uint64_t number, bool tree, bool lie)
{
        memset(g, 0, sizeof(*g));
        seed = number * 0x9e3779b97f4a7c15u;
        g->n_nodes = 1 + (int)dice(NODES);
        g->n_clients = 2 + (int)dice(CLIENTS - 1);
        g->n_keys = 1 + (int)dice(KEYS);
        g->rs = relays_create(g->n_nodes, 1);
        if (tree)
                hang_up_tree(g);
        if (lie)
                relays_lie(g->rs);
        for (int i = 0; i < g->n_clients; i++)
                join_world(g, &g->clients[i], dice(2));
        for (int i = 0; i < STEPS; i++)
                step(g);
        end(g);
}

/* --- what is claimed -------------------------------------------------------------------------- */

static void show(const struct op *ops, int n, unsigned number)
{
        fprintf(stderr, "history %u has no order:\n", number);
        for (int i = 0; i < n; i++)
                fprintf(stderr,
                        "  client %d [%d..%d]%s%s %s arg %d expect %d -> number %d value %d\n",
                        ops[i].client, ops[i].called, ops[i].answered, ops[i].lost ? " lost" : "",
                        ops[i].ahead ? " ahead" : "", store_op_name(ops[i].op), (int)ops[i].arg,
                        (int)ops[i].expect, (int)ops[i].number, (int)ops[i].value);
}

static int count_wrong(unsigned n, bool tree, bool lie)
{
        static struct game g;
        int wrong = 0;

        for (unsigned number = 1; number <= n; number++) {
                play(&g, number, tree, lie);
                for (int k = 0; k < g.n_keys; k++) {
                        if (is_linearizable(g.h.ops[k], g.h.n[k]))
                                continue;
                        if (!lie)
                                show(g.h.ops[k], g.h.n[k], number);
                        wrong++;
                }
        }
        return wrong;
}

/* 4,000; HN_ROUNDS=20000 makes as many. */
static int count_histories(void)
{
        const char *rounds = getenv("HN_ROUNDS");

        return rounds ? atoi(rounds) : 4000;
}

TEST(every_history_has_an_order)
{
        assert_int_equal(count_wrong(count_histories(), false, false), 0);
        assert_false(checker.full);
}

TEST(every_history_of_a_tree_has_an_order)
{
        assert_int_equal(count_wrong(count_histories(), true, false), 0);
        assert_false(checker.full);
}

/* The checker finds faults: requests shared on their way without a check are detected. */
TEST(riding_along_unasked_is_found_out)
{
        assert_true(count_wrong(1500, false, true) > 0);
        assert_true(count_wrong(1500, true, true) > 0);
}

#define DONE(op_, who, from, to, ...)                                                              \
        (struct op)                                                                                \
        {                                                                                          \
                .op = STORE_##op_, .client = who, .called = from, .answered = to, __VA_ARGS__      \
        }

TEST(the_checker_knows_right_from_wrong)
{
        const struct op stale[] = { DONE(SET, 0, 1, 2, .arg = 1), DONE(SET, 0, 3, 4, .arg = 2),
                                    DONE(GET, 1, 5, 6, .value = 1) };
        const struct op overlap[] = { DONE(SET, 0, 1, 2, .arg = 1), DONE(SET, 0, 3, 6, .arg = 2),
                                      DONE(GET, 1, 4, 5, .value = 1) };
        const struct op twice[] = { DONE(ADD, 0, 1, 4, .arg = 1, .number = 1),
                                    DONE(ADD, 1, 2, 3, .arg = 1, .number = 1) };
        struct op back[] = { DONE(SET, 0, 1, 9, .arg = 1), DONE(GET, 1, 2, 3, .value = 1),
                             DONE(CHECK, 1, 4, 5, .number = 0) };
        struct op ahead[] = { DONE(SET, 0, 1, 9, .arg = 5, .ahead = true),
                              DONE(CHECK, 0, 2, 3, .number = 0) };

        assert_false(is_linearizable(stale, 3));
        assert_true(is_linearizable(overlap, 3));
        assert_false(is_linearizable(twice, 2));
        assert_false(is_linearizable(back, 3));
        back[0].lost = true;
        assert_false(is_linearizable(back, 3));
        assert_true(is_linearizable(back, 2));
        assert_false(is_linearizable(ahead, 2));
        ahead[1].client = 1;
        assert_true(is_linearizable(ahead, 2));
}
