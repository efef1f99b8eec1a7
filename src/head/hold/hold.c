/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client makes one request. `info` and `release` are answered, and the connection ends. `take`
 * keeps the connection: the run has the nodes until the connection ends, and gets a line for each
 * change:
 *
 *   {"nodes": [0, 3]}              agents, a descriptor each, in this order
 *   {"absent": [1], "why": ...}    the run must connect to these nodes
 *   {"lost": 0, "fact": ...}       the hold has lost a node of the run
 *
 * Numbers count the hosts of the request. While the agent of a node is being prepared, the node is
 * granted later, when the agent is ready. The hold may not have noticed yet that a run has ended: a
 * node is in use only while the connection of its run is open.
 */
#include "head/hold/hold.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/hold/hold_match.h"
#include "head/hold/hold_refusals.h"
#include "head/hold/hold_socket.h"
#include "head/hold/prepared.h"
#include "wire/env_names.h"
#include "wire/msg.h"

/* A run waits no longer for prepared interpreters: the rest of a begun import takes no longer than
 * an import in the ranks, unless the import hangs, and then the ranks need not hang. */
enum { PATIENCE_MS = 60000 };

enum { REQUEST_MAX = 16 << 20, CLIENTS_MAX = 256, BACKLOG = 64, READ_SIZE = 16 << 10 };

struct hold_client {
        uv_pipe_t pipe;
        struct hold *hold;
        struct hold_client *next;
        struct buf in;
        uint64_t number; /* never used again */
        char *run;       /* has taken nodes; NULL = not */
        bool patient;    /* waits for interpreters still being prepared */
};

/* A host of the hold. */
struct held_node {
        struct hold_client *user; /* NULL = no run has the node */
        size_t number;            /* of the host in the run's request */
        bool waits;               /* the run waits for the agent */
        /* The spare agent has got WARM; has answered WARM; has prepared interpreters. */
        bool ordered, warmed, warm;
        bool refused; /* the last answer to WARM was a refusal: runs do not wait for the next */
};

struct hold {
        struct hold_config config;
        uv_loop_t *loop;
        struct hold_nodes nodes;
        struct prepared_agents *agents;
        json_t *names; /* object: name of a host -> index */
        struct held_node *v;
        char **refusals; /* by host: why it has no interpreters, kept until the hold is ready */
        uv_pipe_t listener;
        uv_timer_t idle, patience;
        char *path;
        struct hold_client *clients;
        size_t n_clients, n_runs;
        uint64_t last_number;
        int64_t idle_ns; /* clock_ns() of the end of the last run, or of the start */
        size_t n_ready;  /* of the first hosts: settled since the start */
        bool released, closing;
        int open; /* handles not yet closed, and the struct */
};

static void unref_hold(struct hold *h)
{
        if (--h->open)
                return;
        json_decref(h->names);
        free(h->path);
        free(h->refusals);
        free(h->v);
        free(h);
}

/* --- idle ------------------------------------------------------------------------------------- */

static void on_idle(uv_timer_t *t)
{
        struct hold *h = t->data;

        h->config.ended(h->config.ctx, "no run has used it");
}

/* Starts the idle time if no run uses the hold; a released hold ends instead. */
static void begin_idle(struct hold *h)
{
        h->idle_ns = clock_ns();
        if (h->closing || h->n_runs)
                return;
        if (h->released)
                h->config.ended(h->config.ctx, "it was released");
        else if (h->config.idle_ms >= 0)
                uv_timer_start(&h->idle, on_idle, (uint64_t)h->config.idle_ms, 0);
}

/* --- before a run ----------------------------------------------------------------------------- */

/* Lets the spare agent of node @i prepare interpreters if the agent is ready. Only for a node
 * without a run, or whose run waits for the interpreters: during a run the import would take
 * processors from the ranks. */
static void use_leisure(struct hold *h, size_t i)
{
        CLEANUP(buf_finish) struct buf frame = BUF_INIT;
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        struct warm_order m;

        if (!h->config.warm || h->closing || h->v[i].ordered ||
            prepared_state(h->agents, i) != PREPARED_READY)
                return;
        h->v[i].ordered = true;
        m = *h->config.warm;
        m.slots = h->config.slots[i];
        strv_copy(&env, &m.env);
        if (h->config.venvs[i])
                strv_env_set(&env, HN_VENV, h->config.venvs[i]);
        m.env = env;
        warm_order_encode(&frame, &m);
        prepared_send(h->agents, i, &frame);
}

