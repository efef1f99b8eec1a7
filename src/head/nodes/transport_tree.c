/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link is WAITING until the parent is READY, then STARTED (the parent was ordered to run ssh),
 * then OPEN with the first byte from the far end, then OVER. All bytes travel in frames to or from
 * the parent: TUNNEL frames carry bytes, ssh's stderr, clock offsets and the end of ssh; PRUNE ends
 * the ssh.
 *
 * Flow control is by credit: a link may send TUNNEL_WINDOW bytes not yet reported as taken
 * (TUNNEL_TOOK) by the parent. Data already at the parent (COMMON frames, the agent) is not sent
 * again but referred to: TUNNEL_COMMON costs credit, since the bytes pass the parent's buffer. A
 * failure inside tree_open() is reported by a timer, because callbacks must not come from inside a
 * call.
 */
#include "head/nodes/transport_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/printable.h"
#include "head/nodes/ssh_program.h"

enum tunnel_state {
        TUNNEL_WAITING, /* for the parent */
        TUNNEL_STARTED, /* the parent runs ssh, which may still fail */
        TUNNEL_OPEN,    /* a byte came from the far end */
        TUNNEL_OVER,
};

struct tunnel_link {
        struct link link;
        enum tunnel_state state;
        struct node *via;
        uint32_t number;
        struct child_agent_order order; /* until sent */
        size_t credit;                  /* bytes allowed to be sent */
        uint32_t silence_ms;            /* the limit watched by the parent, 0 = none */
        size_t common, common_at;       /* bytes of COMMON: due, and sent before */
        struct link_failure why;        /* gathers ssh's stderr */
        const struct link_callbacks *cb;
        void *ctx;
        struct tunnel_link *next; /* through the same parent */
};

struct tree_transport {
        struct transport transport;
        const struct ssh_options *options;
        const struct tree_login_ops *logins;
        struct tree_login *tree_login;
        const struct tree_ops *ops;
        void *ctx;
        struct send_queue *send_queue;
        size_t n;
        struct tunnel_link **links;   /* by number, NULL = none */
        struct tunnel_link **through; /* by the parent's number: the first link */
        uv_timer_t later;             /* for links failed in tree_open() */
        struct tunnel_link *unopened;
};

static struct tree_transport *tree_of(struct transport *t)
{
        return container_of(t, struct tree_transport, transport);
}

/* --- frames ----------------------------------------------------------------------------------- */

static void send_tunnel(struct tunnel_link *l, struct tunnel m)
{
        struct tree_transport *t = tree_of(l->link.transport);

        m.child = l->number;
        tunnel_encode(&l->via->out, &m);
        send_queue_add(t->send_queue, l->via);
}

/* Orders the parent to send as much of the COMMON as the credit allows. */
static void send_common_reference(struct tunnel_link *l)
{
        size_t n = MIN(l->common, l->credit);

        if (!n)
                return;
        send_tunnel(l, (struct tunnel){ .kind = TUNNEL_COMMON,
                                        .number = (uint32_t)n,
                                        .offset = l->common_at });
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
        send_common_reference(l);
}

/* Sends as many bytes as the window of the tunnel has credit for; the rest stays in @out until
 * TOOK. */
static void tree_send(struct link *link, struct buf *out)
{
        struct tunnel_link *l = container_of(link, struct tunnel_link, link);
        size_t n;

        if (l->state != TUNNEL_OPEN)
                return;
        send_common_reference(l);
        /* Bytes behind a COMMON wait until the whole COMMON is ordered. */
        n = l->common ? 0 : MIN(buf_len(out), l->credit);
        if (!n)
                return;
        l->credit -= n;
        send_tunnel(l, (struct tunnel){ .kind = TUNNEL_BYTES, .data = buf_data(out), .len = n });
        buf_consume(out, n);
}

static void tree_upload(struct link *link)
{
        struct tunnel_link *l = container_of(link, struct tunnel_link, link);

        if (l->state == TUNNEL_OPEN)
                send_tunnel(l, (struct tunnel){ .kind = TUNNEL_UPLOAD });
}

void transport_tree_watch(struct transport *transport, struct node *n, uint32_t silence_ms)
{
        struct tunnel_link *l = tree_of(transport)->links[n->index];

        if (!l || l->state != TUNNEL_OPEN || l->silence_ms == silence_ms)
                return;
        l->silence_ms = silence_ms;
        send_tunnel(l, (struct tunnel){ .kind = TUNNEL_WATCH, .number = silence_ms });
}

/* Has the parent end the ssh of a link, if ordered before. Frames on the way are ignored. */
static void prune_link(struct tunnel_link *l)
{
        struct tree_transport *t = tree_of(l->link.transport);

        if (l->state == TUNNEL_STARTED || l->state == TUNNEL_OPEN) {
                number_encode(&l->via->out, MSG_PRUNE, l->number);
                send_queue_add(t->send_queue, l->via);
        }
        l->state = TUNNEL_OVER;
}

