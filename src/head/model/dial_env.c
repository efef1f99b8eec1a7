/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each platform has a reader, which returns -ENOENT unless its first variable is there. The first
 * reader with a known platform decides: no later reader is asked when the variables of the platform
 * are wrong, because the user would not learn of the mistake.
 */
#include "head/model/dial_env.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "head/hosts/hosts.h"

/* A source of variables: this process, or a table of a test. */
struct dial_vars {
        const char *(*get)(void *ctx, const char *name);
        void *ctx;
};

/* Returns a variable; an empty one counts as not set. */
static const char *get_text(const struct dial_vars *v, const char *name)
{
        const char *text = v->get(v->ctx, name);

        return text && *text ? text : NULL;
}

/* Reads a number from 0 to @max from the first of two variables that is set; @other may be NULL. 0,
 * or -EINVAL with @err; *@ret is set on success only. */
static int read_count(const struct dial_vars *v, const char *name, const char *other, long max,
                      int *ret, struct error *err)
{
        const char *text = get_text(v, name);
        char *end;
        long n;

        if (!text && other) {
                name = other;
                text = get_text(v, name);
        }
        if (!text)
                return err_set(err, EINVAL, "%s is not set", name);
        n = strtol(text, &end, 10);
        if (*end || end == text || n < 0 || n > max)
                return err_set(err, EINVAL, "%s=%.100s is no number from 0 to %ld", name, text,
                               max);
        *ret = (int)n;
        return 0;
}

/* Takes @len bytes of @text as the host; @name: the variable, for the message. An empty or overlong
 * name is refused. */
static int set_host(struct dial_place *p, const char *name, const char *text, size_t len,
                    struct error *err)
{
        if (!len || len >= sizeof(p->host))
                return err_set(err, EINVAL, "%s=%.100s is no host", name, text);
        snprintf(p->host, sizeof(p->host), "%.*s", (int)len, text);
        return 0;
}

/* Takes the host from a variable. */
static int read_host(const struct dial_vars *v, struct dial_place *p, const char *name,
                     struct error *err)
{
        const char *text = get_text(v, name);

        return text ? set_host(p, name, text, strlen(text), err)
                    : err_set(err, EINVAL, "%s is not set", name);
}

/* Takes the port from a variable, else DIAL_PORT. */
static int read_port(const struct dial_vars *v, struct dial_place *p, const char *name,
                     struct error *err)
{
        p->port = DIAL_PORT;
        if (!get_text(v, name))
                return 0;
        return read_count(v, name, NULL, 65535, &p->port, err);
}

/* --- platforms -------------------------------------------------------------------------------- */

/* PET_* are the options of torchrun, which Kubeflow Trainer sets on each pod. PET_NNODES may be a
 * range for elastic jobs, which is refused as no number. */
static int read_trainer(const struct dial_vars *v, struct dial_place *p, struct error *err)
{
        if (!get_text(v, "PET_NNODES"))
                return -ENOENT;
        p->source = "Kubeflow Trainer";
        if (read_count(v, "PET_NNODES", NULL, HOSTS_MAX, &p->nodes, err) < 0 ||
            read_count(v, "PET_NODE_RANK", "JOB_COMPLETION_INDEX", HOSTS_MAX, &p->rank, err) < 0 ||
            read_host(v, p, "PET_MASTER_ADDR", err) < 0)
                return -EINVAL;
        return read_port(v, p, "PET_MASTER_PORT", err);
}

/* Writes the first host of "a[1-2]b[3-4],c": every bracket stands for its first number. */
static int read_first_host(struct dial_place *p, const char *name, const char *list,
                           struct error *err)
{
        char host[sizeof(p->host)];
        size_t len = 0;

        for (const char *c = list; *c && *c != ','; c++) {
                const char *close = *c == '[' ? strchr(c, ']') : NULL;
                /* Digits behind the bracket with their zeros, or one character of the name. */
                size_t n = close ? strspn(c + 1, "0123456789") : 1;

                if ((*c == '[' && (!close || !n)) || len + n >= sizeof(host))
                        return err_set(err, EINVAL, "%s=%.100s is no list of hosts", name, list);
                memcpy(host + len, close ? c + 1 : c, n);
                len += n;
                c = close ? close : c;
        }
        host[len] = '\0';
        return set_host(p, name, host, len, err);
}

/* The port comes from job and step, so that two steps on a node have two: sixteen steps of a job
 * differ, and jobs whose numbers are less than DIAL_SLURM_PORTS / 16 apart. */
