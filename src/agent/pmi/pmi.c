/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi_receive() cuts a rank's bytes into messages and hands each to pmi1.c or pmi2.c; the first
 * line decides which. Commands about more than the rank come back here: barriers, keys, joining and
 * abort.
 *
 * A barrier begins a fence when every rank of the node has entered; the fence's value has the keys
 * put since the last fence. For a key unknown here, all waiting ranks together fetch the values of
 * all fences since the last fetch; a key missing even then is unknown. So keys are exchanged at
 * most once, and barriers without keys cost the store a barrier.
 */
#include "agent/pmi/pmi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pmi/pmi_private.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"
#include "wire/codec.h"

/* Tags of a rank's own client: the answers are not looked at. */
enum { TAG_HELLO = 1, TAG_ABORT };

/* --- barriers --------------------------------------------------------------------------------- */

static void release_rank(struct pmi_rank *r, const char *failure)
{
        /* Before the answer: the next command of the rank may already be in the buffer. */
        r->wait = PMI_WAIT_NONE;
        r->has_put = false;
        /* A broken rank hears nothing. */
        if (r->state == PMI_READY1)
                pmi1_release(r, failure);
        else if (r->state == PMI_READY2)
                pmi2_release(r, failure);
}

/* Releases the ranks in the barrier, with the reason of a failure. */
static void on_fence_done(void *ctx, enum store_status status, struct bytes text)
{
        CLEANUP(free_textp) char *failure = xstrndup(text.p ? text.p : "", text.len);
        struct pmi *p = ctx;

        p->in_fence = false;
        for (uint32_t i = 0; i < p->n_ranks; i++)
                if (p->ranks[i].wait == PMI_WAIT_BARRIER)
                        release_rank(&p->ranks[i], status == STORE_OK ? NULL : failure);
}

/* Begins a fence when no other rank of the node will come. If a rank has left, the store answers
 * that a member is missing, after the head has heard of the rank's end. */
static void begin_fence_if_complete(struct pmi *p)
{
        struct fence_waiter w = { .done = on_fence_done, .ctx = p };
        /* All keys that ranks of this node have put since the last fence. */
        struct bytes value = { buf_data(&p->keys.pending), buf_len(&p->keys.pending) };
        int r;

        /* Ranks that have left count as arrived, or the others would never hear of a failure. */
        if (p->in_fence || !p->n_in_barrier || p->n_in_barrier + p->n_left < p->n_ranks)
                return;
        p->in_fence = true;
        p->n_in_barrier = 0;
        r = fence_begin(p->fence, NULL, 0, value, w);
        buf_finish(&p->keys.pending); /* fence_begin() has copied the value */
        if (r < 0)
                /* No fence has begun, so nothing else releases the ranks. */
                on_fence_done(p, STORE_TOO_BIG, bytes_of(strerror(-r)));
}

