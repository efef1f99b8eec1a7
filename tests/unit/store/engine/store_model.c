/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine against a model: thousands of random requests, and after each the same answers to the
 * same owners. The model is arrays and loops over everything.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/dice.h"
#include "lib/store_text.h"
#include "lib/unit.h"
#include "store/engine/store.h"

enum {
        KEYS = 9,
        MANY = 4, /* keys of one request */
        VALUE = 48,
        QUEUE = 24,
        OWNERS = 5,
        LISTS = 3,    /* that many ask for, by their keys_id */
        PARKED = 120, /* about as many may wait */
        LINES = 4 * PARKED,
        LINE = 512,
        STEPS = 6000,
        FAILED_AT = STEPS - STEPS / 10, /* a rank fails then */
};

static char long_key[STORE_KEY_MAX];
static const struct bytes keys[KEYS] = {
        { "", 0 },     { "a", 1 },   { "a\0b", 3 }, { "a\0c", 3 },
        { "k/", 2 },   { "k/1", 3 }, { "k/22", 4 }, { long_key, sizeof(long_key) },
        { "\xff", 1 },
};

/* --- what is answered ------------------------------------------------------------------------- */

/* An answer per line; the order of answers does not matter here. */
struct lines {
        char text[LINES][LINE];
        size_t n;
};

static struct lines said, wanted;

static char *line(struct lines *to, uint64_t owner, uint32_t tag, enum store_status status,
                  int64_t number)
{
        char *text = to->text[to->n++];

        assert_true(to->n < LINES);
        snprintf(text, LINE, "%" PRIu64 "/%u s%d %" PRId64, owner, tag, status, number);
        return text;
}

static void add_value(char *text, struct bytes v)
{
        size_t at = strlen(text);

        snprintf(text + at, LINE - at, " '%.*s'", (int)v.len, v.len ? (const char *)v.p : "");
}

/* Of a FETCH, one after the other. */
static void add_values(char *text, struct bytes v)
{
        const unsigned char *p = v.p, *end = p + v.len;

        while (p < end) {
                struct bytes one = { p + 8, p[0] };

                add_value(text, one);
                p += 8 + one.len;
        }
        assert_ptr_equal(p, end);
}

static int key_index(struct bytes k)
{
        for (int i = 0; i < KEYS; i++)
                if (keys[i].len == k.len && (!k.len || memcmp(keys[i].p, k.p, k.len) == 0))
                        return i;
        return -1;
}

/* Keys of a LIST in the order of the table above. */
static void add_keys(char *text, const bool *there)
{
        for (int i = 0; i < KEYS; i++)
                if (there[i])
                        snprintf(text + strlen(text), LINE - strlen(text), " #%d", i);
}

static uint8_t op_now; /* LIST and FETCH look alike in an answer */

static void note(void *ctx UNUSED, uint64_t owner, const struct store_reply *r)
{
        char *text = line(&said, owner, r->tag, r->status, r->number);
        bool listed[KEYS] = { 0 };

        if (op_now == STORE_FETCH && r->value.len)
                add_values(text, r->value);
        else if (r->value.len)
                add_value(text, r->value);
        for (uint32_t i = 0; i < r->n_parts; i++) {
                if (op_now == STORE_FETCH) {
                        add_value(text, r->parts[i]);
                } else {
                        int k = key_index(r->parts[i]);

                        assert_true(k >= 0 && !listed[k]);
                        listed[k] = true;
                }
        }
        add_keys(text, listed);
        assert_true(r->status == STORE_OK || r->text.len);
}

static int by_text(const void *a, const void *b)
{
        return strcmp(a, b);
}

static void compare(int step, uint8_t op)
{
        qsort(said.text, said.n, LINE, by_text);
        qsort(wanted.text, wanted.n, LINE, by_text);
        for (size_t i = 0; i < MAX(said.n, wanted.n); i++) {
                const char *s = i < said.n ? said.text[i] : "nothing";
                const char *w = i < wanted.n ? wanted.text[i] : "nothing";

                if (strcmp(s, w) != 0)
                        fail_msg("step %d, %s: said %s, the model %s", step, store_op_name(op), s,
                                 w);
        }
        said.n = wanted.n = 0;
}

