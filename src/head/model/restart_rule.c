/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function of a row returns whether the row decides, with the reason. The first decision wins;
 * the last row always decides. A row sees struct restart_trial: the evidence, and the earlier
 * attempts since the last attempt with progress; for a failure that may be a host's, all.
 *
 * --no-progress is checked behind the rows that start the same hosts again, and counts attempts not
 * explained by a retired host.
 */
#include "head/model/restart_rule.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

enum {
        OWN_HOSTS = 2, /* retired for a failure of the node alone; on a third host the failure is
                          the program's */
        TIMES_OUT = 3, /* failures on the same host and no other, which put the host out in spite of
                          progress */
};

/* What a row sees. The result goes to @decision. */
struct restart_trial {
        const struct restart_history *all;
        const struct restart_past *past; /* of .all: those without progress */
        size_t n;
        const struct evidence *now;
        const struct restart_limits *limits;
        struct restart_decision *decision;
};

PRINTF(3, 4)
static bool set_decision(const struct restart_trial *t, enum restart_verb verb, const char *fmt,
                         ...)
{
        va_list ap;

        t->decision->verb = verb;
        va_start(ap, fmt);
        vsnprintf(t->decision->reason, sizeof(t->decision->reason), fmt, ap);
        va_end(ap);
        return true;
}

/* Decides that the program fails, whatever the host; hosts put out for the failure are freed. */
static bool set_program_decision(const struct restart_trial *t, const char *other)
{
        t->decision->acquits = true;
        return set_decision(t, RESTART_STOP,
                            "the failure of %s came again on %s: it is the program's", other,
                            t->now->host);
}

/* ---- comparing failures ---- */

/* Whether both are the same failure of a program: the text of an exception, else the exit code; the
 * signal of a fault that names no host. */
static bool fails_alike(const struct evidence *a, const struct evidence *b)
{
        if (a->kind == EVIDENCE_FAULT && b->kind == EVIDENCE_FAULT && !*a->host && !*b->host)
                return a->signal == b->signal;
        if (a->kind != EVIDENCE_EXIT || b->kind != EVIDENCE_EXIT || a->echo || b->echo)
                return false;
        return *a->text || *b->text ? !strcmp(a->text, b->text) : a->code == b->code;
}

/* Whether both are failures of the same sort, and may be a host's: the same signal, a hang, ... */
static bool is_same_sort(const struct evidence *a, const struct evidence *b)
{
        return a->kind == b->kind && a->signal == b->signal && a->error == b->error &&
               !strcmp(a->text, b->text);
}

/* Whether both name the same host; false if either names none. */
static bool is_same_host(const struct evidence *a, const struct evidence *b)
{
        return *a->host && !strcmp(a->host, b->host);
}

/* Whether a host that was put out explains the earlier attempt @i. */
static bool is_explained(const struct restart_trial *t, size_t i)
{
        for (size_t k = i; k < t->n; k++)
                if (t->past[k].verb == RESTART_HOST_OUT &&
                    is_same_host(&t->past[k].evidence, &t->past[i].evidence))
                        return true;
        return false;
}

/* Counts the attempts without progress, and not explained by a retired host. */
static int count_in_vain(const struct restart_trial *t)
{
        int n = !t->now->progress;

        for (size_t i = 0; i < t->n; i++)
                n += !is_explained(t, i);
        return n;
}

/* ---- the rows ---- */

/* Each row is a function; the texts of restart_rules tell the failure and the decision. */
static bool decide_own(const struct restart_trial *t)
{
        return t->now->kind == EVIDENCE_NONE &&
               set_decision(t, RESTART_STOP, "no rank and no node has failed");
}

static bool decide_given_up(const struct restart_trial *t)
{
        return t->now->gave_up &&
               set_decision(t, RESTART_STOP,
                            "a rank exited with %d: the program wants no other attempt",
                            t->limits->give_up);
}

/* Equal failures on the same or on other hosts: the program repeats itself. Failures that may be of
 * a host are decided before. */
static bool decide_same_failure(const struct restart_trial *t)
{
        for (size_t i = 0; i < t->n && !t->now->progress; i++)
                if (fails_alike(&t->past[i].evidence, t->now))
                        return set_decision(t, RESTART_STOP,
                                            "the same failure twice without progress: it is the "
                                            "program's");
        return false;
}

static bool decide_missing(const struct restart_trial *t)
{
        return t->now->kind == EVIDENCE_MISSING &&
               set_decision(t, RESTART_STOP, "no node could start the program");
}

/* A host that is gone cannot be used again, whether at fault or not. Hosts that were lost with a
 * hold, or for a pause of hnlaunch, are there. */
