/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An idle handle of the job's loop opens the links that were asked for, takes a step of the program
 * and moves bytes. What an agent says is appended to its @out; that of the child behind node 1
 * becomes TUNNEL frames in the @out of node 1. What the head says is checked: each frame decodes.
 */
#include "order_agents.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "fuzz.h"
#include "wire/codec.h"
#include "wire/endpoint_msg.h"
#include "wire/msg.h"
#include "wire/push_msg.h"
#include "wire/status_msg.h"
#include "wire/store_msg.h"
#include "wire/tree_msg.h"

struct order_agent {
        struct link link;
        const struct link_callbacks *cb; /* NULL = closed */
        void *ctx;
        bool asked, opened; /* the link */
        bool child;         /* behind node 1 */
        int fd;
        struct buf in, out;
        bool greeted, launched, unclean;
        uint32_t ranks[ORDER_RANKS], n_ranks;
        uint8_t started, exited; /* of ranks[], as bits */
        uint32_t missing;        /* bytes of the pushed file */
};

static struct {
        struct transport transport;
        uv_idle_t idle;
        struct order_agent agents[ORDER_NODES];
        struct reader program;
        struct order_hooks hooks;
        bool over;
        bool ended_well[ORDER_RANKS], said_gone[ORDER_NODES];
} all;

/* The head connects node 2 directly when node 1 is lost: its agent is another one then, and what
 * node 1 still reads does not reach it. */
static bool has_link_of_its_own(const struct order_agent *a)
{
        return a->link.transport;
}

/* --- saying ----------------------------------------------------------------------------------- */

/* Sends @b, whole frames or a greeting, and empties it. */
static void say(struct order_agent *a, struct buf *b)
{
        struct tunnel m = { .child = 2, .data = buf_data(b), .len = buf_len(b) };

        if (a->child)
                tunnel_encode(&all.agents[1].out, &m);
        else
                buf_append(&a->out, buf_data(b), buf_len(b));
        buf_finish(b);
}

/* Sends a message with these fields. */
#define SAY(a, message, ...)                                                                       \
        do {                                                                                       \
                struct buf said = BUF_INIT;                                                        \
                message##_encode(&said, &(struct message){ __VA_ARGS__ });                         \
                say(a, &said);                                                                     \
        } while (0)

static void say_hello(struct order_agent *a)
{
        struct msg_addr addr = { .iface = "eth0", .addr = "10.0.0.1", .prefix = 24 };
        struct hello h = { .version = MSG_VERSION,
                           .cores = 4,
                           .arch = "x86_64",
                           .mono_ns = uv_hrtime(),
                           .free_port = 41731,
                           .addrs = &addr,
                           .n_addrs = 1 };
        struct buf b = BUF_INIT;

        addr.addr[7] = (char)('1' + (a - all.agents));
        if (!a->greeted)
                buf_appends(&b, MSG_MAGIC);
        a->greeted = true;
        hello_encode(&b, &h);
        say(a, &b);
}

static void say_number(struct order_agent *a, uint8_t type, uint32_t v)
{
        struct buf b = BUF_INIT;

        number_encode(&b, type, v);
        say(a, &b);
}

static void say_empty(struct order_agent *a, uint8_t type)
{
        struct buf b = BUF_INIT;

        all.said_gone[a - all.agents] |= type == MSG_GONE;
        empty_encode(&b, type);
        say(a, &b);
}

static void say_exited(struct order_agent *a, uint32_t rank, uint32_t status)
{
        if (!status && rank < ORDER_RANKS && rank / 2 == (uint32_t)(a - all.agents))
                all.ended_well[rank] |= !all.said_gone[a - all.agents];
        SAY(a, exited, .rank = rank, .pid = 7, .status = status, .mono_ns = uv_hrtime());
}

static void say_output(struct order_agent *a, uint32_t rank, uint8_t stream, size_t len)
{
        SAY(a, output, rank, stream, (const unsigned char *)"hello\r\n\033[1mx\n", len);
}

