/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look ends in one of three functions here: hang_found() for a look of --hang-after, hang_asked()
 * for a user's, hang_last() before the ranks are stopped. Each tells the job which rank is to blame
 * (job_blame()); only hang_found() lets the job act as --on-hang says.
 *
 * The stacks go to the file hang.txt of the records, by the recorder's thread: a slow disk holds
 * nothing up.
 */
#include "head/watch/hang.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/job/job.h"
#include "head/output/run_dir.h"
#include "head/output/say.h"
#include "head/run/recorder.h"
#include "head/run/run_folders.h"
#include "head/why/why.h"
#include "head/why/why_tell.h"

/* Keeps all stacks, and notes at @d where. Stacks are text of the ranks' nodes: made harmless for a
 * terminal. */
static void keep_stacks(const struct run_view *r, const json_t *answer, struct diag *d)
{
        const char *report = json_string_value(json_object_get(answer, "report"));
        CLEANUP(free_textp) char *folder = run_folders_records(), *text = NULL;
        struct recorder *to = run_dir_recorder(r->dir);
        size_t len;
        FILE *f = to && folder && report && !recorder_has_failed(to) ? open_memstream(&text, &len)
                                                                     : NULL;

        if (!f)
                return;
        printable_write(f, report, strlen(report));
        if (fclose(f))
                return;
        recorder_put(to, RECORD_HANG, text, len);
        if (run_dir_path(r->dir))
                diag_note(d, "all stacks are in %s/hang.txt", run_dir_path(r->dir));
        else
                diag_note(d, "all stacks are in %s/%s/hang.txt", folder, r->id);
}

/* Whether the finding is enough to act without a user. An unsure one is only shown. */
static bool is_sure_hang(const struct why_finding *f)
{
        return f->kind != WHY_NO_HANG && f->is_sure;
}

void hang_found(const struct run_view *r, const struct why_finding *f, const json_t *answer)
{
        bool hangs = is_sure_hang(f);
        struct diags d = DIAGS_INIT;
        struct diag *di;
        char age[32];

        format_duration(age, sizeof(age), r->o->hang_after_ms * 1000);
        /* No warning for a run that may be well, but a line of the log. */
        if (!hangs)
                log_line(LOG_INFO, "no rank%s has gone on for %s, but %s",
                         r->plan->n_worlds > 1 ? " of a world" : "", age, f->text);
        if (!hangs || !job_still_hangs(r->job, &f->worlds, true))
                return;
        di = why_warn(answer, r->o->hang_after_ms, diag_row_width(STDERR_FILENO), &d);
        keep_stacks(r, answer, di);
        if (r->o->on_hang == HANG_REPORT)
                diag_help(di,
                          "hnlaunch why %s looks once more; --on-hang stop ends such a run, "
                          "--on-hang restart starts it again",
                          r->id);
        say_diags(&d, r->color);
        diags_finish(&d);
        job_ask_traces(r->job);
        job_blame(r->job, f);
        job_hangs(r->job);
}

void hang_asked(const struct run_view *r, const struct why_finding *f)
{
        if (is_sure_hang(f) && job_still_hangs(r->job, &f->worlds, false))
                job_blame(r->job, f);
}

void hang_last(const struct run_view *r, const struct why_finding *f, const json_t *answer)
{
        size_t width = diag_row_width(STDERR_FILENO);
        struct diags d = DIAGS_INIT;

        /* After a wait in vain the brief names the missed rank even without a hang. */
        if (f->brief && (f->kind != WHY_NO_HANG || job_outcome(r->job)->cause.waited))
                job_blame(r->job, f);
        keep_stacks(r, answer,
                    f->kind == WHY_NO_HANG ? why_tell_rows(answer, width, &d)
                                           : why_tell(answer, width, &d));
        say_diags(&d, r->color);
        diags_finish(&d);
}
