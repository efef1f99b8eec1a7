/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_private.h"
#include "agent/inventory.h"
#include "base/log.h"

/* --- orders ----------------------------------------------------------------------------------- */

static void send_store(void *ctx, const void *body, size_t len)
{
        struct agent *a = ctx;

        store_encode(uplink_out(&a->up), body, len);
}

/* That of the turn will do to say how long somebody has waited. */
static uint64_t get_loop_time_ns(void *ctx)
{
        const struct agent *a = ctx;

        return uv_now(a->loop) * 1000000;
}

int agent_need_dir(struct agent *a, struct error *err)
{
        if (!a->dir.path && job_dir_create(&a->dir, err) < 0)
                return -err->code;
        if (a->notes)
                snprintf(a->notes->dir, sizeof(a->notes->dir), "%s", a->dir.path);
        return 0;
}

/* The folder and the endpoint are made for the first attempt and stay. */
static int ensure_store_endpoint(struct agent *a, struct error *err)
{
        char *path;

        if (agent_need_dir(a, err) < 0)
                return -err->code;
        if (a->endpoint)
                return 0;
        path = job_dir_path(&a->dir, "store");
        a->endpoint = endpoint_unix_create(a->loop, path, a->relay, err);
        free(path);
        return a->endpoint ? 0 : -err->code;
}

static void on_head_silent(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        /* If it was us who slept, the head's words are waiting to be read. */
        if (uplink_readable(&a->up))
                uv_timer_start(timer, on_head_silent, 100, 0);
        else
                uplink_lose(&a->up, "no sign of life from the head");
}

/* Nobody pings who has no order yet, or has carried it out. What is said into a cut cable is what
 * ends its connection at last; the answer that does not come says so sooner. */
static void on_ping_request_due(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        if (a->ping_requested) {
                on_head_silent(timer);
                return;
        }
        a->ping_requested = true;
        empty_encode(uplink_out(&a->up), MSG_PING_REQUEST);
        uv_timer_start(timer, on_ping_request_due, PING_REQUEST_MS, 0);
}

/* While ranks run the head pings, and it is lost when it stops to: a cut cable says nothing. */
void agent_rearm_silence(struct agent *a)
{
        a->ping_requested = false;
        if (a->phase == IDLE && !a->pushing)
                uv_timer_start(&a->silence, on_ping_request_due, PING_REQUEST_MS, 0);
        else if (a->silence_ms)
                uv_timer_start(&a->silence, on_head_silent, a->silence_ms, 0);
        else
                uv_timer_stop(&a->silence);
}

/* Those whom we carry may need it as well, now or when there is room in their branch. */
static void on_common(struct agent *a, const struct frame *f)
{
        size_t mark;

        buf_finish(&a->common);
        mark = frame_begin(&a->common, MSG_COMMON);
        buf_append(&a->common, f->body, f->len);
        frame_end(&a->common, mark);
}

/* Both halves of the order. */
static int decode_launch_order(struct agent *a, struct launch_order *l, const struct frame *f,
                               struct error *err)
{
        struct frame common;

        *l = (struct launch_order){ .argv = STRV_INIT };
        if (frame_peek(&a->common, &common, err) <= 0)
                return err_set(err, EPROTO, "a LAUNCH without a COMMON");
        if (common_decode(l, &common, err) < 0 || launch_order_decode(l, f, err) < 0)
                return -err->code;
        if (!a->n_carried)
                buf_finish(&a->common);
        if (l->argv.n && *l->program) {
                free(l->argv.v[0]);
                l->argv.v[0] = l->program;
                l->program = NULL;
        }
        return 0;
}

/* The head waits for GONE after every order; ranks that run send theirs later. */
static void refuse_order(struct agent *a, const char *why)
{
        agent_refuse(a, UINT32_MAX, REFUSED_ORDER, 0, why);
        if (a->phase == IDLE)
                empty_encode(uplink_out(&a->up), MSG_GONE);
}

/* 0, or a negative errno: this order cannot be carried out. */
static int check_launch(struct agent *a, const struct launch_order *l, struct error *err)
{
        if (a->phase != IDLE)
                return err_set(err, EBUSY, "ranks are already running on this node");
        if (!l->n_ranks || !l->argv.n)
                return err_set(err, EINVAL, "an order without ranks or without a program");
        return ensure_store_endpoint(a, err);
}

static void on_launch(struct agent *a, const struct frame *f)
{
        struct error err;
        struct launch_order l;

        if (decode_launch_order(a, &l, f, &err) < 0) {
                refuse_order(a, err.text);
                return;
        }
        if (check_launch(a, &l, &err) < 0) {
                refuse_order(a, err.text);
        } else {
                if (!l.agent_store) /* else it is our own endpoint's */
                        port_release(&a->port);
                agent_start_ranks(a, &l);
                agent_rearm_silence(a);
        }
        launch_order_finish(&l);
}

