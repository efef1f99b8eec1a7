/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pair x_encode() and x_decode() lists the same fields in the same order. An encoder writes
 * the header of a frame with an empty length, the fields, and fills the length in (frame_end()). A
 * decoder reads the body with a struct reader, which records failures, so there is one check at the
 * end, msg_done(): a field that is cut, too long or out of range, or bytes left over, make the
 * message malformed (-EPROTO), and the arrays read so far are freed. Counts are compared with the
 * bytes left (msg_take_array()), so a false count allocates nothing. Any change here needs a new
 * MSG_VERSION.
 */
#include "wire/msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/msg_private.h"

enum {
        MAX_GPUS = 1024,
        MAX_ADDRS = 4096,
        MAX_RANKS = 1 << 16,
};

static const char *const names[256] = {
        [MSG_LAUNCH] = "LAUNCH",
        [MSG_SIGNAL] = "SIGNAL",
        [MSG_STOP] = "STOP",
        [MSG_CREDIT] = "CREDIT",
        [MSG_STDIN] = "STDIN",
        [MSG_PING] = "PING",
        [MSG_BYE] = "BYE",
        [MSG_HELLO] = "HELLO",
        [MSG_STARTED] = "STARTED",
        [MSG_REFUSED] = "REFUSED",
        [MSG_OUTPUT] = "OUTPUT",
        [MSG_EXITED] = "EXITED",
        [MSG_GONE] = "GONE",
        [MSG_PONG] = "PONG",
        [MSG_LOG] = "LOG",
        [MSG_STORE] = "STORE",
        [MSG_ENDPOINT] = "ENDPOINT",
        [MSG_PROBE] = "PROBE",
        [MSG_STATUS_REQUEST] = "STATUS_REQUEST",
        [MSG_ENDPOINT_OPENED] = "ENDPOINT_OPENED",
        [MSG_PROBED] = "PROBED",
        [MSG_STATUS] = "STATUS",
        [MSG_LEAVING] = "LEAVING",
        [MSG_REPORT] = "REPORT",
        [MSG_CHILD_AGENT] = "CHILD_AGENT",
        [MSG_PRUNE] = "PRUNE",
        [MSG_TUNNEL] = "TUNNEL",
        [MSG_OFFER] = "OFFER",
        [MSG_CHUNK] = "CHUNK",
        [MSG_LOOK] = "LOOK",
        [MSG_WANT] = "WANT",
        [MSG_TAKEN] = "TAKEN",
        [MSG_PUSHED] = "PUSHED",
        [MSG_PING_REQUEST] = "PING_REQUEST",
        [MSG_COMMON] = "COMMON",
};

const char *msg_name(uint8_t type)
{
        return names[type] ? names[type] : "?";
}

int msg_done(const struct reader *r, const struct frame *f, struct error *err)
{
        return take_done(r) ? 0 : err_set(err, EPROTO, "malformed %s message", msg_name(f->type));
}

void msg_encode_u32(struct buf *b, uint8_t type, uint32_t v)
{
        size_t mark = frame_begin(b, type);

        put_u32(b, v);
        frame_end(b, mark);
}

int msg_decode_u32(uint32_t *ret, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        *ret = take_u32(&r);
        return msg_done(&r, f, err);
}

void *msg_take_array(struct reader *r, size_t max, size_t size, uint32_t *ret_n)
{
        uint32_t n = take_u32(r);
        void *v;

        /* Every element takes at least one byte, so a huge count causes no huge allocation. */
        if (r->failed || n > max || n > r->left) {
                r->failed = true;
                return NULL;
        }
        v = calloc(n ? n : 1, size);
        if (!v)
                r->failed = true;
        else
                *ret_n = n;
        return v;
}

/* --- HELLO ------------------------------------------------------------------------------------ */

void hello_encode(struct buf *b, const struct hello *m)
{
        size_t mark = frame_begin(b, MSG_HELLO);

        put_u32(b, m->version);
        put_u32(b, m->pid);
        put_u32(b, m->uid);
        put_u32(b, m->cores);
        put_str(b, m->arch);
        put_str(b, m->host);
        put_str(b, m->machine);
        put_u64(b, m->memory);
        put_u64(b, m->nofile);
        put_u64(b, m->mono_ns);
        put_u32(b, m->free_port);
        put_str(b, m->ssh_addr);
        put_u32(b, m->n_gpus);
        for (uint32_t i = 0; i < m->n_gpus; i++) {
                put_u32(b, m->gpus[i].index);
                put_str(b, m->gpus[i].uuid);
                put_str(b, m->gpus[i].name);
        }
        put_u32(b, m->n_addrs);
        for (uint32_t i = 0; i < m->n_addrs; i++) {
                put_str(b, m->addrs[i].iface);
                put_str(b, m->addrs[i].addr);
                put_u32(b, m->addrs[i].prefix);
        }
        frame_end(b, mark);
}

