/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_prepare() starts the interpreter with interpreter.py, and a socket for each slot. A slot
 * sends "R PID VERSION" as a child of the agent, then waits for a message with the descriptors of a
 * rank, and with the rank's texts in a memory file. The slot answers "W" (the script runs) or
 * "C REASON" (the slot executes the interpreter anew). The preparation is over when all slots are
 * ready, with the first "E REASON", or when a process ends early. WARMED is sent once.
 */
#include "agent/warm/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/fd_unwatch.h"
#include "agent/core/proc.h"
#include "agent/warm/warm_image.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "wire/env/nccl_env.h"

/* Compiles the text behind a descriptor. The names of interpreter.py do not become
 * names of __main__, which is the module of the rank's script. */
#define BOOTSTRAP                                                                                  \
        "exec(compile(open(int(__import__('sys').argv[1]),'rb').read(),'<hnlaunch>','exec'),"      \
        "{'__name__':'hnlaunch'})"

enum { REASON_MAX = 400, RANK_FDS = 6 };

enum slot_state { SLOT_STARTING, SLOT_READY, SLOT_TAKEN, SLOT_ENDED };

struct warm_slot {
        struct warm *owner; /* NULL = dropped */
        enum slot_state state;
        int fd;
        pid_t pid; /* 0 = not known yet */
        uv_poll_t poll;
};

struct warm {
        uv_loop_t *loop;
        struct uplink *up;
        pid_t parent; /* the importing interpreter; 0 = none */
        struct spawning spawning;
        char *word, *cwd, *path; /* of @spawning; PATH of the preparation */
        struct warm_slot **slots;
        size_t n;
        unsigned torch; /* as TORCH_VERSION(); 0 = none */
        uint64_t began_ns;
        bool told;                      /* WARMED was sent */
        bool served;                    /* an attempt has had the slots */
        size_t n_ranks;                 /* to be handed over */
        size_t n_taken, n_told, n_warm; /* handed over; with an answer; in a prepared interpreter */
        char why[REASON_MAX];           /* of the last rank in a new interpreter */
};

/* --- the end ---------------------------------------------------------------------------------- */

static void on_slot_closed(uv_handle_t *handle)
{
        free(handle->data);
}

/* Closes the socket: a waiting slot ends. A slot with a rank is not touched. */
static void drop_slot(struct warm_slot *s)
{
        if (s->pid && s->state == SLOT_READY)
                kill(s->pid, SIGKILL);
        s->owner = NULL;
        if (s->fd >= 0)
                fd_unwatch(&s->poll, &s->fd, on_slot_closed);
}

static bool read_slot(struct warm_slot *s);

void warm_drop(struct warm *w)
{
        /* Reads pending answers: a short script may have ended before the answer of the slot was
         * read. */
        for (size_t i = 0; i < w->n; i++)
                while (w->slots[i]->state == SLOT_TAKEN && read_slot(w->slots[i]))
                        ;
        if (w->parent)
                kill(w->parent, SIGKILL);
        w->spawning.fd = fd_close(w->spawning.fd);
        for (size_t i = 0; i < w->n; i++)
                drop_slot(w->slots[i]);
        free(w->slots);
        w->slots = NULL;
        w->n = w->n_ranks = w->n_taken = w->n_told = w->n_warm = 0;
        *w->why = '\0';
}

/* --- the preparation -------------------------------------------------------------------------- */

void warm_refuse(struct warm *w, const char *why)
{
        struct warmed m = { 0 };

        snprintf(m.text, sizeof(m.text), "%s", why);
        warmed_encode(&w->up->out, &m);
        w->told = true;
        warm_drop(w);
}

static void refuse_preparation(struct warm *w, const char *why)
{
        if (!w->told)
                warm_refuse(w, why);
}

static size_t count_ready(const struct warm *w)
{
        size_t n = 0;

        for (size_t i = 0; i < w->n; i++)
                n += w->slots[i]->state == SLOT_READY;
        return n;
}

/* Sends WARMED: all slots are ready. */
static void report_ready(struct warm *w)
{
        struct warmed m = { .slots = (uint32_t)w->n,
                            .ms = (uint32_t)((uv_hrtime() - w->began_ns) / 1000000) };
        struct proc_stat p;

        if (proc_read_stat(&p, w->slots[0]->pid))
                m.mib = (uint32_t)(p.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE) >> 20);
        w->told = true;
        warmed_encode(&w->up->out, &m);
}

static void on_slot_ready(struct warm *w, struct warm_slot *s, const char *text)
{
        long pid = 0;
        unsigned torch = 0;

        if (s->state != SLOT_STARTING || sscanf(text, "%ld %u", &pid, &torch) != 2 || pid <= 1) {
                refuse_preparation(w, "the interpreter has sent a malformed message");
                return;
        }
        s->pid = (pid_t)pid;
        s->state = SLOT_READY;
        w->torch = torch;
        if (count_ready(w) == w->n && !w->told)
                report_ready(w);
}

