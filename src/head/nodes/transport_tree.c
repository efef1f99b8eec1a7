/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/transport_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "head/nodes/ssh_program.h"
#include "wire/push_msg.h"

enum tunnel_state {
        TUNNEL_WAITING, /* for its carrier */
        TUNNEL_STARTED, /* the carrier runs an ssh, which may still fail */
        TUNNEL_OPEN,    /* something came */
        TUNNEL_OVER,
};

struct tunnel_link {
        struct link link;
        enum tunnel_state state;
        struct node *via;
        uint32_t number;
        struct child_agent_order order; /* until it is sent */
        size_t credit;                  /* bytes that may be sent */
        size_t giving;                  /* bytes that the carrier was told to give and has not */
        uint32_t silence_ms;            /* for which it was told to watch it */
        size_t common, common_at;       /* bytes of COMMON that are due, and were given before */
        struct link_failure why;        /* gathers ssh's stderr */
        const struct link_callbacks *cb;
        void *ctx;
        struct tunnel_link *next; /* through the same carrier */
};

struct tree {
        struct transport transport;
        const struct ssh_options *options;
        const struct tree_login_ops *ways;
        struct tree_login *tree_login;
        const struct tree_ops *ops;
        void *ctx;
        size_t n;
        struct tunnel_link **links;   /* by number, NULL = none */
        struct tunnel_link **through; /* by the carrier's number: the first of its links */
        uv_timer_t later;             /* for links that fail while they are opened */
        struct tunnel_link *stillborn;
};

static struct tree *tree_of(struct transport *t)
{
        return container_of(t, struct tree, transport);
}

/* --- frames ----------------------------------------------------------------------------------- */

static void say(struct tunnel_link *l, struct tunnel m)
{
        struct tree *t = tree_of(l->link.transport);

        m.child = l->number;
        tunnel_encode(node_out(l->via), &m);
        t->ops->outgoing(t->ctx, l->via);
}

/* Tells the carrier to give so much of its COMMON as there is credit for. */
static void give_common(struct tunnel_link *l)
{
        size_t n = MIN(l->common, l->credit);

        if (!n)
                return;
        say(l, (struct tunnel){
                       .kind = TUNNEL_COMMON, .number = (uint32_t)n, .offset = l->common_at });
        l->credit -= n;
        l->common -= n;
        l->common_at += n;
}

static void tree_common(struct link *link, size_t len)
{
        struct tunnel_link *l = container_of(link, struct tunnel_link, link);

        if (l->state != TUNNEL_OPEN)
                return;
        l->common = len;
        l->common_at = 0;
        give_common(l);
}

static void tree_send(struct link *link, struct buf *out)
{
        struct tunnel_link *l = container_of(link, struct tunnel_link, link);
        size_t n;

        if (l->state != TUNNEL_OPEN)
                return;
        give_common(l);
        n = l->common ? 0 : MIN(buf_len(out), l->credit);
        if (!n)
                return;
        l->credit -= n;
        say(l, (struct tunnel){ .kind = TUNNEL_BYTES, .data = buf_data(out), .len = n });
        buf_consume(out, n);
}

static void tree_upload(struct link *link)
{
        struct tunnel_link *l = container_of(link, struct tunnel_link, link);

        if (l->state == TUNNEL_OPEN)
                say(l, (struct tunnel){ .kind = TUNNEL_UPLOAD });
}

bool transport_tree_give(struct transport *transport, struct node *n, uint32_t entry,
                         uint64_t offset, uint32_t len)
{
        struct tunnel_link *l = tree_of(transport)->links[n->index];
        size_t cost = PUSH_CHUNK_HEAD + len;

        if (!l || l->state != TUNNEL_OPEN || l->giving + cost > TUNNEL_GIVE_WINDOW || l->common ||
            buf_len(node_out(n)))
                return false;
        l->giving += cost;
        say(l, (struct tunnel){
                       .kind = TUNNEL_GIVE, .number = len, .entry = entry, .offset = offset });
        return true;
}

