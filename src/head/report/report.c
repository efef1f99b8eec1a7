/* SPDX-License-Identifier: Apache-2.0 */
#include "head/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/printable.h"
#include "base/strv.h"
#include "wire/msg.h"

enum { ROW_COLUMNS = 300 }; /* of evidence: a line may be of any length */

/* --- nodes that could not be reached ---------------------------------------------------------- */

/* One message for the causes that a user mends in the same way. In the order in which they are
 * told: what smells of an attack first. */
enum section {
        KEY_CHANGED,
        KEY_REVOKED,
        KEY_UNCHECKED,
        KEY_UNKNOWN,
        DENIED,
        VERSION,
        MALFORMED,
        MACHINE,
        AGENT,
        UNREACHABLE,
        CHILD_AGENT_KEY, /* the same between nodes (--tree) */
        CHILD_AGENT_DENIED,
        BRANCH,
        BEHIND,
        SECTIONS
};

static enum section section_of(const struct node *n)
{
        static const enum section by_cause[LINK_CAUSES] = {
                [LINK_NO_NAME] = UNREACHABLE,
                [LINK_TIMED_OUT] = UNREACHABLE,
                [LINK_REFUSED] = UNREACHABLE,
                [LINK_UNREACHABLE] = UNREACHABLE,
                [LINK_DROPPED] = UNREACHABLE,
                [LINK_KEY_UNKNOWN] = KEY_UNKNOWN,
                [LINK_KEY_CHANGED] = KEY_CHANGED,
                [LINK_KEY_REVOKED] = KEY_REVOKED,
                [LINK_KEY_UNCHECKED] = KEY_UNCHECKED,
                [LINK_DENIED] = DENIED,
                [LINK_SPAWN] = AGENT,
                [LINK_ENDED] = UNREACHABLE,
                [LINK_OTHER] = UNREACHABLE,
                [LINK_PARENT] = BEHIND,
        };
        static const enum section between[SECTIONS] = {
                [KEY_UNKNOWN] = CHILD_AGENT_KEY,
                [KEY_CHANGED] = KEY_CHANGED,
                [KEY_REVOKED] = KEY_REVOKED,
                [KEY_UNCHECKED] = KEY_UNCHECKED,
                [DENIED] = CHILD_AGENT_DENIED,
                [UNREACHABLE] = BRANCH,
                [AGENT] = BRANCH,
                [BEHIND] = BEHIND,
        };

        switch (n->refusal) {
        case NODE_WRONG_VERSION:
                return VERSION;
        case NODE_MALFORMED:
                return MALFORMED;
        case NODE_NO_AGENT:
                return MACHINE;
        case NODE_CANNOT_RUN:
                return AGENT;
        case NODE_NOT_REFUSED:
                break;
        }
        return n->parent ? between[by_cause[n->failure->cause]] : by_cause[n->failure->cause];
}

static const struct {
        int id, exit;
        const char *one, *many; /* what is wrong with %s / with so many nodes */
} sections[SECTIONS] = {
        [KEY_CHANGED] = { 206, 77, "the host key of %s has CHANGED",
                          "host keys of %zu nodes have CHANGED" },
        [KEY_REVOKED] = { 207, 77, "the host key of %s is revoked",
                          "host keys of %zu nodes are revoked" },
        [KEY_UNCHECKED] = { 208, 77, "the host key of %s cannot be checked",
                            "host keys of %zu nodes cannot be checked" },
        [KEY_UNKNOWN] = { 205, 77, "the host key of %s is not known",
                          "host keys of %zu nodes are not known" },
        [DENIED] = { 203, 77, "ssh login refused on %s", "ssh login refused on %zu nodes" },
        [VERSION] = { 211, 76, "the agent on %s speaks another protocol version",
                      "agents on %zu nodes speak another protocol version" },
        [MALFORMED] = { 217, 125, "the agent on %s sent a malformed message",
                        "agents on %zu nodes sent malformed messages" },
        [MACHINE] = { 216, 69, "no agent is installed for the machine of %s",
                      "no agent is installed for the machines of %zu nodes" },
        [AGENT] = { 210, 69, "the agent cannot run on %s", "the agent cannot run on %zu nodes" },
        [UNREACHABLE] = { 201, 68, "%s cannot be reached", "%zu nodes cannot be reached" },
        [CHILD_AGENT_KEY] = { 222, 77,
                              "the host key of %s is not trusted by its parent in the tree",
                              "host keys of %zu nodes are not trusted by their parents in the "
                              "tree" },
        [CHILD_AGENT_DENIED] = { 223, 77, "%s rejects the login from its parent in the tree",
                                 "%zu nodes reject the logins from their parents in the tree" },
        [BRANCH] = { 220, 68, "%s cannot be reached from its parent in the tree",
                     "%zu nodes cannot be reached from their parents in the tree" },
        [BEHIND] = { 221, 68, "%s was not tried: the way leads through another",
                     "%zu nodes were not tried: the way leads through others" },
};

