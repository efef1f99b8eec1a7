/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every command first loads the list of runs and picks a run: the named one, or the newest
 * for which the command is meant. An order is a request at the socket of the run, while wait, logs
 * and report also work on records. A missing answer is explained by the summary and the process of
 * the run: ended meanwhile, killed, or silent.
 */
#include "head/commands/run_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/printable.h"
#include "head/commands/attach.h"
#include "head/commands/run_bad.h"
#include "head/commands/run_holds.h"
#include "head/commands/run_hosts.h"
#include "head/commands/run_logs.h"
#include "head/commands/run_ps.h"
#include "head/commands/run_report.h"
#include "head/commands/run_rerun.h"
#include "head/commands/run_top.h"
#include "head/commands/run_trust.h"
#include "head/commands/run_why.h"
#include "head/core/json_text.h"
#include "head/options/config.h"
#include "head/options/option_parse.h"
#include "head/options/option_table.h"
#include "head/run/run_list.h"
#include "head/run/run_records.h"
#include "head/term/diag.h"

enum {
        ANSWER_MS = 5000,
        LOOK_US = 100000,
        PROGRAM_SHOWN = 200,
};

/* --- one run ---------------------------------------------------------------------------------- */

/* Adds a row for each of the newest runs whose id begins with @beginning, or of those only that go
 * on. */
static void add_newest_runs(struct diag *di, const struct run_list *l, const char *beginning,
                            bool running)
{
        enum { SHOWN = 5 };

        for (size_t i = 0, shown = 0; i < l->n && shown < SHOWN; i++) {
                if ((running && l->v[i].state != RUN_GOES_ON) ||
                    strncmp(l->v[i].id, beginning, strlen(beginning)) != 0)
                        continue;
                shown++;
                CLEANUP(free_textp) char *program = run_program_text(&l->v[i]);
                CLEANUP(free_textp) char *state = run_state_text(&l->v[i]);

                diag_row(di, "%s  %s  %s", l->v[i].id, state, program);
        }
        diag_help(di, "hnlaunch ps lists all runs");
}

/* Whether a word could be meant for --ranks, as in `hnlaunch logs 3`. */
static bool is_rank_list(const char *word)
{
        return *word && !word[strspn(word, "0123456789,-")];
}

/* Adds what a word that is no run may have meant for logs: a rank, more likely than a run, or a
 * host. */
static void help_with_word(struct diag *di, const struct run_list *l, const char *word)
{
        if (is_rank_list(word)) {
                diag_help(di, "rank%s %s of the newest run: hnlaunch logs --ranks %s",
                          word[strspn(word, "0123456789")] ? "s" : "", word, word);
                diag_help(di, "hnlaunch ps lists all runs");
                return;
        }
        add_newest_runs(di, l, "", false);
        diag_help(di, "if it is a host: hnlaunch logs --hosts %s", word);
}

/* Finds the run @id, or with NULL the newest. NULL with a message: none, or several. A message of
 * the exit code EX_NOINPUT lists some runs to choose from. */
static const struct run *find_run(const struct run_list *l, const char *id, enum command command,
                                  struct diags *d)
{
        const struct run *r = NULL;
        struct error err;
        struct diag *di;
        size_t n = 0;

        if (id)
                r = run_list_find(l, id, &n);
        else if (l->n)
                r = &l->v[0];
        if (r)
                return r;
        if (n)
                di = diag_add(d, HN_NO_RUN, EX_NOINPUT, "%zu runs begin with %s", n, id);
        else
                di = diag_add(d, HN_NO_RUN, EX_NOINPUT,
                              id ? "there is no run %s" : "there is no run", id);
        /* The list has skipped records that others may change: without the note the run would seem
         * not to exist. With a slash the word would be a path out of the folder. */
        if (id && !strchr(id, '/') && run_records_open(id, &err) == -EPERM)
                diag_note(di, "its records are not read: %s", err.text);
        if (id && !n && command == COMMAND_LOGS)
                help_with_word(di, l, id);
        else
                add_newest_runs(di, l, n ? id : "", false);
        return NULL;
}

static size_t count_running(const struct run_list *l)
{
        size_t n = 0;

        for (size_t i = 0; i < l->n; i++)
                n += l->v[i].state == RUN_GOES_ON;
        return n;
}

