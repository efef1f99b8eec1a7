/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything is driven by the loop: frames of the head come in through the uplink and are
 * dispatched by the table in on_frame(); SIGCHLD and timers belong to the attempt. Consequences of
 * several events are decided once in every turn: on_turn() lets the store's messages go out and the
 * attempt take its next step, on_sent() leaves if nothing keeps the agent.
 *
 * The head is lost when the uplink fails or when the head is silent for too long. Then, as after
 * quit_agent(), @bye is set and the attempt is stopped with a short grace; on_turn() does the rest.
 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/node_attempt.h"
#include "agent/attempt/rank_samples.h"
#include "agent/check/pair_test.h"
#include "agent/contain/contain.h"
#include "agent/contain/guard.h"
#include "agent/core/inventory.h"
#include "agent/core/job_dir.h"
#include "agent/core/uplink.h"
#include "agent/endpoint/store_access.h"
#include "agent/endpoint/world_stores.h"
#include "agent/files/file_cache.h"
#include "agent/files/pull_sender.h"
#include "agent/files/push_receiver.h"
#include "agent/record/node_trace.h"
#include "agent/tree/chain.h"
#include "agent/tree/child_nodes.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/relay/relay.h"

/* Milliseconds without a word of the head until an idle agent asks for a ping, and then for the
 * answer. */
enum { PING_REQUEST_MS = 30000, PINGS_COMPARED = 16 };

/* Detects the loss of the head behind an open connection (a cut cable). While ranks run or files
 * arrive the head pings; otherwise the agent asks for a ping after a time of silence. */
struct head_watch {
        uv_timer_t timer;
        uint32_t limit_ms; /* of LAUNCH or OFFER; 0 = no limit */
        unsigned n_pings;  /* since the head last slept on purpose */
        int64_t way_ns[2]; /* from the head's clock to ours, by the fastest ping of the latest ones
                            * and of those before
                            */
        bool ping_requested; /* MSG_PING_REQUEST was sent and nothing has come since */
};

struct agent {
        uv_loop_t *loop;
        struct uplink up;
        struct head_watch head;
        uv_signal_t child_signal;
        uv_timer_t heartbeat;      /* for the guard */
        struct guard_notes *notes; /* NULL = no guard */
        pid_t guard;               /* the parent process */
        struct job_dir dir;
        struct node_attempt *attempt;
        struct world_stores *stores;
        struct store_access *store; /* of world 0 */
        struct child_nodes *children;
        struct push_receiver *push;
        struct chain *chain;
        struct pull_sender *pull;
        struct node_trace *trace;
        struct rank_samples *samples;
        struct pair_test *pairs;
        bool bye;       /* leave when idle */
        bool signalled; /* the head has been told of a signal that ends this node */
};

/* --- silence of the head ---------------------------------------------------------------------- */

static void on_head_silent(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        /* After a sleep of this process the head's frames are there and wait to be read. */
        if (uplink_readable(&a->up))
                uv_timer_start(timer, on_head_silent, 100, 0);
        else
                uplink_lose(&a->up, "no sign of life from the head");
}

/* An idle agent is not pinged. A request into a cut cable ends the connection at last; the missing
 * answer shows the loss sooner. */
static void on_ping_request_due(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        if (a->head.ping_requested) {
                on_head_silent(timer);
                return;
        }
        a->head.ping_requested = true;
        empty_encode(&a->up.out, MSG_PING_REQUEST);
        uv_timer_start(timer, on_ping_request_due, PING_REQUEST_MS, 0);
}

/* The head spoke @age_ms ago. */
static void rearm_silence(struct agent *a, int64_t age_ms)
{
        int64_t left = MAX((int64_t)a->head.limit_ms - age_ms, INT64_C(1));

        a->head.ping_requested = false;
        if (node_attempt_is_idle(a->attempt) && !push_receiver_is_fetching(a->push))
                uv_timer_start(&a->head.timer, on_ping_request_due, PING_REQUEST_MS, 0);
        else if (a->head.limit_ms)
                uv_timer_start(&a->head.timer, on_head_silent, (uint64_t)left, 0);
        else
                uv_timer_stop(&a->head.timer);
}

/* --- pushed files ----------------------------------------------------------------------------- */

