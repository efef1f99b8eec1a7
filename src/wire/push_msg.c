/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest has one encoding with two uses: as part of OFFER, and as the bytes whose SHA-256 names
 * the folder on the node. take_manifest() rejects every path that could leave this folder
 * (push_path_is_safe()) and modes above 07777, because the agent creates files by these entries.
 * A CHUNK is written around its data: push_chunk_begin() writes the head and reserves the bytes,
 * and the sender reads the file directly into the buffer.
 */
#include "wire/push_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/msg.h"
#include "wire/msg_private.h"

enum { MODE_MAX = 07777 };

/* --- the manifest ----------------------------------------------------------------------------- */

bool push_path_is_safe(const char *path)
{
        for (;;) {
                size_t n = strcspn(path, "/");

                if (!n || (n == 1 && *path == '.') || (n == 2 && !memcmp(path, "..", 2)))
                        return false;
                if (!path[n])
                        return true;
                path += n + 1;
        }
}

static void put_push_entry(struct buf *b, const struct push_entry *e)
{
        put_u8(b, e->kind);
        put_u32(b, e->mode);
        put_str(b, e->path);
        if (e->kind == PUSH_FILE) {
                put_u64(b, e->size);
                buf_append(b, e->sha, PUSH_SHA);
        } else if (e->kind == PUSH_LINK) {
                put_str(b, e->target);
        }
}

void push_manifest_put(struct buf *b, const struct push_manifest *m)
{
        put_u32(b, m->n);
        for (uint32_t i = 0; i < m->n; i++)
                put_push_entry(b, &m->v[i]);
}

static void take_sha(struct reader *r, unsigned char *to)
{
        if (r->failed || r->left < PUSH_SHA) {
                r->failed = true;
                return;
        }
        memcpy(to, r->p, PUSH_SHA);
        r->p += PUSH_SHA;
        r->left -= PUSH_SHA;
}

static void take_push_entry(struct reader *r, struct push_entry *e)
{
        e->kind = take_u8(r);
        e->mode = take_u32(r);
        e->path = take_str(r, PUSH_PATH_MAX);
        if (e->kind == PUSH_FILE) {
                e->size = take_u64(r);
                take_sha(r, e->sha);
        } else if (e->kind == PUSH_LINK) {
                e->target = take_str(r, PUSH_PATH_MAX);
        } else if (e->kind != PUSH_FOLDER) {
                r->failed = true;
        }
        if (r->failed || e->mode > MODE_MAX || !push_path_is_safe(e->path))
                r->failed = true;
}

static void take_manifest(struct reader *r, struct push_manifest *m)
{
        m->v = msg_take_array(r, PUSH_ENTRIES_MAX, sizeof(*m->v), &m->n);
        for (uint32_t i = 0; i < m->n && !r->failed; i++)
                take_push_entry(r, &m->v[i]);
}

void push_manifest_finish(struct push_manifest *m)
{
        for (uint32_t i = 0; i < m->n; i++) {
                free(m->v[i].path);
                free(m->v[i].target);
        }
        free(m->v);
        *m = (struct push_manifest){ 0 };
}

/* --- head -> agent ---------------------------------------------------------------------------- */

void push_offer_encode(struct buf *b, const struct push_offer *m)
{
        size_t mark = frame_begin(b, MSG_OFFER);

        put_str(b, m->run_id);
        put_u32(b, m->node);
        put_u32(b, m->silence_ms);
        put_u8(b, m->keep);
        push_manifest_put(b, &m->manifest);
        frame_end(b, mark);
}

int push_offer_decode(struct push_offer *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        take_str_into(&r, m->run_id, sizeof(m->run_id));
        m->node = take_u32(&r);
        m->silence_ms = take_u32(&r);
        m->keep = take_u8(&r);
        take_manifest(&r, &m->manifest);
        /* The run id becomes part of file names. */
        if (strchr(m->run_id, '/'))
                r.failed = true;
        if (msg_done(&r, f, err) == 0)
                return 0;
        push_offer_finish(m);
        return -EPROTO;
}

void push_offer_finish(struct push_offer *m)
{
        push_manifest_finish(&m->manifest);
}

void push_look_encode(struct buf *b, const struct push_look *m)
{
        size_t mark = frame_begin(b, MSG_LOOK);

        put_u8(b, m->take_over);
        frame_end(b, mark);
}

int push_look_decode(struct push_look *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->take_over = take_u8(&r);
        return msg_done(&r, f, err);
}

void *push_chunk_begin(struct buf *b, uint32_t entry, uint64_t offset, size_t len)
{
        size_t mark = frame_begin(b, MSG_CHUNK);
        void *data;

        put_u32(b, entry);
        put_u64(b, offset);
        data = buf_reserve(b, len ? len : 1);
        if (data)
                buf_advance(b, len);
        frame_end(b, mark);
        return data;
}

int push_chunk_decode(struct push_chunk *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->entry = take_u32(&r);
        m->offset = take_u64(&r);
        m->data = take_rest(&r, &m->len);
        if (m->len > PUSH_CHUNK_MAX)
                r.failed = true;
        return msg_done(&r, f, err);
}

/* --- agent -> head ---------------------------------------------------------------------------- */

void push_want_encode(struct buf *b, const struct push_want *m)
{
        size_t mark = frame_begin(b, MSG_WANT);

        put_u32(b, m->holder);
        put_u32(b, m->n);
        for (uint32_t i = 0; i < m->n; i++)
                put_u32(b, m->entries[i]);
        frame_end(b, mark);
}

int push_want_decode(struct push_want *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        m->holder = take_u32(&r);
        m->entries = msg_take_array(&r, PUSH_ENTRIES_MAX, sizeof(*m->entries), &m->n);
        for (uint32_t i = 0; i < m->n; i++) {
                m->entries[i] = take_u32(&r);
                if (i && m->entries[i] <= m->entries[i - 1])
                        r.failed = true;
        }
        if (msg_done(&r, f, err) == 0)
                return 0;
        push_want_finish(m);
        return -EPROTO;
}

void push_want_finish(struct push_want *m)
{
        free(m->entries);
        *m = (struct push_want){ 0 };
}

void push_taken_encode(struct buf *b, const struct push_taken *m)
{
        msg_encode_u32(b, MSG_TAKEN, m->bytes);
}

int push_taken_decode(struct push_taken *m, const struct frame *f, struct error *err)
{
        return msg_decode_u32(&m->bytes, f, err);
}

void pushed_encode(struct buf *b, const struct pushed *m)
{
        size_t mark = frame_begin(b, MSG_PUSHED);

        put_u32(b, m->error);
        put_u64(b, m->room);
        put_str(b, m->folder);
        put_str(b, m->what);
        frame_end(b, mark);
}

int pushed_decode(struct pushed *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->error = take_u32(&r);
        m->room = take_u64(&r);
        take_str_into(&r, m->folder, sizeof(m->folder));
        take_str_into(&r, m->what, sizeof(m->what));
        return msg_done(&r, f, err);
}
