/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each node answers a push with `struct pushed`: error 0, or an errno value with folder and reason.
 * report_push() groups nodes with equal answers and prints a message per group; the error number
 * decides between kinds of fault, each with a next step of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/core/shell_words.h"
#include "head/hosts/hosts.h"
#include "head/job/job_push.h"
#include "head/push/venv.h"
#include "head/report/report.h"

/* Fits host_groups_add(). The free space differs from node to node and is not compared: the row
 * shows the space of the first node. */
static bool is_same_push_failure(const void *ctx, size_t a, size_t b)
{
        const struct pushed *x = job_pushed(ctx, a), *y = job_pushed(ctx, b);

        return x->error == y->error && !strcmp(x->folder, y->folder) && !strcmp(x->what, y->what);
}

enum push_fault { NO_ROOM, DAMAGED, OTHER, NO_PLACE, NO_PYTHON, OTHER_PYTHON };

static const struct push_message {
        int id, exit;
        const char *fact, *help; /* help NULL: help_with_python() */
} push_messages[] = {
        [NO_ROOM] = { HN_PUSH_NO_ROOM, EX_UNAVAILABLE, "no room for the files",
                      "free some space there, or name a larger file system in the nodes' "
                      "HNLAUNCH_STAGE_DIR; `hnlaunch stage --gc` removes what earlier runs left" },
        [DAMAGED] = { HN_PUSH_DAMAGED, EX_UNAVAILABLE, "a pushed file has arrived damaged",
                      "the SHA-256 of the received file differs from that of the sent one: start "
                      "again; if the error returns, suspect the node's memory or disk" },
        [OTHER] = { HN_PUSH_NOT_STORED, EX_UNAVAILABLE, "cannot store the pushed files",
                    "name a writable folder in the nodes' HNLAUNCH_STAGE_DIR, or make the files "
                    "reachable there and leave --push out" },
        [NO_PLACE] = { HN_STAGE_NO_PLACE, EX_CANTCREAT, "no folder for the staged files",
                       "name a writable folder of your own in the nodes' HNLAUNCH_STAGE_DIR" },
        [NO_PYTHON] = { HN_VENV_NO_PYTHON, EX_UNAVAILABLE, "no Python of the environment", NULL },
        [OTHER_PYTHON] = { HN_VENV_NO_PYTHON, EX_UNAVAILABLE,
                           "another Python than that of the environment", NULL },
};

/* @error is an errno value of the node. The agent reports a wrong SHA-256 as EBADMSG. */
static enum push_fault push_fault_of(uint32_t error, enum push_use use)
{
        switch (error) {
        case ENOSPC:
        case EDQUOT:
                return NO_ROOM;
        case EBADMSG:
                return DAMAGED;
        case ENOPKG:
                return NO_PYTHON;
        case ELIBBAD:
                return OTHER_PYTHON;
        default:
                return use == PUSH_RANKS ? OTHER : NO_PLACE;
        }
}

/* Adds the next step for nodes without the Python. */
static void help_with_python(struct diag *d, const char *python, bool by_command)
{
        CLEANUP(free_textp) char *prefix = venv_find_prefix(python), *word = NULL;
        struct strv words = STRV_INIT;

        /* A Python of the system is no folder to be sent. */
        if (!prefix || !strcmp(prefix, "/usr") || !strcmp(prefix, "/usr/local")) {
                diag_help(d, "install the same Python there, at the same path; or make the "
                             "environment with a Python that all nodes have");
                return;
        }
        strv_push(&words, prefix);
        word = shell_words_join(&words);
        strv_finish(&words);
        if (by_command)
                diag_help(d,
                          "add the path %s, and this Python is sent along; a run needs --stage %s "
                          "then",
                          word, word);
        else
                diag_help(d,
                          "add --stage %s, and this Python is sent along; or install it there, at "
                          "the same path",
                          word);
}

/* Adds a message on nodes with equal facts. */
static void report_push_group(struct diags *d, const struct job *j, const struct hosts *hosts,
                              const struct host_group *g, bool by_command)
{
        const struct pushed *m = job_pushed(j, g->hosts[0]);
        enum push_fault fault = push_fault_of(m->error, job_push_use(j));
        const struct push_message *text = &push_messages[fault];
        char *names = hosts_fold(hosts, g->hosts, g->n), space[32];
        struct diag *di = diag_add(d, text->id, text->exit, "%s on %s", text->fact, names);

        diag_place(di, "%s:%s", hosts->v[g->hosts[0]].name, m->folder);
        diag_row(di, "%s", *m->what ? m->what : strerror((int)m->error));
        format_size(space, sizeof(space), m->free_bytes);
        if (fault == NO_ROOM)
                diag_row(di, "%s are free there", space);
        if (text->help)
                diag_help(di, "%s", text->help);
        else
                help_with_python(di, m->folder, by_command);
        free(names);
}

void report_push(struct diags *d, const struct job *j, const struct hosts *hosts, bool by_command)
{
        CLEANUP(host_groups_finish) struct host_groups groups = { 0 };

        for (size_t i = 0; i < hosts->n; i++)
                if (job_pushed(j, i) && job_pushed(j, i)->error)
                        host_groups_add(&groups, i, is_same_push_failure, j);
        for (size_t g = 0; g < groups.n; g++)
                report_push_group(d, j, hosts, &groups.v[g], by_command);
}