/* --- the model -------------------------------------------------------------------------------- */

struct text {
        char p[VALUE];
        size_t len;
};

struct cell {
        bool present;
        struct text value, queue[QUEUE];
        int n_items;
};

struct waiter {
        uint64_t owner;
        uint32_t tag;
        uint8_t op;
        int key[MANY], n;
        bool missing[MANY], by_item, joins_over;
        int64_t joins, number;
};

static struct cell cells[KEYS];
static struct waiter waiters[2 * PARKED]; /* first come, first */
static int n_waiters;
static bool failed;

static struct text text_of(struct bytes b)
{
        struct text t = { .len = b.len };

        assert_true(b.len <= VALUE);
        if (b.len)
                memcpy(t.p, b.p, b.len);
        return t;
}

static struct bytes bytes_in(const struct text *t)
{
        return (struct bytes){ t->p, t->len };
}

static bool there(int key)
{
        return cells[key].present || cells[key].n_items;
}

static bool is_number(const struct cell *c, int64_t *n)
{
        char room[VALUE + 1] = "";
        size_t sign = c->value.len && c->value.p[0] == '-';

        *n = 0;
        if (!c->present)
                return true;
        memcpy(room, c->value.p, c->value.len);
        if (strspn(room + sign, "0123456789") + sign != c->value.len || c->value.len <= sign ||
            c->value.len > 23)
                return false;
        errno = 0;
        *n = strtoll(room, NULL, 10);
        return errno == 0;
}

static int n_missing(const struct waiter *w)
{
        int n = 0;

        for (int i = 0; i < w->n; i++)
                n += w->missing[i];
        return n;
}

static void answer(const struct waiter *w, enum store_status status, int64_t number)
{
        char *text = line(&wanted, w->owner, w->tag, status, number);

        if (status == STORE_OK && w->op == STORE_GET && cells[w->key[0]].value.len)
                add_value(text, bytes_in(&cells[w->key[0]].value));
}

static void leave(int at)
{
        n_waiters--;
        memmove(&waiters[at], &waiters[at + 1], (size_t)(n_waiters - at) * sizeof(struct waiter));
}

/* True: it was answered. */
static bool settled(const struct waiter *w)
{
        int64_t n;

        if (w->op == STORE_COUNT) {
                if (!is_number(&cells[w->key[0]], &n) || n < w->number)
                        return false;
                answer(w, STORE_OK, n);
                return true;
        }
        if (n_missing(w))
                return false;
        answer(w, STORE_OK, w->op == STORE_WAIT && w->by_item ? -1 : w->joins);
        return true;
}

static void settle(void)
{
        for (int i = 0; i < n_waiters;) {
                if (settled(&waiters[i]))
                        leave(i);
                else
                        i++;
        }
}

static void came(int key)
{
        for (int i = 0; i < n_waiters; i++)
                for (int j = 0; j < waiters[i].n; j++)
                        if (waiters[i].key[j] == key)
                                waiters[i].missing[j] = false;
}

static void write_value(int key, struct text value)
{
        cells[key].present = true;
        cells[key].value = value;
        came(key);
}

static void item_came(int key)
{
        for (int i = 0; i < n_waiters; i++) {
                struct waiter *w = &waiters[i];

                for (int j = 0; j < w->n && w->op == STORE_WAIT; j++) {
                        if (w->key[j] != key || !w->missing[j])
                                continue;
                        w->missing[j] = false;
                        w->by_item = true;
                        return;
                }
        }
}

static bool add(int key, int64_t n, int64_t *sum)
{
        struct text t = { 0 };

        if (!is_number(&cells[key], sum) || __builtin_add_overflow(*sum, n, sum))
                return false;
        t.len = (size_t)snprintf(t.p, sizeof(t.p), "%" PRId64, *sum);
        write_value(key, t);
        return true;
}

