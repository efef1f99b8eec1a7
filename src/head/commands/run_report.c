/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The story of a run (head/record/story.h) is read from the records, so a report can be made while
 * the run goes on, too. Meanwhile, and after a kill, a sentence takes the place of the verdict. The
 * story is printed as text or JSON, or written as a page.
 */
#include "head/commands/run_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/record/story_html.h"
#include "head/record/story_text.h"
#include "head/term/columns.h"

/* Returns the present state of a running run, malloc'ed. */
static char *describe_going_run(const struct run *r)
{
        const json_t *step = json_object_get(r->info, "step");
        json_int_t total = json_integer_value(json_object_get(r->info, "total"));
        json_int_t stalled_ms = json_integer_value(json_object_get(r->info, "stalled_ms"));
        struct buf b = BUF_INIT;
        char text[32];

        format_duration(text, sizeof(text), json_integer_value(json_object_get(r->info, "us")));
        buf_printf(&b, "no verdict yet: the run has gone on for %s", text);
        if (step)
                buf_printf(&b, ", step %lld", (long long)json_integer_value(step));
        if (step && total)
                buf_printf(&b, " of %lld", (long long)total);
        if (stalled_ms) {
                format_duration(text, sizeof(text), stalled_ms / 1000 * 1000000);
                buf_printf(&b, ", %s for %s", step ? "no step" : "hangs", text);
        }
        buf_printf(&b, "; next: hnlaunch top %s or hnlaunch why %s", r->id, r->id);
        return buf_steal(&b);
}

/* Returns the sentence in place of a missing verdict, malloc'ed. */
static char *describe_missing_verdict(const struct run *r, const struct story *s)
{
        const json_t *last = json_array_get(s->events, json_array_size(s->events) - 1);
        char text[32];

        switch (r->state) {
        case RUN_GOES_ON:
                return describe_going_run(r);
        case RUN_SILENT:
                return xasprintf("no verdict yet: hnlaunch (pid %lld) does not answer",
                                 json_integer_value(json_object_get(r->info, "pid")));
        case RUN_ELSEWHERE:
                return xasprintf("no verdict yet: the run is on %s; hnlaunch report %s there tells "
                                 "whether it goes on",
                                 json_member(r->info, "host"), r->id);
        case RUN_LOST:
        case RUN_ENDED:
                break;
        }
        /* There are no events: hnlaunch was killed at the beginning, or the disk was full. */
        if (!last)
                return xstrdup("no verdict: hnlaunch was killed");
        format_duration(text, sizeof(text), json_integer_value(json_object_get(last, "us")));
        return xasprintf("no verdict: hnlaunch was killed; the last event, %s, came %s after its "
                         "start",
                         json_member(last, "ev"), text);
}

/* Opens the file of a page, empty. An earlier page of any mode becomes one for the user alone. */
static int open_page(const char *path)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0)
                return -errno;
        /* Some file systems have no modes: this is no error. */
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077))
                fchmod(fd, 0600);
        return fd;
}

/* Writes the page, readable by the user only because of the command line and words of the ranks.
 * "-" is standard output, whose errors are told at the end of hnlaunch. 0, or the exit code. */
static int write_page(const char *path, const struct story *s, const char *no_verdict,
                      struct diags *d)
{
        CLEANUP(buf_finish) struct buf page = BUF_INIT;
        bool to_stdout = !strcmp(path, "-");
        int fd, r;

        story_html(&page, s, no_verdict);
        if (to_stdout)
                return fwrite(buf_data(&page), 1, buf_len(&page), stdout) == buf_len(&page)
                               ? 0
                               : EX_CANTCREAT;
        fd = open_page(path);
        r = fd < 0 ? fd : fd_write_all(fd, buf_data(&page), buf_len(&page));
        /* A file system over the network tells a full disk only here. */
        if (fd >= 0 && close(fd) < 0 && !r)
                r = -errno;
        if (r < 0) {
                diag_help(diag_add(d, HN_NO_PAGE, EX_CANTCREAT, "cannot write %s: %s", path,
                                   strerror(-r)),
                          "--html - writes the page to standard output");
                return EX_CANTCREAT;
        }
        diag_tell(d, "the report of run %s is in %s", json_member(s->run, "run"), path);
        return 0;
}

static void print_report(const struct options *o, const struct story *s, const char *no_verdict)
{
        CLEANUP(buf_finish) struct buf text = BUF_INIT;
        json_t *j;

        if (o->json) {
                j = story_json(s);
                json_write_plain(j, stdout);
                json_decref(j);
                return;
        }
        story_print(&text, s, no_verdict,
                    isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO) : 0);
        fwrite(buf_data(&text), 1, buf_len(&text), stdout);
}

int run_report_print(const struct options *o, const struct run *r, struct diags *d)
{
        struct error err = { 0 };
        CLEANUP(free_textp) char *no_verdict = NULL;
        struct story s;
        int rc = 0;

        if (story_load(&s, r->id, &err) < 0) {
                diag_help(diag_add(d, HN_NO_REPORT, EX_NOINPUT, "run %s has no report: %s", r->id,
                                   err.text),
                          "runs with --log-dir none have no records; hnlaunch ps lists your runs");
                rc = EX_NOINPUT;
        } else {
                no_verdict = describe_missing_verdict(r, &s);
                if (o->html)
                        rc = write_page(o->html, &s, no_verdict, d);
                else
                        print_report(o, &s, no_verdict);
        }
        story_finish(&s);
        return rc;
}