static void say_store(struct order_agent *a, const struct store_request *r)
{
        struct buf body = BUF_INIT, b = BUF_INIT;

        store_request_encode(&body, r);
        store_encode(&b, buf_data(&body), buf_len(&body));
        buf_finish(&body);
        say(a, &b);
}

static void say_want(struct order_agent *a, uint32_t holder, uint32_t entry)
{
        SAY(a, push_want, .holder = holder, .entries = &entry, .n = holder == PUSH_NO_NODE);
}

static void say_pushed(struct order_agent *a, uint32_t error)
{
        SAY(a, pushed, .error = error, .folder = "/tmp/pushed");
}

static void say_opened(struct order_agent *a, uint32_t port)
{
        SAY(a, endpoint_opened, .port = port, .text = "why");
}

static void say_ports(struct order_agent *a, uint32_t n)
{
        uint32_t numbers[PORT_NUMBERS_MAX] = { 0 };

        n %= PORT_NUMBERS_MAX + 1;
        for (uint32_t i = 0; i < n; i++)
                numbers[i] = 40000 + i;
        SAY(a, ports_held, numbers, n, { n ? '\0' : '?' });
}

static void say_probed(struct order_agent *a, uint32_t n, uint32_t error)
{
        struct probe_result results[ENDPOINT_CANDIDATES_MAX] = { 0 };

        for (uint32_t i = 0; i < n; i++)
                results[i] = (struct probe_result){ .error = error, .iface = "eth0", .us = 5 };
        SAY(a, probed, results, n);
}

static void say_status(struct order_agent *a, uint32_t number, uint32_t rank)
{
        struct node_status_rank r = { .rank = rank, .state = 'S', .seen_ms = 1, .wait.op = "GET" };
        struct node_status_conn c = { .addr = "10.0.0.2", .port = 5 };

        SAY(a, node_status, .number = number, .ranks = &r, .n_ranks = 1, .conns = &c, .n_conns = 1);
}

static void say_tunnel(struct order_agent *a, uint32_t child, uint8_t kind, uint32_t number)
{
        bool has_text = kind == TUNNEL_BYTES || kind == TUNNEL_NOISE || kind == TUNNEL_FAILED;

        SAY(a, tunnel, .child = child, .kind = kind, .number = number,
            .offset = (uint64_t)number << 32, .data = (const unsigned char *)"ssh says no",
            .len = has_text ? number % 12 : 0);
}

/* --- honest answers --------------------------------------------------------------------------- */

static void take_launch(struct order_agent *a, const struct frame *f)
{
        CLEANUP(launch_order_finish) struct launch_order m = { .world_size = 0 };

        require(launch_order_decode(&m, f, NULL) == 0 && m.n_ranks <= ORDER_RANKS);
        a->launched = true;
        a->started = a->exited = 0;
        a->n_ranks = m.n_ranks;
        for (uint32_t i = 0; i < m.n_ranks; i++) {
                a->ranks[i] = m.ranks[i].rank;
                SAY(a, started, .rank = a->ranks[i], .pid = 7);
        }
}

static void say_chained(struct order_agent *a, const struct chain_order *m, uint8_t what,
                        uint32_t position)
{
        SAY(a, chain_report, .number = m->number, .stream = m->stream, .what = what,
            .position = position);
}

static void take_offer(struct order_agent *a, const struct frame *f)
{
        CLEANUP(push_offer_finish) struct push_offer m;

        require(push_offer_decode(&m, f, NULL) == 0);
        for (uint32_t i = 0; i < m.manifest.n; i++) {
                if (m.manifest.v[i].kind != PUSH_FILE)
                        continue;
                a->missing = (uint32_t)m.manifest.v[i].size;
                say_want(a, PUSH_NO_NODE, i);
        }
}

