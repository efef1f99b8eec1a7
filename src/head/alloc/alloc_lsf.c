/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSF: "host count host count ..." in LSB_MCPU_HOSTS; without it a host per slot, in the file of
 * LSB_DJOB_HOSTFILE, else in LSB_HOSTS, which LSF leaves out in large jobs. The first host of the
 * job runs its script, so that this machine must be one of them.
 */
#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "head/alloc/alloc_reader.h"
#include "head/hosts/hostfile.h"

/* Reads a list of words: each is a host, followed by its slots if @counted. */
static int read_lsf_words(struct alloc_reader *r, const char *name, bool counted)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;
        struct text_range word;

        alloc_text_open(&t, r, name);
        for (size_t at = 0; alloc_next_word(&t, &at, &word);) {
                CLEANUP(strv_finish) struct strv names = STRV_INIT;
                struct alloc_count slots = { .value = 1 };

                if (alloc_take_names(&t, word, &names) < 0)
                        return -EINVAL;
                if (counted) {
                        at += strspn(t.t.text + at, " \t\n");
                        if (alloc_take_number(&t, &at, SLOTS_MAX, &slots) < 0)
                                return -EINVAL;
                }
                for (size_t i = 0; i < names.n; i++)
                        if (alloc_add_tasks(r, &t, word, names.v[i], slots.value) < 0)
                                return -EINVAL;
        }
        if (r->hosts->n)
                return 0;
        alloc_text_error(&t, HN_ALLOC_TEXT, (struct text_range){ 0, t.t.len }, "no host is named");
        return -EINVAL;
}

int alloc_lsf_read(struct alloc_reader *r)
{
        const struct alloc_input *in = r->in;
        const char *from = alloc_variable(in->env, "LSB_MCPU_HOSTS") ? "LSB_MCPU_HOSTS"
                           : in->path                                ? "LSB_DJOB_HOSTFILE"
                                                                     : "LSB_HOSTS";
        const char *job = alloc_variable(in->env, "LSB_JOBID");
        struct diag *d;
        int rc;

        if (!alloc_variable(in->env, from))
                return alloc_lacks(r, "LSB_MCPU_HOSTS", "LSB_JOBID");
        if (strcmp(from, "LSB_DJOB_HOSTFILE") != 0)
                rc = read_lsf_words(r, from, strcmp(from, "LSB_HOSTS") != 0);
        else
                rc = hostfile_parse(r->hosts, in->path, in->text, in->len, r->diags);
        if (rc < 0)
                return rc;
        if (!in->asked && !alloc_find_host(r->hosts, in->host)) {
                d = diag_add(r->diags, HN_ALLOC_ORIGIN, EX_DATAERR,
                             "the variables LSB_* were set on another machine");
                diag_note(d, "this machine, %s, is no host of job %s", in->host, job);
                diag_help(d, "--scheduler lsf uses the hosts all the same; -H, -w or --local name "
                             "hosts");
                return -EINVAL;
        }
        alloc_settle(r, job, from, 0, NULL);
        return 0;
}