/* The guard removes the files if the agent dies. */
static void note_file_cache(struct guard_notes *n, const struct file_cache *c)
{
        if (!n || !c->root)
                return;
        snprintf(n->file_cache_id, sizeof(n->file_cache_id), "%s", c->id);
        snprintf(n->run_id, sizeof(n->run_id), "%s", c->offer.run_id);
        /* The root is written last: the guard takes an empty root as no files. */
        snprintf(n->file_cache_root, sizeof(n->file_cache_root), "%s", c->root);
}

/* The head pings while files arrive, and again when ranks run. */
static void on_push_changed(void *ctx)
{
        struct agent *a = ctx;
        const struct file_cache *cache = push_receiver_cache(a->push);
        bool fetching = push_receiver_is_fetching(a->push);

        note_file_cache(a->notes, cache);
        if (fetching)
                a->head.limit_ms = cache->offer.silence_ms;
        if (fetching || node_attempt_is_idle(a->attempt))
                rearm_silence(a, 0);
}

static void close_push(struct agent *a)
{
        push_receiver_close(a->push);
        if (a->notes)
                a->notes->file_cache_root[0] = '\0';
}

/* --- processes that are not of the attempt -----------------------------------------------------
 */

/* A node with GPUs may have the sampler as a child at any time. */
static bool any_part_process(void *ctx)
{
        const struct agent *a = ctx;

        return child_nodes_any(a->children) || node_attempt_has_gpus(a->attempt);
}

static bool is_part_process(void *ctx, pid_t pid)
{
        const struct agent *a = ctx;

        return rank_samples_have(a->samples, pid) || child_nodes_have(a->children, pid);
}

static void on_part_reaped(void *ctx, pid_t pid, int status)
{
        struct agent *a = ctx;

        rank_samples_reaped(a->samples, pid, status);
        child_nodes_reaped(a->children, pid, status);
}

static const struct gpu_record *get_first_gpus(void *ctx)
{
        const struct agent *a = ctx;

        return rank_samples_first_gpus(a->samples);
}

/* --- attempts --------------------------------------------------------------------------------- */

static void on_attempt_started(void *ctx)
{
        const struct agent *a = ctx;

        rank_samples_begin(a->samples);
}

static void on_attempt_ended(void *ctx)
{
        struct agent *a = ctx;

        rank_samples_end(a->samples);
        world_stores_end(a->stores);
        rearm_silence(a, 0); /* the head pings only while ranks run */
}

/* --- LAUNCH ----------------------------------------------------------------------------------- */

static int make_job_dir(struct agent *a, struct error *err)
{
        if (!a->dir.path && job_dir_create(&a->dir, err) < 0)
                return -err->code;
        if (a->notes) {
                snprintf(a->notes->pipes, sizeof(a->notes->pipes), "%s",
                         a->dir.pipes ? a->dir.pipes : "");
                snprintf(a->notes->dir, sizeof(a->notes->dir), "%s", a->dir.path);
        }
        return 0;
}

static const char *need_job_dir(void *ctx, struct error *err)
{
        struct agent *a = ctx;

        return make_job_dir(a, err) < 0 ? NULL : a->dir.path;
}

/* Decodes both halves of the order: COMMON, which came before, and LAUNCH. */
static int decode_launch_order(struct agent *a, struct launch_order *l, const struct frame *f,
                               struct error *err)
{
        struct frame common;

        *l = (struct launch_order){ .world_size = 0 };
        /* The COMMON stays as bytes with the child nodes, which may have to pass it on. */
        if (child_nodes_peek_common(a->children, &common, err) <= 0)
                return err_set(err, EPROTO, "a LAUNCH without a COMMON");
        if (launch_order_decode(l, &common, err) < 0 || launch_order_decode(l, f, err) < 0)
                return -err->code;
        child_nodes_drop_common(a->children);
        /* Among pushed files a program has a path of its own on this node. */
        for (uint32_t i = 0; i < MIN(l->n_programs, l->names.n); i++) {
                struct strv *argv = &l->programs[i].argv;

                if (!argv->n || !*l->names.v[i])
                        continue;
                free(argv->v[0]);
                argv->v[0] = l->names.v[i];
                l->names.v[i] = xstrdup("");
        }
        return 0;
}

/* Tells whether the order has ranks, each of its world and with a program, as those of other worlds
 * have. */
