/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/strv.h"
#include "head/job/job_push.h"
#include "head/report/report.h"

enum { HN_CANNOT_STORE = 234, HN_NO_ROOM = 235, HN_DAMAGED = 236, EX_NODE = 69 };

static int id_of(uint32_t error)
{
        switch (error) {
        case ENOSPC:
        case EDQUOT:
                return HN_NO_ROOM;
        case EBADMSG:
                return HN_DAMAGED;
        default:
                return HN_CANNOT_STORE;
        }
}

static bool same_failure(const struct pushed *a, const struct pushed *b)
{
        return a->error == b->error && !strcmp(a->folder, b->folder) && !strcmp(a->what, b->what);
}

static struct diag *head_line(struct diags *d, const struct pushed *m, const char *names)
{
        switch (id_of(m->error)) {
        case HN_NO_ROOM:
                return diag_add(d, HN_NO_ROOM, EX_NODE, "no room for the pushed files on %s",
                                names);
        case HN_DAMAGED:
                return diag_add(d, HN_DAMAGED, EX_NODE, "a pushed file has arrived damaged on %s",
                                names);
        default:
                return diag_add(d, HN_CANNOT_STORE, EX_NODE, "cannot store the pushed files on %s",
                                names);
        }
}

static void next_step(struct diag *di, const struct pushed *m)
{
        switch (id_of(m->error)) {
        case HN_NO_ROOM:
                diag_help(di, "make room there, or name a larger file system in the nodes' "
                              "XDG_CACHE_HOME; what earlier runs kept is below that folder");
                break;
        case HN_DAMAGED:
                diag_help(di, "the SHA-256 of what came differs from what was sent: start again; "
                              "if it comes back, suspect the node's memory or disk");
                break;
        default:
                diag_help(di, "name a writable folder in the nodes' XDG_CACHE_HOME, or make the "
                              "files reachable there and leave --push out");
        }
}

/* @from and all later hosts that failed in the same way. */
static void report_like(struct diags *d, const struct job *j, const struct hosts *hosts,
                        size_t from, bool *told)
{
        const struct pushed *m = job_pushed(j, from), *other;
        size_t *like = xcalloc(hosts->n, sizeof(*like)), n = 0;
        struct diag *di;
        char room[32], *names;

        for (size_t i = from; i < hosts->n; i++) {
                other = told[i] ? NULL : job_pushed(j, i);
                if (!other || !same_failure(other, m))
                        continue;
                told[i] = true;
                like[n++] = i;
        }
        names = hosts_fold(hosts, like, n);
        di = head_line(d, m, names);
        diag_place(di, "%s:%s", hosts->v[from].name, m->folder);
        diag_row(di, "%s", *m->what ? m->what : strerror((int)m->error));
        format_size(room, sizeof(room), m->room);
        if (id_of(m->error) == HN_NO_ROOM)
                diag_row(di, "%s are free there", room);
        next_step(di, m);
        free(names);
        free(like);
}

void report_push(struct diags *d, const struct job *j, const struct hosts *hosts)
{
        bool *told = xcalloc(hosts->n, sizeof(*told));

        for (size_t i = 0; i < hosts->n; i++)
                if (!told[i] && job_pushed(j, i) && job_pushed(j, i)->error)
                        report_like(d, j, hosts, i, told);
        free(told);
}
