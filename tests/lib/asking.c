/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/asking.h"

#include <inttypes.h>

#include "lib/store_text.h"
#include "lib/unit.h"

struct relays *rs;
struct client clients[CLIENTS];

void on_reply(void *ctx, const struct store_reply *r)
{
        struct client *c = ctx;

        buf_printf(&c->said, "%s%u %s", buf_len(&c->said) ? " | " : "", r->tag,
                   store_status_word(r->status));
        if (r->number)
                buf_printf(&c->said, " %" PRId64, r->number);
        if (r->value.len && r->value.len < 100)
                buf_printf(&c->said, " '%.*s'", (int)r->value.len, (const char *)r->value.p);
        if (r->text.len)
                buf_printf(&c->said, " %.*s", (int)r->text.len, (const char *)r->text.p);
        c->bytes = r->value.len;
}

static void on_event(void *ctx, const struct store_event *event)
{
        struct client *c = ctx;

        buf_printf(&c->said, "%sevent %u of %d", buf_len(&c->said) ? " | " : "", event->kind,
                   event->rank);
}

struct relay *relay_of(int who)
{
        return relays_at(rs, who / PER_NODE);
}

void come(int who, bool last_look)
{
        const struct relay_client_ops ops = { .reply = on_reply,
                                              .event = on_event,
                                              .last_look = last_look };

        clients[who].peer = relay_client_create(relay_of(who), ops, &clients[who]);
        assert_non_null(clients[who].peer);
}

void go(int who)
{
        relay_client_destroy(clients[who].peer);
        clients[who].peer = NULL;
        buf_finish(&clients[who].said);
}

int set_up(void **state UNUSED)
{
        relays_now = 0;
        rs = relays_create(2, PER_NODE);
        for (int i = 0; i < CLIENTS; i++)
                come(i, false);
        return 0;
}

int set_up_chain(void **state UNUSED)
{
        relays_now = 0;
        rs = relays_create(2, PER_NODE);
        relays_hang_below(rs, 1, 0);
        for (int i = 0; i < CLIENTS; i++)
                come(i, false);
        return 0;
}

int tear_down(void **state UNUSED)
{
        for (int i = 0; i < CLIENTS; i++)
                go(i);
        relays_destroy(rs);
        return 0;
}

void expect(int who, const char *want)
{
        struct buf *said = &clients[who].said;

        buf_append(said, "", 1);
        assert_string_equal((const char *)buf_data(said), want);
        buf_clear(said);
}

void ask_all(int who, uint32_t tag, uint8_t op, const char *keys, const char *value, int64_t number)
{
        struct bytes list[64];
        char room[512];
        struct store_request req = { .tag = tag,
                                     .op = op,
                                     .total = op == STORE_COUNT,
                                     .key = bytes_of(keys),
                                     .value = bytes_of(value),
                                     .number = number,
                                     .keys = list };

        if (op == STORE_CHECK || op == STORE_WAIT || op == STORE_FETCH)
                req.n_keys = store_words(list, room, sizeof(room), keys);
        relay_request(clients[who].peer, &req);
}

void ask(int who, uint32_t tag, uint8_t op, const char *keys)
{
        ask_all(who, tag, op, keys, "", 0);
}

void set(int who, uint32_t tag, const char *key, const char *value)
{
        ask_all(who, tag, STORE_SET, key, value, 0);
}

void add(int who, uint32_t tag, const char *key, int64_t n)
{
        ask_all(who, tag, STORE_ADD, key, "", n);
}

void cancel(int who, uint32_t tag)
{
        ask(who, tag, STORE_CANCEL, "");
}

unsigned sent(uint8_t op)
{
        return relays_sent(rs, 0, op);
}

void all_up(void)
{
        relays_turn(rs, 0);
        while (relays_up(rs, 0))
                ;
}

void all_down(void)
{
        while (relays_down(rs, 0))
                ;
}

void elsewhere_set(const char *key, const char *value)
{
        set(4, 999, key, value);
        relays_turn(rs, 1);
        while (relays_up(rs, 1) || relays_down(rs, 1))
                ;
        expect(4, "999 ok");
}

void set_megabytes(const char *key, size_t n)
{
        char *value = calloc(n, 1 << 20);
        struct store_request req = { .op = STORE_SET, .tag = 1, .key = bytes_of(key) };

        assert_non_null(value);
        req.value = (struct bytes){ value, n << 20 };
        relay_request(clients[4].peer, &req);
        relays_settle(rs);
        expect(4, "1 ok");
        free(value);
}
