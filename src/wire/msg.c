/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_x() visits the fields of a message in the order of the wire, and msg_functions.h makes its
 * encoder, decoder and destructor. An encoder writes the header of a frame with an empty length,
 * the fields, and fills the length in (frame_end()). A decoder records failures in the codec, so
 * there is one check at the end, msg_done(): a field that is cut, too long or out of range, or
 * bytes left over, make the message malformed (-EPROTO), and what was allocated so far is freed.
 * A release in which a visit has changed has a new MSG_VERSION. tests/lib/protocol.py compares the
 * visits with docs/protocol.md.
 */
#include "wire/msg.h"

#include <stdio.h>
#include <string.h>

#include "wire/bind_policy.h"
#include "wire/msg_functions.h"

/* Limits of counts: above what a job of any size needs, and low enough that a malformed message
 * makes no large allocation. */
enum {
        MAX_GPUS = 1024,
        MAX_PROGRAMS = 4096,
        MAX_ADDRS = 4096,
        MAX_RANKS = 1 << 16,
        MAX_NODES = 1 << 16,
        MAX_NODE_NAME = 256,
        MAX_BLOCKS = 1 << 20, /* of a map: ranks of the job */
};

/* --- types ------------------------------------------------------------------------------------ */

/* A row for each type of wire/msg_type.h, by number. Numbers without a type have no name, no sender
 * and no state, so such a frame is refused everywhere. */
static const struct {
        const char *name;
        uint8_t from, states;
} types[256] = {
#define MSG_ROW(name, number, from, states) [number] = { #name, MSG_FROM_##from, MSG_IN_##states },
        MSG_TYPES(MSG_ROW)
#undef MSG_ROW
};

const char *msg_name(uint8_t type)
{
        return types[type].name ? types[type].name : "?";
}

bool msg_comes_from(uint8_t type, enum msg_from from)
{
        return types[type].from & from;
}

bool msg_comes_in(uint8_t type, enum msg_states state)
{
        return types[type].states & state;
}

int msg_done(const struct codec *c, const struct frame *f, struct error *err)
{
        return take_done(&c->in) ? 0
                                 : err_set(err, EPROTO, "malformed %s message", msg_name(f->type));
}

/* --- HELLO ------------------------------------------------------------------------------------ */

static void code_gpu(struct codec *c, struct msg_gpu *g)
{
        codec_u32(c, &g->index);
        codec_text(c, g->uuid, sizeof(g->uuid));
        codec_text(c, g->name, sizeof(g->name));
}

static void code_addr(struct codec *c, struct msg_addr *a)
{
        codec_text(c, a->iface, sizeof(a->iface));
        codec_text(c, a->addr, sizeof(a->addr));
        codec_u32(c, &a->prefix);
}

/* @infiniband counts devices; with some, a low limit of locked memory is worth a warning. */
static void code_locking(struct codec *c, struct msg_locking *m)
{
        codec_u64(c, &m->memlock);
        codec_u32(c, &m->infiniband);
}

static void code_hello(struct codec *c, struct hello *m)
{
        codec_u32(c, &m->version);
        /* Another version may have another layout: only the number counts then. */
        if (c->op == CODEC_DECODE && !c->in.failed && m->version != MSG_VERSION) {
                c->in.left = 0;
                return;
        }
        codec_u32(c, &m->pid);
        codec_u32(c, &m->uid);
        codec_u32(c, &m->cores);
        codec_text(c, m->arch, sizeof(m->arch));
        codec_text(c, m->host, sizeof(m->host));
        codec_text(c, m->machine, sizeof(m->machine));
        codec_u64(c, &m->memory);
        codec_u64(c, &m->nofile);
        codec_u64(c, &m->mono_ns);
        codec_u32(c, &m->free_port);
        codec_text(c, m->ssh_addr, sizeof(m->ssh_addr));
        code_locking(c, &m->locking);
        CODEC_ARRAY(c, m->gpus, m->n_gpus, MAX_GPUS, code_gpu);
        codec_bool(c, &m->gpus_chosen);
        CODEC_ARRAY(c, m->hidden, m->n_hidden, MAX_GPUS, code_gpu);
        CODEC_ARRAY(c, m->addrs, m->n_addrs, MAX_ADDRS, code_addr);
}

