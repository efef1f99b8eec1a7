/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hnlaunch check` connects the nodes as `plan --probe` does, but goes on without those that cannot
 * be reached, asks each agent once, and has the facts judged and printed. The head adds what it
 * knows itself: GPUs and processors from HELLO, and the offset of the wall clock. The files of a
 * program are asked for where the ranks would find them, unless they are pushed or in a container.
 * --preflight asks with the same functions.
 *
 * Facts are by node, and an entry with facts is asked no more: a caller empties the entry of a host
 * that is to be asked again. Judgements borrow the facts, which live until the report is finished.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/check/baseline.h"
#include "head/check/check_judge.h"
#include "head/check/check_print.h"
#include "head/check/peer_names.h"
#include "head/core/json_text.h"
#include "head/job/job_peers.h"
#include "head/launch/launch_private.h"
#include "head/options/export_env.h"
#include "head/output/say.h"
#include "head/term/columns.h"
#include "wire/env/subst.h"

/* With a larger error of the offset, or without an offset yet, clocks are not compared. */
enum { CLOCK_ERROR_MAX_NS = 500000000 };

/* --- what is asked ---------------------------------------------------------------------------- */

/* Writes the name of a fact about program @i: "program", "program.1". */
static void name_fact(char to[CHECK_NAME], const char *what, size_t i)
{
        if (i)
                snprintf(to, CHECK_NAME, "%s.%zu", what, i);
        else
                snprintf(to, CHECK_NAME, "%s", what);
}

/* Appends a path that the agents are to look at. The order owns copies of all texts. */
static void add_path(struct check_order *o, const char *what, size_t i, enum check_path_kind kind,
                     const char *path, const char *cwd, const char *search)
{
        struct check_path *p;

        o->paths = xrealloc(o->paths, o->n_paths + 1, sizeof(*o->paths));
        p = &o->paths[o->n_paths++];
        *p = (struct check_path){ .kind = (uint8_t)kind,
                                  .path = xstrdup(path),
                                  .cwd = xstrdup(cwd),
                                  .search = xstrdup(search ? search : "") };
        name_fact(p->name, what, i);
}

/* Passes an option of an interpreter, and with *@at its value. False: no script is named, because
 * the program stands in the option (-c, -m, -e) or comes from standard input (-s, -). */
static bool read_interpreter_option(const char *interpreter, const char *word, size_t *at)
{
        /* Letters that name the program; letters with a value, here or in the next word; letters
         * whose value is the rest of the word. */
        static const struct {
                const char *name, *program, *value, *rest;
        } rules[] = { { "py", "cm", "XW", "" },
                      { "perl", "eE", "I", "mMi0lFxCD" },
                      { "", "cs", "oO", "" } };
        static const char *const with_value[] = { "--rcfile", "--init-file",
                                                  "--check-hash-based-pycs" };
        size_t rule = 0;

        if (!word[1])
                return false;
        if (word[1] == '-') {
                for (size_t i = 0; i < ARRAY_SIZE(with_value); i++)
                        *at += !strcmp(word, with_value[i]);
                return true;
        }
        while (strncmp(interpreter, rules[rule].name, strlen(rules[rule].name)) != 0)
                rule++;
        for (const char *c = word + 1; *c; c++) {
                if (strchr(rules[rule].program, *c))
                        return false;
                if (strchr(rules[rule].value, *c)) {
                        *at += !c[1];
                        return true;
                }
                if (strchr(rules[rule].rest, *c))
                        return true;
        }
        return true;
}

/* Returns the script that an interpreter runs, lent; NULL = none, or it is read from elsewhere. */
static const char *find_script(const struct strv *argv)
{
        /* Also with a version behind the name: python3.11. */
        static const char *const interpreters[] = { "python", "pypy", "bash", "sh", "perl" };
        const char *slash = strrchr(argv->v[0], '/'), *name = slash ? slash + 1 : argv->v[0];
        bool is_one = false;

        for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
                size_t len = strlen(interpreters[i]);

                is_one |= !strncmp(name, interpreters[i], len) &&
                          strspn(name + len, "0123456789.") == strlen(name + len);
        }
        for (size_t i = 1; i < argv->n && is_one; i++) {
                const char *word = argv->v[i];

                if (*word != '-' && *word != '+')
                        return subst_has_any(word) ? NULL : word;
                if (!read_interpreter_option(name, word, &i))
                        return NULL;
        }
        return NULL;
}

/* Returns why the files of the ranks are not those that the agents see; NULL = they are. */
static const char *find_other_files(const struct launch *l)
{
        return l->o->container.kind ? "the ranks run in a container, which was not entered"
               : l->o->push.n       ? "--push brings the files with the job"
                                    : NULL;
}

/* Adds a program whose versions are wanted, with the variables by which a loader and Python find
 * their files. Words behind the first CHECK_WORDS_MAX do not say what runs. */
static void add_check_program(struct check_order *o, const struct launch *l, size_t i,
                              const char *cwd)
{
        static const char *const names[] = { "HOME", "LD_LIBRARY_PATH", "NCCL_NET_PLUGIN",
                                             "PATH", "PYTHONPATH",      "PYTHONNOUSERSITE" };
        const struct job_program *p = &l->programs[i];
        struct check_program *to;

        o->programs = xrealloc(o->programs, o->n_programs + 1, sizeof(*o->programs));
        to = &o->programs[o->n_programs++];
        *to = (struct check_program){ .number = (uint32_t)i, .cwd = xstrdup(cwd) };
        for (size_t k = 0; k < MIN(p->argv->n, (size_t)CHECK_WORDS_MAX); k++)
                strv_push(&to->argv, p->argv->v[k]);
        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
                const char *own = strv_env_get(&p->env, names[k]);
                const char *value = own ? own : strv_env_get(&l->env, names[k]);

                if (value)
                        strv_env_set(&to->env, names[k], value);
        }
}

/* Returns the question to all nodes: the same for each, whatever programs run there. @files: also
 * about the files of the programs. */
static struct check_order make_order(const struct launch *l, bool files)
{
        struct check_order o = { .run = xstrdup(l->o->check_run ? l->o->check_run : ""),
                                 .run_cwd = xstrdup(l->cwd) };

        for (size_t i = 0; i < l->n_programs && files && !find_other_files(l); i++) {
                const struct job_program *p = &l->programs[i];
                const char *cwd = p->cwd ? p->cwd : l->cwd;
                const char *own = strv_env_get(&p->env, "PATH");
                const char *script = find_script(p->argv);

                add_path(&o, "workdir", i, CHECK_FOLDER, cwd, cwd, NULL);
                add_path(&o, "program", i, CHECK_PROGRAM, p->argv->v[0], cwd,
                         own ? own : strv_env_get(&l->env, "PATH"));
                if (script)
                        add_path(&o, "script", i, CHECK_FILE, script, cwd, NULL);
                add_check_program(&o, l, i, cwd);
        }
        return o;
}

/* --- what the head knows itself --------------------------------------------------------------- */

static void add_count(struct checked *to, const char *name, uint32_t n)
{
        char text[16];

        snprintf(text, sizeof(text), "%u", n);
        checked_add(to, name, text, "");
}

/* Adds the model of the GPUs: "NVIDIA H100", or several with commas, each once. The model is not
 * known if no GPU has a name. */
static void add_model(struct checked *to, const struct hello *h)
{
        char text[CHECK_VALUE] = "";

        for (uint32_t i = 0; i < h->n_gpus; i++) {
                size_t len = strlen(text);

                if (*h->gpus[i].name && !strstr(text, h->gpus[i].name))
                        snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "",
                                 h->gpus[i].name);
        }
        checked_add(to, "gpu.model", *text || !h->n_gpus ? *text ? text : "none" : "",
                    *text || !h->n_gpus ? "" : "the driver does not tell it");
}

/* Replaces the node's wall clock, relative to its monotonic clock, by seconds ahead of ours. */
static void settle_clock(struct checked *to, const struct node *n)
{
        int64_t now = clock_ns(), wall_ns;
        struct timespec wall;

        clock_gettime(CLOCK_REALTIME, &wall);
        wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
        for (uint32_t i = 0; i < to->n_facts; i++) {
                struct check_fact *k = &to->facts[i];
                int64_t theirs, ahead;

                if (strcmp(k->name, "clock") != 0)
                        continue;
                /* The difference of both clocks of the node does not age; the offset of its
                 * monotonic clock to the clock here turns it into the time there now. */
                theirs = strtoll(k->value, NULL, 10) + now + n->clock.offset_ns;
                ahead = theirs - wall_ns;
                *k->value = '\0';
                if (clock_offset_error(&n->clock, now) > CLOCK_ERROR_MAX_NS)
                        snprintf(k->problem, sizeof(k->problem), "%s",
                                 n->parent ? "with --tree only clocks of nodes without a parent "
                                             "are compared"
                                           : "the clocks could not be compared in time");
                else
                        snprintf(k->value, sizeof(k->value), "%s%lld.%03lld",
                                 /* Less than a millisecond has no sign of its own: "+0.000". */
                                 ahead <= -1000000 ? "-" : "+", llabs(ahead) / 1000000000,
                                 llabs(ahead) / 1000000 % 1000);
        }
}

/* Facts about the files of program 0. */
static const char *const file_facts[] = { "workdir", "program", "script", "python",
                                          "torch",   "cuda",    "nccl",   "nccl.plugin" };

int launch_check_program(const char *fact)
{
        for (size_t i = 0; i < ARRAY_SIZE(file_facts); i++) {
                size_t len = strlen(file_facts[i]);
                const char *rest = fact + len;

                if (strncmp(fact, file_facts[i], len) != 0)
                        continue;
                if (!*rest)
                        return 0;
                if (*rest == '.' && strspn(rest + 1, "0123456789") == strlen(rest + 1))
                        return atoi(rest + 1);
        }
        return -1;
}

/* Adds that the files of programs were not looked at, and why; or, for program 0 alone, that there
 * is no script. Names of further programs are added by agents only. */
static void add_unasked_files(const struct launch *l, struct checked *to)
{
        const char *why = !l->n_programs ? "no program was named" : find_other_files(l);

        for (size_t i = 0; i < ARRAY_SIZE(file_facts) && why; i++)
                checked_add(to, file_facts[i], "", why);
        if (!why && !find_script(l->programs[0].argv))
                checked_add(to, "script", "", "the program is no interpreter with a script");
}

static bool has_checked_fact(const struct checked *m, const char *name)
{
        for (uint32_t i = 0; i < m->n_facts; i++)
                if (!strcmp(m->facts[i].name, name))
                        return true;
        return false;
}

/* Adds the facts of the head to those of a node. Once for an answer: the clock is changed in
 * place. */
static void add_own_facts(const struct launch *l, const struct node *n, struct checked *to)
{
        add_count(to, "gpu.count", n->hello.n_gpus);
        add_model(to, &n->hello);
        add_count(to, "cpu.count", n->hello.cores);
        settle_clock(to, n);
        checked_add(to, "arch", n->hello.arch, "");
        if (l->o->check_run && !has_checked_fact(to, "run"))
                checked_add(to, "run", "", "the command has not ended in time");
        add_unasked_files(l, to);
}

/* --- the nodes -------------------------------------------------------------------------------- */

/* Returns the names that each node is to look up: of nodes that have answered. The time is the
 * seed: repeated checks look up other names. */
static struct check_names *choose_names(const struct launch *l)
{
        size_t *nodes = xcalloc(l->hosts.n, sizeof(*nodes)), n = 0;
        struct check_names *names;

        for (size_t i = 0; i < l->hosts.n; i++)
                if (job_node(l->run->job, i)->state == NODE_READY)
                        nodes[n++] = i;
        names = peer_names_choose(&l->hosts, nodes, n, (uint64_t)clock_ns());
        free(nodes);
        return names;
}

/* Makes one fact of the names that a node has looked up, for the nodes that have answered now. */
static void settle_names(const struct launch *l, const bool *asked, struct checked *facts)
{
        const struct hello **hellos = xcalloc(l->hosts.n, sizeof(*hellos));
        bool *answered = xcalloc(l->hosts.n, sizeof(*answered));

        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct node *n = job_node(l->run->job, i);

                answered[i] = asked[i] && facts[i].n_facts;
                if (n->state != NODE_FAILED)
                        hellos[i] = &n->hello;
        }
        peer_names_settle(facts, answered, hellos, &l->hosts);
        free(hellos);
        free(answered);
}

enum job_step launch_check_ask(struct launch *l, struct checked *facts, bool files)
{
        struct check_order o = make_order(l, files);
        struct check_names *names = choose_names(l);
        bool *asked = xcalloc(l->hosts.n, sizeof(*asked));
        enum job_step r;

        for (size_t i = 0; i < l->hosts.n; i++)
                /* job_check() asks these nodes. A node without an answer has own facts afterwards,
                 * so it is not asked again. */
                asked[i] = !facts[i].n_facts;
        r = job_check(l->run->job, &o, names, facts);
        if (r == JOB_DONE)
                settle_names(l, asked, facts);
        for (size_t i = 0; i < l->hosts.n && r == JOB_DONE; i++)
                if (asked[i] && job_node(l->run->job, i)->state != NODE_FAILED)
                        add_own_facts(l, job_node(l->run->job, i), &facts[i]);
        check_order_finish(&o);
        peer_names_free(names, l->hosts.n);
        free(asked);
        return r;
}

/* --- connections ------------------------------------------------------------------------------ */

/* Fills in the libraries, lent by @facts. Returns what is measured, as of pair_book_create(),
 * malloc'ed: NCCL, if each node has a GPU and an NCCL, as values over TCP do not compare with
 * these. Without any GPU there is no reason to tell. */
static char *choose_what_is_measured(const struct launch *l, struct checked *facts,
                                     struct pairs_nccl *to)
{
        char *why = NULL;
        size_t gpus = 0;

        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct node *n = job_node(l->run->job, i);
                const char *library;

                if (n->state != NODE_READY)
                        continue;
                library = check_fact_value(&(struct check_node){ .facts = &facts[i] },
                                           "nccl.library");
                to->libraries[i] = library ? library : "";
                gpus += n->hello.n_gpus > 0;
                if (!why && (!n->hello.n_gpus || !*to->libraries[i]))
                        why = xasprintf("TCP: %s has no %s", l->hosts.v[i].name,
                                        n->hello.n_gpus ? "NCCL" : "GPU");
        }
        if (gpus)
                return why ? why : xstrdup(PAIR_NCCL);
        free(why);
        return NULL;
}

enum job_step launch_check_peers(const struct launch *l, struct checked *facts, bool measure,
                                 const json_t *base, struct job_peers *to)
{
        struct pairs_nccl nccl = { .libraries = xcalloc(l->hosts.n, sizeof(*nccl.libraries)) };
        CLEANUP(free_textp)
        char *over = measure ? choose_what_is_measured(l, facts, &nccl) : NULL;
        struct peers_how how = { .measure = measure, .base = base, .over = over };
        enum job_step r;

        if (over && !strcmp(over, PAIR_NCCL)) {
                how.nccl = &nccl;
                strv_env_merge(&nccl.env, &l->env);
                if (l->n_programs)
                        strv_env_merge(&nccl.env, &l->programs[0].env);
        }
        r = job_peers_find(l->run->job, l->hosts.n, &how, to);
        strv_finish(&nccl.env);
        free(nccl.libraries);
        return r;
}

/* --- what is judged --------------------------------------------------------------------------- */

/* Returns a node to judge. The number of ranks is that of the plan; `hnlaunch check` has none and
 * takes --ppn, slots or GPUs, in this order, and at least one. */
static struct check_node describe_check_node(const struct launch *l, size_t i,
                                             struct checked *facts)
{
        const struct plan_options *o = &l->o->plan;
        const struct host *h = &l->hosts.v[i];
        const struct node *n = job_node(l->run->job, i);
        bool planned = l->plan.n_nodes > 0;     /* the plan has judged the GPUs */
        bool is_lost = n->state == NODE_FAILED; /* there may be no HELLO */
        int gpus = is_lost ? 0 : (int)n->hello.n_gpus, slots = h->slots_given ? h->slots : 0;
        int ranks = planned && l->plan.nodes[i].n_ranks ? l->plan.nodes[i].n_ranks
                    : o->per_node                       ? 1
                    : o->ppn > 0                        ? o->ppn
                    : slots                             ? slots
                    : l->o->local                       ? h->slots
                                                        : gpus;
        struct check_node c = { .host = h->name, .facts = facts, .ranks = (unsigned)MAX(ranks, 1) };

        if (is_lost)
                c.lost = n->failure->fact;
        if (o->gpus_per_rank && !o->oversubscribe && !l->o->local && !planned)
                c.gpus_wanted = (unsigned)MAX(slots, o->ppn > 0 ? o->ppn * o->gpus_per_rank : 0);
        return c;
}

struct check_node *launch_check_describe(const struct launch *l, struct checked *facts)
{
        struct check_node *nodes = xcalloc(l->hosts.n, sizeof(*nodes));

        for (size_t i = 0; i < l->hosts.n; i++)
                nodes[i] = describe_check_node(l, i, &facts[i]);
        return nodes;
}

/* --- the command ------------------------------------------------------------------------------ */

/* Prints the results. Returns 0, or the exit code: the file of --json cannot be written. */
static int print_results(struct launch *l, const struct check_report *r)
{
        const char *path = l->o->json_file;
        FILE *to = path ? fopen(path, "we") : stdout;
        struct error err;

        if (to && l->o->json) {
                json_t *all = check_print_json(r);

                json_write_plain(all, to);
                json_decref(all);
        } else if (to) {
                size_t width = isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO) : 0;
                CLEANUP(free_textp) char *text = check_print_table(r, &l->hosts, width);

                fputs(text, to);
        }
        if (!to || (path && fclose(to) != 0)) {
                err_set(&err, errno, "cannot write the results to %s: %s", path, strerror(errno));
                return verdict_nothing_because(l, HN_NO_LOG_FOLDER, EX_CANTCREAT, &err);
        }
        return 0;
}

/* Tells the verdict, and how to go on without nodes that are not fit. The table is flushed first:
 * messages go to another stream. Returns the exit code. */
static int tell_fitness(struct launch *l, const struct check_report *r)
{
        CLEANUP(free_textp) char *verdict = check_print_verdict(r);
        size_t *bad = xcalloc(r->n_nodes, sizeof(*bad)), n = 0;
        bool fails = check_whole_level(r) == CHECK_FAIL;

        for (size_t i = 0; i < r->n_nodes; i++)
                if (check_node_level(r, i) == CHECK_FAIL)
                        bad[n++] = i;
        if (n && n < r->n_nodes) {
                CLEANUP(free_textp) char *names = hosts_fold(&l->hosts, bad, n);

                diag_tell(&l->diags, "%zu node%s can be used: --exclude '%s'", r->n_nodes - n,
                          r->n_nodes - n == 1 ? "" : "s", names);
        }
        free(bad);
        if (fflush(stdout) == 0)
                verdict_say(l);
        if (fails) {
                verdict_write(l, EX_UNAVAILABLE, "%s", verdict);
                say("hnlaunch: %s\n", l->end.verdict);
        } else if (!l->o->quiet) {
                say("hnlaunch: %s\n", verdict);
        }
        return fails ? EX_UNAVAILABLE : 0;
}

/* Compares with @base, NULL = nothing, and writes the file of --save. Returns 0 or the exit code.
 */
static int compare_and_save(struct launch *l, struct check_report *r, const struct job_peers *p,
                            const json_t *base)
{
        struct error err;
        json_t *now;
        int rc;

        if (base)
                baseline_judge(r, base, p->book, p->tested, p->n_tested);
        if (!l->o->save)
                return 0;
        now = baseline_describe(r, p->book, p->tested, p->n_tested);
        rc = baseline_write(l->o->save, now, &err);
        json_decref(now);
        return rc < 0 ? verdict_nothing_because(l, HN_BASELINE, EX_CANTCREAT, &err) : 0;
}

static int check_nodes(struct launch *l, struct checked *facts, const struct check_profile *profile,
                       const json_t *base)
{
        struct check_node *nodes;
        struct job_peers peers = { 0 };
        struct check_report r;
        int rc;

        if (launch_check_ask(l, facts, true) == JOB_INTERRUPTED ||
            launch_check_peers(l, facts, l->o->pairs, base, &peers) == JOB_INTERRUPTED) {
                job_peers_finish(&peers);
                return launch_end_early(l, JOB_INTERRUPTED);
        }
        nodes = launch_check_describe(l, facts);
        /* Nodes that are not reached have their own messages, before the table that names them. */
        launch_report_nodes(l);
        verdict_say(l);
        check_judge_by(&r, nodes, l->hosts.n, profile, l->o->strict);
        job_peers_judge(&peers, &r, NULL);
        /* The file of --save is written also if a check fails. */
        rc = compare_and_save(l, &r, &peers, base);
        if (!rc)
                rc = print_results(l, &r);
        if (!rc)
                rc = tell_fitness(l, &r);
        check_report_finish(&r);
        job_peers_finish(&peers);
        free(nodes);
        return rc;
}

/* Owns the facts. JOB_NODES_LOST is no error for launch_connect() here. */
static int connect_and_check(struct launch *l, const struct check_profile *profile,
                             const json_t *base)
{
        struct checked *facts;
        int rc = launch_connect(l);

        if (rc)
                return rc;
        facts = xcalloc(l->hosts.n, sizeof(*facts));
        rc = check_nodes(l, facts, profile, base);
        for (size_t i = 0; i < l->hosts.n; i++)
                checked_finish(&facts[i]);
        free(facts);
        return rc;
}

int launch_check(struct launch *l)
{
        CLEANUP(check_profile_finish) struct check_profile profile;
        struct error err;
        json_t *base = NULL;
        int rc;

        check_profile_init(&profile);
        if (l->o->check_profile &&
            !check_profile_read(&profile, l->o->check_profile, check_exists, &l->diags))
                return verdict_nothing_started(l, EX_CONFIG);
        /* Agents search programs with the PATH that the ranks would have. */
        if (export_env_collect(l->o, environ, &l->env, &l->unset, &l->diags) < 0)
                return verdict_nothing_started(l, EX_NOINPUT);
        if (l->o->baseline && !(base = baseline_read(l->o->baseline, &err)))
                return verdict_nothing_because(l, HN_BASELINE,
                                               err.code == EINVAL ? EX_DATAERR : EX_NOINPUT, &err);
        launch_programs_prepare(l);
        rc = connect_and_check(l, &profile, base);
        json_decref(base);
        return rc;
}
