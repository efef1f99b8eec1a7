/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of the attempt are found in three ways: as children of this subreaper; in the control
 * group or the process namespace; and by the mark in the environment, for which contain_sweep()
 * searches all processes of the user at the end. Children of other parts of the agent are no
 * processes of the job.
 */
#include "agent/contain/contain.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "wire/env_names.h"

/* No machine uses up all process numbers in this time. */
enum { SOON_S = 1 };

int contain_begin(struct error *err)
{
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return err_set(err, errno, "cannot become a subreaper: %s", strerror(errno));
        return 0;
}

int contain_open(struct contain *c, enum contain_level wanted, const char *mark, struct error *err)
{
        struct error why;
        int r = 0;

        c->level = CONTAIN_TREE;
        if (wanted == CONTAIN_PIDNS)
                r = pidns_enter(&c->pidns, err);
        else if (wanted == CONTAIN_CGROUP)
                r = cgroup_create(&c->cgroup, err);
        if (r < 0)
                return r;
        if (wanted == CONTAIN_AUTO && cgroup_create(&c->cgroup, &why) < 0)
                log_line(LOG_DEBUG, "%s", why.text);
        if (c->pidns.keeper)
                c->level = CONTAIN_PIDNS;
        else if (c->cgroup.path)
                c->level = CONTAIN_CGROUP;
        c->mark = mark;
        c->opened_s = clock_ms() / 1000;
        c->since = proc_newest();
        return 0;
}

static bool has_others(const struct contain *c)
{
        return c->others.any && c->others.any(c->others.ctx);
}

/* The keeper of the namespace, and children of other parts, are no processes of the job. */
bool contain_has_child(const struct contain *c, pid_t child)
{
        return child != c->pidns.keeper && !(has_others(c) && c->others.has(c->others.ctx, child));
}

static bool any_listed_child(const struct contain *c, pid_t of)
{
        struct pids pids = PIDS_INIT;
        bool any = false;

        proc_children(of, &pids);
        for (size_t i = 0; i < pids.n && !any; i++)
                any = contain_has_child(c, pids.v[i]) && !proc_is_held(pids.v[i]);
        pids_finish(&pids);
        return any;
}

bool contain_any(const struct contain *c)
{
        const pid_t self = getpid(), keeper = c->pidns.keeper;

        /* The list may miss a new child while another goes: two looks. */
        if (proc_any_child() &&
            ((!keeper && !has_others(c)) || any_listed_child(c, self) || any_listed_child(c, self)))
                return true;
        return keeper ? any_listed_child(c, keeper) : cgroup_populated(&c->cgroup);
}

void contain_kill(const struct contain *c)
{
        struct pids pids = PIDS_INIT;

        cgroup_kill(&c->cgroup);
        if (c->pidns.keeper)
                pidns_kill(&c->pidns);
        proc_children(getpid(), &pids);
        for (size_t i = 0; i < pids.n; i++)
                if (contain_has_child(c, pids.v[i]))
                        kill(pids.v[i], SIGKILL);
        pids_finish(&pids);
}

size_t contain_sweep(const struct contain *c)
{
        struct pids pids = PIDS_INIT;
        size_t n;

        if (!c->mark)
                return 0;
        /* Soon after the start, only processes newer than @since need a look. */
        proc_marked(&pids, HN_STORE, c->mark,
                    clock_ms() / 1000 - c->opened_s <= SOON_S ? c->since : 0);
        n = pids.n;
        for (size_t i = 0; i < n; i++)
                if (kill(pids.v[i], SIGKILL) < 0 && errno != ESRCH)
                        log_line(LOG_WARN, "process %d of the job cannot be killed: %s",
                                 (int)pids.v[i], strerror(errno));
        pids_finish(&pids);
        return n;
}

void contain_close(struct contain *c)
{
        cgroup_remove(&c->cgroup);
        c->mark = NULL;
}

const char *contain_level_name(enum contain_level level)
{
        static const char *const names[] = { [CONTAIN_AUTO] = "auto",
                                             [CONTAIN_TREE] = "tree",
                                             [CONTAIN_CGROUP] = "cgroup",
                                             [CONTAIN_PIDNS] = "pidns" };

        return names[level];
}