static bool decide_lost(const struct restart_trial *t)
{
        if (t->now->kind == EVIDENCE_LOST && !*t->now->host)
                return set_decision(t, RESTART_SAME, "%s",
                                    *t->now->text ? t->now->text
                                                  : "the hold of the nodes has ended");
        return t->now->kind == EVIDENCE_LOST &&
               set_decision(t, RESTART_HOST_OUT, "%s or its agent was lost", t->now->host);
}

static bool decide_drained(const struct restart_trial *t)
{
        return t->now->kind == EVIDENCE_DRAINED &&
               set_decision(t, RESTART_HOST_OUT, "%s was drained", t->now->host);
}

/* What belongs to a node alone fails there once or twice; on the third host the failure follows the
 * program. */
static bool decide_node(const struct restart_trial *t)
{
        const char *other = NULL;
        int out = 0;

        if (t->now->kind != EVIDENCE_NODE)
                return false;
        for (size_t i = 0; i < t->n; i++)
                if (t->past[i].verb == RESTART_HOST_OUT &&
                    is_same_sort(&t->past[i].evidence, t->now) &&
                    !is_same_host(&t->past[i].evidence, t->now)) {
                        other = t->past[i].evidence.host;
                        out++;
                }
        if (out >= OWN_HOSTS)
                return set_program_decision(t, other);
        return set_decision(t, RESTART_HOST_OUT, "what failed belongs to %s alone", t->now->host);
}

/* Earlier attempts with a failure that may be a host's. */
struct suspicion {
        bool again;          /* on this host, without progress between */
        const char *shared;  /* another host with the same, without progress between */
        const char *retired; /* another host put out for the same, in any attempt */
        bool elsewhere;      /* any other host has had one of the kind */
        int times;           /* on this host, in all attempts and now */
};

/* A signal of a fault on another host is the program's at once; a hang only after a host was put
 * out; the driver's word about a GPU never. */
static void read_suspicion(struct suspicion *ret, const struct restart_trial *t)
{
        const struct evidence *now = t->now;
        bool fault = now->kind == EVIDENCE_FAULT, hang = now->kind == EVIDENCE_HANG;

        *ret = (struct suspicion){ .times = 1 };
        for (size_t i = 0; i < t->all->n; i++) {
                const struct restart_past *p = &t->all->v[i];
                bool counts = p >= t->past, out = p->verb == RESTART_HOST_OUT;

                if (p->evidence.kind != now->kind)
                        continue;
                ret->elsewhere |= (fault || hang) && !is_same_host(&p->evidence, now);
                if (p->evidence.signal != now->signal)
                        continue;
                if (is_same_host(&p->evidence, now)) {
                        ret->again |= counts;
                        ret->times++;
                        continue;
                }
                if (*p->evidence.host && counts && (fault || (hang && out)))
                        ret->shared = p->evidence.host;
                if ((fault || hang) && out)
                        ret->retired = p->evidence.host;
        }
}

/* Decides about failures that a host may cause, but a program as well: faults, hangs, GPUs. One
 * such failure is no proof, so the same hosts are tried again. */
static bool decide_suspect(const struct restart_trial *t)
{
        const struct evidence *now = t->now;
        struct suspicion s;
        char what[140] = "";

        if ((now->kind != EVIDENCE_FAULT && now->kind != EVIDENCE_GPU &&
             now->kind != EVIDENCE_HANG) ||
            !*now->host)
                return false;
        read_suspicion(&s, t);
        if (*now->gpu)
                snprintf(what, sizeof(what), "%s: ", now->gpu);
        if (s.shared)
                return set_program_decision(t, s.shared);
        if (s.again)
                return set_decision(t, RESTART_HOST_OUT, "%sa second time on %s, without progress",
                                    what, now->host);
        if (s.retired) {
                t->decision->acquits = true;
                return set_decision(t, RESTART_SAME,
                                    "the failure of %s came again on %s: no host is to blame",
                                    s.retired, now->host);
        }
        if (s.elsewhere)
                return set_decision(t, RESTART_SAME, "%s%s is not the only host with it", what,
                                    now->host);
        /* Progress between speaks for the host, so the job must be able to go on without it. */
        if (s.times >= TIMES_OUT && t->limits->replaceable)
                return set_decision(t, RESTART_HOST_OUT, "%s%d times on %s%s", what, s.times,
                                    now->host,
                                    now->kind == EVIDENCE_GPU ? "" : ", and on no other host");
        if (s.times > 1)
                return set_decision(t, RESTART_SAME, "%s%d times on %s, with progress between",
                                    what, s.times, now->host);
        return set_decision(t, RESTART_SAME, "%sthe first time on %s", what, now->host);
}