/* --- clients ---------------------------------------------------------------------------------- */

static void on_client_closed(uv_handle_t *handle)
{
        struct hold_client *c = handle->data;
        struct hold *h = c->hold;

        buf_finish(&c->in);
        free(c->run);
        free(c);
        unref_hold(h);
}

/* Closes the connection; the nodes of a run are free again. */
static void drop_hold_client(struct hold_client *c)
{
        struct hold *h = c->hold;
        struct hold_client **at = &h->clients;

        if (uv_is_closing((uv_handle_t *)&c->pipe))
                return;
        while (*at != c)
                at = &(*at)->next;
        *at = c->next;
        h->n_clients--;
        uv_close((uv_handle_t *)&c->pipe, on_client_closed);
        if (!c->run)
                return;
        for (size_t i = 0; i < h->config.hosts->n; i++) {
                if (h->v[i].user != c)
                        continue;
                h->v[i].user = NULL;
                h->v[i].waits = false;
                use_leisure(h, i);
        }
        h->n_runs--;
        begin_idle(h);
}

static int client_fd(const struct hold_client *c)
{
        uv_os_fd_t fd = -1;

        uv_fileno((const uv_handle_t *)&c->pipe, &fd);
        return fd;
}

/* Sends @line, and drops the reference; passes the descriptors, and closes them here. */
static void send_to_client(struct hold_client *c, json_t *line, const int *fds, size_t n)
{
        CLEANUP(free_textp) char *text = json_dump_plain(line, JSON_COMPACT);
        CLEANUP(free_textp) char *whole = xasprintf("%s\n", text);

        json_decref(line);
        if (hold_socket_send(client_fd(c), whole, fds, n) < 0)
                drop_hold_client(c);
        for (size_t i = 0; i < n; i++)
                close(fds[i]);
}

static void refuse_client(struct hold_client *c, json_t *answer)
{
        send_to_client(c, answer, NULL, 0);
        drop_hold_client(c);
}

/* --- nodes for a run -------------------------------------------------------------------------- */

/* Grants that are sent to a run together. */
struct grants {
        struct hold_client *to;
        json_t *nodes, *absent;
        int fds[HOLD_FDS_MAX];
        size_t n;
};

static void send_grants(struct grants *g)
{
        struct hold_client *c = g->to;

        if (g->n)
                send_to_client(c, json_pack("{s:O}", "nodes", g->nodes), g->fds, g->n);
        if (json_array_size(g->absent) && !uv_is_closing((uv_handle_t *)&c->pipe))
                send_to_client(c,
                               json_pack("{s:O, s:s}", "absent", g->absent, "why",
                                         "the hold has no agent there"),
                               NULL, 0);
        json_array_clear(g->nodes);
        json_array_clear(g->absent);
        g->n = 0;
}

/* Whether the run of the node waits for interpreters. */
static bool is_patient(const struct held_node *n)
{
        return n->waits && n->user->patient && !n->refused;
}

/* Gives the agent of node @i to a waiting run, once the agent is ready. */
static void grant_node(struct hold *h, size_t i, struct grants *g)
{
        struct held_node *n = &h->v[i];
        enum prepared_state state = prepared_state(h->agents, i);
        int fd;

        if (!n->waits || state == PREPARED_NOT_YET ||
            (state == PREPARED_READY && is_patient(n) && n->ordered && !n->warmed))
                return;
        n->waits = n->ordered = n->warmed = n->warm = false;
        fd = state == PREPARED_READY ? prepared_take(h->agents, i, n->user->number) : -1;
        json_array_append_new(fd < 0 ? g->absent : g->nodes, json_integer((json_int_t)n->number));
        if (fd >= 0)
                g->fds[g->n++] = fd;
        if (fd < 0)
                *n = (struct held_node){ 0 };
        if (g->n == HOLD_FDS_MAX)
                send_grants(g);
}

/* Gives the agent of node @i to the run that waits for the node. */
static void grant_waited(struct hold *h, size_t i)
{
        struct grants g = { .to = h->v[i].user };

        g.nodes = json_array();
        g.absent = json_array();
        grant_node(h, i, &g);
        send_grants(&g);
        json_decref(g.nodes);
        json_decref(g.absent);
}

static void on_agent_changed(void *ctx, size_t i)
{
        struct hold *h = ctx;

        h->v[i].ordered = h->v[i].warmed = h->v[i].warm = false;
        if (!h->v[i].user || is_patient(&h->v[i]))
                use_leisure(h, i);
        if (h->v[i].user)
                grant_waited(h, i);
}