DEFINE_OWNING_MESSAGE(hello, MSG_HELLO)

/* --- COMMON and LAUNCH ------------------------------------------------------------------------ */

/* Bits of the flags of LAUNCH. A byte for eight truths keeps the order of a node short: a head
 * sends thousands. */
enum {
        LAUNCH_SET_VISIBLE = 1,
        LAUNCH_AGENT_STORE = 2,
        LAUNCH_KEEP_DUMPS = 4,
        LAUNCH_PER_NODE = 8,
        LAUNCH_MORE_ORDERS = 16,
        LAUNCH_RANK_PORTS = 32,
        LAUNCH_OTHERS = 64,
        LAUNCH_NEAR_NIC = 128,
};

static void code_compat_node(struct codec *c, struct compat_node *n)
{
        codec_str(c, &n->name, MAX_NODE_NAME);
        codec_u32(c, &n->n_ranks);
        codec_require(c, n->n_ranks && n->n_ranks <= MAX_RANKS);
}

/* Without a family of variables no list of nodes follows. */
static void code_compat(struct codec *c, struct launch_compat *m)
{
        codec_u8(c, &m->family);
        codec_require(c, m->family < COMPAT_FAMILIES);
        if (m->family)
                CODEC_ARRAY(c, m->nodes, m->n_nodes, MAX_NODES, code_compat_node);
}

static void code_launch_port(struct codec *c, struct launch_port *p)
{
        codec_text(c, p->name, sizeof(p->name));
        codec_require(c, port_name_is_valid(p->name, strlen(p->name)));
        codec_u32(c, &p->number);
        codec_require(c, p->number && p->number <= UINT16_MAX);
}

static void code_first_node(struct codec *c, struct launch_first_node *m)
{
        codec_text(c, m->addr, sizeof(m->addr));
        CODEC_ARRAY(c, m->ports, m->n_ports, PORT_NAMES_MAX, code_launch_port);
}

static void code_node_block(struct codec *c, struct node_block *b)
{
        codec_u32(c, &b->node);
        codec_u32(c, &b->n_nodes);
        codec_u32(c, &b->ranks);
}

/* The map is checked against the world by node_map_expand(), not here. */
static void code_mpi_order(struct codec *c, struct mpi_order *m)
{
        codec_u8(c, &m->kind);
        codec_require(c, m->kind < MPI_KINDS);
        CODEC_ARRAY(c, m->map.blocks, m->map.n_blocks, MAX_BLOCKS, code_node_block);
}

static void code_launch_terminal(struct codec *c, struct launch_terminal *m)
{
        codec_u32(c, &m->rank);
        codec_u32(c, &m->rows);
        codec_u32(c, &m->columns);
        codec_text(c, m->term, sizeof(m->term));
}

/* READY_START is known by the start alone, and has no further fields. */
static void code_launch_ready(struct codec *c, struct launch_ready *m)
{
        codec_u8(c, &m->kind);
        codec_require(c, m->kind <= READY_FILE);
        if (m->kind == READY_START)
                return;
        codec_bool(c, &m->is_first_only);
        codec_str(c, &m->port, PORT_NAME_MAX);
        codec_str(c, &m->path, READY_PATH_MAX);
}

static void code_launch_program(struct codec *c, struct launch_program *p)
{
        codec_strv(c, &p->argv, MSG_MAX_STRINGS, MSG_MAX_STRING);
        codec_strv(c, &p->env, MSG_MAX_STRINGS, MSG_MAX_STRING);
        codec_str(c, &p->cwd, MSG_MAX_STRING);
        codec_str(c, &p->role, MSG_MAX_STRING);
        codec_bool(c, &p->arguments.subst);
        codec_text(c, p->arguments.local_rank, sizeof(p->arguments.local_rank));
        codec_strv(c, &p->arguments.wrap, MSG_MAX_STRINGS, MSG_MAX_STRING);
        code_launch_ready(c, &p->ready);
}

