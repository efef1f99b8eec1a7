/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds: writes first inputs for fuzz_frame and fuzz_msg, one of each message, and for
 * fuzz_tcpstore_a and _b the commands that PyTorch's Python classes do not let us record
 *
 * usage: seeds CORPUS        fills CORPUS/frame, CORPUS/msg, CORPUS/tcpstore_a and
 * CORPUS/tcpstore_b
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/msg.h"
#include "wire/tcpstore.h"

static const char *corpus;

static void write_file(const char *folder, const char *name, const struct buf *b)
{
        char *path = xasprintf("%s/%s/%s", corpus, folder, name);
        FILE *f = fopen(path, "we");

        if (!f || fwrite(buf_data(b), 1, buf_len(b), f) != buf_len(b) || fclose(f) != 0) {
                fprintf(stderr, "seeds: %s: %s\n", path, strerror(errno));
                exit(1);
        }
        free(path);
}

/* As fuzz_msg wants it (type, body) and as fuzz_frame wants it (step, frame). Empties @b. */
static void write_message(struct buf *b, const char *name)
{
        struct buf out = BUF_INIT;

        buf_append(&out, buf_data(b) + 4, buf_len(b) - 4);
        write_file("msg", name, &out);
        buf_clear(&out);
        buf_append(&out, "\x10", 1);
        buf_append(&out, buf_data(b), buf_len(b));
        write_file("frame", name, &out);
        buf_finish(&out);
        buf_clear(b);
}

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
                           .home = "/root",
                           .cwd = "/",
                           .memory = 1 << 30,
                           .nofile = 64,
                           .mono_ns = 5,
                           .gpus = gpus,
                           .n_gpus = 2,
                           .addrs = addrs,
                           .n_addrs = 1 };

        hello_encode(b, &m);
        write_message(b, "hello");
        m.version++;
        hello_encode(b, &m);
        write_message(b, "hello-newer");
}

static void seed_launch(struct buf *b)
{
        uint32_t gpus[] = { 0, 1 };
        struct launch_rank ranks[] = { { 0, 0, gpus, 2 }, { 1, 1, NULL, 0 } };
        struct launch m = { .run_id = "k3f9",
                            .world_size = 2,
                            .num_nodes = 1,
                            .cwd = xstrdup("/tmp"),
                            .ranks = ranks,
                            .n_ranks = 2 };

        strv_push(&m.argv, "./a.out");
        strv_push(&m.argv, "");
        strv_push(&m.env, "A=b");
        strv_push(&m.unset, "SLURM_*");
        launch_encode(b, &m);
        write_message(b, "launch");
        free(m.cwd);
        strv_finish(&m.argv);
        strv_finish(&m.env);
        strv_finish(&m.unset);
}

static void seed_small_ones(struct buf *b)
{
        started_encode(b, &(struct started){ 1, 2 });
        write_message(b, "started");
        refused_encode(b, &(struct refused){ 1, REFUSED_EXEC, ENOENT, "./a.out" });
        write_message(b, "refused");
        exited_encode(b, &(struct exited){ 1, 2, 139, 3, 0, 0 });
        write_message(b, "exited");
        output_encode(b, &(struct output){ 1, MSG_STDOUT, (const unsigned char *)"hi\n", 3 });
        write_message(b, "output");
        credit_encode(b, &(struct credit){ 1, MSG_STDERR, 65536 });
        write_message(b, "credit");
        stop_encode(b, &(struct stop){ 15000 });
        write_message(b, "stop");
        ping_encode(b, MSG_PING, &(struct ping){ 1, 2 });
        write_message(b, "ping");
        ping_encode(b, MSG_PONG, &(struct ping){ 1, 2 });
        write_message(b, "pong");
        logline_encode(b, &(struct logline){ 2, "a line" });
        write_message(b, "log");
        signal_encode(b, 15);
        write_message(b, "signal");
        stdin_encode(b, 0, "in", 2);
        write_message(b, "stdin");
        empty_encode(b, MSG_BYE);
        write_message(b, "bye");
        store_encode(b, "opaque", 6);
        write_message(b, "store");
}

static void seed_command(struct buf *b, const char *folder, const char *name,
                         enum tcpstore_dialect dialect, const struct tcpstore_command *c)
{
        buf_append(b, "\x00", 1); /* pieces of one byte */
        if (!tcpstore_command_encode(b, dialect, c))
                abort();
        write_file(folder, name, b);
        buf_clear(b);
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
        char *path = xasprintf("%s/%s", corpus, name);

        mkdir(path, 0777);
        free(path);
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
        make_folder("tcpstore_a");
        make_folder("tcpstore_b");
        seed_hello(&b);
        seed_launch(&b);
        seed_small_ones(&b);
        seed_commands(&b);
        buf_finish(&b);
        return 0;
}