static void on_signal_order(struct agent *a, const struct frame *f)
{
        struct error err;
        uint32_t signo;

        if (signal_decode(&signo, f, &err) < 0 || signo >= NSIG)
                return;
        for (size_t i = 0; i < a->n_workers; i++)
                worker_signal(a->workers[i], (int)signo);
}

static void on_stop(struct agent *a, const struct frame *f)
{
        struct error err;
        struct stop m;

        if (stop_decode(&m, f, &err) == 0)
                agent_stop(a, m.grace_ms);
}

static void on_credit(struct agent *a, const struct frame *f)
{
        struct worker *w;
        struct error err;
        struct credit m;

        if (credit_decode(&m, f, &err) < 0)
                return;
        w = agent_worker(a, m.rank);
        if (w)
                worker_credit(w, m.stream, m.bytes);
}

static void on_stdin(struct agent *a, const struct frame *f)
{
        struct worker *w;
        struct error err;
        struct output m;

        if (stdin_decode(&m, f, &err) < 0)
                return;
        if (m.rank == MSG_EVERY_RANK)
                for (size_t i = 0; i < a->n_workers; i++)
                        worker_stdin(a->workers[i], m.data, m.len);
        w = agent_worker(a, m.rank);
        if (w)
                worker_stdin(w, m.data, m.len);
}

static void on_ping(struct agent *a, const struct frame *f)
{
        struct error err;
        struct ping m;

        if (ping_decode(&m, f, &err) < 0)
                return;
        m.agent_ns = uv_hrtime();
        ping_encode(uplink_out(&a->up), MSG_PONG, &m);
        agent_children_ping(a, (int64_t)m.agent_ns, !m.head_ns);
        if (!m.head_ns)
                uv_timer_stop(&a->silence);
        else
                agent_rearm_silence(a);
}

static void on_bye(struct agent *a, const struct frame *f UNUSED)
{
        a->bye = true;
        if (a->phase == IDLE)
                agent_push_close(a);
}

static void on_store(struct agent *a, const struct frame *f)
{
        struct error err;

        if (relay_deliver(a->relay, f->body, f->len, &err) < 0)
                log_line(LOG_WARN, "%s", err.text);
}

static void on_frame(void *ctx, const struct frame *f)
{
        static void (*const on[])(struct agent *, const struct frame *) = {
                [MSG_LAUNCH] = on_launch,
                [MSG_SIGNAL] = on_signal_order,
                [MSG_STOP] = on_stop,
                [MSG_CREDIT] = on_credit,
                [MSG_STDIN] = on_stdin,
                [MSG_PING] = on_ping,
                [MSG_BYE] = on_bye,
                [MSG_STORE] = on_store,
                [MSG_STATUS_REQUEST] = agent_on_status_request,
                [MSG_ENDPOINT] = agent_on_endpoint,
                [MSG_PROBE] = agent_on_probe,
                [MSG_CHILD_AGENT] = agent_on_child_agent,
                [MSG_PRUNE] = agent_on_prune,
                [MSG_TUNNEL] = agent_on_tunnel,
                [MSG_OFFER] = agent_on_offer,
                [MSG_CHUNK] = agent_on_chunk,
                [MSG_LOOK] = agent_on_look,
                [MSG_COMMON] = on_common,
        };
        struct agent *a = ctx;

        a->ping_requested = false;
        if (f->type < ARRAY_SIZE(on) && on[f->type])
                on[f->type](a, f);
        else
                log_line(LOG_WARN, "a message of unknown type %d was ignored", f->type);
}

/* --- the head --------------------------------------------------------------------------------- */

static void on_drained(void *ctx)
{
        struct agent *a = ctx;

        agent_store_pause(a, false);
        agent_children_resume(a);
        for (size_t i = 0; i < a->n_workers; i++)
                worker_resume(a->workers[i]);
}

static void send_leaving(struct agent *a, const char *why)
{
        leaving_encode(uplink_out(&a->up), getppid() == a->guard ? why : "its guard was killed");
        a->bye = true;
}

/* Nobody listens any more: pipes are emptied into nothing, so that no worker hangs on its last
 * words. But if the guard has gone sshd has closed the way here for that, and listens. */
