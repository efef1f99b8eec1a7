/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three layers decide the exit code of a job, in this order; a later layer replaces only 0:
 *
 * 1. the outcome of the ranks (outcome_exit_code())
 * 2. output, events or the summary missing in the run directory, or files of --pull: 73
 * 3. unwritable standard output or error: EX_CANTCREAT, or 141 for a closed pipe; output without a
 * reader: 73
 *
 * A deciding layer also replaces the sentence in launch's end.verdict. The sentence goes into
 * summary.json and the event run.end first, and is printed last, after the messages; on a terminal
 * a line with the next commands follows.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "base/printable.h"
#include "head/dial_in/dial_in.h"
#include "head/launch/launch_private.h"
#include "head/launch/launch_restart.h"
#include "head/output/say.h"
#include "head/pull/pull.h"
#include "head/report/report.h"
#include "head/watch/step_feed.h"

void verdict_say(struct launch *l)
{
        say_diags(&l->diags, l->run->color);
        diags_finish(&l->diags);
}

/* Emits run.end, also when the launch failed before the records were open. */
static void emit_end(struct launch *l, int code, int hn, int rank, const char *text)
{
        struct error err;

        /* Readers of --json wait for run.end. */
        if (!l->run->dir && l->o->json)
                l->run->dir =
                        run_dir_create(&l->events, NULL, "", true, l->o->json_file, NULL, &err);
        events_emit(&l->events, (struct event){ .kind = EVENT_RUN_END,
                                                .node = -1,
                                                .rank = rank,
                                                .value = code,
                                                .count = hn,
                                                .text = text });
        if (l->run->dir && run_dir_link_error(l->run->dir, &err) < 0)
                diag_help(diag_warn(&l->diags, HN_NO_LINK, "%s", err.text),
                          "the files of this run are in %s", run_dir_path(l->run->dir));
}

/* Tells nodes that dialed in the end, and warns of other connections. */
static void tell_dialed_in(struct launch *l, const char *text, int code)
{
        struct dial_in *d = l->config->dial_in;

        if (!d)
                return;
        d->end.code = (uint8_t)code;
        snprintf(d->end.text, sizeof(d->end.text), "%s", text);
        dial_in_report(d, &l->diags);
}

static void write_last_line(char *to, size_t size, int code, const char *fmt, va_list ap)
{
        char suffix[24];
        /* The exit code stays whole; the text is cut. */
        size_t room = (size_t)snprintf(suffix, sizeof(suffix), "  (exit %d)", code);

        vsnprintf(to, size - room, fmt, ap);
        printable_end(to, size - room);
        memcpy(to + strlen(to), suffix, room + 1);
}

void verdict_write(struct launch *l, int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        write_last_line(l->end.verdict, sizeof(l->end.verdict), code, fmt, ap);
        va_end(ap);
}

PRINTF(2, 3)
static void say_last_line(int code, const char *fmt, ...)
{
        char text[1024];
        va_list ap;

        va_start(ap, fmt);
        write_last_line(text, sizeof(text), code, fmt, ap);
        va_end(ap);
        say("hnlaunch: %s\n", text);
}

/* Says the last line of a launch that started nothing, without repeating the errors above. After an
 * error of usage (64), or where nothing was to start, the line would add nothing. */
static void say_nothing_started(const struct launch *l, size_t errors, int code)
{
        if (!errors || (errors > 1 && l->end.where))
                say("hnlaunch: %s\n", l->end.verdict);
        else if (errors > 1 && code != EX_USAGE)
                say_last_line(code, "nothing was started: %zu errors", errors);
        else if (code != EX_USAGE &&
                 (l->o->command == COMMAND_RUN || l->o->command == COMMAND_HOLD))
                say_last_line(code, "nothing was started");
}