/* Tells -v how the ranks run, when all slots have answered. */
static void on_rank_answer(struct warm *w, struct warm_slot *s, const char *why)
{
        if (s->state != SLOT_TAKEN)
                return;
        s->state = SLOT_ENDED;
        w->n_told++;
        w->n_warm += !why;
        if (why)
                snprintf(w->why, sizeof(w->why), "%s", why);
        if (w->n_told < w->n_taken)
                return;
        log_line(LOG_INFO, "%zu of %zu ranks run in prepared interpreters%s%s", w->n_warm,
                 w->n_ranks, *w->why ? "; not used: " : "", w->why);
}

/* The interpreter has ended: refuses the preparation if a slot has ended, too. */
static void check_ended_slots(struct warm *w)
{
        for (size_t i = 0; i < w->n && !w->told; i++)
                if (w->slots[i]->state == SLOT_ENDED)
                        warm_refuse(w, "a prepared process has ended");
}

/* Reads one message. False: no message, or the slot is gone. */
static bool read_slot(struct warm_slot *s)
{
        struct warm *w = s->owner;
        char text[2048];
        ssize_t n = recv(s->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        text[MAX(n, (ssize_t)0)] = '\0';
        if (n > 0 && *text == 'R') {
                on_slot_ready(w, s, text + 1);
        } else if (n > 0 && *text == 'W') {
                on_rank_answer(w, s, NULL);
        } else if (n > 2 && *text == 'C') {
                on_rank_answer(w, s, text + 2);
        } else if (n > 2 && *text == 'E') {
                refuse_preparation(w, text + 2);
        } else {
                /* The slot has ended. The attempt reports the end of a slot with a rank. */
                uv_poll_stop(&s->poll);
                if (s->state != SLOT_TAKEN)
                        s->state = SLOT_ENDED;
                if (!w->parent)
                        check_ended_slots(w);
                return false;
        }
        return s->owner;
}

static void on_slot_event(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        while (read_slot(poll->data))
                ;
}

struct slot_ends {
        int *v;
        size_t n;
        int text; /* the file with interpreter.py */
        int (*enter)(void *ctx);
};

/* Runs in the child: keeps these descriptors open in the interpreter. */
static int keep_ends(void *ctx)
{
        const struct slot_ends *e = ctx;

        for (size_t i = 0; i < e->n; i++)
                if (fcntl(e->v[i], F_SETFD, 0) < 0)
                        return -errno;
        return fcntl(e->text, F_SETFD, 0) < 0 ? -errno : e->enter(NULL);
}

static int open_slots(struct warm *w, struct slot_ends *e, size_t n)
{
        w->slots = xcalloc(n, sizeof(struct warm_slot *));
        e->v = xcalloc(n, sizeof(int));
        for (; w->n < n; w->n++) {
                struct warm_slot *s;
                int fds[2];

                if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                        return -errno;
                e->v[e->n++] = fds[1];
                s = xcalloc(1, sizeof(*s));
                *s = (struct warm_slot){ .owner = w, .fd = fds[0] };
                if (uv_poll_init(w->loop, &s->poll, s->fd) < 0) {
                        fd_close(s->fd);
                        free(s);
                        return -ENOMEM;
                }
                s->poll.data = s;
                uv_poll_start(&s->poll, UV_READABLE, on_slot_event);
                w->slots[w->n] = s;
        }
        return 0;
}

static int open_text(void)
{
        int fd = memfd_create("hnlaunch", MFD_CLOEXEC), r;

        if (fd < 0)
                return -errno;
        r = carried_image_write(&warm_image, fd);
        if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        if (r < 0)
                fd_close(fd);
        return r < 0 ? r : fd;
}

static void build_words(struct strv *argv, const struct warm_order *m, const char *path,
                        const struct slot_ends *e)
{
        CLEANUP(buf_finish) struct buf ends = BUF_INIT, modules = BUF_INIT;

        for (size_t i = 0; i < e->n; i++)
                buf_printf(&ends, i ? ",%d" : "%d", e->v[i]);
        for (size_t i = 0; i < m->modules.n; i++)
                buf_printf(&modules, i ? ",%s" : "%s", m->modules.v[i]);
        strv_push(argv, m->word);
        strv_push(argv, "-c");
        strv_push(argv, BOOTSTRAP);
        strv_pushf(argv, "%d", e->text);
        strv_push_mem(argv, buf_data(&ends), buf_len(&ends));
        strv_push_mem(argv, buf_data(&modules), buf_len(&modules));
        strv_push(argv, m->word);
        strv_push(argv, path);
}

static int start_interpreter(struct warm *w, const struct strv *argv, const struct strv *env,
                             struct slot_ends *e, struct error *err)
{
        struct spawn spawn = {
                .argv = argv->v,
                .env = env->v,
                .cwd = w->cwd,
                .fds = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL },
                .enter = keep_ends,
                .enter_ctx = e,
        };
        int r = spawn_begin(&w->spawning, &spawn, err);

        if (r < 0)
                return r;
        w->parent = w->spawning.pid;
        /* Needed for the text of a failure, after the process has ended. */
        w->spawning.program = w->word;
        w->spawning.cwd = w->cwd;
        w->spawning.path = w->spawning.path ? w->path : NULL;
        return 0;
}

