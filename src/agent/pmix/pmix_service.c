/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of the helper is dispatched by the table in on_helper_frame(), with the number of the
 * rank checked first: only ranks of this node speak through it. A fence gathers the values of all
 * nodes in a buffer, which goes back to the helper; its number is the helper's. Failures of the
 * store end a fence or a request with a PMIx error, and the ranks with it.
 *
 * A rank that has begun PMIx has joined the store, for --start-timeout and the table of ranks; its
 * client in the relay also carries an abort, which names the rank.
 */
#include "agent/pmix/pmix_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/pmi/fence.h"
#include "agent/pmix/direct_modex.h"
#include "agent/pmix/pmix_describe.h"
#include "agent/pmix/pmix_helper.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/helper/pmix_msg.h"

enum {
        /* Numbers of PMIx; src/carried/pmix/pmix_abi.h is the helper's. */
        FENCE_FAILED = -61, /* PMIX_ERR_LOST_CONNECTION */
        NO_SUCH_RANK = -46, /* PMIX_ERR_NOT_FOUND */
        FENCES_MAX = 1024,  /* under way */
};

struct pmix_rank {
        uint32_t rank;
        bool begun, finalized; /* as the helper says; a rank may begin again */
        struct strv env;
        struct relay_client *client; /* NULL until the rank has begun */
};

struct pmix_fence {
        struct pmix_service *service;
        uint32_t id;
        bool is_world; /* of all ranks of the job */
        uint64_t since_ns;
        struct buf values;
};

struct pmix_service {
        struct pmix_service_ops ops;
        void *ctx;
        struct relay *relay;
        struct pmix_helper *helper;
        struct fence *fence;
        struct direct_modex *modex;
        struct pmix_fence **fences; /* under way */
        size_t n_fences, cap;
        uint32_t *node_of_rank, world_size; /* of all ranks of the job */
        struct pmix_rank *ranks;            /* of this node */
        uint32_t n_ranks;
        bool ready;
};

static struct pmix_rank *find_pmix_rank(const struct pmix_service *p, uint32_t rank)
{
        for (uint32_t i = 0; i < p->n_ranks; i++)
                if (p->ranks[i].rank == rank)
                        return &p->ranks[i];
        return NULL;
}

static void send_note(struct pmix_service *p, uint8_t type, const struct pmix_note *m)
{
        pmix_note_encode(pmix_helper_out(p->helper), type, m);
        pmix_helper_flush(p->helper);
}

/* --- what the helper tells of ranks ----------------------------------------------------------- */

/* Takes the variables of a rank over. A malformed message leaves the rank without any. */
static void on_service_env(struct pmix_service *p, const struct frame *f)
{
        struct pmix_rank *r;
        struct pmix_env m;

        if (pmix_env_decode(&m, f, NULL) < 0)
                return;
        r = find_pmix_rank(p, m.rank);
        /* After READY the ranks may have been started with the earlier variables. */
        if (r && !p->ready) {
                strv_finish(&r->env);
                r->env = m.vars;
                m.vars = (struct strv)STRV_INIT;
        }
        pmix_env_finish(&m);
}

static void on_service_ready(struct pmix_service *p, const struct pmix_note *m)
{
        if (p->ready)
                return;
        p->ready = true;
        log_line(LOG_INFO, "PMIx is served by %.*s", (int)m->len, (const char *)m->data);
        p->ops.ready(p->ctx);
}

/* The text is copied first, because the callback may free the helper and its buffer. */
static void on_service_failed(struct pmix_service *p, const struct pmix_note *m)
{
        char *why = xstrndup((const char *)m->data, m->len);

        p->ops.failed(p->ctx, why);
        free(why);
}

/* HELLO and ABORT are answered, but nothing depends on the answers. */
static void ignore_reply(void *ctx UNUSED, const struct store_reply *reply UNUSED)
{
}

