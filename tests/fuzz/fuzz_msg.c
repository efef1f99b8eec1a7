/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte is the message's type, the rest its body. What a decoder accepts must survive
 * another round: encoding it, decoding that and encoding again gives the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/bind_msg.h"
#include "wire/check_msg.h"
#include "wire/endpoint_msg.h"
#include "wire/measure_msg.h"
#include "wire/msg.h"
#include "wire/push_msg.h"
#include "wire/status_msg.h"
#include "wire/trace/trace.h"
#include "wire/tree_msg.h"
#include "wire/warm_msg.h"

/* Decodes @f and, if that works, appends the encoded message to @to. */
#define AGAIN(type)                                                                                \
        static int type##_again(const struct frame *f, struct buf *to)                             \
        {                                                                                          \
                struct type m;                                                                     \
                struct error err;                                                                  \
                int r = type##_decode(&m, f, &err);                                                \
                                                                                                   \
                if (r == 0)                                                                        \
                        type##_encode(to, &m);                                                     \
                return r;                                                                          \
        }

AGAIN(dump)
AGAIN(nccl_report)
AGAIN(launch_terminal)
AGAIN(ranks_signal)
AGAIN(started)
AGAIN(refused)
AGAIN(exited)
AGAIN(output)
AGAIN(credit)
AGAIN(logline)
AGAIN(endpoint_opened)
AGAIN(tunnel)
AGAIN(push_look)
AGAIN(chain_report)
AGAIN(pushed)

static int hello_again(const struct frame *f, struct buf *to)
{
        struct hello m;
        struct error err;
        int r = hello_decode(&m, f, &err);

        if (r == 0 && m.version == MSG_VERSION)
                hello_encode(to, &m);
        if (r == 0)
                hello_finish(&m);
        return r;
}

/* Of types that own memory. */
#define AGAIN_OWNED(type)                                                                          \
        static int type##_again(const struct frame *f, struct buf *to)                             \
        {                                                                                          \
                struct type m;                                                                     \
                struct error err;                                                                  \
                int r = type##_decode(&m, f, &err);                                                \
                                                                                                   \
                if (r == 0) {                                                                      \
                        type##_encode(to, &m);                                                     \
                        type##_finish(&m);                                                         \
                }                                                                                  \
                return r;                                                                          \
        }

/* The halves of an order fill what they find. */
#define AGAIN_HALF(half)                                                                           \
        static int half##_again(const struct frame *f, struct buf *to)                             \
        {                                                                                          \
                struct launch_order m = { 0 };                                                     \
                struct error err;                                                                  \
                int r = launch_order_decode(&m, f, &err);                                          \
                                                                                                   \
                if (r == 0)                                                                        \
                        half##_encode(to, &m);                                                     \
                launch_order_finish(&m);                                                           \
                return r;                                                                          \
        }

AGAIN_HALF(common)
AGAIN_HALF(launch_order)
AGAIN_OWNED(endpoint_order)
AGAIN_OWNED(ports_held)
AGAIN_OWNED(probe_order)
AGAIN_OWNED(probed)
AGAIN_OWNED(owners_request)
AGAIN_OWNED(owners)
AGAIN_OWNED(node_status)
AGAIN_OWNED(inspect_order)
AGAIN_OWNED(inspected)
AGAIN_OWNED(bind_query)
AGAIN_OWNED(bound)
AGAIN_OWNED(ras_reply)
AGAIN(node_facts)
AGAIN(warmed)
AGAIN_OWNED(sample)
AGAIN_OWNED(check_order)
AGAIN_OWNED(checked)
AGAIN_OWNED(measure_order)
AGAIN_OWNED(measured)
AGAIN_OWNED(warm_order)
AGAIN_OWNED(child_agent_order)
AGAIN_OWNED(push_offer)
AGAIN_OWNED(push_pack)
AGAIN_OWNED(chain_order)
AGAIN_OWNED(push_want)
AGAIN(stage_order)
AGAIN_OWNED(staged)
AGAIN_OWNED(pull_order)
AGAIN_OWNED(pulled)

static int ping_again(const struct frame *f, struct buf *to)
{
        struct ping m;
        struct error err;
        int r = ping_decode(&m, f, &err);

        if (r == 0)
                ping_encode(to, f->type, &m);
        return r;
}

static int number_again(const struct frame *f, struct buf *to)
{
        uint32_t number;
        struct error err;
        int r = number_decode(&number, f, &err);

        if (r == 0)
                number_encode(to, f->type, number);
        return r;
}

