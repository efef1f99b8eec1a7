/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/program_link.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"
#include "head/nodes/ssh_program.h"

#define HOST_MARK "{host}"

extern char **environ;

/*
 * Variables of a job that srun takes for options: of the output, which must stay as it is, and of
 * resources. A step without resources of its own gets those that the job has on the node.
 */
static const char *const srun_options[] = {
        "SLURM_LABELIO",
        "SLURM_STDINMODE",
        "SLURM_STDOUTMODE",
        "SLURM_STDERRMODE",
        "SLURM_EXPORT_ENV",
        "SLURM_TIMELIMIT",
        "SLURM_WAIT",
        "SLURM_EXACT",
        "SLURM_EXCLUSIVE",
        "SLURM_HINT",
        "SLURM_DISTRIBUTION",
        "SLURM_CPUS_PER_TASK",
        "SLURM_TRES_PER_TASK",
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
 * srun: one step per node beside all others (--overlap). Without -u, Slurm keeps output back until
 * a line is complete; with it, the agent writes to a pseudo-terminal in raw mode.
 */
static const struct {
        const char *name, *template;
        const char *const *unset;
        const char *variable, *manager;
} ways[] = {
        { "srun",
          "srun --unbuffered --nodelist={host} --nodes=1 --ntasks=1 --overlap --mem=0 --mpi=none "
          "--cpu-bind=none --export=ALL --chdir=/ --job-name=hnlaunch --quiet",
          srun_options, "SLURM_JOB_ID", "Slurm" },
        { "sge", "qrsh -inherit {host}", NULL, "PE_HOSTFILE", "Grid Engine" },
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
        const char *text = via, *slash;

        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                if (strcmp(via, ways[i].name) != 0)
                        continue;
                text = ways[i].template;
                p->unset = ways[i].unset;
                p->variable = ways[i].variable;
                p->manager = ways[i].manager;
        }
        if (ssh_program_split(text, &p->words, err) < 0)
                return -EINVAL;
        if (!has_host_mark(&p->words))
                return err_set(err, EINVAL, "%s has no " HOST_MARK " for the name of the node",
                               via);
        slash = strrchr(p->words.v[0], '/');
        p->name = slash ? slash + 1 : p->words.v[0];
        return 0;
}

bool program_link_is_managed(const char *via)
{
        for (size_t i = 0; via && i < ARRAY_SIZE(ways); i++)
                if (!strcmp(via, ways[i].name))
                        return true;
        return false;
}

void program_link_finish(struct program_link *p)
{
        strv_finish(&p->words);
}

void program_link_arguments(const struct program_link *p, const char *host, struct strv *argv)
{
        for (size_t i = 0; i < p->words.n; i++) {
                const char *text = p->words.v[i], *mark;
                struct buf word = BUF_INIT;

                for (; (mark = strstr(text, HOST_MARK)); text = mark + strlen(HOST_MARK)) {
                        buf_append(&word, text, (size_t)(mark - text));
                        buf_append(&word, host, strlen(host));
                }
                buf_append(&word, text, strlen(text));
                strv_push_mem(argv, buf_data(&word), buf_len(&word));
                buf_finish(&word);
        }
}

void program_link_environment(const struct program_link *p, struct strv *env)
{
        for (char **e = environ; *e; e++)
                strv_push(env, *e);
        for (const char *const *name = p->unset; name && *name; name++)
                strv_env_unset(env, *name);
}