static bool is_order_complete(const struct launch_order *l)
{
        if (l->world_size > UINT32_MAX - l->world.first)
                return false;
        for (uint32_t i = 0; i < l->n_ranks; i++)
                if (l->ranks[i].rank >= l->world_size || l->ranks[i].program >= l->n_programs ||
                    !l->programs[l->ranks[i].program].argv.n)
                        return false;
        for (uint32_t i = 0; i < l->others.n; i++)
                if (l->others.v[i].program >= l->n_programs)
                        return false;
        return l->n_ranks;
}

/* The job's folder and the Unix endpoints are made for the first attempt and stay. */
static void on_launch(void *agent, const struct frame *f)
{
        struct agent *a = agent;
        struct store_access *store = a->store;
        struct error err;
        struct launch_order l;
        int r = decode_launch_order(a, &l, f, &err);

        if (r == 0 && !node_attempt_may_start(a->attempt, &l))
                r = err_set(&err, EBUSY, "ranks are already running on this node");
        if (r == 0 && !is_order_complete(&l))
                r = err_set(
                        &err, EINVAL,
                        "an order without ranks or without a program, or with ranks of no world");
        if (r == 0)
                r = make_job_dir(a, &err);
        if (r == 0)
                r = world_stores_listen(a->stores, l.world.number, a->dir.store, &store, &err);
        if (r == 0) {
                if (node_attempt_is_again(a->attempt, &l))
                        store_access_again(store);
                store_access_start(store, &l);
                a->head.limit_ms = l.silence_ms;
                node_attempt_start(a->attempt, &l, store);
                rearm_silence(a, 0);
        } else {
                node_attempt_refuse_order(a->attempt, &l, err.text);
        }
        launch_order_finish(&l);
}

/* --- other orders ----------------------------------------------------------------------------- */

/* Returns how much later than the fastest of 16 to 32 pings this one has come: a network that was
 * cut, or a node that did not run, delivers old ones. Old enough pings are left out, since the
 * head's clock stands still while its machine sleeps. */
static int64_t find_ping_age(struct head_watch *h, const struct ping *m)
{
        int64_t way = (int64_t)(m->agent_ns - m->head_ns), most = INT64_MAX / 4;

        way = MAX(MIN(way, most), -most); /* the head may say anything */
        if (h->n_pings % PINGS_COMPARED == 0) {
                /* The latest pings become those of before, and a new group begins. */
                h->way_ns[1] = h->n_pings ? h->way_ns[0] : way;
                h->way_ns[0] = way;
        }
        h->n_pings++;
        h->way_ns[0] = MIN(h->way_ns[0], way);
        return way - MIN(h->way_ns[0], h->way_ns[1]);
}

/* A ping of the head is a lease from the time at which it was sent. One without a time announces
 * the head's sleep. */
static void on_ping(void *agent, const struct frame *f)
{
        struct agent *a = agent;
        int64_t age = 0;
        struct ping m;

        if (ping_decode(&m, f, NULL) < 0)
                return;
        m.agent_ns = uv_hrtime();
        ping_encode(&a->up.out, MSG_PONG, &m);
        if (m.head_ns)
                age = find_ping_age(&a->head, &m);
        child_nodes_ping(a->children, (int64_t)m.agent_ns, m.head_ns ? age : -1);
        if (m.head_ns) {
                rearm_silence(a, age / 1000000);
        } else {
                uv_timer_stop(&a->head.timer);
                a->head.n_pings = 0;
        }
}

/* The number 0 after SIGTERM to this agent: the head drains the node, and says when the agent
 * leaves. */
static void on_signal(void *agent, const struct frame *f)
{
        struct agent *a = agent;
        uint32_t signo;

        if (number_decode(&signo, f, NULL) == 0 && !signo && a->signalled)
                a->bye = false;
        node_attempt_on_signal(a->attempt, f);
}

static void on_bye(void *agent, const struct frame *f UNUSED)
{
        struct agent *a = agent;

        a->bye = true;
        pull_sender_stop(a->pull);
        /* Running ranks still use the pushed files: then agent_destroy() closes the cache. */
        if (node_attempt_is_idle(a->attempt))
                close_push(a);
}

