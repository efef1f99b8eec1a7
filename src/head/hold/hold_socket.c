/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel delivers the descriptors of a line with the bytes of the line, or before these bytes:
 * the receiver has a queue for bytes and a queue for descriptors. The folder is checked when a hold
 * is made and when a hold is found: every user may write in /tmp.
 */
#include "head/hold/hold_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/run/run_folders.h"

enum { READ_SIZE = 16 << 10, ANSWER_MAX = 16 << 20 };

static const char name_end[] = ".sock";

char *hold_socket_folder(void)
{
        CLEANUP(free_textp) char *sockets = run_folders_sockets_path();

        return xasprintf("%s/holds", sockets);
}

char *hold_socket_path(const char *key, bool make, struct error *err)
{
        CLEANUP(free_textp) char *folder = hold_socket_folder();

        return run_folders_own(folder, make, err) < 0 ? NULL
                                                      : xasprintf("%s/%s%s", folder, key, name_end);
}

void hold_socket_list(struct strv *to)
{
        CLEANUP(free_textp) char *folder = hold_socket_folder();
        size_t end = sizeof(name_end) - 1;
        struct error err;
        struct dirent *e;
        DIR *dir;

        if (access(folder, F_OK) < 0 || run_folders_own(folder, false, &err) < 0)
                return;
        dir = opendir(folder);
        while (dir && (e = readdir(dir))) {
                size_t len = strlen(e->d_name);

                if (*e->d_name != '.' && len > end && !strcmp(e->d_name + len - end, name_end))
                        strv_pushf(to, "%s/%s", folder, e->d_name);
        }
        if (dir)
                closedir(dir);
}

/* Connects. A socket without a listener belongs to a killed hold, unless the socket is young. */
static int connect_hold(const char *path, struct error *err)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;
        struct stat st;

        if (strlen(path) >= sizeof(to.sun_path)) {
                fd_close(fd);
                return err_set(err, ENAMETOOLONG, "the path of the socket is too long: %s", path);
        }
        memcpy(to.sun_path, path, strlen(path));
        if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
                return fd;
        r = errno;
        fd_close(fd);
        if (r == ECONNREFUSED && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
            time(NULL) - st.st_ctime > 1) {
                CLEANUP(free_textp) char *folder = hold_socket_folder();

                unlink(path);
                rmdir(folder); /* if empty: later runs search no further */
        }
        return err_set(err, r, "cannot connect to %s: %s", path, strerror(r));
}

static bool wait_for_fd(int fd, short events, int ms)
{
        struct pollfd p = { .fd = fd, .events = events };
        int r;

        do
                r = poll(&p, 1, ms);
        while (r < 0 && errno == EINTR);
        return r > 0;
}

int hold_socket_send(int fd, const char *line, const int *fds, size_t n)
{
        union {
                char room[CMSG_SPACE(HOLD_FDS_MAX * sizeof(int))];
                struct cmsghdr align;
        } control;
        size_t left = strlen(line);

        while (left) {
                struct iovec piece = { (char *)(uintptr_t)line, left };
                struct msghdr m = { .msg_iov = &piece, .msg_iovlen = 1 };
                ssize_t sent;

                if (n) {
                        struct cmsghdr *c = &control.align;

                        m.msg_control = control.room;
                        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
                        *c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)),
                                               .cmsg_level = SOL_SOCKET,
                                               .cmsg_type = SCM_RIGHTS };
                        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
                }
                sent = sendmsg(fd, &m, MSG_NOSIGNAL);
                if (sent < 0 && errno == EAGAIN && wait_for_fd(fd, POLLOUT, HOLD_ANSWER_MS))
                        continue;
                if (sent < 0 && errno != EINTR)
                        return -errno;
                if (sent <= 0)
                        continue;
                line += sent;
                left -= (size_t)sent;
                n = 0; /* sent with the first bytes */
        }
        return 0;
}

int hold_socket_receive(int fd, struct buf *bytes, struct buf *fds)
{
        union {
                char room[CMSG_SPACE(HOLD_FDS_MAX * sizeof(int))];
                struct cmsghdr align;
        } control;
        struct iovec piece = { buf_reserve(bytes, READ_SIZE), READ_SIZE };
        struct msghdr m = { .msg_iov = &piece,
                            .msg_iovlen = 1,
                            .msg_control = control.room,
                            .msg_controllen = sizeof(control) };
        ssize_t n = piece.iov_base ? recvmsg(fd, &m, MSG_CMSG_CLOEXEC) : -1;

        if (n < 0)
                return piece.iov_base ? -errno : -ENOMEM;
        buf_advance(bytes, (size_t)n);
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
                size_t len = c->cmsg_len - CMSG_LEN(0);

                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                        buf_append(fds, CMSG_DATA(c), len);
        }
        return (int)n;
}

