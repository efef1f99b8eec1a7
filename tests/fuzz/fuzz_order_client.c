/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhnlaunch against an agent that answers with any valid messages. The first half of the input is
 * a list of calls, one byte each; of the second half a thread, the agent, takes its answers to each
 * request: right and wrong tags, statuses, lengths, ranks and events. When it has no more to say it
 * hangs up, so every call ends. Whatever comes, what the library hands out stays within its
 * buffers.
 */
#include "fuzz.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/macros.h"
#include "hnlaunch/hnlaunch.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/store_msg.h"

enum { WORLD = 3, LONG = 64, SILENT_MS = 3 /* then the agent hangs up */ };

static char folder[] = "/tmp/fuzz-client.XXXXXX", path[64];
static int listener = -1;

struct agent {
        pthread_t thread;
        struct reader in;
        int fd;
        bool silent; /* a request has no answer yet */
};

/* --- the agent -------------------------------------------------------------------------------- */

static void say(const struct agent *a, const struct buf *body)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        store_encode(&b, buf_data(body), buf_len(body));
        if (send(a->fd, buf_data(&b), buf_len(&b), MSG_NOSIGNAL) < 0)
                return; /* the client has gone */
}

static void say_topology(struct buf *to, uint8_t how)
{
        char *hosts[] = { (char *)"n0", (char *)"n1" };
        uint32_t node_of[WORLD + 1] = { 0, how & 1, how >> 1 & 1, 0 };

        topology_encode(to, &(struct topology){ .hosts = hosts,
                                                .n_nodes = 2,
                                                .node_of_rank = node_of,
                                                .world_size = how >> 2 & 3 });
}

static void answer(struct agent *a, const struct store_head *asked)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT, value = BUF_INIT;
        static const int64_t numbers[] = { 0, 1, -1, INT64_MAX };
        uint8_t how = take_u8(&a->in), len = take_u8(&a->in);
        uint32_t ranks[] = { how >> 3 & 3, UINT32_MAX };
        struct store_reply r = { .tag = asked->tag + (how & 64 ? 1 : 0),
                                 .status = how & 7 ? STORE_OK : len % STORE_STATUSES,
                                 .number = numbers[how >> 5 & 3],
                                 .text = bytes_of("it is said"),
                                 .ranks = ranks,
                                 .n_ranks = how >> 4 & 1 };

        if (asked->op == STORE_TOPOLOGY)
                say_topology(&value, len);
        for (int i = 0; i < len && asked->op != STORE_TOPOLOGY; i++)
                put_u8(&value, 'v');
        r.value = (struct bytes){ buf_data(&value), buf_len(&value) };
        store_reply_encode(&b, &r);
        say(a, &b);
        a->silent &= r.tag != asked->tag;
}

static void tell_event(struct agent *a)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        uint8_t how = take_u8(&a->in);

        store_event_encode(&b, &(struct store_event){ .client = STORE_ALL,
                                                      .kind = how % 5,
                                                      .rank = (int32_t)(how >> 4) - 2,
                                                      .node = -1,
                                                      .text = bytes_of("rank 1 failed") });
        say(a, &b);
}

/* False: hangs up. */
static bool react(struct agent *a, const struct frame *f)
{
        struct store_head h = store_body_head(f->body, f->len);
        uint8_t n = take_u8(&a->in);

        require(f->type == MSG_STORE);
        a->silent |= store_op_has_answer(h.op);
        for (int i = 0; i < (n & 3); i++)
                if (n >> i & 4)
                        tell_event(a);
                else
                        answer(a, &h);
        return a->in.left;
}

static void *be_agent(void *arg)
{
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct agent *a = arg;
        struct frame f;
        ssize_t n = 1;
        bool goes_on = true;

        a->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        while (goes_on && n > 0) {
                struct pollfd p = { .fd = a->fd, .events = POLLIN };

                if (a->silent && poll(&p, 1, SILENT_MS) <= 0)
                        break;
                n = read(a->fd, buf_reserve(&in, 4096), 4096);
                if (n > 0)
                        buf_advance(&in, (size_t)n);
                while (goes_on && frame_peek(&in, &f, NULL) > 0) {
                        goes_on = react(a, &f);
                        frame_consume(&in, &f);
                }
        }
        close(a->fd);
        return NULL;
}

/* --- calls ------------------------------------------------------------------------------------ */