static void code_launch_world(struct codec *c, struct launch_world *w)
{
        codec_u32(c, &w->number);
        codec_require(c, w->number < MSG_MAX_WORLDS);
        codec_u32(c, &w->first);
        codec_u32(c, &w->index);
}

/* The fields that are equal on all nodes: encoded once, and sent to each. */
static void code_common(struct codec *c, struct launch_order *m)
{
        codec_text(c, m->run_id, sizeof(m->run_id));
        code_launch_world(c, &m->world);
        codec_u32(c, &m->world_size);
        codec_u32(c, &m->num_nodes);
        codec_u32(c, &m->restart);
        codec_u32(c, &m->max_restarts);
        codec_u32(c, &m->grace_ms);
        codec_u32(c, &m->window);
        codec_u8(c, &m->contain);
        codec_require(c, m->contain <= CONTAIN_PIDNS);
        codec_bool(c, &m->gpu_visibility_own);
        codec_str(c, &m->bind, BIND_TEXT_MAX);
        codec_strv(c, &m->env, MSG_MAX_STRINGS, MSG_MAX_STRING);
        codec_strv(c, &m->unset, MSG_MAX_STRINGS, MSG_MAX_STRING);
        codec_u32(c, &m->stdin_rank);
        code_launch_terminal(c, &m->terminal);
        code_compat(c, &m->compat);
        code_first_node(c, &m->first_node);
        code_mpi_order(c, &m->mpi);
        CODEC_ARRAY(c, m->programs, m->n_programs, MAX_PROGRAMS, code_launch_program);
}

static void code_launch_rank(struct codec *c, struct launch_rank *k)
{
        codec_u32(c, &k->rank);
        codec_u32(c, &k->local_rank);
        codec_u32(c, &k->program);
        codec_u32_array(c, &k->gpus, &k->n_gpus, MAX_GPUS);
}

static void code_launch_rank_ports(struct codec *c, struct launch_rank_ports *p)
{
        CODEC_ARRAY(c, p->v, p->n, PORT_NAMES_MAX, code_launch_port);
}

static void code_launch_other(struct codec *c, struct launch_other *k)
{
        codec_u32(c, &k->rank);
        codec_u32(c, &k->program);
        codec_u32_array(c, &k->gpus, &k->n_gpus, MAX_GPUS);
}

static void code_launch_order(struct codec *c, struct launch_order *m)
{
        /* Optional arrays have a flag in place of a count, and no byte in most orders. */
        uint8_t flags =
                (uint8_t)((m->set_visible ? LAUNCH_SET_VISIBLE : 0) |
                          (m->agent_store ? LAUNCH_AGENT_STORE : 0) |
                          (m->keep_dumps ? LAUNCH_KEEP_DUMPS : 0) |
                          (m->per_node ? LAUNCH_PER_NODE : 0) |
                          (m->more_orders ? LAUNCH_MORE_ORDERS : 0) |
                          (m->n_rank_ports ? LAUNCH_RANK_PORTS : 0) |
                          (m->others.n ? LAUNCH_OTHERS : 0) | (m->near_nic ? LAUNCH_NEAR_NIC : 0));

        codec_u32(c, &m->node_rank);
        codec_text(c, m->master_addr, sizeof(m->master_addr));
        codec_u32(c, &m->master_port);
        codec_u32(c, &m->silence_ms);
        codec_u8(c, &flags);
        if (c->op == CODEC_DECODE) {
                m->set_visible = flags & LAUNCH_SET_VISIBLE;
                m->agent_store = flags & LAUNCH_AGENT_STORE;
                m->keep_dumps = flags & LAUNCH_KEEP_DUMPS;
                m->per_node = flags & LAUNCH_PER_NODE;
                m->more_orders = flags & LAUNCH_MORE_ORDERS;
                m->near_nic = flags & LAUNCH_NEAR_NIC;
        }
        codec_text(c, m->iface, sizeof(m->iface));
        codec_text(c, m->host, sizeof(m->host));
        codec_str(c, &m->cwd, MSG_MAX_STRING);
        codec_bool(c, &m->cwd_optional);
        codec_strv(c, &m->names, MAX_PROGRAMS, MSG_MAX_STRING);
        CODEC_ARRAY(c, m->ranks, m->n_ranks, MAX_RANKS, code_launch_rank);
        if (flags & LAUNCH_RANK_PORTS) {
                CODEC_ARRAY(c, m->rank_ports, m->n_rank_ports, MAX_RANKS, code_launch_rank_ports);
                /* Ports are found by the place of the rank in the order:
                 * launch_order_rank_ports(). */
                codec_require(c, m->n_rank_ports == m->n_ranks);
        }
        if (flags & LAUNCH_OTHERS)
                CODEC_ARRAY(c, m->others.v, m->others.n, MAX_RANKS, code_launch_other);
}

