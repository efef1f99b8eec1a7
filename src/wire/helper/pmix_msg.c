/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each code_*() is encoder, decoder and destructor, as in wire/msg.c. The helper runs code of the
 * node's libpmix, so the agent checks every length.
 *
 * Encoders pass a const struct to a visitor that could write; with CODEC_TO() the visitor only
 * reads. A decoder that fails frees what was read so far.
 */
#include "wire/helper/pmix_msg.h"

#include <errno.h>
#include <string.h>

#include "wire/codec.h"

/* A message must end with the last field: more bytes mean another build. */
static int check_end(const struct codec *c, const struct frame *f, struct error *err)
{
        return take_done(&c->in)
                       ? 0
                       : err_set(err, EPROTO, "malformed message %d of the PMIx helper", f->type);
}

/* --- JOB -------------------------------------------------------------------------------------- */

static void code_pmix_job(struct codec *c, struct pmix_job *m)
{
        codec_text(c, m->run_id, sizeof(m->run_id));
        codec_u32(c, &m->restart);
        codec_u32(c, &m->world_size);
        codec_u32(c, &m->num_nodes);
        codec_u32(c, &m->node);
        codec_str(c, &m->nodes, PMIX_MAP_MAX);
        codec_str(c, &m->ranks, PMIX_MAP_MAX);
        codec_u32_array(c, &m->local, &m->n_local, PMIX_LOCAL_MAX);
        codec_u32_array(c, &m->programs, &m->n_programs, PMIX_LOCAL_MAX);
        codec_require(c, m->n_programs == m->n_local);
        codec_bool(c, &m->oversubscribed);
        codec_str(c, &m->folder, PMIX_TEXT_MAX);
        codec_str(c, &m->program, PMIX_TEXT_MAX);
        codec_str(c, &m->cwd, PMIX_TEXT_MAX);
        codec_str(c, &m->prefix, PMIX_TEXT_MAX);
}

void pmix_job_encode(struct buf *b, const struct pmix_job *m)
{
        size_t mark = frame_begin(b, PMIX_MSG_JOB);

        code_pmix_job(&CODEC_TO(b), (struct pmix_job *)m);
        frame_end(b, mark);
}

int pmix_job_decode(struct pmix_job *m, const struct frame *f, struct error *err)
{
        struct codec c = CODEC_FROM(f->body, f->len);

        *m = (struct pmix_job){ 0 };
        code_pmix_job(&c, m);
        if (check_end(&c, f, err) == 0)
                return 0;
        pmix_job_finish(m);
        return -EPROTO;
}

void pmix_job_finish(struct pmix_job *m)
{
        code_pmix_job(&CODEC_FREEING, m);
}

/* --- ENV -------------------------------------------------------------------------------------- */

static void code_pmix_env(struct codec *c, struct pmix_env *m)
{
        codec_u32(c, &m->rank);
        codec_strv(c, &m->vars, PMIX_ENV_MAX, PMIX_TEXT_MAX);
}

void pmix_env_encode(struct buf *b, const struct pmix_env *m)
{
        size_t mark = frame_begin(b, PMIX_MSG_ENV);

        code_pmix_env(&CODEC_TO(b), (struct pmix_env *)m);
        frame_end(b, mark);
}

int pmix_env_decode(struct pmix_env *m, const struct frame *f, struct error *err)
{
        struct codec c = CODEC_FROM(f->body, f->len);

        *m = (struct pmix_env){ 0 };
        code_pmix_env(&c, m);
        if (check_end(&c, f, err) == 0)
                return 0;
        pmix_env_finish(m);
        return -EPROTO;
}

void pmix_env_finish(struct pmix_env *m)
{
        code_pmix_env(&CODEC_FREEING, m);
}

/* --- notes ------------------------------------------------------------------------------------ */

static void code_pmix_note(struct codec *c, struct pmix_note *m)
{
        /* Negative numbers travel as their bits. */
        uint32_t status = (uint32_t)m->status;

        codec_u32(c, &m->id);
        codec_u32(c, &m->rank);
        codec_u32(c, &status);
        m->status = (int32_t)status;
        codec_u32_array(c, &m->ranks, &m->n_ranks, PMIX_RANKS_MAX);
        codec_rest(c, &m->data, &m->len);
}

void pmix_note_encode(struct buf *b, uint8_t type, const struct pmix_note *m)
{
        size_t mark = frame_begin(b, type);

        code_pmix_note(&CODEC_TO(b), (struct pmix_note *)m);
        frame_end(b, mark);
}

int pmix_note_decode(struct pmix_note *m, const struct frame *f, struct error *err)
{
        struct codec c = CODEC_FROM(f->body, f->len);

        *m = (struct pmix_note){ 0 };
        code_pmix_note(&c, m);
        if (check_end(&c, f, err) == 0)
                return 0;
        pmix_note_finish(m);
        return -EPROTO;
}

void pmix_note_finish(struct pmix_note *m)
{
        code_pmix_note(&CODEC_FREEING, m);
}
