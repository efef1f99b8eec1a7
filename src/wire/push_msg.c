/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest has one encoding with three uses: as part of OFFER, as the bytes of a stream, and as
 * the bytes whose SHA-256 names the folder on the node. code_push_entry() rejects every path that
 * could leave this folder (push_path_is_safe()) and modes above 07777, because the agent creates
 * files by these entries. The receiver of a PACK reserves memory by push_pack_bytes(), so
 * code_push_pack() limits the sum.
 */
#include "wire/push_msg.h"

#include "wire/msg_functions.h"

enum { MODE_MAX = 07777, PERMISSIONS_MAX = 0777 };

/* Looks at each part between slashes. An empty part means an absolute path, two slashes in a row or
 * one at the end. */
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

static void code_push_entry(struct codec *c, struct push_entry *e)
{
        codec_u8(c, &e->kind);
        codec_require(c, e->kind >= PUSH_FOLDER && e->kind <= PUSH_LINK);
        codec_u32(c, &e->mode);
        codec_require(c, e->mode <= MODE_MAX);
        codec_str(c, &e->path, PUSH_PATH_MAX);
        if (c->op == CODEC_DECODE)
                codec_require(c, e->path && push_path_is_safe(e->path));
        /* Folders have neither size nor target. */
        if (e->kind == PUSH_FILE) {
                codec_u64(c, &e->size);
                codec_raw(c, e->sha, PUSH_SHA);
        } else if (e->kind == PUSH_LINK) {
                codec_str(c, &e->target, PUSH_PATH_MAX);
        }
}

static void code_push_manifest(struct codec *c, struct push_manifest *m)
{
        CODEC_ARRAY(c, m->v, m->n, PUSH_ENTRIES_MAX, code_push_entry);
}

void push_manifest_put(struct buf *b, const struct push_manifest *m)
{
        code_push_manifest(&CODEC_TO(b), (struct push_manifest *)m);
}

DEFINE_DECODE(push_manifest)
DEFINE_FINISH(push_manifest)

/* --- head -> agent ---------------------------------------------------------------------------- */

static void code_push_label(struct codec *c, struct push_label *m)
{
        codec_u8(c, &m->use);
        codec_require(c, m->use < PUSH_USES);
        codec_u64(c, &m->limit);
        codec_raw(c, m->sha, PUSH_SHA);
        codec_str(c, &m->name, PUSH_PATH_MAX);
        codec_str(c, &m->python.path, PUSH_PATH_MAX);
        codec_u64(c, &m->python.size);
        codec_raw(c, m->python.sha, PUSH_SHA);
}

static void code_push_offer(struct codec *c, struct push_offer *m)
{
        codec_text(c, m->run_id, sizeof(m->run_id));
        /* The run id becomes part of file names. */
        codec_require(c, !strchr(m->run_id, '/'));
        codec_u32(c, &m->node);
        codec_u32(c, &m->silence_ms);
        codec_u8(c, &m->keep);
        codec_u32(c, &m->later);
        codec_require(c, m->later <= PUSH_MANIFEST_MAX);
        code_push_label(c, &m->label);
        code_push_manifest(c, &m->manifest);
}

static void code_push_look(struct codec *c, struct push_look *m)
{
        codec_u8(c, &m->take_over);
}

DEFINE_OWNING_MESSAGE(push_offer, MSG_OFFER)
DEFINE_PLAIN_MESSAGE(push_look, MSG_LOOK)

static void code_push_piece(struct codec *c, struct push_piece *p)
{
        codec_u32(c, &p->entry);
        codec_u64(c, &p->offset);
        codec_u32(c, &p->len);
        codec_require(c, p->len <= PUSH_PACK_MAX);
}

size_t push_pack_bytes(const struct push_pack *m)
{
        size_t n = 0;

        for (uint32_t i = 0; i < m->n; i++)
                n += m->pieces[i].len;
        return n;
}

static void code_push_pack(struct codec *c, struct push_pack *m)
{
        codec_u32(c, &m->stream);
        codec_u32(c, &m->position);
        codec_bool(c, &m->deflated);
        CODEC_ARRAY(c, m->pieces, m->n, PUSH_PACK_MAX / PUSH_PIECE_COST, code_push_piece);
        codec_rest(c, &m->data, &m->len);
        if (c->op == CODEC_DECODE && !c->in.failed)
                codec_require(c, push_pack_bytes(m) <= PUSH_PACK_MAX &&
                                         (m->deflated || m->len == push_pack_bytes(m)));
}