static void park(struct waiter w)
{
        if (settled(&w))
                return;
        if (failed)
                answer(&w, STORE_PEER, 0);
        else
                waiters[n_waiters++] = w;
}

static void model_wait(uint64_t owner, const struct store_request *q)
{
        struct waiter w = { .owner = owner, .tag = q->tag, .op = q->op };

        w.n = q->op == STORE_GET ? 1 : (int)q->n_keys;
        for (int i = 0; i < w.n; i++) {
                int k = key_index(q->op == STORE_GET ? q->key : q->keys[i]);

                w.key[i] = k;
                w.missing[i] = q->op == STORE_GET ? !cells[k].present : !there(k);
                w.by_item |= !cells[k].present && cells[k].n_items;
        }
        park(w);
}

static void model_count(uint64_t owner, const struct store_request *q)
{
        int k = key_index(q->key);
        int64_t sum;

        if (!add(k, MAX(q->total, 1), &sum)) {
                line(&wanted, owner, q->tag, STORE_INVALID, 0);
                return;
        }
        settle();
        park((struct waiter){ .owner = owner,
                              .tag = q->tag,
                              .op = STORE_COUNT,
                              .key = { k },
                              .n = 1,
                              .number = q->number });
}

static int waiter_find(uint64_t owner, uint32_t tag)
{
        for (int i = 0; i < n_waiters; i++)
                if (waiters[i].owner == owner && waiters[i].tag == tag)
                        return i;
        return -1;
}

static void model_cancel(uint64_t owner, uint32_t tag)
{
        int i = waiter_find(owner, tag);

        if (i < 0)
                return;
        answer(&waiters[i], STORE_TIMEOUT, 0);
        leave(i);
}

static void model_join(uint64_t owner, uint32_t tag)
{
        int i = waiter_find(owner, tag);
        struct waiter *w = i < 0 ? NULL : &waiters[i];

        if (!w || w->op == STORE_COUNT)
                return;
        for (int j = 0; j < w->n; j++)
                w->joins_over |= !w->missing[j] && !(w->op == STORE_GET ? cells[w->key[j]].present
                                                                        : there(w->key[j]));
        w->joins += !w->joins_over;
}

static void model_compare_set(uint64_t owner, const struct store_request *q)
{
        struct cell *c = &cells[key_index(q->key)];
        struct text have = c->present ? c->value : (struct text){ 0 };
        bool same = have.len == q->expect.len &&
                    (!have.len || memcmp(have.p, q->expect.p, have.len) == 0);
        struct text now = same ? text_of(q->value) : have;
        char *text = line(&wanted, owner, q->tag, STORE_OK, same ? 1 : c->present ? 0 : -1);

        if (now.len)
                add_value(text, bytes_in(&now));
        if (same)
                write_value(key_index(q->key), now);
}

static int64_t model_num_keys(struct bytes prefix)
{
        int64_t n = 0;

        for (int i = 0; i < KEYS; i++)
                n += cells[i].present && keys[i].len >= prefix.len &&
                     (!prefix.len || memcmp(keys[i].p, prefix.p, prefix.len) == 0);
        return n;
}

static void model_fetch(uint64_t owner, const struct store_request *q)
{
        int64_t n = 0;
        char *text;

        for (uint32_t i = 0; i < q->n_keys; i++)
                n += cells[key_index(q->keys[i])].present;
        text = line(&wanted, owner, q->tag, STORE_OK, n);
        for (uint32_t i = 0; i < q->n_keys; i++) {
                const struct cell *c = &cells[key_index(q->keys[i])];

                add_value(text, c->present ? bytes_in(&c->value) : (struct bytes){ 0 });
        }
}

static void model_list(uint64_t owner, uint32_t tag)
{
        bool present[KEYS];

        for (int i = 0; i < KEYS; i++)
                present[i] = cells[i].present;
        add_keys(line(&wanted, owner, tag, STORE_OK, model_num_keys((struct bytes){ 0 })), present);
}

