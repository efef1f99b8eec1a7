/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name such as srun is replaced by a template of the table; all further steps work on the words
 * of the template. Where one start serves all nodes, the agents call the head and the template has
 * no {host}. Slurm needs more than a template. The options with which a step shares the job's
 * resources depend on the release. Variables of the job would be read by srun as options, and are
 * unset.
 */
#include "head/nodes/program_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"
#include "head/core/ray_module.h"
#include "head/core/shell_words.h"

#define HOST_MARK    "{host}"
#define SHARING_MARK "{sharing}"
#define COPY_MARK    "{copy}"

extern char **environ;

/*
 * Variables of a job that srun takes for options: of the output, which must stay as it is, and of
 * resources. A step without resources of its own gets the job's resources on the node.
 */
static const char *const srun_options[] = {
        "SLURM_LABELIO",
        "SLURM_STDINMODE",
        "SLURM_STDOUTMODE",
        "SLURM_STDERRMODE",
        "SLURM_EXPORT_ENV",
        "SLURM_BCAST*",
        "SLURM_COMPRESS",
        "SLURM_SEND_LIBS",
        "SLURM_IMMEDIATE",
        "SLURM_TIMELIMIT",
        "SLURM_WAIT",
        "SLURM_EXACT",
        "SLURM_EXCLUSIVE",
        "SLURM_HINT",
        "SLURM_DISTRIBUTION",
        "SLURM_CPUS_PER_TASK",
        "SLURM_TRES_PER_TASK",
        "SLURM_TRES_BIND",
        "SLURM_GPU_BIND",
        "SLURM_GPUS",
        "SLURM_GPUS_PER_*",
        "SLURM_NTASKS_PER_*",
        "SLURM_MEM_PER_*",
        "SLURM_THREADS_PER_CORE",
        NULL,
};

/*
 * sge: a task of the job on each node, which the parallel environment must allow (control_slaves).
 *
 * srun: one step for all nodes, beside all other steps (add_srun_sharing()). Slurm copies the agent
 * to the nodes, lets the step live when a node or a task is lost, and does not end the step after
 * the first task.
 *
 * ray: a task of Ray on each node (packaging/python/hnlaunch/_ray.py).
 */
static const struct {
        const char *name, *template;
        const char *const *unset;
        const char *variable, *manager;
        bool calls;
} ways[] = {
        { "srun",
          "srun --nodelist={hosts} --nodes={count} --ntasks={count} "
          "--ntasks-per-node=1 " SHARING_MARK
          " --mpi=none --cpu-bind=none --export=ALL --chdir=/ --job-name=hnlaunch --quiet "
          "--no-kill --kill-on-bad-exit=0 --wait=0 --bcast={copy}",
          srun_options, "SLURM_JOB_ID", "Slurm", true },
        { "sge", "qrsh -inherit {host}", NULL, "PE_HOSTFILE", "Grid Engine", false },
        { "ray", "python3 -c '" RAY_MODULE_CODE "' start --nodes {hosts} --", NULL, NULL, "Ray",
          true },
};

bool program_link_is_ssh(const char *via)
{
        return !via || !strcmp(via, "auto") || !strcmp(via, "ssh");
}

const char *program_link_of_manager(const char *manager)
{
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
                if (!strcmp(manager, ways[i].manager))
                        return ways[i].name;
        return NULL;
}

static bool has_host_mark(const struct strv *words)
{
        for (size_t i = 0; i < words->n; i++)
                if (strstr(words->v[i], HOST_MARK))
                        return true;
        return false;
}

int program_link_parse(const char *via, struct program_link *p, struct error *err)
{
        const char *text = via, *slash, *name = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                if (strcmp(via, ways[i].name) != 0)
                        continue;
                text = ways[i].template;
                p->unset = ways[i].unset;
                p->variable = ways[i].variable;
                p->manager = ways[i].manager;
                name = ways[i].calls ? via : NULL;
        }
        if (shell_words_split(text, &p->words, err) < 0)
                return -EINVAL;
        if (text == via && !has_host_mark(&p->words))
                return err_set(err, EINVAL, "%s has no " HOST_MARK " for the name of the node",
                               via);
        /* For messages: the name of a way for all nodes, else the program without a folder. */
        slash = strrchr(p->words.v[0], '/');
        p->name = name ? name : slash ? slash + 1 : p->words.v[0];
        return 0;
}

bool program_link_is_managed(const char *via)
{
        for (size_t i = 0; via && i < ARRAY_SIZE(ways); i++)
                if (!strcmp(via, ways[i].name))
                        return true;
        return false;
}

bool program_link_calls(const char *via)
{
        for (size_t i = 0; via && i < ARRAY_SIZE(ways); i++)
                if (!strcmp(via, ways[i].name))
                        return ways[i].calls;
        return false;
}

void program_link_finish(struct program_link *p)
{
        strv_finish(&p->words);
}

/* Appends the value of the place-holder at the front of @text. Returns the length of the
 * place-holder, 0: none there. */
