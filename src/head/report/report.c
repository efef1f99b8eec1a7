/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_failure() prints a single message on the cause that head/model/outcome.h has chosen: a
 * title, the place of the rank, the last lines as evidence, then notes on everything that followed
 * or came before (add_rank_evidence(), note_consequences()), then the next step. The sentence is
 * left to the verdict line. Causes that need no more, such as Ctrl-C, get no message.
 */
#include "head/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/strv.h"
#include "head/hosts/hosts.h"
#include "head/job/attempt.h"
#include "head/model/role_list.h"
#include "head/model/role_order.h"
#include "head/nodes/program_link.h"
#include "head/options/program_options.h"
#include "head/term/escapes.h"
#include "head/term/redraw.h"
#include "wire/msg.h"

/* Returns what a terminal shows of a line that was drawn again and again; cuts it. */
static const char *cut_last_state(char *line)
{
        size_t body = redraw_body((const unsigned char *)line, strlen(line));

        line[body] = '\0';
        return line + redraw_last((const unsigned char *)line, body) + 1;
}

/* Returns where the last @n lines of a text begin; the beginning when the text has fewer lines. A
 * newline at the very end closes the last line and starts no other. */
static const char *find_last_lines(const char *text, int n)
{
        const char *from = text + strlen(text);

        while (from > text && n > 0)
                if (*--from == '\n' && from[1])
                        n--;
        return *from == '\n' ? from + 1 : from;
}

/* Adds a row with a title, and below the lines of a text, empty lines left out. @on_screen: the
 * terminal shows the lines already, so that only a copy elsewhere repeats the rows. */
static void add_quoted_rows(struct diag *d, const char *title, const char *text, bool on_screen)
{
        void (*add)(struct diag * d, const char *fmt, ...) PRINTF(2, 3) =
                on_screen ? diag_row_on_screen : diag_row;
        CLEANUP(free_textp) char *copy = xstrdup(text);
        char *rest = copy, *line;

        if (!*text)
                return;
        add(d, "%s", title);
        while ((line = strsep(&rest, "\n"))) {
                CLEANUP(free_textp) char *row = printable_text(cut_last_state(line), PRINTABLE_ROW);

                if (*line)
                        add(d, "  %s", row);
        }
}

/* Sets the place of a message to the rank, its host and its first GPU. In a job of roles the name
 * counts within the role, so that the number in the job follows in brackets. */
static void place_rank(struct diag *d, const struct cause *c, const char *host,
                       const struct plan *plan)
{
        const struct plan_rank *k = &plan->ranks[c->rank];
        char gpu[64] = "", pid[32] = "", who[PLAN_RANK_NAME_MAX], job[40] = "";

        plan_rank_name(plan, c->rank, who);
        if (k->role)
                snprintf(job, sizeof(job), " (rank %d of the job)", c->rank);
        if (k->gpus.n)
                snprintf(gpu, sizeof(gpu), " · GPU %d", k->gpus.v[0]);
        if (c->pid) /* 0 after hn_abort(): the rank still lives */
                snprintf(pid, sizeof(pid), " · pid %u", c->pid);
        diag_place(d, "%s%s · %s · local rank %d%s%s", who, job, host, k->local_rank, gpu, pid);
}

/* Writes "0.02ms", "12ms", "2.1s". Errors of clocks between nodes are parts of a millisecond: small
 * values keep two digits. */
static void format_ms(char *to, size_t size, double ms)
{
        if (ms < 0.005)
                snprintf(to, size, "<0.01ms");
        else if (ms < 10)
                snprintf(to, size, "%.2fms", ms);
        else
                format_duration(to, size, (int64_t)(ms * 1000));
}

/* Whether two failures have equal texts: the others are then only named. */
static bool is_same_reason(const struct cause *a, const struct cause *b)
{
        bool told = (a->quote && b->quote) || (a->kind == CAUSE_REFUSED && b->kind == a->kind);

        return told && !strcmp(a->text, b->text);
}

