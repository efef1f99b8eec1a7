/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_private.h"
#include "agent/branch.h"
#include "base/fd.h"

static struct branch **find(struct agent *a, uint32_t number)
{
        for (size_t i = 0; i < a->n_branches; i++)
                if (branch_number(a->branches[i]) == number)
                        return &a->branches[i];
        return NULL;
}

static void tell(struct agent *a, uint32_t number, enum tunnel_kind kind, uint32_t value,
                 const void *data, size_t len)
{
        tunnel_encode(uplink_out(&a->up), &(struct tunnel){ .branch = number,
                                                            .kind = (uint8_t)kind,
                                                            .number = value,
                                                            .data = data,
                                                            .len = len });
}

/* --- what branches do ------------------------------------------------------------------------- */

/* Others of this loop's turn may still come: they are paused by the next one's bytes. */
static void on_said(void *ctx, struct branch *b, const void *data, size_t len)
{
        struct agent *a = ctx;

        tell(a, branch_number(b), TUNNEL_BYTES, 0, data, len);
        if (uplink_full(&a->up))
                branch_pause(b, true);
}

static void on_took(void *ctx, struct branch *b, uint32_t bytes)
{
        tell(ctx, branch_number(b), TUNNEL_TOOK, bytes, NULL, 0);
}

static void on_noise(void *ctx, struct branch *b, const void *text, size_t len)
{
        tell(ctx, branch_number(b), TUNNEL_NOISE, 0, text, len);
}

static bool is_branch(void *ctx, pid_t pid)
{
        const struct agent *a = ctx;

        for (size_t i = 0; i < a->n_branches; i++)
                if (branch_pid(a->branches[i]) == pid)
                        return true;
        return false;
}

/* Who looks for children of the attempt must know ours. */
static void count_changed(struct agent *a)
{
        a->contain.is_other = a->n_branches ? is_branch : NULL;
        a->contain.other_ctx = a;
}

static void forget(struct agent *a, struct branch **at)
{
        branch_destroy(*at);
        *at = a->branches[--a->n_branches];
        count_changed(a);
}

static void on_ended(void *ctx, struct branch *b, int status)
{
        struct agent *a = ctx;

        tell(a, branch_number(b), TUNNEL_ENDED, (uint32_t)status, NULL, 0);
        forget(a, find(a, branch_number(b)));
}

static const struct branch_ops ops = {
        .said = on_said,
        .took = on_took,
        .noise = on_noise,
        .ended = on_ended,
};

/* --- orders ----------------------------------------------------------------------------------- */

/* A file with the keys of the other node, malloc'ed path; NULL without keys. */
static int write_keys(struct agent *a, const struct branch_order *o, char **ret, struct error *err)
{
        char *name, *path;
        int fd, r;

        if (!*o->known_hosts)
                return 0;
        if (agent_need_dir(a, err) < 0)
                return -err->code;
        name = xasprintf("known-%u", o->number);
        path = jobdir_path(&a->dir, name);
        free(name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : fd_write_all(fd, o->known_hosts, strlen(o->known_hosts));
        fd_close(fd);
        if (r < 0) {
                err_set(err, -r, "cannot write %s: %s", path, strerror(-r));
                free(path);
                return r;
        }
        *ret = path;
        return 0;
}

/* sshd leaves the variable out when it is told not to forward. */
static void need_agent(struct agent *a, const struct branch_order *o)
{
        static const char text[] = BRANCH_NO_AGENT "\n";

        if (o->lent_agent && !getenv("SSH_AUTH_SOCK"))
                tell(a, o->number, TUNNEL_NOISE, 0, text, strlen(text));
}

static struct branch *begin(struct agent *a, const struct branch_order *o, struct error *err)
{
        char *known_hosts = NULL;
        struct branch *b = NULL;

        if (find(a, o->number))
                err_set(err, EEXIST, "branch %u is there already", o->number);
        else if (write_keys(a, o, &known_hosts, err) == 0)
                b = branch_open(a->loop, o, known_hosts, &ops, a, err);
        free(known_hosts);
        return b;
}

void agent_on_branch(struct agent *a, const struct frame *f)
{
        struct error err = { 0 };
        struct branch_order o;
        struct branch *b;

        if (branch_order_decode(&o, f, &err) < 0)
                return;
        b = begin(a, &o, &err);
        if (b) {
                need_agent(a, &o);
                a->branches = xrealloc(a->branches, a->n_branches + 1, sizeof(struct branch *));
                a->branches[a->n_branches++] = b;
                count_changed(a);
        } else {
                tell(a, o.number, TUNNEL_FAILED, 0, err.text, strlen(err.text));
        }
        branch_order_finish(&o);
}

void agent_on_prune(struct agent *a, const struct frame *f)
{
        struct branch **at;
        struct error err;
        uint32_t number;

        if (prune_decode(&number, f, &err) < 0)
                return;
        at = find(a, number);
        if (at)
                branch_end(*at);
}

/* The head keeps frames whole: whatever it sent through before is at an end of one. */
static void give(struct agent *a, struct branch *b, const struct tunnel *m)
{
        CLEANUP(buf_finish) struct buf chunk = BUF_INIT;

        if (agent_push_chunk(a, &chunk, m->entry, m->offset, m->number) == 0)
                branch_send(b, buf_data(&chunk), buf_len(&chunk));
}

/* Bytes for a branch that has ended meanwhile are nobody's. */
void agent_on_tunnel(struct agent *a, const struct frame *f)
{
        struct branch **at;
        struct error err;
        struct tunnel m;

        if (tunnel_decode(&m, f, &err) < 0)
                return;
        at = find(a, m.branch);
        if (at && m.kind == TUNNEL_BYTES)
                branch_send(*at, m.data, m.len);
        else if (at && m.kind == TUNNEL_UPLOAD)
                branch_upload(*at);
        else if (at && m.kind == TUNNEL_GIVE)
                give(a, *at, &m);
}

/* --- their processes -------------------------------------------------------------------------- */

void agent_branch_reaped(struct agent *a, pid_t pid, int status)
{
        for (size_t i = 0; i < a->n_branches; i++)
                if (branch_pid(a->branches[i]) == pid)
                        branch_reaped(a->branches[i], status);
}

void agent_branches_resume(struct agent *a)
{
        for (size_t i = 0; i < a->n_branches; i++)
                branch_pause(a->branches[i], false);
}

void agent_branches_end(struct agent *a)
{
        for (size_t i = 0; i < a->n_branches; i++)
                branch_end(a->branches[i]);
}

void agent_branches_close(struct agent *a)
{
        while (a->n_branches)
                forget(a, a->branches);
        free(a->branches);
        a->branches = NULL;
}
