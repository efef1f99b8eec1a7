/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/job_push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/strv.h"
#include "head/job/job_private.h"

enum {
        MEMORY = 256 << 20, /* for what is under way to all nodes together */
        WINDOW_MIN = 2 * (PUSH_CHUNK_MAX + PUSH_CHUNK_COST),
        WINDOW_MAX = 4 << 20, /* 80 MB/s over 50 ms */
        OFFERS = 64 << 20,    /* bytes of manifests that are under way together */
        TICK_MS = 100,
        GIVE_MAX = 64 << 10, /* several fit in the window of a branch */
};

enum push_state {
        PUSH_NOT,     /* takes no part */
        PUSH_QUEUED,  /* to be offered */
        PUSH_OFFERED, /* owes an answer */
        PUSH_SHARED,  /* another node fetches for it */
        PUSH_SENDING,
        PUSH_DONE,
        PUSH_FAILED,
        PUSH_STATES,
};

struct job_push_node {
        enum push_state state;
        struct push_want want;
        uint32_t at;                  /* of want: the file that is being sent */
        uint64_t offset, sent, given; /* bytes, by us and by its parent */
        uint32_t got;                 /* of want: the first file that is not whole there yet */
        uint64_t got_offset;
        int first_child, next_sibling; /* nodes that it carries, -1 = none */
        int64_t credit;
        struct pushed *result; /* NULL = not yet */
};

struct job_push {
        struct manifest *manifest;
        struct job_push_node *nodes;
        size_t in[PUSH_STATES]; /* nodes, by state */
        size_t queue;           /* no node before this one is queued */
        uint64_t wanted, taken; /* bytes, of all nodes */
        struct error source;    /* a file that cannot be read any more */
        int source_error;
};

static struct job_push_node *state_of(const struct job *j, const struct node *n)
{
        return &j->push->nodes[n->index];
}

static void enter(struct job_push *p, struct job_push_node *s, enum push_state state)
{
        p->in[s->state]--;
        p->in[state]++;
        s->state = state;
}

bool job_push_takes_part(const struct job *j, size_t node)
{
        return j->push && j->push->nodes[node].state != PUSH_NOT;
}

const struct pushed *job_pushed(const struct job *j, size_t node)
{
        const struct job_push_node *s = j->push ? &j->push->nodes[node] : NULL;

        return s ? s->result : NULL;
}

/* --- offering --------------------------------------------------------------------------------- */

static void offer(struct job *j, struct node *n)
{
        struct push_offer m = { .node = (uint32_t)n->index,
                                .silence_ms = job_silence_ms(j, n),
                                .keep = j->c.options->keep,
                                .manifest = j->push->manifest->manifest };

        memcpy(m.run_id, j->c.run_id, sizeof(j->c.run_id));
        push_offer_encode(node_out(n), &m);
        enter(j->push, state_of(j, n), PUSH_OFFERED);
        node_flush(n);
}

/* Manifests may be large, and nodes many. */
static void offer_some(struct job *j)
{
        struct job_push *p = j->push;
        uint64_t room = MAX(OFFERS / (p->manifest->wire_bytes + 1), (uint64_t)1);

        for (; p->in[PUSH_QUEUED] && p->in[PUSH_OFFERED] < room; p->queue++)
                if (p->nodes[p->queue].state == PUSH_QUEUED)
                        offer(j, &j->nodes[p->queue]);
}

static void look_again(struct job *j, struct node *n)
{
        push_look_encode(node_out(n), &(struct push_look){ .take_over = 1 });
        enter(j->push, state_of(j, n), PUSH_OFFERED);
        node_flush(n);
}

