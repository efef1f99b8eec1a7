/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_private.h"
#include "base/log.h"

/* The whole, or a failure; of a second one nobody needs to know. */
static void send_pushed(struct agent *a, const struct pushed *m)
{
        a->pushing = false;
        if (a->phase == IDLE)
                agent_rearm_silence(a); /* nobody pings us until ranks run */
        pushed_encode(uplink_out(&a->up), m);
}

static void refuse_push(struct agent *a, const char *text)
{
        struct pushed m = { .error = EPROTO };

        memcpy(m.what, text, strnlen(text, sizeof(m.what) - 1));
        send_pushed(a, &m);
}

static void finish_push(struct agent *a)
{
        struct pushed m;

        file_cache_finish(&a->file_cache, &m);
        send_pushed(a, &m);
}

static void look_for_files(struct agent *a, bool take_over)
{
        struct push_want want = { .holder = PUSH_NO_NODE };
        struct pushed failure;
        int r = file_cache_look(&a->file_cache, take_over, &want.holder, &failure);

        if (a->notes && a->file_cache.root) {
                snprintf(a->notes->file_cache_id, sizeof(a->notes->file_cache_id), "%s",
                         a->file_cache.id);
                snprintf(a->notes->run_id, sizeof(a->notes->run_id), "%s",
                         a->file_cache.offer.run_id);
                snprintf(a->notes->file_cache_root, sizeof(a->notes->file_cache_root), "%s",
                         a->file_cache.root);
        }
        if (r < 0) {
                send_pushed(a, &failure);
        } else if (r == 0 && file_cache_complete(&a->file_cache)) {
                finish_push(a);
        } else {
                if (r == 0) {
                        want.entries = a->file_cache.missing;
                        want.n = a->file_cache.n_missing;
                }
                push_want_encode(uplink_out(&a->up), &want);
        }
}

void agent_on_offer(struct agent *a, const struct frame *f)
{
        struct push_offer m;
        struct error err;

        if (push_offer_decode(&m, f, &err) < 0) {
                refuse_push(a, err.text);
                return;
        }
        if (a->offered) {
                push_offer_finish(&m);
                refuse_push(a, "files are here already");
                return;
        }
        a->offered = a->pushing = true;
        a->silence_ms = m.silence_ms;
        agent_rearm_silence(a);
        file_cache_offer(&a->file_cache, &m);
        look_for_files(a, false);
}

void agent_on_look(struct agent *a, const struct frame *f)
{
        struct push_look m;
        struct error err;

        if (push_look_decode(&m, f, &err) < 0 || !a->pushing)
                refuse_push(a, "nothing was offered");
        else
                look_for_files(a, m.take_over);
}

/* After a failure pieces that were under way still come. */
void agent_on_chunk(struct agent *a, const struct frame *f)
{
        struct pushed failure;
        struct push_chunk m;
        struct error err;

        if (!a->pushing)
                return;
        if (push_chunk_decode(&m, f, &err) < 0) {
                refuse_push(a, err.text);
        } else if (file_cache_put(&a->file_cache, &m, &failure) < 0) {
                send_pushed(a, &failure);
        } else {
                push_taken_encode(uplink_out(&a->up),
                                  &(struct push_taken){ (uint32_t)m.len + PUSH_CHUNK_COST });
                if (file_cache_complete(&a->file_cache))
                        finish_push(a);
        }
}

int agent_push_chunk(struct agent *a, struct buf *to, uint32_t entry, uint64_t offset, uint32_t len)
{
        struct pushed failure;
        void *room;

        if (!a->offered || len > PUSH_CHUNK_MAX) {
                refuse_push(a, "no such file is here");
                return -1;
        }
        room = push_chunk_begin(to, entry, offset, len);
        if (!room) {
                refuse_push(a, strerror(ENOMEM));
                return -1;
        }
        if (file_cache_read(&a->file_cache, entry, offset, room, len, &failure) < 0) {
                send_pushed(a, &failure);
                return -1;
        }
        return 0;
}

const char *agent_push_dir(const struct agent *a)
{
        return a->offered && !a->pushing ? a->file_cache.tree : NULL;
}

void agent_push_close(struct agent *a)
{
        char *left;

        if (!a->offered)
                return;
        file_cache_close(&a->file_cache, &left);
        if (left)
                log_line(LOG_WARN, "files that ranks wrote beside pushed ones are left in %s",
                         left);
        free(left);
        a->offered = a->pushing = false;
        if (a->notes)
                a->notes->file_cache_root[0] = '\0';
}