static void on_spare_frame(void *ctx, size_t i, const struct frame *f)
{
        struct hold *h = ctx;
        const char *host = h->config.hosts->v[i].name;
        struct warmed m;

        if (f->type != MSG_WARMED || warmed_decode(&m, f, NULL) < 0)
                return;
        h->v[i].warmed = true;
        h->v[i].warm = m.slots;
        h->v[i].refused = *m.text;
        if (!*m.text)
                log_line(LOG_INFO, "%s: %u interpreters are prepared in %.1f s, with %u MiB each",
                         host, m.slots, m.ms / 1000.0, m.mib);
        else if (h->n_ready < h->config.hosts->n && !h->refusals[i])
                h->refusals[i] = xstrdup(m.text);
        if (h->v[i].user)
                grant_waited(h, i);
}

/* Lets the waiting runs start without prepared interpreters. */
static void on_patience_over(uv_timer_t *t)
{
        struct hold *h = t->data;

        for (struct hold_client *c = h->clients; c; c = c->next)
                c->patient = false;
        for (size_t i = 0; i < h->config.hosts->n; i++)
                if (h->v[i].user)
                        grant_waited(h, i);
}

/* Whether a run of @program may continue in prepared interpreters. */
static bool is_word_prepared(const struct hold *h, const char *program)
{
        return h->config.warm && program && !strcmp(program, h->config.warm->word);
}

static void send_agent_end(struct hold *h, size_t i, const struct link_failure *why);

/* Reports the end of an agent in the words of ssh, as the end of an agent started by a login is
 * reported. */
static void on_agent_ended(void *ctx, size_t i, uint64_t run, int status)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_ENDED };
        const struct hold_client *user = ((struct hold *)ctx)->v[i].user;
        int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

        if (signo)
                snprintf(why.fact, sizeof(why.fact), "the remote command was killed by SIG%s",
                         sigabbrev_np(signo));
        else
                snprintf(why.fact, sizeof(why.fact), "the remote command ended with exit code %d",
                         WEXITSTATUS(status));
        if (user && user->number == run)
                send_agent_end(ctx, i, &why);
}