static void take_pack(struct order_agent *a, const struct frame *f)
{
        struct push_pack m;
        size_t len;

        require(push_pack_decode(&m, f, NULL) == 0);
        len = push_pack_bytes(&m);
        push_pack_finish(&m);
        say_number(a, MSG_TAKEN, (uint32_t)(FRAME_HEADER + f->len));
        a->missing -= (uint32_t)MIN(len, (size_t)a->missing);
        if (!a->missing)
                say_pushed(a, 0);
}

static void take_tunnel(struct order_agent *a, const struct frame *f)
{
        struct order_agent *child = &all.agents[2];
        struct tunnel m;

        require(tunnel_decode(&m, f, NULL) == 0 && m.child == 2);
        if (m.kind == TUNNEL_BYTES) {
                buf_append(&child->in, m.data, m.len);
                say_tunnel(a, 2, TUNNEL_TOOK, (uint32_t)m.len);
        } else if (m.kind == TUNNEL_COMMON) {
                say_tunnel(a, 2, TUNNEL_TOOK, m.number);
        }
}

static void take_common_answer(struct order_agent *a, const struct frame *f)
{
        struct probe_order probe;
        struct chain_order chain;
        struct ping ping;
        struct buf b = BUF_INIT;
        uint32_t number;

        switch (f->type) {
        case MSG_PING:
                require(ping_decode(&ping, f, NULL) == 0);
                ping.agent_ns = uv_hrtime();
                ping_encode(&b, MSG_PONG, &ping);
                if (!a->child) /* its parent keeps it */
                        say(a, &b);
                buf_finish(&b);
                break;
        case MSG_PROBE:
                require(probe_order_decode(&probe, f, NULL) == 0);
                say_probed(a, (uint32_t)probe.addrs.n, 0);
                probe_order_finish(&probe);
                break;
        case MSG_PACK:
                take_pack(a, f);
                break;
        case MSG_CHAIN:
                require(chain_order_decode(&chain, f, NULL) == 0);
                if (chain.what == CHAIN_LISTEN || chain.what == CHAIN_LEAVE)
                        say_chained(a, &chain, CHAINED_LISTENS, 0);
                chain_order_finish(&chain);
                break;
        case MSG_PORTS:
                require(number_decode(&number, f, NULL) == 0);
                say_ports(a, number);
                break;
        case MSG_STATUS_REQUEST:
                require(number_decode(&number, f, NULL) == 0);
                say_status(a, number, a->n_ranks ? a->ranks[0] : 0);
                break;
        default:
                break;
        }
}