static void take_hello_gpus(struct reader *r, struct hello *m)
{
        m->gpus = msg_take_array(r, MAX_GPUS, sizeof(*m->gpus), &m->n_gpus);
        for (uint32_t i = 0; i < m->n_gpus; i++) {
                m->gpus[i].index = take_u32(r);
                take_str_into(r, m->gpus[i].uuid, sizeof(m->gpus[i].uuid));
                take_str_into(r, m->gpus[i].name, sizeof(m->gpus[i].name));
        }
}

static void take_hello_addrs(struct reader *r, struct hello *m)
{
        m->addrs = msg_take_array(r, MAX_ADDRS, sizeof(*m->addrs), &m->n_addrs);
        for (uint32_t i = 0; i < m->n_addrs; i++) {
                take_str_into(r, m->addrs[i].iface, sizeof(m->addrs[i].iface));
                take_str_into(r, m->addrs[i].addr, sizeof(m->addrs[i].addr));
                m->addrs[i].prefix = take_u32(r);
        }
}

int hello_decode(struct hello *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        m->version = take_u32(&r);
        /* Another version may have another layout: only the number counts then. */
        if (!r.failed && m->version != MSG_VERSION)
                return 0;
        m->pid = take_u32(&r);
        m->uid = take_u32(&r);
        m->cores = take_u32(&r);
        take_str_into(&r, m->arch, sizeof(m->arch));
        take_str_into(&r, m->host, sizeof(m->host));
        take_str_into(&r, m->machine, sizeof(m->machine));
        m->memory = take_u64(&r);
        m->nofile = take_u64(&r);
        m->mono_ns = take_u64(&r);
        m->free_port = take_u32(&r);
        take_str_into(&r, m->ssh_addr, sizeof(m->ssh_addr));
        take_hello_gpus(&r, m);
        take_hello_addrs(&r, m);
        if (msg_done(&r, f, err) == 0)
                return 0;
        hello_finish(m);
        return -EPROTO;
}

void hello_finish(struct hello *m)
{
        free(m->gpus);
        free(m->addrs);
        memset(m, 0, sizeof(*m));
}

/* --- COMMON and LAUNCH ------------------------------------------------------------------------ */

enum { LAUNCH_SET_VISIBLE = 1, LAUNCH_AGENT_STORE = 2 };

static void put_launch_ranks(struct buf *b, const struct launch_order *m)
{
        put_u32(b, m->n_ranks);
        for (uint32_t i = 0; i < m->n_ranks; i++) {
                const struct launch_rank *k = &m->ranks[i];

                put_u32(b, k->rank);
                put_u32(b, k->local_rank);
                put_u32(b, k->n_gpus);
                for (uint32_t g = 0; g < k->n_gpus; g++)
                        put_u32(b, k->gpus[g]);
        }
}

void common_encode(struct buf *b, const struct launch_order *m)
{
        size_t mark = frame_begin(b, MSG_COMMON);

        put_str(b, m->run_id);
        put_u32(b, m->world_size);
        put_u32(b, m->num_nodes);
        put_u32(b, m->restart);
        put_u32(b, m->max_restarts);
        put_u32(b, m->grace_ms);
        put_u32(b, m->window);
        put_u8(b, m->contain);
        put_u8(b, m->gpu_visibility_own);
        put_strv(b, &m->argv);
        put_strv(b, &m->env);
        put_strv(b, &m->unset);
        put_u32(b, m->stdin_rank);
        frame_end(b, mark);
}

void launch_order_encode(struct buf *b, const struct launch_order *m)
{
        size_t mark = frame_begin(b, MSG_LAUNCH);

        put_u32(b, m->node_rank);
        put_str(b, m->master_addr);
        put_u32(b, m->master_port);
        put_u32(b, m->silence_ms);
        put_u8(b, (uint8_t)((m->set_visible ? LAUNCH_SET_VISIBLE : 0) |
                            (m->agent_store ? LAUNCH_AGENT_STORE : 0)));
        put_str(b, m->iface);
        put_str(b, m->cwd);
        put_str(b, m->program);
        put_launch_ranks(b, m);
        frame_end(b, mark);
}