static void on_lost(void *ctx, const char *why)
{
        struct agent *a = ctx;

        log_set_sink(NULL, NULL);
        if (!a->bye && getppid() != a->guard)
                send_leaving(a, why);
        if (a->phase != IDLE)
                log_line(LOG_INFO, "stopping the job: %s", why);
        a->bye = true;
        agent_children_end(a);
        agent_stop(a, SHORT_GRACE_MS);
        on_drained(a);
}

static void count_heartbeat(uv_timer_t *timer)
{
        const struct agent *a = timer->data;

        a->notes->beats++;
}

static void on_turn(void *ctx)
{
        struct agent *a = ctx;

        agent_store_turn(a);
        agent_advance(a);
        agent_leave(a);
}

static void send_log_line(void *ctx, enum log_level level, const char *line)
{
        struct agent *a = ctx;
        struct logline m = { .level = (uint8_t)level };

        memcpy(m.text, line, strnlen(line, sizeof(m.text) - 1));
        logline_encode(uplink_out(&a->up), &m);
}

static void send_hello(struct agent *a)
{
        struct hello h;

        inventory_take(&h);
        port_hold(&a->port);
        a->cores = h.cores;
        h.free_port = a->port.number;
        h.mono_ns = uv_hrtime();
        buf_appends(uplink_out(&a->up), MSG_MAGIC);
        hello_encode(uplink_out(&a->up), &h);
        hello_finish(&h);
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct agent *agent_create(uv_loop_t *loop, int in_fd, int out_fd, struct guard_notes *notes,
                           struct error *err)
{
        static const struct uplink_ops ops = { .frame = on_frame,
                                               .drained = on_drained,
                                               .sent = agent_leave,
                                               .turn = on_turn,
                                               .lost = on_lost };
        struct agent *a = xcalloc(1, sizeof(*a));

        *a = (struct agent){ .loop = loop,
                             .notes = notes,
                             .guard = getppid(),
                             .contain = CONTAIN_INIT,
                             .port = PORT_INIT,
                             .file_cache = FILE_CACHE_INIT };
        a->relay = relay_create((struct relay_ops){ .up = send_store, .now = get_loop_time_ns }, a);
        if (!a->relay)
                err_set(err, ENOMEM, "out of memory");
        if (!a->relay || contain_begin(err) < 0 ||
            uplink_open(&a->up, loop, in_fd, out_fd, ops, a, err) < 0) {
                relay_destroy(a->relay);
                free(a);
                return NULL;
        }
        uv_timer_init(loop, &a->timer);
        uv_timer_init(loop, &a->reaping);
        uv_timer_init(loop, &a->recheck);
        uv_timer_init(loop, &a->held);
        uv_timer_init(loop, &a->starting);
        uv_timer_init(loop, &a->silence);
        uv_timer_init(loop, &a->beating);
        uv_signal_init(loop, &a->child_signal);
        a->timer.data = a->reaping.data = a->recheck.data = a->starting.data = a->silence.data =
                a->beating.data = a->child_signal.data = a;
        if (notes) {
                a->up.unsent = &notes->unsent;
                uv_timer_start(&a->beating, count_heartbeat, notes->beat_ms, notes->beat_ms);
        }
        uv_signal_start(&a->child_signal, agent_on_sigchld, SIGCHLD);
        log_set_sink(send_log_line, a);
        log_set_level(LOG_INFO); /* the head chooses what it shows */
        send_hello(a);
        agent_rearm_silence(a);
        return a;
}

void agent_destroy(struct agent *a)
{
        if (!a)
                return;
        log_set_sink(NULL, NULL);
        agent_drop_workers(a);
        agent_children_close(a);
        agent_store_close(a);
        agent_push_close(a);
        port_release(&a->port);
        uv_close((uv_handle_t *)&a->timer, NULL);
        uv_close((uv_handle_t *)&a->reaping, NULL);
        uv_close((uv_handle_t *)&a->recheck, NULL);
        uv_close((uv_handle_t *)&a->held, NULL);
        uv_close((uv_handle_t *)&a->starting, NULL);
        uv_close((uv_handle_t *)&a->silence, NULL);
        uv_close((uv_handle_t *)&a->beating, NULL);
        uv_close((uv_handle_t *)&a->child_signal, NULL);
        uplink_close(&a->up);
        uv_run(a->loop, UV_RUN_NOWAIT);
        contain_close(&a->contain);
        relay_destroy(a->relay);
        job_dir_remove(&a->dir);
        if (a->notes)
                a->notes->dir[0] = '\0';
        uplink_finish(&a->up);
        buf_finish(&a->common);
        free(a);
}

void agent_quit(struct agent *a, const char *why)
{
        send_leaving(a, why);
        agent_children_end(a);
        agent_stop(a, SHORT_GRACE_MS);
}