/* The hosts of one section whose failures read the same. */
struct group {
        const struct node *first;
        size_t *hosts, n;
};

static void rows(struct diag *d, const char *text)
{
        char *copy = xstrdup(text), *rest = copy, *line;

        while ((line = strsep(&rest, "\n")))
                if (*line)
                        diag_row(d, "%s", line);
        free(copy);
}

static void group_rows(struct diag *d, const struct hosts *hosts, const struct group *g)
{
        const struct link_failure *w = g->first->failure;
        /* The evidence on a host key has it again. */
        const char *detail = g->n == 1 && !*w->evidence ? w->detail : "";
        char *names = hosts_fold(hosts, g->hosts, g->n);

        diag_row(d, "%-16s %s%s%s", names, w->fact, *detail ? "  " : "", detail);
        if (*w->evidence)
                rows(d, w->evidence);
        free(names);
}

/* The built-in ssh says where it looked for a key, which is the same for all as a rule: one row for
 * each key, one note for each such place. */
static void key_rows(struct diag *d, const struct hosts *hosts, const struct group *v, size_t n)
{
        struct strv places = STRV_INIT;

        for (size_t g = 0; g < n; g++) {
                const struct link_failure *w = v[g].first->failure;
                const char *place = strstr(w->evidence, "\nlooked ");
                char *names;

                if (!place || strcmp(w->fact, "the host key is not known") != 0) {
                        group_rows(d, hosts, &v[g]);
                        continue;
                }
                names = hosts_fold(hosts, v[g].hosts, v[g].n);
                diag_row(d, "%-16s %.*s", names, (int)(place - w->evidence), w->evidence);
                free(names);
                if (!strv_has(&places, place + 1))
                        strv_push(&places, place + 1);
        }
        for (size_t i = 0; i < places.n; i++)
                diag_note(d, "%.*s", (int)strcspn(places.v[i], "\n"), places.v[i]);
        strv_finish(&places);
}

/* Groups are few kinds of failure, so a list does; detail differs per host where it matters. */
static struct group *group_nodes(const struct job *j, const struct hosts *hosts, enum section s,
                                 size_t *ret_n)
{
        struct group *v = NULL;
        size_t n = 0, g;

        for (size_t i = 0; i < hosts->n; i++) {
                const struct node *node = job_node(j, i);
                bool by_detail = s == KEY_UNKNOWN || s == KEY_CHANGED || s == KEY_REVOKED ||
                                 s == KEY_UNCHECKED;

                if (node->state != NODE_FAILED || section_of(node) != s)
                        continue;
                for (g = 0; g < n; g++)
                        if (!strcmp(v[g].first->failure->fact, node->failure->fact) &&
                            (!by_detail ||
                             !strcmp(v[g].first->failure->detail, node->failure->detail)))
                                break;
                if (g == n) {
                        v = xrealloc(v, n + 1, sizeof(*v));
                        v[n++] = (struct group){ .first = node };
                }
                v[g].hosts = xrealloc(v[g].hosts, v[g].n + 1, sizeof(*v[g].hosts));
                v[g].hosts[v[g].n++] = i;
        }
        *ret_n = n;
        return v;
}

static char *fold_groups(const struct hosts *hosts, const struct group *v, size_t n,
                         size_t *ret_count)
{
        size_t *all = NULL, count = 0;
        char *names;

        for (size_t g = 0; g < n; g++)
                for (size_t i = 0; i < v[g].n; i++) {
                        all = xrealloc(all, count + 1, sizeof(*all));
                        all[count++] = v[g].hosts[i];
                }
        names = hosts_fold(hosts, all, count);
        free(all);
        *ret_count = count;
        return names;
}