void warm_prepare(struct warm *w, const struct warm_order *m, const struct strv *env,
                  int (*enter)(void *ctx))
{
        CLEANUP(strv_finish) struct strv argv = STRV_INIT;
        struct slot_ends e = { .enter = enter };
        const char *path = strv_env_get(env, "PATH");
        struct error err;
        int r;

        warm_drop(w);
        w->told = w->served = false;
        w->began_ns = uv_hrtime();
        free(w->word);
        free(w->cwd);
        free(w->path);
        w->word = xstrdup(m->word);
        /* On nodes without this folder, the folder comes later with the pushed files of a run. */
        w->cwd = xstrdup(access(m->cwd, X_OK) == 0 ? m->cwd : "");
        w->path = xstrdup(path ? path : "");
        r = open_slots(w, &e, m->slots);
        e.text = r == 0 ? open_text() : -1;
        if (r < 0 || e.text < 0) {
                err_set(&err, -MIN(r, e.text), "cannot make a socket or a file in memory: %s",
                        strerror(-MIN(r, e.text)));
                r = -1;
        } else {
                build_words(&argv, m, w->path, &e);
                r = start_interpreter(w, &argv, env, &e, &err);
        }
        for (size_t i = 0; i < e.n; i++)
                fd_close(e.v[i]);
        free(e.v);
        fd_close(e.text);
        if (r < 0)
                refuse_preparation(w, err.text);
}

/* --- processes -------------------------------------------------------------------------------- */

bool warm_is_ready(const struct warm *w)
{
        return count_ready(w);
}

bool warm_has_slots(const struct warm *w)
{
        return w->n;
}

void warm_begin_attempt(struct warm *w)
{
        if (!w->n && w->served)
                log_line(LOG_INFO, "ranks start in new interpreters: the prepared ones served the "
                                   "first attempt");
        w->served |= w->n;
}

bool warm_any(const struct warm *w)
{
        return w->parent || count_ready(w);
}

bool warm_have(const struct warm *w, pid_t pid)
{
        if (pid == w->parent)
                return true;
        for (size_t i = 0; i < w->n; i++)
                if (w->slots[i]->pid == pid && w->slots[i]->state == SLOT_READY)
                        return true;
        return false;
}

/* The interpreter ends with 0 when all slots are forked. After any other end the last message is
 * read first. */
