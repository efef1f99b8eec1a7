/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hnlaunch hold` connects as a launch does, and then keeps the nodes (head/job/job_hold.h). A run
 * asks for a hold before it connects to anything. Without holds that costs one access(): the folder
 * of their sockets is there only while a hold is. The hold of the same hosts and settings has a
 * name made from both; another one is only looked at to say with -v why it does not fit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/hold/hold_match.h"
#include "head/hold/hold_socket.h"
#include "head/hold/transport_hold.h"
#include "head/job/job_hold.h"
#include "head/job/job_push.h"
#include "head/launch/launch_private.h"
#include "head/options/export_env.h"
#include "head/output/progress.h"

extern char **environ;

/* --- the hold --------------------------------------------------------------------------------- */

static void on_hold_ready(void *ctx)
{
        struct launch *l = ctx;

        progress_rest(l->run->progress);
        verdict_say(l);
        detach_hold(l);
}

static bool any_other_machine(const struct hosts *hosts)
{
        for (size_t i = 0; i < hosts->n; i++)
                if (!hosts->v[i].local)
                        return true;
        return false;
}

/* Reads --warm, with the environment of @l. The order borrows texts of @l, and @word. */
static void read_warm(struct launch *l, struct warm_order *to, char *word)
{
        char *modules = strchr(word, ':'), *rest = NULL;

        *modules++ = '\0';
        *to = (struct warm_order){ .word = word,
                                   .bind = l->o->bind ? l->o->bind : (char *)"auto",
                                   .cwd = l->cwd,
                                   .env = l->env,
                                   .unset = l->unset };
        for (char *name = strtok_r(modules, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
                strv_push(&to->modules, name);
}

/* Connects, with the environment that a run of the same shell would have, and brings the one of
 * --venv. Returns 0, or the exit code. */
static int prepare_hold(struct launch *l, const char **venvs)
{
        int rc = 0;

        if (export_env_collect(l->o, environ, &l->env, &l->unset, &l->diags) < 0)
                return verdict_nothing_started(l, EX_NOINPUT);
        rc = launch_pack_files(l);
        if (!rc)
                rc = launch_connect(l);
        if (!rc && options_bring_files(l->o))
                rc = launch_place_files(l);
        for (size_t i = 0; !rc && i < l->hosts.n; i++) {
                const struct pushed *p = job_pushed_as(l->run->job, PUSH_VENV, i);

                venvs[i] = p ? p->folder : NULL;
        }
        return rc;
}

int launch_hold(struct launch *l)
{
        CLEANUP(free_textp) char *word = l->o->hold.warm ? xstrdup(l->o->hold.warm) : NULL;
        struct warm_order warm = { .modules = STRV_INIT };
        struct job_hold how = { .id = l->config->run_id,
                                .idle_ms = l->o->hold.idle_ms,
                                .start_ns = l->events.start_ns,
                                .ready = on_hold_ready,
                                .ctx = l };
        struct error err;
        enum job_step step;
        int rc;

        if (!any_other_machine(&l->hosts)) {
                diag_help(diag_add(&l->diags, HN_HOLD_NO_NODE, EX_USAGE,
                                   "all hosts are this machine, where a hold has no use"),
                          "a run starts its agents here at once, without a login");
                return verdict_nothing_started(l, EX_USAGE);
        }
        how.venvs = xcalloc(l->hosts.n, sizeof(*how.venvs));
        rc = prepare_hold(l, how.venvs);
        if (rc) {
                free(how.venvs);
                return rc;
        }
        if (word)
                read_warm(l, &warm, word);
        how.warm = word ? &warm : NULL;
        how.settings = hold_match_settings(l->o, l->agent, l->config->container);
        step = job_hold_serve(l->run->job, &how, &err);
        json_decref(how.settings);
        strv_finish(&warm.modules);
        free(how.venvs);
        if (step == JOB_IMPOSSIBLE && err.number) {
                const char *help = err_cut_help(&err);

                diag_help(diag_add(&l->diags, err.number, EX_UNAVAILABLE, "%s", err.text), "%s",
                          help ? help : "hnlaunch ps lists your holds");
                return verdict_nothing_started(l, EX_UNAVAILABLE);
        }
        if (step == JOB_IMPOSSIBLE) {
                diag_help(diag_add(&l->diags, HN_HOLD_SOCKET, EX_CANTCREAT, "%s", err.text),
                          "set XDG_RUNTIME_DIR to a folder of your own, or unset it");
                return verdict_nothing_started(l, EX_CANTCREAT);
        }
        if (step == JOB_NODES_UNFIT) {
                diag_help(diag_add(&l->diags, HN_AGENT_CANNOT_RUN, EX_UNAVAILABLE,
                                   "no node keeps an agent for the next run"),
                          word ? "try without --warm: an import may take the memory of the node"
                               : "each run starts its own agents: start without a hold");
                return verdict_nothing_started(l, EX_UNAVAILABLE);
        }
        return step == JOB_DONE ? 0 : launch_end_early(l, step);
}

/* --- a run on a hold -------------------------------------------------------------------------- */

/* Loads what a run needs that connects to nodes itself. */
static int prepare_cold(void *ctx, struct error *err)
{
        struct launch *l = ctx;

        return agent_binaries_load(&l->agent_binaries, l->agent, !l->o->agent, err);
}

/* Lists the hosts that a hold would have to have. */
static json_t *list_other_hosts(const struct hosts *hosts)
{
        json_t *list = json_array();

        for (size_t i = 0; i < hosts->n; i++) {
                CLEANUP(free_textp) char *name = hold_match_host(&hosts->v[i]);

                if (!hosts->v[i].local)
                        json_array_append_new(list, json_text(name));
        }
        return list;
}

/* With -v: says of each hold why the run does not use it. */
static void tell_other_holds(const json_t *settings)
{
        CLEANUP(strv_finish) struct strv paths = STRV_INIT;
        json_t **answers;

        hold_socket_list(&paths);
        answers = hold_socket_describe(&paths);
        for (size_t i = 0; i < paths.n; i++) {
                json_t *info = answers[i];
                CLEANUP(free_textp)
                char *names =
                        info ? hold_match_difference(settings, json_object_get(info, "settings"))
                             : NULL;

                if (info)
                        log_line(LOG_INFO, "hold %s is not used: it has other %s%s",
                                 json_member(info, "hold"), *names ? "settings: " : "hosts", names);
                json_decref(info);
        }
        free(answers);
}

/* Returns the socket of the hold that --hold names, malloc'ed; NULL: no hold, or, with @why, one
 * that does not answer may be meant. */
static char *find_hold(const char *id, struct hold_refusal *why)
{
        CLEANUP(strv_finish) struct strv paths = STRV_INIT;
        char *found = NULL;
        json_t **answers;

        hold_socket_list(&paths);
        answers = hold_socket_describe(&paths);
        for (size_t i = 0; i < paths.n; i++) {
                json_t *info = answers[i];
                struct error err;

                if (!info && hold_socket_tell_silent(paths.v[i], &err) < 0) {
                        err_cut_help(&err);
                        why->why = HOLD_SILENT;
                        snprintf(why->text, sizeof(why->text), "%s", err.text);
                }
                if (info && !strcmp(json_member(info, "hold"), id)) {
                        free(found);
                        found = xstrdup(paths.v[i]);
                }
                json_decref(info);
        }
        free(answers);
        return found;
}

/* Ends the launch: a hold that --hold names cannot be used, or one that fits is in use. */
static int refuse_hold(struct launch *l, const struct hold_refusal *why)
{
        const char *id = *why->hold ? why->hold : l->o->hold.which;

        switch (why->why) {
        case HOLD_USED:
                diag_help(
                        diag_add(&l->diags, HN_HOLD_USED, EX_UNAVAILABLE,
                                 "run %s uses %s on hold %s", why->text, why->host, id),
                        "hnlaunch wait %s, or start beside it with agents of its own: --hold none",
                        why->text);
                break;
        case HOLD_DIFFERS:
                diag_help(diag_add(&l->diags, HN_HOLD_DIFFERS, EX_UNAVAILABLE,
                                   "hold %s has other settings: %s", id, why->text),
                          "give both the same options, or leave --hold out");
                break;
        case HOLD_MISSING:
                diag_help(diag_add(&l->diags, HN_HOLD_DIFFERS, EX_UNAVAILABLE,
                                   "hold %s does not have %s", id, why->text),
                          "hnlaunch ps lists the hosts of holds");
                break;
        case HOLD_SILENT:
                diag_help(diag_add(&l->diags, HN_HOLD_SILENT, EX_UNAVAILABLE,
                                   "hold %s does not serve this run: %s", id, why->text),
                          "--hold none starts without it");
                break;
        case HOLD_NONE:
                diag_help(
                        diag_add(&l->diags, HN_NO_HOLD, EX_UNAVAILABLE, "there is no hold %s", id),
                        "hnlaunch ps lists your holds; --hold auto takes one of the same hosts");
                break;
        }
        return verdict_nothing_started(l, EX_UNAVAILABLE);
}

/* Asks the hold that fits, or the one that is named. Returns 0, or the exit code. */
static int ask_hold(struct launch *l, bool named)
{
        json_t *settings = hold_match_settings(l->o, l->agent, l->config->container);
        json_t *hosts = list_other_hosts(&l->hosts);
        CLEANUP(free_textp) char *key = hold_match_key(settings, hosts);
        const struct hold_prepare prepare = { prepare_cold, l };
        const struct hold_run run = { l->config->run_id, l->o->argv.n ? l->o->argv.v[0] : NULL };
        struct hold_refusal why = { .why = HOLD_NONE };
        struct error err;
        CLEANUP(free_textp)
        char *path = named ? find_hold(l->o->hold.which, &why) : hold_socket_path(key, false, &err);
        struct held *held =
                path ? hold_take(path, &run, settings, &l->hosts, &prepare, &why) : NULL;

        if (held) {
                l->config->remote = held_maker(held);
                progress_on_hold(l->run->progress);
                log_line(LOG_INFO, "the agents of hold %s are used", held_id(held));
        } else if (!named && l->o->verbose && why.why == HOLD_NONE) {
                tell_other_holds(settings);
        } else if (!named && why.why == HOLD_SILENT) {
                log_line(LOG_INFO, "the hold of these hosts is not used: %s", why.text);
        }
        json_decref(settings);
        json_decref(hosts);
        return !held && (named || why.why == HOLD_USED) ? refuse_hold(l, &why) : 0;
}

int launch_hold_take(struct launch *l)
{
        CLEANUP(free_textp) char *folder = NULL;
        const char *which = l->o->hold.which;
        bool named = which && strcmp(which, "auto") != 0;
        struct error err;

        if (l->o->command != COMMAND_RUN || (named && !strcmp(which, "none")))
                return 0;
        /* A tree of agents, and nodes that dial in, are reached in other ways. */
        if (l->o->dial_in || l->o->tree || !any_other_machine(&l->hosts))
                return 0;
        folder = hold_socket_folder();
        if (!named && access(folder, F_OK) < 0)
                return 0;
        l->agent = l->o->agent ? xstrdup(l->o->agent) : agent_binary_path(&err);
        return l->agent ? ask_hold(l, named) : 0;
}
