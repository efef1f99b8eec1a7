/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds: writes first inputs for fuzz_frame and fuzz_msg, one of each message, for fuzz_store
 * requests of every kind, for fuzz_pmix_msg one of each message, and for fuzz_tcpstore_a and _b the
 * commands that PyTorch's Python classes do not let us record
 *
 * usage: seeds CORPUS        fills frame, msg, pmix_msg, store, tcpstore_a and tcpstore_b in CORPUS
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/bind_msg.h"
#include "wire/check_msg.h"
#include "wire/codec.h"
#include "wire/endpoint_msg.h"
#include "wire/helper/pmix_msg.h"
#include "wire/measure_msg.h"
#include "wire/msg.h"
#include "wire/push_msg.h"
#include "wire/status_msg.h"
#include "wire/store_msg.h"
#include "wire/tcpstore.h"
#include "wire/trace/trace.h"
#include "wire/tree_msg.h"
#include "wire/warm_msg.h"

static const char *corpus;

/* Empties @b. */
static void write_file(const char *folder, const char *name, struct buf *b)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s/%s", corpus, folder, name);
        FILE *f = fopen(path, "we");

        if (!f || fwrite(buf_data(b), 1, buf_len(b), f) != buf_len(b) || fclose(f) != 0) {
                fprintf(stderr, "seeds: %s: %s\n", path, strerror(errno));
                exit(1);
        }
        buf_clear(b);
}

/* As fuzz_msg wants it (type, body) and as fuzz_frame wants it (step, frame). Empties @b. */
static void write_message(struct buf *b, const char *name)
{
        CLEANUP(buf_finish) struct buf out = BUF_INIT;

        buf_append(&out, buf_data(b) + 4, buf_len(b) - 4);
        write_file("msg", name, &out);
        buf_append(&out, "\x10", 1);
        buf_append(&out, buf_data(b), buf_len(b));
        write_file("frame", name, &out);
        buf_clear(b);
}

/* Writes a message with these fields. */
#define SEED(b, name, message, ...)                                                                \
        do {                                                                                       \
                message##_encode(b, &(struct message){ __VA_ARGS__ });                             \
                write_message(b, name);                                                            \
        } while (0)

static void seed_hello(struct buf *b)
{
        struct msg_gpu gpus[] = { { 0, "GPU-0", "H100" }, { 1, "", "" } };
        struct msg_addr addrs[] = { { "eth0", "10.0.0.1", 24 } };
        struct hello m = { .version = MSG_VERSION,
                           .pid = 7,
                           .uid = 0,
                           .cores = 2,
                           .arch = "x86_64",
                           .host = "h",
                           .machine = "boot/1",
                           .memory = 1 << 30,
                           .nofile = 64,
                           .mono_ns = 5,
                           .gpus = gpus,
                           .n_gpus = 2,
                           .addrs = addrs,
                           .n_addrs = 1,
                           .locking = { 65536, 2 } };

        hello_encode(b, &m);
        write_message(b, "hello");
        m.version++;
        hello_encode(b, &m);
        write_message(b, "hello-newer");
}

static void seed_bindings(struct buf *b)
{
        uint32_t gpus[] = { 0, 1 };
        struct bind_query_rank asked[] = { { 0, 4, gpus, 2 }, { 1, 0, NULL, 0 } };
        struct bind_query_rank others[] = { { 2, 0, gpus, 2 } };
        struct bound_rank ranks[] = { { 0, (char *)"0-3,8", 0, "", (char *)"mlx5_0:1" },
                                      { 1, (char *)"", UINT32_MAX, "few cores", (char *)"" } };

        SEED(b, "bind", bind_query, (char *)"exclusive", true, asked, 2, others, 1);
        SEED(b, "bound", bound, ranks, 2);
}

