/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name of this machine alone is no proof: the ssh config may lead the name to another machine,
 * port or user. Such a host is reached by ssh, as configured.
 */
#include "head/nodes/own_hosts.h"

#include "base/memory.h"
#include "head/hosts/own_machine.h"
#include "head/nodes/ssh_loader.h"

void own_hosts_mark(struct hosts *hosts, const struct ssh_options *login)
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