static void model_pop(uint64_t owner, const struct store_request *q)
{
        struct cell *c = &cells[key_index(q->key)];
        char *text = line(&wanted, owner, q->tag, STORE_OK, c->n_items);

        if (!c->n_items)
                return;
        if (c->queue[0].len)
                add_value(text, bytes_in(&c->queue[0]));
        c->n_items--;
        memmove(&c->queue[0], &c->queue[1], (size_t)c->n_items * sizeof(c->queue[0]));
}

/* Ops answered with a number. */
static int64_t model_number(const struct store_request *q)
{
        int k = key_index(q->key);
        struct cell *c = &cells[MAX(k, 0)];
        int64_t n = 0;

        switch (q->op) {
        case STORE_SET:
                write_value(k, text_of(q->value));
                return 0;
        case STORE_APPEND: {
                struct text t = c->present ? c->value : (struct text){ 0 };

                memcpy(t.p + t.len, q->value.p, q->value.len);
                t.len += q->value.len;
                write_value(k, t);
                return (int64_t)t.len;
        }
        case STORE_CHECK:
                for (uint32_t i = 0; i < q->n_keys; i++)
                        n += there(key_index(q->keys[i]));
                return n == q->n_keys;
        case STORE_DELETE:
                n = c->present;
                c->present = false;
                return n;
        case STORE_NUM_KEYS:
                return model_num_keys(q->key);
        case STORE_SET_MANY:
                for (uint32_t i = 0; i < q->n_keys; i++)
                        write_value(key_index(q->keys[i]), text_of(q->values[i]));
                return 0;
        case STORE_PUSH:
                c->queue[c->n_items++] = text_of(q->value);
                item_came(k);
                return c->n_items;
        default:
                assert_int_equal(q->op, STORE_QUEUE_LEN);
                return c->n_items;
        }
}

static void model_add(uint64_t owner, const struct store_request *q)
{
        int64_t sum;

        if (add(key_index(q->key), q->number, &sum))
                line(&wanted, owner, q->tag, STORE_OK, sum);
        else
                line(&wanted, owner, q->tag, STORE_INVALID, 0);
}

static void model_request(uint64_t owner, const struct store_request *q)
{
        switch (q->op) {
        case STORE_GET:
        case STORE_WAIT:
                model_wait(owner, q);
                break;
        case STORE_COUNT:
                model_count(owner, q);
                break;
        case STORE_CANCEL:
                model_cancel(owner, q->tag);
                break;
        case STORE_JOIN:
                model_join(owner, q->tag);
                break;
        case STORE_COMPARE_SET:
                model_compare_set(owner, q);
                break;
        case STORE_FETCH:
                model_fetch(owner, q);
                break;
        case STORE_LIST:
                model_list(owner, q->tag);
                break;
        case STORE_POP:
                model_pop(owner, q);
                break;
        case STORE_ADD:
                model_add(owner, q);
                break;
        default:
                line(&wanted, owner, q->tag, STORE_OK, model_number(q));
        }
        settle();
}

static void model_forget(uint64_t owner)
{
        for (int i = 0; i < n_waiters;) {
                if (waiters[i].owner == owner)
                        leave(i);
                else
                        i++;
        }
}

static void model_fail(void)
{
        for (; n_waiters; leave(0))
                answer(&waiters[0], STORE_PEER, waiters[0].joins);
        failed = true;
}

/* --- the dice --------------------------------------------------------------------------------- */

static struct bytes any_value(void)
{
        static const char *const values[] = { "", "0", "1", "7", "-3", "x", "12ab", "2000000000" };

        return bytes_of(values[dice(ARRAY_SIZE(values))]);
}

