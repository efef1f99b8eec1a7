/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run answers in parts: the finding at once, stacks when the nodes have answered. The last part
 * has a report of all stacks, which is written to why-N.txt among the records, with the first free
 * N. The recorder removes these files with the run (head/run/recorder.c).
 */
#include "head/commands/run_why.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/run/run_folders.h"
#include "head/run/run_records.h"
#include "head/why/why_tell.h"

enum {
        ANSWER_MS = 60000, /* above all limits of a look */
        REPORTS_MAX = 1000,
};

/* Writes the report through a duplicate of @fd, as fclose() closes the descriptor. Stacks are text
 * of the ranks' nodes: made harmless for a terminal. */
static bool put_report(int fd, const char *text)
{
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        FILE *f = copy < 0 ? NULL : fdopen(copy, "w");
        bool written;

        if (!f) {
                fd_close(copy);
                return false;
        }
        printable_write(f, text, strlen(text));
        written = !ferror(f);
        return fclose(f) == 0 && written;
}

/* Creates the first why-N.txt that is not there. Returns its path, malloc'ed; NULL = none can be
 * made. */
static char *write_why_report(const struct run *r, const char *text)
{
        CLEANUP(free_textp) char *folder = run_folders_records();
        struct error err;
        CLEANUP(fd_closep) int dir = run_records_open(r->id, &err);

        for (int i = 1; dir >= 0 && text && i < REPORTS_MAX; i++) {
                CLEANUP(free_textp) char *name = xasprintf("why-%d.txt", i);
                CLEANUP(fd_closep)
                int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

                /* Another `hnlaunch why` has this number. */
                if (fd < 0 && errno == EEXIST)
                        continue;
                return fd >= 0 && put_report(fd, text) ? xasprintf("%s/%s/%s", folder, r->id, name)
                                                       : NULL;
        }
        return NULL;
}

/* Prints a part of the answer. JSON has a single object, so a part is not printed. */
static void tell_partial(void *ctx, const json_t *answer)
{
        const bool *json = ctx;
        const char *text = json_string_value(json_object_get(answer, "text"));
        struct diags d = DIAGS_INIT;

        if (*json || !text)
                return;
        diag_tell(&d, "so far, without stacks: %s", text);
        diags_print(&d, stdout, false);
        fflush(stdout);
        diags_finish(&d);
}

int run_why_ask(const struct run *r, bool json, struct error *err)
{
        json_t *answer = run_ask_each(r->socket, json_pack("{s:s}", "do", "why"), ANSWER_MS,
                                      tell_partial, &json, err);
        const char *report = json_string_value(json_object_get(answer, "report"));
        CLEANUP(free_textp) char *path = NULL;
        struct diags d = DIAGS_INIT;

        if (!answer)
                return -err->code;
        /* The run has ended before an answer. */
        if (json_object_get(answer, "verdict")) {
                err_set(err, ESRCH, "%s", json_string_value(json_object_get(answer, "verdict")));
                json_decref(answer);
                return -err->code;
        }
        path = write_why_report(r, report);
        json_object_del(answer, "report");
        if (path)
                json_object_set_new(answer, "file", json_text(path));
        if (json) {
                json_write_plain(answer, stdout);
        } else {
                struct diag *di = why_tell(answer, diag_row_width(STDOUT_FILENO), &d);

                if (path)
                        diag_note(di, "all stacks are in %s", path);
                diags_print(&d, stdout, false);
                diags_finish(&d);
        }
        json_decref(answer);
        return 0;
}
