/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OFFER starts a push: the manifest goes to the file cache, which links present contents and lists
 * missing contents. The answer is WANT with the missing entries, or with another node of the run,
 * fetching into the same (shared) folder; LOOK asks again later. PACKs come from the head or from
 * another node (agent/tree/chain.h), with the manifest first if the OFFER had no manifest. Exactly
 * one PUSHED ends the push, with the folder or with the first failure; pieces after a failure are
 * dropped.
 */

#include "agent/files/push_receiver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/inflate.h"
#include "agent/core/job_dir.h"
#include "agent/core/uplink.h"
#include "agent/files/file_cache.h"
#include "agent/files/stage_copies.h"
#include "base/error_number.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/msg.h"

enum push_state {
        PUSH_NONE,
        PUSH_FETCHING, /* offered, and not all files are here */
        PUSH_ENDED,    /* complete or failed; the head knows which */
};

struct push_receiver {
        enum push_state state;    /* of the last offer */
        struct file_cache *cache; /* of the last offer, one of: */
        struct file_cache caches[PUSH_USES];
        bool offered[PUSH_USES];
        struct buf list; /* the bytes of @cache's manifest received so far in PACKs */
        struct uplink *up;
        void (*changed)(void *ctx);
        void *ctx;
};

/* Ends the push. Later failures are sent as well, and ignored by the head. @changed comes first, so
 * the agent knows the folder when the head answers. */
static void send_pushed(struct push_receiver *p, const struct pushed *m)
{
        if (p->state == PUSH_FETCHING)
                p->state = PUSH_ENDED;
        p->changed(p->ctx);
        pushed_encode(&p->up->out, m);
}

static void refuse_push(struct push_receiver *p, const char *text)
{
        struct pushed m = { .error = EPROTO };

        memcpy(m.what, text, strnlen(text, sizeof(m.what) - 1));
        send_pushed(p, &m);
}

static void finish_push(struct push_receiver *p)
{
        struct pushed m;

        file_cache_finish(p->cache, &m);
        send_pushed(p, &m);
}

/* Compares the Python of an environment, before the files are fetched. 0, or negative with @ret. */
static int check_python(const struct file_cache *c, struct pushed *ret)
{
        return c->offer.label.use == PUSH_VENV
                       ? stage_check_python(&c->offer.label.python, c->whole ? c->root : NULL,
                                            c->id, ret)
                       : 0;
}

/* Answers an OFFER or a LOOK: PUSHED, WANT with the missing contents, WANT with the node that
 * fetches for all, or WANT without either: the manifest is missing. */
static void answer_offer(struct push_receiver *p, bool take_over)
{
        struct push_want want = { .holder = PUSH_NO_NODE };
        struct pushed failure;
        int r = file_cache_look(p->cache, take_over, &want.holder, &failure);

        p->changed(p->ctx);
        if (r == 0)
                r = check_python(p->cache, &failure);
        if (r < 0) {
                send_pushed(p, &failure);
        } else if (r == 0 && file_cache_complete(p->cache)) {
                finish_push(p);
        } else {
                if (r == 0) {
                        want.entries = p->cache->missing;
                        want.n = p->cache->n_missing;
                }
                push_want_encode(&p->up->out, &want);
        }
}

/* Whether the offer brings the manifest requested before. */
static bool is_second_half(const struct push_receiver *p, const struct push_offer *m)
{
        return p->state == PUSH_FETCHING && m->label.use == p->cache->offer.label.use &&
               !m->later && p->cache->offer.later;
}

void push_receiver_on_offer(void *receiver, const struct frame *f)
{
        struct push_receiver *p = receiver;
        struct push_offer m;
        struct error err;

        if (push_offer_decode(&m, f, &err) < 0) {
                refuse_push(p, err.text);
                return;
        }
        if (!is_second_half(p, &m) && (p->state == PUSH_FETCHING || p->offered[m.label.use])) {
                /* A node gets a single push of each use, before the ranks start. */
                push_offer_finish(&m);
                refuse_push(p, "files were pushed to this node before");
                return;
        }
        p->state = PUSH_FETCHING;
        p->cache = &p->caches[m.label.use];
        p->offered[m.label.use] = true;
        buf_finish(&p->list); /* the bytes of a failed list */
        file_cache_offer(p->cache, &m);
        p->changed(p->ctx);
        answer_offer(p, false);
}

void push_receiver_on_look(void *receiver, const struct frame *f)
{
        struct push_receiver *p = receiver;
        struct push_look m;

        if (push_look_decode(&m, f, NULL) < 0 || p->state != PUSH_FETCHING)
                refuse_push(p, "nothing was offered");
        else
                answer_offer(p, m.take_over);
}

