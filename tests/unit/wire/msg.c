/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/msg.h"

TEST(hello_carries_the_whole_inventory)
{
        struct msg_gpu gpus[] = { { 0, "GPU-1", "H100" }, { 3, "", "A100" } };
        struct msg_addr addrs[] = { { "eth0", "10.0.0.1", 24 }, { "ib0", "fe80::1", 64 } };
        struct hello in = { .version = MSG_VERSION,
                            .pid = 1,
                            .uid = 2,
                            .cores = 3,
                            .arch = "x86_64",
                            .host = "gpu001",
                            .machine = "boot/4026531840",
                            .memory = UINT64_MAX,
                            .nofile = 1024,
                            .mono_ns = 123456789012345,
                            .free_port = 29501,
                            .ssh_addr = "10.0.0.1",
                            .gpus = gpus,
                            .n_gpus = 2,
                            .addrs = addrs,
                            .n_addrs = 2,
                            .locking = { UINT64_MAX, 8 } };
        CLEANUP(hello_finish) struct hello out;

        ASSERT_COMES_BACK(hello, MSG_HELLO, &out, &in);
        assert_int_equal(out.cores, 3);
        assert_string_equal(out.host, "gpu001");
        assert_string_equal(out.machine, "boot/4026531840");
        assert_true(out.memory == UINT64_MAX);
        assert_true(out.mono_ns == in.mono_ns);
        assert_int_equal(out.free_port, 29501);
        assert_int_equal(out.n_gpus, 2);
        assert_int_equal(out.gpus[1].index, 3);
        assert_string_equal(out.gpus[1].name, "A100");
        assert_int_equal(out.n_addrs, 2);
        assert_string_equal(out.addrs[1].addr, "fe80::1");
        assert_int_equal(out.addrs[1].prefix, 64);
        assert_true(out.locking.memlock == UINT64_MAX);
        assert_int_equal(out.locking.infiniband, 8);
}

TEST(a_hello_of_another_version_is_read_up_to_its_number)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t mark = frame_begin(&b, MSG_HELLO);
        CLEANUP(hello_finish) struct hello out;
        struct frame f;

        put_u32(&b, MSG_VERSION + 1);
        buf_appends(&b, "who knows what");
        frame_end(&b, mark);
        f = only_frame(&b, MSG_HELLO);
        assert_int_equal(hello_decode(&out, &f, NULL), 0);
        assert_int_equal(out.version, MSG_VERSION + 1);
}

static struct launch_port ports[] = { { "jax", 40001 }, { "a_1", 65535 } };
static struct node_block blocks[] = { { 0, 1, 8 }, { 1, 1, 8 } };

static struct launch_order sample_launch(struct launch_rank *ranks, size_t n)
{
        struct launch_order m = { .run_id = "k3f9",
                                  .world_size = 16,
                                  .num_nodes = 2,
                                  .node_rank = 1,
                                  .master_addr = "10.0.0.1",
                                  .master_port = 29500,
                                  .grace_ms = 15000,
                                  .silence_ms = 60000,
                                  .window = 4096,
                                  .contain = CONTAIN_PIDNS,
                                  .bind = (char *)"core:4",
                                  .agent_store = true,
                                  .per_node = true,
                                  .host = "gpu001",
                                  .iface = "ib0",
                                  .set_visible = true,
                                  .keep_dumps = true,
                                  .cwd = xstrdup("/home/\xff"),
                                  .cwd_optional = true,
                                  .stdin_rank = UINT32_MAX,
                                  .terminal = { 3, 40, 120, "xterm-256color" },
                                  .first_node = { .addr = "fe80::1", ports, ARRAY_SIZE(ports) },
                                  .mpi = { MPI_PMI2, { blocks, ARRAY_SIZE(blocks) } },
                                  .ranks = ranks,
                                  .n_ranks = (uint32_t)n };