static uint8_t any_op(void)
{
        static const uint8_t ops[] = {
                STORE_SET,    STORE_ADD,      STORE_APPEND, STORE_COMPARE_SET, STORE_CHECK,
                STORE_DELETE, STORE_NUM_KEYS, STORE_GET,    STORE_WAIT,        STORE_WAIT,
                STORE_CANCEL, STORE_FETCH,    STORE_PUSH,   STORE_POP,         STORE_QUEUE_LEN,
                STORE_LIST,   STORE_COUNT,    STORE_JOIN,   STORE_DELETE,      STORE_SET_MANY,
                STORE_DELETE, STORE_POP,      STORE_DELETE, STORE_DELETE,      STORE_WAIT,
        };

        return ops[dice(ARRAY_SIZE(ops))];
}

/* Requests too large for the sizes above are not made. */
static bool holds(const struct store_request *q)
{
        const struct cell *c = &cells[key_index(q->key)];

        if (q->op == STORE_GET || q->op == STORE_WAIT || q->op == STORE_COUNT)
                return n_waiters < PARKED;
        if (q->op == STORE_APPEND)
                return !c->present || c->value.len + q->value.len <= VALUE;
        return q->op != STORE_PUSH || c->n_items < QUEUE;
}

static struct list {
        struct bytes keys[MANY];
        uint32_t n;
} lists[LISTS];

static void make_lists(void)
{
        for (int i = 0; i < LISTS; i++) {
                lists[i].n = 1 + dice(MANY);
                for (uint32_t k = 0; k < lists[i].n; k++)
                        lists[i].keys[k] = keys[dice(KEYS)];
        }
}

static void use_list(struct store_request *q)
{
        uint32_t i = dice(LISTS);

        q->keys = lists[i].keys;
        q->n_keys = lists[i].n;
        q->keys_id = i + 1;
        q->values = NULL;
}

static void play_one(struct store *s, int step)
{
        struct bytes some[MANY], values[MANY];
        struct store_request q = { .op = any_op(), .tag = (uint32_t)step + 1 };
        uint64_t owner = 1 + dice(OWNERS);

        q.key = keys[dice(KEYS)];
        q.value = any_value();
        q.expect = any_value();
        q.total = (int64_t)dice(4) - 1;
        q.number = q.op == STORE_COUNT ? 1 + dice(9) : (int64_t)dice(9) - 4;
        q.keys = some;
        q.values = values;
        q.n_keys = dice(MANY + 1);
        for (uint32_t i = 0; i < q.n_keys; i++) {
                some[i] = keys[dice(KEYS)];
                values[i] = any_value();
        }
        if ((q.op == STORE_CANCEL || q.op == STORE_JOIN) && n_waiters) {
                const struct waiter *w = &waiters[dice((uint32_t)n_waiters)];

                owner = w->owner;
                q.tag = w->tag;
        }
        if ((q.op == STORE_WAIT || q.op == STORE_FETCH) && dice(4))
                use_list(&q);
        if (!holds(&q))
                return;
        op_now = q.op;
        store_request(s, owner, -1, &q);
        model_request(owner, &q);
        compare(step, q.op);
}

static void play_all(uint64_t first_seed)
{
        struct store *s = store_create(
                (struct store_ops){ .reply = note, .host_of = store_one_host }, NULL, 2);
        uint64_t gone;

        assert_non_null(s);
        seed = first_seed;
        failed = false;
        n_waiters = 0;
        memset(cells, 0, sizeof(cells));
        make_lists();
        for (int step = 0; step < STEPS; step++) {
                play_one(s, step);
                if (dice(500) == 0) {
                        gone = 1 + dice(OWNERS);
                        store_forget(s, gone);
                        model_forget(gone);
                }
                if (step == FAILED_AT) {
                        store_rank_failed(s, 1, "rank 1 is dead");
                        model_fail();
                        compare(step, 0);
                }
                assert_int_equal(store_waiting(s), n_waiters);
        }
        store_destroy(s);
}

TEST(the_engine_does_what_the_model_does)
{
        memset(long_key, 'x', sizeof(long_key));
        for (uint64_t first_seed = 1; first_seed <= 16; first_seed++)
                play_all(first_seed);
}
