/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent without an endpoint is the reason for everything else, so the addresses are examined
 * only when all endpoints are open. The message is about the address reached by most nodes: the
 * other nodes are grouped by the results of all their probes, each group gets a row for every
 * failing address, and a note gives the times of the nodes that succeeded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/hosts/hosts.h"
#include "head/job/job_endpoint.h"
#include "head/report/report.h"

enum {

        ROWS = 4, /* addresses shown for a group of nodes */
};

/* --- closed endpoints ---------------------------------------------------------------------------
 */

/* Adds a message for the nodes whose agent could not open a port: their answer has port 0 and a
 * reason. Returns whether there are any; a node without an answer is not meant here. */
static bool report_closed_endpoints(struct diags *d, const struct job_endpoint *endpoint,
                                    const struct hosts *hosts)
{
        size_t *failed = xcalloc(hosts->n, sizeof(*failed)), n = 0;
        struct diag *di;
        char *names;

        for (size_t i = 0; i < hosts->n; i++)
                if (endpoint->nodes[i].endpoint_opened && !endpoint->nodes[i].endpoint_opened->port)
                        failed[n++] = i;
        if (n) {
                names = hosts_fold(hosts, failed, n);
                di = diag_add(d, HN_NO_STORE_PORT, EX_UNAVAILABLE,
                              "%s cannot open a port for the store", names);
                for (size_t i = 0; i < MIN(n, (size_t)ROWS); i++)
                        diag_row(di, "%-16s %s", hosts->v[failed[i]].name,
                                 endpoint->nodes[failed[i]].endpoint_opened->text);
                diag_help(di, "--store-listen none leaves PyTorch's store to rank 0's own process");
                free(names);
        }
        free(failed);
        return n > 0;
}

/* Adds the message on ports that one node could not reserve. */
static void report_refused_ports(struct diags *d, const char *why, size_t node,
                                 const struct hosts *hosts)
{
        struct diag *di = diag_add(d, HN_NO_FREE_PORT, EX_UNAVAILABLE,
                                   "cannot reserve the ports for the ranks on %s: %s",
                                   hosts->v[node].name, why);

        diag_note(di, "HN_PORT_NAME, {port:NAME} and MASTER_PORT are free TCP ports of rank 0's "
                      "node, in a job of roles of each node");
        diag_help(di, "see `ss -tan` there, and sysctl net.ipv4.ip_local_port_range");
}

/* --- unreached addresses ---------------------------------------------------------------------- */

/* EPERM and EACCES are what connect() returns where a rule of the local firewall rejects a packet.
 * A reset comes from the endpoint's own check of peers, EPROTO from an answer that is no
 * greeting. */
const char *report_probe_error(uint32_t error)
{
        switch (error) {
        case ETIMEDOUT:
                return "timed out";
        case ECONNREFUSED:
                return "refused";
        case ECONNRESET:
                return "rejected: the endpoint does not expect the address of this node";
        case ENETUNREACH:
        case EHOSTUNREACH:
                return "no route";
        case EPROTO:
                return "another program answers there";
        case EPERM:
        case EACCES:
                return "forbidden by a firewall on this node";
        default:
                return strerror((int)error);
        }
}

/* Fits host_groups_add(). The times of probes differ always and are not compared. */
static bool is_same_probe_failure(const void *ctx, size_t x, size_t y)
{
        const struct job_endpoint *endpoint = ctx;
        const struct probed *a = &endpoint->nodes[x].probed, *b = &endpoint->nodes[y].probed;

        for (uint32_t i = 0; i < a->n && i < b->n; i++)
                if (a->results[i].error != b->results[i].error ||
                    strcmp(a->results[i].iface, b->results[i].iface) != 0)
                        return false;
        return a->n == b->n;
}

/* A node that has not answered counts neither as failed nor as reached. */
static bool failed_at(const struct job_endpoint_node *n, int candidate)
{
        return n->has_probed && n->probed.results[candidate].error != 0;
}

/* Writes "10.0.0.1:41000", or with brackets "[fd00::1]:41000". */
static const char *format_endpoint(char to[80], const struct job_endpoint *endpoint,
                                   size_t candidate)
{
        const char *addr = endpoint->candidates.v[candidate].addr;

        snprintf(to, 80, strchr(addr, ':') ? "[%s]:%u" : "%s:%u", addr, endpoint->port);
        return to;
}

/* Adds a row per failing address, the names of the nodes only in front of the first. */
static void add_probe_rows(struct diag *d, const struct job_endpoint *endpoint,
                           const struct hosts *hosts, const struct host_group *g)
{
        const struct probed *first = &endpoint->nodes[g->hosts[0]].probed;
        char *names = hosts_fold(hosts, g->hosts, g->n), at[80];
        size_t rows = 0;

        for (size_t c = 0; c < first->n && rows < ROWS; c++) {
                const struct probe_result *r = &first->results[c];

                if (!r->error)
                        continue;
                diag_row(d, "%-16s cannot open %s: %s%s%s%s", rows ? "" : names,
                         format_endpoint(at, endpoint, c), report_probe_error(r->error),
                         *r->iface ? " (over " : "", r->iface, *r->iface ? ")" : "");
                rows++;
        }
        free(names);
}

