/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch-pmix: a PMIx server for the ranks of a node, started by the agent
 *
 * A dynamic program, because libpmix belongs to the node and no static program can load libpmix.
 * Descriptor 0 is the socket to the agent (wire/helper/pmix_msg.h). The first message is the job;
 * then the main thread waits for the agent and for libpmix, and only forwards: fences and requests
 * wait in a list until the agent answers. The helper ends with the agent, without waiting for
 * libpmix: the agent removes the helper's files.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "carried/pmix/host.h"
#include "carried/pmix/pmix_library.h"

enum { AGENT = 0, READ_SIZE = 64 << 10 };

static struct {
        struct buf in;
        struct host_event **waiting; /* for an answer of the agent; note.id is their number */
        size_t n_waiting, cap;
        uint32_t last_id;
} helper;

/* --- to the agent ----------------------------------------------------------------------------- */

/* The agent always reads, so a blocking write ends. */
static void send_out(struct buf *out)
{
        if (buf_failed(out) || fd_write_all(AGENT, buf_data(out), buf_len(out)) < 0)
                /* Ranks would wait for a server without an agent for ever, so the helper ends. */
                _exit(1);
        buf_finish(out);
}

static void tell_agent(uint8_t type, const struct pmix_note *m)
{
        struct buf out = BUF_INIT;

        pmix_note_encode(&out, type, m);
        send_out(&out);
}

static void send_text(uint8_t type, const char *text, size_t len)
{
        tell_agent(type, &(struct pmix_note){ .data = (const unsigned char *)text,
                                              .len = MIN(len, (size_t)PMIX_TEXT_MAX) });
}

static void send_env(void *ctx UNUSED, const struct pmix_env *m)
{
        struct buf out = BUF_INIT;

        pmix_env_encode(&out, m);
        send_out(&out);
}

static _Noreturn void fail_job(const char *text, size_t len)
{
        send_text(PMIX_MSG_FAILED, text, len);
        _exit(1);
}

/* --- from the agent --------------------------------------------------------------------------- */

static void take_agents_answer(const struct pmix_note *m)
{
        /* No entry: the agent answers twice, which does no harm. */
        for (size_t i = 0; i < helper.n_waiting; i++) {
                struct host_event *e = helper.waiting[i];

                if (e->note.id != m->id)
                        continue;
                host_answer(e, m->status, m->data, m->len);
                host_event_free(e);
                /* The order of the list has no meaning. */
                helper.waiting[i] = helper.waiting[--helper.n_waiting];
                return;
        }
}

static void take_agent_frame(const struct frame *f)
{
        struct pmix_note m;

        if (pmix_note_decode(&m, f, NULL) < 0)
                _exit(1);
        if (f->type == PMIX_MSG_FETCH)
                host_fetch(m.id, m.rank);
        else
                take_agents_answer(&m);
        pmix_note_finish(&m);
}

/* Reads once, blocking until bytes come. Ends the helper when the agent has ended. */
static void read_agent(void)
{
        size_t room = MAX(frame_missing(&helper.in), (size_t)READ_SIZE);
        void *to = buf_reserve(&helper.in, room);
        ssize_t n = to ? read(AGENT, to, room) : -1;

        if (n <= 0 && !(n < 0 && to && errno == EINTR))
                _exit(0);
        if (n > 0)
                buf_advance(&helper.in, (size_t)n);
}

static void take_agent_frames(void)
{
        struct frame f;
        int r;

        while ((r = frame_peek(&helper.in, &f, NULL)) > 0) {
                take_agent_frame(&f);
                frame_consume(&helper.in, &f);
        }
        if (r < 0)
                _exit(1);
}

/* Waits for the first message. */
static void read_job(struct pmix_job *job)
{
        struct frame f;

        /* 0: the frame is not whole yet. */
        while (frame_peek(&helper.in, &f, NULL) == 0)
                read_agent();
        if (frame_peek(&helper.in, &f, NULL) < 0 || f.type != PMIX_MSG_JOB ||
            pmix_job_decode(job, &f, NULL) < 0)
                _exit(1);
        frame_consume(&helper.in, &f);
}

/* --- from libpmix ----------------------------------------------------------------------------- */

static void take_event(struct host_event *e)
{
        if (!e)
                _exit(1);
        /* Only events with an awaited answer get a number. */
        if (e->answer)
                e->note.id = ++helper.last_id;
        if (e->type)
                tell_agent(e->type, &e->note);
        if (!e->answer) {
                host_release(e);
                host_event_free(e);
                return;
        }
        helper.waiting =
                xgrow(helper.waiting, helper.n_waiting, &helper.cap, sizeof(*helper.waiting));
        helper.waiting[helper.n_waiting++] = e;
}

static void serve_agent(void)
{
        struct pollfd fds[2] = { { .fd = AGENT, .events = POLLIN },
                                 { .fd = host_fd(), .events = POLLIN } };

        for (;;) {
                /* Before poll(): the bytes behind the job may already hold frames. */
                take_agent_frames();
                if (poll(fds, 2, -1) < 0) /* a signal */
                        continue;
                if (fds[1].revents)
                        take_event(host_take());
                if (fds[0].revents)
                        read_agent();
        }
}

int main(void)
{
        static struct pmix_functions functions;
        static struct pmix_job job;
        struct buf said = BUF_INIT;
        struct error err;

        prctl(PR_SET_NAME, "hnlaunch-pmix");
        read_job(&job);
        if (pmix_library_open(&functions, &job, &said) < 0)
                fail_job((const char *)buf_data(&said), buf_len(&said));
        if (host_start(&functions, &job, send_env, NULL, &err) < 0) {
                buf_printf(&said, ": %s", err.text);
                fail_job((const char *)buf_data(&said), buf_len(&said));
        }
        buf_printf(&said, ", %s", functions.get_version());
        send_text(PMIX_MSG_READY, (const char *)buf_data(&said), buf_len(&said));
        serve_agent();
}