DEFINE_ENCODE(common, launch_order, MSG_COMMON)
DEFINE_ENCODE(launch_order, launch_order, MSG_LAUNCH)

void launch_order_drop_rank_ports(struct launch_order *m)
{
        CODEC_ARRAY(&CODEC_FREEING, m->rank_ports, m->n_rank_ports, MAX_RANKS,
                    code_launch_rank_ports);
        m->rank_ports = NULL;
        m->n_rank_ports = 0;
}

const struct launch_rank_ports *launch_order_rank_ports(const struct launch_order *m,
                                                        const struct launch_rank *r)
{
        return m->n_rank_ports ? &m->rank_ports[r - m->ranks] : NULL;
}

const struct launch_terminal *launch_order_terminal(const struct launch_order *m, uint32_t rank)
{
        return m->terminal.rank == rank ? &m->terminal : NULL;
}

void launch_order_drop_programs(struct launch_order *m)
{
        CODEC_ARRAY(&CODEC_FREEING, m->programs, m->n_programs, MAX_PROGRAMS, code_launch_program);
        m->programs = NULL;
        m->n_programs = 0;
}

/* World 0 has the name of the run alone: jobs with a single world see no suffix. */
void launch_order_world_name(const struct launch_order *m, char to[WORLD_NAME_MAX])
{
        if (m->world.number)
                snprintf(to, WORLD_NAME_MAX, "%s-%u", m->run_id, m->world.number);
        else
                memcpy(to, m->run_id, sizeof(m->run_id));
}

void launch_compat_finish(struct launch_compat *m)
{
        code_compat(&CODEC_FREEING, m);
        memset(m, 0, sizeof(*m));
}

void launch_order_finish(struct launch_order *m)
{
        struct codec c = CODEC_FREEING;

        code_common(&c, m);
        code_launch_order(&c, m);
        memset(m, 0, sizeof(*m));
}

/* @m is not cleared before: a COMMON and a LAUNCH fill different fields of the same order. After a
 * failure the order is empty. */
int launch_order_decode(struct launch_order *m, const struct frame *f, struct error *err)
{
        struct codec c = CODEC_FROM(f->body, f->len);

        if (f->type == MSG_COMMON)
                code_common(&c, m);
        else
                code_launch_order(&c, m);
        if (msg_done(&c, f, err) == 0)
                return 0;
        launch_order_finish(m);
        return -EPROTO;
}

/* --- short messages --------------------------------------------------------------------------- */

static void code_started(struct codec *c, struct started *m)
{
        codec_u32(c, &m->rank);
        codec_u32(c, &m->pid);
}