static void place(struct diag *d, const struct hosts *hosts, const struct group *v,
                  const char *names)
{
        const struct host *h = &hosts->v[v[0].hosts[0]];
        const struct link_failure *w = v[0].first->failure;

        if (w->port && *w->user)
                diag_place(d, "%s  (%s:%d), port %d, user %s", names, h->file, h->line, w->port,
                           w->user);
        else
                diag_place(d, "%s  (%s:%d)", names, h->file, h->line);
}

/* With --tree: what to try, from where to where. */
static void branch_help(struct diag *d, enum section s, const struct node *n)
{
        const char *to = n->host->name, *from = n->parent ? n->parent->host->name : "";

        if (s == CHILD_AGENT_KEY)
                diag_help(d,
                          "add its key to ~/.ssh/known_hosts here, or on %s: ssh %s; or without "
                          "--tree",
                          from, from);
        else if (s == CHILD_AGENT_DENIED && !*n->failure->help)
                diag_help(d,
                          "%s needs a key of its own for %s: try ssh -oBatchMode=yes %s true on "
                          "%s; or --tree-auth forward; or without --tree",
                          from, to, to, from);
        else if (s == BRANCH)
                diag_help(d, "try ssh %s true on %s; or without --tree", to, from);
}

static void section_help(struct diag *d, enum section s, const struct group *v, const char *names,
                         size_t count, bool all)
{
        branch_help(d, s, v[0].first);
        if (*v[0].first->failure->help)
                diag_help(d, "%s", v[0].first->failure->help);
        else if (s == KEY_UNKNOWN)
                diag_help(d, "compare with your admin's list and add them to ~/.ssh/known_hosts; "
                             "for throw-away nodes: --host-key accept-new");
        else if (s == KEY_CHANGED)
                diag_help(d, "a reinstalled node, or someone in the middle: ask your admin; "
                             "accept-new does not cover this");
        else if (s == MACHINE)
                diag_help(d,
                          "build hnlaunch-agent on such a machine, or cross-build it, and put it "
                          "beside the others as hnlaunch-agent-TYPE; hnlaunch(1), FILES");
        if (!all && s != BEHIND)
                diag_help(d, "start without %s: --exclude %s", count == 1 ? "it" : "them", names);
}

void report_nodes(struct diags *d, const struct job *j, const struct hosts *hosts)
{
        for (enum section s = 0; s < SECTIONS; s++) {
                size_t n, count;
                struct group *v = group_nodes(j, hosts, s, &n);
                struct diag *di;
                char *names;

                if (!n)
                        continue;
                names = fold_groups(hosts, v, n, &count);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                di = count == 1
                             ? diag_add(d, sections[s].id, sections[s].exit, sections[s].one, names)
                             : diag_add(d, sections[s].id, sections[s].exit, sections[s].many,
                                        count);
#pragma GCC diagnostic pop
                place(di, hosts, v, names);
                key_rows(di, hosts, v, n);
                section_help(di, s, v, names, count, count == hosts->n);
                for (size_t g = 0; g < n; g++)
                        free(v[g].hosts);
                free(v);
                free(names);
        }
}

/* --- a failed run ----------------------------------------------------------------------------- */

/* A row with a title, and the last @n lines of a text under it. */
static void last_rows(struct diag *d, const char *title, const char *text, int n)
{
        const char *from = text + strlen(text);
        char *copy, *rest, *line;

        while (from > text && n > 0)
                if (*--from == '\n' && from[1])
                        n--;
        if (!*from)
                return;
        diag_row(d, "%s", title);
        copy = rest = xstrdup(*from == '\n' ? from + 1 : from);
        while ((line = strsep(&rest, "\n"))) {
                CLEANUP(buf_finish) struct buf row = BUF_INIT;

                if (!*line)
                        continue;
                printable_cut(&row, line, strlen(line), ROW_COLUMNS);
                diag_row(d, "  %.*s", (int)buf_len(&row), (const char *)buf_data(&row));
        }
        free(copy);
}