static void answer_frame(struct order_agent *a, const struct frame *f)
{
        switch (f->type) {
        case MSG_LAUNCH:
                take_launch(a, f);
                break;
        case MSG_ENDPOINT:
                say_opened(a, 41731);
                break;
        case MSG_OFFER:
                take_offer(a, f);
                break;
        case MSG_LOOK:
                say_pushed(a, 0);
                break;
        case MSG_CHILD_AGENT:
                if (has_link_of_its_own(&all.agents[2]))
                        break;
                all.agents[2].child = true;
                say_hello(&all.agents[2]);
                break;
        case MSG_PRUNE:
                say_tunnel(a, 2, TUNNEL_ENDED, 0);
                break;
        case MSG_TUNNEL:
                if (!has_link_of_its_own(&all.agents[2]))
                        take_tunnel(a, f);
                break;
        case MSG_STOP:
                for (uint32_t i = 0; i < a->n_ranks && a->launched; i++)
                        if (!(a->exited & 1 << i))
                                say_exited(a, a->ranks[i], 15);
                if (a->launched)
                        say_empty(a, MSG_GONE);
                a->launched = false;
                break;
        default:
                take_common_answer(a, f);
        }
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Takes all that the head has said. */
static void be_honest(struct order_agent *a)
{
        struct frame f;
        int r;

        while ((r = frame_peek(&a->in, &f, NULL)) > 0) {
                answer_frame(a, &f);
                frame_consume(&a->in, &f);
        }
        require(r >= 0);
}

static void end_rank(struct order_agent *a, uint8_t how)
{
        uint32_t i = how & 1;

        if (!a->launched || i >= a->n_ranks || a->exited & 1 << i)
                return;
        a->exited |= (uint8_t)(1 << i);
        say_exited(a, a->ranks[i], (how & 0x70) == 0x70 ? 9 : (uint32_t)(how & 2) << 8);
        if (a->exited != (1 << a->n_ranks) - 1)
                return;
        say_empty(a, MSG_GONE);
        a->launched = false;
}

static void use_store(struct order_agent *a, uint8_t how)
{
        struct store_request r = { .client = 1 + (how & 1),
                                   .tag = how >> 4,
                                   .key = bytes_of(how & 2 ? "a" : "b"),
                                   .value = bytes_of("value") };
        static const uint8_t ops[] = { STORE_HELLO, STORE_SET,   STORE_ADD,      STORE_GET,
                                       STORE_PUSH,  STORE_ABORT, STORE_PROGRESS, STORE_BARRIER };

        if (!a->launched)
                return;
        r.op = ops[how >> 2 & 7];
        r.number = r.op == STORE_HELLO ? a->ranks[how & 1 ? a->n_ranks - 1 : 0] : 3;
        say_store(a, &r);
}

static void speak(struct order_agent *a, uint8_t how)
{
        if (how & 1 && a->launched && !(a->exited & 1)) {
                say_output(a, a->ranks[0], MSG_STDOUT, how % 14 + 1);
                return;
        }
        SAY(a, logline, .level = how, .text = "a line");
}

/* Relays, and a liar's ranks and tags. */
static void lie_to_store(struct order_agent *a)
{
        uint32_t ranks[] = { take_u8(&all.program) % 8, take_u8(&all.program) % 8 };
        struct bytes keys[] = { bytes_of("a"), bytes_of("b") };
        struct store_request r = { .client = take_u8(&all.program) % 4,
                                   .op = take_u8(&all.program) % 72,
                                   .tag = take_u8(&all.program) % 8,
                                   .number = (int8_t)take_u8(&all.program),
                                   .key = keys[0],
                                   .value = bytes_of("1"),
                                   .keys = keys,
                                   .values = keys,
                                   .n_keys = 2,
                                   .ranks = ranks,
                                   .n_ranks = take_u8(&all.program) % 3 };

        say_store(a, &r);
}

/* A message about a rank; false: another type. */
static bool lie_about_rank(struct order_agent *a, uint8_t type, uint32_t rank, uint8_t x, uint8_t y)
{
        uint32_t number = y & 1 ? y : (uint32_t)y << 20;
        struct buf b = BUF_INIT;

        switch (type) {
        case MSG_STARTED:
                SAY(a, started, rank, number);
                return true;
        case MSG_REFUSED:
                SAY(a, refused, rank, y % 6, 2, "refused");
                return true;
        case MSG_OUTPUT:
                say_output(a, rank, 1 + (y & 1 && rank), y % 14);
                return true;
        case MSG_EXITED:
                say_exited(a, rank, (uint32_t)y << (x >> 3 & 24));
                return true;
        case MSG_CREDIT:
                SAY(a, credit, rank, 0, number);
                return true;
        case MSG_STATUS:
                say_status(a, y % 4, rank);
                return true;
        case MSG_REPORT:
                rank_bytes_encode(&b, MSG_REPORT, rank, "{\"message\": \"no\"}", 17);
                say(a, &b);
                return true;
        default:
                return false;
        }
}

/* A message of any kind with any numbers. */
static void lie(struct order_agent *a, uint8_t type)
{
        uint8_t x = take_u8(&all.program), y = take_u8(&all.program);
        uint32_t number = y & 1 ? y : (uint32_t)y << 20;
        struct buf b = BUF_INIT;

        if (lie_about_rank(a, type, x == 255 ? MSG_NO_RANK : x % 8, x, y))
                return;
        switch (type) {
        case MSG_HELLO:
                say_hello(a);
                break;
        case MSG_PONG:
                ping_encode(&b, MSG_PONG, &(struct ping){ (uint64_t)x << 56, (uint64_t)y << 56 });
                say(a, &b);
                break;
        case MSG_ENDPOINT_OPENED:
                say_opened(a, y & 1 ? number << 8 : y);
                break;
        case MSG_PROBED:
                say_probed(a, x % 4, y % 3);
                break;
        case MSG_PORTS_HELD:
                say_ports(a, y % 4);
                break;
        case MSG_LEAVING:
                leaving_encode(&b, "somebody");
                say(a, &b);
                break;
        case MSG_WANT:
                say_want(a, y & 1 ? PUSH_NO_NODE : y % 5, x % 3);
                break;
        case MSG_TAKEN:
                say_number(a, MSG_TAKEN, number);
                break;
        case MSG_CHAINED:
                say_chained(a, &(struct chain_order){ .number = y, .stream = x }, (uint8_t)(y % 6),
                            number);
                break;
        case MSG_PUSHED:
                say_pushed(a, y % 3 ? y : 0);
                break;
        case MSG_STORE:
                lie_to_store(a);
                break;
        case MSG_DUMP:
                SAY(a, dump, .number = y >> 6, .rank = x, .size = 4 + y % 3,
                    .at = (uint64_t)(y % 3), .data = (const unsigned char *)"dump", .len = y & 4);
                break;
        case MSG_TUNNEL:
                say_tunnel(a, x % 4, y % (TUNNEL_KINDS + 1), number);
                break;
        default:
                say_empty(a, type); /* GONE, PING_REQUEST, and unknown ones */
        }
}

static void hang_up(struct order_agent *a)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_ENDED, .fact = "hung up" };

        a->fd = fd_close(a->fd);
        buf_finish(&a->out);
        if (a->opened && a->cb && a->asked)
                a->cb->ended(a->ctx, &why);
        a->asked = false;
}

