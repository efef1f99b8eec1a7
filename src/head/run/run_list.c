/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs are found in two folders: sockets of running runs, and records. A run found in both is
 * listed once. Each run is asked for its description within INFO_MS; a socket without a listener is
 * removed. A recorded run without a summary is elsewhere, silent or lost, by host, socket and
 * process. The start time of a process guards against a reused pid.
 *
 * Sockets come first: a run that ends meanwhile has written its summary before the socket goes, and
 * one of the two folders shows the run. Runs are asked one after the other, which takes long only
 * when several of them are suspended.
 */
#include "head/run/run_list.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/run/run_folders.h"
#include "head/run/run_records.h"

enum { INFO_MS = 2000, ANSWER_MAX = 64 << 20, READ_SIZE = 64 << 10, STAT_MAX = 4096 };

static const char socket_end[] = ".sock";

/* --- asking ----------------------------------------------------------------------------------- */

/* Whether @path has the form of a run's socket, in a folder where only this user may write. */
static bool is_own_socket(const char *path, const struct stat *st)
{
        const char *name = strrchr(path, '/');
        size_t len = strlen(path), end = sizeof(socket_end) - 1;
        CLEANUP(free_textp) char *folder = name ? xstrndup(path, (size_t)(name - path)) : NULL;
        struct stat at;

        return name && len > end && !strcmp(path + len - end, socket_end) &&
               S_ISSOCK(st->st_mode) && st->st_uid == geteuid() && lstat(folder, &at) == 0 &&
               S_ISDIR(at.st_mode) && at.st_uid == geteuid() && !(at.st_mode & 077);
}

/* Removes the socket of a killed hnlaunch. Spares a young socket, which refuses connections until
 * its process listens, and anything else at the path. */
static void remove_stale_socket(const char *path)
{
        struct stat st;

        if (lstat(path, &st) == 0 && is_own_socket(path, &st) && time(NULL) - st.st_ctime > 1)
                unlink(path);
}

/* Connects to the socket of a run. Returns the descriptor, or negative with @err. A socket without
 * a listener is removed. */
static int connect_run(const char *path, struct error *err)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd, r;

        if (!path)
                return err_set(err, ENOENT, "it has no socket");
        if (strlen(path) >= sizeof(to.sun_path))
                return err_set(err, ENOENT, "the path of the socket is too long: %s", path);
        memcpy(to.sun_path, path, strlen(path));
        /* A suspended run accepts no connection: with a full backlog a blocking connect() would
         * hang. */
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
                return fd;
        r = errno;
        fd_close(fd);
        if (r == EAGAIN)
                return err_set(err, ETIME, "it does not answer");
        if (r == ECONNREFUSED)
                remove_stale_socket(path);
        return err_set(err, r, "cannot connect to %s: %s", path, strerror(r));
}

/* Reads until @to has a whole line, at most @ms for each part of it. 0, or -errno with @err. */
static int read_answer(int fd, int ms, struct buf *to, struct error *err)
{
        size_t looked = 0;

        while (!memchr(buf_data(to) + looked, '\n', buf_len(to) - looked)) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                void *room = buf_reserve(to, READ_SIZE);
                ssize_t n;
                int r = poll(&p, 1, ms);

                if (r < 0 && errno == EINTR)
                        continue;
                if (r == 0)
                        return err_set(err, ETIME, "it does not answer");
                looked = buf_len(to);
                n = room ? read(fd, room, READ_SIZE) : -1;
                if (n <= 0 || buf_len(to) > ANSWER_MAX)
                        return err_set(err, ECONNRESET, "it ended without an answer");
                buf_advance(to, (size_t)n);
        }
        return 0;
}

int run_request(const char *socket, json_t *request, struct error *err)
{
        CLEANUP(free_textp) char *text = json_dump_plain(request, JSON_COMPACT);
        CLEANUP(free_textp) char *line = xasprintf("%s\n", text);
        int fd = connect_run(socket, err);

        json_decref(request);
        /* A request fits into an empty socket as a whole; less means that the run
         * has closed the socket. */
        if (fd < 0 || send(fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line))
                return fd;
        fd_close(fd);
        return err_set(err, ECONNRESET, "it ended without an answer");
}