static void rank_place(struct diag *d, const struct cause *c, const char *host,
                       const struct plan *plan)
{
        const struct plan_rank *k = &plan->ranks[c->rank];
        char gpu[64] = "", pid[32] = "";

        if (k->gpus.n)
                snprintf(gpu, sizeof(gpu), " · GPU %d", k->gpus.v[0]);
        if (c->pid) /* who called hn_abort() still lives */
                snprintf(pid, sizeof(pid), " · pid %u", c->pid);
        diag_place(d, "rank %d · %s · local rank %d%s%s", c->rank, host, k->local_rank, gpu, pid);
}

/* "0.02 ms", "12 ms", "2.1 s" */
static void format_ms(char *to, size_t size, double ms)
{
        if (ms < 1000)
                snprintf(to, size, "%.*f ms", ms < 10 ? 2 : 0, ms);
        else
                snprintf(to, size, "%.1f s", ms / 1000);
}

/* Told once, with the names of the others. */
static bool is_alike(const struct cause *a, const struct cause *b)
{
        bool told = (a->quote && b->quote) || (a->kind == CAUSE_REFUSED && b->kind == a->kind);

        return told && !strcmp(a->text, b->text);
}

static void neighbour(struct diag *d, const struct job *j, const struct outcome *o)
{
        const struct cause *c = &o->cause, *next = outcome_next(o);
        double ms = next ? (double)(next->at_ns - c->at_ns) / 1e6 : 0;
        double error = next ? (double)(next->error_ns + c->error_ns) / 1e6 : 0;
        char who[640], span[32], clocks[64] = "";

        if (!next || !c->at_ns || is_alike(c, next))
                return;
        job_sentence(j, next, who, sizeof(who));
        format_ms(span, sizeof(span), fabs(ms));
        if (next->node != c->node && error >= 0.005)
                snprintf(clocks, sizeof(clocks), " (clock error ±%.2g ms)", error);
        if (outcome_ambiguous(c, next))
                diag_note(d,
                          "%s %s %s it, which is within the error of the clocks (±%.2g ms): "
                          "either may be the first",
                          who, span, ms < 0 ? "before" : "after", error);
        else if (ms < 0)
                diag_note(d, "%s %s before it; the graver failure is taken for the cause", who,
                          span);
        else
                diag_note(d, "next failure %s later%s: %s", span, clocks, who);
}

