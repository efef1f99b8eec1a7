/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each kind of container adds the words in the order that its program wants: the
 * program and its command, the options of hnlaunch, the arguments of the user, the image or the
 * container, and the agent with --inside. Arguments of the user stand last among the options, where
 * they win over those before.
 */
#include "agent/container/container_words.h"

#include <string.h>

static void push_words(struct strv *argv, const char *const *words)
{
        for (; *words; words++)
                strv_push(argv, *words);
}

/* Whether the user's arguments have this option, alone or with a value. */
static bool has_option(const struct strv *args, const char *option)
{
        size_t n = strlen(option);

        for (size_t i = 0; i < args->n; i++)
                if (!strncmp(args->v[i], option, n) && strchr("=", args->v[i][n]))
                        return true;
        return false;
}

static void add_env_options(const struct container_site *s, struct strv *argv)
{
        for (size_t i = 0; i < s->variables->n; i++) {
                strv_push(argv, "--env");
                strv_push(argv, s->variables->v[i]);
        }
}

/* Docker and Podman have the same options, but for GPUs. */
static void add_engine_devices(const struct container_order *o, const struct container_site *s,
                               struct strv *argv)
{
        if (s->nvidia && o->kind == CONTAINER_DOCKER)
                push_words(argv, (const char *const[]){ "--gpus", "all", NULL });
        if (s->nvidia && o->kind == CONTAINER_PODMAN)
                push_words(argv, (const char *const[]){ "--device", "nvidia.com/gpu=all", NULL });
        if (s->amd)
                push_words(argv, (const char *const[]){ "--device", "/dev/kfd", "--device",
                                                        "/dev/dri", NULL });
        if (s->infiniband)
                push_words(argv, (const char *const[]){ "--device", "/dev/infiniband", NULL });
        if (s->infiniband && s->is_root)
                push_words(argv, (const char *const[]){ "--cap-add", "IPC_LOCK", "--ulimit",
                                                        "memlock=-1:-1", NULL });
}

/* Without an option the user is that of the image, most often root. Groups are passed by number:
 * the image does not know their names. */
static void add_engine_user(const struct container_site *s, struct strv *argv)
{
        strv_push(argv, "--user");
        strv_pushf(argv, "%u:%u", s->uid, s->gid);
        for (size_t i = 0; i < s->n_groups; i++) {
                strv_push(argv, "--group-add");
                strv_pushf(argv, "%u", s->groups[i]);
        }
}

/* Docker and Podman: without a log, which would keep every message of the agent on the disk, and
 * without the limit of processes that Podman sets. The labels of SELinux would forbid the mounted
 * folders. Without the capability, their filter of system calls refuses process_vm_readv(), with
 * which ranks of MPI copy from each other. */
static void add_engine_run(const struct container_order *o, const struct container_site *s,
                           struct strv *argv)
{
        push_words(argv, (const char *const[]){ s->program, "run", "--rm", "--interactive",
                                                "--log-driver", "none", "--pull", "never", "--name",
                                                s->name, "--network", "host", "--pids-limit", "-1",
                                                "--security-opt", "label=disable", "--cap-add",
                                                "SYS_PTRACE", NULL });
        if (!has_option(&o->args, "--shm-size") && !has_option(&o->args, "--ipc"))
                push_words(argv, (const char *const[]){ "--ipc", "host", NULL });
        if (s->is_user)
                add_engine_user(s, argv);
        add_engine_devices(o, s, argv);
        strv_push(argv, "--mount");
        strv_pushf(argv, "type=bind,source=%s,target=%s,readonly", s->agent, CONTAINER_AGENT);
        if (s->bind_dir) {
                strv_push(argv, "--mount");
                strv_pushf(argv, "type=bind,source=%s,target=%s", o->dir, o->dir);
        }
        add_env_options(s, argv);
        push_words(argv, (const char *const[]){ "--entrypoint", CONTAINER_AGENT, NULL });
        strv_copy(argv, &o->args);
        push_words(argv, (const char *const[]){ o->name, "--inside", NULL });
}

static void add_exec(const struct container_order *o, const struct container_site *s,
                     struct strv *argv)
{
        push_words(argv, (const char *const[]){ s->program, "exec", "--interactive", NULL });
        add_env_options(s, argv);
        strv_copy(argv, &o->args);
        push_words(argv, (const char *const[]){ o->name, s->agent, "--inside", "--remove", NULL });
}

/* Apptainer keeps the user, the network and the environment of the node. */
static void add_apptainer(const struct container_order *o, const struct container_site *s,
                          struct strv *argv)
{
        push_words(argv, (const char *const[]){ s->program, "exec", NULL });
        if (s->nvidia)
                strv_push(argv, "--nv");
        if (s->amd)
                strv_push(argv, "--rocm");
        push_words(argv, (const char *const[]){ "--bind", s->agent, NULL });
        if (s->bind_dir)
                push_words(argv, (const char *const[]){ "--bind", o->dir, NULL });
        strv_copy(argv, &o->args);
        push_words(argv, (const char *const[]){ o->name, s->agent, "--inside", NULL });
}

/* An image of Charliecloud is read-only, so only existing folders can be mounted over. The agent
 * needs no path inside: a descriptor is enough. */
static void add_charliecloud(const struct container_order *o, const struct container_site *s,
                             struct strv *argv)
{
        strv_push(argv, s->program);
        if (s->image_env)
                strv_push(argv, "--set-env");
        if (s->bind_home)
                strv_push(argv, "--home");
        if (s->bind_dir)
                strv_pushf(argv, "--bind=%s", o->dir);
        strv_copy(argv, &o->args);
        push_words(argv, (const char *const[]){ o->name, "--", NULL });
        strv_pushf(argv, "/proc/self/fd/%d", CONTAINER_AGENT_FD);
        strv_push(argv, "--inside");
}

void container_words(const struct container_order *o, const struct container_site *s,
                     struct strv *argv)
{
        switch (o->kind) {
        case CONTAINER_DOCKER:
        case CONTAINER_PODMAN:
                add_engine_run(o, s, argv);
                break;
        case CONTAINER_EXEC:
                add_exec(o, s, argv);
                break;
        case CONTAINER_APPTAINER:
                add_apptainer(o, s, argv);
                break;
        default:
                add_charliecloud(o, s, argv);
        }
}
