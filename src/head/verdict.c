/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch says at its end, and with which exit code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "head/launch.h"
#include "head/output/say.h"
#include "head/report/report.h"

void run_say(struct run *r)
{
        say_diags(&r->diags, r->color);
        diags_finish(&r->diags);
}

/* The last event, also of a launch that ended before it had begun to record any. */
static void tell_end(struct run *r, int code, int hn, int rank, const char *text)
{
        struct error err;

        if (!r->dir && r->o.json)
                r->dir = run_dir_create(&r->events, NULL, "", true, r->o.json_file, &err);
        events_emit(&r->events, (struct event){ .kind = EVENT_RUN_END,
                                                .node = -1,
                                                .rank = rank,
                                                .value = code,
                                                .count = hn,
                                                .text = text });
}

int run_nothing(struct run *r, int code)
{
        const struct diag *d = diags_first_error(&r->diags);
        size_t shown = diags_errors(&r->diags), n = shown + diags_hidden(&r->diags);
        int hn = d ? d->id : 0;
        struct error err;
        char what[700];

        if (d && d->exit)
                code = d->exit;
        if (n > shown && r->where)
                snprintf(what, sizeof(what),
                         "%zu errors in %s, the first %zu are shown, nothing was started", n,
                         r->where, shown);
        else if (n > 1 && r->where)
                snprintf(what, sizeof(what), "%zu errors in %s, nothing was started", n, r->where);
        else if (n > 1)
                snprintf(what, sizeof(what), "nothing was started: %s, and %zu more error%s",
                         d->fact, n - 1, n == 2 ? "" : "s");
        else
                snprintf(what, sizeof(what), "nothing was started: %s",
                         d ? d->fact : "interrupted");
        if (r->dir && run_dir_write_summary(r->dir, NULL, &r->hosts, code, hn, what,
                                            events_now_us(&r->events), &err) < 0)
                diag_warn(&r->diags, 902, "%s", err.text);
        if (r->o.command == COMMAND_RUN)
                tell_end(r, code, hn, -1, what);
        run_say(r);
        say("hnlaunch: %s  (exit %d)\n", what, code);
        return code;
}

int run_nothing_because(struct run *r, int id, int code, const struct error *err)
{
        diag_add(&r->diags, id, code, "%s", err->text);
        return run_nothing(r, code);
}

/* The exit code of what did well otherwise: a closed pipe is what SIGPIPE would have ended. */
static int stdout_code(int error)
{
        return error == EPIPE ? 128 + SIGPIPE : 73;
}

int run_close_stdout(struct run *r, int code)
{
        int error = say_stdout_error();
        struct error err;

        if (close(STDOUT_FILENO) < 0 && !error)
                error = errno;
        if (!error || code)
                return code;
        if (stdout_code(error) != 73)
                return stdout_code(error);
        err_set(&err, error, "cannot write to standard output: %s", strerror(error));
        if (!*r->verdict)
                return run_nothing_because(r, 905, 73, &err);
        say("hnlaunch: %s  (exit 73)\n", err.text); /* only closing it told */
        return 73;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static void verdict(struct run *r, int code)
{
        const struct outcome *o = job_outcome(r->job);
        size_t earlier = job_earlier(r->job)->n;
        char took[32], attempt[32] = "", killed[64] = "", what[700];

        format_duration(took, sizeof(took), events_now_us(&r->events));
        if (earlier)
                snprintf(attempt, sizeof(attempt), " (attempt %zu)", earlier + 1);
        if (o->killed && (o->cause.kind == CAUSE_ORDER || o->cause.kind == CAUSE_TIMEOUT))
                snprintf(killed, sizeof(killed), "; %zu rank%s had to be killed (SIGKILL)",
                         o->killed, o->killed == 1 ? "" : "s");
        if (!outcome_failed(o)) {
                snprintf(r->verdict, sizeof(r->verdict), "finished: %d rank%s exited 0 in %s%s",
                         r->plan.world_size, r->plan.world_size == 1 ? "" : "s", took, attempt);
                return;
        }
        job_sentence(r->job, &o->cause, what, sizeof(what));
        snprintf(r->verdict, sizeof(r->verdict), "%s after %s%s: %s%s  (exit %d)",
                 o->cause.kind == CAUSE_ORDER ? "stopped" : "failed", took, attempt, what, killed,
                 code);
}

/* All ranks did well, but what they said is not where it was to be. */
static int logs_failed(struct run *r, const char *what)
{
        snprintf(r->verdict, sizeof(r->verdict),
                 "all ranks exited 0, but the %s could not be written  (exit 73)", what);
        return 73;
}

/* What is missing in the run directory is always told, but decides only when nothing worse did. */
static int count_lost(struct run *r, int code)
{
        size_t lost = job_lost_bytes(r->job);
        char what[64] = "files of ranks";

        if (!lost && !job_logs_failed(r->job))
                return code;
        if (lost)
                snprintf(what, sizeof(what), "%zu bytes of output", lost);
        if (code)
                diag_warn(&r->diags, 901, "%s are missing in %s", what, run_dir_path(r->dir));
        else
                diag_add(&r->diags, 901, 73, "%s are missing in %s", what, run_dir_path(r->dir));
        return code ? code : logs_failed(r, "log folder");
}

static int stdout_failed(struct run *r, int code)
{
        int error = say_stdout_error();

        if (!error || code)
                return code;
        code = stdout_code(error);
        snprintf(r->verdict, sizeof(r->verdict),
                 "all ranks exited 0, but standard output could not be written: %s  (exit %d)",
                 strerror(error), code);
        return code;
}

/* Told once; decides only when nothing worse did. */
static int events_failed(struct run *r, int code, bool *told)
{
        struct error err;

        if (*told || !run_dir_events_error(r->dir, &err))
                return code;
        *told = true;
        diag_warn(&r->diags, 902, "%s", err.text);
        return code ? code : logs_failed(r, run_dir_path(r->dir) ? "log folder" : "events");
}

/* The exit code, once the verdict is in the run directory, too. */
static int record(struct run *r, int code)
{
        const struct outcome *o = job_outcome(r->job);
        const struct diag *d = diags_first_error(&r->diags);
        int hn = d ? d->id : 0;
        bool told = false;
        struct error err;

        code = events_failed(r, code, &told);
        if (run_dir_write_summary(r->dir, o, &r->hosts, code, hn, r->verdict,
                                  events_now_us(&r->events), &err) < 0) {
                diag_warn(&r->diags, 902, "%s", err.text);
                code = code ? code : logs_failed(r, "log folder");
        }
        tell_end(r, code, hn, o->cause.kind ? o->cause.rank : -1, r->verdict);
        return events_failed(r, code, &told);
}

int run_end(struct run *r)
{
        int code = outcome_exit_code(job_outcome(r->job));

        verdict(r, code);
        code = count_lost(r, code);
        job_last_diags(r->job, &r->diags);
        report_failure(&r->diags, r->job, &r->hosts, &r->plan, &r->o);
        code = stdout_failed(r, record(r, code));
        run_say(r);
        if (!r->o.quiet || code)
                say("hnlaunch: %s\n", r->verdict);
        if (job_hurried(r->job)) {
                /* A write to a reader that never reads cannot be waited for. */
                fflush(stderr);
                _exit(code);
        }
        return code;
}