/* Opens the link with the first byte from the far end, the first sign of a login from there. */
static void mark_link_open(struct tunnel_link *l)
{
        if (l->state != TUNNEL_STARTED)
                return;
        l->state = TUNNEL_OPEN;
        l->cb->phase(l->ctx, LINK_EXEC);
        l->cb->opened(l->ctx, -1);
}

/* --- the end of a link ------------------------------------------------------------------------ */

static void end_link(struct tunnel_link *l, const struct link_failure *why)
{
        enum tunnel_state was = l->state;

        l->state = TUNNEL_OVER;
        if (was == TUNNEL_WAITING || was == TUNNEL_STARTED)
                l->cb->failed(l->ctx, why);
        else if (was == TUNNEL_OPEN)
                l->cb->ended(l->ctx, why);
}

/* Fills in @why for a link with a lost parent: all below a lost node get the same sentence. */
static void describe_lost_parent(const struct tunnel_link *l, struct link_failure *why)
{
        const struct node *via = l->via;

        *why = (struct link_failure){ .phase = LINK_CONNECTING, .cause = LINK_PARENT };
        if (via->failure && via->failure->cause == LINK_PARENT)
                memcpy(why->fact, via->failure->fact, sizeof(why->fact));
        else if (l->state == TUNNEL_WAITING)
                snprintf(why->fact, sizeof(why->fact), "not tried: it is reached through %.200s",
                         via->host->name);
        else
                snprintf(why->fact, sizeof(why->fact), "lost with %.200s, its parent in the tree",
                         via->host->name);
}

/* Ends the link with l->why, and says from which node the ssh was run. */
static void end_with_parent_name(struct tunnel_link *l)
{
        char fact[sizeof(l->why.fact)];

        memcpy(fact, l->why.fact, sizeof(fact));
        snprintf(l->why.fact, sizeof(l->why.fact), "%.150s (from %.90s)", fact, l->via->host->name);
        end_link(l, &l->why);
}

/* Explains a refused login with the forwarded ssh-agent. */
static void explain_denied(struct tunnel_link *l)
{
        const char *from = l->via->host->name;

        if (strstr(l->why.evidence, CHILD_AGENT_NO_AGENT))
                snprintf(l->why.help, sizeof(l->why.help),
                         "sshd on %.60s forwards no ssh-agent: AllowAgentForwarding yes there; or "
                         "-o ssh.tree_auth=own and a key on %.60s",
                         from, from);
        else
                snprintf(l->why.help, sizeof(l->why.help),
                         "no key of the ssh-agent here is accepted (ssh-add -l): ssh-add FILE, or "
                         "authorize one there");
}

/* Reduces ssh's long warning, which names a temporary file, to the offered key and to the line in a
 * file of the parent's own. */
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

/* The parent's ssh has ended: reports the reason in the words of the head's own ssh, with the name
 * of the parent. */
static void handle_ssh_end(struct tunnel_link *l, int status)
{
        int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

        l->why.phase = LINK_OPEN;
        l->why.cause = LINK_ENDED;
        if (signal)
                snprintf(l->why.fact, sizeof(l->why.fact), "ssh was killed by signal %d (%s)",
                         signal, strsignal(signal));
        ssh_program_classify(WEXITSTATUS(status), signal, &l->why);
        if (l->why.cause == LINK_KEY_CHANGED)
                shorten_warning(&l->why);
        if (l->why.cause == LINK_ENDED)
                mark_link_open(l); /* the remote command ran without output */
        if (l->why.cause == LINK_DENIED && tree_of(l->link.transport)->options->forward_agent)
                explain_denied(l);
        end_with_parent_name(l);
}

/* --- frames from the parent ------------------------------------------------------------------- */

/* Takes a TUNNEL of the parent about a descendant. 0, or negative with @err, which fails the
 * parent. */
static int handle_tunnel(struct tunnel_link *l, const struct tunnel *m, struct error *err)
{
        struct tree_transport *t = tree_of(l->link.transport);

        switch (m->kind) {
        case TUNNEL_BYTES:
                mark_link_open(l);
                l->cb->received(l->ctx, m->data, m->len);
                break;
        case TUNNEL_TOOK: /* bytes passed on by the parent */
                if (m->number > TUNNEL_WINDOW - l->credit)
                        return err_set(err, EPROTO,
                                       "message out of turn: TUNNEL, more bytes taken than sent");
                l->credit += m->number;
                l->cb->writable(l->ctx);
                break;
        case TUNNEL_NOISE:
                printable_keep_tail(l->why.evidence, sizeof(l->why.evidence), (const char *)m->data,
                                    m->len);
                l->cb->noise(l->ctx, (const char *)m->data, m->len);
                break;
        case TUNNEL_HEARD:
                t->ops->heard(t->ctx, l->number, m->number);
                break;
        case TUNNEL_CLOCK:
                t->ops->clock(t->ctx, l->number, (int64_t)m->offset, (int64_t)m->number * 1000);
                break;
        case TUNNEL_ENDED:
                handle_ssh_end(l, (int)m->number);
                break;
        case TUNNEL_FAILED:
                l->why.phase = LINK_EXEC;
                l->why.cause = LINK_SPAWN;
                snprintf(l->why.fact, sizeof(l->why.fact), "%.*s", (int)m->len,
                         (const char *)m->data);
                end_with_parent_name(l);
                break;
        default:
                return err_set(err, EPROTO, "message out of turn: TUNNEL of kind %u", m->kind);
        }
        return 0;
}