/* Those that waited for @holder find everything there. */
static void wake_shared(struct job *j, int holder)
{
        for (size_t i = 0; i < j->n_nodes && j->push->in[PUSH_SHARED]; i++)
                if (j->push->nodes[i].state == PUSH_SHARED &&
                    j->push->nodes[i].want.holder == (uint32_t)holder)
                        look_again(j, &j->nodes[i]);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Has the parent of a node the bytes up to @end of a file that the node is to get? Then the node
 * need not have them from us. Both lists of missing files are in the order of the manifest. */
enum supply { FROM_HEAD, FROM_PARENT, NOT_YET };

static enum supply supply_of(const struct job *j, const struct node *n, uint32_t entry,
                             uint64_t end)
{
        const struct job_push_node *p = n->parent ? state_of(j, n->parent) : NULL;
        uint32_t at;

        if (!p || p->state == PUSH_NOT || p->state == PUSH_SHARED)
                return FROM_HEAD; /* the parent may even be waiting for this node */
        if (p->state == PUSH_DONE)
                return FROM_PARENT;
        if (p->state != PUSH_SENDING)
                return NOT_YET;
        at = p->got < p->want.n ? p->want.entries[p->got] : UINT32_MAX;
        return entry < at || (entry == at && end <= p->got_offset) ? FROM_PARENT : NOT_YET;
}

static void source_failed(struct job *j, int r, const struct error *err)
{
        j->push->source_error = r;
        j->push->source = *err;
}

/* False: it cannot be read. */
static bool send_bytes(struct job *j, struct node *n, uint32_t entry, uint64_t offset, size_t len)
{
        struct buf *out = node_out(n);
        size_t before = buf_len(out);
        void *room = push_chunk_begin(out, entry, offset, len);
        struct error err;
        int r = room ? manifest_read(j->push->manifest, entry, offset, room, len, &err) : 0;

        if (r < 0) {
                buf_truncate(out, before);
                source_failed(j, r, &err);
        }
        return r == 0;
}

/* One piece of the file that @n is at. False: not now, or never. */
static bool send_piece(struct job *j, struct node *n, struct job_push_node *s)
{
        uint32_t entry = s->want.entries[s->at];
        uint64_t size = j->push->manifest->manifest.v[entry].size;
        uint32_t len = (uint32_t)MIN(size - s->offset, (uint64_t)GIVE_MAX);
        enum supply from = supply_of(j, n, entry, s->offset + len);

        if (from == FROM_HEAD)
                len = (uint32_t)MIN(size - s->offset, (uint64_t)PUSH_CHUNK_MAX);
        if (from == NOT_YET ||
            (from == FROM_PARENT && !job_tree_give(j, n, entry, s->offset, len)) ||
            (from == FROM_HEAD && !send_bytes(j, n, entry, s->offset, len)))
                return false;
        s->credit -= (int64_t)len + PUSH_CHUNK_COST;
        s->offset += len;
        if (from == FROM_HEAD)
                s->sent += len;
        else
                s->given += len;
        if (s->offset == size) {
                s->offset = 0;
                s->at++;
        }
        return true;
}

static void send_some(struct job *j, struct node *n)
{
        struct job_push_node *s = state_of(j, n);

        while (s->credit > 0 && s->at < s->want.n && !j->push->source_error)
                if (!send_piece(j, n, s))
                        break;
        node_flush(n);
}

static void send_to_children(struct job *j, const struct node *n)
{
        for (int i = state_of(j, n)->first_child; i >= 0; i = j->push->nodes[i].next_sibling)
                if (j->push->nodes[i].state == PUSH_SENDING)
                        send_some(j, &j->nodes[i]);
}

/* --- answers ---------------------------------------------------------------------------------- */

static bool wants_files(const struct job *j, const struct push_want *want)
{
        const struct push_manifest *m = &j->push->manifest->manifest;

        if (want->holder == PUSH_NO_NODE && !want->n)
                return false; /* PUSHED says that */
        for (uint32_t i = 0; i < want->n; i++)
                if (want->entries[i] >= m->n || m->v[want->entries[i]].kind != PUSH_FILE)
                        return false;
        return true;
}

static void shared(struct job *j, struct node *n)
{
        struct job_push_node *s = state_of(j, n);
        uint32_t holder = s->want.holder;
        enum push_state other = holder < j->n_nodes ? j->push->nodes[holder].state : PUSH_NOT;

        log_line(LOG_INFO, "%s shares its file system with %s", n->host->name,
                 holder < j->n_nodes ? j->nodes[holder].host->name : "nobody that is left");
        enter(j->push, s, PUSH_SHARED);
        send_to_children(j, n);
        if (other != PUSH_OFFERED && other != PUSH_SENDING)
                look_again(j, n);
}

int job_push_want(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct job_push_node *s;
        struct push_want m;

        if (push_want_decode(&m, f, err) < 0)
                return -err->code;
        if (!j->push || state_of(j, n)->state != PUSH_OFFERED || !wants_files(j, &m)) {
                push_want_finish(&m);
                return err_set(err, EPROTO, "wish for files that nobody offered");
        }
        s = state_of(j, n);
        push_want_finish(&s->want);
        s->want = m;
        s->at = s->got = 0;
        if (m.holder != PUSH_NO_NODE) {
                shared(j, n);
        } else {
                enter(j->push, s, PUSH_SENDING);
                for (uint32_t i = 0; i < m.n; i++)
                        j->push->wanted += j->push->manifest->manifest.v[m.entries[i]].size;
                send_some(j, n);
        }
        offer_some(j);
        return 0;
}

/* Each CHUNK is acknowledged, in order. */
static void stored(struct job *j, struct job_push_node *s, uint32_t len)
{
        j->push->taken += len;
        s->got_offset += len;
        if (s->got < s->want.n &&
            s->got_offset >= j->push->manifest->manifest.v[s->want.entries[s->got]].size) {
                s->got_offset = 0;
                s->got++;
        }
}

int job_push_taken(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct push_taken m;

        if (push_taken_decode(&m, f, err) < 0)
                return -err->code;
        if (!j->push || state_of(j, n)->state != PUSH_SENDING)
                return err_set(err, EPROTO, "receipt for files that nobody sent");
        stored(j, state_of(j, n), m.bytes - MIN(m.bytes, PUSH_CHUNK_COST));
        state_of(j, n)->credit += m.bytes;
        send_some(j, n);
        send_to_children(j, n);
        return 0;
}

/* Damaged on the way, or was it our file that changed under our hands? */
static void look_at_sources(struct job *j, const struct job_push_node *s)
{
        struct error err;

        for (uint32_t i = 0; i < s->want.n && i <= s->at && !j->push->source_error; i++) {
                int r = manifest_check(j->push->manifest, s->want.entries[i], &err);

                if (r < 0)
                        source_failed(j, r, &err);
        }
}

int job_push_pushed(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct job_push_node *s;
        struct pushed m;

        if (pushed_decode(&m, f, err) < 0)
                return -err->code;
        s = j->push ? state_of(j, n) : NULL;
        if (!s || (s->state != PUSH_OFFERED && s->state != PUSH_SENDING &&
                   !(s->state == PUSH_DONE && m.error)))
                return err_set(err, EPROTO, "word about files that nobody offered");
        if (!s->result)
                s->result = xcalloc(1, sizeof(*s->result));
        *s->result = m;
        if (m.error) {
                enter(j->push, s, PUSH_FAILED);
                if (m.error == EBADMSG)
                        look_at_sources(j, s);
        } else {
                enter(j->push, s, PUSH_DONE);
                log_line(LOG_INFO, "%s: pushed files are in %s, %llu bytes were sent%s%s",
                         n->host->name, m.folder, (unsigned long long)(s->sent + s->given),
                         s->given ? " by " : "", s->given ? n->parent->host->name : "");
                job_emit(j, EVENT_NODE_PUSHED, n->index, -1, (int64_t)s->sent, m.folder);
                wake_shared(j, n->index);
                send_to_children(j, n);
        }
        offer_some(j);
        return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool node_is_lost(const struct job *j)
{
        for (size_t i = 0; i < j->n_nodes && j->failed; i++)
                if (job_push_takes_part(j, i) && j->nodes[i].state != NODE_READY)
                        return true;
        return false;
}

/* After a failure only those are waited for that may have the same to tell. */
static bool waiting(const struct job *j)
{
        const size_t *in = j->push->in;
        bool offered = in[PUSH_QUEUED] || in[PUSH_OFFERED],
             busy = in[PUSH_SENDING] || in[PUSH_SHARED];

        return (offered || (busy && !in[PUSH_FAILED])) && !j->push->source_error &&
               !outcome_failed(&j->outcome) && !node_is_lost(j);
}

static void tick(uv_timer_t *t)
{
        struct job *j = t->data;

        /* A carrier that was busy with another frame is asked again. */
        for (size_t i = 0; i < j->n_nodes && j->tree; i++)
                if (j->push->nodes[i].state == PUSH_SENDING)
                        send_some(j, &j->nodes[i]);
        events_emit(j->c.events, (struct event){ .kind = EVENT_PUSH_PROGRESS,
                                                 .node = -1,
                                                 .rank = -1,
                                                 .value = (int64_t)j->push->taken,
                                                 .count = (int64_t)j->push->wanted });
}

static void finish(struct job_push_node *s)
{
        push_want_finish(&s->want);
        free(s->result);
}

void job_push_forget(struct job *j, size_t node)
{
        if (!j->push)
                return;
        finish(&j->push->nodes[node]);
        enter(j->push, &j->push->nodes[node], PUSH_NOT);
        j->push->nodes[node] = (struct job_push_node){ 0 };
}

static size_t choose_nodes(struct job *j, const struct plan *plan)
{
        size_t n = 0;

        j->push->queue = 0;
        for (size_t i = 0; i < j->n_nodes; i++) {
                bool used = plan->nodes[i].n_ranks || j->c.options->max_restarts;

                if (j->nodes[i].state == NODE_FAILED)
                        job_push_forget(j, i);
                if (!used || j->nodes[i].host->local || j->nodes[i].state != NODE_READY ||
                    j->push->nodes[i].state != PUSH_NOT)
                        continue;
                enter(j->push, &j->push->nodes[i], PUSH_QUEUED);
                n++;
        }
        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->push->nodes[i].state == PUSH_QUEUED)
                        j->push->nodes[i].credit =
                                MIN(MAX(MEMORY / (int64_t)n, WINDOW_MIN), WINDOW_MAX);
        return n;
}

static void list_children(struct job *j)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                j->push->nodes[i].first_child = -1;
        for (size_t i = 0; i < j->n_nodes; i++) {
                if (!j->nodes[i].parent)
                        continue;
                j->push->nodes[i].next_sibling = state_of(j, j->nodes[i].parent)->first_child;
                state_of(j, j->nodes[i].parent)->first_child = (int)i;
        }
}

