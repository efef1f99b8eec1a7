/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/evidence.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "lib/unit.h"
#include "wire/msg.h"

enum { NODES = 4, PPN = 2 };

struct world {
        struct hosts hosts;
        struct plan plan;
        struct outcome outcome;
        const char *words[NODES * PPN]; /* stderr of ranks; NULL = none */
        struct node_facts facts[NODES];
};

static int make_world(void **state)
{
        struct world *w = calloc(1, sizeof(*w));

        w->outcome = (struct outcome)OUTCOME_INIT;
        w->plan.world_size = NODES * PPN;
        w->plan.ranks = calloc(NODES * PPN, sizeof(*w->plan.ranks));
        for (int i = 0; i < NODES; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%d", i);
                hosts_add(&w->hosts)->name = strdup(name);
        }
        for (int i = 0; i < NODES * PPN; i++)
                w->plan.ranks[i].node = i / PPN;
        *state = w;
        return 0;
}

static int free_world(void **state)
{
        struct world *w = *state;

        outcome_finish(&w->outcome);
        hosts_finish(&w->hosts);
        free(w->plan.ranks);
        free(w);
        return 0;
}

static char *read_words(void *ctx, int rank, struct burst *ret)
{
        struct world *w = ctx;

        *ret = (struct burst){ !!w->words[rank], !!w->words[rank] };
        return strdup(w->words[rank] ? w->words[rank] : "");
}

static const struct node_facts *ask(void *ctx, const char *path UNUSED)
{
        struct world *w = ctx;

        return w->facts;
}

/* Lets every path of node 3 be of @owner. */
static void set_owner(struct world *w, enum path_owner owner)
{
        for (int i = 0; i < NODES; i++) {
                w->facts[i].fs_type = owner == PATH_UNKNOWN ? 0 : 0xEF53;
                w->facts[i].fs_id = owner == PATH_SHARED ? 7 : 7 + (uint64_t)i;
        }
}

static void end_rank(struct world *w, int rank, int status, const char *words)
{
        struct cause c = { .rank = rank, .node = rank / PPN, .at_ns = 1000 + rank };

        w->words[rank] = words;
        outcome_exited(&w->outcome, &c, status, false, false, words);
}

static struct evidence collect(struct world *w)
{
        struct evidence_facts f = { &w->plan, &w->hosts, 93, false, ask, w };
        struct evidence e;

        outcome_finalize(&w->outcome, NULL, read_words, w);
        evidence_collect(&e, &w->outcome, &f);
        return e;
}

/* Returns what is collected after the end of a rank. */
static struct evidence collect_end(struct world *w, int rank, int status, const char *words)
{
        end_rank(w, rank, status, words);
        return collect(w);
}

#define TEST_WORLD(name) TEST_OF(make_world, free_world, struct world *w, name)

TEST_WORLD(an_exception_is_masked)
{
        struct evidence e = collect_end(
                w, 3, 1 << 8,
                "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
                "ValueError: shard 12 of /data/x is empty\n");

        assert_int_equal(e.kind, EVIDENCE_EXIT);
        assert_string_equal(e.text, "ValueError: shard # of PATH is empty");
        assert_string_equal(e.host, "n1");
        assert_int_equal(e.code, 1);
        assert_false(e.echo || e.gave_up);
}

TEST_WORLD(the_last_line_is_no_exception)
{
        struct evidence e = collect_end(w, 3, 7 << 8, "step 12 done\n");

        assert_string_equal(e.text, "");
        assert_int_equal(e.code, 7);
}