static void code_refused(struct codec *c, struct refused *m)
{
        codec_u32(c, &m->rank);
        codec_u32(c, &m->why);
        codec_u32(c, &m->error);
        codec_text(c, m->text, sizeof(m->text));
}

/* @oom names the file with the count of kills; the counts of before and after tell whether the
 * kernel has killed a process meanwhile. */
static void code_exited(struct codec *c, struct exited *m)
{
        codec_u32(c, &m->rank);
        codec_u32(c, &m->pid);
        codec_u32(c, &m->status);
        codec_u64(c, &m->mono_ns);
        codec_u8(c, &m->stopped);
        codec_u8(c, &m->killed);
        codec_text(c, m->oom, sizeof(m->oom));
        codec_u64(c, &m->oom_before);
        codec_u64(c, &m->oom_after);
        codec_u8(c, &m->mpi);
        codec_require(c, m->mpi < RANK_MPI_STATES);
}

/* The bytes are lent by the frame, up to its end: no length is needed. */
static void code_output(struct codec *c, struct output *m)
{
        codec_u32(c, &m->rank);
        codec_u8(c, &m->stream);
        codec_require(c, m->stream == MSG_STDOUT || m->stream == MSG_STDERR);
        codec_rest(c, &m->data, &m->len);
}

static void code_dump(struct codec *c, struct dump *m)
{
        codec_u32(c, &m->number);
        codec_u32(c, &m->left);
        codec_u32(c, &m->rank);
        codec_text(c, m->problem, sizeof(m->problem));
        codec_u64(c, &m->size);
        codec_u64(c, &m->at);
        codec_rest(c, &m->data, &m->len);
        /* Number 0 is a dump at the end of an attempt: without an order, neither a count nor a
         * problem follows. */
        codec_require(c, m->number || (!m->left && !*m->problem));
        /* A part lies within the file: the head writes the part at its place unread. */
        codec_require(c, !m->len || (m->len <= MSG_DUMP_PART && m->size <= MSG_MAX_DUMP &&
                                     m->at < m->size && m->len <= m->size - m->at));
        codec_require(c, m->len || !m->at);
}

static void code_nccl_report(struct codec *c, struct nccl_report *m)
{
        codec_u32(c, &m->version);
        codec_text(c, m->path, sizeof(m->path));
}

static void code_credit(struct codec *c, struct credit *m)
{
        codec_u32(c, &m->rank);
        codec_u8(c, &m->stream);
        codec_u32(c, &m->bytes);
}

static void code_ranks_signal(struct codec *c, struct ranks_signal *m)
{
        codec_u32(c, &m->signo);
        codec_u32(c, &m->first);
        codec_u32(c, &m->n);
        codec_u8(c, &m->ends);
}

/* A PING has the head's time only; the PONG repeats it, with the agent's own. */
static void code_ping(struct codec *c, struct ping *m)
{
        codec_u64(c, &m->head_ns);
        codec_u64(c, &m->agent_ns);
}

static void code_logline(struct codec *c, struct logline *m)
{
        codec_u8(c, &m->level);
        codec_u32(c, &m->id);
        codec_text(c, m->text, sizeof(m->text));
}

DEFINE_PLAIN_MESSAGE(launch_terminal, MSG_RESIZE)
DEFINE_PLAIN_MESSAGE(started, MSG_STARTED)
DEFINE_PLAIN_MESSAGE(refused, MSG_REFUSED)
DEFINE_PLAIN_MESSAGE(exited, MSG_EXITED)
DEFINE_PLAIN_MESSAGE(output, MSG_OUTPUT)
DEFINE_PLAIN_MESSAGE(dump, MSG_DUMP)
DEFINE_PLAIN_MESSAGE(nccl_report, MSG_NCCL)
DEFINE_PLAIN_MESSAGE(credit, MSG_CREDIT)
DEFINE_PLAIN_MESSAGE(ranks_signal, MSG_SIGNAL_RANKS)
DEFINE_PLAIN_MESSAGE(logline, MSG_LOG)
DEFINE_DECODE(ping)

