/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hnlaunch hosts --probe` connects to the hosts as a launch does, and writes a hostfile of what
 * the agents tell: slots are the GPUs, else the cores. The address and the interface are those that
 * a launch would choose if the host had rank 0 (head/model/master_addr.h): of --iface, else on the
 * way of the login. A host that is this machine gets no address, which would make its login one by
 * ssh. Hosts that cannot be reached are told, and have no line.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/launch/launch_private.h"
#include "head/model/master_addr.h"

enum { PEERS_COMPARED = 64 }; /* hosts whose networks are compared with those of a host */

/* What the line of a host says. */
struct probed_host {
        const struct host *host;
        const struct hello *hello;
        int slots, gpus;
        char addr[64], iface[16]; /* "" = none */
};

/* Collects the HELLO of host @i, and behind it those of others. Returns how many. */
static size_t collect_hellos(const struct launch *l, size_t i, const struct hello **to)
{
        size_t n = 0;

        to[n++] = &job_node(l->run->job, i)->hello;
        for (size_t k = 0; k < l->hosts.n && n < PEERS_COMPARED; k++)
                if (k != i && job_node(l->run->job, k)->state != NODE_FAILED)
                        to[n++] = &job_node(l->run->job, k)->hello;
        return n;
}

/* 0, or -1 with @err: the host has no address of --iface. */
static int choose_network(const struct launch *l, size_t i, struct probed_host *p,
                          struct error *err)
{
        const struct hello *hellos[PEERS_COMPARED];
        size_t n = collect_hellos(l, i, hellos);
        struct master_addr_list list;

        if (master_addr_candidates(&list, p->host, hellos, n, l->o->iface, err) < 0)
                return -1;
        /* Loopback is no address for other nodes: the line has none. */
        if (!list.n || !strcmp(list.v[0].iface, "lo"))
                return 0;
        if (!p->host->local)
                snprintf(p->addr, sizeof(p->addr), "%s", list.v[0].addr);
        snprintf(p->iface, sizeof(p->iface), "%s", list.v[0].iface);
        return 0;
}

static void write_line(const struct probed_host *p)
{
        const struct host *h = p->host;
        char memory[32];
        bool is_ipv6 = strchr(h->name, ':');

        printf("%s%s%s slots=%d", is_ipv6 ? "[" : "", h->name, is_ipv6 ? "]" : "", p->slots);
        if (h->user)
                printf(" user=%s", h->user);
        if (h->port)
                printf(" port=%d", h->port);
        if (*p->addr)
                printf(" addr=%s", p->addr);
        if (*p->iface)
                printf(" iface=%s", p->iface);
        if (h->spare)
                fputs(" spare", stdout);
        format_size(memory, sizeof(memory), p->hello->memory);
        printf("  # %d GPU%s, %u core%s, %s\n", p->gpus, p->gpus == 1 ? "" : "s", p->hello->cores,
               p->hello->cores == 1 ? "" : "s", memory);
}

static json_t *describe_host(const struct probed_host *p)
{
        return json_pack("{s:o, s:i, s:o, s:o, s:i, s:I, s:I}", "host", json_text(p->host->name),
                         "slots", p->slots, "addr", json_text(*p->addr ? p->addr : NULL), "iface",
                         json_text(*p->iface ? p->iface : NULL), "gpus", p->gpus, "cores",
                         (json_int_t)p->hello->cores, "memory", (json_int_t)p->hello->memory);
}

static void print_probe_json(json_t *hosts)
{
        json_t *all = json_pack("{s:i, s:O}", "v", 1, "hosts", hosts);

        json_write_plain(all, stdout);
        json_decref(all);
}

/* Tells of hosts without an address on the network that was asked for. */
static void tell_without_address(struct launch *l, const struct host_group *g,
                                 const struct error *first)
{
        CLEANUP(free_textp) char *names = hosts_fold(&l->hosts, g->hosts, g->n);
        struct diag *d;

        if (!g->n)
                return;
        d = diag_add(&l->diags, HN_NO_MASTER_ADDRESS, EX_UNAVAILABLE,
                     "%zu host%s no address on the network of the ranks", g->n,
                     g->n == 1 ? " has" : "s have");
        diag_place(d, "%s", names);
        diag_note(d, "%s", first->text);
        diag_help(d, "choose another interface or network: --iface NAME|CIDR");
}

int launch_probe_hosts(struct launch *l)
{
        CLEANUP(host_group_finish) struct host_group without = { 0 };
        struct error first = { 0 }, err;
        int rc = launch_connect(l);
        json_t *all;

        if (rc)
                return rc;
        all = json_array();
        for (size_t i = 0; i < l->hosts.n; i++) {
                struct probed_host p = { .host = &l->hosts.v[i],
                                         .hello = &job_node(l->run->job, i)->hello };

                if (job_node(l->run->job, i)->state == NODE_FAILED)
                        continue;
                p.gpus = l->inventory[i].gpus;
                p.slots = MIN(p.gpus ? p.gpus : MAX((int)p.hello->cores, 1), SLOTS_MAX);
                if (choose_network(l, i, &p, without.n ? &err : &first) < 0)
                        host_group_add(&without, i);
                else if (l->o->json)
                        json_array_append_new(all, describe_host(&p));
                else
                        write_line(&p);
        }
        if (l->o->json)
                print_probe_json(all);
        json_decref(all);
        tell_without_address(l, &without, &first);
        rc = diags_errors(&l->diags) ? diags_first_error(&l->diags)->exit : 0;
        verdict_say(l);
        return rc;
}