static int read_slurm_step(const struct dial_vars *v, struct dial_place *p, struct error *err)
{
        const char *list = get_text(v, "SLURM_STEP_NODELIST");
        int job = 0, step = 0, on_node = 0, nodes = 0;

        /* A batch script has the other variables, too, and runs once. */
        if (!get_text(v, "SLURM_STEP_NUM_TASKS") || !get_text(v, "SLURM_PROCID"))
                return -ENOENT;
        p->source = "Slurm";
        if (read_count(v, "SLURM_PROCID", NULL, INT32_MAX, &p->rank, err) < 0 ||
            read_count(v, "SLURM_STEP_NUM_TASKS", NULL, HOSTS_MAX, &p->nodes, err) < 0 ||
            read_count(v, "SLURM_STEP_NUM_NODES", NULL, HOSTS_MAX, &nodes, err) < 0 ||
            read_count(v, "SLURM_JOB_ID", NULL, INT32_MAX, &job, err) < 0)
                return -EINVAL;
        if (read_count(v, "SLURM_STEP_ID", NULL, INT32_MAX, &step, NULL) < 0)
                step = 0;
        /* Several tasks on a node would dial in as several nodes of one host. */
        if (read_count(v, "SLURM_LOCALID", NULL, HOSTS_MAX, &on_node, NULL) == 0 &&
            (on_node > 0 || p->nodes > nodes))
                return err_set(err, EINVAL,
                               "the step has %d tasks on %d nodes, needs one on each: srun "
                               "--ntasks-per-node=1",
                               p->nodes, nodes);
        if (!list)
                return err_set(err, EINVAL, "SLURM_STEP_NODELIST is not set");
        p->port = DIAL_SLURM_PORT + (int)(((long)job * 16 + step) % DIAL_SLURM_PORTS);
        return read_first_host(p, "SLURM_STEP_NODELIST", list, err);
}

/* LeaderWorkerSet of Kubernetes: worker 0 is the leader, whose address all pods of the group
 * have. */
static int read_worker_set(const struct dial_vars *v, struct dial_place *p, struct error *err)
{
        if (!get_text(v, "LWS_LEADER_ADDRESS"))
                return -ENOENT;
        p->source = "LeaderWorkerSet";
        p->port = DIAL_PORT;
        if (read_count(v, "LWS_GROUP_SIZE", NULL, HOSTS_MAX, &p->nodes, err) < 0 ||
            read_count(v, "LWS_WORKER_INDEX", NULL, HOSTS_MAX, &p->rank, err) < 0)
                return -EINVAL;
        return read_host(v, p, "LWS_LEADER_ADDRESS", err);
}

/* SM_HOSTS is an array of JSON, the same on all nodes; node ranks follow its order. */
static int read_sagemaker(const struct dial_vars *v, struct dial_place *p, struct error *err)
{
        const char *list = get_text(v, "SM_HOSTS"), *self = get_text(v, "SM_CURRENT_HOST"), *name;
        json_t *hosts, *one;
        size_t i;
        int r;

        if (!list)
                return -ENOENT;
        p->source = "SageMaker";
        p->port = DIAL_PORT;
        /* Stays so unless this host is found in the list. */
        p->rank = -1;
        hosts = json_loads(list, 0, NULL);
        p->nodes = (int)MIN(json_array_size(hosts), (size_t)HOSTS_MAX);
        json_array_foreach(hosts, i, one) if (self && json_string_value(one) &&
                                              !strcmp(json_string_value(one), self)) p->rank =
                (int)i;
        name = json_string_value(json_array_get(hosts, 0));
        r = !name         ? err_set(err, EINVAL, "SM_HOSTS=%.100s is no list of hosts", list)
            : p->rank < 0 ? err_set(err, EINVAL, "SM_CURRENT_HOST=%.100s is not in SM_HOSTS",
                                    self ? self : "")
                          : set_host(p, "SM_HOSTS", name, strlen(name), err);
        json_decref(hosts);
        return r;
}

/* AZ_BATCH_MASTER_NODE is "10.0.0.4:6000", with a port that other services use. */
static int read_azure(const struct dial_vars *v, struct dial_place *p, struct error *err)
{
        const char *several = get_text(v, "AZ_BATCH_MASTER_NODE");
        const char *text = several ? several : get_text(v, "AZ_BATCHAI_MPI_MASTER_NODE");

        if (!text)
                return -ENOENT;
        p->source = "Azure ML";
        p->port = DIAL_PORT;
        if (read_count(v, "AZUREML_NODE_COUNT", "OMPI_COMM_WORLD_SIZE", HOSTS_MAX, &p->nodes, err) <
                    0 ||
            read_count(v, "NODE_RANK", "OMPI_COMM_WORLD_RANK", HOSTS_MAX, &p->rank, err) < 0)
                return -EINVAL;
        return set_host(p, several ? "AZ_BATCH_MASTER_NODE" : "AZ_BATCHAI_MPI_MASTER_NODE", text,
                        strcspn(text, ":"), err);
}

