/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OFFER starts a push: the manifest goes to the file cache, which links the contents already there
 * and lists missing contents. The answer is WANT with the missing entries, or with another node of
 * the run, fetching into the same (shared) folder; LOOK asks again later. Every CHUNK is credited
 * with TAKEN. Exactly one PUSHED ends the push, with the folder or with the first failure; chunks
 * after a failure are dropped.
 */
#include "agent/agent_push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/job_dir.h"
#include "base/log.h"
#include "wire/msg.h"

/* Ends the push. Later failures are sent as well, and the head ignores them. */
static void send_pushed(struct agent_push *p, const struct pushed *m)
{
        if (p->state == PUSH_FETCHING)
                p->state = PUSH_ENDED;
        p->changed(p->ctx);
        pushed_encode(&p->up->out, m);
}

static void refuse_push(struct agent_push *p, const char *text)
{
        struct pushed m = { .error = EPROTO };

        memcpy(m.what, text, strnlen(text, sizeof(m.what) - 1));
        send_pushed(p, &m);
}

static void finish_push(struct agent_push *p)
{
        struct pushed m;

        file_cache_finish(&p->cache, &m);
        send_pushed(p, &m);
}

static void look_for_files(struct agent_push *p, bool take_over)
{
        struct push_want want = { .holder = PUSH_NO_NODE };
        struct guard_notes *n = p->notes;
        struct pushed failure;
        int r = file_cache_look(&p->cache, take_over, &want.holder, &failure);

        if (n && p->cache.root) { /* the guard removes the files if the agent dies */
                snprintf(n->file_cache_id, sizeof(n->file_cache_id), "%s", p->cache.id);
                snprintf(n->run_id, sizeof(n->run_id), "%s", p->cache.offer.run_id);
                snprintf(n->file_cache_root, sizeof(n->file_cache_root), "%s", p->cache.root);
        }
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

void agent_push_offer(struct agent_push *p, const struct frame *f)
{
        struct push_offer m;
        struct error err;

        if (push_offer_decode(&m, f, &err) < 0) {
                refuse_push(p, err.text);
                return;
        }
        if (p->state != PUSH_NONE) {
                push_offer_finish(&m);
                refuse_push(p, "files were pushed to this node before");
                return;
        }
        p->state = PUSH_FETCHING;
        file_cache_offer(&p->cache, &m);
        p->changed(p->ctx);
        look_for_files(p, false);
}

void agent_push_look(struct agent_push *p, const struct frame *f)
{
        struct push_look m;

        if (push_look_decode(&m, f, NULL) < 0 || p->state != PUSH_FETCHING)
                refuse_push(p, "nothing was offered");
        else
                look_for_files(p, m.take_over);
}

void agent_push_take_chunk(struct agent_push *p, const struct frame *f)
{
        struct pushed failure;
        struct push_chunk m;
        struct error err;

        if (p->state != PUSH_FETCHING)
                return;
        if (push_chunk_decode(&m, f, &err) < 0) {
                refuse_push(p, err.text);
        } else if (file_cache_put(&p->cache, &m, &failure) < 0) {
                send_pushed(p, &failure);
        } else {
                number_encode(&p->up->out, MSG_TAKEN, (uint32_t)m.len + PUSH_CHUNK_COST);
                if (file_cache_complete(&p->cache))
                        finish_push(p);
        }
}

int agent_push_read_chunk(struct agent_push *p, struct buf *to, uint32_t entry, uint64_t offset,
                          uint32_t len)
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

const char *agent_push_dir(const struct agent_push *p)
{
        return p->state == PUSH_ENDED ? p->cache.tree : NULL;
}

void agent_push_close(struct agent_push *p)
{
        char *left;

        if (p->state == PUSH_NONE)
                return;
        file_cache_close(&p->cache, &left);
        if (left)
                log_line(LOG_WARN, "%s [HN%d]", left, HN_FILES_LEFT);
        free(left);
        p->state = PUSH_NONE;
        if (p->notes)
                p->notes->file_cache_root[0] = '\0';
}