static void seed_launch(struct buf *b)
{
        uint32_t gpus[] = { 0, 1 };
        struct node_block block = { 0, 1, 2 };
        struct launch_rank ranks[] = { { 0, 0, gpus, 2 }, { 1, 1, NULL, 0 } };
        struct compat_node node = { .name = (char *)"gpu001", .n_ranks = 2 };
        struct launch_port ports[] = { { "jax", 40001 } };
        struct launch_program program = { .cwd = (char *)"",
                                          .arguments = { true, "--local_rank" },
                                          .ready = { READY_HTTP, false, (char *)"http",
                                                     (char *)"/health" } };
        struct launch_order m = { .run_id = "k3f9",
                                  .world_size = 2,
                                  .num_nodes = 1,
                                  .agent_store = true,
                                  .iface = "lo",
                                  .contain = CONTAIN_CGROUP,
                                  .bind = (char *)"list:0;1-3",
                                  .compat = { COMPAT_SLURM, &node, 1 },
                                  .cwd = xstrdup("/tmp"),
                                  .host = "n0",
                                  .programs = &program,
                                  .n_programs = 1,
                                  .first_node = { "10.0.0.1", ports, 1 },
                                  .mpi = { MPI_PMI1, { &block, 1 } },
                                  .ranks = ranks,
                                  .n_ranks = 2 };

        strv_push(&program.argv, "./a.out");
        strv_push(&program.argv, "");
        strv_push(&program.env, "C=d");
        strv_push(&m.names, "./b.out");
        strv_push(&m.env, "A=b");
        strv_push(&m.unset, "SLURM_*");
        strv_push(&program.arguments.wrap, "env");
        common_encode(b, &m);
        write_message(b, "common");
        launch_order_encode(b, &m);
        write_message(b, "launch");
        m.rank_ports = (struct launch_rank_ports[]){ { NULL, 0 }, { ports, 1 } };
        m.n_rank_ports = 2;
        m.near_nic = true;
        m.others = (struct launch_others){ (struct launch_other[]){ { 2, 0, gpus, 2 } }, 1 };
        launch_order_encode(b, &m);
        write_message(b, "launch_rank_ports");
        free(m.cwd);
        strv_finish(&m.names);
        strv_finish(&m.env);
        strv_finish(&m.unset);
        strv_finish(&program.argv);
        strv_finish(&program.env);
        strv_finish(&program.arguments.wrap);
}