/* Returns the id of the newest running run; NULL = none. */
static const char *newest_running(const struct run_list *l)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->v[i].state == RUN_GOES_ON)
                        return l->v[i].id;
        return NULL;
}

/* Returns the id of the newest run with records; NULL = none has. A run that goes on may have
 * others than these: with another XDG_STATE_HOME or --log-dir none. */
static const char *newest_recorded(const struct run_list *l)
{
        struct error err;

        for (size_t i = 0; i < l->n; i++) {
                CLEANUP(fd_closep) int fd = run_records_open(l->v[i].id, &err);

                if (fd >= 0)
                        return l->v[i].id;
        }
        return NULL;
}

/* Refuses a command that takes only the one run that goes on. */
static void refuse_choice(const struct run_list *l, const char *command, struct diags *d)
{
        size_t n = count_running(l);
        struct diag *di;

        if (!n) {
                di = diag_add(d, HN_NO_RUN, EX_NOINPUT, "none of your runs goes on here");
                add_newest_runs(di, l, "", false);
                return;
        }
        di = diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "`%s` needs a run: %zu go on", command, n);
        add_newest_runs(di, l, "", true);
        diag_help(di, "hnlaunch %s %s", command, newest_running(l));
}

/* Finds the run meant by a command without an id. NULL with a message: none. */
static const struct run *choose_run(const struct run_list *l, enum command command, struct diags *d)
{
        switch (command) {
        case COMMAND_STOP:
        case COMMAND_WAIT:
                /* The only running run is meant; of several, the user names the run. */
                if (count_running(l) == 1)
                        return find_run(l, newest_running(l), command, d);
                refuse_choice(l, option_commands[command].name, d);
                return NULL;
        case COMMAND_ATTACH:
        case COMMAND_WHY:
        case COMMAND_TOP:
                return find_run(l, newest_running(l), command, d);
        case COMMAND_LOGS:
        case COMMAND_REPORT:
                return find_run(l, newest_recorded(l), command, d);
        default:
                return find_run(l, NULL, command, d);
        }
}

/* Says which run was chosen, that the beginning of its name could be a rank, and that a run to be
 * attached has ended. */
static void tell_choice(const struct options *o, const struct run_list *l, const struct run *r)
{
        /* Commands whose choice among the running runs is told on standard error. */
        static const unsigned chosen = 1 << COMMAND_STOP | 1 << COMMAND_WAIT | 1 << COMMAND_ATTACH |
                                       1 << COMMAND_WHY | 1 << COMMAND_TOP;
        CLEANUP(free_textp) char *raw = run_program_text(r), *state = run_state_text(r);
        CLEANUP(free_textp) char *program = printable_text(raw, PROGRAM_SHOWN);
        CLEANUP(free_textp)
        char *others = count_running(l) > 1 ? xasprintf(", the newest of %zu", count_running(l))
                                            : xstrdup("");

        if (o->quiet)
                return;
        if (o->command == COMMAND_ATTACH && r->state == RUN_ENDED)
                fprintf(stderr,
                        "hnlaunch: run %s has ended: %s; its output from where it was left "
                        "follows, hnlaunch logs %s prints all\n",
                        r->id, state, r->id);
        else if (o->command == COMMAND_LOGS && o->argv.n && is_rank_list(o->argv.v[0]) &&
                 strcmp(o->argv.v[0], r->id) != 0)
                fprintf(stderr,
                        "hnlaunch: run %s, whose name begins with %s; rank %s of the newest run: "
                        "hnlaunch logs --ranks %s\n",
                        r->id, o->argv.v[0], o->argv.v[0], o->argv.v[0]);
        else if (!o->argv.n && chosen >> o->command & 1 && r->state == RUN_GOES_ON &&
                 (o->command != COMMAND_TOP || *others)) /* top names it anyway */
                fprintf(stderr, "hnlaunch: run %s%s: %s\n", r->id, others, program);
}