int verdict_nothing_started(struct launch *l, int code)
{
        const struct diag *d = diags_first_error(&l->diags);
        size_t shown = diags_errors(&l->diags), n = shown + diags_hidden(&l->diags);
        int hn = d ? d->id : 0;
        struct error err;
        char what[700];

        /* The first error decides, whatever step has found it. */
        if (d && d->exit)
                code = d->exit;
        if (n > shown && l->end.where)
                snprintf(what, sizeof(what),
                         "%zu errors in %s, the first %zu are shown, nothing was started", n,
                         l->end.where, shown);
        else if (n > 1 && l->end.where)
                snprintf(what, sizeof(what), "%zu errors in %s, nothing was started", n,
                         l->end.where);
        else if (n > 1)
                snprintf(what, sizeof(what), "nothing was started: %s, and %zu more error%s",
                         d->fact, n - 1, n == 2 ? "" : "s");
        else
                snprintf(what, sizeof(what), "nothing was started: %s",
                         d ? d->fact : "interrupted");
        printable_end(what, sizeof(what));
        if (l->run->dir &&
            run_dir_write_summary(l->run->dir, NULL, &l->hosts, NULL, NULL, code, hn, what,
                                  events_now_us(&l->events), NULL, &err) < 0 &&
            /* Else the error above has told that the folder cannot be written. */
            hn != HN_NO_LOG_FOLDER)
                diag_warn(&l->diags, HN_RECORD_INCOMPLETE, "%s", err.text);
        if (l->o->command == COMMAND_RUN)
                emit_end(l, code, hn, -1, what);
        verdict_write(l, code, "%s", what);
        tell_dialed_in(l, l->end.verdict, code);
        records_end(l, code);
        verdict_say(l);
        say_nothing_started(l, n, code);
        return code;
}

int verdict_nothing_because(struct launch *l, int id, int code, const struct error *err)
{
        diag_add(&l->diags, id, code, "%s", err->text);
        return verdict_nothing_started(l, code);
}

