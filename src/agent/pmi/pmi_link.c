/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers are written at once: a client has one question at a time and the answer is smaller than
 * the socket's buffer, so a full socket shows a client that does not read; the client loses its
 * connection. Closing is deferred by libuv; the last handle frees the object.
 *
 * A connection is the agent's end of a socket pair, or was accepted at the port (pmi_port.h). A
 * rank has one connection at a time; at the port, a program that finalized makes room for the next.
 */
#include "agent/pmi/pmi_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/pmi/pmi.h"
#include "agent/pmi/pmi_port.h"
#include "base/error_number.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"

enum {
        FIRST_FD = 20, /* scripts use numbers below 10, shells from 10 on */
        READ_SIZE = 16 << 10,
        LAST_WORDS = 64, /* reads of the remaining bytes of an ended rank */
        LATE_MS = 1000,  /* a wait for another rank of the node is shown to the head */
        MAPPING_SIZE = 1024,
};

struct pmi_conn {
        union {
                uv_handle_t handle; /* .data = this */
                uv_stream_t stream;
                uv_pipe_t pipe;
                uv_tcp_t tcp;
        };
        struct pmi_client *client;
};

/* A rank. */
struct pmi_client {
        struct pmi_link *link;
        struct pmi_conn *conn; /* NULL = not connected */
        uint32_t index, rank;
        uint64_t heard_ns; /* 0 = never */
};

struct pmi_link {
        uv_loop_t *loop;
        struct pmi *pmi; /* NULL: being destroyed */
        uv_timer_t late; /* runs while a rank of this node waits, see on_late() */
        uint32_t *node_of_rank, *ranks, *programs; /* lent to the engine, so freed last */
        struct pmi_client *clients;
        struct pmi_port *port; /* NULL: the ranks inherit descriptors */
        uint32_t n_ranks;
        unsigned handles;              /* not closed yet, and 1 until pmi_link_destroy() */
        char address[INET_ADDRSTRLEN]; /* this node towards rank 0's; "" = not known, or one node */
};

/* Every handle and the owner hold a reference; the last reference frees. */
static void unref_pmi_link(struct pmi_link *link)
{
        if (--link->handles > 0)
                return;
        free(link->node_of_rank);
        free(link->ranks);
        free(link->programs);
        free(link->clients);
        free(link);
}

static void on_late_closed(uv_handle_t *h)
{
        unref_pmi_link(h->data);
}

static void on_pmi_closed(uv_handle_t *h)
{
        struct pmi_conn *c = h->data;

        unref_pmi_link(c->client->link);
        free(c);
}

static void disconnect_client(struct pmi_client *k)
{
        if (!k->conn)
                return;
        uv_close(&k->conn->handle, on_pmi_closed);
        k->conn = NULL;
}

/* Runs as long as a rank waits for ranks of this node. */
static void on_late(uv_timer_t *t)
{
        struct pmi_link *link = t->data;

        if (!pmi_show_waits(link->pmi))
                uv_timer_stop(t);
}

static void send_to_pmi_client(void *ctx, uint32_t index, const void *bytes, size_t len)
{
        struct pmi_link *link = ctx;
        struct pmi_client *k = &link->clients[index];
        uv_buf_t piece = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)len);

        /* A short write counts as a full socket, too. */
        if (k->conn && uv_try_write(&k->conn->stream, &piece, 1) != (int)len)
                disconnect_client(k);
}

/* Hands bytes to the engine. A rank loses its connection by breaking a rule. */
static void take_pmi_bytes(struct pmi_client *k, const void *bytes, size_t len)
{
        struct pmi_link *link = k->link;
        struct error err;

        k->heard_ns = uv_now(link->loop) * 1000000;
        if (pmi_receive(link->pmi, k->index, bytes, len, &err) == 0) {
                if (pmi_waits_for(link->pmi, k->index) && !uv_is_active((uv_handle_t *)&link->late))
                        uv_timer_start(&link->late, on_late, LATE_MS, LATE_MS);
                return;
        }
        log_warning(HN_PMI_BROKEN, "closed the PMI connection of rank %u: %s", k->rank, err.text);
        disconnect_client(k);
}

static void on_pmi_alloc(uv_handle_t *h UNUSED, size_t suggested UNUSED, uv_buf_t *ret)
{
        static char buffer[READ_SIZE]; /* used until on_pmi_read() returns */

        *ret = uv_buf_init(buffer, READ_SIZE);
}

static void on_pmi_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from)
{
        struct pmi_conn *c = s->data;

        if (n > 0)
                take_pmi_bytes(c->client, from->base, (size_t)n);
        else if (n < 0) /* an end of the process is reported first: pmi_link_end() */
                disconnect_client(c->client);
}

static struct pmi_client *find_pmi_client(struct pmi_link *link, uint32_t rank)
{
        for (uint32_t i = 0; i < link->n_ranks; i++)
                if (link->clients[i].rank == rank)
                        return &link->clients[i];
        return NULL;
}