void transport_tree_watch(struct transport *transport, struct node *n, uint32_t silence_ms)
{
        struct tunnel_link *l = tree_of(transport)->links[n->index];

        if (!l || l->state != TUNNEL_OPEN || l->silence_ms == silence_ms)
                return;
        l->silence_ms = silence_ms;
        say(l, (struct tunnel){ .kind = TUNNEL_WATCH, .number = silence_ms });
}

static void prune(struct tunnel_link *l)
{
        struct tree *t = tree_of(l->link.transport);

        if (l->state == TUNNEL_STARTED || l->state == TUNNEL_OPEN) {
                prune_encode(node_out(l->via), l->number);
                t->ops->outgoing(t->ctx, l->via);
        }
        l->state = TUNNEL_OVER;
}

/* How far the node's ssh has come is not seen from here before the far end's first byte. */
static void opened(struct tunnel_link *l)
{
        if (l->state != TUNNEL_STARTED)
                return;
        l->state = TUNNEL_OPEN;
        l->cb->phase(l->ctx, LINK_EXEC);
        l->cb->opened(l->ctx, -1);
}

/* --- the end of a link ------------------------------------------------------------------------ */

static void over(struct tunnel_link *l, const struct link_failure *why)
{
        enum tunnel_state was = l->state;

        l->state = TUNNEL_OVER;
        if (was == TUNNEL_WAITING || was == TUNNEL_STARTED)
                l->cb->failed(l->ctx, why);
        else if (was == TUNNEL_OPEN)
                l->cb->ended(l->ctx, why);
}

/* The first of those that were lost with one another says it for all. */
static void lost_with(const struct tunnel_link *l, struct link_failure *why)
{
        const struct node *via = l->via;

        *why = (struct link_failure){ .phase = LINK_CONNECTING, .cause = LINK_PARENT };
        if (via->failure && via->failure->cause == LINK_PARENT)
                memcpy(why->fact, via->failure->fact, sizeof(why->fact));
        else if (l->state == TUNNEL_WAITING)
                snprintf(why->fact, sizeof(why->fact), "not tried: the way leads through %.200s",
                         via->host->name);
        else
                snprintf(why->fact, sizeof(why->fact), "lost with %.200s, which carries it",
                         via->host->name);
}

static void add_place(struct tunnel_link *l)
{
        char fact[sizeof(l->why.fact)];

        memcpy(fact, l->why.fact, sizeof(fact));
        snprintf(l->why.fact, sizeof(l->why.fact), "%.150s (from %.90s)", fact, l->via->host->name);
}

/* With the user's ssh-agent the way that it takes is what can be wrong. */
static void explain_denied(struct tunnel_link *l)
{
        const char *from = l->via->host->name;

        if (strstr(l->why.evidence, CHILD_AGENT_NO_AGENT))
                snprintf(l->why.help, sizeof(l->why.help),
                         "sshd on %.60s forwards no ssh-agent: AllowAgentForwarding yes there; or "
                         "--tree-auth own and a key on %.60s",
                         from, from);
        else
                snprintf(l->why.help, sizeof(l->why.help),
                         "it takes no key of the ssh-agent here (ssh-add -l): ssh-add FILE, or "
                         "authorize one there");
}

/* ssh's long warning would send people to a file of ours that is gone by now. What counts is the
 * key that was offered, and the line it stands against in a file of the carrier's own. */
static void shorten_warning(struct link_failure *why)
{
        char copy[sizeof(why->evidence)], *rest = copy, *line, *to = why->evidence;
        const char *end = to + sizeof(why->evidence), *title;

        memcpy(copy, why->evidence, sizeof(copy));
        *to = '\0';
        while ((line = strsep(&rest, "\n"))) {
                title = !strncmp(line, "SHA256:", 7) ? "offered " : "";
                if (!*title && (strncmp(line, "Offending", 9) != 0 || strstr(line, "/known-")))
                        continue;
                if ((size_t)(end - to) <= strlen(title) + strlen(line) + 1)
                        break;
                to += sprintf(to, "%s%s\n", title, line);
        }
}