/* Whether the run of a client is over, although the end was not noticed yet. */
static bool is_run_over(const struct hold_client *c)
{
        struct pollfd p = { .fd = client_fd(c), .events = POLLRDHUP };

        return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* Finds the hosts of a request. 0; or -1 with @ret_answer, the refusal. */
static int find_hosts(struct hold *h, const json_t *hosts, size_t *to, json_t **ret_answer)
{
        const json_t *host;
        size_t k;

        json_array_foreach(hosts, k, host)
        {
                const json_t *at = json_object_get(h->names, json_string_value(host));
                struct hold_client *user;

                to[k] = at ? (size_t)json_integer_value(at) : 0;
                user = at ? h->v[to[k]].user : NULL;
                if (user && is_run_over(user)) {
                        drop_hold_client(user);
                        user = NULL;
                }
                if (at && !user)
                        continue;
                *ret_answer = at ? json_pack("{s:s, s:O, s:s, s:i}", "used", user->run, "host",
                                             host, "hold", h->config.id, "pid", (int)getpid())
                                 : json_pack("{s:O}", "missing", host);
                return -1;
        }
        return 0;
}

/* Gives a run the agents of all hosts of the request, or refuses the request. */
static void give_nodes(struct hold_client *c, const json_t *request)
{
        struct hold *h = c->hold;
        const json_t *hosts = json_object_get(request, "hosts");
        const char *run = json_string_value(json_object_get(request, "run"));
        size_t n = json_array_size(hosts), *at;
        CLEANUP(free_textp)
        char *other =
                hold_match_difference(json_object_get(request, "settings"), h->config.settings);
        struct grants g = { .to = c };
        json_t *refusal = NULL;

        if (c->run || !run || !n || h->released) {
                refuse_client(c,
                              json_pack("{s:s}", "error",
                                        h->released ? "it was released" : "a malformed request"));
                return;
        }
        if (*other) {
                refuse_client(c, json_pack("{s:s}", "differs", other));
                return;
        }
        at = xcalloc(n, sizeof(*at));
        if (find_hosts(h, hosts, at, &refusal) < 0) {
                free(at);
                refuse_client(c, refusal);
                return;
        }
        c->run = xstrdup(run);
        h->n_runs++;
        uv_timer_stop(&h->idle);
        send_to_client(
                c,
                json_pack("{s:b, s:s, s:i}", "ok", 1, "hold", h->config.id, "pid", (int)getpid()),
                NULL, 0);
        g.nodes = json_array();
        g.absent = json_array();
        c->patient = is_word_prepared(h, json_string_value(json_object_get(request, "program")));
        if (c->patient)
                uv_timer_start(&h->patience, on_patience_over, PATIENCE_MS, 0);
        for (size_t k = 0; k < n && !uv_is_closing((uv_handle_t *)&c->pipe); k++) {
                h->v[at[k]].user = c;
                h->v[at[k]].number = k;
                h->v[at[k]].waits = true;
        }
        for (size_t k = 0; k < n && !uv_is_closing((uv_handle_t *)&c->pipe); k++)
                grant_node(h, at[k], &g);
        send_grants(&g);
        json_decref(g.nodes);
        json_decref(g.absent);
        free(at);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Returns the resident memory of this process in bytes, 0 = unknown. */
static int64_t own_memory(void)
{
        long pages = 0;
        FILE *f = fopen("/proc/self/statm", "re");

        if (f && fscanf(f, "%*d %ld", &pages) != 1)
                pages = 0;
        if (f)
                fclose(f);
        return pages * sysconf(_SC_PAGESIZE);
}

/* Returns the hold as `ps` shows it, a new reference. */
static json_t *describe_hold(const struct hold *h)
{
        int64_t now = clock_ns();
        json_t *hosts = json_array(), *runs = json_array();
        size_t ready = 0, warm = 0;

        for (size_t i = 0; i < h->config.hosts->n; i++) {
                CLEANUP(free_textp) char *name = hold_match_host(&h->config.hosts->v[i]);

                if (h->config.hosts->v[i].local)
                        continue;
                json_array_append_new(hosts, json_text(name));
                ready += h->nodes.out(h->nodes.ctx, i) != NULL;
                warm += h->v[i].warm;
        }
        for (const struct hold_client *c = h->clients; c; c = c->next)
                if (c->run)
                        json_array_append_new(runs, json_text(c->run));
        return json_pack(
                "{s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:O, s:b}", "hold", h->config.id,
                "pid", (int)getpid(), "hosts", hosts, "nodes_ready", (json_int_t)ready,
                "nodes_warm", (json_int_t)warm, "memory", (json_int_t)own_memory(), "us",
                (json_int_t)((now - h->config.start_ns) / 1000), "used_by", runs, "idle_left_ms",
                h->n_runs || h->config.idle_ms < 0
                        ? (json_int_t)-1
                        : (json_int_t)(h->config.idle_ms - (now - h->idle_ns) / 1000000),
                "settings", h->config.settings, "released", h->released);
}

static void release_hold(struct hold_client *c)
{
        struct hold *h = c->hold;
        json_t *answer = describe_hold(h);

        h->released = true;
        refuse_client(c, answer);
        begin_idle(h);
}

static void obey_client(struct hold_client *c, const json_t *request)
{
        const char *what = json_string_value(json_object_get(request, "do"));

        if (what && !strcmp(what, "take"))
                give_nodes(c, request);
        else if (what && !strcmp(what, "info"))
                refuse_client(c, describe_hold(c->hold));
        else if (what && !strcmp(what, "release"))
                release_hold(c);
        else
                refuse_client(c, json_pack("{s:s}", "error", "an unknown request"));
}

static void on_client_alloc(uv_handle_t *handle, size_t size UNUSED, uv_buf_t *ret)
{
        struct hold_client *c = handle->data;
        char *room = buf_len(&c->in) < REQUEST_MAX ? buf_reserve(&c->in, READ_SIZE) : NULL;

        *ret = uv_buf_init(room, room ? READ_SIZE : 0);
}

/* Reads the request of a client. Nothing follows a request but the end of the connection. */
static void on_client_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b UNUSED)
{
        struct hold_client *c = s->data;
        const unsigned char *end;
        json_t *request;
        size_t len;

        if (n < 0) {
                drop_hold_client(c);
                return;
        }
        buf_advance(&c->in, (size_t)n);
        end = memchr(buf_data(&c->in), '\n', buf_len(&c->in));
        if (!end)
                return;
        len = (size_t)(end - buf_data(&c->in)) + 1;
        request = json_loadb((const char *)buf_data(&c->in), len, 0, NULL);
        buf_finish(&c->in);
        obey_client(c, request);
        json_decref(request);
}

static bool is_of_user(const struct hold_client *c)
{
        struct ucred peer;
        socklen_t len = sizeof(peer);

        return getsockopt(client_fd(c), SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
               peer.uid == geteuid();
}

static void on_hold_connection(uv_stream_t *listener, int status)
{
        struct hold *h = listener->data;
        struct hold_client *c;

        if (status < 0)
                return;
        c = xcalloc(1, sizeof(*c));
        c->hold = h;
        c->number = ++h->last_number;
        c->pipe.data = c;
        uv_pipe_init(h->loop, &c->pipe, 0);
        h->open++;
        c->next = h->clients;
        h->clients = c;
        h->n_clients++;
        if (uv_accept(listener, (uv_stream_t *)&c->pipe) < 0 || !is_of_user(c) ||
            h->n_clients > CLIENTS_MAX ||
            uv_read_start((uv_stream_t *)&c->pipe, on_client_alloc, on_client_read) < 0)
                drop_hold_client(c);
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* Lists the hosts of the hold: all but this machine. */
static json_t *list_held_hosts(const struct hosts *hosts, json_t *list)
{
        json_t *names = json_object();

        for (size_t i = 0; i < hosts->n; i++) {
                CLEANUP(free_textp) char *name = hold_match_host(&hosts->v[i]);

                if (hosts->v[i].local)
                        continue;
                json_object_set_new(names, name, json_integer((json_int_t)i));
                json_array_append_new(list, json_text(name));
        }
        return names;
}

/* Refuses to listen where another hold of the same hosts and settings has given @answer. */
static int refuse_second(const json_t *answer, struct error *err)
{
        const char *id = json_member(answer, "hold");
        const char *run = json_string_value(json_array_get(json_object_get(answer, "used_by"), 0));

        if (!json_is_true(json_object_get(answer, "released"))) {
                err_set(err, EADDRINUSE,
                        "cannot make a hold: hold %s has the same hosts and settings", id);
                err_help(err, "runs on these hosts start on it; hnlaunch release %s ends it", id);
        } else if (run) {
                err_set(err, EADDRINUSE,
                        "cannot make a hold: hold %s was released and ends with run %s", id, run);
                err_help(err, "hnlaunch wait %s, and then hnlaunch hold again", run);
        } else {
                err_set(err, EADDRINUSE, "cannot make a hold: hold %s was released and is ending",
                        id);
                err_help(err, "hnlaunch hold again when hnlaunch ps lists it no more");
        }
        err->number = HN_HOLD_EXISTS;
        return -EADDRINUSE;
}

/* Listens at @path, unless another hold listens there. 0 or -errno with @err. */
static int listen_for_runs(struct hold *h, const char *key, struct error *err)
{
        json_t *other = NULL;
        int fd =
                hold_socket_ask(h->path, json_pack("{s:s}", "do", "info"), &other, NULL, NULL, err);
        int r;

        if (fd >= 0) {
                r = refuse_second(other, err);
                json_decref(other);
                fd_close(fd);
                return r;
        }
        if (err->code == ECONNREFUSED) {
                unlink(h->path);
                /* Removing the last stale socket removes the folder, so make it again. */
                free(hold_socket_path(key, true, err));
        }
        r = uv_pipe_bind(&h->listener, h->path);
        if (r == UV_EADDRINUSE && hold_socket_tell_silent(h->path, err) < 0)
                return -EADDRINUSE;
        if (r == 0)
                r = uv_listen((uv_stream_t *)&h->listener, BACKLOG, on_hold_connection);
        return r < 0 ? err_set(err, -r, "cannot listen at %s: %s", h->path, strerror(-r)) : 0;
}

static void on_hold_handle_closed(uv_handle_t *handle)
{
        unref_hold(handle->data);
}

struct hold *hold_open(uv_loop_t *loop, const struct hold_nodes *nodes, const struct hold_config *c,
                       struct error *err)
{
        static const struct prepared_ops ops = { .changed = on_agent_changed,
                                                 .ended = on_agent_ended,
                                                 .frame = on_spare_frame };
        struct hold *h = xcalloc(1, sizeof(*h));
        json_t *list = json_array();
        CLEANUP(free_textp) char *key = NULL;

        *h = (struct hold){ .config = *c, .loop = loop, .nodes = *nodes, .open = 4 };
        h->names = list_held_hosts(c->hosts, list);
        h->v = xcalloc(c->hosts->n, sizeof(*h->v));
        h->refusals = xcalloc(c->hosts->n, sizeof(*h->refusals));
        h->agents = prepared_create(loop, nodes, c->hosts->n, &ops, h);
        uv_pipe_init(loop, &h->listener, 0);
        uv_timer_init(loop, &h->idle);
        uv_timer_init(loop, &h->patience);
        h->listener.data = h->idle.data = h->patience.data = h;
        key = hold_match_key(c->settings, list);
        json_decref(list);
        h->path = hold_socket_path(key, true, err);
        if (!h->path || listen_for_runs(h, key, err) < 0) {
                free(h->path);
                h->path = NULL; /* the socket of another hold */
                hold_close(h);
                hold_free(h);
                return NULL;
        }
        for (size_t i = 0; i < c->hosts->n; i++)
                if (!c->hosts->v[i].local)
                        prepared_begin(h->agents, i);
        begin_idle(h);
        return h;
}

/* Whether node @i has an agent, with interpreters if wanted, or will have none. */
static bool is_node_settled(const struct hold *h, size_t i)
{
        enum prepared_state state = prepared_state(h->agents, i);

        if (h->config.hosts->v[i].local || state == PREPARED_NEVER || state == PREPARED_SILENT)
                return true;
        return state == PREPARED_READY && (!h->config.warm || h->v[i].warmed || h->v[i].user);
}

/* Returns the best state of all nodes; a node that serves a run counts as ready. */
static enum prepared_state best_state(const struct hold *h)
{
        enum prepared_state best = PREPARED_NEVER;

        for (size_t i = 0; i < h->config.hosts->n; i++)
                if (!h->config.hosts->v[i].local)
                        best = MAX(best,
                                   h->v[i].user ? PREPARED_READY : prepared_state(h->agents, i));
        return best;
}

bool hold_is_ready(struct hold *h)
{
        while (h->n_ready < h->config.hosts->n && is_node_settled(h, h->n_ready))
                h->n_ready++;
        if (h->n_ready < h->config.hosts->n || best_state(h) != PREPARED_READY)
                return false;
        hold_warn_refusals(&h->config, h->refusals);
        return true;
}

bool hold_is_useless(const struct hold *h)
{
        return h->n_ready == h->config.hosts->n && best_state(h) == PREPARED_NEVER;
}

int hold_receive(struct hold *h, size_t i, const struct frame *f, struct error *err)
{
        return prepared_receive(h->agents, i, f, err);
}

/* Tells the run of node @i how the link to the agent has ended. */
static void send_agent_end(struct hold *h, size_t i, const struct link_failure *why)
{
        send_to_client(h->v[i].user,
                       json_pack("{s:I, s:o, s:i, s:i, s:b}", "lost", (json_int_t)h->v[i].number,
                                 "fact", json_text(why->fact), "cause", (int)why->cause, "phase",
                                 (int)why->phase, "one_sided", why->one_sided),
                       NULL, 0);
}

void hold_lose_node(struct hold *h, size_t i, const struct link_failure *why)
{
        static const struct link_failure unknown = { .phase = LINK_OPEN,
                                                     .cause = LINK_ENDED,
                                                     .fact = "connection lost" };

        /* The reason first: the end of the stream brings none. */
        if (h->v[i].user && !h->v[i].waits)
                send_agent_end(h, i, why ? why : &unknown);
        prepared_lost(h->agents, i);
}

void hold_close(struct hold *h)
{
        if (h->closing)
                return;
        h->closing = true;
        for (size_t i = 0; i < h->config.hosts->n; i++)
                free(STEAL(&h->refusals[i]));
        if (h->path)
                unlink(h->path);
        if (h->path) {
                CLEANUP(free_textp) char *folder = hold_socket_folder();

                /* Succeeds in the last hold only: the folders are empty then. */
                if (rmdir(folder) == 0) {
                        *strrchr(folder, '/') = '\0';
                        rmdir(folder);
                }
        }
        while (h->clients)
                drop_hold_client(h->clients);
        uv_close((uv_handle_t *)&h->listener, on_hold_handle_closed);
        uv_close((uv_handle_t *)&h->idle, on_hold_handle_closed);
        uv_close((uv_handle_t *)&h->patience, on_hold_handle_closed);
        prepared_close(h->agents);
}

void hold_free(struct hold *h)
{
        prepared_destroy(h->agents);
        h->agents = NULL;
        unref_hold(h);
}