/* The ranks have ended: the head orders this behind the last GONE. */
static void on_pull(void *agent, const struct frame *f)
{
        struct agent *a = agent;
        struct pull_order m;
        struct error err;

        if (pull_order_decode(&m, f, &err) < 0)
                log_line(LOG_WARN, "%s", err.text);
        else if (node_attempt_is_idle(a->attempt)) {
                pull_sender_begin(a->pull, &m, node_attempt_cwd(a->attempt));
                push_receiver_mark_pulled(a->push);
        }
        pull_order_finish(&m);
}

static void on_record(void *agent, const struct frame *f)
{
        struct agent *a = agent;
        uint32_t max;

        if (number_decode(&max, f, NULL) < 0)
                return;
        /* Requests without an answer are part of the trace: often they show the cause of a hang. */
        world_stores_each(a->stores, store_access_trace_open);
        node_trace_send(a->trace, max);
}

/* --- events of the uplink --------------------------------------------------------------------- */

#define OF_AGENT(handler)                                                                          \
        {                                                                                          \
                handler, SIZE_MAX                                                                  \
        }
#define OF(member, handler)                                                                        \
        {                                                                                          \
                handler, offsetof(struct agent, member)                                            \
        }

/* Which part of the agent takes an order: @part is the place of the pointer to it. */
static const struct {
        void (*take)(void *part, const struct frame *f);
        size_t part;
} orders[256] = {
        [MSG_LAUNCH] = OF_AGENT(on_launch),
        [MSG_SIGNAL] = OF_AGENT(on_signal),
        [MSG_SIGNAL_RANKS] = OF(attempt, node_attempt_on_signal_ranks),
        [MSG_STOP] = OF(attempt, node_attempt_on_stop),
        [MSG_CREDIT] = OF(attempt, node_attempt_on_credit),
        [MSG_STDIN] = OF(attempt, node_attempt_on_stdin),
        [MSG_RESIZE] = OF(attempt, node_attempt_on_resize),
        [MSG_PING] = OF_AGENT(on_ping),
        [MSG_BYE] = OF_AGENT(on_bye),
        [MSG_PULL] = OF_AGENT(on_pull),
        [MSG_STORE] = OF(store, store_access_on_store),
        [MSG_WORLD] = OF(stores, world_stores_on_world),
        [MSG_RECORD] = OF_AGENT(on_record),
        [MSG_STATUS_REQUEST] = OF(attempt, node_attempt_on_status_request),
        [MSG_INSPECT] = OF(attempt, node_attempt_on_inspect),
        [MSG_BIND] = OF(attempt, node_attempt_on_bind),
        [MSG_WARM] = OF(attempt, node_attempt_on_warm),
        [MSG_CHECK] = OF(attempt, node_attempt_on_check),
        [MSG_MEASURE] = OF(pairs, pair_test_on_measure),
        [MSG_SAMPLE] = OF(samples, rank_samples_on_order),
        [MSG_CHILD_AGENT] = OF(children, child_nodes_on_child_agent),
        [MSG_PRUNE] = OF(children, child_nodes_on_prune),
        [MSG_TUNNEL] = OF(children, child_nodes_on_tunnel),
        [MSG_COMMON] = OF(children, child_nodes_on_common),
        [MSG_ENDPOINT] = OF(store, store_access_on_endpoint),
        [MSG_PROBE] = OF(store, store_access_on_probe),
        [MSG_PORTS] = OF(store, store_access_on_ports),
        [MSG_OWNERS_REQUEST] = OF(store, store_access_on_owners_request),
        [MSG_OWNERS] = OF(store, store_access_on_owners),
        [MSG_OFFER] = OF(push, push_receiver_on_offer),
        [MSG_PACK] = OF(chain, chain_on_pack),
        [MSG_CHAIN] = OF(chain, chain_on_chain),
        [MSG_LOOK] = OF(push, push_receiver_on_look),
        [MSG_STAGE] = OF(push, push_receiver_on_stage),
};

static void on_frame(void *ctx, const struct frame *f)
{
        struct agent *a = ctx;
        size_t place = orders[f->type].part;
        void *part = a;

        a->head.ping_requested = false;
        if (!msg_comes_from(f->type, MSG_FROM_HEAD)) {
                log_line(LOG_WARN, "a message of unknown type %d was ignored", f->type);
                return;
        }
        if (place != SIZE_MAX)
                /* The member is a pointer to some struct: memcpy() reads it without a cast between
                 * pointer types. */
                memcpy(&part, (char *)a + place, sizeof(part));
        orders[f->type].take(part, f);
}