void ping_encode(struct buf *b, uint8_t type, const struct ping *m)
{
        size_t mark = frame_begin(b, type);

        code_ping(&CODEC_TO(b), (struct ping *)m);
        frame_end(b, mark);
}

/* The caller reads from a pipe directly behind the head of the frame. NULL = no memory. */
void *output_begin(struct buf *b, const struct output *m, size_t max, size_t *ret_mark)
{
        *ret_mark = frame_begin(b, MSG_OUTPUT);
        put_u32(b, m->rank);
        put_u8(b, m->stream);
        return buf_reserve(b, max);
}

void output_end(struct buf *b, size_t mark, size_t len)
{
        /* Nothing was read: the head of the frame goes away again. */
        if (!len) {
                buf_truncate(b, mark);
                return;
        }
        buf_advance(b, len);
        frame_end(b, mark);
}

void leaving_encode(struct buf *b, const char *why)
{
        size_t mark = frame_begin(b, MSG_LEAVING);

        put_str(b, why);
        frame_end(b, mark);
}

int leaving_decode(char why[128], const struct frame *f, struct error *err)
{
        struct codec c = CODEC_FROM(f->body, f->len);

        codec_text(&c, why, 128);
        return msg_done(&c, f, err);
}

/* A rank and bytes up to the end of the frame: STDIN and messages of that form. */
void rank_bytes_encode(struct buf *b, uint8_t type, uint32_t rank, const void *data, size_t len)
{
        size_t mark = frame_begin(b, type);

        put_u32(b, rank);
        buf_append(b, data, len);
        frame_end(b, mark);
}

int rank_bytes_decode(struct output *m, const struct frame *f, struct error *err)
{
        struct codec c = CODEC_FROM(f->body, f->len);

        m->stream = 0;
        codec_u32(&c, &m->rank);
        codec_rest(&c, &m->data, &m->len);
        return msg_done(&c, f, err);
}

void number_encode(struct buf *b, uint8_t type, uint32_t v)
{
        size_t mark = frame_begin(b, type);

        put_u32(b, v);
        frame_end(b, mark);
}

int number_decode(uint32_t *ret, const struct frame *f, struct error *err)
{
        struct codec c = CODEC_FROM(f->body, f->len);

        codec_u32(&c, ret);
        return msg_done(&c, f, err);
}

void empty_encode(struct buf *b, uint8_t type)
{
        frame_end(b, frame_begin(b, type));
}

/* SIZE_MAX is the mark of world 0, whose frames have no wrapper. */
size_t world_begin(struct buf *b, uint32_t world)
{
        size_t mark;

        if (!world)
                return SIZE_MAX;
        mark = frame_begin(b, MSG_WORLD);
        put_u32(b, world);
        return mark;
}

void world_end(struct buf *b, size_t mark, size_t more)
{
        if (mark != SIZE_MAX)
                frame_end_before(b, mark, more);
}

int world_decode(uint32_t *ret_world, struct frame *ret_inner, const struct frame *f,
                 struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);
        uint32_t len;

        *ret_world = take_u32(&r);
        len = take_u32(&r);
        if (r.failed || !*ret_world || *ret_world >= MSG_MAX_WORLDS || len < 1 || len != f->len - 8)
                return err_set(err, EPROTO, "malformed WORLD message");
        /* The inner frame begins behind the u32 of the world: u32 length, u8 type, body. Its end is
         * the end of the outer frame. */
        *ret_inner = (struct frame){ f->body[8], f->body + 9, len - 1 };
        return 0;
}

/* @more bytes of the body follow from another buffer. */
void store_encode_head(struct buf *b, const void *head, size_t len, size_t more)
{
        size_t mark = frame_begin(b, MSG_STORE);

        buf_append(b, head, len);
        frame_end_before(b, mark, more);
}

void store_encode(struct buf *b, const void *body, size_t len)
{
        store_encode_head(b, body, len, 0);
}
