/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name of this machine alone is no proof: the ssh config may lead the name to another machine,
 * port or user. A host with such a config is reached by ssh, as configured.
 *
 * Hosts of known machines are sorted by machine, and each group of more than one host is an error.
 */
#include "head/nodes/same_machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/hosts/own_machine.h"
#include "head/nodes/ssh_loader.h"

void same_machine_mark_own(struct hosts *hosts, const struct ssh_options *login)
{
        CLEANUP(own_machine_finish) struct own_machine m;

        own_machine_read(&m);
        for (size_t i = 0; i < hosts->n; i++) {
                struct host *h = &hosts->v[i];
                CLEANUP(free_textp) char *name = NULL; /* HostName */

                if (!h->local && !h->user && !h->port && !h->addr && own_machine_is(&m, h->name) &&
                    !ssh_loader_leads_elsewhere(login, h->name, &name))
                        /* HostName counts instead of the name, if the config has one. */
                        h->local = !name || own_machine_is(&m, name);
        }
}

struct machine_host {
        const char *machine;
        const struct host *host;
};

/* Sorts hosts of the same machine together, in the order of the hosts. */
static int compare_machines(const void *a, const void *b)
{
        const struct machine_host *x = a, *y = b;
        int r = strcmp(x->machine, y->machine);

        return r ? r : (x->host > y->host) - (x->host < y->host);
}

/* Adds an error about @n hosts of a machine. False: all are names of the loopback interface. */
static bool report_same_machine(const struct hosts *hosts, const struct machine_host *v, size_t n,
                                struct diags *d)
{
        const char *first = v[0].host->name, *second = v[1].host->name;
        size_t loopback = 0;
        struct diag *di;

        while (loopback < n && (!strcmp(v[loopback].host->name, "localhost") ||
                                !strncmp(v[loopback].host->name, "127.", 4) ||
                                !strcmp(v[loopback].host->name, "::1")))
                loopback++;
        if (loopback == n)
                return false;
        di = n == 2 ? diag_add(d, HN_SAME_MACHINE, EX_DATAERR, "%s and %s are the same machine",
                               first, second)
                    : diag_add(d, HN_SAME_MACHINE, EX_DATAERR,
                               "%s, %s and %zu more are the same machine", first, second, n - 2);
        for (size_t i = 0; i < n; i++) {
                size_t at = (size_t)(v[i].host - hosts->v);
                CLEANUP(free_textp) char *where = hosts_places(hosts, &at, 1);

                diag_row(di, "%-16s %s", v[i].host->name, where);
        }
        diag_help(di, "keep one of them, or --oversubscribe");
        return true;
}

size_t same_machine_find(const struct hosts *hosts, const char *const *machines, struct diags *d)
{
        struct machine_host *v = xcalloc(hosts->n, sizeof(*v));
        size_t n = 0, found = 0;

        for (size_t i = 0; i < hosts->n; i++)
                if (*machines[i])
                        v[n++] = (struct machine_host){ machines[i], &hosts->v[i] };
        if (n)
                qsort(v, n, sizeof(*v), compare_machines);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && !strcmp(v[i].machine, v[end].machine);)
                        end++;
                found += end - i > 1 && report_same_machine(hosts, v + i, end - i, d);
        }
        free(v);
        return found;
}
