/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole connections through the TCP endpoint, with a relay and the store behind. The input is
 * pieces of u8 what, u8 length and bytes: the low three bits of "what" are the connection, the
 * others say what happens to it. The sockets are real, on 127.0.0.1.
 *
 * Promises: a client beside these is served whatever they do, and when all have gone nothing is
 * left: no connection, no byte of an incomplete command, no request in the relay or the store.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/endpoint/endpoint_tcp.h"
#include "agent/endpoint/endpoint_tcp_private.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/macros.h"
#include "store/engine/store.h"
#include "wire/codec.h"

enum {
        CONNECTIONS = 8,
        SEND = 0, /* what: bits 3 to 5 */
        CLOSE,
        RESET,
        PAUSE,
        HEAR,
        TURN,
        OWNER = 1,
        TURNS = 100000, /* until a promise counts as broken */
};

static struct {
        uv_loop_t loop;
        struct relay *relay;
        struct store *store;
        struct endpoint_tcp *endpoint;
        struct buf down; /* u32 length and a reply, for the relay */
        int clients[CONNECTIONS];
        bool paused;
} world;

static void ignore_line(void *ctx UNUSED, enum log_level level UNUSED, int id UNUSED,
                        const char *line UNUSED)
{
}

/* --- the head --------------------------------------------------------------------------------- */

static void answer(void *ctx UNUSED, uint64_t owner UNUSED, const struct store_reply *reply)
{
        CLEANUP(buf_finish) struct buf body = BUF_INIT;

        store_reply_encode(&body, reply);
        put_u32(&world.down, (uint32_t)buf_len(&body));
        buf_append(&world.down, buf_data(&body), buf_len(&body));
}

static const char *host_of(void *ctx UNUSED, int rank UNUSED)
{
        return "node";
}

static void take_request(void *ctx UNUSED, const void *body, size_t len)
{
        CLEANUP(store_request_finish) struct store_request req = { 0 };

        require(store_request_decode(&req, body, len, NULL) == 0);
        if (req.op == STORE_GONE)
                store_forget(world.store, OWNER);
        else
                store_request(world.store, OWNER, -1, &req);
}

static void turn(void)
{
        uv_run(&world.loop, UV_RUN_NOWAIT);
        relay_turn(world.relay);
        while (buf_len(&world.down)) {
                struct buf down = world.down;
                struct reader in = READER_INIT(buf_data(&down), buf_len(&down));

                world.down = (struct buf)BUF_INIT;
                while (in.left) {
                        size_t len;
                        const void *body = take_bytes(&in, STORE_ANSWER_MAX, &len);

                        require(relay_deliver(world.relay, body, len, NULL) == 0);
                }
                buf_finish(&down);
        }
        if (world.endpoint)
                endpoint_tcp_turn(world.endpoint);
}

/* --- clients ---------------------------------------------------------------------------------- */

static int connect_client(void)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)endpoint_tcp_port(world.endpoint)) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        require(fd >= 0);
        require(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS);
        return fd;
}

static void hear_client(int fd)
{
        char room[4096];

        while (recv(fd, room, sizeof(room), MSG_DONTWAIT) > 0)
                continue;
}

/* What the kernel does not take at once is lost, as with a client that dies there. */
static void say_client(int *fd, const void *data, size_t len)
{
        if (*fd < 0)
                *fd = connect_client();
        turn();
        if (send(*fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                hear_client(*fd);
}

static void end_client(int *fd, bool reset)
{
        const struct linger now = { .l_onoff = 1 };

        if (*fd < 0)
                return;
        if (reset)
                setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(*fd);
        *fd = -1;
}

static void happen(uint8_t what, const void *data, size_t len)
{
        int *fd = &world.clients[what % CONNECTIONS];

        switch (what / CONNECTIONS) {
        case CLOSE:
        case RESET:
                end_client(fd, what / CONNECTIONS == RESET);
                break;
        case PAUSE:
                world.paused = !world.paused;
                endpoint_tcp_pause(world.endpoint, world.paused);
                break;
        case HEAR:
                if (*fd >= 0)
                        hear_client(*fd);
                break;
        case TURN:
                turn();
                break;
        default:
                say_client(fd, data, len);
        }
        turn();
}

/* An ADD of 5 to a key of this client, in the newest dialect. */
static void require_service(int fd)
{
        static const unsigned char request[] = "\0\xce\xf7\x85\x3c" /* VALIDATE */
                                               "\x04\x04\0\0\0\0\0\0\0good"
                                               "\x05\0\0\0\0\0\0";
        char heard[8];
        size_t n = 0;

        for (int i = 0; i < 100; i++)
                turn();
        require(send(fd, request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request));
        for (int i = 0; i < TURNS && n < sizeof(heard); i++) {
                ssize_t got = recv(fd, heard + n, sizeof(heard) - n, MSG_DONTWAIT);

                require(got != 0);
                n += got > 0 ? (size_t)got : 0;
                turn();
        }
        require(n == sizeof(heard) && memcmp(heard, "\5\0\0\0\0\0\0", 8) == 0);
}

/* --- one input -------------------------------------------------------------------------------- */

static void begin_world(void)
{
        struct endpoint_order order = { .mode = ENDPOINT_LOOPBACK };
        struct error err;

        memset(&world, 0, sizeof(world));
        memset(order.token, 't', sizeof(order.token) - 1);
        for (int i = 0; i < CONNECTIONS; i++)
                world.clients[i] = -1;
        require(uv_loop_init(&world.loop) == 0);
        world.store =
                store_create((struct store_ops){ .reply = answer, .host_of = host_of }, NULL, 4);
        world.relay = relay_create((struct relay_ops){ .up = take_request }, NULL);
        require(world.store && world.relay);
        world.endpoint = endpoint_tcp_create(&world.loop, -1, &order, world.relay, NULL, &err);
        require(world.endpoint);
        log_set_sink(ignore_line, NULL);
        signal(SIGPIPE, SIG_IGN); /* as the agent does */
}

static void end_world(void)
{
        struct endpoint_tcp *e = world.endpoint;

        for (int i = 0; i < TURNS && e->conns.list; i++)
                turn();
        require(!e->conns.list && !e->still && !e->unfinished.half && !e->unfinished.largest);
        require(e->unfinished.held == 0 && e->conns.n == 0);
        for (int i = 0; i < 10; i++) /* the close callbacks take the requests back */
                turn();
        require(store_waiting(world.store) == 0);
        world.endpoint = NULL;
        endpoint_tcp_destroy(e);
        uv_run(&world.loop, UV_RUN_DEFAULT);
        turn();
        relay_destroy(world.relay);
        store_destroy(world.store);
        buf_finish(&world.down);
        require(uv_loop_close(&world.loop) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const uint8_t *end = data + size;
        int good;

        begin_world();
        good = connect_client();
        while (end - data >= 2) {
                size_t len = MIN((size_t)data[1], (size_t)(end - data - 2));

                happen(data[0] & 0x3f, data + 2, len);
                data += 2 + len;
        }
        endpoint_tcp_pause(world.endpoint, false);
        require_service(good);
        end_client(&good, false);
        for (int i = 0; i < CONNECTIONS; i++)
                end_client(&world.clients[i], i & 1);
        end_world();
        return 0;
}