/* Notes the failure nearest in time to the cause. The order of two nodes is known only within the
 * error of their clocks; the note says when either may be the first, and when severity, not time,
 * has decided. */
static void note_next_failure(struct diag *d, const struct job *j, const struct outcome *o)
{
        const struct cause *c = &o->cause, *next = outcome_next(o);
        double ms = next ? (double)(next->at_ns - c->at_ns) / 1e6 : 0;
        double error = next ? (double)(next->error_ns + c->error_ns) / 1e6 : 0;
        char failure[640], span[32], clocks[64] = "";

        /* No time is known of decisions of the launcher. Equal reasons are counted by
         * note_consequences(). */
        if (!next || !c->at_ns || is_same_reason(c, next))
                return;
        job_sentence(j, next, failure, sizeof(failure));
        format_ms(span, sizeof(span), fabs(ms));
        /* Times of one node come from one clock and have no error. */
        if (next->node != c->node && error >= 0.005)
                snprintf(clocks, sizeof(clocks), " (clock error ±%.2gms)", error);
        if (outcome_ambiguous(c, next))
                diag_note(d,
                          "%s %s %s it, which is within the error of the clocks (±%.2gms): "
                          "either may be the first",
                          failure, span, ms < 0 ? "before" : "after", error);
        else if (ms < 0)
                diag_note(d, "%s %s before it; the more severe failure is taken as the cause",
                          failure, span);
        else
                diag_note(d, "next failure %s later%s: %s", span, clocks, failure);
}