int hold_socket_tell_silent(const char *path, struct error *err)
{
        struct ucred peer = { 0 };
        socklen_t len = sizeof(peer);
        int fd = connect_hold(path, err);

        if (fd < 0 && err->code != EAGAIN)
                return 0;
        if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
                peer.pid = 0;
        fd_close(fd);
        if (peer.pid) {
                err_set(err, ETIME, "a hold of yours (pid %d) does not answer", (int)peer.pid);
                err_help(err,
                         "kill -CONT %d lets a stopped process go on, kill -KILL %d ends the hold",
                         (int)peer.pid, (int)peer.pid);
        } else {
                err_set(err, ETIME, "a hold of yours does not answer: %s", path);
                err_help(err, "`ss -xlp` shows the process of this socket: kill -KILL ends it");
        }
        err->number = HN_HOLD_SILENT;
        return -ETIME;
}

/* Reads until @to has a whole line, and waits @ms for each piece. 0, or -errno with @err. */
static int read_answer_line(int fd, struct buf *to, struct buf *fds, int ms, struct error *err)
{
        int n;

        while (!memchr(buf_data(to), '\n', buf_len(to))) {
                if (!wait_for_fd(fd, POLLIN, ms))
                        return err_set(err, ETIME, "it does not answer");
                n = hold_socket_receive(fd, to, fds);
                if (n == -EAGAIN || n == -EINTR)
                        continue;
                if (n <= 0 || buf_len(to) > ANSWER_MAX)
                        return err_set(err, ECONNRESET, "it ended without an answer");
        }
        return 0;
}

int hold_socket_ask(const char *path, json_t *request, json_t **ret_answer, struct buf *rest,
                    struct buf *fds, struct error *err)
{
        CLEANUP(free_textp) char *text = json_dump_plain(request, JSON_COMPACT);
        CLEANUP(free_textp) char *line = xasprintf("%s\n", text);
        CLEANUP(buf_finish) struct buf own = BUF_INIT, none = BUF_INIT;
        struct buf *in = rest ? rest : &own;
        int fd = connect_hold(path, err), r;
        size_t len;

        json_decref(request);
        if (fd < 0)
                return fd;
        r = hold_socket_send(fd, line, NULL, 0);
        if (r < 0)
                err_set(err, -r, "cannot send: %s", strerror(-r));
        else
                r = read_answer_line(fd, in, fds ? fds : &none, HOLD_ANSWER_MS, err);
        if (r < 0) {
                fd_close(fd);
                return r;
        }
        len = (size_t)((const unsigned char *)memchr(buf_data(in), '\n', buf_len(in)) -
                       buf_data(in)) +
              1;
        *ret_answer = json_loadb((const char *)buf_data(in), len, 0, NULL);
        buf_consume(in, len);
        if (*ret_answer)
                return fd;
        fd_close(fd);
        return err_set(err, EPROTO, "its answer is malformed");
}

json_t **hold_socket_describe(const struct strv *paths)
{
        json_t **ret = xcalloc(paths->n + 1, sizeof(json_t *));
        int *fds = xcalloc(paths->n + 1, sizeof(*fds));
        int64_t until = clock_ms() + HOLD_ANSWER_MS;
        struct error err;

        for (size_t i = 0; i < paths->n; i++) {
                fds[i] = connect_hold(paths->v[i], &err);
                if (fds[i] >= 0 && hold_socket_send(fds[i], "{\"do\":\"info\"}\n", NULL, 0) < 0)
                        fds[i] = fd_close(fds[i]);
        }
        /* All holds write at the same time, so the limit counts once. */
        for (size_t i = 0; i < paths->n; i++) {
                CLEANUP(buf_finish) struct buf line = BUF_INIT, none = BUF_INIT;
                int ms = (int)MAX(until - clock_ms(), INT64_C(0));

                if (fds[i] >= 0 && read_answer_line(fds[i], &line, &none, ms, &err) == 0)
                        ret[i] = json_loadb((const char *)buf_data(&line), buf_len(&line),
                                            JSON_DISABLE_EOF_CHECK, NULL);
                fd_close(fds[i]);
        }
        free(fds);
        return ret;
}