/* Makes the socket @fd the connection of the rank; closes @fd on failure. */
static int connect_client(struct pmi_client *k, int fd, bool is_tcp)
{
        struct pmi_conn *c = xcalloc(1, sizeof(*c));
        int r;

        c->client = k;
        if (is_tcp)
                uv_tcp_init(k->link->loop, &c->tcp);
        else
                uv_pipe_init(k->link->loop, &c->pipe, 0);
        c->handle.data = c;
        k->conn = c;
        k->link->handles++;
        r = is_tcp ? uv_tcp_open(&c->tcp, fd) : uv_pipe_open(&c->pipe, fd);
        if (r < 0) {
                close(fd);
                disconnect_client(k);
                return r;
        }
        return uv_read_start(&c->stream, on_pmi_alloc, on_pmi_read);
}

/* --- descriptors that ranks inherit ----------------------------------------------------------- */

/* Returns the rank's end of a new connection. */
static int open_pair(struct pmi_client *k)
{
        int fds[2], theirs, r = 0;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        theirs = fds[1];
        if (theirs < FIRST_FD) {
                theirs = fcntl(fds[1], F_DUPFD_CLOEXEC, FIRST_FD);
                if (theirs < 0) /* EINVAL: the limit does not reach as far as FIRST_FD */
                        r = errno == EINVAL ? -EMFILE : -errno;
                close(fds[1]);
        }
        if (r < 0) {
                close(fds[0]);
                return r;
        }
        r = connect_client(k, fds[0], false);
        if (r < 0)
                close(theirs);
        return r < 0 ? r : theirs;
}

int pmi_link_open(struct pmi_link *link, uint32_t rank, struct strv *env, int *ret_fd)
{
        struct pmi_client *k = find_pmi_client(link, rank);
        int fd;

        *ret_fd = -1;
        if (!k || k->conn) /* a rank of another order, or opened already */
                return -EINVAL;
        if (*link->address && !strv_env_get(env, "PMI_HOSTNAME"))
                strv_env_set(env, "PMI_HOSTNAME", link->address);
        if (link->port) {
                strv_env_setf(env, "PMI_PORT", "127.0.0.1:%u", pmi_port_number(link->port));
                return 0;
        }
        fd = open_pair(k);
        if (fd < 0)
                return fd;
        *ret_fd = fd;
        strv_env_setf(env, "PMI_FD", "%d", fd);
        return 0;
}

void pmi_link_each(const struct pmi_link *link,
                   void (*fn)(void *ctx, const struct pmi_link_state *state), void *ctx)
{
        for (uint32_t i = 0; i < link->n_ranks; i++) {
                const struct pmi_client *k = &link->clients[i];

                if (k->conn && k->heard_ns)
                        fn(ctx, &(struct pmi_link_state){ k->rank, k->heard_ns,
                                                          pmi_waits_for(link->pmi, i) });
        }
}

/* Reads the bytes in the socket now. */
static void catch_up_pmi(struct pmi_client *k)
{
        char bytes[READ_SIZE];
        uv_os_fd_t fd;
        ssize_t n = 1;

        /* A limit, because another process with the same socket may go on writing. */
        for (int i = 0; i < LAST_WORDS && n > 0 && k->conn; i++) {
                if (uv_fileno(&k->conn->handle, &fd) < 0)
                        return;
                n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
                if (n > 0)
                        take_pmi_bytes(k, bytes, (size_t)n);
                else if (n == 0)
                        disconnect_client(k);
        }
}

bool pmi_link_is_unused(const struct pmi_link *link, uint32_t rank)
{
        for (uint32_t i = 0; i < link->n_ranks; i++)
                if (link->clients[i].rank == rank)
                        return pmi_is_unused(link->pmi, link->clients[i].index);
        return true;
}

enum rank_mpi pmi_link_end(struct pmi_link *link, uint32_t rank)
{
        struct pmi_client *k = find_pmi_client(link, rank);

        if (!k)
                return RANK_MPI_UNUSED;
        /* First: an abort or a finalize may be unread when the process has ended. */
        catch_up_pmi(k);
        disconnect_client(k);
        pmi_left(link->pmi, k->index);
        return pmi_is_unfinished(link->pmi, k->index) ? RANK_MPI_UNFINALIZED
               : pmi_is_unused(link->pmi, k->index)   ? RANK_MPI_UNUSED
                                                      : RANK_MPI_FINALIZED;
}

/* Takes a connection at the port. An older connection of the rank gives way if its program has
 * finalized, or if the other end is closed. */