/* Notes how fast the other nodes reach the address. */
static void note_reached(struct diag *d, const struct job_endpoint *endpoint,
                         const struct hosts *hosts, size_t candidate)
{
        uint32_t least = UINT32_MAX, most = 0;
        size_t n = 0;
        char at[80];

        for (size_t i = 0; i < hosts->n; i++) {
                if (!endpoint->nodes[i].has_probed ||
                    failed_at(&endpoint->nodes[i], (int)candidate))
                        continue;
                least = MIN(least, endpoint->nodes[i].probed.results[candidate].us);
                most = MAX(most, endpoint->nodes[i].probed.results[candidate].us);
                n++;
        }
        if (n)
                diag_note(d, "%zu other node%s reached %s in %.1f-%.1f ms", n, n == 1 ? "" : "s",
                          format_endpoint(at, endpoint, candidate), least / 1e3, most / 1e3);
}

/* Notes which option left no other address, and offers another network of both nodes. Without such
 * an option all addresses of rank 0's node were tried, and a firewall is the probable reason. */
static void note_choice(struct diag *d, const struct job *j, const struct options *o,
                        const struct host *first, size_t node)
{
        const struct job_endpoint *endpoint = job_endpoint(j);
        const struct master_addr *tried = &endpoint->candidates.v[0];
        char other[64];

        if (!endpoint->candidates.given) {
                diag_help(d, "check for a firewall between the nodes; any address of %s would do",
                          first->name);
                return;
        }
        /* A key of the hostfile goes before --iface. */
        if (first->addr || first->iface)
                diag_note(d, "%s=%s in %s:%d leaves no other address",
                          first->addr ? "addr" : "iface", first->addr ? first->addr : first->iface,
                          first->file, first->line);
        else
                diag_note(d, "--iface %s leaves no other address", o->iface);
        master_addr_other_network(other, sizeof(other), &job_node(j, node)->hello,
                                  &job_node(j, endpoint->first)->hello, tried);
        if (*other)
                diag_help(d,
                          "a firewall, or the wrong interface; %s and %s are both in %s, too: "
                          "try %s%s",
                          job_node(j, node)->host->name, first->name, other,
                          first->addr || first->iface ? "iface=" : "--iface ", other);
        else
                diag_help(d, "a firewall, or the wrong interface");
}

/* Adds the message on the address that most nodes can reach; only nodes that fail there get
 * rows. */
static void report_unreached_store(struct diags *d, const struct job *j, const struct hosts *hosts,
                                   const struct options *o)
{
        const struct job_endpoint *endpoint = job_endpoint(j);
        const struct host *first = &hosts->v[endpoint->first];
        const struct probed **v = xcalloc(hosts->n, sizeof(*v));
        CLEANUP(host_groups_finish) struct host_groups groups = { 0 };
        CLEANUP(free_textp) char *where = NULL;
        size_t n = 0, count = 0;
        struct diag *di;
        int best;

        for (size_t i = 0; i < hosts->n; i++)
                if (endpoint->nodes[i].has_probed)
                        v[n++] = &endpoint->nodes[i].probed;
        best = master_addr_nearest(v, n, endpoint->candidates.n);
        free(v);
        for (size_t i = 0; i < hosts->n; i++) {
                if (!failed_at(&endpoint->nodes[i], best))
                        continue;
                host_groups_add(&groups, i, is_same_probe_failure, endpoint);
                count++;
        }
        if (count == 1)
                di = diag_add(d, HN_STORE_UNREACHED, EX_UNAVAILABLE,
                              "%s cannot reach the store on %s",
                              hosts->v[groups.v[0].hosts[0]].name, first->name);
        else
                di = diag_add(d, HN_STORE_UNREACHED, EX_UNAVAILABLE,
                              "%zu of %zu nodes cannot reach the store on %s", count, n,
                              first->name);
        where = hosts_locate(hosts, &endpoint->first, 1);
        diag_place(di, "%s", where);
        for (size_t g = 0; g < groups.n; g++)
                add_probe_rows(di, endpoint, hosts, &groups.v[g]);
        note_reached(di, endpoint, hosts, (size_t)best);
        if (groups.n)
                note_choice(di, j, o, first, groups.v[0].hosts[0]);
}

void report_endpoint(struct diags *d, const struct job *j, const struct hosts *hosts,
                     const struct options *o)
{
        size_t node;
        const char *why = job_port_refusal(j, &node);

        if (why)
                report_refused_ports(d, why, node, hosts);
        else if (!report_closed_endpoints(d, job_endpoint(j), hosts))
                report_unreached_store(d, j, hosts, o);
}