/* Refuses an order to a run that has ended. */
static void add_ended(const struct run *r, struct diags *d)
{
        struct error err;
        CLEANUP(fd_closep) int dir = run_records_open(r->id, &err);
        struct diag *di = diag_add(d, HN_RUN_ENDED, EX_UNAVAILABLE, "run %s has ended: %s", r->id,
                                   r->state == RUN_LOST ? "its hnlaunch was killed"
                                                        : json_member(r->summary, "verdict"));
        CLEANUP(free_textp) char *link = xasprintf("/proc/self/fd/%d", dir);
        char folder[PATH_MAX];
        ssize_t n = dir >= 0 ? readlink(link, folder, sizeof(folder)) : -1;

        if (n > 0 && faccessat(dir, "hang.txt", R_OK, 0) == 0)
                diag_note(di, "what its ranks did when it hung is in %.*s/hang.txt", (int)n,
                          folder);
        diag_help(di, "hnlaunch report %s tells more", r->id);
}

/* Refuses an order to a run that does not go on here. Returns the exit code. */
static int refuse_order(const struct run *r, struct diags *d)
{
        if (r->state == RUN_ELSEWHERE)
                diag_help(diag_add(d, HN_RUN_ELSEWHERE, EX_UNAVAILABLE,
                                   "run %s is not on this machine, but on %s", r->id,
                                   json_member(r->info, "host")),
                          "give the command there");
        else
                add_ended(r, d);
        return EX_UNAVAILABLE;
}

/* Tells why there is no answer: the run has ended meanwhile (69), or was killed (125), or
 * is silent (69). Returns the exit code. The list may be seconds old, so summary and
 * process are looked up again. */
static int refuse_answer(const struct run *r, const struct error *err, struct diags *d)
{
        json_t *summary = run_load_summary(r->id);
        bool ended = summary || err->code == ESRCH, lives = run_process_lives(r->info);
        int code = ended || lives ? EX_UNAVAILABLE : EX_FAILED;

        if (ended)
                diag_add(d, HN_RUN_ENDED, code, "run %s has ended: %s", r->id,
                         summary ? json_member(summary, "verdict") : err->text);
        else if (!lives)
                diag_add(d, HN_RUN_SILENT, code,
                         "run %s has ended without a verdict: its hnlaunch "
                         "was killed",
                         r->id);
        else
                diag_help(diag_add(d, HN_RUN_SILENT, code, "run %s does not answer: %s", r->id,
                                   err->text),
                          "kill %lld stops it",
                          json_integer_value(json_object_get(r->info, "pid")));
        json_decref(summary);
        return code;
}

/* Waits for the summary of a run after the end of the socket. NULL: the run was killed. A living
 * run without a socket is awaited by the process. */
static json_t *await_summary(const struct run *r)
{
        json_t *summary;
        bool lives;

        do {
                /* Before the summary: a run that writes a summary in between is not
                 * taken for a killed run. */
                lives = run_process_lives(r->info);
                summary = run_load_summary(r->id);
        } while (!summary && lives && usleep(LOOK_US) == 0);
        return summary;
}

/* Sends an order. 0, or the exit code. Takes @request. A silent run is asked as well: only the
 * description may have come too late. */
static int order_run(const struct run *r, json_t *request, struct diags *d)
{
        const char *refusal;
        struct error err;
        json_t *answer;
        int rc;

        if (r->state != RUN_GOES_ON && r->state != RUN_SILENT) {
                json_decref(request);
                return refuse_order(r, d);
        }
        answer = run_ask(r->socket, request, ANSWER_MS, &err);
        if (!answer)
                return refuse_answer(r, &err, d);
        refusal = json_string_value(json_object_get(answer, "error"));
        if (refusal)
                diag_add(d, HN_ORDER_REFUSED, EX_UNAVAILABLE, "run %s: %s", r->id, refusal);
        rc = refusal ? EX_UNAVAILABLE : 0;
        json_decref(answer);
        return rc;
}

/* Waits for the end of a run, without a limit. Returns the exit code of the run, with the verdict
 * in @d. An ended run answers at once, from its summary. */
static int await_run(const struct run *r, struct diags *d)
{
        json_t *answer = NULL;
        struct error err;
        int code;

        if (r->state == RUN_ELSEWHERE || r->state == RUN_LOST)
                return refuse_order(r, d);
        if (r->state == RUN_ENDED)
                answer = json_incref(r->summary);
        else
                answer = run_ask(r->socket, json_pack("{s:s}", "do", "wait"), -1, &err);
        answer = answer ? answer : await_summary(r);
        if (!answer)
                return refuse_answer(r, &err, d);
        code = (int)json_integer_value(json_object_get(answer, "code"));
        diag_tell(d, "run %s: %s", r->id, json_member(answer, "verdict"));
        json_decref(answer);
        return code;
}