static void ssh_ended(struct tunnel_link *l, int status)
{
        int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

        l->why.phase = LINK_OPEN;
        l->why.cause = LINK_ENDED;
        if (signal)
                snprintf(l->why.fact, sizeof(l->why.fact), "its ssh was killed by signal %d (%s)",
                         signal, strsignal(signal));
        ssh_program_judge(WEXITSTATUS(status), signal, &l->why);
        if (l->why.cause == LINK_KEY_CHANGED)
                shorten_warning(&l->why);
        if (l->why.cause == LINK_ENDED)
                opened(l); /* the remote command ran, and had nothing to say */
        if (l->why.cause == LINK_DENIED && tree_of(l->link.transport)->options->forward_agent)
                explain_denied(l);
        add_place(l);
        over(l, &l->why);
}

static void ssh_failed(struct tunnel_link *l, const struct tunnel *m)
{
        l->why.phase = LINK_EXEC;
        l->why.cause = LINK_SPAWN;
        snprintf(l->why.fact, sizeof(l->why.fact), "%.*s", (int)m->len, (const char *)m->data);
        add_place(l);
        over(l, &l->why);
}

/* --- what agents say -------------------------------------------------------------------------- */

/* Keeps the last bytes: the reason is at the end, banners are at the start. ssh ends its lines for
 * a terminal. */
static void keep_noise(struct tunnel_link *l, const struct tunnel *m)
{
        size_t n = strlen(l->why.evidence), room = sizeof(l->why.evidence) - 1;

        for (size_t i = 0; i < m->len; i++) {
                if (!m->data[i] || m->data[i] == '\r')
                        continue;
                if (n == room) {
                        memmove(l->why.evidence, l->why.evidence + room / 2, room - room / 2);
                        n -= room / 2;
                }
                l->why.evidence[n++] = (char)m->data[i];
        }
        l->why.evidence[n] = '\0';
        l->cb->noise(l->ctx, (const char *)m->data, m->len);
}

/* Which of both it was does not matter: the sum is what the branch holds. */
static void took(struct tunnel_link *l, size_t bytes)
{
        size_t given = MIN(bytes, l->giving);

        l->giving -= given;
        l->credit += bytes - given;
        l->cb->writable(l->ctx);
}

static void take(struct tunnel_link *l, const struct tunnel *m)
{
        struct tree *t = tree_of(l->link.transport);

        switch (m->kind) {
        case TUNNEL_BYTES:
                opened(l);
                l->cb->received(l->ctx, m->data, m->len);
                break;
        case TUNNEL_TOOK:
                took(l, m->number);
                break;
        case TUNNEL_NOISE:
                keep_noise(l, m);
                break;
        case TUNNEL_HEARD:
                t->ops->heard(t->ctx, l->number, m->number);
                break;
        case TUNNEL_CLOCK:
                t->ops->clock(t->ctx, l->number, (int64_t)m->offset, (int64_t)m->number * 1000);
                break;
        case TUNNEL_ENDED:
                ssh_ended(l, (int)m->number);
                break;
        case TUNNEL_FAILED:
                ssh_failed(l, m);
                break;
        default:
                break;
        }
}

int transport_tree_receive(struct transport *transport, struct node *via, const struct frame *f,
                           struct error *err)
{
        struct tree *t = tree_of(transport);
        struct tunnel_link *l;
        struct tunnel m;
        int r = tunnel_decode(&m, f, err);