/* The order decides which part writes first into the free space: the store, then child agents, then
 * output. */
static void on_drained(void *ctx)
{
        struct agent *a = ctx;

        world_stores_each(a->stores, store_access_resume);
        child_nodes_resume(a->children);
        node_attempt_resume_outputs(a->attempt);
}

/* The guard is the parent: another parent means that the guard was killed. */
static void send_leaving(struct agent *a, const char *why)
{
        leaving_encode(&a->up.out, getppid() == a->guard ? why : "its guard was killed");
        a->bye = true;
}

/* Stops the attempt. Outputs are read and dropped from now on, so no worker blocks while writing.
 * If the guard has died, sshd has therefore closed the agent's input and still reads the output:
 * the head is told. */
static void on_lost(void *ctx, const char *why)
{
        struct agent *a = ctx;

        log_set_sink(NULL, NULL);
        if (!a->bye && getppid() != a->guard)
                send_leaving(a, why);
        if (!node_attempt_is_idle(a->attempt))
                log_line(LOG_INFO, "stopping the job: %s", why);
        a->bye = true;
        child_nodes_end(a->children);
        node_attempt_stop(a->attempt, MSG_LOST_GRACE_MS);
        on_drained(a);
}

static void on_turn(void *ctx)
{
        struct agent *a = ctx;

        world_stores_each(a->stores, store_access_turn);
        node_attempt_turn(a->attempt);
        pull_sender_turn(a->pull, &a->up);
        node_trace_turn(a->trace, &a->up);
}