static int claim_rank(void *ctx, int fd, char *line, size_t len, struct error *why)
{
        struct pmi_link *link = ctx;
        int index = pmi_parse_claim(link->pmi, line, len, why), r;
        struct pmi_client *k;

        if (index < 0)
                return index;
        k = &link->clients[index];
        /* The program before may have finalized without being read yet. */
        catch_up_pmi(k);
        if (!pmi_may_begin(link->pmi, k->index) || (k->conn && pmi_is_unused(link->pmi, k->index)))
                return err_set(why, EBUSY, "rank %u is served already", k->rank);
        disconnect_client(k);
        r = connect_client(k, fd, true);
        if (r < 0)
                log_line(LOG_WARN, "cannot serve rank %u at PMI_PORT: %s", k->rank, strerror(-r));
        else
                pmi_begin(link->pmi, k->index);
        return 0;
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* The map and the ranks of the order must name the same ranks for this node. */
static bool is_map_of_order(const struct pmi_link *link, const struct launch_order *l)
{
        uint32_t n = 0;

        for (uint32_t i = 0; link->node_of_rank && i < l->world_size; i++)
                n += link->node_of_rank[i] == l->node_rank;
        for (uint32_t i = 0; i < l->n_ranks; i++)
                if (n != l->n_ranks || l->ranks[i].rank >= l->world_size ||
                    link->node_of_rank[l->ranks[i].rank] != l->node_rank)
                        return false;
        return n;
}

/* Finds the address from which this node reaches @to, by the node's routes; no packet is sent. Only
 * IPv4: by default, MPICH resolves a name as IPv4. */
static void find_own_address(const char *to, char *ret, size_t size)
{
        /* Any port will do: connect() of UDP only looks for a route. */
        struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(9) };
        socklen_t len = sizeof(addr);
        int fd = -1;

        if (inet_pton(AF_INET, to, &addr.sin_addr) == 1)
                fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
            getsockname(fd, (struct sockaddr *)&addr, &len) == 0)
                inet_ntop(AF_INET, &addr.sin_addr, ret, (socklen_t)size);
        close(fd);
}

static void add_clients(struct pmi_link *link, const struct launch_order *l)
{
        link->ranks = xcalloc(l->n_ranks, sizeof(*link->ranks));
        link->programs = xcalloc(l->n_ranks, sizeof(*link->programs));
        link->clients = xcalloc(l->n_ranks, sizeof(*link->clients));
        for (uint32_t i = 0; i < l->n_ranks; i++) {
                link->ranks[i] = l->ranks[i].rank;
                link->programs[i] = l->ranks[i].program;
                link->clients[i] =
                        (struct pmi_client){ .link = link, .index = i, .rank = l->ranks[i].rank };
        }
}

struct pmi_link *pmi_link_create(uv_loop_t *loop, struct relay *relay, const struct launch_order *l,
                                 struct error *err)
{
        struct pmi_link *link = xcalloc(1, sizeof(*link));
        char mapping[MAPPING_SIZE], name[WORLD_NAME_MAX];
        struct pmi_config config = { .relay = relay, .n_ranks = l->n_ranks, .job = name };

        launch_order_world_name(l, name);
        link->loop = loop;
        link->handles = 1;
        link->n_ranks = l->n_ranks;
        link->node_of_rank = node_map_expand(&l->mpi.map, l->world_size, l->num_nodes);
        if (!is_map_of_order(link, l)) {
                unref_pmi_link(link);
                err_set(err, EINVAL, "an order whose map of ranks and nodes is wrong");
                return NULL;
        }
        node_map_text(&l->mpi.map, mapping, sizeof(mapping));
        add_clients(link, l);
        if (l->num_nodes > 1)
                find_own_address(l->first_node.addr, link->address, sizeof(link->address));
        config.world = (struct fence_world){ link->node_of_rank, l->world_size, l->num_nodes,
                                             l->node_rank };
        config.ranks = link->ranks;
        config.programs = link->programs;
        config.mapping = mapping;
        config.only_version1 = l->mpi.kind == MPI_PMI1 || l->mpi.kind == MPI_PMI_PORT;
        uv_timer_init(loop, &link->late);
        link->late.data = link;
        link->pmi = pmi_create(&config, (struct pmi_ops){ send_to_pmi_client }, link);
        if (!link->pmi)
                err_set(err, ENOMEM, "out of memory");
        else if (l->mpi.kind == MPI_PMI_PORT)
                link->port = pmi_port_open(loop, (struct pmi_port_ops){ claim_rank }, link, err);
        if (link->pmi && (link->port || l->mpi.kind != MPI_PMI_PORT))
                return link;
        pmi_link_destroy(link);
        return NULL;
}

void pmi_link_destroy(struct pmi_link *link)
{
        if (!link)
                return;
        pmi_port_close(link->port);
        for (uint32_t i = 0; i < link->n_ranks; i++)
                disconnect_client(&link->clients[i]);
        pmi_destroy(link->pmi);
        link->pmi = NULL; /* close callbacks come later */
        uv_close((uv_handle_t *)&link->late, on_late_closed);
}