int verdict_close_stdout(struct launch *l, int code)
{
        CLEANUP(free_textp) char *name = NULL;
        int error = say_close_stdout(&name);
        struct error err;

        if (!error || code)
                return code;
        if (error == EPIPE)
                return EX_SIGNAL + SIGPIPE;
        err_set(&err, error, "cannot write to %s: %s", name, strerror(error));
        /* No last line was printed: the command had only output. */
        if (!*l->end.verdict)
                return verdict_nothing_because(l, HN_STDOUT_UNWRITTEN, EX_CANTCREAT, &err);
        say_last_line(EX_CANTCREAT, "%s", err.text); /* only close() reported the error */
        return EX_CANTCREAT;
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* Whether rank 0 alone made the job a success (--ends-with rank0). */
static bool is_rank0s_success(const struct launch *l)
{
        const struct outcome *o = job_outcome(l->run->job);

        return o->decided && (o->stopped || o->exited < (size_t)l->plan.world_size);
}

/* Writes whose exit codes have made the job a success: "roles trainer, orch" (--main), "rank 0", or
 * all ranks, counted or not. Returns @to. */
static const char *name_winners(const struct launch *l, bool count, char to[160])
{
        const struct strv *roles = &l->o->main_roles; /* a configuration may name some, too */
        bool of_roles = l->o->first && roles->n;
        const struct outcome *o = job_outcome(l->run->job);
        size_t others = job_allowed_ranks(l->run->job), len = 0;
        size_t n = (o->ran ? o->ran->n : (size_t)l->plan.world_size) - others;

        if (of_roles)
                len = (size_t)snprintf(to, 160, roles->n == 1 ? "role" : "roles");
        else if (is_rank0s_success(l))
                snprintf(to, 160, "rank 0");
        else if (count || others)
                snprintf(to, 160, "%zu rank%s", n, n == 1 ? "" : "s");
        else
                snprintf(to, 160, "all ranks");
        for (size_t i = 0; of_roles && i < roles->n && len < 160; i++)
                len += (size_t)snprintf(to + len, 160 - len, i ? ", %s" : " %s", roles->v[i]);
        return to;
}

/* Output not written to stdout and stderr: they cannot be written, or hnlaunch was told to end
 * before the readers read. */
struct unwritten {
        size_t bytes;
        char text[128]; /* "512 bytes of ranks 0-3 were not written"; "" = all was written */
};

static struct unwritten count_unwritten(const struct launch *l)
{
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        struct unwritten u = { .bytes = l->run->detached
                                                ? 0
                                                : job_unwritten_bytes(l->run->job, &ranks) };
        CLEANUP(free_textp) char *list = intlist_fold(&ranks);

        /* A long list of ranks would push the reason out of the last line. */
        if (u.bytes && strlen(list) > 64)
                snprintf(u.text, sizeof(u.text), "%zu bytes of %zu ranks were not written", u.bytes,
                         ranks.n);
        else if (u.bytes)
                snprintf(u.text, sizeof(u.text), "%zu byte%s of rank%s %s %s not written", u.bytes,
                         u.bytes == 1 ? "" : "s", ranks.n == 1 ? "" : "s", list,
                         u.bytes == 1 ? "was" : "were");
        return u;
}

/* Writes the last line of the job to l->end.verdict. Without a failure there is no exit code in it:
 * a later layer may find one. */
static void write_verdict(struct launch *l, int code, const struct unwritten *u)
{
        const struct outcome *o = job_outcome(l->run->job);
        size_t earlier = job_earlier(l->run->job)->n, others = job_allowed_ranks(l->run->job);
        int restarts = job_role_restarts(l->run->job);
        char took[32], attempt[64] = "", killed[64] = "", stopped[64] = "", what[700];
        char winners[160], allowed[64] = "";

        /* A failed job counts to its first cause, not to the end of its last rank. */
        format_duration(took, sizeof(took),
                        outcome_failed(o) ? job_cause_us(l->run->job, &o->cause)
                                          : events_now_us(&l->events));
        if (earlier && restarts)
                snprintf(attempt, sizeof(attempt), " (attempt %zu, %d restart%s of roles)",
                         earlier + 1, restarts, restarts == 1 ? "" : "s");
        else if (earlier)
                snprintf(attempt, sizeof(attempt), " (attempt %zu)", earlier + 1);
        else if (restarts)
                snprintf(attempt, sizeof(attempt), " (%d restart%s of roles)", restarts,
                         restarts == 1 ? "" : "s");
        if (o->killed && (o->cause.kind == CAUSE_ORDER || o->cause.kind == CAUSE_TIMEOUT ||
                          o->cause.kind == CAUSE_HANG || o->cause.kind == CAUSE_NONE))
                snprintf(killed, sizeof(killed), "; %zu rank%s had to be killed (SIGKILL)",
                         o->killed, o->killed == 1 ? "" : "s");
        if (o->killed && job_hurry_signal(l->run->job))
                snprintf(killed, sizeof(killed), "; %zu rank%s killed at once by another %s",
                         o->killed, o->killed == 1 ? "" : "s",
                         outcome_signal_name(job_hurry_signal(l->run->job)));
        if (!outcome_failed(o)) {
                if (o->stopped)
                        snprintf(stopped, sizeof(stopped), "; %zu rank%s stopped", o->stopped,
                                 o->stopped == 1 ? " was" : "s were");
                if (others)
                        snprintf(allowed, sizeof(allowed), "; %zu other rank%s failed", others,
                                 others == 1 ? "" : "s");
                snprintf(l->end.verdict, sizeof(l->end.verdict),
                         "finished: %s exited 0 in %s%s%s%s%s", name_winners(l, true, winners),
                         took, attempt, allowed, stopped, killed);
                return;
        }
        job_sentence(l->run->job, &o->cause, what, sizeof(what));
        verdict_write(l, code, "%s after %s%s: %s%s%s%s",
                      o->cause.kind == CAUSE_ORDER ? "stopped" : "failed", took, attempt, what,
                      killed, u->bytes ? "; " : "", u->text);
}

/* Returns the exit code of a job with successful ranks, but incomplete records. */
static int fail_records(struct launch *l, const char *what)
{
        char winners[160];

        verdict_write(l, EX_CANTCREAT, "%s exited 0, but the %s could not be written",
                      name_winners(l, false, winners), what);
        return EX_CANTCREAT;
}

/* Tells missing output in the run directory, which decides the exit code only if @code is 0. */
static int check_lost_output(struct launch *l, int code)
{
        size_t lost = job_lost_bytes(l->run->job);
        char what[64] = "files of ranks";

        if (!lost && !job_logs_failed(l->run->job))
                return code;
        if (lost)
                snprintf(what, sizeof(what), "%zu bytes of output", lost);
        if (code)
                diag_warn(&l->diags, HN_OUTPUT_LOST, "%s are missing in %s", what,
                          run_dir_path(l->run->dir));
        else
                diag_add(&l->diags, HN_OUTPUT_LOST, EX_CANTCREAT, "%s are missing in %s", what,
                         run_dir_path(l->run->dir));
        return code ? code : fail_records(l, "log folder");
}

/* Returns the errno of stdout or stderr, and its name in *@ret_stream, malloc'ed; 0 = none. */
static int find_stream_error(const struct launch *l, char **ret_stream)
{
        int error = l->run->detached ? 0 : say_stdout_error();
        bool is_stdout;

        error = error ? error : job_stream_error(l->run->job, MSG_STDOUT);
        is_stdout = error != 0;
        error = error ? error : job_stream_error(l->run->job, MSG_STDERR);
        *ret_stream = !error      ? NULL
                      : is_stdout ? say_name_stream("standard output", STDOUT_FILENO)
                                  : say_name_stream("standard error", STDERR_FILENO);
        return error;
}

/* Tells where to find unwritten output, which decides the exit code only if @code is 0. */
static int check_unwritten(struct launch *l, int code, const struct unwritten *u)
{
        char winners[160];
        const char *dir = run_dir_path(l->run->dir);
        struct recorder *recorder = run_dir_recorder(l->run->dir);
        CLEANUP(free_textp) char *stream = NULL;
        int error = find_stream_error(l, &stream);
        struct diag *di;

        if (!u->bytes || error == EPIPE)
                return code;
        di = diag_warn(&l->diags, HN_UNWRITTEN, "%s%s%s: %s", u->text, error ? " to " : "",
                       error ? stream : "",
                       error ? strerror(error) : "hnlaunch was told to end before they were read");
        if (dir)
                diag_help(di, "the files of the ranks in %s have them", dir);
        else if (recorder && !recorder_has_failed(recorder))
                diag_help(di, "hnlaunch logs %s shows the output that was recorded",
                          l->config->run_id);
        /* check_streams() decides for an error of a stream. */
        if (code || error)
                return code;
        verdict_write(l, EX_CANTCREAT, "%s exited 0, but %s", name_winners(l, false, winners),
                      u->text);
        return EX_CANTCREAT;
}

/* Reports the files of --pull. Missing files decide the exit code only if @code is 0. */
static int check_pulled(struct launch *l, int code)
{
        char winners[160];

        if (!pull_report(l->config->pull, &l->diags, code ? 0 : EX_CANTCREAT) || code)
                return code;
        verdict_write(l, EX_CANTCREAT, "%s exited 0, but files could not be brought home (--pull)",
                      name_winners(l, false, winners));
        return EX_CANTCREAT;
}

/* Warns of a --progress-re that fits no line, unless a failed rank may not have reached a step. */
static void warn_of_steps(struct launch *l)
{
        const struct outcome *o = job_outcome(l->run->job);
        struct diag *d;

        if (!step_feed_missed(l->run) || (outcome_failed(o) && outcome_is_workers(o)))
                return;
        d = diag_warn(&l->diags, HN_NO_STEP_LINE, "no line had a step for --progress-re '%s'",
                      l->o->progress_re);
        if (run_dir_recorder(l->run->dir))
                diag_help(d, "compare it with the lines: hnlaunch logs %s", l->config->run_id);
}

static int check_streams(struct launch *l, int code)
{
        CLEANUP(free_textp) char *stream = NULL;
        char winners[160];
        int error = find_stream_error(l, &stream);

        if (!error || code)
                return code;
        /* A closed pipe counts as death by SIGPIPE. */
        code = error == EPIPE ? EX_SIGNAL + SIGPIPE : EX_CANTCREAT;
        verdict_write(l, code, "%s exited 0, but %s could not be written: %s",
                      name_winners(l, false, winners), stream, strerror(error));
        return code;
}

/* Tells once that the record of the run is incomplete: at the message of lost output in the same
 * folder, or as a warning. Decides the exit code only if @code is 0. */
static int tell_record(struct launch *l, int code, const struct error *err, bool *told)
{
        struct diags *all = &l->diags;
        size_t i = 0;

        while (i < all->n && all->v[i].id != HN_OUTPUT_LOST)
                i++;
        if (!*told && i < all->n)
                diag_note(&all->v[i], "%s", err->text);
        else if (!*told)
                diag_warn(all, HN_RECORD_INCOMPLETE, "%s", err->text);
        *told = true;
        l->end.record_told = run_dir_path(l->run->dir) != NULL;
        return code ? code : fail_records(l, run_dir_path(l->run->dir) ? "log folder" : "events");
}

static int check_events(struct launch *l, int code, bool *told)
{
        struct error err;

        return run_dir_events_error(l->run->dir, &err) ? tell_record(l, code, &err, told) : code;
}

/* Writes summary.json. Returns the exit code. */
static int write_summary(struct launch *l, int code, int hn, bool *told)
{
        struct error err;

        if (run_dir_write_summary(l->run->dir, job_outcome(l->run->job), &l->hosts, &l->plan,
                                  l->run->ranks, code, hn, l->end.verdict,
                                  events_now_us(&l->events), launch_restart_attempts(l), &err) == 0)
                return code;
        return tell_record(l, code, &err, told);
}

/* Writes the verdict into the run directory and the events. Returns the exit code. */
static int record_verdict(struct launch *l, int code)
{
        const struct outcome *o = job_outcome(l->run->job);
        const struct diag *d = diags_first_error(&l->diags);
        int hn = d ? d->id : 0, recorded;
        bool told = false;

        /* Readers of run.end find the summary. */
        code = recorded = write_summary(l, check_events(l, code, &told), hn, &told);
        emit_end(l, code, hn, o->cause.kind ? o->cause.rank : -1, l->end.verdict);
        code = check_events(l, code, &told);
        /* run.end itself could not be written: the summary gets the new exit code. */
        return code == recorded ? code : write_summary(l, code, hn, &told);
}

/* The first word, "finished", "failed" or "stopped", has the colour. */
static void say_verdict(const struct launch *l, int code)
{
        bool ordered = job_outcome(l->run->job)->cause.kind == CAUSE_ORDER;
        const char *paint = !code ? "\033[32m" : ordered ? "\033[33m" : "\033[31m";
        const char *text = l->end.verdict;
        int word = (int)strcspn(text, " :");

        if (l->run->color)
                say("hnlaunch: %s%.*s\033[0m%s\n", paint, word, text, text + word);
        else
                say("hnlaunch: %s\n", text);
}

static bool has_written(const struct job *j, int rank)
{
        CLEANUP(free_textp) char *out = job_last_words(j, rank, MSG_STDOUT);
        CLEANUP(free_textp) char *err = job_last_words(j, rank, MSG_STDERR);

        return *out || *err;
}

/* Names the next commands after a failure: on a terminal as the last line, elsewhere in front of
 * the verdict, which programs take from there. */
static void say_next(const struct launch *l, int code)
{
        const struct cause *c = &job_outcome(l->run->job)->cause;
        const char *id = l->config->run_id;
        struct recorder *recorder = run_dir_recorder(l->run->dir);
        bool loses_host = c->kind == CAUSE_NODE && c->node >= 0 && l->hosts.n > 1;
        char logs[64] = "";

        /* After an order of the user there is nothing to look into, and without records no command
         * knows of the run. */
        if (!code || l->o->quiet || c->kind == CAUSE_ORDER || !recorder ||
            recorder_has_failed(recorder))
                return;
        if (c->rank >= 0 && has_written(l->run->job, c->rank))
                snprintf(logs, sizeof(logs), "logs %s --ranks %d · ", id, c->rank);
        say("next: hnlaunch report %s · %srerun %s%s\n", id, logs,
            loses_host ? "--without-bad " : "", id);
}

int verdict_tell(struct launch *l)
{
        int code = launch_restart_code(l, outcome_exit_code(job_outcome(l->run->job)));
        const struct unwritten u = count_unwritten(l);

        if (u.bytes)
                say_briefly(); /* stderr may have the same reader */
        write_verdict(l, code, &u);
        code = check_unwritten(l, code, &u);
        code = check_lost_output(l, code);
        code = check_pulled(l, code);
        job_last_diags(l->run->job, &l->diags);
        warn_of_steps(l);
        report_failure(&l->diags, l->run->job, &l->hosts, &l->plan, l->o);
        report_dumps(&l->diags, l->run->job);
        /* Twice: the records have the exit code, and writing them may fail on stdout itself
         * (--json). */
        code = check_streams(l, record_verdict(l, check_streams(l, code)));
        tell_dialed_in(l, l->end.verdict, code);
        verdict_say(l);
        /* No message after this line is recorded, and a failure to record is one more message. */
        records_end(l, code);
        verdict_say(l);
        if (!isatty(STDERR_FILENO))
                say_next(l, code);
        if (!l->o->quiet || code)
                say_verdict(l, code);
        if (isatty(STDERR_FILENO))
                say_next(l, code);
        if (job_hurried(l->run->job)) {
                /* A thread may be blocked in a write that no signal ends: exit() would wait. */
                fflush(stderr);
                run_socket_abandon();
                dial_secret_remove();
                _exit(code);
        }
        return code;
}