/* Attaches to a run that goes on, or shows the rest of the output of an ended run. */
static int attach_to(const struct options *o, const struct run *r, struct diags *d)
{
        if (r->state == RUN_ELSEWHERE || r->state == RUN_LOST)
                return refuse_order(r, d);
        return attach_run(o, r, d);
}

/* Whether --grace is on this command line: a value of the configuration belongs to launches, and
 * the run has a grace time already. */
static bool has_grace(const struct options *o)
{
        return settings_level(o->settings, option_by_name("grace")) == LEVEL_LINE;
}

/* Sends a signal to all ranks, or to those of --role. */
static int signal_ranks(const struct options *o, const struct run *r, int signo, struct diags *d)
{
        json_t *request = json_pack("{s:s, s:i}", "do", "signal", "signal", signo);

        if (o->of_role)
                json_object_set_new(request, "role", json_text(o->of_role));
        return order_run(r, request, d);
}

/* Stops a run and waits for its end, or sends SIGTERM to the ranks of a role. The exit code of the
 * run does not count: 0 = the run has ended, 125 = hnlaunch was killed meanwhile. */
static int stop_run(const struct options *o, const struct run *r, struct diags *d)
{
        json_t *request = o->of_role ? NULL : json_pack("{s:s}", "do", "stop");
        int rc;

        if (o->of_role && has_grace(o)) {
                diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE,
                                   "--role and --grace exclude each other"),
                          "hnlaunch stop %s --role %s sends SIGTERM, hnlaunch signal %s KILL "
                          "--role %s kills at once",
                          r->id, o->of_role, r->id, o->of_role);
                return EX_USAGE;
        }
        /* The run goes on: nothing is awaited. */
        if (o->of_role)
                return signal_ranks(o, r, SIGTERM, d);

        if (has_grace(o))
                json_object_set_new(request, "grace_ms", json_integer(o->grace_ms));
        rc = order_run(r, request, d);
        if (!rc && await_run(r, d) == EX_FAILED && diags_errors(d))
                rc = EX_FAILED;
        return rc;
}

static int signal_run(const struct options *o, const struct run *r, struct diags *d)
{
        int signo = signal_number(o->argv.v[1]);

        if (!signo) {
                diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "there is no signal %s",
                                   o->argv.v[1]),
                          "a name or number of kill -l, for example USR1");
                return EX_USAGE;
        }
        return signal_ranks(o, r, signo, d);
}

/* Orders the run to go on without a host. The answer comes before the ranks have saved. */
static int drain_host(const struct options *o, const struct run *r, struct diags *d)
{
        json_t *request = json_pack("{s:s, s:s, s:I}", "do", "drain", "host", o->argv.v[1], "in_ms",
                                    (json_int_t)o->drain.in_ms);

        return order_run(r, request, d);
}

/* --- why, top --------------------------------------------------------------------------------- */

static int explain_run(const struct options *o, const struct run *r, struct diags *d)
{
        struct error err;

        if (r->state != RUN_GOES_ON && r->state != RUN_SILENT)
                return refuse_order(r, d);
        return run_why_ask(r, o->json, &err) < 0 ? refuse_answer(r, &err, d) : 0;
}

/* Shows top. A signal ends top with 128 and the number. */
static int look_at_run(const struct options *o, const struct run *r, struct diags *d)
{
        struct error err;
        int rc;

        if (r->state != RUN_GOES_ON && r->state != RUN_SILENT)
                return refuse_order(r, d);
        rc = run_top_show(o, r, d, &err);
        return rc < 0 ? refuse_answer(r, &err, d) : rc ? EX_SIGNAL + rc : 0;
}

/* ---------------------------------------------------------------------------------------------- */

/* Refuses a signal in the place of the run. 0, or 64 with a message. A run whose id is, or begins
 * with, the name of a signal is left alone. */