        m.n_programs = 2;
        m.programs = xcalloc(2, sizeof(*m.programs));
        m.programs[0] = (struct launch_program){ .cwd = xstrdup(""),
                                                 .arguments = { true, "--local_rank" } };
        m.programs[1] = (struct launch_program){
                .cwd = xstrdup("/b"), .ready = { READY_TCP, true, xstrdup("web"), xstrdup("") }
        };
        strv_push(&m.programs[0].argv, "./a.out");
        strv_push(&m.programs[0].argv, "");
        strv_push(&m.programs[0].argv, "two\nlines");
        strv_push(&m.programs[1].argv, "b");
        strv_push(&m.programs[1].env, "B=2");
        strv_push(&m.names, "./b.out");
        strv_push(&m.env, "A=\x01\xfe");
        strv_push(&m.unset, "SLURM_*");
        strv_push(&m.programs[0].arguments.wrap, "env");
        strv_push(&m.programs[0].arguments.wrap, "--");
        m.compat.family = COMPAT_SLURM;
        m.compat.n_nodes = 2;
        m.compat.nodes = xcalloc(2, sizeof(*m.compat.nodes));
        m.compat.nodes[0] = (struct compat_node){ .name = xstrdup("gpu001"), .n_ranks = 8 };
        m.compat.nodes[1] = (struct compat_node){ .name = xstrdup("gpu002"), .n_ranks = 2 };
        return m;
}

static void free_sample(struct launch_order *m)
{
        free(m->cwd);
        launch_order_drop_programs(m);
        strv_finish(&m->names);
        strv_finish(&m->env);
        strv_finish(&m->unset);
        launch_compat_finish(&m->compat);
}

TEST(launch_carries_every_byte)
{
        uint32_t gpus[] = { 2, 3 };
        struct launch_rank ranks[] = { { 8, 0, gpus, 2 }, { 9, 1, NULL, 0 } };
        struct launch_order in = sample_launch(ranks, 2), out = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        common_encode(&b, &in);
        f = only_frame(&b, MSG_COMMON);
        assert_int_equal(launch_order_decode(&out, &f, NULL), 0);
        buf_clear(&b);
        launch_order_encode(&b, &in);
        f = only_frame(&b, MSG_LAUNCH);
        assert_int_equal(launch_order_decode(&out, &f, NULL), 0);
        assert_string_equal(out.run_id, "k3f9");
        assert_int_equal(out.world_size, 16);
        assert_int_equal(out.grace_ms, 15000);
        assert_int_equal(out.silence_ms, 60000);
        assert_int_equal(out.window, 4096);
        assert_int_equal(out.contain, CONTAIN_PIDNS);
        assert_string_equal(out.bind, "core:4");
        assert_int_equal(out.compat.family, COMPAT_SLURM);
        assert_int_equal(out.compat.n_nodes, 2);
        assert_string_equal(out.compat.nodes[1].name, "gpu002");
        assert_int_equal(out.compat.nodes[1].n_ranks, 2);
        assert_true(out.agent_store);
        assert_true(out.per_node);
        assert_string_equal(out.host, "gpu001");
        assert_true(out.programs[0].arguments.subst);
        assert_string_equal(out.programs[0].arguments.local_rank, "--local_rank");
        assert_int_equal(out.programs[0].arguments.wrap.n, 2);
        assert_string_equal(out.programs[0].arguments.wrap.v[1], "--");
        assert_true(out.cwd_optional);
        assert_string_equal(out.iface, "ib0");
        assert_true(out.set_visible);
        assert_true(out.keep_dumps);
        assert_false(out.gpu_visibility_own);
        assert_string_equal(out.cwd, "/home/\xff");
        assert_int_equal(out.names.n, 1);
        assert_string_equal(out.names.v[0], "./b.out");
        assert_int_equal(out.n_programs, 2);
        assert_int_equal(out.programs[0].ready.kind, READY_START);
        assert_int_equal(out.programs[1].ready.kind, READY_TCP);
        assert_true(out.programs[1].ready.is_first_only);
        assert_string_equal(out.programs[1].ready.port, "web");
        assert_int_equal(out.programs[0].argv.n, 3);
        assert_string_equal(out.programs[0].argv.v[1], "");
        assert_string_equal(out.programs[0].argv.v[2], "two\nlines");
        assert_string_equal(out.programs[1].argv.v[0], "b");
        assert_string_equal(out.programs[1].env.v[0], "B=2");
        assert_string_equal(out.programs[1].cwd, "/b");
        assert_string_equal(out.env.v[0], "A=\x01\xfe");
        assert_string_equal(out.unset.v[0], "SLURM_*");
        assert_int_equal(out.stdin_rank, UINT32_MAX);
        assert_int_equal(out.terminal.rank, 3);
        assert_int_equal(out.terminal.columns, 120);
        assert_string_equal(out.terminal.term, "xterm-256color");
        assert_string_equal(out.first_node.addr, "fe80::1");
        assert_int_equal(out.first_node.n_ports, 2);
        assert_string_equal(out.first_node.ports[1].name, "a_1");
        assert_int_equal(out.first_node.ports[1].number, 65535);
        assert_int_equal(out.mpi.kind, MPI_PMI2);
        assert_int_equal(out.mpi.map.n_blocks, 2);
        assert_memory_equal(out.mpi.map.blocks, blocks, sizeof(blocks));
        assert_int_equal(out.n_ranks, 2);
        assert_int_equal(out.ranks[0].gpus[1], 3);
        assert_int_equal(out.ranks[1].n_gpus, 0);
        launch_order_finish(&out);
        free_sample(&in);
}