static void code_chain_order(struct codec *c, struct chain_order *m)
{
        codec_u32(c, &m->number);
        codec_u32(c, &m->stream);
        codec_u32(c, &m->packs);
        codec_u8(c, &m->what);
        codec_require(c, m->what >= CHAIN_LISTEN && m->what < CHAIN_WHATS);
        codec_bool(c, &m->yields);
        codec_raw(c, m->key, PUSH_CHAIN_KEY);
        codec_u32(c, &m->port);
        codec_require(c, m->port <= UINT16_MAX);
        codec_strv(c, &m->addrs, PUSH_CHAIN_ADDRS, MSG_MAX_STRING);
}

DEFINE_OWNING_MESSAGE(push_pack, MSG_PACK)
DEFINE_OWNING_MESSAGE(chain_order, MSG_CHAIN)

/* --- agent -> head ---------------------------------------------------------------------------- */

static void code_push_want(struct codec *c, struct push_want *m)
{
        codec_u32(c, &m->holder);
        codec_u32_array(c, &m->entries, &m->n, PUSH_ENTRIES_MAX);
        for (uint32_t i = 1; i < m->n; i++)
                /* Ascending numbers are different ones, so no file is sent twice. */
                codec_require(c, m->entries[i] > m->entries[i - 1]);
}

static void code_pushed(struct codec *c, struct pushed *m)
{
        codec_u32(c, &m->error);
        codec_u64(c, &m->free_bytes);
        codec_text(c, m->folder, sizeof(m->folder));
        codec_text(c, m->what, sizeof(m->what));
}

static void code_chain_report(struct codec *c, struct chain_report *m)
{
        codec_u32(c, &m->number);
        codec_u32(c, &m->stream);
        codec_u8(c, &m->what);
        codec_require(c, m->what >= CHAINED_LISTENS && m->what < CHAINED_WHATS);
        codec_u32(c, &m->position);
        codec_u32(c, &m->port);
        codec_require(c, m->port <= UINT16_MAX);
        codec_u32(c, &m->error);
}

DEFINE_OWNING_MESSAGE(push_want, MSG_WANT)
DEFINE_PLAIN_MESSAGE(chain_report, MSG_CHAINED)
DEFINE_PLAIN_MESSAGE(pushed, MSG_PUSHED)

/* --- --pull ----------------------------------------------------------------------------------- */

static void code_pull_order(struct codec *c, struct pull_order *m)
{
        codec_strv(c, &m->paths, PULL_PATHS_MAX, PUSH_PATH_MAX);
        codec_strv(c, &m->skip, PULL_PATHS_MAX, PUSH_PATH_MAX);
}

/* Paths come from a node and become files at home, so they are checked as those of a push. An empty
 * path is the ordered path itself. */
static void code_pulled(struct codec *c, struct pulled *m)
{
        codec_u8(c, &m->kind);
        codec_require(c, m->kind >= PULL_FOLDER && m->kind < PULL_KINDS);
        codec_u32(c, &m->item);
        codec_u32(c, &m->mode);
        codec_require(c, m->mode <= PERMISSIONS_MAX); /* no set-user-ID at home */
        codec_u32(c, &m->error);
        codec_str(c, &m->path, PUSH_PATH_MAX);
        if (c->op == CODEC_DECODE)
                codec_require(c, m->path && (!*m->path || push_path_is_safe(m->path)));
        codec_rest(c, &m->data, &m->len);
        codec_require(c, m->len <= PULL_PART_MAX);
}

DEFINE_OWNING_MESSAGE(pull_order, MSG_PULL)
DEFINE_OWNING_MESSAGE(pulled, MSG_PULLED)

static void code_stage_order(struct codec *c, struct stage_order *m)
{
        codec_u8(c, &m->remove);
        codec_u64(c, &m->limit);
        codec_u64(c, &m->max_age_s);
}

static void code_staged_copy(struct codec *c, struct staged_copy *m)
{
        codec_str(c, &m->folder, PUSH_PATH_MAX);
        codec_str(c, &m->name, PUSH_PATH_MAX);
        codec_u8(c, &m->use);
        codec_require(c, m->use < PUSH_USES);
        codec_u64(c, &m->bytes);
        codec_u64(c, &m->files);
        codec_u64(c, &m->age_s);
        codec_u8(c, &m->in_use);
        codec_u8(c, &m->removed);
}

static void code_staged(struct codec *c, struct staged *m)
{
        CODEC_ARRAY(c, m->v, m->n, STAGED_MAX, code_staged_copy);
}

DEFINE_PLAIN_MESSAGE(stage_order, MSG_STAGE)
DEFINE_OWNING_MESSAGE(staged, MSG_STAGED)
