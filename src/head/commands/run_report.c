/* SPDX-License-Identifier: Apache-2.0 */
#include "head/commands/run_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/record/story_html.h"
#include "head/record/story_text.h"
#include "head/term/columns.h"

enum { HN_NO_RECORDS_THERE = 831, HN_NO_PAGE = 832 };

/* Writes the page, readable by the user only: it has the command line and words of the ranks. */
static int write_page(const char *path, const struct story *s, struct diags *d)
{
        CLEANUP(buf_finish) struct buf page = BUF_INIT;
        bool to_stdout = !strcmp(path, "-");
        int fd, r;

        story_html(&page, s);
        if (to_stdout)
                return fwrite(buf_data(&page), 1, buf_len(&page), stdout) == buf_len(&page) ? 0
                                                                                            : 73;
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&page), buf_len(&page));
        if (fd >= 0 && close(fd) < 0 && !r)
                r = -errno;
        if (r < 0) {
                diag_help(diag_add(d, HN_NO_PAGE, 73, "cannot write %s: %s", path, strerror(-r)),
                          "--html - writes the page to standard output");
                return 73;
        }
        diag_tell(d, "the report of run %s is in %s", json_member(s->run, "run"), path);
        return 0;
}

static void print_report(const struct options *o, const struct story *s)
{
        CLEANUP(buf_finish) struct buf text = BUF_INIT;
        json_t *j;

        if (o->json) {
                j = story_json(s);
                json_write_plain(j, stdout);
                json_decref(j);
                return;
        }
        story_print(&text, s, columns_of_terminal(STDOUT_FILENO));
        fwrite(buf_data(&text), 1, buf_len(&text), stdout);
}

int run_report_print(const struct options *o, const struct run *r, struct diags *d)
{
        struct error err = { 0 };
        struct story s;
        int rc = 0;

        if (story_load(&s, r->id, &err) < 0) {
                diag_help(diag_add(d, HN_NO_RECORDS_THERE, 66, "run %s has no report: %s", r->id,
                                   err.text),
                          "runs with --log-dir none have no records; hnlaunch ps lists your runs");
                rc = 66;
        } else if (o->html) {
                rc = write_page(o->html, &s, d);
        } else {
                print_report(o, &s);
        }
        story_finish(&s);
        return rc;
}