/* Once for each rank: a second PMIx_Init joins nothing. */
static void join_store(struct pmix_service *p, struct pmix_rank *r)
{
        static const struct relay_client_ops ops = { .reply = ignore_reply };

        if (r->client || !(r->client = relay_client_create(p->relay, ops, p)))
                return;
        relay_request(r->client,
                      &(struct store_request){ .op = STORE_HELLO, .tag = 1, .number = r->rank });
}

static void abort_as(struct pmix_service *p, struct pmix_rank *r, int32_t code, struct bytes text)
{
        text.len = MIN(text.len, (size_t)STORE_TEXT_MAX);
        join_store(p, r); /* an abort needs a client, also before PMIx_Init */
        if (r->client)
                relay_request(r->client,
                              &(struct store_request){
                                      .op = STORE_ABORT, .tag = 2, .number = code, .text = text });
}

void pmix_service_abort(struct pmix_service *p, const char *why)
{
        if (p->n_ranks)
                abort_as(p, &p->ranks[0], 1, bytes_of(why));
}

static void on_rank_begun(struct pmix_service *p, const struct pmix_note *m)
{
        struct pmix_rank *r = find_pmix_rank(p, m->rank);

        if (!r)
                return;
        r->begun = true;
        r->finalized = false; /* a second PMIx_Init */
        join_store(p, r);
}

static void on_rank_finalized(struct pmix_service *p, const struct pmix_note *m)
{
        struct pmix_rank *r = find_pmix_rank(p, m->rank);

        if (r)
                r->finalized = true;
}

static void on_rank_abort(struct pmix_service *p, const struct pmix_note *m)
{
        struct pmix_rank *r = find_pmix_rank(p, m->rank);

        if (!r)
                return;
        r->finalized = true; /* an exit after it is no surprise */
        abort_as(p, r, m->status, (struct bytes){ m->data, m->len });
}

/* --- fences ----------------------------------------------------------------------------------- */

static void drop_fence(struct pmix_fence *f)
{
        struct pmix_service *p = f->service;

        for (size_t i = 0; i < p->n_fences; i++)
                if (p->fences[i] == f)
                        p->fences[i] = p->fences[--p->n_fences];
        buf_finish(&f->values);
        free(f);
}

/* Values of all nodes are put together without lengths, as libpmix takes them. */
static void on_fence_value(void *ctx, uint32_t node UNUSED, struct bytes value)
{
        struct pmix_fence *f = ctx;

        buf_append(&f->values, value.p, value.len);
}

/* Answers the helper with the values or a failure, and frees the fence. */
static void on_fence_done(void *ctx, enum store_status status, struct bytes text)
{
        struct pmix_fence *f = ctx;
        struct pmix_note answer = { .id = f->id };

        if (status != STORE_OK || buf_failed(&f->values) ||
            /* Room for the fields of FENCED. */
            buf_len(&f->values) > FRAME_MAX - FRAME_HEADER - 64) {
                log_line(LOG_INFO, "a PMIx fence has failed: %.*s", (int)text.len,
                         (const char *)text.p);
                answer.status = FENCE_FAILED;
        } else {
                answer.data = buf_data(&f->values);
                answer.len = buf_len(&f->values);
        }
        send_note(f->service, PMIX_MSG_FENCED, &answer);
        drop_fence(f);
}

static void on_fence(struct pmix_service *p, const struct pmix_note *m)
{
        struct pmix_fence *f = xcalloc(1, sizeof(*f));
        struct fence_waiter w = { .value = on_fence_value, .done = on_fence_done, .ctx = f };
        int r = p->n_fences < FENCES_MAX ? 0 : -ENOBUFS;

        *f = (struct pmix_fence){
                .service = p, .id = m->id, .is_world = !m->n_ranks, .since_ns = uv_hrtime()
        };
        p->fences = xgrow(p->fences, p->n_fences, &p->cap, sizeof(struct pmix_fence *));
        p->fences[p->n_fences++] = f;
        if (r == 0)
                r = fence_begin(p->fence, m->n_ranks ? m->ranks : NULL, m->n_ranks,
                                (struct bytes){ m->data, m->len }, w);
        /* fence_begin() calls nothing back after an error. */
        if (r < 0)
                on_fence_done(f, STORE_INVALID, bytes_of(strerror(-r)));
}

