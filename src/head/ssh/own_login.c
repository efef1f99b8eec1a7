/* SPDX-License-Identifier: Apache-2.0 */
#include "head/ssh/own_login.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/ssh/files/ssh_config.h"

bool own_login_leads_elsewhere(const struct ssh_options *o, const char *host, char **ret_name)
{
        struct ssh_host_request request = { .alias = host, .user = o->user, .port = o->port };
        const struct passwd *me = getpwuid(geteuid());
        struct ssh_config *config = NULL;
        struct ssh_host h = { 0 };
        struct error err;
        bool elsewhere;

        if (ssh_config_load(&config, o->config_file, &err) < 0)
                return true;
        elsewhere = ssh_config_lookup(config, &request, &h, NULL, &err) < 0;
        if (!elsewhere) {
                elsewhere = o->jump || h.proxy_command || h.port != 22 ||
                            (h.proxy_jump && strcasecmp(h.proxy_jump, "none") != 0) ||
                            (me && strcmp(h.user, me->pw_name) != 0);
                *ret_name = xstrdup(h.hostname);
                ssh_host_finish(&h);
        }
        ssh_config_free(config);
        return elsewhere;
}