int common_decode(struct launch_order *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        take_str_into(&r, m->run_id, sizeof(m->run_id));
        m->world_size = take_u32(&r);
        m->num_nodes = take_u32(&r);
        m->restart = take_u32(&r);
        m->max_restarts = take_u32(&r);
        m->grace_ms = take_u32(&r);
        m->window = take_u32(&r);
        m->contain = take_u8(&r);
        if (m->contain > CONTAIN_PIDNS)
                r.failed = true;
        m->gpu_visibility_own = take_u8(&r);
        take_strv(&r, MSG_MAX_STRINGS, MSG_MAX_STRING, &m->argv);
        take_strv(&r, MSG_MAX_STRINGS, MSG_MAX_STRING, &m->env);
        take_strv(&r, MSG_MAX_STRINGS, MSG_MAX_STRING, &m->unset);
        m->stdin_rank = take_u32(&r);
        if (msg_done(&r, f, err) == 0)
                return 0;
        launch_order_finish(m);
        return -EPROTO;
}

static void take_launch_ranks(struct reader *r, struct launch_order *m)
{
        m->ranks = msg_take_array(r, MAX_RANKS, sizeof(*m->ranks), &m->n_ranks);
        for (uint32_t i = 0; i < m->n_ranks && !r->failed; i++) {
                struct launch_rank *k = &m->ranks[i];

                k->rank = take_u32(r);
                k->local_rank = take_u32(r);
                k->gpus = msg_take_array(r, MAX_GPUS, sizeof(*k->gpus), &k->n_gpus);
                for (uint32_t g = 0; g < k->n_gpus; g++)
                        k->gpus[g] = take_u32(r);
        }
}

int launch_order_decode(struct launch_order *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);
        uint8_t flags;

        m->node_rank = take_u32(&r);
        take_str_into(&r, m->master_addr, sizeof(m->master_addr));
        m->master_port = take_u32(&r);
        m->silence_ms = take_u32(&r);
        flags = take_u8(&r);
        m->set_visible = flags & LAUNCH_SET_VISIBLE;
        m->agent_store = flags & LAUNCH_AGENT_STORE;
        take_str_into(&r, m->iface, sizeof(m->iface));
        m->cwd = take_str(&r, MSG_MAX_STRING);
        m->program = take_str(&r, MSG_MAX_STRING);
        take_launch_ranks(&r, m);
        if (msg_done(&r, f, err) == 0)
                return 0;
        launch_order_finish(m);
        return -EPROTO;
}

void launch_order_finish(struct launch_order *m)
{
        free(m->cwd);
        free(m->program);
        strv_finish(&m->argv);
        strv_finish(&m->env);
        strv_finish(&m->unset);
        for (uint32_t i = 0; i < m->n_ranks; i++)
                free(m->ranks[i].gpus);
        free(m->ranks);
        memset(m, 0, sizeof(*m));
}

/* --- short messages --------------------------------------------------------------------------- */

void started_encode(struct buf *b, const struct started *m)
{
        size_t mark = frame_begin(b, MSG_STARTED);

        put_u32(b, m->rank);
        put_u32(b, m->pid);
        frame_end(b, mark);
}

int started_decode(struct started *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->rank = take_u32(&r);
        m->pid = take_u32(&r);
        return msg_done(&r, f, err);
}

void refused_encode(struct buf *b, const struct refused *m)
{
        size_t mark = frame_begin(b, MSG_REFUSED);

        put_u32(b, m->rank);
        put_u32(b, m->why);
        put_u32(b, m->error);
        put_str(b, m->text);
        frame_end(b, mark);
}

int refused_decode(struct refused *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->rank = take_u32(&r);
        m->why = take_u32(&r);
        m->error = take_u32(&r);
        take_str_into(&r, m->text, sizeof(m->text));
        return msg_done(&r, f, err);
}

void exited_encode(struct buf *b, const struct exited *m)
{
        size_t mark = frame_begin(b, MSG_EXITED);

        put_u32(b, m->rank);
        put_u32(b, m->pid);
        put_u32(b, m->status);
        put_u64(b, m->mono_ns);
        put_u8(b, m->stopped);
        put_u8(b, m->killed);
        put_str(b, m->oom);
        put_u64(b, m->oom_before);
        put_u64(b, m->oom_after);
        frame_end(b, mark);
}

int exited_decode(struct exited *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->rank = take_u32(&r);
        m->pid = take_u32(&r);
        m->status = take_u32(&r);
        m->mono_ns = take_u64(&r);
        m->stopped = take_u8(&r);
        m->killed = take_u8(&r);
        take_str_into(&r, m->oom, sizeof(m->oom));
        m->oom_before = take_u64(&r);
        m->oom_after = take_u64(&r);
        return msg_done(&r, f, err);
}