static void use_groups(uint8_t what, int64_t timeout_ms)
{
        char buf[LONG], all[WORLD * LONG];
        size_t len = what >> 2 & (LONG - 1);
        hn_group *g = NULL;
        int pair[] = { 0, 1 };

        switch (what & 3) {
        case 0:
                hn_broadcast_bytes(NULL, buf, len, 1, timeout_ms);
                break;
        case 1:
                hn_all_gather_bytes(NULL, buf, len, all, timeout_ms);
                break;
        case 2:
                hn_group_split(NULL, what >> 4, 1, timeout_ms, &g);
                break;
        default:
                hn_group_create("pair", pair, 2, NULL, timeout_ms, &g);
        }
        hn_group_free(g);
}

static void use_places(uint8_t what)
{
        hn_group *g = NULL;

        for (int i = -1; i <= WORLD; i++) {
                const char *name = hn_hostname_of(i);

                require(!name || strlen(name));
        }
        if (what & 1)
                hn_group_local(&g);
        else if (what & 2)
                hn_role_group(NULL, 0, &g);
        else
                hn_group_leaders(&g);
        hn_group_free(g);
}

static void use_store(uint8_t what, int64_t timeout_ms)
{
        const char *const keys[] = { "a", "b" };
        size_t len = what >> 2 & (LONG - 1);
        hn_store *s = hn_store_default();
        void *value = NULL;
        char buf[LONG];
        int64_t sum;
        int yes;

        switch (what & 7) {
        case 0:
                hn_store_get(s, "a", buf, &len, timeout_ms);
                break;
        case 1:
                if (hn_store_get_alloc(s, "a", &value, &len, timeout_ms) == HN_OK && len)
                        memset(value, 0, len);
                hn_free(value);
                break;
        case 2:
                hn_store_add(s, "a", 1, &sum);
                break;
        case 3:
                hn_store_wait(s, keys, 2, timeout_ms);
                break;
        case 4:
                hn_store_check(s, keys, 2, &yes);
                break;
        case 5:
                hn_store_delete(s, "a", &yes);
                break;
        case 6:
                hn_store_num_keys(s, &len);
                break;
        default:
                hn_store_set(s, "a", "v", 1);
        }
}

static void call(uint8_t what)
{
        int64_t timeout_ms = what & 64 ? 0 : 1000;
        int ranks[4];
        hn_event e = { .size = sizeof(e) };

        switch (what >> 3 & 3) {
        case 0:
                use_store(what, timeout_ms);
                break;
        case 1:
                use_groups((uint8_t)(what ^ what << 3), timeout_ms);
                break;
        case 2:
                use_places(what);
                break;
        default:
                hn_barrier(NULL, timeout_ms);
                hn_health(0);
                require(hn_event_poll(&e, 0) != HN_OK ||
                        (e.kind >= HN_EVENT_RANK_FAILED && e.kind <= HN_EVENT_STOP_REQUESTED));
                hn_progress(1, 2, "a step");
        }
        hn_last_error_ranks(ranks, (int)ARRAY_SIZE(ranks));
}

/* --- the target ------------------------------------------------------------------------------- */

static void remove_socket(void)
{
        unlink(path);
        rmdir(folder);
}

static void listen_once(void)
{
        static const char *const env[][2] = {
                { "HN_RANK", "0" },       { "HN_WORLD_SIZE", "3" },
                { "HN_LOCAL_RANK", "0" }, { "HN_LOCAL_WORLD_SIZE", "2" },
                { "HN_NODE_RANK", "0" },  { "HN_NUM_NODES", "2" }
        };
        struct sockaddr_un at = { .sun_family = AF_UNIX };

        if (listener >= 0)
                return;
        require(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/store", folder);
        strcpy(at.sun_path, path);
        atexit(remove_socket);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        require(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 &&
                listen(listener, 4) == 0);
        setenv("HN_STORE", path, 1);
        for (size_t i = 0; i < ARRAY_SIZE(env); i++)
                setenv(env[i][0], env[i][1], 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t calls = size / 3;
        struct agent a = { .in = READER_INIT(data + calls, size - calls) };

        listen_once();
        if (pthread_create(&a.thread, NULL, be_agent, &a) != 0)
                return 0;
        if (hn_init(NULL) == HN_OK) {
                for (size_t i = 0; i < calls; i++)
                        call(data[i]);
                hn_finalize();
        }
        pthread_join(a.thread, NULL);
        return 0;
}
