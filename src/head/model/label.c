/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/label.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "wire/msg.h"

enum { HOST, RANK, LOCAL_RANK, LOCAL, NODE_RANK, NUM_NODES, STREAM, FIELDS };

static const struct {
        const char *name;
        size_t len;
} label_fields[] = { [HOST] = { "{host}", 6 },
                     [RANK] = { "{rank}", 6 },
                     [LOCAL_RANK] = { "{local_rank}", 12 },
                     [LOCAL] = { "{local}", 7 },
                     [NODE_RANK] = { "{node_rank}", 11 },
                     [NUM_NODES] = { "{num_nodes}", 11 },
                     [STREAM] = { "{stream}", 8 } };

/* Returns the field at @p, or FIELDS. */
static int field_at(const char *p)
{
        int f = 0;

        while (f < FIELDS && strncmp(p, label_fields[f].name, label_fields[f].len) != 0)
                f++;
        return f;
}

size_t label_bad_field(const char **at)
{
        for (const char *p = *at; (p = strchr(p, '{')); p++) {
                size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");

                if (!n || p[n + 1] != '}' || field_at(p) != FIELDS)
                        continue;
                *at = p;
                return n + 2;
        }
        return 0;
}

static const char *rank_host_name(const struct label *p, const struct plan_rank *k)
{
        return p->hosts->v[p->plan->nodes[k->node].host].name;
}

static int label_number(const struct label *p, const struct plan_rank *k, int field)
{
        switch (field) {
        case RANK:
                return k->rank;
        case NODE_RANK:
                return p->plan->nodes[k->node].node_rank;
        case NUM_NODES:
                return p->plan->num_nodes;
        default:
                return k->local_rank;
        }
}

static char *fill_label(const struct label *p, const struct plan_rank *k, uint8_t stream)
{
        struct buf b = BUF_INIT;
        size_t len;

        for (const char *at = p->label; *at; at += len) {
                int f = field_at(at);

                len = f == FIELDS ? 1 : label_fields[f].len;
                if (f == HOST)
                        buf_appends(&b, rank_host_name(p, k));
                else if (f == STREAM)
                        buf_appends(&b, stream == MSG_STDOUT ? "out" : "err");
                else if (f == FIELDS)
                        buf_append(&b, at, 1);
                else
                        buf_printf(&b, "%d", label_number(p, k, f));
        }
        return buf_steal(&b);
}

char *label_make(const struct label *p, int rank, uint8_t stream)
{
        char *text, *bar, *wide;
        size_t len;

        if (!p->label)
                return xstrdup("");
        text = fill_label(p, &p->plan->ranks[rank], stream);
        len = strlen(text);
        bar = strrchr(text, '|');
        if (!bar || len >= p->width)
                return text;
        wide = xasprintf("%.*s%*s%s", (int)(bar - text), text, (int)(p->width - len), "", bar);
        free(text);
        return wide;
}

static size_t count_digits(int n)
{
        size_t d = 1;

        for (; n >= 10; n /= 10)
                d++;
        return d;
}

void label_init(struct label *p, const char *label, const struct plan *plan,
                const struct hosts *hosts)
{
        size_t times[FIELDS + 1] = { 0 }, fixed;

        *p = (struct label){ label, plan, hosts, 0 };
        if (!label)
                return;
        fixed = strlen(label);
        for (const char *at = label; *at; at++)
                times[field_at(at)]++;
        for (int f = 0; f < FIELDS; f++)
                fixed -= times[f] * label_fields[f].len;
        for (int r = 0; r < plan->world_size; r++) {
                const struct plan_rank *k = &plan->ranks[r];
                size_t n = fixed + times[HOST] * strlen(rank_host_name(p, k)) +
                           times[STREAM] * strlen("out");

                for (int f = RANK; f < STREAM; f++)
                        n += times[f] * count_digits(label_number(p, k, f));
                p->width = MAX(p->width, n);
        }
}