/* Fills @to with the @len bytes of a PACK. Files have a hash of their own. False: damaged. */
static bool unpack_pieces(const struct push_pack *m, unsigned char *to, size_t len)
{
        if (m->deflated)
                return inflate_bytes(to, len, m->data, m->len);
        memcpy(to, m->data, len);
        return true;
}

/* Takes the next bytes of the manifest. After the last byte looks for the files. */
static void receive_manifest(struct push_receiver *p, const struct push_piece *e, const void *data)
{
        struct push_offer *offer = &p->cache->offer, m = *offer;
        unsigned char sha[PUSH_SHA];
        struct frame f;

        if (e->offset != buf_len(&p->list))
                return;
        buf_append(&p->list, data, e->len);
        if (buf_len(&p->list) < offer->later)
                return;
        f = (struct frame){ .body = buf_data(&p->list), .len = buf_len(&p->list) };
        crypto_hash_sha256(sha, f.body, f.len);
        if (memcmp(sha, offer->label.sha, PUSH_SHA) != 0 ||
            push_manifest_decode(&m.manifest, &f, NULL) < 0) {
                refuse_push(p, "a damaged list of files");
                return;
        }
        buf_finish(&p->list);
        m.later = 0;
        *offer = (struct push_offer){ 0 }; /* @m owns the strings now */
        file_cache_offer(p->cache, &m);
        answer_offer(p, false);
}

void push_receiver_take(struct push_receiver *p, const struct push_pack *m)
{
        bool list = m->n && m->pieces[0].entry == PUSH_LIST;
        unsigned char bytes[PUSH_PACK_MAX], *data = bytes;
        struct pushed failure;

        /* On the way when the push failed; or out of turn, without a place for the files. */
        if (p->state != PUSH_FETCHING || (list ? !p->cache->offer.later : !p->cache->tree))
                return;
        if (!unpack_pieces(m, bytes, push_pack_bytes(m))) {
                refuse_push(p, "a damaged piece of a file");
                return;
        }
        if (list) {
                receive_manifest(p, m->pieces, bytes);
                return;
        }
        for (uint32_t i = 0; i < m->n; i++) {
                const struct push_piece *e = &m->pieces[i];
                const struct push_chunk c = { e->entry, e->offset, data, e->len };

                if (file_cache_put(p->cache, &c, &failure) < 0) {
                        send_pushed(p, &failure);
                        return;
                }
                data += e->len;
        }
        if (file_cache_complete(p->cache))
                finish_push(p);
}

const char *push_receiver_dir(const struct push_receiver *p, enum push_use use)
{
        bool ended = p->state == PUSH_ENDED || p->cache != &p->caches[use];

        return p->offered[use] && ended ? p->caches[use].tree : NULL;
}

void push_receiver_close(struct push_receiver *p)
{
        for (int i = 0; i < PUSH_USES; i++) {
                char *left;

                if (!p->offered[i])
                        continue;
                file_cache_close(&p->caches[i], &left);
                if (left)
                        log_warning(HN_FILES_LEFT, "%s", left);
                free(left);
                p->offered[i] = false;
        }
        buf_finish(&p->list);
        p->state = PUSH_NONE;
}

void push_receiver_on_stage(void *receiver, const struct frame *f)
{
        struct push_receiver *p = receiver;
        struct stage_order m;
        struct staged all;
        struct error err;

        if (stage_order_decode(&m, f, &err) < 0) {
                log_line(LOG_WARN, "%s", err.text);
                return;
        }
        stage_copies_run(&m, &all);
        staged_encode(&p->up->out, &all);
        staged_finish(&all);
}

bool push_receiver_is_fetching(const struct push_receiver *p)
{
        return p->state == PUSH_FETCHING;
}

const struct file_cache *push_receiver_cache(const struct push_receiver *p)
{
        return p->cache;
}

void push_receiver_mark_pulled(struct push_receiver *p)
{
        p->caches[PUSH_RANKS].pulled = true;
}

struct push_receiver *push_receiver_create(struct uplink *up, void (*changed)(void *ctx), void *ctx)
{
        struct push_receiver *p = xcalloc(1, sizeof(*p));

        *p = (struct push_receiver){ .up = up, .changed = changed, .ctx = ctx };
        for (int i = 0; i < PUSH_USES; i++)
                p->caches[i] = (struct file_cache)FILE_CACHE_INIT;
        p->cache = p->caches;
        return p;
}

void push_receiver_destroy(struct push_receiver *p)
{
        free(p);
}
