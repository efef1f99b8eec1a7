/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With --dial-in hnlaunch is started on every node. dial_in_load() finds the rank of this node.
 * Node 0 launches as usual; any other node only runs an agent that calls node 0 (dial_node_run()),
 * and ends as the job does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/dial_in/dial_in.h"
#include "head/launch/launch_private.h"
#include "head/options/config.h"
#include "head/options/option_table.h"
#include "head/output/say.h"

/* Runs a node that is not node 0. Returns the exit code. */
static int run_other_node(struct launch *l)
{
        struct dial_in *d = l->config->dial_in;
        const struct diag *error;
        struct error err;
        int code;

        l->o->json = false; /* node 0 has the events */
        l->run->color = say_has_color(l->o);
        l->agent = l->o->agent ? xstrdup(l->o->agent) : agent_binary_path(&err);
        if (!l->agent)
                return verdict_nothing_because(l, HN_AGENT_UNUSABLE, EX_UNAVAILABLE, &err);
        verdict_say(l);
        code = launch_setup_find_cwd(l);
        if (code)
                return code;
        /* The agent is started here, so the container is of this node's options. */
        launch_setup_container(l);
        code = dial_node_run(d, l->agent, l->config->container, &l->diags);
        error = diags_first_error(&l->diags);
        if (error)
                verdict_write(l, code, "failed: %.700s", error->fact);
        else
                /* Node 0 has sent the last line, with the exit code. */
                snprintf(l->end.verdict, sizeof(l->end.verdict), "%.800s", d->end.text);
        verdict_say(l);
        if (*l->end.verdict && (!l->o->quiet || code))
                say("hnlaunch: %s\n", l->end.verdict);
        return code;
}

bool other_node_dial_in(struct launch *l, int *ret_code)
{
        struct dial_in *d = xcalloc(1, sizeof(*d));
        bool over = true;

        l->config->dial_in = d;
        l->run->color = say_has_color(l->o);
        if (dial_in_load(d, l->o, &l->diags) < 0)
                *ret_code = verdict_nothing_started(l, EX_USAGE);
        else if (d->place.rank > 0)
                *ret_code = run_other_node(l);
        else
                over = false;
        /* Every node has an environment of its own, set by the platform: the environment of node 0
         * must not replace it. */
        if (!over && !l->o->export_mode &&
            settings_level(l->o->settings, option_by_name("export")) <= LEVEL_PRESET)
                l->o->export_mode = xstrdup("NONE");
        return over;
}
