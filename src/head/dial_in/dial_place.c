/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place of a node started with --dial-in, by the options or by the platform, and the state of the
 * dial-in that node 0 keeps for the launch.
 */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/dial_in/dial_in.h"
#include "head/options/config.h"
#include "head/options/option_table.h"

/* Reads "HOST:PORT" or "[ADDRESS]:PORT". 0, or -EINVAL with @err. */
static int read_dial_place(struct dial_place *p, const char *text, struct error *err)
{
        const char *colon = strrchr(text, ':');
        size_t len = colon ? (size_t)(colon - text) : 0;
        char *end = NULL;
        long port = colon ? strtol(colon + 1, &end, 10) : 0;

        /* 2 more for brackets. */
        if (!len || len >= sizeof(p->host) + 2 || !colon[1] || *end || port < 1 || port > 65535)
                return err_set(err, EINVAL, "needs HOST:PORT of node 0, got `%.300s`", text);
        if (*text == '[' && text[len - 1] == ']') {
                text++;
                len -= 2;
        } else if (memchr(text, ':', len)) {
                return err_set(err, EINVAL, "needs brackets around an IPv6 address: [%.*s]:%ld",
                               (int)MIN(len, (size_t)64), text, port);
        }
        if (!len || len >= sizeof(p->host))
                return err_set(err, EINVAL, "needs HOST:PORT of node 0");
        snprintf(p->host, sizeof(p->host), "%.*s", (int)len, text);
        p->port = (int)port;
        return 0;
}

/* Takes the place from the variables of the platform. */
static int load_auto_place(struct dial_place *p, struct diags *d)
{
        struct error err = { 0 };
        int r = dial_env_read(p, dial_env_get, NULL, &err);

        if (r == -ENOENT)
                diag_help(diag_add(d, HN_NO_PLATFORM, EX_USAGE,
                                   "--dial-in auto finds no platform in the variables of this "
                                   "process"),
                          "it knows Kubeflow Trainer (PET_NNODES), Slurm steps, LeaderWorkerSet, "
                          "SageMaker, Azure ML, and MASTER_ADDR with RANK and WORLD_SIZE that "
                          "count nodes; else: --dial-in HOST:PORT --nodes N --node-rank R");
        else if (r < 0)
                diag_help(diag_add(d, HN_NO_PLATFORM, EX_USAGE, "--dial-in auto, %s: %s", p->source,
                                   err.text),
                          "or say it: --dial-in HOST:PORT --nodes N --node-rank R");
        return r < 0 ? -EINVAL : 0;
}

/* Takes the place from --dial-in HOST:PORT, --node-rank and --nodes. */
static int load_place(struct dial_place *p, const struct options *o, struct diags *d)
{
        struct error err;

        if (!strcmp(o->dial_in, "auto"))
                return load_auto_place(p, d);
        p->source = "--dial-in";
        if (read_dial_place(p, o->dial_in, &err) < 0) {
                diag_add(d, HN_DIAL_PLACE, EX_USAGE, "--dial-in %s", err.text);
                return -EINVAL;
        }
        p->nodes = o->nodes;
        p->rank = o->node_rank;
        /* 0 is a rank and the default, so only the level tells whether a rank was given. */
        if (!p->nodes || settings_level(o->settings, option_by_name("node-rank")) < 0)
                diag_help(diag_add(d, HN_DIAL_PLACE, EX_USAGE,
                                   "--dial-in %s needs --nodes N and --node-rank R", o->dial_in),
                          "the same command on every node, with its own number R from 0 to N-1");
        else if (p->rank >= p->nodes)
                diag_help(diag_add(d, HN_DIAL_PLACE, EX_USAGE, "--node-rank %d with --nodes %d",
                                   p->rank, p->nodes),
                          "node ranks are 0 to %d", p->nodes - 1);
        else
                return 0;
        return -EINVAL;
}

int dial_in_load(struct dial_in *in, const struct options *o, struct diags *d)
{
        *in = (struct dial_in){ .quiet = o->quiet,
                                .timeout_ms = o->dial_timeout_ms,
                                .grace_ms = o->grace_ms };
        if (load_place(&in->place, o, d) < 0)
                return -EINVAL;
        return dial_secret_find(&in->secret, &in->place, o, d);
}

void dial_in_destroy(struct dial_in *in)
{
        if (!in)
                return;
        dial_secret_remove();
        sodium_memzero(&in->secret, sizeof(in->secret));
        free(in);
}

void dial_in_add_hosts(struct dial_in *in, struct hosts *hosts)
{
        in->hosts = hosts;
        for (int i = 0; i < in->place.nodes; i++) {
                struct host *h = hosts_add(hosts);

                h->name = xcalloc(1, DIAL_NAME_MAX + 16); /* a node tells the name later */
                h->file = xstrdup(in->place.source);
                h->line = i + 1;
                h->local = i == 0;
                if (i || gethostname(h->name, DIAL_NAME_MAX - 1) < 0)
                        snprintf(h->name, DIAL_NAME_MAX, "node%d", i);
        }
}

void dial_in_report(const struct dial_in *in, struct diags *d)
{
        const struct dial_rejects *r = &in->rejects;
        size_t n = r->foreign + r->silent + r->replayed;
        struct diag *di;

        if (!n)
                return;
        di = diag_warn(d, HN_FOREIGN_CONNECTIONS,
                       "%zu connection%s to port %d %s not from a node of the job", n,
                       n == 1 ? "" : "s", in->place.port, n == 1 ? "was" : "were");
        if (r->foreign)
                diag_row(di, "%zu with another secret or protocol", r->foreign);
        if (r->silent)
                diag_row(di, "%zu without a greeting", r->silent);
        if (r->replayed)
                diag_row(di, "%zu with a repeated greeting", r->replayed);
        diag_note(di, "the newest came from %s", r->last);
}
