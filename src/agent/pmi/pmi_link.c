/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers are written at once: a client has one question at a time and the answer is smaller than
 * the socket's buffer, so a client whose socket is full does not read and loses its connection.
 * Closing is deferred by libuv; the object is freed with the last handle.
 */
#include "agent/pmi/pmi_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/pmi/pmi.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"

enum {
        FIRST_FD = 20, /* scripts use numbers below 10, shells those from 10 on */
        READ_SIZE = 16 << 10,
        LAST_WORDS = 64, /* reads of what an ended rank has sent */
        MAPPING_SIZE = 1024,
};

struct pmi_conn {
        uv_pipe_t pipe; /* .data = this */
        struct pmi_link *link;
        uint32_t index, rank;
        bool open;
        uint64_t heard_ns; /* 0 = never */
};

struct pmi_link {
        uv_loop_t *loop;
        struct pmi *pmi; /* NULL: being destroyed */
        uint32_t *node_of_rank, *ranks;
        struct pmi_conn *conns;
        uint32_t n_ranks;
        unsigned handles; /* not closed yet, and 1 until pmi_link_destroy() */
        char buffer[READ_SIZE];
};

static void unref_pmi_link(struct pmi_link *link)
{
        if (--link->handles > 0)
                return;
        free(link->node_of_rank);
        free(link->ranks);
        free(link->conns);
        free(link);
}

static void on_pmi_closed(uv_handle_t *h)
{
        const struct pmi_conn *c = h->data;

        unref_pmi_link(c->link);
}

static void close_pmi_conn(struct pmi_conn *c)
{
        if (!c->open)
                return;
        c->open = false;
        uv_close((uv_handle_t *)&c->pipe, on_pmi_closed);
}

static void send_to_pmi_client(void *ctx, uint32_t index, const void *bytes, size_t len)
{
        struct pmi_link *link = ctx;
        struct pmi_conn *c = &link->conns[index];
        uv_buf_t piece = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)len);

        if (c->open && uv_try_write((uv_stream_t *)&c->pipe, &piece, 1) != (int)len)
                close_pmi_conn(c);
}

/* Hands bytes to the engine; a rank that breaks a rule loses its connection. */
static void take_pmi_bytes(struct pmi_conn *c, const void *bytes, size_t len)
{
        struct error err;

        c->heard_ns = uv_now(c->link->loop) * 1000000;
        if (pmi_receive(c->link->pmi, c->index, bytes, len, &err) == 0)
                return;
        log_line(LOG_WARN, "closed the PMI connection of rank %u: %s [HN%d]", c->rank, err.text,
                 HN_PMI_BROKEN);
        close_pmi_conn(c);
}

static void on_pmi_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct pmi_conn *c = h->data;

        *ret = uv_buf_init(c->link->buffer, READ_SIZE);
}

static void on_pmi_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from)
{
        struct pmi_conn *c = s->data;

        if (n > 0)
                take_pmi_bytes(c, from->base, (size_t)n);
        else if (n < 0) /* its process, if it ends, is reported first: pmi_link_end() */
                close_pmi_conn(c);
}

static struct pmi_conn *find_pmi_conn(struct pmi_link *link, uint32_t rank)
{
        for (uint32_t i = 0; i < link->n_ranks; i++)
                if (link->conns[i].rank == rank)
                        return &link->conns[i];
        return NULL;
}

int pmi_link_open(struct pmi_link *link, uint32_t rank)
{
        struct pmi_conn *c = find_pmi_conn(link, rank);
        int fds[2], theirs, error;

        if (!c || c->open)
                return -EINVAL;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        theirs = fcntl(fds[1], F_DUPFD_CLOEXEC, FIRST_FD);
        error = errno;
        close(fds[1]);
        if (theirs < 0) {
                close(fds[0]);
                return -error;
        }
        fcntl(theirs, F_SETFL, fcntl(theirs, F_GETFL) & ~O_NONBLOCK); /* clients expect to wait */
        uv_pipe_init(link->loop, &c->pipe, 0);
        c->pipe.data = c;
        c->open = true;
        link->handles++;
        error = uv_pipe_open(&c->pipe, fds[0]);
        if (error < 0) {
                close(fds[0]);
                close(theirs);
                close_pmi_conn(c);
                return error;
        }
        uv_read_start((uv_stream_t *)&c->pipe, on_pmi_alloc, on_pmi_read);
        return theirs;
}

void pmi_link_each(const struct pmi_link *link,
                   void (*fn)(void *ctx, const struct pmi_link_state *state), void *ctx)
{
        for (uint32_t i = 0; i < link->n_ranks; i++) {
                const struct pmi_conn *c = &link->conns[i];

                if (c->open && c->heard_ns)
                        fn(ctx, &(struct pmi_link_state){ c->rank, c->heard_ns,
                                                          pmi_waits_for(link->pmi, i) });
        }
}

/* Reads what is in the socket now. */
static void catch_up_pmi(struct pmi_conn *c)
{
        char bytes[READ_SIZE];
        uv_os_fd_t fd;
        ssize_t n = 1;

        for (int i = 0; i < LAST_WORDS && n > 0 && c->open; i++) {
                if (uv_fileno((uv_handle_t *)&c->pipe, &fd) < 0)
                        return;
                n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
                if (n > 0)
                        take_pmi_bytes(c, bytes, (size_t)n);
        }
}

enum rank_mpi pmi_link_end(struct pmi_link *link, uint32_t rank)
{
        struct pmi_conn *c = find_pmi_conn(link, rank);

        if (!c)
                return RANK_MPI_UNUSED;
        catch_up_pmi(c);
        close_pmi_conn(c);
        pmi_left(link->pmi, c->index);
        return pmi_is_unfinished(link->pmi, c->index) ? RANK_MPI_UNFINALIZED
               : pmi_is_unused(link->pmi, c->index)   ? RANK_MPI_UNUSED
                                                      : RANK_MPI_FINALIZED;
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

struct pmi_link *pmi_link_create(uv_loop_t *loop, struct relay *relay, const struct launch_order *l,
                                 struct error *err)
{
        struct pmi_link *link = xcalloc(1, sizeof(*link));
        struct pmi_config config = { .relay = relay, .n_ranks = l->n_ranks, .job = l->run_id };
        char mapping[MAPPING_SIZE];

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
        link->ranks = xcalloc(l->n_ranks, sizeof(*link->ranks));
        link->conns = xcalloc(l->n_ranks, sizeof(*link->conns));
        for (uint32_t i = 0; i < l->n_ranks; i++) {
                link->ranks[i] = l->ranks[i].rank;
                link->conns[i] =
                        (struct pmi_conn){ .link = link, .index = i, .rank = l->ranks[i].rank };
        }
        config.world = (struct fence_world){ link->node_of_rank, l->world_size, l->num_nodes,
                                             l->node_rank };
        config.ranks = link->ranks;
        config.mapping = mapping;
        config.only_version1 = l->mpi.kind == MPI_PMI1;
        link->pmi = pmi_create(&config, (struct pmi_ops){ send_to_pmi_client }, link);
        if (link->pmi)
                return link;
        unref_pmi_link(link);
        err_set(err, ENOMEM, "out of memory");
        return NULL;
}

void pmi_link_destroy(struct pmi_link *link)
{
        if (!link)
                return;
        for (uint32_t i = 0; i < link->n_ranks; i++)
                close_pmi_conn(&link->conns[i]);
        pmi_destroy(link->pmi);
        link->pmi = NULL;
        unref_pmi_link(link);
}