/* The records of a piece, too: as many as are well-formed. */
static int recorded_again(const struct frame *f, struct buf *to)
{
        struct buf piece = BUF_INIT;
        struct trace_record record;
        struct trace_reader t;
        struct recorded m;
        struct error err;
        uint64_t before;
        int r = recorded_decode(&m, f, &err);

        if (r < 0)
                return r;
        if (trace_open(&t, m.piece, m.len)) {
                before = t.us;
                trace_begin(&piece, before);
                while (trace_next(&t, &record)) {
                        trace_put(&piece, before, &record);
                        before = record.us;
                }
        }
        m.piece = buf_data(&piece);
        m.len = MIN(buf_len(&piece), (size_t)TRACE_PIECE);
        recorded_encode(to, &m);
        buf_finish(&piece);
        return 0;
}

static int leaving_again(const struct frame *f, struct buf *to)
{
        char why[128];
        struct error err;
        int r = leaving_decode(why, f, &err);

        if (r == 0)
                leaving_encode(to, why);
        return r;
}

static int rank_bytes_again(const struct frame *f, struct buf *to)
{
        struct output m;
        struct error err;
        int r = rank_bytes_decode(&m, f, &err);

        if (r == 0)
                rank_bytes_encode(to, f->type, m.rank, m.data, m.len);
        return r;
}

static int (*const again[256])(const struct frame *f, struct buf *to) = {
        [MSG_LAUNCH] = launch_order_again,
        [MSG_SIGNAL] = number_again,
        [MSG_STOP] = number_again,
        [MSG_CREDIT] = credit_again,
        [MSG_STDIN] = rank_bytes_again,
        [MSG_RESIZE] = launch_terminal_again,
        [MSG_SIGNAL_RANKS] = ranks_signal_again,
        [MSG_PING] = ping_again,
        [MSG_HELLO] = hello_again,
        [MSG_STARTED] = started_again,
        [MSG_REFUSED] = refused_again,
        [MSG_OUTPUT] = output_again,
        [MSG_EXITED] = exited_again,
        [MSG_PONG] = ping_again,
        [MSG_LOG] = logline_again,
        [MSG_ENDPOINT] = endpoint_order_again,
        [MSG_PROBE] = probe_order_again,
        [MSG_STATUS_REQUEST] = number_again,
        [MSG_ENDPOINT_OPENED] = endpoint_opened_again,
        [MSG_PROBED] = probed_again,
        [MSG_STATUS] = node_status_again,
        [MSG_INSPECT] = inspect_order_again,
        [MSG_INSPECTED] = inspected_again,
        [MSG_BIND] = bind_query_again,
        [MSG_BOUND] = bound_again,
        [MSG_RAS] = ras_reply_again,
        [MSG_FACTS] = node_facts_again,
        [MSG_CHECK] = check_order_again,
        [MSG_CHECKED] = checked_again,
        [MSG_MEASURE] = measure_order_again,
        [MSG_MEASURED] = measured_again,
        [MSG_WARM] = warm_order_again,
        [MSG_WARMED] = warmed_again,
        [MSG_SAMPLE] = number_again,
        [MSG_SAMPLED] = sample_again,
        [MSG_RECORD] = number_again,
        [MSG_RECORDED] = recorded_again,
        [MSG_RANK_READY] = number_again,
        [MSG_LEAVING] = leaving_again,
        [MSG_REPORT] = rank_bytes_again,
        [MSG_DUMP] = dump_again,
        [MSG_NCCL] = nccl_report_again,
        [MSG_CHILD_AGENT] = child_agent_order_again,
        [MSG_PRUNE] = number_again,
        [MSG_TUNNEL] = tunnel_again,
        [MSG_OFFER] = push_offer_again,
        [MSG_PACK] = push_pack_again,
        [MSG_CHAIN] = chain_order_again,
        [MSG_CHAINED] = chain_report_again,
        [MSG_LOOK] = push_look_again,
        [MSG_WANT] = push_want_again,
        [MSG_STAGE] = stage_order_again,
        [MSG_STAGED] = staged_again,
        [MSG_TAKEN] = number_again,
        [MSG_PUSHED] = pushed_again,
        [MSG_PULL] = pull_order_again,
        [MSG_PULLED] = pulled_again,
        [MSG_COMMON] = common_again,
        [MSG_PORTS] = number_again,
        [MSG_PORTS_HELD] = ports_held_again,
        [MSG_OWNERS_REQUEST] = owners_request_again,
        [MSG_OWNERS] = owners_again,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(buf_finish) struct buf once = BUF_INIT, twice = BUF_INIT;
        struct frame f;
        struct error err;

        if (!size || !again[data[0]])
                return 0;
        f = (struct frame){ .type = data[0], .body = data + 1, .len = size - 1 };
        if (again[f.type](&f, &once) == 0 && buf_len(&once)) {
                require(frame_peek(&once, &f, &err) == 1 && again[f.type](&f, &twice) == 0);
                require(buf_len(&once) == buf_len(&twice) &&
                        !memcmp(buf_data(&once), buf_data(&twice), buf_len(&once)));
        }
        return 0;
}