static size_t fill_mark(const char *text, const struct program_marks *marks, struct buf *to)
{
        const struct {
                const char *name, *value;
        } known[] = { { HOST_MARK, marks->host },
                      { "{hosts}", marks->hosts },
                      { COPY_MARK, marks->copy } };
        static const char count[] = "{count}";

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (known[i].value && !strncmp(text, known[i].name, strlen(known[i].name))) {
                        buf_appends(to, known[i].value);
                        return strlen(known[i].name);
                }
        if (!marks->hosts || strncmp(text, count, sizeof(count) - 1) != 0)
                return 0;
        buf_printf(to, "%zu", marks->count);
        return sizeof(count) - 1;
}

/* Reads the number in a variable such as "2" or "a100:2"; 0 = not set. */
static unsigned long env_count(const char *name)
{
        const char *value = getenv(name), *colon = value ? strrchr(value, ':') : NULL;

        return value ? strtoul(colon ? colon + 1 : value, NULL, 10) : 0;
}

/*
 * Adds the options with which the step of the agents has all CPUs, memory and GPUs of the job on
 * the job's nodes, and takes none from other steps. From 23.11 on Slurm has the step of an external
 * launcher for this purpose, and announces the option to launchers by these variables. Before 23.11
 * the step overlaps. In a job with GPUs by task an overlapping step would get the GPUs of one task
 * on each node; therefore the step requests the GPUs of as many tasks as each node has, "2(x4)".
 * Nodes with unlike numbers of tasks would refuse any number.
 */
static void add_srun_sharing(struct strv *argv)
{
        static const char launcher[] = "--external-launcher";
        const char *prte = getenv("PRTE_MCA_plm_slurm_args"),
                   *tasks = getenv("SLURM_TASKS_PER_NODE");
        const char *ompi = getenv("OMPI_MCA_plm_slurm_args");
        unsigned long gpus = env_count("SLURM_GPUS_PER_TASK") * env_count("SLURM_TASKS_PER_NODE");

        if ((prte && strstr(prte, launcher)) || (ompi && strstr(ompi, launcher))) {
                strv_push(argv, launcher);
                return;
        }
        strv_push(argv, "--overlap");
        strv_push(argv, "--mem=0");
        /* @tasks is set, or @gpus would be 0. */
        if (gpus && !strchr(tasks, ','))
                strv_pushf(argv, "--gpus-per-node=%lu", gpus);
}

void program_link_arguments(const struct program_link *p, const struct program_marks *marks,
                            struct strv *argv)
{
        for (size_t i = 0; i < p->words.n; i++) {
                struct buf word = BUF_INIT;
                size_t n;

                if (p->variable && !strcmp(p->words.v[i], SHARING_MARK)) {
                        add_srun_sharing(argv);
                        continue;
                }
                if (p->variable && !marks->copy && strstr(p->words.v[i], COPY_MARK))
                        continue;
                for (const char *c = p->words.v[i]; *c; c += n) {
                        n = fill_mark(c, marks, &word);
                        if (n == 0) {
                                buf_append(&word, c, 1);
                                n = 1;
                        }
                }
                strv_push_mem(argv, buf_data(&word), buf_len(&word));
                buf_finish(&word);
        }
}

bool program_link_copies(const struct program_link *p)
{
        for (size_t i = 0; i < p->words.n; i++)
                if (p->variable && strstr(p->words.v[i], COPY_MARK))
                        return true;
        return false;
}

/* Slurm: "*** STEP 1.0 ON node001 CANCELLED AT 2026-11-23T17:38:41 DUE TO TIME LIMIT ***". */
bool program_link_classify(const struct program_link *p, struct link_failure *why)
{
        static const char due[] = " DUE TO ";
        const char *said = strstr(why->evidence, " CANCELLED AT "), *reason, *end;
        const char *job = p->variable ? getenv(p->variable) : NULL;
        size_t len = 0, n;

        if (!p->manager || strcmp(p->manager, "Slurm") != 0 || !said)
                return false;
        end = said + strcspn(said, "\n");
        reason = strstr(said, due);
        if (reason && reason < end) {
                reason += sizeof(due) - 1;
                len = strcspn(reason, "*\n");
                len -= len > 0 && reason[len - 1] == ' ';
        }
        n = (size_t)snprintf(why->fact, sizeof(why->fact), "Slurm cancelled its step%s%.*s",
                             len ? " due to " : "", (int)MIN(len, 60), len ? reason : "");
        for (char *c = why->fact + n - MIN(len, 60); len && *c; c++)
                if (*c >= 'A' && *c <= 'Z')
                        *c = (char)(*c - 'A' + 'a');
        snprintf(why->help, sizeof(why->help),
                 "scancel does this, the end of srun, and a limit of the job; `scontrol show job "
                 "%s` may tell which",
                 job ? job : "ID");
        return true;
}

void program_link_environment(const struct program_link *p, struct strv *env)
{
        for (char **e = environ; *e; e++)
                strv_push(env, *e);
        for (const char *const *name = p->unset; name && *name; name++)
                strv_env_unset(env, *name);
}