void pmi_enter_barrier(struct pmi_rank *r)
{
        r->wait = PMI_WAIT_BARRIER;
        r->pmi->n_in_barrier++;
        begin_fence_if_complete(r->pmi);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Answers the get of a rank, which may have left or broken a rule meanwhile. */
static void tell_value(struct pmi_rank *r, const char *key)
{
        const char *value = pmi_keys_get(&r->pmi->keys, key);

        r->wait = PMI_WAIT_NONE;
        if (r->state == PMI_READY1)
                pmi1_tell_value(r, value);
        else if (r->state == PMI_READY2)
                pmi2_tell_value(r, value);
}

static void on_fetched_value(void *ctx, uint32_t node, struct bytes value)
{
        struct pmi *p = ctx;
        int r = pmi_keys_merge(&p->keys, value);

        if (r < 0)
                /* The fence goes on: this node may only need keys of other nodes. */
                log_line(LOG_WARN, "ignoring PMI keys of node %u: %s", node,
                         r == -ENOSPC ? "they are too many" : "malformed");
}

static void on_fetched(void *ctx, enum store_status status, struct bytes text)
{
        struct pmi *p = ctx;

        p->fetching = false;
        if (status != STORE_OK)
                log_line(LOG_WARN, "cannot fetch PMI keys: %.*s", (int)text.len,
                         (const char *)text.p);
        /* All ranks are answered after a fetch, each with the key found or not. */
        for (uint32_t i = 0; i < p->n_ranks; i++) {
                struct pmi_rank *r = &p->ranks[i];
                CLEANUP(free_textp) char *key = NULL;

                if (r->wait != PMI_WAIT_KEY)
                        continue;
                key = r->key; /* the rank may ask for another key at once */
                r->key = NULL;
                tell_value(r, key);
        }
}

void pmi_ask_key(struct pmi_rank *r, const char *key)
{
        static const struct fence_waiter waiter = { .value = on_fetched_value, .done = on_fetched };
        struct fence_waiter w = waiter;
        struct pmi *p = r->pmi;

        /* Ranks never put keys of the protocol (PMI_), so a fetch would find nothing. */
        if (pmi_keys_get(&p->keys, key) || !strncmp(key, "PMI_", 4) ||
            !(p->fetching || fence_has_unfetched(p->fence))) {
                tell_value(r, key);
                return;
        }
        r->wait = PMI_WAIT_KEY;
        r->key = xstrdup(key);
        if (p->fetching)
                return;
        p->fetching = true;
        w.ctx = p;
        fence_fetch(p->fence, w);
}

int pmi_put(struct pmi_rank *r, const char *key, const char *value)
{
        if (strchr(key, '\n') || strchr(value, '\n')) /* would be two lines of PMI-1 */
                return -EINVAL;
        r->has_put = true; /* so the next barrier exchanges keys */
        return !strncmp(key, "PMI_", 4) ? -EPERM : pmi_keys_put(&r->pmi->keys, key, value);
}

/* --- a rank to the head ----------------------------------------------------------------------- */

/* The head's answers to HELLO and ABORT change nothing here. */
static void on_rank_reply(void *ctx UNUSED, const struct store_reply *reply UNUSED)
{
}

void pmi_join(struct pmi_rank *r)
{
        static const struct relay_client_ops ops = { .reply = on_rank_reply };

        if (r->client) /* the next program of a script: the rank has joined already */
                return;
        r->client = relay_client_create(r->pmi->relay, ops, r);
        if (r->client)
                relay_request(r->client, &(struct store_request){ .op = STORE_HELLO,
                                                                  .tag = TAG_HELLO,
                                                                  .number = r->rank });
}

bool pmi_abort(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *message = pmi_find_field(c, "message");
        char text[256];
        int code = 1; /* without a number: any failure */

        r->aborted = true;
        pmi_find_number(c, "exitcode", &code);
        message = message ? message : pmi_find_field(c, "msg"); /* of PMI-2 */
        if (!message || !strcmp(message, "abort"))              /* MPICH's word for no message */
                message = "";
        snprintf(text, sizeof(text), "MPI_Abort() with code %d%s%s", code, *message ? ": " : "",
                 message);
        if (r->client)
                relay_request(r->client, &(struct store_request){ .op = STORE_ABORT,
                                                                  .tag = TAG_ABORT,
                                                                  .number = code & 255,
                                                                  .text = bytes_of(text) });
        return true;
}

/* --- input ------------------------------------------------------------------------------------ */

void pmi_send(struct pmi_rank *r, const struct buf *bytes)
{
        if (!r->left) /* the connection is closed */
                r->pmi->ops.send(r->pmi->ctx, r->index, buf_data(bytes), buf_len(bytes));
}

/* Takes the first message of the rank's bytes; 0: none is whole, 1: taken. */
static int take_pmi_message(struct pmi_rank *r)
{
        /* The first line is always PMI-1, even if the client continues with PMI-2. */
        bool version2 = r->state == PMI_OPENING2 || r->state == PMI_READY2;
        CLEANUP(free_textp) char *text = NULL;
        size_t len, all;
        int ret = version2 ? pmi2_frame(&r->in, &len, &all) : pmi1_frame(&r->in, &len, &all);

        if (ret <= 0)
                return ret;
        text = xcalloc(1, len + 1);
        /* PMI-2 has the length in front of the body, PMI-1 a LF behind the line. */
        memcpy(text, buf_data(&r->in) + (all - len) * version2, len);
        buf_consume(&r->in, all);
        return (version2 ? pmi2_take(r, text, len) : pmi1_take(r, text, len)) ? 1 : -EPROTO;
}

int pmi_receive(struct pmi *p, uint32_t index, const void *bytes, size_t len, struct error *err)
{
        static const char *const names[PMI_STATES] = {
                [PMI_NEW] = "at the beginning",     [PMI_READY1] = "of PMI-1",
                [PMI_OPENING2] = "before fullinit", [PMI_READY2] = "of PMI-2",
                [PMI_FINALIZED] = "after finalize", [PMI_BROKEN] = "after a fault",
        };
        struct pmi_rank *r = &p->ranks[index];
        enum pmi_state before = r->state;
        int ret = 1;

        if (r->state == PMI_BROKEN || r->left)
                return err_set(err, EPROTO, "bytes after the end");
        if (buf_append(&r->in, bytes, len) < 0)
                ret = -ENOMEM;
        /* Each message may change the state, and with the state the framing. */
        while (ret > 0) {
                before = r->state;
                ret = take_pmi_message(r);
        }
        if (ret == 0 && !buf_len(&r->in)) /* idle ranks cost no memory */
                buf_finish(&r->in);
        if (ret == 0)
                return 0;
        r->state = PMI_BROKEN;
        buf_finish(&r->in);
        /* The state in which the message came. */
        return err_set(err, EPROTO, "malformed or misplaced message %s", names[before]);
}

void pmi_left(struct pmi *p, uint32_t index)
{
        struct pmi_rank *r = &p->ranks[index];

        if (r->left)
                return;
        r->left = true;
        p->n_left++;
        /* The head has heard of the end from the agent: see pmi_left() in the header. */
        relay_client_destroy(r->client);
        r->client = NULL;
        /* A fence under way has counted the rank as a member. */
        if (r->wait == PMI_WAIT_BARRIER && !p->in_fence)
                p->n_in_barrier--;
        r->wait = PMI_WAIT_NONE;
        /* All ranks left in the barrier may have waited for this rank. */
        begin_fence_if_complete(p);
}

const char *pmi_waits_for(const struct pmi *p, uint32_t index)
{
        const struct pmi_rank *r = &p->ranks[index];

        if (r->wait == PMI_WAIT_BARRIER) /* MPI_Init() meets to exchange keys */
                return r->has_put ? "BARRIER" : "FINALIZE";
        return r->wait == PMI_WAIT_NONE ? NULL : "GET";
}

bool pmi_show_waits(struct pmi *p)
{
        /* Ranks in a fence wait for other nodes, which the store knows already. */
        bool waits = p->n_in_barrier && !p->in_fence;

        for (uint32_t i = 0; i < p->n_ranks && !waits; i++)
                waits = p->ranks[i].wait == PMI_WAIT_NODE_KEY;
        fence_show_wait(p->fence, waits);
        return waits;
}

bool pmi_is_unfinished(const struct pmi *p, uint32_t index)
{
        const struct pmi_rank *r = &p->ranks[index];

        return r->state != PMI_NEW && r->state != PMI_FINALIZED && !r->aborted;
}

bool pmi_is_unused(const struct pmi *p, uint32_t index)
{
        return p->ranks[index].state == PMI_NEW;
}

/* --- published names: MPI_Publish_name() and similar calls, over the store -------------------- */

/* Tags are indices of ranks: a rank has at most one request. */
static void on_name_reply(void *ctx, const struct store_reply *reply)
{
        struct reader in = READER_INIT(reply->value.p, reply->value.len);
        CLEANUP(free_textp) char *port = NULL;
        struct pmi *p = ctx;
        struct pmi_rank *r = &p->ranks[reply->tag];
        /* FETCH and DELETE answer the number of names found; a SET answers none. */
        bool good = reply->status == STORE_OK && (r->asked == STORE_SET || reply->number == 1);

        if (r->wait != PMI_WAIT_NAME)
                return;
        r->wait = PMI_WAIT_NONE;
        if (good && r->asked == STORE_FETCH) {
                uint64_t len = take_u64(&in);
                const char *value = (const char *)take_raw(&in, len);

                port = value ? xstrndup(value, len) : NULL;
                /* A LF would end an answer of PMI-1; the backslash is an escape for newer
                 * clients. */
                good = port && !strpbrk(port, "\n\\");
        }
        if (r->state == PMI_READY1)
                pmi1_tell_name(r, good, port);
        else if (r->state == PMI_READY2)
                pmi2_tell_name(r, good, port);
}

void pmi_ask_name(struct pmi_rank *r, uint8_t op, const char *name, const char *port)
{
        CLEANUP(buf_finish) struct buf text = BUF_INIT;
        struct store_request req = { .op = op, .tag = r->index, .value = bytes_of(port) };
        struct bytes key;

        buf_append(&text, STORE_OWN_PREFIX, STORE_OWN_PREFIX_LEN);
        buf_printf(&text, "name/%.*s", STORE_KEY_MAX / 2, name); /* leaves room for the prefix */
        key = (struct bytes){ buf_data(&text), buf_len(&text) };
        /* SET and DELETE take a key, FETCH a list of keys. */
        req.key = key;
        req.keys = &key;
        req.n_keys = 1;
        r->asked = op;
        r->wait = PMI_WAIT_NAME;
        relay_request(r->pmi->names, &req);
}

/* Creates a client of the engine's own: a published name outlives the rank. */
static struct relay_client *create_name_client(struct pmi *p)
{
        /* May use keys of hnlaunch's own. */
        static const struct relay_client_ops ops = { .reply = on_name_reply, .is_relay = true };

        return relay_client_create(p->relay, ops, p);
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct pmi *pmi_create(const struct pmi_config *config, struct pmi_ops ops, void *ctx)
{
        struct pmi *p = xcalloc(1, sizeof(*p));

        *p = (struct pmi){ .ops = ops,
                           .ctx = ctx,
                           .relay = config->relay,
                           .world = config->world,
                           .n_ranks = config->n_ranks,
                           .only_version1 = config->only_version1,
                           .job = xstrdup(config->job),
                           .mapping = xstrdup(config->mapping) };
        p->ranks = xcalloc(p->n_ranks, sizeof(*p->ranks));
        for (uint32_t i = 0; i < p->n_ranks; i++)
                p->ranks[i] =
                        (struct pmi_rank){ .pmi = p,
                                           .index = i,
                                           .rank = config->ranks[i],
                                           .program = config->programs ? config->programs[i] : 0 };
        p->fence = fence_create(p->relay, p->world);
        p->names = create_name_client(p);
        if (p->fence && p->names)
                return p;
        pmi_destroy(p);
        return NULL;
}

void pmi_destroy(struct pmi *p)
{
        if (!p)
                return;
        for (uint32_t i = 0; i < p->n_ranks; i++) {
                relay_client_destroy(p->ranks[i].client);
                buf_finish(&p->ranks[i].in);
                free(p->ranks[i].key);
                free(p->ranks[i].thread);
        }
        relay_client_destroy(p->names);
        fence_destroy(p->fence);
        pmi_keys_finish(&p->keys);
        pmi_keys_finish(&p->node_keys);
        free(p->ranks);
        free(p->job);
        free(p->mapping);
        free(p);
}