TEST(a_launch_has_ports_of_ranks_or_not_a_byte_more)
{
        struct launch_rank ranks[] = { { 8, 0, NULL, 0 }, { 9, 1, NULL, 0 } };
        struct launch_rank_ports of_ranks[] = { { NULL, 0 }, { ports, ARRAY_SIZE(ports) } };
        struct launch_order in = sample_launch(ranks, 2), out = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT, without = BUF_INIT;
        struct frame f;

        launch_order_encode(&without, &in);
        in.rank_ports = of_ranks;
        in.n_rank_ports = 2;
        launch_order_encode(&b, &in);
        /* a count, two counts, and two ports */
        assert_int_equal(buf_len(&b) - buf_len(&without), 4 + 2 * 4 + (4 + 3 + 4) * 2);
        f = only_frame(&b, MSG_LAUNCH);
        assert_int_equal(launch_order_decode(&out, &f, NULL), 0);
        assert_int_equal(launch_order_rank_ports(&out, &out.ranks[0])->n, 0);
        assert_int_equal(launch_order_rank_ports(&out, &out.ranks[1])->n, 2);
        assert_string_equal(out.rank_ports[1].v[1].name, "a_1");
        assert_int_equal(out.rank_ports[1].v[1].number, 65535);
        launch_order_finish(&out);
        buf_clear(&b);
        in.n_rank_ports = 1; /* not one for each rank */
        launch_order_encode(&b, &in);
        f = only_frame(&b, MSG_LAUNCH);
        assert_int_equal(launch_order_decode(&out, &f, NULL), -EPROTO);
        f = only_frame(&without, MSG_LAUNCH);
        assert_int_equal(launch_order_decode(&out, &f, NULL), 0);
        assert_null(launch_order_rank_ports(&out, &out.ranks[0]));
        launch_order_finish(&out);
        free_sample(&in);
}

TEST(a_launch_with_wrong_ports_is_refused)
{
        struct launch_port wrong[] = {
                { "Jax", 1 }, { "", 1 }, { "1a", 1 }, { "jax", 0 }, { "jax", 65536 }
        };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct launch_order m = { .first_node = { "", &wrong[i], 1 } }, out = { 0 };

                common_encode(&b, &m);
                f = only_frame(&b, MSG_COMMON);
                assert_int_equal(launch_order_decode(&out, &f, NULL), -EPROTO);
                buf_clear(&b);
        }
}

TEST(a_launch_cut_anywhere_is_refused)
{
        uint32_t gpus[] = { 2, 3 };
        struct launch_rank ranks[] = { { 8, 0, gpus, 2 } };
        struct launch_order in = sample_launch(ranks, 1), out = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        launch_order_encode(&b, &in);
        f = only_frame(&b, MSG_LAUNCH);
        while (f.len-- > 0)
                assert_int_equal(launch_order_decode(&out, &f, NULL), -EPROTO);
        buf_clear(&b);
        common_encode(&b, &in);
        f = only_frame(&b, MSG_COMMON);
        while (f.len-- > 0)
                assert_int_equal(launch_order_decode(&out, &f, NULL), -EPROTO);
        free_sample(&in);
}

TEST(bytes_left_over_are_refused)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t mark = frame_begin(&b, MSG_STARTED);
        struct started out;
        struct error err;
        struct frame f;

        put_u32(&b, 1);
        put_u32(&b, 2);
        put_u8(&b, 3);
        frame_end(&b, mark);
        f = only_frame(&b, MSG_STARTED);
        assert_int_equal(started_decode(&out, &f, &err), -EPROTO);
        assert_non_null(strstr(err.text, "STARTED"));
}

TEST(a_count_larger_than_the_body_does_not_allocate)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct hello in = { .version = MSG_VERSION }, out;
        struct frame f;

        hello_encode(&b, &in);
        /* The last two words are the counts of GPUs and addresses. */
        memset(b.mem + b.end - 8, 0xff, 8);
        f = only_frame(&b, MSG_HELLO);
        assert_int_equal(hello_decode(&out, &f, NULL), -EPROTO);
}