void output_encode(struct buf *b, const struct output *m)
{
        size_t mark = frame_begin(b, MSG_OUTPUT);

        put_u32(b, m->rank);
        put_u8(b, m->stream);
        buf_append(b, m->data, m->len);
        frame_end(b, mark);
}

void *output_begin(struct buf *b, const struct output *m, size_t max, size_t *ret_mark)
{
        *ret_mark = frame_begin(b, MSG_OUTPUT);
        put_u32(b, m->rank);
        put_u8(b, m->stream);
        return buf_reserve(b, max);
}

void output_end(struct buf *b, size_t mark, size_t len)
{
        if (!len) {
                buf_truncate(b, mark);
                return;
        }
        buf_advance(b, len);
        frame_end(b, mark);
}

int output_decode(struct output *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->rank = take_u32(&r);
        m->stream = take_u8(&r);
        if (m->stream != MSG_STDOUT && m->stream != MSG_STDERR)
                r.failed = true;
        m->data = take_rest(&r, &m->len);
        return msg_done(&r, f, err);
}

void credit_encode(struct buf *b, const struct credit *m)
{
        size_t mark = frame_begin(b, MSG_CREDIT);

        put_u32(b, m->rank);
        put_u8(b, m->stream);
        put_u32(b, m->bytes);
        frame_end(b, mark);
}

int credit_decode(struct credit *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->rank = take_u32(&r);
        m->stream = take_u8(&r);
        m->bytes = take_u32(&r);
        return msg_done(&r, f, err);
}

void stop_encode(struct buf *b, const struct stop *m)
{
        msg_encode_u32(b, MSG_STOP, m->grace_ms);
}

int stop_decode(struct stop *m, const struct frame *f, struct error *err)
{
        return msg_decode_u32(&m->grace_ms, f, err);
}

void ping_encode(struct buf *b, uint8_t type, const struct ping *m)
{
        size_t mark = frame_begin(b, type);

        put_u64(b, m->head_ns);
        put_u64(b, m->agent_ns);
        frame_end(b, mark);
}

int ping_decode(struct ping *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->head_ns = take_u64(&r);
        m->agent_ns = take_u64(&r);
        return msg_done(&r, f, err);
}

void signal_encode(struct buf *b, uint32_t signo)
{
        msg_encode_u32(b, MSG_SIGNAL, signo);
}

int signal_decode(uint32_t *signo, const struct frame *f, struct error *err)
{
        return msg_decode_u32(signo, f, err);
}

void logline_encode(struct buf *b, const struct logline *m)
{
        size_t mark = frame_begin(b, MSG_LOG);

        put_u8(b, m->level);
        put_str(b, m->text);
        frame_end(b, mark);
}

int logline_decode(struct logline *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->level = take_u8(&r);
        take_str_into(&r, m->text, sizeof(m->text));
        return msg_done(&r, f, err);
}

void leaving_encode(struct buf *b, const char *why)
{
        size_t mark = frame_begin(b, MSG_LEAVING);

        put_str(b, why);
        frame_end(b, mark);
}

int leaving_decode(char why[128], const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        take_str_into(&r, why, 128);
        return msg_done(&r, f, err);
}

static void encode_rank_bytes(struct buf *b, uint8_t type, uint32_t rank, const void *data,
                              size_t len)
{
        size_t mark = frame_begin(b, type);

        put_u32(b, rank);
        buf_append(b, data, len);
        frame_end(b, mark);
}

void stdin_encode(struct buf *b, uint32_t rank, const void *data, size_t len)
{
        encode_rank_bytes(b, MSG_STDIN, rank, data, len);
}

void report_encode(struct buf *b, uint32_t rank, const void *data, size_t len)
{
        encode_rank_bytes(b, MSG_REPORT, rank, data, len);
}

int report_decode(struct output *m, const struct frame *f, struct error *err)
{
        return stdin_decode(m, f, err);
}

int stdin_decode(struct output *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->rank = take_u32(&r);
        m->stream = 0;
        m->data = take_rest(&r, &m->len);
        return msg_done(&r, f, err);
}

void empty_encode(struct buf *b, uint8_t type)
{
        frame_end(b, frame_begin(b, type));
}

void store_encode(struct buf *b, const void *body, size_t len)
{
        size_t mark = frame_begin(b, MSG_STORE);

        buf_append(b, body, len);
        frame_end(b, mark);
}

void store_encode_head(struct buf *b, const void *head, size_t len, size_t more)
{
        size_t mark = frame_begin(b, MSG_STORE);

        buf_append(b, head, len);
        frame_end_before(b, mark, more);
}