static void take_step(void)
{
        static const uint8_t types[] = {
                MSG_HELLO,        MSG_STARTED,    MSG_REFUSED, MSG_OUTPUT,  MSG_EXITED,
                MSG_GONE,         MSG_PONG,       MSG_CREDIT,  MSG_STATUS,  MSG_ENDPOINT_OPENED,
                MSG_PROBED,       MSG_LEAVING,    MSG_REPORT,  MSG_WANT,    MSG_TAKEN,
                MSG_PUSHED,       MSG_STORE,      MSG_TUNNEL,  MSG_LAUNCH,  99,
                MSG_PING_REQUEST, MSG_PORTS_HELD, MSG_DUMP,    MSG_CHAINED,
        };
        uint8_t op = take_u8(&all.program), what = op >> 2;
        struct order_agent *a = &all.agents[(op & 3) % ORDER_NODES];
        static const int turn_only = 40;

        if (what < 12) {
                be_honest(a);
                if (what == 8 && !a->greeted && !a->child && a->opened)
                        say_hello(a);
                else if (what == 9)
                        end_rank(a, take_u8(&all.program));
                else if (what == 10)
                        use_store(a, take_u8(&all.program));
                else if (what == 11 && a->greeted)
                        speak(a, take_u8(&all.program));
        } else if (what < 12 + (int)ARRAY_SIZE(types)) {
                a->unclean = true;
                lie(a, types[what - 12]);
        } else if (what == turn_only - 1) {
                a->unclean = true;
                hang_up(a);
        } else if (what >= turn_only && what < turn_only + 8) {
                all.hooks.happen((uint8_t)what);
        }
}

/* --- the loop --------------------------------------------------------------------------------- */

