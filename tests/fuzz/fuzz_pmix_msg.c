/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the agent and its PMIx helper. The first byte is the message's type, the rest
 * its body. What a decoder accepts is within the limits of wire/helper/pmix_msg.h, and survives
 * another round: encoding it, decoding that and encoding again gives the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/helper/pmix_msg.h"

static void check_text(const char *text, size_t max)
{
        require(text && strlen(text) <= max);
}

static int pmix_job_again(const struct frame *f, struct buf *to)
{
        struct pmix_job m;
        int r = pmix_job_decode(&m, f, NULL);

        if (r < 0)
                return r;
        check_text(m.run_id, sizeof(m.run_id) - 1);
        check_text(m.nodes, PMIX_MAP_MAX);
        check_text(m.ranks, PMIX_MAP_MAX);
        check_text(m.folder, PMIX_TEXT_MAX);
        check_text(m.program, PMIX_TEXT_MAX);
        check_text(m.cwd, PMIX_TEXT_MAX);
        check_text(m.prefix, PMIX_TEXT_MAX);
        require(m.n_local <= PMIX_LOCAL_MAX);
        pmix_job_encode(to, &m);
        pmix_job_finish(&m);
        return 0;
}

static int pmix_env_again(const struct frame *f, struct buf *to)
{
        struct pmix_env m;
        int r = pmix_env_decode(&m, f, NULL);

        if (r < 0)
                return r;
        require(m.vars.n <= PMIX_ENV_MAX);
        for (size_t i = 0; i < m.vars.n; i++)
                check_text(m.vars.v[i], PMIX_TEXT_MAX);
        pmix_env_encode(to, &m);
        pmix_env_finish(&m);
        return 0;
}

static int pmix_note_again(const struct frame *f, struct buf *to)
{
        struct pmix_note m;
        int r = pmix_note_decode(&m, f, NULL);

        if (r < 0)
                return r;
        require(m.n_ranks <= PMIX_RANKS_MAX && (!m.len || m.data + m.len == f->body + f->len));
        pmix_note_encode(to, f->type, &m);
        pmix_note_finish(&m);
        return 0;
}

static int decode_and_encode(const struct frame *f, struct buf *to)
{
        return f->type == PMIX_MSG_JOB   ? pmix_job_again(f, to)
               : f->type == PMIX_MSG_ENV ? pmix_env_again(f, to)
                                         : pmix_note_again(f, to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(buf_finish) struct buf once = BUF_INIT, twice = BUF_INIT;
        struct frame f;

        if (!size)
                return 0;
        f = (struct frame){ .type = data[0], .body = data + 1, .len = size - 1 };
        if (decode_and_encode(&f, &once) == 0) {
                require(frame_peek(&once, &f, NULL) == 1 && f.type == data[0] &&
                        decode_and_encode(&f, &twice) == 0 && buf_len(&once) == buf_len(&twice) &&
                        memcmp(buf_data(&once), buf_data(&twice), buf_len(&once)) == 0);
        }
        return 0;
}