void warm_reaped(struct warm *w, pid_t pid, int status)
{
        char text[128];
        struct error err;

        for (size_t i = 0; i < w->n; i++)
                if (w->slots[i]->pid == pid && w->slots[i]->state == SLOT_READY)
                        w->slots[i]->state = SLOT_ENDED;
        if (!pid || pid != w->parent)
                return;
        w->parent = 0;
        if (w->spawning.fd >= 0 && spawn_confirm(&w->spawning, NULL, &err) < 0) {
                refuse_preparation(w, err.text);
                return;
        }
        if (WIFEXITED(status) && !WEXITSTATUS(status)) {
                check_ended_slots(w);
                return;
        }
        while (w->n && read_slot(w->slots[0]))
                ;
        snprintf(text, sizeof(text), "cannot import the modules: the interpreter %s %d",
                 WIFSIGNALED(status) ? "was killed by signal" : "ended with exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        refuse_preparation(w, text);
}

/* --- a rank ----------------------------------------------------------------------------------- */

/* Returns why no slot can take the rank over; NULL = a slot can. */
static const char *find_refusal(struct warm *w, const struct warm_rank *r)
{
        const char *path = strv_env_get(r->env, "PATH");

        if (r->apart)
                return "ranks have a process namespace of their own (--contain pidns)";
        if (strcmp(r->argv->v[0], w->word) != 0)
                return "the rank runs another program";
        if (r->argv->n < 2 || *r->argv->v[1] == '-')
                return "the first argument is no script";
        if (strcmp(path ? path : "", w->path) != 0)
                return "PATH differs";
        if (r->fds[0] < 0)
                return "standard input is missing";
        return w->told ? NULL : "the modules are still being imported";
}

/* Writes the texts of a rank, each with a NUL, into a memory file for interpreter.py. */
static int write_texts(const struct warm *w, const struct warm_rank *r)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        /* Copies the pointers: nccl_env_fit() leaves out names unread by PyTorch. */
        char **env = xcalloc(r->env->n + 1, sizeof(char *));
        int fd = memfd_create("hnlaunch", MFD_CLOEXEC), ret;

        memcpy(env, r->env->v, r->env->n * sizeof(char *));
        if (r->older_names)
                nccl_env_fit(env, r->older_names, w->torch);
        buf_append(&b, r->cwd ? r->cwd : "", strlen(r->cwd ? r->cwd : "") + 1);
        buf_printf(&b, "%d%c%d%c%d%c%zu", launch_order_terminal(r->order, r->rank) != NULL, 0,
                   r->pass, 0, r->node, 0, r->argv->n);
        ret = buf_append(&b, "", 1);
        for (size_t i = 0; i < r->argv->n && ret >= 0; i++)
                ret = buf_append(&b, r->argv->v[i], strlen(r->argv->v[i]) + 1);
        for (char **v = env; *v && ret >= 0; v++)
                ret = buf_append(&b, *v, strlen(*v) + 1);
        free(env);
        if (fd >= 0 && ret >= 0 && fd_write_all(fd, buf_data(&b), buf_len(&b)) == 0)
                return fd;
        fd_close(fd);
        return -ENOMEM;
}

static int send_rank(const struct warm_slot *s, const struct warm_rank *r, int texts)
{
        const int fds[RANK_FDS] = { texts, r->fds[0], r->fds[1], r->fds[2], r->report, r->pass };
        size_t size = (r->pass ? RANK_FDS : RANK_FDS - 1) * sizeof(int);
        union {
                char room[CMSG_SPACE(sizeof(fds))];
                struct cmsghdr align;
        } control = { .room = { 0 } };
        struct iovec byte = { .iov_base = (char[]){ 'T' }, .iov_len = 1 };
        struct msghdr m = { .msg_iov = &byte,
                            .msg_iovlen = 1,
                            .msg_control = control.room,
                            .msg_controllen = CMSG_SPACE(size) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(c), fds, size);
        return sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

static void kill_slot(struct warm_slot *s)
{
        kill(s->pid, SIGKILL);
        s->state = SLOT_ENDED;
}

/* Returns a ready slot, or NULL. Kills stopped slots: a rank in a stopped slot would never
 * start. */
static struct warm_slot *find_ready_slot(struct warm *w)
{
        for (size_t i = 0; i < w->n; i++) {
                struct warm_slot *s = w->slots[i];
                struct proc_stat p;

                if (s->state != SLOT_READY)
                        continue;
                if (proc_read_stat(&p, s->pid) && !strchr("TtZ", p.state))
                        return s;
                kill_slot(s);
        }
        return NULL;
}

pid_t warm_take(struct warm *w, const struct warm_rank *r)
{
        const char *why = find_refusal(w, r);
        struct warm_slot *s = why ? NULL : find_ready_slot(w);
        int texts, ret;

        w->n_ranks++;
        if (!why && !s)
                why = "no prepared interpreter is left";
        if (why) {
                if (strcmp(why, w->why) != 0)
                        log_line(LOG_INFO, "rank %u does not use a prepared interpreter: %s",
                                 r->rank, why);
                snprintf(w->why, sizeof(w->why), "%s", why);
                if (!w->told) {
                        /* Ends the import: from now on the import would only slow the ranks
                         * down. */
                        w->told = true;
                        warm_drop(w);
                }
                return 0;
        }
        texts = write_texts(w, r);
        ret = texts < 0 ? texts : r->place(r->setup, s->pid);
        if (ret == 0)
                ret = send_rank(s, r, texts);
        fd_close(texts);
        if (ret < 0) {
                log_line(LOG_INFO, "a prepared interpreter cannot be used: %s", strerror(-ret));
                kill_slot(s);
                return 0;
        }
        s->state = SLOT_TAKEN;
        w->n_taken++;
        return s->pid;
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct warm *warm_create(uv_loop_t *loop, struct uplink *up)
{
        struct warm *w = xcalloc(1, sizeof(*w));

        w->loop = loop;
        w->up = up;
        w->spawning.fd = -1;
        return w;
}

void warm_close(struct warm *w)
{
        w->told = true;
        warm_drop(w);
}

void warm_destroy(struct warm *w)
{
        free(w->word);
        free(w->cwd);
        free(w->path);
        free(w);
}