static void open_link(struct order_agent *a)
{
        int pair[2];

        require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
        a->opened = true;
        a->fd = pair[1];
        if (a->cb)
                a->cb->opened(a->ctx, pair[0]);
        else
                close(pair[0]);
        if (all.over)
                hang_up(a);
}

static void move_bytes(struct order_agent *a)
{
        ssize_t n = 0;
        char *to;

        if (a->fd < 0)
                return;
        if (buf_len(&a->out))
                n = send(a->fd, buf_data(&a->out), buf_len(&a->out), MSG_NOSIGNAL);
        if (n > 0)
                buf_consume(&a->out, (size_t)n);
        to = buf_reserve(&a->in, 65536);
        n = read(a->fd, to, 65536);
        if (n > 0)
                buf_advance(&a->in, (size_t)n);
}

static void end_program(void)
{
        all.over = true;
        all.hooks.over();
        for (int i = 0; i < ORDER_NODES; i++)
                if (!all.agents[i].child)
                        hang_up(&all.agents[i]);
}

static void on_idle(uv_idle_t *idle UNUSED)
{
        for (int i = 0; i < ORDER_NODES; i++)
                if (all.agents[i].asked && !all.agents[i].opened)
                        open_link(&all.agents[i]);
        if (!all.over && all.program.left)
                take_step();
        else if (!all.over)
                end_program();
        for (int i = 0; i < ORDER_NODES; i++)
                move_bytes(&all.agents[i]);
}

/* --- the transport ---------------------------------------------------------------------------- */

static struct link *open_order_link(struct transport *t, const struct link_target *to,
                                    const struct link_callbacks *cb, void *ctx,
                                    struct error *err UNUSED)
{
        struct order_agent *a = &all.agents[to->number];

        fd_close(a->fd);
        buf_finish(&a->in);
        buf_finish(&a->out);
        *a = (struct order_agent){
                .link.transport = t, .cb = cb, .ctx = ctx, .asked = true, .fd = -1, .unclean = true
        };
        a->unclean = all.over;
        return &a->link;
}

static void close_order_link(struct link *l)
{
        struct order_agent *a = container_of(l, struct order_agent, link);

        a->cb = NULL;
        a->asked = false;
}

static void destroy_order_transport(struct transport *t UNUSED)
{
        uv_close((uv_handle_t *)&all.idle, NULL);
}

static struct transport *create_order_transport(void *ctx UNUSED, uv_loop_t *loop,
                                                const struct transport_maker *other UNUSED,
                                                struct error *err UNUSED)
{
        static const struct transport_ops ops = { .open = open_order_link,
                                                  .close = close_order_link,
                                                  .destroy = destroy_order_transport };

        all.transport.ops = &ops;
        uv_idle_init(loop, &all.idle);
        uv_idle_start(&all.idle, on_idle);
        return &all.transport;
}

const struct transport_maker order_agents_transport = { create_order_transport, NULL };

void order_agents_begin(const uint8_t *data, size_t size, struct order_hooks hooks)
{
        memset(&all, 0, sizeof(all));
        all.program = (struct reader)READER_INIT(data, size);
        all.hooks = hooks;
        for (int i = 0; i < ORDER_NODES; i++)
                all.agents[i].fd = -1;
}

void order_agents_end(void)
{
        for (int i = 0; i < ORDER_NODES; i++) {
                fd_close(all.agents[i].fd);
                buf_finish(&all.agents[i].in);
                buf_finish(&all.agents[i].out);
        }
}

/* Node 2 has no link of its own in the tree. */
bool order_agent_is_clean(int node)
{
        const struct order_agent *a = &all.agents[node];

        return !a->unclean && (a->asked || !all.agents[1].unclean);
}

bool order_rank_ended_well(int rank)
{
        return all.ended_well[rank];
}

void order_agents_forget_ends(void)
{
        memset(all.ended_well, 0, sizeof(all.ended_well));
        memset(all.said_gone, 0, sizeof(all.said_gone));
}