/* Memory and shared file systems may recover, so one more try is made. A host is not to blame: its
 * successor would run full in the same way. */
static bool decide_resource(const struct restart_trial *t)
{
        const struct evidence *now = t->now;
        bool oom = now->kind == EVIDENCE_OOM;
        char where[300] = "";

        if (!oom && now->kind != EVIDENCE_FULL)
                return false;
        if (*now->path)
                snprintf(where, sizeof(where), " (%s)", now->path);
        for (size_t i = 0; i < t->n && !now->progress; i++)
                if (t->past[i].evidence.kind == now->kind &&
                    t->past[i].evidence.error == now->error)
                        return set_decision(t, RESTART_STOP, "%s%s: twice, and no host is to blame",
                                            oom ? "out of memory" : strerror(now->error), where);
        return set_decision(t, RESTART_SAME, "%s%s: one more try",
                            oom ? "out of memory" : strerror(now->error), where);
}

static bool decide_unknown(const struct restart_trial *t)
{
        return set_decision(t, RESTART_SAME, "nothing points to one host");
}

const struct restart_rule restart_rules[] = {
        { "an order to end, hn_abort(), a limit of time, an error of hnlaunch", "stop",
          decide_own },
        { "exit 93 (--give-up)", "stop: the program wants no other attempt", decide_given_up },
        { "the program is missing on all nodes (on one alone: see below)", "stop", decide_missing },
        { "a host was drained (hnlaunch drain, SIGTERM to its agent)",
          "that host out, a spare host in; no failure", decide_drained },
        { "a host or its agent was lost",
          "that host out, a spare host in; if the hold of the run has ended, or hnlaunch itself "
          "did not run for a while, the same hosts",
          decide_lost },
        { "what belongs to the node alone failed: push, start of a process, its /tmp, "
          "/dev/shm or own disk",
          "that host out, a spare host in; the same on a third host: stop, it is the program's",
          decide_node },
        { "signal ILL, BUS, FPE, SEGV or ABRT; a GPU that its driver or "
          "the kernel calls broken (Xid, ECC, off the bus); a hang that "
          "names one host (not where there is one host only)",
          "the same hosts; a second time on the same host: that host out. The same signal on "
          "another "
          "host, or a hang on another host after one is out: stop, it is the program's. With "
          "progress between: the third time on one host and no other, that host out, if the job "
          "can do without it; then on another host: the same hosts, none is to blame",
          decide_suspect },
        { "the kernel's out-of-memory killer; a full or read-only file system that is not of one "
          "node alone",
          "the same hosts once more, then stop; no host is put out", decide_resource },
        { "the same failure twice: the text of an exception without numbers, addresses and paths, "
          "else the exit code",
          "stop, with the code of the program", decide_same_failure },
        { "anything else: nothing points to one host",
          "the same hosts; after 3 attempts without progress (--no-progress) stop",
          decide_unknown },
};
const size_t restart_rule_count = ARRAY_SIZE(restart_rules);

void restart_decide(struct restart_decision *ret, const struct restart_history *h,
                    const struct evidence *now, const struct restart_limits *l)
{
        struct restart_trial t = { .all = h, .now = now, .limits = l, .decision = ret };
        size_t first = now->progress ? h->n : 0;
        int in_vain;

        /* Attempts before the last one with progress are over; after progress now, all are. */
        for (size_t i = 0; i < h->n && !now->progress; i++)
                if (h->v[i].evidence.progress)
                        first = i + 1;
        t.past = h->v + first;
        t.n = h->n - first;
        *ret = (struct restart_decision){ 0 };
        for (size_t i = 0; i < restart_rule_count && !restart_rules[i].decide(&t); i++)
                ;
        in_vain = count_in_vain(&t);
        if (ret->verb == RESTART_SAME && !now->progress && in_vain >= l->no_progress)
                set_decision(&t, RESTART_STOP, "%d attempt%s without progress", in_vain,
                             in_vain == 1 ? "" : "s");
}

bool restart_acquits(const struct restart_past *past, const struct evidence *now)
{
        return past->verb == RESTART_HOST_OUT && past->evidence.kind == now->kind &&
               past->evidence.signal == now->signal &&
               (now->kind != EVIDENCE_NODE || is_same_sort(&past->evidence, now));
}

const char *restart_verb_name(enum restart_verb verb)
{
        return verb == RESTART_STOP ? "stop" : verb == RESTART_SAME ? "same hosts" : "host out";
}