TEST(events_of_ranks_come_back_as_sent)
{
        struct refused refused = { 3, REFUSED_EXEC, ENOENT, "./nope" }, refused2;
        struct exited exited = { 5, 77, 139, 42, 1, 0, "/sys/fs/cgroup/job", 2, 3 }, exited2;
        struct started started = { 9, 4242 }, started2;

        ASSERT_COMES_BACK(refused, MSG_REFUSED, &refused2, &refused);
        assert_int_equal(refused2.error, ENOENT);
        assert_string_equal(refused2.text, "./nope");
        ASSERT_COMES_BACK(exited, MSG_EXITED, &exited2, &exited);
        assert_int_equal(exited2.status, 139);
        assert_int_equal(exited2.stopped, 1);
        assert_int_equal(exited2.killed, 0);
        assert_true(exited2.mono_ns == 42);
        assert_string_equal(exited2.oom, "/sys/fs/cgroup/job");
        assert_int_equal(exited2.oom_before, 2);
        assert_int_equal(exited2.oom_after, 3);
        ASSERT_COMES_BACK(started, MSG_STARTED, &started2, &started);
        assert_int_equal(started2.pid, 4242);
}

TEST(output_lends_its_bytes_and_knows_two_streams)
{
        struct output in = { 4, MSG_STDERR, (const unsigned char *)"x\0y", 3 }, out;

        ASSERT_COMES_BACK(output, MSG_OUTPUT, &out, &in);
        assert_int_equal(out.rank, 4);
        assert_int_equal(out.stream, MSG_STDERR);
        assert_int_equal(out.len, 3);
        assert_memory_equal(out.data, "x\0y", 3);
        in.stream = 3;
        ASSERT_MALFORMED(output, MSG_OUTPUT, &in);
}

TEST(output_read_in_place_is_the_same_message)
{
        struct output m = { 4, MSG_STDOUT, (const unsigned char *)"hello", 5 };
        CLEANUP(buf_finish) struct buf a = BUF_INIT, b = BUF_INIT;
        size_t mark;

        output_encode(&a, &m);
        output_encode(&a, &m);
        output_encode(&b, &m);
        assert_non_null(output_begin(&b, &m, 64, &mark));
        output_end(&b, mark, 0); /* nothing came */
        memcpy(output_begin(&b, &m, 64, &mark), "hello", 5);
        output_end(&b, mark, 5);
        assert_int_equal(buf_len(&b), buf_len(&a));
        assert_memory_equal(buf_data(&b), buf_data(&a), buf_len(&a));
}

TEST(orders_come_back_as_sent)
{
        struct credit credit = { 1, MSG_STDOUT, 65536 }, credit2;
        struct ping ping = { 1, 2 }, ping2;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct output out;
        struct frame f;
        uint32_t signo;

        credit_encode(&b, &credit);
        f = only_frame(&b, MSG_CREDIT);
        assert_int_equal(credit_decode(&credit2, &f, NULL), 0);
        assert_int_equal(credit2.bytes, 65536);
        buf_clear(&b);
        ping_encode(&b, MSG_PONG, &ping);
        f = only_frame(&b, MSG_PONG);
        assert_int_equal(ping_decode(&ping2, &f, NULL), 0);
        assert_int_equal(ping2.agent_ns, 2);
        buf_clear(&b);
        number_encode(&b, MSG_SIGNAL, 10);
        f = only_frame(&b, MSG_SIGNAL);
        assert_int_equal(number_decode(&signo, &f, NULL), 0);
        assert_int_equal(signo, 10);
        buf_clear(&b);
        rank_bytes_encode(&b, MSG_STDIN, 6, "in", 2);
        f = only_frame(&b, MSG_STDIN);
        assert_int_equal(rank_bytes_decode(&out, &f, NULL), 0);
        assert_int_equal(out.rank, 6);
        assert_memory_equal(out.data, "in", 2);
        buf_clear(&b);
        empty_encode(&b, MSG_BYE);
        assert_int_equal(only_frame(&b, MSG_BYE).len, 0);
}

TEST(leaving_has_a_reason)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;
        char why[128];

        leaving_encode(&b, "SIGTERM of 4242");
        f = only_frame(&b, MSG_LEAVING);
        assert_int_equal(leaving_decode(why, &f, NULL), 0);
        assert_string_equal(why, "SIGTERM of 4242");
        while (f.len-- > 0)
                assert_int_equal(leaving_decode(why, &f, NULL), -EPROTO);
}

