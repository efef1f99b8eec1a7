/* SPDX-License-Identifier: Apache-2.0 */
#include "head/report/plan_view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/model/tree.h"
#include "head/options/config.h"
#include "head/options/export_env.h"

struct plan_view plan_view_make(const struct plan *p, const struct hosts *hosts,
                                const struct options *o, const struct plan_inventory *inventory)
{
        static const struct strv none = STRV_INIT;
        struct plan_view v = {
                .p = p, .hosts = hosts, .o = o, .ports = &none, .inventory = inventory
        };
        struct diags d = DIAGS_INIT;

        if (o->tree)
                v.parents = tree_of_hosts(hosts, (size_t)o->tree);
        export_env_collect(o, environ, &v.env, &v.unset, &d);
        diags_finish(&d);
        return v;
}

void plan_view_finish(struct plan_view *v)
{
        free(v->parents);
        strv_finish(&v->env);
        strv_finish(&v->unset);
}

const struct host *plan_view_host(const struct plan_view *v, int node)
{
        return &v->hosts->v[v->p->nodes[node].host];
}

const char *plan_view_parent(const struct plan_view *v, const struct plan_node *n)
{
        int parent = v->parents ? v->parents[n->host] : TREE_HEAD;

        return parent == TREE_HEAD ? NULL : v->hosts->v[parent].name;
}

char *plan_view_pair(const char *pair)
{
        if (!config_is_secret(pair))
                return xstrdup(pair);
        return xasprintf("%.*s=(not shown)", (int)strcspn(pair, "="), pair);
}
