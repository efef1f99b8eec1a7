/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peers.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/strv.h"

enum { EVENTS = 512, READ_SIZE = 256 << 10 };

static int connect_to(const char *name)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s", name);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
                return fd;
        if (fd >= 0)
                close(fd);
        return -1;
}

bool peers_connect(struct peers *ps, const char *name, uint32_t n)
{
        ps->n = n;
        ps->v = xcalloc(n, sizeof(*ps->v));
        ps->touched = xcalloc(n, sizeof(*ps->touched));
        ps->epoll = epoll_create1(EPOLL_CLOEXEC);
        for (uint32_t i = 0; i < n; i++) {
                struct epoll_event e = { .events = EPOLLIN, .data.u32 = i };

                ps->v[i].index = i;
                ps->v[i].fd = connect_to(name);
                if (ps->v[i].fd < 0 || epoll_ctl(ps->epoll, EPOLL_CTL_ADD, ps->v[i].fd, &e) < 0)
                        return false;
        }
        return true;
}

void peers_touch(struct peers *ps, struct peer *p)
{
        if (p->touched)
                return;
        p->touched = true;
        ps->touched[ps->n_touched++] = p->index;
}

void peers_leave(struct peers *ps, struct peer *p)
{
        epoll_ctl(ps->epoll, EPOLL_CTL_DEL, p->fd, NULL);
        shutdown(p->fd, SHUT_WR);
        buf_clear(&p->out);
}

static void wants_room(struct peers *ps, struct peer *p, bool wants)
{
        struct epoll_event e = { .events = EPOLLIN | (wants ? EPOLLOUT : 0), .data.u32 = p->index };

        if (p->wants_room == wants)
                return;
        p->wants_room = wants;
        epoll_ctl(ps->epoll, EPOLL_CTL_MOD, p->fd, &e);
        ps->n_unwritten += wants ? 1 : -1u;
}

static bool write_out(struct peers *ps, struct peer *p)
{
        ssize_t n = 0;

        while (buf_len(&p->out) && n >= 0) {
                n = send(p->fd, buf_data(&p->out), buf_len(&p->out), MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n > 0) {
                        p->written += (size_t)n;
                        buf_consume(&p->out, (size_t)n);
                }
        }
        if (n < 0 && errno != EAGAIN)
                return false;
        wants_room(ps, p, buf_len(&p->out) > 0);
        return true;
}

/* Reads into the shared room; only what is left of it becomes the peer's own. */
static bool read_in(struct peers *ps, struct peer *p)
{
        bool own = buf_len(&p->in) > 0;
        struct buf *to = own ? &p->in : &ps->room;
        void *room = buf_reserve(to, READ_SIZE);
        ssize_t n = room ? recv(p->fd, room, READ_SIZE, MSG_DONTWAIT) : -1;

        if (n < 0 && errno == EAGAIN)
                return true;
        if (n <= 0)
                return false;
        buf_advance(to, (size_t)n);
        p->read += (size_t)n;
        if (!own) {
                struct buf was = p->in;

                p->in = ps->room;
                ps->room = was;
        }
        ps->ops.arrived(ps->ctx, p);
        if (buf_len(&p->in) == 0) {
                buf_finish(&ps->room);
                ps->room = p->in;
                p->in = (struct buf)BUF_INIT;
        }
        peers_touch(ps, p);
        return true;
}

static bool end_turn(struct peers *ps)
{
        for (uint32_t i = 0; i < ps->n_touched; i++) {
                struct peer *p = &ps->v[ps->touched[i]];

                if (ps->ops.turn)
                        ps->ops.turn(ps->ctx, p);
                p->touched = false;
                if (!p->wants_room && buf_len(&p->out))
                        p->writes++;
                if (!write_out(ps, p))
                        return false;
        }
        ps->n_touched = 0;
        return true;
}

bool peers_run(struct peers *ps)
{
        struct epoll_event events[EVENTS];

        for (;;) {
                int sleep_ms = ps->ops.next(ps->ctx), n;

                if (!end_turn(ps))
                        return false;
                if (sleep_ms == -2 && !ps->n_unwritten)
                        return true;
                n = epoll_wait(ps->epoll, events, EVENTS, sleep_ms < 0 ? -1 : sleep_ms);
                for (int i = 0; i < n; i++) {
                        struct peer *p = &ps->v[events[i].data.u32];

                        if (events[i].events & EPOLLOUT)
                                peers_touch(ps, p);
                        if (events[i].events & ~(unsigned)EPOLLOUT && !read_in(ps, p))
                                return false;
                }
        }
}