void pmix_service_each_wait(const struct pmix_service *p,
                            void (*fn)(void *ctx, uint32_t rank, uint64_t since_ns), void *ctx)
{
        /* The oldest fence of all ranks. Which of the ranks have arrived is not known. */
        uint64_t since_ns = UINT64_MAX;

        for (size_t i = 0; i < p->n_fences; i++)
                if (p->fences[i]->is_world)
                        since_ns = MIN(since_ns, p->fences[i]->since_ns);
        for (uint32_t i = 0; i < p->n_ranks && since_ns != UINT64_MAX; i++)
                if (p->ranks[i].begun && !p->ranks[i].finalized)
                        fn(ctx, p->ranks[i].rank, since_ns);
}

/* --- direct modex ----------------------------------------------------------------------------- */

static void on_rank_wanted(struct pmix_service *p, const struct pmix_note *m)
{
        /* The rank comes from a helper that runs foreign code. */
        if (p->modex && m->rank < p->world_size)
                direct_modex_ask(p->modex, m->id, p->node_of_rank[m->rank], m->rank);
        else
                send_note(p, PMIX_MSG_WANTED,
                          &(struct pmix_note){ .id = m->id, .status = NO_SUCH_RANK });
}

static void on_modex_answered(void *ctx, uint32_t id, int32_t status, struct bytes data)
{
        send_note(
                ctx, PMIX_MSG_WANTED,
                &(struct pmix_note){ .id = id, .status = status, .data = data.p, .len = data.len });
}

static void on_modex_wanted(void *ctx, uint32_t id, uint32_t rank)
{
        struct pmix_service *p = ctx;

        /* Another node may ask for a rank that does not run here. */
        if (find_pmix_rank(p, rank))
                send_note(p, PMIX_MSG_FETCH, &(struct pmix_note){ .id = id, .rank = rank });
        else
                direct_modex_supply(p->modex, id, NO_SUCH_RANK, (struct bytes){ 0 });
}

static void on_fetched(struct pmix_service *p, const struct pmix_note *m)
{
        if (p->modex) /* on one node the helper is asked for nothing */
                direct_modex_supply(p->modex, m->id, m->status, (struct bytes){ m->data, m->len });
}

/* --- the helper ------------------------------------------------------------------------------- */

static void on_helper_frame(void *ctx, const struct frame *f)
{
        static void (*const on[256])(struct pmix_service *, const struct pmix_note *) = {
                [PMIX_MSG_READY] = on_service_ready,  [PMIX_MSG_FAILED] = on_service_failed,
                [PMIX_MSG_CONNECTED] = on_rank_begun, [PMIX_MSG_FINALIZED] = on_rank_finalized,
                [PMIX_MSG_FENCE] = on_fence,          [PMIX_MSG_WANT] = on_rank_wanted,
                [PMIX_MSG_FETCHED] = on_fetched,      [PMIX_MSG_ABORT] = on_rank_abort,
        };
        struct pmix_service *p = ctx;
        struct pmix_note m;

        if (f->type == PMIX_MSG_ENV) {
                on_service_env(p, f);
                return;
        }
        if (!on[f->type] || pmix_note_decode(&m, f, NULL) < 0)
                return;
        on[f->type](p, &m); /* may free @p */
        pmix_note_finish(&m);
}