TEST(a_launch_knows_its_containers)
{
        struct launch_order in = sample_launch(NULL, 0), out = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        in.contain = CONTAIN_PIDNS + 1;
        common_encode(&b, &in);
        f = only_frame(&b, MSG_COMMON);
        assert_int_equal(launch_order_decode(&out, &f, NULL), -EPROTO);
        free_sample(&in);
}

TEST(a_launch_knows_its_families_and_no_empty_node)
{
        struct launch_order in = sample_launch(NULL, 0), out = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        in.compat.family = COMPAT_FAMILIES;
        common_encode(&b, &in);
        f = only_frame(&b, MSG_COMMON);
        assert_int_equal(launch_order_decode(&out, &f, NULL), -EPROTO);
        buf_clear(&b);
        in.compat.family = COMPAT_HOROVOD;
        in.compat.nodes[1].n_ranks = 0;
        common_encode(&b, &in);
        f = only_frame(&b, MSG_COMMON);
        assert_int_equal(launch_order_decode(&out, &f, NULL), -EPROTO);
        free_sample(&in);
}

TEST(a_message_has_a_name_a_direction_and_states)
{
        assert_string_equal(msg_name(MSG_STORE), "STORE");
        assert_true(msg_comes_from(MSG_STORE, MSG_FROM_HEAD));
        assert_true(msg_comes_from(MSG_STORE, MSG_FROM_AGENT));
        assert_false(msg_comes_from(MSG_LAUNCH, MSG_FROM_AGENT));
        assert_false(msg_comes_from(MSG_EXITED, MSG_FROM_HEAD));
        assert_true(msg_comes_in(MSG_EXITED, MSG_IN_RUNNING));
        assert_false(msg_comes_in(MSG_EXITED, MSG_IN_READY));
        assert_false(msg_comes_in(MSG_HELLO, MSG_IN_ANY));
        assert_string_equal(msg_name(200), "?");
        assert_false(msg_comes_from(200, MSG_FROM_BOTH));
}

TEST(a_part_of_a_dump_comes_back_as_sent)
{
        const struct dump part = { .number = 8,
                                   .left = 2,
                                   .rank = 70000,
                                   .problem = "late",
                                   .size = 8,
                                   .at = 4,
                                   .data = (const unsigned char *)"dump",
                                   .len = 4 };
        struct dump p;

        ASSERT_COMES_BACK(dump, MSG_DUMP, &p, &part);
        assert_int_equal(p.number, 8);
        assert_int_equal(p.left, 2);
        assert_int_equal(p.rank, 70000);
        assert_string_equal(p.problem, "late");
        assert_int_equal(p.size, 8);
        assert_int_equal(p.at, 4);
        assert_int_equal(p.len, 4);
        assert_memory_equal(p.data, "dump", 4);
}

TEST(a_dump_at_the_end_of_an_attempt_answers_nothing)
{
        static const struct dump wrong[] = { { .left = 1 }, { .problem = "late" } };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                ASSERT_MALFORMED(dump, MSG_DUMP, &wrong[i]);
        }
}

TEST(parts_of_a_dump_stay_within_the_file)
{
        static const struct {
                uint64_t size, at;
                size_t len;
                bool good;
        } table[] = {
                { 1, 0, 1, true },
                { MSG_DUMP_PART, 0, MSG_DUMP_PART, true },
                { MSG_MAX_DUMP, MSG_MAX_DUMP - 4, 4, true },
                { UINT64_MAX, 0, 0, true }, /* told, not sent */
                { MSG_DUMP_PART + 1, 0, MSG_DUMP_PART + 1, false },
                { MSG_MAX_DUMP + 1ULL, 0, 4, false },
                { 4, 1, 4, false },
                { 4, 4, 1, false },
                { 4, UINT64_MAX, 4, false },
                { 4, 1, 0, false },
        };
        static unsigned char data[MSG_DUMP_PART + 1] = { 'd' };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const struct dump in = { .rank = 7,
                                         .size = table[i].size,
                                         .at = table[i].at,
                                         .data = data,
                                         .len = table[i].len };
                CLEANUP(buf_finish) struct buf b = BUF_INIT;
                struct dump out;
                struct frame f;

                dump_encode(&b, &in);
                f = only_frame(&b, MSG_DUMP);
                assert_int_equal(dump_decode(&out, &f, NULL), table[i].good ? 0 : -EPROTO);
                if (table[i].good) {
                        assert_int_equal(out.rank, 7);
                        assert_int_equal(out.at, table[i].at);
                        assert_int_equal(out.len, table[i].len);
                        assert_memory_equal(out.data, data, out.len);
                }
        }
}