        if (r < 0)
                return r;
        l = m.child < t->n ? t->links[m.child] : NULL;
        if (l && l->via == via && (l->state == TUNNEL_STARTED || l->state == TUNNEL_OPEN))
                take(l, &m);
        return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void begin(struct tunnel_link *l)
{
        struct tree *t = tree_of(l->link.transport);

        child_agent_order_encode(node_out(l->via), &l->order);
        child_agent_order_finish(&l->order);
        t->ops->outgoing(t->ctx, l->via);
        l->state = TUNNEL_STARTED;
        l->cb->phase(l->ctx, LINK_CONNECTING);
}

void transport_tree_ready(struct transport *transport, struct node *via)
{
        struct tree *t = tree_of(transport);

        for (struct tunnel_link *l = t->through[via->index]; l; l = l->next)
                if (l->state == TUNNEL_WAITING)
                        begin(l);
}

void transport_tree_cut(struct transport *transport, struct node *n)
{
        struct tree *t = tree_of(transport);
        struct link_failure why;

        if (t->links[n->index])
                prune(t->links[n->index]);
        for (struct tunnel_link *l = t->through[n->index]; l; l = l->next) {
                lost_with(l, &why);
                over(l, &why);
        }
}

static void tell_stillborn(uv_timer_t *timer)
{
        struct tree *t = timer->data;

        while (t->stillborn) {
                struct tunnel_link *l = t->stillborn;

                t->stillborn = l->next;
                l->next = NULL;
                over(l, &l->why);
        }
}

/* It fails, but not from inside the call. */
static void bury(struct tree *t, struct tunnel_link *l)
{
        l->next = t->stillborn;
        t->stillborn = l;
        uv_timer_start(&t->later, tell_stillborn, 0, 0);
}

static struct link *tree_open(struct transport *transport, const struct link_target *to,
                              const struct link_callbacks *cb, void *ctx, struct error *err)
{
        struct tree *t = tree_of(transport);
        struct tunnel_link *l = xcalloc(1, sizeof(*l));

        l->link.transport = transport;
        l->via = to->via;
        l->number = (uint32_t)to->number;
        l->credit = TUNNEL_WINDOW;
        l->cb = cb;
        l->ctx = ctx;
        t->links[l->number] = l;
        if (t->ways->find(t->tree_login, to, &l->order, err) < 0) {
                l->why = (struct link_failure){ .phase = LINK_RESOLVING,
                                                .cause = err->code == EACCES ? LINK_KEY_UNCHECKED
                                                                             : LINK_OTHER };
                snprintf(l->why.fact, sizeof(l->why.fact), "%.250s", err->text);
                bury(t, l);
        } else if (to->via->state == NODE_FAILED) {
                lost_with(l, &l->why);
                bury(t, l);
        } else {
                l->next = t->through[to->via->index];
                t->through[to->via->index] = l;
        }
        return &l->link;
}

static void unlist(struct tunnel_link **at, const struct tunnel_link *l)
{
        while (*at && *at != l)
                at = &(*at)->next;
        if (*at)
                *at = l->next;
}

static void tree_close(struct link *link)
{
        struct tunnel_link *l = container_of(link, struct tunnel_link, link);
        struct tree *t = tree_of(link->transport);

        prune(l);
        unlist(&t->through[l->via->index], l);
        unlist(&t->stillborn, l);
        t->links[l->number] = NULL;
        child_agent_order_finish(&l->order);
        free(l);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void timer_closed(uv_handle_t *h)
{
        struct tree *t = h->data;

        t->ways->free(t->tree_login);
        free(t->links);
        free(t->through);
        free(t);
}

static void tree_destroy(struct transport *transport)
{
        uv_close((uv_handle_t *)&tree_of(transport)->later, timer_closed);
}

static const struct transport_ops tree_transport_ops = {
        .open = tree_open,
        .close = tree_close,
        .destroy = tree_destroy,
        .send = tree_send,
        .upload = tree_upload,
        .common = tree_common,
};

struct transport *transport_tree_create(uv_loop_t *loop, const struct ssh_options *o,
                                        const struct tree_login_ops *ways, size_t n_hosts,
                                        const struct tree_ops *ops, void *ctx, struct error *err)
{
        struct tree_login *d = ways->create(o, err);
        struct tree *t;

        if (!d)
                return NULL;
        t = xcalloc(1, sizeof(*t));
        t->transport.ops = &tree_transport_ops;
        t->options = o;
        t->ways = ways;
        t->tree_login = d;
        t->ops = ops;
        t->ctx = ctx;
        t->n = n_hosts;
        t->links = xcalloc(n_hosts, sizeof(struct tunnel_link *));
        t->through = xcalloc(n_hosts, sizeof(struct tunnel_link *));
        uv_timer_init(loop, &t->later);
        t->later.data = t;
        return &t->transport;
}