static int compare_ranks(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Sorts the ranks and writes "ranks 0-2,4", as plan_ranks_name(). @plan NULL: nothing was launched,
 * and ranks have only numbers. malloc'ed. */
static char *name_ranks_of(struct intlist *ranks, const struct plan *plan)
{
        if (ranks->n)
                qsort(ranks->v, ranks->n, sizeof(*ranks->v), compare_ranks);
        return plan ? plan_ranks_name(plan, ranks) : role_list_ranks_name(NULL, ranks);
}

/* Notes "3 more ranks said the same: 0-2". The count in front has the word "ranks" already, so that
 * only the part behind the word is taken of a plain list. */
static void note_ranks(struct diag *d, struct intlist *ranks, const struct plan *plan,
                       const char *more, const char *what)
{
        CLEANUP(free_textp) char *names = name_ranks_of(ranks, plan);
        const char *list = strncmp(names, "rank", 4) ? names : strchr(names, ' ') + 1;

        if (ranks->n)
                diag_note(d, "%zu %srank%s %s: %s", ranks->n, more, ranks->n == 1 ? "" : "s", what,
                          list);
}

/* Notes the other nodes where the program could not be started for the same reason. */
static void note_refused_nodes(struct diag *d, const struct outcome *o, const struct hosts *hosts)
{
        CLEANUP(host_group_finish) struct host_group nodes = { 0 };
        CLEANUP(free_textp) char *names = NULL;

        for (size_t i = 0; i < o->n_seen && o->cause.kind == CAUSE_REFUSED; i++)
                if (o->seen[i].node != o->cause.node && is_same_reason(&o->cause, &o->seen[i]))
                        host_group_add(&nodes, (size_t)o->seen[i].node);
        names = hosts_fold(hosts, nodes.hosts, nodes.n);
        if (nodes.n)
                diag_note(d, "the same on %zu more node%s: %s", nodes.n, nodes.n == 1 ? "" : "s",
                          names);
}

/* The cause, or the first of the ranks that have missed it. */
static const struct cause *first_to_fail(const struct outcome *o)
{
        bool missed = o->cause.kind == CAUSE_LEFT || o->cause.kind == CAUSE_STUCK;

        return missed ? outcome_first_failed(o) : &o->cause;
}

/* Notes ranks that exited with 0 before the failure: the failed rank may have missed them. */
static void note_left_ranks(struct diag *d, const struct outcome *o, const struct plan *plan)
{
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        CLEANUP(free_textp) char *names = NULL;
        const struct cause *failed = first_to_fail(o);
        /* The longest time between such an end and the failure. */
        double ms = 0;
        char span[32];

        for (size_t i = 0; i < o->left.n && outcome_is_workers(o); i++) {
                if (o->left.v[i].at_ns > failed->at_ns || o->left.v[i].rank == o->cause.rank ||
                    (plan && failed->rank >= 0 &&
                     plan->ranks[o->left.v[i].rank].world != plan->ranks[failed->rank].world))
                        continue;
                intlist_add(&ranks, o->left.v[i].rank);
                ms = MAX(ms, (double)(failed->at_ns - o->left.v[i].at_ns) / 1e6);
        }
        names = name_ranks_of(&ranks, plan);
        format_ms(span, sizeof(span), ms);
        if (ranks.n)
                diag_note(d, "%s had already ended with 0, %s%s before", names,
                          ranks.n == 1 ? "" : "the first ", span);
}

/* Notes when the first rank failed that missed the cause. */
static void note_first_to_miss(struct diag *d, const struct outcome *o, const struct plan *plan)
{
        double ms = (double)(first_to_fail(o)->at_ns - o->cause.at_ns) / 1e6;
        char span[32], who[PLAN_RANK_NAME_MAX];

        format_ms(span, sizeof(span), fabs(ms));
        if (o->cause.kind == CAUSE_LEFT)
                diag_note(d, "%s failed %s %s", plan_rank_name(plan, first_to_fail(o)->rank, who),
                          span, ms < 0 ? "before its end" : "later");
}

/* Notes how many ranks were ended by the launcher's order, and which signal was needed. */
static void note_stopped(struct diag *d, const struct outcome *o)
{
        char killed[48] = "";

        if (!o->stopped)
                return;
        if (o->killed < o->stopped)
                snprintf(killed, sizeof(killed), ", %zu of them with SIGKILL", o->killed);
        diag_note(d, "%zu rank%s stopped by hnlaunch%s", o->stopped,
                  o->stopped == 1 ? " was" : "s were",
                  !o->killed                ? " (SIGTERM)"
                  : o->killed == o->stopped ? " (SIGKILL)"
                                            : killed);
}

/* Adds the notes in the order of their worth for the search: the next failure, ranks with the same
 * reason, ranks that left before, echoes, and last the ranks that hnlaunch stopped. */
static void note_consequences(struct diag *d, const struct job *j, const struct outcome *o,
                              const struct hosts *hosts, const struct plan *plan)
{
        CLEANUP(intlist_finish) struct intlist same = { 0 };
        CLEANUP(intlist_finish) struct intlist echoes = { 0 };
        size_t own;

        note_next_failure(d, j, o);
        note_first_to_miss(d, o, plan);
        for (size_t i = 0; i < o->n_same; i++)
                intlist_add(&same, o->same[i]);
        note_ranks(d, &same, plan, "more ", "said the same");
        note_refused_nodes(d, o, hosts);
        note_left_ranks(d, o, plan);
        for (size_t i = 0; i < o->n_seen; i++)
                if (o->seen[i].echo)
                        intlist_add(&echoes, o->seen[i].rank);
        note_ranks(d, &echoes, plan, "",
                   "failed because a peer was gone or had not come (a consequence)");
        if (o->behind && o->cause.kind == CAUSE_NODE)
                diag_note(d, "%zu node%s behind it %s lost with it", o->behind,
                          o->behind == 1 ? "" : "s", o->behind == 1 ? "was" : "were");
        /* The cause and the next failure are named above, as are ranks with the same reason: a
         * count is news only when more ranks failed without an echo. */
        own = o->failed - MIN(o->failed, (size_t)echoes.n);
        if (own > 2 && own > o->n_same + 1)
                diag_note(d, "%zu ranks failed on their own", own);
        note_stopped(d, o);
}

/* The messages of causes: title, evidence and next step. The rank, its end and the reason stand in
 * the last line. A kind without a row, such as an order or --timeout, gets no message: the verdict
 * line says all. */
static const struct {
        int id;
        const char *title;
} messages[CAUSE_KINDS] = {
        [CAUSE_SIGNAL] = { HN_RANK_SIGNALED, "a rank was killed by a signal" },
        [CAUSE_EXIT] = { HN_RANK_EXITED, "a rank failed" },
        [CAUSE_LATE] = { HN_RANK_EXITED, "a rank failed" },
        [CAUSE_LEFT] = { HN_RANK_EXITED, "a rank left before the others" },
        [CAUSE_STUCK] = { HN_RANK_EXITED, "a rank failed" },
        [CAUSE_ABORT] = { HN_RANK_ABORTED, "a rank aborted the job" },
        [CAUSE_UNFINALIZED] = { HN_UNFINALIZED, "a rank left without MPI_Finalize()" },
        [CAUSE_NODE] = { HN_NODE_LOST, "a node was lost" },
        [CAUSE_NETWORK] = { HN_NETWORK_FAILED, "all nodes were lost" },
        [CAUSE_PAUSE] = { HN_DID_NOT_RUN, "hnlaunch did not run for a while" },
        [CAUSE_REFUSED] = { HN_NOT_STARTED, "the program could not be started" },
        [CAUSE_WORLDS] = { HN_WORLDS_OF_ONE, "ranks were worlds of one" },
        [CAUSE_ROLE] = { HN_ROLE_UNREADY, "a role was not ready" },
};

/* Adds the message for a cause. Two causes have a narrower error number than others of their
 * kind. */
static struct diag *add_failure(struct diags *d, const struct cause *c)
{
        if (c->kind == CAUSE_REFUSED && c->why == REFUSED_PMIX)
                return diag_add(d, HN_NO_PMIX, 0, "a node cannot serve PMIx");
        if (c->kind == CAUSE_NODE && c->node < 0)
                return diag_add(d, HN_NODE_LOST, 0, "the hold of the nodes has ended");
        if (c->kind == CAUSE_ROLE && c->why == ROLE_END_LEFT)
                return diag_add(d, HN_ROLE_ENDED, 0, "a role has ended that others need");
        return diag_add(d, messages[c->kind].id, 0, "%s", messages[c->kind].title);
}

/* Returns the next step for a role that broke a rule of the start order; @c->why is an enum
 * role_end. */
static const char *help_of_role(const struct cause *c)
{
        return c->why == ROLE_END_LEFT      ? "--ends ok allows the role to end; --main ROLE names "
                                              "those whose end counts"
               : c->why == ROLE_END_TIMEOUT ? "--ready-timeout TIME gives the role more time; its "
                                              "output tells what it did"
                                            : "its output tells why it ended";
}

/* Returns the next step, with the program for its %s, where what a program needs is missing. @text
 * is a sentence of base/exec_failure.c; both sides change together. */
static const char *help_of_missing(const char *text)
{
        if (strstr(text, "lines end in CR"))
                return "convert its line ends: dos2unix %s";
        /* A symbolic link whose target is absent. */
        if (strstr(text, " link"))
                return "the target must exist on every node, too: make the link to a file that all "
                       "of them have, as ls -l %s shows it";
        /* The dynamic loader named in the program, such as ld-linux of another C library. */
        if (strstr(text, "loader"))
                return "the nodes lack the C library of %s: build it for theirs, or start it in a "
                       "container (--container)";
        return "install it on every node, or mend the first line of %s";
}

/* Returns the interpreter of scripts with such an ending, or NULL when the ending tells nothing. */
static const char *interpreter_of(const char *program)
{
        static const struct {
                const char *end, *interpreter;
        } kinds[] = { { ".py", "python3" }, { ".sh", "sh" },     { ".jl", "julia" },
                      { ".pl", "perl" },    { ".R", "Rscript" }, { ".lua", "lua" } };
        const char *end = strrchr(program, '.');

        for (size_t i = 0; end && i < ARRAY_SIZE(kinds); i++)
                if (!strcmp(kinds[i].end, end))
                        return kinds[i].interpreter;
        return NULL;
}

/* Adds the next step for a file that is no program, or may not be executed. The words sought in
 * @c->text are those of base/exec_failure.c. */
static void add_script_help(struct diag *d, const struct cause *c, const char *program)
{
        const char *interpreter = interpreter_of(program);

        /* A device, a FIFO or a socket is never a program. */
        if (strstr(c->text, "no regular file"))
                return;
        /* An interpreter works also for a file without x bit and first line, so that this step is
         * first. */
        if (interpreter)
                diag_help(d, "name its interpreter: hnlaunch %s %s", interpreter,
                          strncmp(program, "./", 2) ? program : program + 2);
        if (strstr(c->text, "noexec"))
                diag_help(d, "put the program on another file system, or --push it");
        else if (strstr(c->text, "its interpreter '"))
                diag_help(d, "mend the first line of %s, or chmod +x the interpreter", program);
        else if (c->error == EACCES)
                diag_help(d, "%schmod +x %s%s%s", interpreter ? "or " : "", program,
                          interpreter                  ? ", with a first line #!/usr/bin/env "
                          : strstr(c->text, "(mode 0") ? ""
                                                       : ", or check the folders above it",
                          interpreter ? interpreter : "");
        else if (strstr(c->text, "is a program for"))
                diag_help(d, "build it for the machines of these nodes");
        else if (!strstr(c->text, "is empty") && !interpreter)
                diag_help(d,
                          "a script needs a first line like #!/usr/bin/env python3, or name its "
                          "interpreter: hnlaunch ... python3 %s",
                          program);
}

/* Adds the next step by what the node could not do and by the error number of the attempt. Other
 * errors are rare and get none: the reason in the last line must do. */
static void add_refused_help(struct diag *d, const struct cause *c, const struct options *o,
                             size_t number)
{
        const struct program_options *own = options_program(o, number);
        const char *program = options_argv(o, number)->v[0];
        const char *chdir = own && own->chdir ? own->chdir : o->chdir;
        bool is_absent = c->why == REFUSED_EXEC && c->error == ENOENT;
        bool is_relative = *program != '/' && strchr(program, '/');

        /* HN239 has told that the program is here, but is not pushed. */
        if (is_absent && is_relative && !chdir && o->push.n && access(program, F_OK) == 0)
                return;
        if (c->why == REFUSED_PMIX)
                diag_help(d, "install libpmix there (libpmix2 of Debian), or name the folder above "
                             "its lib with -x PMIX_PREFIX=DIR; programs of MPICH need --mpi pmi1");
        else if (is_absent && is_relative && chdir)
                diag_help(d,
                          "with --chdir ranks start there: the program must exist on every node as "
                          "%s/%s",
                          chdir, program + (strncmp(program, "./", 2) ? 0 : 2));
        else if (is_absent)
                diag_help(d, "the program must exist on every node under this path%s",
                          strchr(program, '/') ? "" : ", or in its PATH (./NAME for this folder)");
        else if (c->why == REFUSED_EXEC && c->error == ELIBACC)
                diag_help(d, help_of_missing(c->text), program);
        else if (c->why == REFUSED_EXEC && c->error == EISDIR)
                diag_help(d, "name a program in it: %s/NAME", program);
        else if (c->why == REFUSED_EXEC && (c->error == EACCES || c->error == ENOEXEC))
                add_script_help(d, c, program);
        else if (c->why == REFUSED_FORK && c->error == EMFILE)
                diag_help(d, "the limit of open files is too low for so many ranks there: raise "
                             "`ulimit -n`, or start fewer on a node (--ppn)");
        else if (c->why == REFUSED_FORK && c->error == EAGAIN)
                diag_help(d, "the limit of processes is reached there: raise `ulimit -u`, or start "
                             "fewer ranks on a node (--ppn)");
        else if (c->why == REFUSED_CWD)
                diag_help(d, "every node needs the folder in which ranks start: --chdir DIR names "
                             "another "
                             "than that of this shell, --push FILE brings files to nodes that do "
                             "not share it");
}

static void add_worlds_help(struct diag *d)
{
        diag_note(d, "each rank did the whole work by itself");
        diag_help(d, "ranks that are worlds of one on purpose need --mpi none");
}

/* Whether a text has escape sequences other than colours. After such a sequence no reader can tell
 * what the terminal shows. */
static bool moves_cursor(const char *text)
{
        for (const char *p = strchr(text, '\033'); p; p = strchr(p + 1, '\033'))
                if (p[1] != '[' || p[2 + strspn(p + 2, "0123456789;:")] != 'm')
                        return true;
        return false;
}

/* Counts lines; an unfinished last line counts as one. */
static size_t count_quoted_lines(const char *text)
{
        size_t n = 0;

        for (const char *line = text; *line; n++)
                line += strcspn(line, "\n") + (strchr(line, '\n') != NULL);
        return n;
}

/* Whether a text that the rank wrote to @stream stands on the terminal as it was written. The text
 * is sought from behind in the newest output; the printer tells whether so many lines are on the
 * screen. */
static bool stands_on_screen(const struct job *j, int rank, uint8_t stream, const char *text)
{
        CLEANUP(free_textp) char *words = job_last_words(j, rank, stream);
        CLEANUP(free_textp) char *plain = escapes_copy_plain(words);
        CLEANUP(free_textp) char *sought = escapes_copy_plain(text);
        const char *at = NULL;

        /* The newline at the end may be missing in one of the two. */
        sought[strlen(sought) - (*sought && strchr(sought, '\0')[-1] == '\n')] = '\0';
        for (const char *p = strstr(plain, sought); p && *p; p = strstr(p + 1, sought))
                at = p;
        return at && !moves_cursor(text) && job_shows(j, rank, stream, count_quoted_lines(at));
}

/* Whether the last words are a single line, which the sentence of the cause quotes anyway. */
static bool is_quoted(const struct cause *c, const char *words)
{
        size_t n = strcspn(words, "\n");

        return c->quote && strlen(c->text) == n && !strncmp(words, c->text, n) &&
               !words[n + (words[n] == '\n')];
}

/* Adds the newest @n lines of @stream, unless the last line of hnlaunch quotes the only one.
 * Returns false if the rank wrote none, so that the caller tries the other stream. */
static bool add_stream_rows(struct diag *d, const struct job *j, const struct cause *c,
                            uint8_t stream, const char *title, int n)
{
        CLEANUP(free_textp) char *words = job_last_words(j, c->rank, stream);
        const char *from = find_last_lines(words, n);

        if (*words && (c != &job_outcome(j)->cause || !is_quoted(c, words)))
                add_quoted_rows(d, title, from, stands_on_screen(j, c->rank, stream, from));
        return *words;
}

/* Notes the core file: one found by the node's agent, else why there is none, else, when only the
 * wait status tells of a dump, where to search. */
static void note_core(struct diag *d, const struct core_found *core, const struct cause *c,
                      const char *host)
{
        CLEANUP(free_textp) char *file = printable_text(core->file, PRINTABLE_ROW);
        CLEANUP(free_textp) char *problem = printable_text(core->problem, PRINTABLE_ROW);

        if (*file)
                diag_note(d, "core file: %s on %s%s%s", file, host, *problem ? "; " : "", problem);
        else if (*problem)
                diag_note(d, "no core file: %s", problem);
        else if (c->core)
                diag_note(d,
                          "core dump: on %s, coredumpctl info %u, or where "
                          "/proc/sys/kernel/core_pattern says",
                          host, c->pid);
}

/* Notes that a signal that programs rarely send to themselves came from elsewhere: a scheduler, an
 * administrator or a script. Silent when an out-of-memory kill or `hnlaunch signal` explains the
 * signal. */
static void note_sender(struct diag *d, const struct job *j, const struct cause *c,
                        const char *host)
{
        static const int signals[] = {
                SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2
        };
        bool is_sent = false;

        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                is_sent |= c->kind == CAUSE_SIGNAL && c->signal == signals[i];
        if (!is_sent || *c->oom.file || job_has_sent(j, c))
                return;
        diag_note(d, "hnlaunch did not send %s%s%s", outcome_signal_name(c->signal),
                  c->signal == SIGKILL ? ", and no out-of-memory kill was counted on " : "",
                  c->signal == SIGKILL ? host : "");
}

/* Adds the last lines of the rank that failed, and notes everything known of its end besides the
 * status. */
static void add_rank_evidence(struct diag *d, const struct job *j, const struct outcome *o,
                              const char *host, const struct plan *plan)
{
        /* An exception is preceded by its call stack, of which the newest frames are below: more
         * lines. */
        enum { LINES = 8, FRAMES = 20 };
        const struct cause *c = first_to_fail(o);
        const struct rank_report *t = outcome_find_report(o, c->rank);
        char of[PLAN_RANK_NAME_MAX + 2] = "its", title[PLAN_RANK_NAME_MAX + 80],
                                     who[PLAN_RANK_NAME_MAX];

        plan_rank_name(plan, c->rank, who);
        if (c != &o->cause)
                snprintf(of, sizeof(of), "%s's", who);
        snprintf(title, sizeof(title), "%s Python call stack:", of);
        if (t && t->trace) {
                const char *from = find_last_lines(t->trace, FRAMES);

                add_quoted_rows(d, title, from, stands_on_screen(j, c->rank, MSG_STDERR, from));
                /* The call stack is missing when the rank has no Python, or has reported without a
                 * stack. */
        } else {
                snprintf(title, sizeof(title), "last lines of %s stderr:", of);
                if (!add_stream_rows(d, j, c, MSG_STDERR, title,
                                     c->quote == QUOTE_EXCEPTION ? FRAMES : LINES))
                        add_stream_rows(d, j, c, MSG_STDOUT,
                                        "last lines of its stdout (its stderr is empty):", LINES);
        }
        if (t)
                diag_note(d, "%s reported: %s", who, t->said);
        if (*c->oom.file)
                diag_note(d,
                          "the kernel's out-of-memory killer was active on %s: oom_kill %" PRIu64
                          " -> %" PRIu64 " in %s",
                          host, c->oom.before, c->oom.after, c->oom.file);
        note_sender(d, j, c, host);
        if (c == &o->cause)
                note_core(d, job_core(j), c, host);
}

/* Adds the next step for a failure that the option --compat ends. */
static void add_compat_help(struct diag *d, const struct job *j, int rank, const struct options *o)
{
        CLEANUP(free_textp) char *words = job_last_words(j, rank, MSG_STDERR);

        if (!o->compat && strstr(words, "ValueError: coordinator_address should be defined."))
                diag_help(d, "JAX does not know hnlaunch: add --compat ompi, or import "
                             "hnlaunch.jax_cluster before jax.distributed.initialize()");
}

/* Adds help for an option of hnlaunch behind the program, after a failure at once without other
 * words: the program got the option, and most parsers of arguments name the word they reject. */
static void add_misplaced_help(struct diag *d, const struct job *j, const struct cause *c,
                               const struct strv *argv)
{
        /* Importing PyTorch from a file server may take seconds before arguments are read. */
        enum { AT_ONCE_MS = 10000 };

        if (c->kind != CAUSE_EXIT || c->after_ms > AT_ONCE_MS)
                return;
        for (size_t i = 1; i < argv->n; i++) {
                CLEANUP(free_textp) char *name = options_name_of_run(argv->v[i]);
                CLEANUP(free_textp)
                char *words = name ? job_last_words(j, c->rank, MSG_STDERR) : NULL;

                if (!name || (*words && !strstr(words, name)))
                        continue;
                diag_help(
                        d,
                        "`--%s` stands behind the program, which got it: options of hnlaunch stand "
                        "in front",
                        name);
                return;
        }
}

/* Adds what the program that started the agents (--start-with) said before the node was lost. The
 * built-in ssh has put its reason into the failure itself. */
static void add_program_rows(struct diag *d, const struct link_failure *why, const char *via)
{
        enum { LINES = 4 };
        char title[64];

        if (!why || !program_link_calls(via))
                return;
        snprintf(title, sizeof(title), "last lines of the stderr of %.30s:", via);
        add_quoted_rows(d, title, find_last_lines(why->evidence, LINES), false);
}

static void place_node(struct diag *d, const struct hosts *hosts, size_t node)
{
        CLEANUP(free_textp) char *where = hosts_locate(hosts, &node, 1);

        diag_place(d, "%s", where);
}

/* Returns the node that the cause tells of, or one of those lost with their hold; NULL = none. */
static const struct node *find_lost(const struct job *j, const struct cause *c, size_t n_hosts)
{
        if (c->kind != CAUSE_NODE)
                return NULL;
        if (c->node >= 0)
                return job_node(j, (size_t)c->node);
        for (size_t i = 0; i < n_hosts; i++) {
                const struct node *n = job_node(j, i);

                if (n->failure && n->failure->cause == LINK_HOLD)
                        return n;
        }
        return NULL;
}

void report_failure(struct diags *d, const struct job *j, const struct hosts *hosts,
                    const struct plan *plan, const struct options *o)
{
        /* Earlier attempts (--max-restarts) shown, the newest; a job may restart for days. */
        enum { EARLIER = 5 };
        const struct strv *earlier = job_earlier(j);
        const struct outcome *out = job_outcome(j);
        const struct cause *c = &out->cause;
        const char *host = c->node >= 0 ? hosts->v[c->node].name : "";
        const struct node *lost = find_lost(j, c, hosts->n);
        /* Without a rank, such as for a refusal by all nodes, the first program stands for all. */
        int program = c->rank >= 0 && plan ? plan->ranks[c->rank].program : 0;
        const struct strv *argv = options_argv(o, (size_t)program);
        struct diag *di;

        if (!messages[c->kind].id)
                return;
        di = add_failure(d, c);
        if (c->rank >= 0 && plan && c->kind != CAUSE_REFUSED)
                place_rank(di, c, host, plan);
        else if (c->node >= 0)
                place_node(di, hosts, (size_t)c->node);
        /* A role that others waited for in vain has words of its own, a role that merely ended has
         * none. */
        if (outcome_is_workers(out) || (c->kind == CAUSE_ROLE && c->why != ROLE_END_LEFT))
                add_rank_evidence(di, j, out, host, plan);
        if (lost && lost->failure)
                add_program_rows(di, lost->failure, o->via);
        if ((lost && lost->state == NODE_FAILED) || c->kind == CAUSE_NETWORK ||
            c->kind == CAUSE_PAUSE)
                diag_note(di, "the last output of %s ranks may be missing", lost ? "its" : "the");
        note_consequences(di, j, out, hosts, plan);
        if (earlier->n > EARLIER)
                diag_note(di, "%zu earlier attempts are not listed", earlier->n - EARLIER);
        for (size_t i = earlier->n > EARLIER ? earlier->n - EARLIER : 0; i < earlier->n; i++)
                diag_note(di, "%s", earlier->v[i]);
        if (c->kind == CAUSE_REFUSED)
                add_refused_help(di, c, o, (size_t)program);
        if (c->kind == CAUSE_WORLDS)
                add_worlds_help(di);
        if (c->kind == CAUSE_ROLE)
                diag_help(di, "%s", help_of_role(c));
        if (outcome_is_workers(out)) {
                add_compat_help(di, j, c->rank, o);
                add_misplaced_help(di, j, c, argv);
        }
        if (c->kind == CAUSE_NETWORK)
                diag_help(di,
                          "check `ip addr` here and try `ping %s`; the nodes end their ranks after "
                          "the same silence",
                          hosts->v[0].name);
        if (c->kind == CAUSE_PAUSE)
                diag_help(di,
                          "it was stopped, or this machine slept or was overloaded; Ctrl-Z stops "
                          "hnlaunch without harm, and a longer --node-timeout bridges a pause");
        /* The link knows a better step than to leave the node out. */
        if (lost && lost->failure && *lost->failure->help)
                diag_help(di, "%s", lost->failure->help);
        else if (lost && hosts->n > 1)
                diag_help(di, "start without it: --exclude %s", host);
}
