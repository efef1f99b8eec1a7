/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for the nodes: --venv, --stage and --push
 *
 * Each has a manifest of its own (head/push/), made before a node is connected, and is brought by a
 * job_push() of its own: the environment first, pushed files last. Variables lead the ranks to the
 * files: those of this machine use them in place, an agent with copies replaces the values.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/hosts/hosts.h"
#include "head/job/job_push.h"
#include "head/launch/launch_private.h"
#include "head/push/hash_memory.h"
#include "head/push/venv.h"
#include "head/report/report.h"
#include "wire/env_names.h"

static void report_hashed(void *ctx, uint64_t bytes)
{
        struct launch *l = ctx;

        events_emit(&l->events, (struct event){ .kind = EVENT_PUSH_HASHING,
                                                .node = -1,
                                                .rank = -1,
                                                .value = (int64_t)bytes });
}

/* Warns of files here among the arguments, but not pushed: ranks start among the pushed files. */
static void warn_not_pushed(struct launch *l, const struct job_program *p)
{
        const struct manifest *m = &l->manifests[PUSH_RANKS];

        for (size_t i = 0; i < p->argv->n && !p->cwd && !l->o->chdir && launch_any_remote(l); i++) {
                const char *arg = p->argv->v[i];
                bool is_path = *arg && *arg != '-' && *arg != '/' && (i || strchr(arg, '/'));

                /* The first word is a path with a slash only; without one it is searched in
                 * PATH. */
                if (!is_path || access(arg, F_OK) < 0 || manifest_place(m, l->here, arg))
                        continue;
                diag_help(
                        diag_warn(&l->diags, HN_NOT_PUSHED, "`%s` is here, but is not pushed", arg),
                        "ranks start among the pushed files: add --push %s", arg);
        }
}

/* Returns whether a staged path lies outside of the current folder, where its place relative to the
 * variable differs from that on the nodes. */
static bool leads_out(const struct launch *l)
{
        const struct manifest *m = &l->manifests[PUSH_STAGE];

        for (uint32_t i = 0; i < m->manifest.n; i++)
                if (m->sources[i].path)
                        return true;
        return false;
}

/* Sets the limit of the copies that stay, and the variables. */
static void prepare_stage(struct launch *l)
{
        for (int i = 0; i < PUSH_USES; i++)
                l->manifests[i].label.limit = i == PUSH_RANKS ? 0 : (uint64_t)l->o->staged.keep;
        if (l->o->staged.paths.n) {
                l->manifests[PUSH_STAGE].here_too = leads_out(l);
                strv_env_set(&l->env, HN_STAGE_DIR, l->here);
        }
        if (l->o->staged.venv)
                strv_env_set(&l->env, HN_VENV, l->manifests[PUSH_VENV].label.name);
        if (l->o->push.n)
                strv_env_set(&l->env, HN_PUSH_DIR, l->here);
}

int launch_pack_files(struct launch *l)
{
        struct manifest_watch watch = { report_hashed, l, NULL };
        int r = 0;

        if (!options_bring_files(l->o))
                return 0;
        watch.memory = hash_memory_open();
        l->manifests[PUSH_STAGE].label.use = PUSH_STAGE;
        l->manifests[PUSH_STAGE].by_command = l->o->command == COMMAND_STAGE;
        if (l->o->staged.venv)
                r = venv_pack(&l->manifests[PUSH_VENV], l->o->staged.venv, &l->o->staged.paths,
                              l->here, &watch, &l->diags);
        if (l->o->staged.paths.n)
                r |= manifest_pack(&l->manifests[PUSH_STAGE], &l->o->staged.paths, l->here, &watch,
                                   &l->diags);
        if (l->o->push.n)
                r |= manifest_pack(&l->manifests[PUSH_RANKS], &l->o->push, l->here, &watch,
                                   &l->diags);
        hash_memory_close(watch.memory);
        if (r < 0)
                return verdict_nothing_started(l, EX_NOINPUT);
        prepare_stage(l);
        for (size_t i = 0; i < l->n_programs && l->o->push.n; i++)
                warn_not_pushed(l, &l->programs[i]);
        return 0;
}

/* Refuses an environment for nodes of another architecture: its libraries are of this one. 0 or the
 * exit code. */
static bool fits_machines(struct launch *l)
{
        CLEANUP(host_group_finish) struct host_group others = { 0 };
        CLEANUP(free_textp) char *names = NULL;
        struct utsname here;
        struct diag *d;

        if (uname(&here) < 0)
                return true;
        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct node *n = job_node(l->run->job, i);

                if (!n->host->local && n->state == NODE_READY &&
                    strcmp(n->hello.arch, here.machine) != 0)
                        host_group_add(&others, i);
        }
        if (!others.n)
                return true;
        names = hosts_fold(&l->hosts, others.hosts, others.n);
        d = diag_add(&l->diags, HN_VENV_OTHER_MACHINE, EX_UNAVAILABLE,
                     "--venv: the environment is for %s, and %s %s", here.machine, names,
                     others.n == 1 ? "is another machine" : "are other machines");
        diag_row(d, "%s is %s", l->hosts.v[others.hosts[0]].name,
                 job_node(l->run->job, others.hosts[0])->hello.arch);
        diag_help(d, "leave them out (--exclude), or start hnlaunch on a machine of their kind");
        return false;
}

enum job_step launch_bring_files(struct launch *l, const struct plan *plan, struct error *err)
{
        const struct {
                enum push_use use;
                bool wanted;
        } all[] = { { PUSH_VENV, l->o->staged.venv },
                    { PUSH_STAGE, l->o->staged.paths.n },
                    { PUSH_RANKS, l->o->push.n } };
        enum job_step r = JOB_DONE;

        if (l->o->staged.venv && !fits_machines(l)) {
                err_set(err, EX_UNAVAILABLE, "the environment does not fit the machine");
                return JOB_IMPOSSIBLE;
        }
        for (size_t i = 0; i < ARRAY_SIZE(all) && r == JOB_DONE; i++)
                if (all[i].wanted)
                        r = job_push(l->run->job, plan, &l->manifests[all[i].use], err);
        return r;
}

int launch_refuse_files(struct launch *l, enum job_step step, const struct error *err)
{
        static const char *const options[PUSH_USES] = { "--push: ", "--stage: ", "--venv: " };
        int use;

        if (step != JOB_IMPOSSIBLE)
                return launch_end_early(l, step);
        if (diags_errors(&l->diags))
                return verdict_nothing_started(l, EX_UNAVAILABLE);
        if (err->number != HN_PUSH_CHANGED)
                return verdict_nothing_because(l, HN_PUSH_UNREADABLE, EX_NOINPUT, err);
        use = job_push_use(l->run->job);
        diag_help(diag_add(&l->diags, HN_PUSH_CHANGED, EX_NOINPUT, "%s%s",
                           l->manifests[use].by_command ? "" : options[use], err->text),
                  "start again when no process writes to these files");
        return verdict_nothing_started(l, EX_NOINPUT);
}

int launch_place_files(struct launch *l)
{
        struct error err = { 0 };
        enum job_step step = launch_bring_files(l, NULL, &err);

        if (step == JOB_NODES_UNFIT) {
                report_push(&l->diags, l->run->job, &l->hosts, l->manifests[PUSH_STAGE].by_command);
                return verdict_nothing_started(l, EX_UNAVAILABLE);
        }
        return step == JOB_DONE ? 0 : launch_refuse_files(l, step, &err);
}