static int by_number(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* "0-2,4", in whatever order they came. */
static char *fold_ranks(struct intlist *ranks)
{
        if (ranks->n)
                qsort(ranks->v, ranks->n, sizeof(*ranks->v), by_number);
        return intlist_fold(ranks);
}

/* Ranks that met the same, folded. */
static void same(struct diag *d, const struct outcome *o)
{
        struct intlist ranks = { 0 };
        char *list;

        for (size_t i = 0; i < o->n_same; i++)
                intlist_add(&ranks, o->same[i]);
        list = fold_ranks(&ranks);
        if (ranks.n)
                diag_note(d, "%zu more rank%s said the same: %s", ranks.n, ranks.n == 1 ? "" : "s",
                          list);
        free(list);
        intlist_finish(&ranks);
}

/* Nodes that could not start their ranks either. */
static void refused_alike(struct diag *d, const struct outcome *o, const struct hosts *hosts)
{
        size_t *nodes = xcalloc(o->n_seen + 1, sizeof(*nodes)), n = 0;
        char *names;

        for (size_t i = 0; i < o->n_seen && o->cause.kind == CAUSE_REFUSED; i++)
                if (o->seen[i].node != o->cause.node && is_alike(&o->cause, &o->seen[i]))
                        nodes[n++] = (size_t)o->seen[i].node;
        names = hosts_fold(hosts, nodes, n);
        if (n)
                diag_note(d, "the same on %zu more node%s: %s", n, n == 1 ? "" : "s", names);
        free(names);
        free(nodes);
}

/* Ranks that had ended well before: what others then miss. */
static void left_before(struct diag *d, const struct outcome *o)
{
        struct intlist ranks = { 0 };
        double ms = 0;
        char span[32], *list;

        for (size_t i = 0; i < o->n_left && outcome_is_workers(o); i++) {
                if (o->left[i].at_ns > o->cause.at_ns)
                        continue;
                intlist_add(&ranks, o->left[i].rank);
                ms = MAX(ms, (double)(o->cause.at_ns - o->left[i].at_ns) / 1e6);
        }
        list = fold_ranks(&ranks);
        format_ms(span, sizeof(span), ms);
        if (ranks.n)
                diag_note(d, "rank%s %s had already ended with 0, %s%s before",
                          ranks.n == 1 ? "" : "s", list, ranks.n == 1 ? "" : "the first ", span);
        free(list);
        intlist_finish(&ranks);
}

/* Ranks that only felt the failure of another, folded. */
static void echoes(struct diag *d, const struct outcome *o)
{
        struct buf list = BUF_INIT;
        size_t n = 0;

        for (size_t i = 0; i < o->n_seen; i++) {
                const struct cause *c = &o->seen[i];

                if (!c->echo || (c->rank == o->cause.rank && o->cause.kind == CAUSE_EXIT))
                        continue;
                if (n++ < 16)
                        buf_printf(&list, "%s%d", n > 1 ? "," : "", c->rank);
        }
        buf_append(&list, "", 1);
        if (n)
                diag_note(d, "%zu rank%s then failed because a peer was gone (a consequence): %s%s",
                          n, n == 1 ? "" : "s", (const char *)buf_data(&list),
                          n > 16 ? ",..." : "");
        buf_finish(&list);
}

static void consequences(struct diag *d, const struct job *j, const struct outcome *o,
                         const struct hosts *hosts)
{
        neighbour(d, j, o);
        same(d, o);
        refused_alike(d, o, hosts);
        left_before(d, o);
        echoes(d, o);
        if (o->behind && o->cause.kind == CAUSE_NODE)
                diag_note(d, "%zu node%s behind it %s lost with it", o->behind,
                          o->behind == 1 ? "" : "s", o->behind == 1 ? "was" : "were");
        if (o->failed > 2 && o->failed > o->n_same + 1)
                diag_note(d, "%zu ranks failed on their own", o->failed);
        if (o->stopped)
                diag_note(d, "%zu rank%s stopped by hnlaunch: %zu after TERM, %zu after KILL",
                          o->stopped, o->stopped == 1 ? " was" : "s were", o->stopped - o->killed,
                          o->killed);
}

/* What ended the attempts before this one; of many the last. */
static void earlier_attempts(struct diag *d, const struct job *j)
{
        enum { MOST = 5 };
        const struct strv *v = job_earlier(j);

        if (v->n > MOST)
                diag_note(d, "%zu attempts before those", v->n - MOST);
        for (size_t i = v->n > MOST ? v->n - MOST : 0; i < v->n; i++)
                diag_note(d, "%s", v->v[i]);
}

/* What is known of a rank's death besides its status. */
static void circumstances(struct diag *d, const struct outcome *o, const char *host)
{
        const struct cause *c = &o->cause;
        const struct rank_report *t = outcome_said(o, c->rank);

        if (t)
                diag_note(d, "rank %d reported: %s", c->rank, t->said);
        if (*c->oom)
                diag_note(d,
                          "the kernel's out-of-memory killer was at work on %s: oom_kill %" PRIu64
                          " -> %" PRIu64 " in %s",
                          host, c->oom_before, c->oom_after, c->oom);
        if (c->core)
                diag_note(d,
                          "core dump: on %s, coredumpctl info %u, or where "
                          "/proc/sys/kernel/core_pattern says",
                          host, c->pid);
}

static struct diag *describe(struct diags *d, const struct job *j, const struct outcome *o)
{
        static const int ids[CAUSE_KINDS] = {
                [CAUSE_SIGNAL] = 501, [CAUSE_EXIT] = 502,    [CAUSE_ABORT] = 503,
                [CAUSE_NODE] = 310,   [CAUSE_NETWORK] = 311, [CAUSE_REFUSED] = 312,
        };
        const struct cause *c = &o->cause;
        char after[32], end[80], text[640];

        format_duration(after, sizeof(after), (int64_t)c->after_ms * 1000);
        outcome_end(c, end, sizeof(end));
        if (*end)
                return diag_add(d, ids[c->kind], 0, "rank %d %s%s after %s%s%s", c->rank, end,
                                c->core ? ", core dumped," : "", after,
                                c->kind == CAUSE_ABORT ? ": " : "",
                                c->kind == CAUSE_ABORT ? c->text : "");
        job_sentence(j, c, text, sizeof(text));
        return diag_add(d, ids[c->kind] ? ids[c->kind] : 303, 0, "%s", text);
}

static void refused_help(struct diag *d, const struct cause *c, const struct options *o)
{
        if (c->why == REFUSED_EXEC && c->error == ENOENT)
                diag_help(d, "the program must be there on every node, under this path%s",
                          strchr(o->argv.v[0], '/') ? ""
                                                    : ", or in its PATH (./NAME for this folder)");
        else if (c->why == REFUSED_EXEC && c->error == ELIBACC)
                diag_help(d,
                          strstr(c->text, "lines end in CR")
                                  ? "turn its lines into those of this system: dos2unix %s"
                                  : "install it on every node, or mend the first line of %s",
                          o->argv.v[0]);
        else if (c->why == REFUSED_EXEC && c->error == EISDIR)
                diag_help(d, "name a program in it: %s/NAME", o->argv.v[0]);
        else if (c->why == REFUSED_EXEC && c->error == EACCES)
                diag_help(d, "chmod +x %s, or is the file system mounted noexec there?",
                          o->argv.v[0]);
        else if (c->why == REFUSED_EXEC && c->error == ENOEXEC)
                diag_help(d,
                          "a script needs a first line like #!/usr/bin/env python3, or name its "
                          "interpreter: hnlaunch ... python3 %s",
                          o->argv.v[0]);
        else if (c->why == REFUSED_FORK && c->error == EMFILE)
                diag_help(d, "the limit of open files is too low for so many ranks there: raise "
                             "`ulimit -n`, or start fewer on a node (--ppn)");
        else if (c->why == REFUSED_FORK && c->error == EAGAIN)
                diag_help(d, "the limit of processes is reached there: raise `ulimit -u`, or start "
                             "fewer ranks on a node (--ppn)");
        else if (c->why == REFUSED_CWD)
                diag_help(d, "ranks start in the folder of this shell; --chdir DIR names another, "
                             "--push FILE brings files to nodes that do not share it");
}

/* The newest lines of @stream; false when there are none. */
static bool stream_rows(struct diag *d, const struct job *j, int rank, uint8_t stream,
                        const char *title, int n)
{
        char *words = job_last_words(j, rank, stream);
        bool any = *words;

        if (any)
                last_rows(d, title, words, n);
        free(words);
        return any;
}

static void evidence(struct diag *d, const struct job *j, const struct outcome *o, const char *host)
{
        enum { LINES = 8, FRAMES = 20 };
        const struct cause *c = &o->cause;
        const struct rank_report *t = outcome_said(o, c->rank);

        if (t && t->trace)
                last_rows(d, "its Python call stack:", t->trace, FRAMES);
        else if (!stream_rows(d, j, c->rank, MSG_STDERR, "last lines of its stderr:",
                              c->quote == QUOTE_EXCEPTION ? FRAMES : LINES))
                stream_rows(d, j, c->rank, MSG_STDOUT,
                            "last lines of its stdout (its stderr is empty):", LINES);
        circumstances(d, o, host);
}

void report_failure(struct diags *d, const struct job *j, const struct hosts *hosts,
                    const struct plan *plan, const struct options *o)
{
        const struct outcome *out = job_outcome(j);
        const struct cause *c = &out->cause;
        const char *host = c->node >= 0 ? hosts->v[c->node].name : "";
        struct diag *di;

        if (c->kind == CAUSE_NONE || c->kind == CAUSE_ORDER || c->kind == CAUSE_TIMEOUT ||
            c->kind == CAUSE_STDOUT || c->kind == CAUSE_JOIN)
                return;
        di = describe(d, j, out);
        if (c->rank >= 0 && plan && c->kind != CAUSE_REFUSED)
                rank_place(di, c, host, plan);
        else if (c->node >= 0)
                diag_place(di, "%s  (%s:%d)", host, hosts->v[c->node].file, hosts->v[c->node].line);
        if (outcome_is_workers(out))
                evidence(di, j, out, host);
        consequences(di, j, out, hosts);
        earlier_attempts(di, j);
        if (c->kind == CAUSE_REFUSED)
                refused_help(di, c, o);
        if (c->kind == CAUSE_NETWORK)
                diag_help(di,
                          "look at `ip addr` here and try `ping %s`; ranks end by themselves "
                          "when their node hears nothing for as long",
                          hosts->v[0].name);
        if (c->kind == CAUSE_NODE && hosts->n > 1)
                diag_help(di, "start without it: --exclude %s", host);
}