static void seed_numbers(struct buf *b)
{
        static const struct {
                const char *name;
                uint8_t type;
                uint32_t number;
        } seeds[] = {
                { "stop", MSG_STOP, 15000 },  { "rank_ready", MSG_RANK_READY, 3 },
                { "signal", MSG_SIGNAL, 15 }, { "ports", MSG_PORTS, 2 },
                { "prune", MSG_PRUNE, 7 },    { "ask", MSG_STATUS_REQUEST, 5 },
                { "taken", MSG_TAKEN, 5 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
                number_encode(b, seeds[i].type, seeds[i].number);
                write_message(b, seeds[i].name);
        }
}

static void seed_small_ones(struct buf *b)
{
        SEED(b, "started", started, 1, 2);
        SEED(b, "refused", refused, 1, REFUSED_EXEC, ENOENT, "./a.out");
        SEED(b, "exited", exited, 1, 2, 139, 3, 0, 0, "/job", 1, 2);
        SEED(b, "output", output, 1, MSG_STDOUT, (const unsigned char *)"hi\n", 3);
        SEED(b, "credit", credit, 1, MSG_STDERR, 65536);
        ping_encode(b, MSG_PING, &(struct ping){ 1, 2 });
        write_message(b, "ping");
        ping_encode(b, MSG_PONG, &(struct ping){ 1, 2 });
        write_message(b, "pong");
        SEED(b, "log", logline, 2, 314, "a line");
        rank_bytes_encode(b, MSG_STDIN, 0, "in", 2);
        write_message(b, "stdin");
        SEED(b, "resize", launch_terminal, 1, 24, 80, "");
        SEED(b, "signal-ranks", ranks_signal, 15, 0, 2, 1);
        empty_encode(b, MSG_BYE);
        write_message(b, "bye");
        store_encode(b, "opaque", 6);
        write_message(b, "store");
}

static void seed_endpoints(struct buf *b)
{
        struct endpoint_order endpoint = {
                .mode = ENDPOINT_NETWORK, .token = "token", .value_max = 9, .ask_owners = true
        };
        struct probe_order probe = { .token = "token", .port = 29400, .timeout_ms = 1000 };
        struct probe_result results[] = { { 0, "eth0", 80 }, { ECONNREFUSED, "", 9 } };

        strv_push(&endpoint.peers, "10.0.0.1");
        strv_push(&probe.addrs, "10.0.0.1");
        strv_push(&probe.addrs, "fe80::1");
        endpoint_order_encode(b, &endpoint);
        write_message(b, "endpoint");
        probe_order_encode(b, &probe);
        write_message(b, "probe");
        SEED(b, "endpoint_opened", endpoint_opened, 29400, "");
        SEED(b, "probed", probed, results, 2);
        SEED(b, "ports_held", ports_held, (uint32_t[]){ 40001, 40002 }, 2, "");
        endpoint_order_finish(&endpoint);
        probe_order_finish(&probe);
}

static void seed_owners(struct buf *b)
{
        uint32_t ports[] = { 40001, 40002 };
        struct owner owners[] = { { OWNER_OTHER, 65533 }, { OWNER_NONE, 0 } };
        struct owners_request asked = {
                .number = 3, .port = 29400, .ports = ports, .n = ARRAY_SIZE(ports)
        };

        memset(asked.ends.from, 0xfe, sizeof(asked.ends.from));
        memset(asked.ends.to, 0xfd, sizeof(asked.ends.to));
        owners_request_encode(b, &asked);
        write_message(b, "owners_request");
        SEED(b, "owners", owners, 3, "node002", owners, ARRAY_SIZE(owners));
}

static void seed_branches(struct buf *b)
{
        struct child_agent_order o = { .number = 7,
                                       .options_at = 1,
                                       .alias = (char *)"node007",
                                       .known_hosts = (char *)"node007 ssh-ed25519 AAAA\n" };
        static const char *const names[TUNNEL_KINDS] = {
                "tunnel",        "tunnel-upload", "tunnel-took",  "tunnel-noise", "tunnel-ended",
                "tunnel-failed", "tunnel-watch",  "tunnel-heard", "tunnel-clock", "tunnel-common"
        };

        strv_push(&o.argv, "ssh");
        strv_push(&o.argv, "node007");
        child_agent_order_encode(b, &o);
        write_message(b, "child_agent");
        strv_finish(&o.argv);
        for (uint8_t kind = 0; kind < TUNNEL_KINDS; kind++) {
                bool text = kind == TUNNEL_BYTES || kind == TUNNEL_NOISE || kind == TUNNEL_FAILED;

                SEED(b, names[kind], tunnel, .child = 7, .kind = kind, .number = text ? 0 : 9,
                     .data = (const unsigned char *)"bytes", .len = text ? 5 : 0);
        }
}

static void seed_statuses(struct buf *b)
{
        struct node_status_rank rank = {
                .rank = 3, .pid = 7, .state = 'S', .wait = { "WAIT", "k", 1, 9 }, .n_ports = 2
        };
        struct node_status_conn conn = { .addr = "10.0.0.1",
                                         .port = 40000,
                                         .wait = { "", "", 0, 0 } };
        CLEANUP(buf_finish) struct buf piece = BUF_INIT;

        SEED(b, "status", node_status, .number = 5, .ranks = &rank, .n_ranks = 1, .conns = &conn,
             .n_conns = 1);
        SEED(b, "inspect", inspect_order, .number = 5, .what = INSPECT_STACKS, .limit_ms = 1000,
             .ranks = (uint32_t[]){ 3, 1 }, .n_ranks = 2);
        SEED(b, "inspect-core", inspect_order, .number = 5, .what = INSPECT_CORE, .limit_ms = 5000,
             .ranks = (uint32_t[]){ 3 }, .n_ranks = 1, .pid = 4711, .dumped = true);
        SEED(b, "inspect-facts", inspect_order, .number = 8, .what = INSPECT_FACTS,
             .path = "/data/run/step-7.pt", .gpus = (uint32_t[]){ 0, 1 }, .n_gpus = 2);
        SEED(b, "facts", node_facts, .number = 8, .fs_type = 0xEF53, .fs_id = 7,
             .gpu = "Xid 79 (fallen off the bus)", .held = "7 MiB of GPU 1, of rank 0 (pid 7)");
        SEED(b, "check", check_order, .number = 9, .what = CHECK_PLACE,
             .paths = (struct check_path[]){ { .name = "program",
                                               .kind = CHECK_PROGRAM,
                                               .path = (char[]){ "./a.out" },
                                               .cwd = (char[]){ "/data" },
                                               .search = (char[]){ "/usr/bin" } } },
             .n_paths = 1,
             .programs =
                     (struct check_program[]){
                             { .number = 1,
                               .argv = { (char *[]){ (char[]){ "python3" } }, 1, 1 },
                               .env = { (char *[]){ (char[]){ "PATH=/bin" } }, 1, 1 },
                               .cwd = (char[]){ "/data" } } },
             .n_programs = 1,
             .names = { (struct check_name[]){ { "name.7", (char[]){ "node007" } } }, 1 },
             .run = (char[]){ "true" }, .run_cwd = (char[]){ "/data" });
        SEED(b, "checked", checked, .number = 9, .more = true,
             .facts = (struct check_fact[]){ { "kernel", "6.1.0", "" },
                                             { "thp", "", "cannot read" } },
             .n_facts = 2);
        SEED(b, "measure", measure_order, .number = 10, .token = "abcdefghijkmnpqrstuvwxyz23456789",
             .listen = true, .timeout_ms = 1800, .send_ms = 150, .send_bytes = 32 << 20,
             .targets =
                     (struct measure_target[]){
                             { .port = 40000,
                               .addrs = { .v = (char *[]){ (char[]){ "10.0.0.2" } }, .n = 1 } } },
             .n_targets = 1);
        SEED(b, "measured", measured, .number = 10, .port = 40000,
             .results =
                     (struct measured_target[]){
                             { .latency_us = 150, .sent = 117000000, .received = 116000000 } },
             .n_results = 1);
        SEED(b, "warm", warm_order, .word = (char[]){ "python" },
             .modules = { .v = (char *[]){ (char[]){ "torch" } }, .n = 1 }, .slots = 8,
             .bind = (char[]){ "auto" }, .cwd = (char[]){ "/data" },
             .env = { .v = (char *[]){ (char[]){ "A=1" } }, .n = 1 });
        SEED(b, "warmed", warmed, .slots = 8, .mib = 230, .ms = 1500);
        SEED(b, "inspected", inspected, .number = 5, .left = 1, .rank = 3, .pid = 7, .state = 'S',
             .io_kib = 65, .name = "python3", .blocked = "read /tmp/fifo", .source = "py-spy",
             .stack = (char[]){ "f (a.py:1)\n" });
        SEED(b, "ras", ras_reply, .number = 6, .look = 1, .problem = "no answer",
             .text = (char[]){ "{\"nccl_version\"" });
        SEED(b, "dump_asked", dump, .number = 7, .left = 1, .rank = 3, .size = 8, .at = 4,
             .data = (const unsigned char *)"dump", .len = 4);
        SEED(b, "sampled", sample, .mono_ms = 1, .interval_ms = 1000,
             .ranks = (struct sample_rank[]){ { .state = 'S', .wait_op = 12 } }, .n_ranks = 1,
             .gpus = (struct sample_gpu[]){ { .watts = 700 } }, .n_gpus = 1);
        trace_begin(&piece, 1000000);
        for (uint8_t kind = TRACE_STEP; kind < TRACE_KINDS; kind++)
                trace_put(&piece, 1000000,
                          &(struct trace_record){ .kind = kind,
                                                  .us = 1000000 + kind,
                                                  .rank = 3,
                                                  .number = 300,
                                                  .more = 70000,
                                                  .data = "key",
                                                  .len = 3 });
        SEED(b, "recorded", recorded, true, buf_data(&piece), buf_len(&piece));
        leaving_encode(b, "SIGTERM");
        write_message(b, "leaving");
        rank_bytes_encode(b, MSG_REPORT, 1, "{}", 2);
        write_message(b, "report");
        SEED(b, "dump", dump, .rank = 1, .size = 6, .data = (const unsigned char *)"pickle",
             .len = 6);
        SEED(b, "nccl", nccl_report, 22809, "/lib/libnccl.so.2");
}

static void seed_pushes(struct buf *b)
{
        char data[] = "data", x[] = "data/x", l[] = "data/l";
        struct push_entry entries[] = {
                { .kind = PUSH_FOLDER, .mode = 0755, .path = data },
                { .kind = PUSH_FILE, .mode = 0644, .size = 5, .sha = { 7 }, .path = x },
                { .kind = PUSH_LINK, .mode = 0777, .path = l, .target = x + 5 },
        };
        struct push_offer offer = { .run_id = "k3f9a",
                                    .node = 1,
                                    .silence_ms = 30000,
                                    .label = { PUSH_VENV, 1 << 30, { 3, 4 }, x, { l, 7, { 5 } } },
                                    .manifest = { entries, ARRAY_SIZE(entries) } };
        struct staged_copy copy = { .folder = x,
                                    .name = l,
                                    .use = PUSH_STAGE,
                                    .bytes = 5,
                                    .files = 1,
                                    .age_s = 60,
                                    .in_use = 1 };
        struct pushed full = {
                .error = ENOSPC, .free_bytes = 9, .folder = "/f", .what = "no room"
        };
        struct push_piece piece = { 1, 0, 5 };
        uint32_t wanted[] = { 1, 2 };
        char *strings[] = { data, x };

        push_offer_encode(b, &offer);
        write_message(b, "offer");
        SEED(b, "look", push_look, 1);
        SEED(b, "pack", push_pack, .stream = 1, .pieces = &piece, .n = 1,
             .data = (const unsigned char *)"hello", .len = 5);
        SEED(b, "chain", chain_order, .number = 1, .stream = 1, .packs = 1, .what = CHAIN_CONNECT,
             .port = 4000, .addrs = { strings, 1, 1 });
        SEED(b, "chained", chain_report, 1, 1, CHAINED_LISTENS, 0, 4000, 0);
        SEED(b, "want", push_want, PUSH_NO_NODE, wanted, 2);
        pushed_encode(b, &full);
        write_message(b, "pushed");
        SEED(b, "pull", pull_order, { strings, 1, 1 }, { strings + 1, 1, 1 });
        SEED(b, "stage", stage_order, 1, 1 << 20, 3600);
        SEED(b, "staged", staged, &copy, 1);
        SEED(b, "pulled", pulled, PULL_LINK, 1, 0777, 0, l, (const unsigned char *)"x", 1);
}

static void write_pmix_message(struct buf *b, const char *name)
{
        CLEANUP(buf_finish) struct buf out = BUF_INIT;

        buf_append(&out, buf_data(b) + 4, buf_len(b) - 4);
        write_file("pmix_msg", name, &out);
        buf_clear(b);
}

static void seed_pmix(struct buf *b)
{
        uint32_t ranks[] = { 2, 3 }, programs[] = { 0, 1 };
        char *vars[] = { (char *)"PMIX_RANK=2", (char *)"A=", NULL };
        const struct pmix_job job = { .run_id = "k3f9a",
                                      .restart = 1,
                                      .world_size = 4,
                                      .num_nodes = 2,
                                      .node = 1,
                                      .nodes = (char *)"node0,node1",
                                      .ranks = (char *)"0,1;2,3",
                                      .local = ranks,
                                      .n_local = 2,
                                      .programs = programs,
                                      .n_programs = 2,
                                      .oversubscribed = true,
                                      .folder = (char *)"/tmp/x",
                                      .program = (char *)"./a",
                                      .cwd = (char *)"/",
                                      .prefix = (char *)"" };
        const struct pmix_note note = { .id = 7,
                                        .rank = 3,
                                        .status = -46,
                                        .ranks = ranks,
                                        .n_ranks = 2,
                                        .data = (const unsigned char *)"blob",
                                        .len = 4 };

        pmix_job_encode(b, &job);
        write_pmix_message(b, "job");
        pmix_env_encode(b, &(struct pmix_env){ .rank = 2, .vars = { vars, 2, 3 } });
        write_pmix_message(b, "env");
        pmix_note_encode(b, PMIX_MSG_FENCE, &note);
        write_pmix_message(b, "fence");
        pmix_note_encode(b, PMIX_MSG_READY, &(struct pmix_note){ 0 });
        write_pmix_message(b, "ready");
}

static void put_request(struct buf *b, uint8_t node, const struct store_request *m)
{
        CLEANUP(buf_finish) struct buf body = BUF_INIT;

        store_request_encode(&body, m);
        put_u8(b, node);
        put_bytes(b, buf_data(&body), buf_len(&body));
}

/* Both nodes wait for many keys, and fetch them when they are there. */
static void seed_store_lists(struct buf *b)
{
        enum { MANY = 24, SIZE = 700 };
        static char names[MANY][16], value[SIZE];
        struct bytes keys[MANY];
        struct store_request list = { .op = STORE_WAIT, .keys = keys, .n_keys = MANY };

        for (uint32_t i = 0; i < MANY; i++) {
                snprintf(names[i], sizeof(names[i]), "some-key-%u", i);
                keys[i] = bytes_of(names[i]);
        }
        for (uint32_t i = 0; i < 4; i++) {
                list.tag = i;
                put_request(b, i % 2, &list);
        }
        put_request(b, 0, &(struct store_request){ .op = STORE_JOIN, .tag = 2 });
        put_request(b, 0, &(struct store_request){ .op = STORE_CANCEL });
        put_request(b, 0, &(struct store_request){ .op = STORE_PUSH, .tag = 9, .key = keys[3] });
        for (uint32_t i = 0; i < MANY; i++)
                put_request(b, 0,
                            &(struct store_request){ .op = STORE_SET,
                                                     .tag = 9,
                                                     .key = keys[i],
                                                     .value = { value, SIZE } });
        list.op = STORE_FETCH;
        for (uint32_t i = 0; i < 4; i++)
                put_request(b, i % 2, &list);
        write_file("store", "lists", b);
}

/* The ranks of both nodes come to meetings together, in one request and in two; one leaves, one
 * comes twice, one differs. */
static void seed_store_meetings(struct buf *b)
{
        uint32_t ranks[] = { 0, 1, 2, 3 };
        struct store_request m = { .op = STORE_GATHER,
                                   .tag = 1,
                                   .key = { "m", 1 },
                                   .value = { "abcd", 4 },
                                   .ranks = ranks,
                                   .n_ranks = 2 };

        put_request(b, 0, &m);
        put_request(
                b, 0,
                &(struct store_request){
                        .op = STORE_LEAVE, .tag = 1, .number = 1, .ranks = ranks, .n_ranks = 1 });
        put_request(b, 0, &m);
        m.ranks += 2;
        put_request(b, 1, &m);
        m.op = STORE_BROADCAST;
        m.root = 3;
        m.n_ranks = 1;
        put_request(b, 1, &m);
        m.ranks++;
        put_request(b, 1, &m);
        m.ranks = ranks;
        m.n_ranks = 2;
        m.members = ranks;
        m.n_members = 3;
        put_request(b, 0, &m);
        put_request(b, 1, &(struct store_request){ .op = STORE_CANCEL, .tag = 1 });
        write_file("store", "meetings", b);
}

/* One request of each kind from client @client of the first node, as fuzz_store reads them. */
static void seed_store(struct buf *b, uint32_t client, const char *name)
{
        struct bytes keys[] = { { "k", 1 }, { "l", 1 } }, values[] = { { "1", 1 }, { "2", 1 } };
        uint32_t ranks[] = { 0 };

        for (uint8_t op = STORE_HELLO; op <= STORE_GONE; op++) {
                struct store_request m = { .client = client,
                                           .op = op,
                                           .tag = op == STORE_CANCEL ? STORE_WAIT : op,
                                           .key = { "k", 1 },
                                           .value = { "1", 1 },
                                           .number = op == STORE_HELLO ? 0 : 2,
                                           .keys = keys,
                                           .values = values,
                                           .n_keys = 2,
                                           .ranks = ranks,
                                           .n_ranks = client == STORE_NODE };

                if (strcmp(store_op_name(op), "?") != 0)
                        put_request(b, 0, &m);
        }
        write_file("store", name, b);
}

static void seed_command(struct buf *b, const char *folder, const char *name,
                         enum tcpstore_dialect dialect, const struct tcpstore_command *c)
{
        buf_append(b, "\x00", 1); /* pieces of one byte */
        if (!tcpstore_command_encode(b, dialect, c))
                abort();
        write_file(folder, name, b);
}

static void seed_commands(struct buf *b)
{
        struct bytes keys[] = { { "/key", 4 }, { "/absent", 7 } };
        struct tcpstore_command check = { .op = TCPSTORE_CHECK, .keys = keys, .n_keys = 2 };
        struct tcpstore_command watch = { .op = TCPSTORE_WATCH_KEY, .key = keys[0] };

        seed_command(b, "tcpstore_a", "made-check", TCPSTORE_A, &check);
        seed_command(b, "tcpstore_a", "made-watch", TCPSTORE_A, &watch);
        seed_command(b, "tcpstore_b", "made-check", TCPSTORE_B, &check);
}

static void make_folder(const char *name)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", corpus, name);

        mkdir(path, 0777);
}

int main(int argc, char **argv)
{
        struct buf b = BUF_INIT;

        if (argc != 2) {
                fputs("usage: seeds CORPUS\n", stderr);
                return 64;
        }
        corpus = argv[1];
        make_folder("msg");
        make_folder("frame");
        make_folder("pmix_msg");
        make_folder("store");
        make_folder("tcpstore_a");
        make_folder("tcpstore_b");
        seed_hello(&b);
        seed_launch(&b);
        seed_bindings(&b);
        seed_numbers(&b);
        seed_small_ones(&b);
        seed_endpoints(&b);
        seed_owners(&b);
        seed_branches(&b);
        seed_statuses(&b);
        seed_pushes(&b);
        seed_pmix(&b);
        seed_store(&b, STORE_NODE, "node");
        seed_store(&b, 1, "client");
        seed_store_lists(&b);
        seed_store_meetings(&b);
        seed_commands(&b);
        buf_finish(&b);
        return 0;
}