/* The variables of a rank in their node-level meaning. With LOCAL_RANK this process would be a rank
 * among several of the node. */
static int read_master(const struct dial_vars *v, struct dial_place *p, struct error *err)
{
        if (!get_text(v, "MASTER_ADDR") || !get_text(v, "RANK") || !get_text(v, "WORLD_SIZE"))
                return -ENOENT;
        p->source = "MASTER_ADDR";
        if (get_text(v, "LOCAL_RANK"))
                return err_set(err, EINVAL,
                               "LOCAL_RANK is set, so RANK and WORLD_SIZE count ranks, not nodes");
        if (read_count(v, "WORLD_SIZE", NULL, HOSTS_MAX, &p->nodes, err) < 0 ||
            read_count(v, "RANK", NULL, HOSTS_MAX, &p->rank, err) < 0 ||
            read_host(v, p, "MASTER_ADDR", err) < 0)
                return -EINVAL;
        return read_port(v, p, "MASTER_PORT", err);
}

const char *dial_env_get(void *ctx UNUSED, const char *name)
{
        return getenv(name);
}

int dial_env_read(struct dial_place *p, const char *(*get)(void *ctx, const char *name), void *ctx,
                  struct error *err)
{
        static int (*const readers[])(const struct dial_vars *, struct dial_place *,
                                      struct error *) = {
                read_trainer,   read_slurm_step, read_worker_set,
                read_sagemaker, read_azure,      read_master,
        };
        const struct dial_vars v = { get, ctx };
        int r = -ENOENT;

        for (size_t i = 0; i < ARRAY_SIZE(readers) && r == -ENOENT; i++) {
                *p = (struct dial_place){ .source = "" };
                r = readers[i](&v, p, err);
        }
        if (r == 0 && (p->nodes < 1 || p->rank >= p->nodes))
                r = err_set(err, EINVAL, "node %d of %d nodes cannot be", p->rank, p->nodes);
        if (r == 0 && !p->port)
                r = err_set(err, EINVAL, "port 0 cannot be used");
        return r;
}

/* A variable that would make the name too long is cut: three of 30 characters fit DIAL_JOB_MAX. */
int dial_env_job(const char *(*get)(void *ctx, const char *name), void *ctx, char to[DIAL_JOB_MAX])
{
        static const struct {
                /* @mark tells that the manager is there. SGE's JOB_ID alone would be too common a
                 * name, so SGE_ROOT marks it. The first of @variables must be set, the others may
                 * be empty. */
                const char *name, *mark, *variables[3];
        } managers[] = {
                { "slurm",
                  "SLURM_JOB_ID",
                  { "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_CLUSTER_NAME" } },
                { "pbs", "PBS_JOBID", { "PBS_JOBID" } },
                { "lsf", "LSB_JOBID", { "LSB_JOBID", "LSB_JOBINDEX" } },
                { "flux", "FLUX_JOB_ID", { "FLUX_JOB_ID" } },
                { "sge", "SGE_ROOT", { "JOB_ID", "SGE_TASK_ID" } },
        };
        const struct dial_vars v = { get, ctx };

        for (size_t i = 0; i < ARRAY_SIZE(managers); i++) {
                const char *const *name = managers[i].variables;
                int len = snprintf(to, DIAL_JOB_MAX, "%s-", managers[i].name);

                if (!get_text(&v, managers[i].mark) || !get_text(&v, *name))
                        continue;
                for (; name < managers[i].variables + 3 && *name; name++) {
                        const char *text = get_text(&v, *name);

                        len += snprintf(to + len, DIAL_JOB_MAX - (size_t)len, "%.30s.",
                                        text ? text : "");
                }
                to[len - 1] = '\0'; /* the last dot */
                for (char *c = to; *c; c++)
                        if (!isalnum((unsigned char)*c) && *c != '.')
                                /* Array jobs have brackets in their numbers, as "77[3].server" of
                                 * PBS. */
                                *c = '-';
                return 0;
        }
        return -ENOENT;
}