/* Reads the next line; later bytes stay in @buf. A new reference, or NULL with @err. */
static json_t *take_answer_line(int fd, int ms, struct buf *buf, struct error *err)
{
        const char *end;
        size_t len;
        json_t *j;

        if (read_answer(fd, ms, buf, err) < 0)
                return NULL;
        end = memchr(buf_data(buf), '\n', buf_len(buf));
        len = (size_t)(end - (const char *)buf_data(buf)) + 1;
        j = json_loadb((const char *)buf_data(buf), len, 0, NULL);
        buf_consume(buf, len);
        if (json_is_object(j))
                return j;
        json_decref(j);
        err_set(err, EPROTO, "it answers with no JSON");
        return NULL;
}

json_t *run_answer(int fd, int ms, struct error *err)
{
        CLEANUP(buf_finish) struct buf buf = BUF_INIT;

        return take_answer_line(fd, ms, &buf, err);
}

json_t *run_ask_each(const char *socket, json_t *request, int ms,
                     void (*each)(void *ctx, const json_t *answer), void *ctx, struct error *err)
{
        CLEANUP(buf_finish) struct buf buf = BUF_INIT;
        CLEANUP(fd_closep) int fd = run_request(socket, request, err);
        json_t *j = NULL;

        if (fd < 0)
                return NULL;
        while ((j = take_answer_line(fd, ms, &buf, err)) &&
               json_is_true(json_object_get(j, "more"))) {
                if (each)
                        each(ctx, j);
                json_decref(j);
        }
        return j;
}

json_t *run_ask(const char *socket, json_t *request, int ms, struct error *err)
{
        return run_ask_each(socket, request, ms, NULL, NULL, err);
}

/* --- the list --------------------------------------------------------------------------------- */

static struct run *add_run(struct run_list *l, const char *id, size_t len)
{
        l->v = xrealloc(l->v, l->n + 1, sizeof(*l->v));
        l->v[l->n] = (struct run){ .id = xstrndup(id, len) };
        return &l->v[l->n++];
}

static void drop_last_run(struct run_list *l)
{
        struct run *r = &l->v[--l->n];

        free(r->id);
        free(r->socket);
        json_decref(r->info);
        json_decref(r->summary);
}

static json_t *load_record(const char *run, const char *name)
{
        struct error err;
        CLEANUP(fd_closep) int dir = run_records_open(run, &err);

        return run_records_load(dir, name);
}

json_t *run_load_summary(const char *id)
{
        struct error err;
        CLEANUP(fd_closep) int dir = run_records_open(id, &err);

        return run_records_summary(dir);
}

int64_t run_process_start(int pid)
{
        CLEANUP(free_textp) char *path = xasprintf("/proc/%d/stat", pid);
        CLEANUP(free_textp) char *stat = NULL;
        const char *c = NULL;
        char state = 'X';

        if (fd_read_file(path, STAT_MAX, &stat, NULL) == 0)
                c = strrchr(stat, ')'); /* the name may have any characters */
        if (c && c[1] == ' ')
                state = c[2];
        /* Field 22 of /proc/PID/stat is the start of the process; the name is field 2. */
        for (int field = 2; c && field < 22; field++)
                c = strchr(c + 1, ' ');
        return c && !strchr("ZX", state) ? strtoll(c, NULL, 10) : 0;
}

bool run_is_of_here(const json_t *info)
{
        const char *host = json_string_value(json_object_get(info, "host"));
        char here[256] = "";

        gethostname(here, sizeof(here) - 1);
        return host && !strcmp(host, here);
}

bool run_process_lives(const json_t *info)
{
        int pid = (int)json_integer_value(json_object_get(info, "pid"));
        int64_t ticks;

        if (pid <= 0 || !run_is_of_here(info) || kill(pid, 0) < 0)
                return false;
        /* Another process can have the number by now. */
        ticks = run_process_start(pid);
        return ticks && ticks == json_integer_value(json_object_get(info, "pid_start"));
}

/* Asks the run for its description. False = the socket has no listener. Sets state and, with an
 * answer, info; a suspended or busy run keeps the description of its records. */
