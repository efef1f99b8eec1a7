/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "head/alloc/alloc_reader.h"

/* Reads "host slots queue processors" of the current line; the last two words do not matter. */
static int read_sge_line(struct alloc_reader *r, struct alloc_text *t)
{
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        size_t at = t->t.lines[t->t.line - 1], end = hostfile_text_line_end(&t->t, t->t.line);
        struct text_range word;
        struct alloc_count slots;

        if (!alloc_next_word(t, &at, &word) || word.at >= end)
                return 0;
        if (alloc_take_names(t, word, &names) < 0)
                return -EINVAL;
        at += strspn(t->t.text + at, " \t");
        if (alloc_take_number(t, &at, SLOTS_MAX, &slots) < 0)
                return -EINVAL;
        if (at < end && !strchr(" \t", t->t.text[at])) {
                alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ at, 1 },
                                 "lines are written HOST SLOTS QUEUE PROCESSORS");
                return -EINVAL;
        }
        for (size_t i = 0; i < names.n; i++)
                if (alloc_add_tasks(r, t, word, names.v[i], slots.value) < 0)
                        return -EINVAL;
        return 0;
}

/* PE_HOSTFILE has a line for each queue instance of the job: those of a host add up. */
int alloc_sge_read(struct alloc_reader *r)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;

        alloc_text_open_file(&t, r);
        if (hostfile_text_check(&t.t) < 0)
                return -EINVAL;
        for (t.t.line = 1; (size_t)t.t.line <= t.t.n_lines; t.t.line++)
                if (read_sge_line(r, &t) < 0)
                        return -EINVAL;
        if (!r->hosts->n) {
                t.t.line = 1;
                alloc_text_error(&t, HN_ALLOC_TEXT, (struct text_range){ 0, 1 },
                                 "no host is named");
                return -EINVAL;
        }
        alloc_settle(r, alloc_variable(r->in->env, "JOB_ID"), "PE_HOSTFILE", 0, NULL);
        return 0;
}