static void on_helper_ended(void *ctx)
{
        struct pmix_service *p = ctx;

        p->ops.failed(p->ctx, "hnlaunch-pmix has ended");
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* 0, or a negative errno with @err; pmix_service_end() frees the parts made so far. */
static int start_parts(struct pmix_service *p, const struct pmix_setup *s, struct error *err)
{
        static const struct pmix_helper_ops ops = { .frame = on_helper_frame,
                                                    .ended = on_helper_ended };
        static const struct direct_modex_ops modex = { .wanted = on_modex_wanted,
                                                       .answered = on_modex_answered };
        const struct launch_order *l = s->order;
        struct fence_world world = { .n_ranks = l->world_size,
                                     .n_nodes = l->num_nodes,
                                     .node = l->node_rank };

        p->node_of_rank = node_map_expand(&l->mpi.map, l->world_size, l->num_nodes);
        if (!p->node_of_rank)
                return err_set(err, EPROTO, "an order with a wrong map of the ranks");
        /* The map comes from the head, the ranks from the order: both must agree. */
        for (uint32_t i = 0; i < p->n_ranks; i++)
                if (p->ranks[i].rank >= p->world_size ||
                    p->node_of_rank[p->ranks[i].rank] != l->node_rank)
                        return err_set(err, EPROTO, "an order with a wrong map of the ranks");
        world.node_of_rank = p->node_of_rank;
        p->fence = fence_create(s->relay, world);
        /* On one node no data of other nodes can be asked for. */
        if (l->num_nodes > 1)
                p->modex = direct_modex_create(s->relay, l->node_rank, modex, p);
        if (!p->fence || (l->num_nodes > 1 && !p->modex))
                return err_set(err, ENOMEM, "out of memory");
        p->helper = pmix_helper_start(s->loop, s->base, ops, p, err);
        return p->helper ? 0 : -err->code;
}

struct pmix_service *pmix_service_start(const struct pmix_setup *s, struct pmix_service_ops ops,
                                        void *ctx, struct error *err)
{
        const struct launch_order *l = s->order;
        struct pmix_service *p = xcalloc(1, sizeof(*p));
        CLEANUP(free_textp) char *folder = xasprintf("%s/pmix", s->folder);
        int r = 0;

        p->ops = ops;
        p->ctx = ctx;
        p->relay = s->relay;
        p->world_size = l->world_size;
        p->n_ranks = l->n_ranks;
        p->ranks = xcalloc(l->n_ranks, sizeof(*p->ranks));
        for (uint32_t i = 0; i < l->n_ranks; i++)
                p->ranks[i].rank = l->ranks[i].rank;
        if (mkdir(folder, 0700) < 0)
                r = err_set(err, errno, "cannot make the folder %s: %s", folder, strerror(errno));
        if (r == 0)
                r = start_parts(p, s, err);
        if (r < 0) {
                pmix_service_end(p);
                return NULL;
        }
        /* Queued before the helper reads; the answers come by on_helper_frame(). */
        pmix_describe(pmix_helper_out(p->helper), s, p->node_of_rank, folder);
        pmix_helper_flush(p->helper);
        return p;
}

void pmix_service_end(struct pmix_service *p)
{
        if (!p)
                return;
        if (p->helper) /* NULL after a failed start */
                /* First: no frame of the helper may come while the rest is freed. */
                pmix_helper_kill(p->helper);
        fence_destroy(p->fence);
        direct_modex_destroy(p->modex);
        while (p->n_fences)
                drop_fence(p->fences[0]);
        free(p->fences);
        for (uint32_t i = 0; i < p->n_ranks; i++) {
                strv_finish(&p->ranks[i].env);
                if (p->ranks[i].client)
                        relay_client_destroy(p->ranks[i].client);
        }
        free(p->ranks);
        free(p->node_of_rank);
        free(p);
}

pid_t pmix_service_pid(const struct pmix_service *p)
{
        return pmix_helper_pid(p->helper);
}

const struct strv *pmix_service_env(const struct pmix_service *p, uint32_t rank)
{
        const struct pmix_rank *r = find_pmix_rank(p, rank);

        return r && r->env.n ? &r->env : NULL;
}

enum rank_mpi pmix_service_state(struct pmix_service *p, uint32_t rank)
{
        const struct pmix_rank *r = find_pmix_rank(p, rank);

        pmix_helper_catch_up(p->helper); /* a rank leaves only after the helper has told of it */
        return !r || !r->begun ? RANK_MPI_UNUSED
               : r->finalized  ? RANK_MPI_FINALIZED
                               : RANK_MPI_UNFINALIZED;
}
