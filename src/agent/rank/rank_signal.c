/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_signal_find() walks through the worker's session, a sorted piece of the scan, and judges
 * each process by caught signals and by the executed program. From a process the way leads through
 * the parents to the top of the session; a program on the way with a handler of the signal makes
 * all processes below helpers. Then come sessions begun by a member of the worker's session, if
 * there are only shells and relays above; a session begun by any other program is a service, which
 * counts only if a terminating signal is caught nowhere else.
 */
#include "agent/rank/rank_signal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory.h"

enum {
        SESSIONS_MAX = 16, /* one in another */
        PROGRAM_MAX = 32,  /* longer than each of the names in the lists */
};

enum role {
        UNKNOWN, /* not yet judged */
        DEAF,    /* catches nothing */
        DEAF_SHELL,
        DEAF_RELAY,
        PROGRAM, /* and the others catch the signal */
        SHELL,
        RELAY,
};

struct signal_search {
        const struct rank_status_scan *scan;
        unsigned char *roles; /* of the processes of the scan */
        int signo;
        struct rank_signal *to;
        struct pids shells, relays; /* that catch the signal */
        bool services;              /* sessions that other programs have started count */
};

static bool has_name(const char *const *names, const char *name)
{
        while (*names && strcmp(*names, name))
                names++;
        return *names;
}

/* Returns the part of a process in the search. The program is told by the executed file: a script
 * may have any name. */
static enum role find_role(pid_t pid, int signo)
{
        static const char *const shells[] = { "sh",   "bash",    "dash", "ash", "zsh",
                                              "ksh",  "ksh93",   "mksh", "csh", "tcsh",
                                              "fish", "busybox", NULL };
        static const char *const relays[] = { "timeout", "script", "tini", "dumb-init", NULL };
        bool catches = proc_catches(pid, signo);
        char name[PROGRAM_MAX];

        proc_program(pid, name, sizeof(name));
        if (has_name(shells, name))
                return catches ? SHELL : DEAF_SHELL;
        if (has_name(relays, name))
                return catches ? RELAY : DEAF_RELAY;
        return catches ? PROGRAM : DEAF;
}

/* Judges each process once: a process is looked at again as the parent of others. */
static enum role role_of(struct signal_search *s, const struct proc_stat *p)
{
        unsigned char *role = &s->roles[p - s->scan->v];

        if (*role == UNKNOWN)
                *role = (unsigned char)find_role(p->pid, s->signo);
        return (enum role) * role;
}

/* Returns the process @pid among the @n of a session, which are sorted; NULL = elsewhere. */
static const struct proc_stat *find_in(const struct proc_stat *v, size_t n, pid_t pid)
{
        size_t low = 0, high = n;

        while (low < high) {
                size_t mid = (low + high) / 2;

                if (v[mid].pid < pid)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < n && v[low].pid == pid ? &v[low] : NULL;
}

/* Whether @is_so is true for @p or a parent in the session. The number of steps is limited, because
 * the scan is not of a single moment. */
static bool any_above(struct signal_search *s, const struct proc_stat *v, size_t n,
                      const struct proc_stat *p, bool (*is_so)(enum role role))
{
        for (size_t i = 0; p && i < n; i++, p = find_in(v, n, p->parent))
                if (is_so(role_of(s, p)))
                        return true;
        return false;
}

static bool is_program(enum role role)
{
        return role == PROGRAM;
}

/* A program that stands between two sessions: the lower one is a service. */
static bool waits_for_no_other(enum role role)
{
        return role == PROGRAM || role == DEAF;
}

static bool is_dead(const struct proc_stat *p)
{
        return p->state == 'Z' || p->state == 'X';
}

/* Puts a process into one of the three lists. Shells and relays with a handler are noted beside:
 * rank_signal_find() decides on these. */
static void sort_process(struct signal_search *s, const struct proc_stat *v, size_t n,
                         const struct proc_stat *p)
{
        enum role role = role_of(s, p);

        if (any_above(s, v, n, find_in(v, n, p->parent), is_program))
                pids_push(&s->to->helpers, p->pid);
        else if (role == PROGRAM)
                pids_push(&s->to->targets, p->pid);
        else
                pids_push(&s->to->others, p->pid);
        if (role == SHELL || role == RELAY)
                pids_push(role == SHELL ? &s->shells : &s->relays, p->pid);
}

/* Sorts the processes of a session, then the sessions begun by members. */
static void add_session(struct signal_search *s, pid_t session, int depth)
{
        size_t n;
        const struct proc_stat *v = rank_status_session(s->scan, session, &n), *parent;

        for (size_t i = 0; i < n; i++)
                if (!is_dead(&v[i]))
                        sort_process(s, v, n, &v[i]);
        for (size_t i = 0; v && depth < SESSIONS_MAX && i < s->scan->n; i++) {
                const struct proc_stat *p = &s->scan->v[i];

                /* Only leaders of other sessions. */
                if (p->pid != p->session || p->session == session)
                        continue;
                parent = find_in(v, n, p->parent);
                if (parent && (s->services || !any_above(s, v, n, parent, waits_for_no_other)))
                        add_session(s, p->session, depth + 1);
        }
}

static void append_pids(struct pids *to, const struct pids *from)
{
        for (size_t i = 0; i < from->n; i++)
                pids_push(to, from->v[i]);
}

/* Signals at which a program ends by default and may save its work. */
static bool ends_programs(int signo)
{
        return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

void rank_signal_find(const struct rank_status_scan *scan, pid_t worker, int signo,
                      struct rank_signal *to)
{
        struct signal_search s = { .scan = scan,
                                   .roles = xcalloc(scan->n + 1, 1),
                                   .signo = signo,
                                   .to = to,
                                   .shells = PIDS_INIT,
                                   .relays = PIDS_INIT };
        bool any;

        *to = (struct rank_signal)RANK_SIGNAL_INIT;
        add_session(&s, worker, 0);
        /* No process has a handler: then programs in sessions of their own count, too. */
        if (!ends_programs(signo) && !to->targets.n && !s.shells.n && !s.relays.n) {
                rank_signal_finish(to);
                s.services = true;
                add_session(&s, worker, 0);
        }
        any = to->targets.n;
        if (any || !ends_programs(signo))
                append_pids(&to->targets, &s.shells);
        if (!any && !ends_programs(signo))
                append_pids(&to->targets, &s.relays);
        pids_finish(&s.shells);
        pids_finish(&s.relays);
        free(s.roles);
}

void rank_signal_finish(struct rank_signal *r)
{
        pids_finish(&r->targets);
        pids_finish(&r->helpers);
        pids_finish(&r->others);
}

bool rank_signal_is_for_all(int signo)
{
        return signo == SIGKILL || signo == SIGSTOP || signo == SIGCONT || signo == SIGTSTP ||
               signo == SIGTTIN || signo == SIGTTOU;
}
