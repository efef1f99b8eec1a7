/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subst_read() reads the next piece of a text: a place-holder, or one byte. expand_text() goes over
 * the pieces of a text; which place-holders it replaces depends on --subst and on the ports of the
 * rank.
 */
#include "wire/env/subst.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

static const char *const subst_words[SUBST_KINDS] = {
        [SUBST_RANK] = "rank}",
        [SUBST_LOCAL_RANK] = "local_rank}",
        [SUBST_NODE_RANK] = "node_rank}",
        [SUBST_NUM_NODES] = "num_nodes}",
        [SUBST_MASTER_ADDR] = "master_addr}",
        [SUBST_MASTER_PORT] = "master_port}",
        [SUBST_HOST] = "host}",
};

struct subst_piece subst_read_name(const char *text)
{
        const char *word = text + 1, *end;

        if (*text != '{')
                return (struct subst_piece){ .len = 1 };
        for (enum subst_kind k = SUBST_RANK; k < SUBST_PORT; k++)
                if (!strncmp(word, subst_words[k], strlen(subst_words[k])))
                        return (struct subst_piece){ .kind = k, .len = 1 + strlen(subst_words[k]) };
        end = !strncmp(word, "port:", 5) ? strchr(word, '}') : NULL;
        if (!end)
                return (struct subst_piece){ .len = 1 };
        return (struct subst_piece){ .kind = SUBST_PORT,
                                     .len = (size_t)(end + 1 - text),
                                     .name = word + 5,
                                     .name_len = (size_t)(end - word - 5) };
}

struct subst_piece subst_read(const char *text)
{
        struct subst_piece p;

        if (*text != '\\')
                return subst_read_name(text);
        /* A backslash in front of anything else stays. */
        p = subst_read_name(text + 1);
        if (!p.kind)
                return (struct subst_piece){ .len = 1 };
        p.escaped = true;
        p.len++;
        return p;
}

bool subst_has_any(const char *text)
{
        for (struct subst_piece p; *text; text += p.len) {
                p = subst_read(text);
                if (p.kind)
                        return true;
        }
        return false;
}

/* A port of 0 is not known yet: the text is for a plan. */
static void append_port_number(struct buf *b, uint32_t port)
{
        if (port)
                buf_printf(b, "%u", port);
        else
                buf_appends(b, "(free port there)");
}

/* Returns the port of a SUBST_PORT, or NULL. */
static const struct launch_port *find_port(const struct subst_piece *p,
                                           const struct launch_port *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (strlen(ports[i].name) == p->name_len &&
                    !memcmp(ports[i].name, p->name, p->name_len))
                        return &ports[i];
        return NULL;
}

uint32_t subst_port_number(const struct subst_piece *p, const struct launch_first_node *first)
{
        const struct launch_port *port = find_port(p, first->ports, first->n_ports);

        return port ? port->number : 0;
}

/* Returns the port that a SUBST_PORT means for a rank, or NULL. */
static const struct launch_port *find_rank_port(const struct subst_piece *p,
                                                const struct launch_order *l,
                                                const struct launch_rank *r)
{
        const struct launch_rank_ports *own = launch_order_rank_ports(l, r);
        const struct launch_port *port = own ? find_port(p, own->v, own->n) : NULL;

        return port ? port : find_port(p, l->first_node.ports, l->first_node.n_ports);
}

/* Appends an address or name; an IPv6 address in front of a colon, where a port follows, in
 * brackets. */
static void append_address(struct buf *b, const char *address, char next)
{
        buf_printf(b, next == ':' && strchr(address, ':') ? "[%s]" : "%s", address);
}

/* @next is the character behind the place-holder. */
static void append_subst_value(struct buf *b, const struct subst_piece *p, char next,
                               const struct launch_order *l, const struct launch_rank *r)
{
        const struct launch_port *port;

        switch (p->kind) {
        case SUBST_RANK:
                buf_printf(b, "%u", r->rank);
                break;
        case SUBST_LOCAL_RANK:
                buf_printf(b, "%u", r->local_rank);
                break;
        case SUBST_NODE_RANK:
                buf_printf(b, "%u", l->node_rank);
                break;
        case SUBST_NUM_NODES:
                buf_printf(b, "%u", l->num_nodes);
                break;
        case SUBST_MASTER_ADDR:
                append_address(b, l->master_addr, next);
                break;
        case SUBST_MASTER_PORT:
                append_port_number(b, l->master_port);
                break;
        case SUBST_HOST:
                append_address(b, l->host, next);
                break;
        default:
                port = find_rank_port(p, l, r);
                append_port_number(b, port ? port->number : 0);
        }
}

/* @ports_only: all place-holders stay as they are but {port:NAME} of known ports. */
static char *expand_text(const char *text, const struct launch_order *l,
                         const struct launch_rank *r, bool ports_only)
{
        struct buf b = BUF_INIT;

        for (struct subst_piece p; *text; text += p.len) {
                p = subst_read(text);
                if (ports_only &&
                    (p.kind != SUBST_PORT || (!p.escaped && !find_rank_port(&p, l, r))))
                        buf_append(&b, text, p.len);
                else if (p.escaped)
                        buf_append(&b, text + 1, p.len - 1);
                else if (p.kind)
                        append_subst_value(&b, &p, text[p.len], l, r);
                else
                        buf_append(&b, text, p.len);
        }
        return buf_len(&b) ? buf_steal(&b) : xstrdup("");
}

static bool has_own_ports(const struct launch_order *l, const struct launch_rank *r)
{
        const struct launch_rank_ports *own = launch_order_rank_ports(l, r);

        return own && own->n;
}

void subst_arguments(struct strv *argv, const struct launch_order *l, const struct launch_rank *r)
{
        const struct launch_program *p = &l->programs[r->program];
        const struct launch_arguments *a = &p->arguments;
        bool any = a->subst || has_own_ports(l, r);

        for (size_t i = 0; i < a->wrap.n; i++)
                strv_push_take(argv, expand_text(a->wrap.v[i], l, r, false));
        for (size_t i = 0; i < p->argv.n; i++)
                /* The name of the program itself is never changed. */
                if (i && any && subst_has_any(p->argv.v[i]))
                        strv_push_take(argv, expand_text(p->argv.v[i], l, r, !a->subst));
                else
                        strv_push(argv, p->argv.v[i]);
        if (*a->local_rank)
                strv_pushf(argv, "%s=%u", a->local_rank, r->local_rank);
}

void subst_variables(struct strv *env, const struct launch_order *l, const struct launch_rank *r)
{
        const struct strv *pairs = &l->programs[r->program].env;
        CLEANUP(strv_finish) struct strv expanded = STRV_INIT;

        /* Otherwise the pairs are merged as they are, without copies. */
        for (size_t i = 0; i < pairs->n && has_own_ports(l, r); i++)
                strv_push_take(&expanded, expand_text(pairs->v[i], l, r, true));
        strv_env_merge(env, expanded.n ? &expanded : pairs);
}