static int outcome_of(const struct job *j, struct error *err)
{
        if (outcome_failed(&j->outcome))
                return JOB_INTERRUPTED;
        if (j->push->source_error) {
                *err = j->push->source;
                return j->push->source_error;
        }
        if (j->push->in[PUSH_FAILED])
                return -EIO;
        return node_is_lost(j) ? -EHOSTUNREACH : 0;
}

int job_push(struct job *j, const struct plan *plan, struct manifest *p, struct error *err)
{
        size_t n;

        if (!j->push) {
                j->push = xcalloc(1, sizeof(*j->push));
                j->push->manifest = p;
                j->push->nodes = xcalloc(j->n_nodes, sizeof(*j->push->nodes));
                j->push->in[PUSH_NOT] = j->n_nodes;
        }
        n = choose_nodes(j, plan);
        list_children(j);
        if (!n)
                return 0;
        events_emit(j->c.events, (struct event){ .kind = EVENT_PUSH_START,
                                                 .node = -1,
                                                 .rank = -1,
                                                 .value = (int64_t)p->bytes,
                                                 .count = (int64_t)n });
        j->pushing = true;
        heartbeat_start(j);
        uv_timer_start(&j->ticker, tick, TICK_MS, TICK_MS);
        offer_some(j);
        while (waiting(j))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(&j->ticker);
        uv_timer_stop(&j->heartbeat);
        j->pushing = false;
        return outcome_of(j, err);
}

void job_push_finish(struct job *j)
{
        if (!j->push)
                return;
        for (size_t i = 0; i < j->n_nodes; i++)
                finish(&j->push->nodes[i]);
        free(j->push->nodes);
        free(j->push);
        j->push = NULL;
}
