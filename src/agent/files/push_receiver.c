/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OFFER starts a push: the manifest goes to the file cache, which links the contents already there
 * and lists missing contents. The answer is WANT with the missing entries, or with another node of
 * the run, fetching into the same (shared) folder; LOOK asks again later. Every CHUNK is credited
 * with TAKEN. Exactly one PUSHED ends the push, with the folder or with the first failure; chunks
 * after a failure are dropped.
 */
#include "agent/files/push_receiver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/job_dir.h"
#include "agent/core/uplink.h"
#include "agent/files/file_cache.h"
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
        enum push_state state;
        struct file_cache cache;
        struct uplink *up;
        void (*changed)(void *ctx);
        void *ctx;
};

/* Ends the push. Later failures are sent as well, and the head ignores them. @changed comes first,
 * so the agent knows the folder when the head answers. */
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

        file_cache_finish(&p->cache, &m);
        send_pushed(p, &m);
}

/* Answers an OFFER or a LOOK: PUSHED, WANT with the missing contents, or WANT with the node that
 * fetches for all. */
static void look_for_files(struct push_receiver *p, bool take_over)
{
        struct push_want want = { .holder = PUSH_NO_NODE };
        struct pushed failure;
        int r = file_cache_look(&p->cache, take_over, &want.holder, &failure);

        p->changed(p->ctx);
        if (r < 0) {
                send_pushed(p, &failure);
        } else if (r == 0 && file_cache_complete(&p->cache)) {
                finish_push(p);
        } else {
                if (r == 0) {
                        want.entries = p->cache.missing;
                        want.n = p->cache.n_missing;
                }
                push_want_encode(&p->up->out, &want);
        }
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
        if (p->state != PUSH_NONE) {
                /* A node gets one push, before the ranks start. */
                push_offer_finish(&m);
                refuse_push(p, "files were pushed to this node before");
                return;
        }
        p->state = PUSH_FETCHING;
        file_cache_offer(&p->cache, &m);
        p->changed(p->ctx);
        look_for_files(p, false);
}

void push_receiver_on_look(void *receiver, const struct frame *f)
{
        struct push_receiver *p = receiver;
        struct push_look m;

        if (push_look_decode(&m, f, NULL) < 0 || p->state != PUSH_FETCHING)
                refuse_push(p, "nothing was offered");
        else
                look_for_files(p, m.take_over);
}

void push_receiver_on_chunk(void *receiver, const struct frame *f)
{
        struct push_receiver *p = receiver;
        struct pushed failure;
        struct push_chunk m;
        struct error err;

        if (p->state != PUSH_FETCHING) /* chunks that were under way when the push failed */
                return;
        if (push_chunk_decode(&m, f, &err) < 0) {
                refuse_push(p, err.text);
        } else if (file_cache_put(&p->cache, &m, &failure) < 0) {
                send_pushed(p, &failure);
        } else {
                /* The credit counts the frame, too, as the head does. */
                number_encode(&p->up->out, MSG_TAKEN, (uint32_t)m.len + PUSH_CHUNK_COST);
                if (file_cache_complete(&p->cache))
                        finish_push(p);
        }
}

int push_receiver_read_chunk(struct push_receiver *p, struct buf *to, uint32_t entry,
                             uint64_t offset, uint32_t len)
{
        struct pushed failure;
        void *data;

        if (p->state == PUSH_NONE || len > PUSH_CHUNK_MAX)
                refuse_push(p, "no such file is here");
        else if (!(data = push_chunk_begin(to, entry, offset, len)))
                refuse_push(p, strerror(ENOMEM));
        else if (file_cache_read(&p->cache, entry, offset, data, len, &failure) < 0)
                send_pushed(p, &failure);
        else
                return 0;
        return -1;
}

const char *push_receiver_dir(const struct push_receiver *p)
{
        return p->state == PUSH_ENDED ? p->cache.tree : NULL;
}

void push_receiver_close(struct push_receiver *p)
{
        char *left;

        if (p->state == PUSH_NONE)
                return;
        file_cache_close(&p->cache, &left);
        if (left)
                log_warning(HN_FILES_LEFT, "%s", left);
        free(left);
        p->state = PUSH_NONE;
}

bool push_receiver_is_fetching(const struct push_receiver *p)
{
        return p->state == PUSH_FETCHING;
}

const struct file_cache *push_receiver_cache(const struct push_receiver *p)
{
        return &p->cache;
}

void push_receiver_mark_pulled(struct push_receiver *p)
{
        p->cache.pulled = true;
}

struct push_receiver *push_receiver_create(struct uplink *up, void (*changed)(void *ctx), void *ctx)
{
        struct push_receiver *p = xcalloc(1, sizeof(*p));

        *p = (struct push_receiver){
                .cache = FILE_CACHE_INIT, .up = up, .changed = changed, .ctx = ctx
        };
        return p;
}

void push_receiver_destroy(struct push_receiver *p)
{
        free(p);
}