TEST_WORLD(signals_of_faults_differ_from_others)
{
        static const struct {
                int status;
                enum evidence_kind kind;
                int signal;
        } table[] = {
                { SIGSEGV, EVIDENCE_FAULT, SIGSEGV },  { SIGBUS, EVIDENCE_FAULT, SIGBUS },
                { SIGILL, EVIDENCE_FAULT, SIGILL },    { SIGFPE, EVIDENCE_FAULT, SIGFPE },
                { SIGABRT, EVIDENCE_FAULT, SIGABRT },  { SIGKILL, EVIDENCE_KILLED, SIGKILL },
                { SIGTERM, EVIDENCE_KILLED, SIGTERM }, { 139 << 8, EVIDENCE_FAULT, SIGSEGV },
                { 137 << 8, EVIDENCE_EXIT, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct evidence e = collect_end(w, 5, table[i].status, "");

                outcome_finish(&w->outcome);
                assert_int_equal(e.kind, table[i].kind);
                assert_int_equal(e.signal, table[i].signal);
                assert_string_equal(e.host, "n2");
        }
}

TEST_WORLD(a_fault_names_no_host_where_there_is_no_other)
{
        struct evidence e;

        w->hosts.n = 1;
        e = collect_end(w, 0, SIGSEGV, "");
        w->hosts.n = NODES;
        assert_int_equal(e.kind, EVIDENCE_FAULT);
        assert_string_equal(e.host, "");
}

TEST_WORLD(an_abort_after_a_wait_in_vain_names_no_host)
{
        struct evidence e = collect_end(
                w, 5, SIGABRT,
                "terminate called after throwing an instance of 'c10::DistBackendError'\n"
                "  what():  [Rank 5] Watchdog caught collective operation timeout: "
                "WorkNCCL(SeqNum=7) ran for 600000 milliseconds before timing out.\n");

        assert_int_equal(e.kind, EVIDENCE_KILLED);
        assert_true(e.echo);
}

TEST_WORLD(memory_and_give_up_are_seen)
{
        struct cause c = { .rank = 1, .node = 0, .at_ns = 1, .oom = { "memory.events", 0, 1 } };
        struct evidence e;

        outcome_exited(&w->outcome, &c, SIGKILL, false, false, "");
        e = collect_end(w, 4, 93 << 8, "");
        assert_int_equal(e.kind, EVIDENCE_OOM);
        assert_true(e.gave_up);
}

#define NO_SPACE(path) "OSError: [Errno 28] No space left on device: '" path "'\n"
#define TRACEBACK      "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n"

TEST_WORLD(a_full_file_system_is_of_the_node_alone_by_its_path)
{
        static const struct {
                const char *words;
                enum path_owner owner; /* as the launch finds it */
                enum evidence_kind kind;
                int error;
        } table[] = {
                { TRACEBACK NO_SPACE("/tmp/cache/x"), PATH_UNKNOWN, EVIDENCE_NODE, ENOSPC },
                { TRACEBACK NO_SPACE("/tmp/cache/x"), PATH_SHARED, EVIDENCE_NODE, ENOSPC },
                { TRACEBACK NO_SPACE("/dev/shm/x"), PATH_UNKNOWN, EVIDENCE_NODE, ENOSPC },
                { TRACEBACK NO_SPACE("/ckpt/x"), PATH_SHARED, EVIDENCE_FULL, ENOSPC },
                { TRACEBACK NO_SPACE("/ckpt/x"), PATH_UNKNOWN, EVIDENCE_FULL, ENOSPC },
                { TRACEBACK NO_SPACE("/nvme/x"), PATH_OF_NODE, EVIDENCE_NODE, ENOSPC },
                { TRACEBACK "OSError: [Errno 122] Disk quota exceeded\n", PATH_OF_NODE,
                  EVIDENCE_FULL, EDQUOT },
                { "sh: cannot create /ckpt/a: Read-only file system\n", PATH_SHARED, EVIDENCE_FULL,
                  EROFS },
                { TRACEBACK "RuntimeError: unable to write to file </torch_12_3>: No space left on "
                            "device (28)\n",
                  PATH_SHARED, EVIDENCE_NODE, ENOSPC },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct evidence e;

                set_owner(w, table[i].owner);
                e = collect_end(w, 6, 1 << 8, table[i].words);
                outcome_finish(&w->outcome);
                if (e.kind != table[i].kind || e.error != table[i].error)
                        fail_msg("%s: %d %d", table[i].words, e.kind, e.error);
        }
}

TEST_WORLD(a_tmp_on_a_networks_file_system_is_shared)
{
        static const struct {
                const char *words;
                enum evidence_kind kind;
        } table[] = {
                { TRACEBACK NO_SPACE("/tmp/cache/x"), EVIDENCE_FULL },
                /* The root is on it, and /dev/shm is not. */
                { TRACEBACK NO_SPACE("/torch_12_3"), EVIDENCE_NODE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct evidence e;

                for (int n = 0; n < NODES; n++)
                        w->facts[n].fs_type = 0x6969; /* NFS */
                e = collect_end(w, 6, 1 << 8, table[i].words);
                outcome_finish(&w->outcome);
                if (e.kind != table[i].kind)
                        fail_msg("%s: %d", table[i].words, e.kind);
        }
}

TEST(a_file_system_is_shared_by_its_type_or_its_id)
{
        enum { NFS = 0x6969, EXT4 = 0xEF53, FUSE = 0x65735546, TMPFS = 0x01021994, NODE = 1 };
        static const struct {
                struct node_facts facts[3]; /* number, type, id, GPU */
                enum path_owner owner;
        } table[] = {
                { { { 1, EXT4, 7 }, { 1, NFS, 8 }, { 0 } }, PATH_SHARED },
                { { { 1, EXT4, 7 }, { 1, EXT4, 8 }, { 1, EXT4, 8 } }, PATH_SHARED },
                { { { 1, FUSE, 8 }, { 1, FUSE, 8 }, { 0 } }, PATH_SHARED },
                { { { 1, EXT4, 7 }, { 1, EXT4, 8 }, { 1, EXT4, 9 } }, PATH_OF_NODE },
                { { { 1, EXT4, 7 }, { 1, TMPFS, 8 }, { 0 } }, PATH_OF_NODE },
                /* The others share it, and this node has not mounted it. */
                { { { 1, NFS, 7 }, { 1, EXT4, 8 }, { 1, NFS, 7 } }, PATH_OF_NODE },
                { { { 1, FUSE, 7 }, { 1, FUSE, 8 }, { 1, FUSE, 9 } }, PATH_UNKNOWN },
                { { { 0 }, { 1, EXT4, 8 }, { 0 } }, PATH_UNKNOWN },
                { { { 1, EXT4, 7 }, { 0 }, { 1, EXT4, 9 } }, PATH_UNKNOWN },
                { { { 1, EXT4, 0 }, { 1, EXT4, 0 }, { 1, EXT4, 0 } }, PATH_UNKNOWN },
                { { { 1, 0, 0 }, { 1, EXT4, 8 }, { 1, 0, 0 } }, PATH_UNKNOWN },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (evidence_path_owner(table[i].facts, 3, NODE) != table[i].owner)
                        fail_msg("row %zu: %d", i, evidence_path_owner(table[i].facts, 3, NODE));
}

TEST_WORLD(what_fails_on_two_hosts_at_once_is_of_none)
{
        end_rank(w, 6, 1 << 8, TRACEBACK NO_SPACE("/dev/shm/x"));
        assert_int_equal(collect_end(w, 0, 1 << 8, TRACEBACK NO_SPACE("/dev/shm/x")).kind,
                         EVIDENCE_FULL);
}

TEST_WORLD(a_broken_gpu_is_the_reason)
{
        struct evidence e;

        snprintf(w->facts[3].gpu, sizeof(w->facts[3].gpu), "Xid 79");
        e = collect_end(w, 2, 1 << 8,
                        TRACEBACK "RuntimeError: NCCL error: remote process exited\n");
        assert_int_equal(e.kind, EVIDENCE_GPU);
        assert_int_equal(e.node, 3);
        assert_int_equal(e.rank, -1);
        assert_string_equal(e.host, "n3");
        assert_string_equal(e.gpu, "Xid 79");

        snprintf(w->facts[1].gpu, sizeof(w->facts[1].gpu), "Xid 48");
        e = collect(w);
        assert_string_equal(e.host, "n1"); /* that of the rank goes before */
        assert_int_equal(e.rank, 2);

        *w->facts[1].gpu = '\0';
        snprintf(w->facts[0].gpu, sizeof(w->facts[0].gpu), "Xid 48");
        e = collect(w);
        assert_int_equal(e.kind, EVIDENCE_EXIT); /* two others: it is of none */
        assert_string_equal(e.gpu, "");
}

TEST_WORLD(a_broken_gpu_explains_no_lost_node)
{
        struct cause c = { .kind = CAUSE_NODE, .rank = -1, .node = 1, .at_ns = 5 };

        snprintf(w->facts[3].gpu, sizeof(w->facts[3].gpu), "Xid 79");
        outcome_happened(&w->outcome, &c);
        assert_int_equal(collect(w).kind, EVIDENCE_LOST);
}

TEST_WORLD(the_word_of_a_driver_is_about_the_gpu)
{
        struct evidence e = collect_end(
                w, 2, SIGABRT,
                TRACEBACK "RuntimeError: CUDA error: uncorrectable ECC error encountered\n");

        assert_int_equal(e.kind, EVIDENCE_GPU);
        assert_int_equal(e.signal, 0); /* as when the kernel tells of it */
}

static void happen(struct world *w, struct cause c)
{
        c.at_ns = 1;
        outcome_happened(&w->outcome, &c);
}

TEST_WORLD(other_causes_have_kinds)
{
        static const struct {
                struct cause cause;
                enum evidence_kind kind;
                const char *host;
        } table[] = {
                { { .kind = CAUSE_NODE, .rank = -1, .node = 1 }, EVIDENCE_LOST, "n1" },
                { { .kind = CAUSE_NETWORK, .rank = -1, .node = -1 }, EVIDENCE_NONE, "" },
                { { .kind = CAUSE_TIMEOUT, .rank = -1, .node = -1 }, EVIDENCE_NONE, "" },
                { { .kind = CAUSE_ORDER, .rank = -1, .node = -1 }, EVIDENCE_NONE, "" },
                { { .kind = CAUSE_HANG, .rank = 7, .node = 3 }, EVIDENCE_HANG, "n3" },
                { { .kind = CAUSE_HANG, .rank = -1, .node = -1 }, EVIDENCE_HANG, "" },
                { { .kind = CAUSE_REFUSED, .rank = 2, .node = 1, .why = REFUSED_FORK, .error = 11 },
                  EVIDENCE_NODE,
                  "n1" },
                { { .kind = CAUSE_REFUSED, .rank = 2, .node = 1, .why = REFUSED_EXEC, .error = 2 },
                  EVIDENCE_MISSING,
                  "n1" },
                { { .kind = CAUSE_ABORT, .rank = 2, .node = 1, .code = 3 }, EVIDENCE_NONE, "n1" },
                { { .kind = CAUSE_REFUSED, .rank = -1, .node = 0 }, EVIDENCE_PREPARE, "n0" },
                { { .kind = CAUSE_REFUSED, .rank = 2, .node = 1, .why = REFUSED_ORDER },
                  EVIDENCE_NONE,
                  "n1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct evidence e;

                happen(w, table[i].cause);
                e = collect(w);
                outcome_finish(&w->outcome);
                if (e.kind != table[i].kind || strcmp(e.host, table[i].host) != 0)
                        fail_msg("row %zu: kind %d, host %s", i, e.kind, e.host);
        }
}

TEST_WORLD(a_program_that_only_one_node_misses_is_that_nodes_fault)
{
        struct cause halted = { .rank = 0, .node = 0 };

        happen(w, (struct cause){ .kind = CAUSE_REFUSED,
                                  .rank = 2,
                                  .node = 1,
                                  .why = REFUSED_EXEC,
                                  .error = ENOENT });
        outcome_exited(&w->outcome, &halted, SIGTERM, true, false, NULL);
        assert_int_equal(collect(w).kind, EVIDENCE_NODE);
}