int transport_tree_receive(struct transport *transport, struct node *via, const struct frame *f,
                           struct error *err)
{
        struct tree_transport *t = tree_of(transport);
        struct tunnel_link *l;
        struct tunnel m;
        int r = tunnel_decode(&m, f, err);

        if (r < 0)
                return r;
        l = m.child < t->n ? t->links[m.child] : NULL;
        if (!l || l->via != via || l->state == TUNNEL_WAITING)
                return err_set(err, EPROTO, "message out of turn: TUNNEL, without such a child");
        if (l->state == TUNNEL_OVER)
                return 0; /* pruned meanwhile */
        return handle_tunnel(l, &m, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

void transport_tree_ready(struct transport *transport, struct node *via)
{
        struct tree_transport *t = tree_of(transport);

        for (struct tunnel_link *l = t->through[via->index]; l; l = l->next) {
                if (l->state != TUNNEL_WAITING)
                        continue;
                child_agent_order_encode(&via->out, &l->order);
                child_agent_order_finish(&l->order);
                send_queue_add(t->send_queue, via);
                l->state = TUNNEL_STARTED;
                l->cb->phase(l->ctx, LINK_CONNECTING);
        }
}

void transport_tree_cut(struct transport *transport, struct node *n)
{
        struct tree_transport *t = tree_of(transport);
        struct link_failure why;

        if (t->links[n->index])
                prune_link(t->links[n->index]);
        for (struct tunnel_link *l = t->through[n->index]; l; l = l->next) {
                describe_lost_parent(l, &why);
                end_link(l, &why);
        }
}

static void on_unopened_timer(uv_timer_t *timer)
{
        struct tree_transport *t = timer->data;

        while (t->unopened) {
                struct tunnel_link *l = t->unopened;

                t->unopened = l->next;
                l->next = NULL;
                end_link(l, &l->why);
        }
}

/* Adds the link to the orders for the parent, which are sent when the parent is ready. An unusable
 * link is reported from the loop. */
static struct link *tree_open(struct transport *transport, const struct link_target *to,
                              const struct link_callbacks *cb, void *ctx, struct error *err)
{
        struct tree_transport *t = tree_of(transport);
        struct tunnel_link *l = xcalloc(1, sizeof(*l));
        struct tunnel_link **list = &t->unopened;

        l->link.transport = transport;
        l->via = to->via;
        l->number = (uint32_t)to->number;
        l->credit = TUNNEL_WINDOW;
        l->cb = cb;
        l->ctx = ctx;
        t->links[l->number] = l;
        if (t->logins->find(t->tree_login, to, &l->order, err) < 0) {
                link_failure_set_error(&l->why, err);
        } else if (to->via->state == NODE_FAILED) {
                describe_lost_parent(l, &l->why);
        } else {
                list = &t->through[to->via->index];
        }
        l->next = *list;
        *list = l;
        if (t->unopened) /* the failure is reported from the loop */
                uv_timer_start(&t->later, on_unopened_timer, 0, 0);
        return &l->link;
}

static void remove_link(struct tunnel_link **at, const struct tunnel_link *l)
{
        while (*at && *at != l)
                at = &(*at)->next;
        if (*at)
                *at = l->next;
}

static void tree_close(struct link *link)
{
        struct tunnel_link *l = container_of(link, struct tunnel_link, link);
        struct tree_transport *t = tree_of(link->transport);

        prune_link(l);
        remove_link(&t->through[l->via->index], l);
        remove_link(&t->unopened, l);
        t->links[l->number] = NULL;
        child_agent_order_finish(&l->order);
        free(l);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void on_tree_timer_closed(uv_handle_t *h)
{
        struct tree_transport *t = h->data;

        t->logins->free(t->tree_login);
        free(t->links);
        free(t->through);
        free(t);
}

static void tree_destroy(struct transport *transport)
{
        uv_close((uv_handle_t *)&tree_of(transport)->later, on_tree_timer_closed);
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
                                        const struct tree_login_ops *logins, size_t n_hosts,
                                        struct send_queue *q, const struct tree_ops *ops, void *ctx,
                                        struct error *err)
{
        struct tree_login *login = logins->create(o, err);
        struct tree_transport *t;

        if (!login)
                return NULL;
        t = xcalloc(1, sizeof(*t));
        t->transport.ops = &tree_transport_ops;
        t->options = o;
        t->logins = logins;
        t->tree_login = login;
        t->ops = ops;
        t->ctx = ctx;
        t->send_queue = q;
        t->n = n_hosts;
        t->links = xcalloc(n_hosts, sizeof(struct tunnel_link *));
        t->through = xcalloc(n_hosts, sizeof(struct tunnel_link *));
        uv_timer_init(loop, &t->later);
        t->later.data = t;
        return &t->transport;
}