/* Stops the loop when nothing else keeps the agent: no attempt, no child agent. */
static void on_sent(void *ctx)
{
        const struct agent *a = ctx;

        if (node_attempt_is_idle(a->attempt) && a->bye && !child_nodes_any(a->children))
                uv_stop(a->loop);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void on_heartbeat(uv_timer_t *timer)
{
        const struct agent *a = timer->data;

        a->notes->beats++;
}

static void send_log_line(void *ctx, enum log_level level, int id, const char *line)
{
        struct agent *a = ctx;
        struct logline m = { .level = (uint8_t)level, .id = (uint32_t)id };

        memcpy(m.text, line, strnlen(line, sizeof(m.text) - 1));
        logline_encode(&a->up.out, &m);
}

/* MSG_MAGIC comes before the first frame: the head skips what login scripts have printed. */
static void send_hello(struct agent *a)
{
        struct hello h;

        inventory_take(&h);
        node_attempt_set_node(a->attempt, &h);
        h.free_port = store_access_hold_port(a->store);
        h.mono_ns = uv_hrtime();
        buf_appends(&a->up.out, MSG_MAGIC);
        hello_encode(&a->up.out, &h);
        hello_finish(&h);
}

static void on_child_signal(uv_signal_t *handle, int signo UNUSED)
{
        const struct agent *a = handle->data;

        node_attempt_reap(a->attempt);
}

static void init_handles(struct agent *a)
{
        uv_timer_init(a->loop, &a->head.timer);
        uv_timer_init(a->loop, &a->heartbeat);
        uv_signal_init(a->loop, &a->child_signal);
        a->head.timer.data = a->heartbeat.data = a->child_signal.data = a;
        if (a->notes) {
                a->up.unsent = &a->notes->unsent;
                uv_timer_start(&a->heartbeat, on_heartbeat, a->notes->beat_ms, a->notes->beat_ms);
        }
        uv_signal_start(&a->child_signal, on_child_signal, SIGCHLD);
}

/* Each part gets what it uses of those before it. */
static void create_parts(struct agent *a)
{
        a->trace = node_trace_create();
        a->push = push_receiver_create(&a->up, on_push_changed, a);
        a->chain = chain_create(a->loop, &a->up, a->push);
        a->stores = world_stores_create(a->loop, &a->up, a->trace);
        a->store = world_stores_get(a->stores, 0);
        a->children = child_nodes_create(&(struct child_nodes_deps){
                .loop = a->loop,
                .up = &a->up,
                .relay = store_access_relay(a->store),
                .need_dir = need_job_dir,
                .ctx = a,
        });
        a->attempt = node_attempt_create(&(struct node_attempt_deps){ .loop = a->loop,
                                                                      .up = &a->up,
                                                                      .dir = &a->dir,
                                                                      .push = a->push,
                                                                      .trace = a->trace,
                                                                      .notes = a->notes },
                                         &(struct node_attempt_ops){ .started = on_attempt_started,
                                                                     .ended = on_attempt_ended,
                                                                     .any_other = any_part_process,
                                                                     .is_other = is_part_process,
                                                                     .other_reaped = on_part_reaped,
                                                                     .first_gpus = get_first_gpus,
                                                                     .ctx = a });
        a->pull = pull_sender_create(a->loop);
        a->samples = rank_samples_create(a->loop, &a->up, a->attempt, a->stores, a->trace);
        a->pairs = pair_test_create(a->loop, &a->up);
}

struct agent *agent_create(uv_loop_t *loop, int in_fd, int out_fd, struct guard_notes *notes,
                           struct error *err)
{
        static const struct uplink_ops ops = { .frame = on_frame,
                                               .drained = on_drained,
                                               .sent = on_sent,
                                               .turn = on_turn,
                                               .lost = on_lost };
        struct agent *a = xcalloc(1, sizeof(*a));

        a->loop = loop;
        a->notes = notes;
        a->guard = getppid();
        if (contain_begin(err) < 0 || uplink_open(&a->up, loop, in_fd, out_fd, ops, a, err) < 0) {
                free(a);
                return NULL;
        }
        create_parts(a);
        init_handles(a);
        log_set_sink(send_log_line, a);
        log_set_level(LOG_INFO); /* the head selects the lines to show */
        send_hello(a);
        rearm_silence(a, 0);
        return a;
}

void agent_destroy(struct agent *a)
{
        if (!a)
                return;
        log_set_sink(NULL, NULL);
        node_attempt_close(a->attempt);
        child_nodes_close(a->children);
        world_stores_each(a->stores, store_access_close);
        close_push(a);
        pull_sender_destroy(a->pull);
        rank_samples_close(a->samples);
        pair_test_close(a->pairs);
        chain_close(a->chain);
        uv_close((uv_handle_t *)&a->head.timer, NULL);
        uv_close((uv_handle_t *)&a->heartbeat, NULL);
        uv_close((uv_handle_t *)&a->child_signal, NULL);
        uplink_close(&a->up);
        /* Close callbacks run before the memory of their handles goes. */
        uv_run(a->loop, UV_RUN_NOWAIT);
        rank_samples_destroy(a->samples);
        pair_test_destroy(a->pairs);
        node_attempt_destroy(a->attempt);
        child_nodes_destroy(a->children);
        world_stores_destroy(a->stores);
        chain_destroy(a->chain);
        push_receiver_destroy(a->push);
        if (job_dir_remove(&a->dir) == 0 && a->notes)
                a->notes->dir[0] = '\0'; /* else the guard tries again */
        uplink_finish(&a->up);
        node_trace_destroy(a->trace);
        free(a);
}

/* Stops everything with a short grace and leaves; the head is told @why. */
static void quit_agent(struct agent *a, const char *why)
{
        send_leaving(a, why);
        child_nodes_end(a->children);
        node_attempt_stop(a->attempt, MSG_LOST_GRACE_MS);
}

/* SIGTERM also tells that the guard has died. */
void agent_signalled(struct agent *a, int signo)
{
        bool managed = getenv("HNLAUNCH_MANAGED"), usr = signo == SIGUSR1 || signo == SIGUSR2;

        /* On a hold ranks are those of the child agents. */
        if (getppid() == a->guard && child_nodes_signal(a->children, signo, !usr)) {
                a->bye |= !usr;
                return;
        }
        /* Ranks that got the signal, too, may have ended before: others of the job have not. */
        if (managed && !usr && getppid() == a->guard && node_attempt_is_idle(a->attempt))
                number_encode(&a->up.out, MSG_SIGNAL, (uint32_t)signo);
        /* Without a guard, or without ranks, nothing has to be drained. */
        if (getppid() != a->guard || node_attempt_is_idle(a->attempt) || (usr && !managed)) {
                quit_agent(a, strsignal(signo));
                return;
        }
        if (a->signalled) /* one cause may send several */
                return;
        number_encode(&a->up.out, MSG_SIGNAL, (uint32_t)signo);
        /* The manager signals hnlaunch or all agents as well, so the head decides for all nodes. */
        if (managed)
                return;
        a->signalled = a->bye = true;
        node_attempt_stop_unless_ordered(a->attempt);
}