static bool is_run_there(struct run *r)
{
        struct error err = { .code = ECONNRESET };
        json_t *info = NULL;

        /* The first connection may have met the end of the run. */
        for (int i = 0; i < 2 && !info && err.code == ECONNRESET; i++)
                info = run_ask(r->socket, json_pack("{s:s}", "do", "info"), INFO_MS, &err);
        if (info) {
                json_decref(r->info);
                r->info = info;
        }
        r->state = info ? RUN_GOES_ON : RUN_SILENT;
        return info || (err.code != ECONNREFUSED && err.code != ENOENT);
}

/* Adds the run of a socket, unless nothing listens there: the records then tell its end. */
static void add_from_socket(struct run_list *l, const char *folder, const char *name)
{
        size_t len = strlen(name), end = sizeof(socket_end) - 1;
        struct run *r;

        if (len <= end || strcmp(name + len - end, socket_end) != 0)
                return;
        r = add_run(l, name, len - end);
        r->socket = run_folders_socket(folder, r->id);
        r->info = load_record(r->id, "run.json");
        r->info = r->info ? r->info : json_object();
        if (!is_run_there(r))
                drop_last_run(l);
}

/* Returns the state of a run by its records. The socket may be in the runtime folder of another
 * session. */
static enum run_state find_run_state(struct run *r)
{
        const char *host = json_string_value(json_object_get(r->info, "host"));
        const char *path = json_string_value(json_object_get(r->info, "socket"));

        if (r->summary)
                return RUN_ENDED;
        if (host && !run_is_of_here(r->info))
                return RUN_ELSEWHERE;
        r->socket = path ? xstrdup(path) : NULL;
        return r->socket && is_run_there(r) ? r->state
               : run_process_lives(r->info) ? RUN_SILENT
                                            : RUN_LOST;
}

/* Adds a run that is known only by its records, unless listed already. */
static void add_from_records(struct run_list *l, const char *name)
{
        struct error err;
        CLEANUP(fd_closep) int dir = -1;
        struct run *r;

        for (size_t i = 0; i < l->n; i++)
                if (!strcmp(l->v[i].id, name))
                        return;
        dir = run_records_open(name, &err);
        r = add_run(l, name, strlen(name));
        r->info = run_records_load(dir, "run.json");
        if (!r->info) {
                drop_last_run(l);
                return;
        }
        r->summary = run_records_summary(dir);
        r->state = find_run_state(r);
}

static const char *started_at(const struct run *r)
{
        const char *t = json_string_value(json_object_get(r->info, "started"));

        return t ? t : "";
}

/* Orders the newest run first. Times are in UTC and of one form, so their texts compare. */
static int compare_runs(const void *a, const void *b)
{
        return strcmp(started_at(b), started_at(a));
}

/* Calls add_from_socket() for the entries of @sockets; @sockets NULL = add_from_records() for the
 * entries of @records. */
static void add_entries(struct run_list *l, const char *sockets, const char *records)
{
        const char *folder = sockets ? sockets : records;
        DIR *dir = folder ? opendir(folder) : NULL;
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] == '.')
                        continue;
                else if (sockets)
                        add_from_socket(l, sockets, entry->d_name);
                else
                        add_from_records(l, entry->d_name);
        if (dir)
                closedir(dir);
}

void run_list_load(struct run_list *l)
{
        struct error err;
        CLEANUP(free_textp) char *sockets = run_folders_sockets(false, &err);
        CLEANUP(free_textp) char *records = run_folders_records();

        *l = (struct run_list){ .n = 0 };
        if (sockets)
                add_entries(l, sockets, records);
        add_entries(l, NULL, records);
        if (l->n)
                qsort(l->v, l->n, sizeof(*l->v), compare_runs);
}

void run_list_finish(struct run_list *l)
{
        while (l->n)
                drop_last_run(l);
        free(l->v);
        l->v = NULL;
}

const struct run *run_list_find(const struct run_list *l, const char *id, size_t *ret_n)
{
        const struct run *found = NULL;

        /* A whole id wins over longer ids that begin with it. */
        *ret_n = 0;
        for (size_t i = 0; i < l->n; i++) {
                if (!strcmp(l->v[i].id, id)) {
                        *ret_n = 1;
                        return &l->v[i];
                }
                if (*id && !strncmp(l->v[i].id, id, strlen(id))) {
                        found = &l->v[i];
                        ++*ret_n;
                }
        }
        return *ret_n == 1 ? found : NULL;
}