static int check_signal_place(const struct options *o, struct diags *d)
{
        const char *signal = o->argv.n ? o->argv.v[0] : "", *id = NULL;
        struct run_list l;
        size_t n = 0;
        int rc = 0;

        if (o->command != COMMAND_SIGNAL || !o->argv.n || o->argv.n > 2 || !signal_number(signal))
                return 0;
        run_list_load(&l);
        run_list_find(&l, signal, &n);
        if (o->argv.n == 1)
                id = newest_running(&l);
        else if (run_list_find(&l, o->argv.v[1], &(size_t){ 0 }) || !signal_number(o->argv.v[1]))
                /* The second word is a run, or could be the id of a run gone by.
                 * Two signals are no swap. */
                id = o->argv.v[1];
        if (!n && (id || o->argv.n == 1)) {
                diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE,
                                   "`signal` needs a run in front of %s", signal),
                          "hnlaunch signal %s %s%s", id ? id : "RUN", signal,
                          id ? "" : "; hnlaunch ps lists your runs");
                rc = EX_USAGE;
        }
        run_list_finish(&l);
        return rc;
}

/* Checks the number of words. 0, or 64 with a message. */
static int check_words(const struct options *o, struct diags *d)
{
        const struct option_command *c = &option_commands[o->command];
        struct diag *di;

        if (o->argv.n >= c->least && o->argv.n <= c->most)
                return 0;
        if (o->argv.n > c->most)
                di = diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "`%s` does not take %zu word%s",
                              c->name, o->argv.n, o->argv.n == 1 ? "" : "s");
        else
                di = diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "`%s` needs %s", c->name,
                              !o->argv.n                    ? "the id of a run"
                              : o->command == COMMAND_DRAIN ? "a host"
                                                            : "a signal");
        diag_note(di, "usage: hnlaunch %s [OPTION...]%s%s; hnlaunch ps lists your runs", c->name,
                  *c->words ? " " : "", c->words);
        diag_help(di, "to start a program of this name: hnlaunch run %s", c->name);
        return EX_USAGE;
}

/* Refuses the name of a run as the file of a page: `report --html k3f9q` means that run. Only whole
 * ids count, since a page may be called anything else. */
static bool is_page_a_run(const struct run_list *l, const struct options *o, struct diags *d)
{
        const struct run *r = NULL;

        for (size_t i = 0; i < l->n && o->html && !r; i++)
                if (!strcmp(l->v[i].id, o->html))
                        r = &l->v[i];
        if (r)
                diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE,
                                   "--html needs a file, and %s is a run", r->id),
                          "hnlaunch report --html %s.html %s", r->id, r->id);
        return r;
}

/* Carries out the command. Returns the exit code. */
static int do_with_run(const struct options *o, const struct run_list *l, const struct run *r,
                       struct diags *d)
{
        tell_choice(o, l, r);
        switch (o->command) {
        case COMMAND_STOP:
                return stop_run(o, r, d);
        case COMMAND_SIGNAL:
                return signal_run(o, r, d);
        case COMMAND_DRAIN:
                return drain_host(o, r, d);
        case COMMAND_LOGS:
                return run_logs_print(o, r, d);
        case COMMAND_ATTACH:
                return attach_to(o, r, d);
        case COMMAND_WAIT:
                return await_run(r, d);
        case COMMAND_REPORT:
                return run_report_print(o, r, d);
        case COMMAND_WHY:
                return explain_run(o, r, d);
        case COMMAND_TOP:
                return look_at_run(o, r, d);
        default:
                return run_rerun_start(o, r, d);
        }
}

int run_commands_do(const struct options *o, struct diags *d)
{
        struct run_list l;
        const struct run *r;
        int rc;

        /* These four concern no run. */
        if (o->command == COMMAND_BAD)
                return run_bad_do(o, d);
        if (o->command == COMMAND_HOSTS)
                return run_hosts_print(o, d);
        if (o->command == COMMAND_TRUST)
                return run_trust_do(o, d);
        if (o->command == COMMAND_RELEASE)
                return run_holds_release(o, d);
        rc = check_signal_place(o, d);
        rc = rc ? rc : check_words(o, d);
        if (rc || o->command == COMMAND_PS)
                return rc ? rc : run_ps_print(o, d);
        run_list_load(&l);
        r = o->argv.n ? find_run(&l, o->argv.v[0], o->command, d) : choose_run(&l, o->command, d);
        if (!r || is_page_a_run(&l, o, d))
                rc = diags_first_error(d)->exit;
        else
                rc = do_with_run(o, &l, r, d);
        run_list_finish(&l);
        return rc;
}
