/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1,000 seeded failures of 14 kinds on 64 simulated nodes: the outcome is made as agents report it,
 * the evidence is collected from it, and the decision is obeyed until the job ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "head/model/restart_rule.h"
#include "lib/unit.h"
#include "wire/msg.h"

enum { NODES = 64, SPARES = 8, PPN = 4, ROUNDS = 1000, ATTEMPTS_MAX = 40 };

/* What is wrong with a job. */
enum trouble {
        /* with hosts: these are to be put out */
        HOST_DIES,
        TMP_FULL,
        NO_PROCESS,
        BAD_MEMORY,    /* SIGSEGV of a rank there */
        BAD_GPU,       /* ECC */
        FAULTS_SLOWLY, /* SIGSEGV, after steps were won */
        HANGS_THERE,   /* the verdict names it */
        /* with the program: no host is to be put out */
        BUG_TEXT,  /* an exception with changing numbers on a random rank */
        BUG_CODE,  /* exit 3, without a word */
        BUG_FAULT, /* SIGSEGV on a random rank */
        BUG_SLOW,  /* the same after steps were won, some times; or always on the same rank */
        GIVES_UP,
        /* with what all nodes share */
        DISK_FULL,
        /* with nothing that lasts: a killed rank, an echo of a network failure */
        PASSES,
        TROUBLES,
};

struct storm {
        struct hosts hosts;
        struct plan plan;
        enum trouble trouble;
        int place[NODES];             /* host of each node of the job */
        bool bad[NODES + SPARES];     /* its hosts */
        bool retired[NODES + SPARES]; /* in the end */
        int next_spare, passes, victim;
        int sure;          /* attempts after a failure of the program was certain */
        const char *words; /* of the rank that fails first */
        int loud;
        char buffer[256];
};

static unsigned seed;

static int pick(int n)
{
        seed = seed * 1103515245u + 12345u;
        return (int)((seed >> 16) % (unsigned)n);
}

static const char peer_words[] = "RuntimeError: Connection closed by peer [10.0.0.7]:4711\n";

static int find_peer(int rank)
{
        return (rank + PPN) % (NODES * PPN);
}

static char *read_words(void *ctx, int rank, struct burst *ret)
{
        const struct storm *s = ctx;
        bool is_first = s->words && rank == s->loud;
        bool is_peer = s->words && rank == find_peer(s->loud);

        *ret = is_first  ? (struct burst){ 1000, 1000 }
               : is_peer ? (struct burst){ 2000, 2000 }
                         : (struct burst){ 0 };
        return strdup(is_first ? s->words : is_peer ? peer_words : "");
}

/* Only /ckpt is shared, and other paths are of an unknown owner. */
static const struct node_facts *ask(void *ctx UNUSED, const char *path)
{
        static struct node_facts facts[NODES + SPARES];

        for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
                facts[i].fs_type = strncmp(path, "/ckpt", 5) ? 0 : 0x6969; /* NFS */
        return facts;
}

static void fail_rank(struct storm *s, struct outcome *o, int rank, int status, const char *words)
{
        struct cause c = { .rank = rank, .node = s->plan.ranks[rank].node, .at_ns = 5000000 };
        struct cause peer = { .rank = find_peer(rank), .at_ns = 8000000 };

        s->words = words;
        s->loud = rank;
        outcome_exited(o, &c, status, false, false, words);
        /* A peer notices, and the others are stopped. */
        peer.node = s->plan.ranks[peer.rank].node;
        outcome_exited(o, &peer, 1 << 8, false, false, peer_words);
        for (int i = 0; i < 8; i++) {
                struct cause halted = { .rank = pick(NODES * PPN), .at_ns = 9000000 };

                halted.node = s->plan.ranks[halted.rank].node;
                outcome_exited(o, &halted, SIGTERM, true, false, NULL);
        }
}

static void happen(struct outcome *o, struct cause c)
{
        c.at_ns = 5000000;
        outcome_happened(o, &c);
}

/* Returns a host of the job with the trouble, -1 = none is left. */
static int find_bad(const struct storm *s)
{
        int first = pick(NODES);

        for (int i = 0; i < NODES; i++)
                if (s->bad[s->place[(first + i) % NODES]])
                        return s->place[(first + i) % NODES];
        return -1;
}

/* Fails an attempt. False: it ends well. */
static bool run_attempt(struct storm *s, struct outcome *o)
{
        int bad = find_bad(s), rank = pick(NODES * PPN);

        if (s->trouble <= HANGS_THERE) {
                if (bad < 0)
                        return false;
                for (rank = 0; s->plan.ranks[rank].node != bad; rank++)
                        ;
                rank += pick(PPN);
        }
        s->words = NULL;
        switch (s->trouble) {
        case HOST_DIES:
                happen(o, (struct cause){ .kind = CAUSE_NODE, .rank = -1, .node = bad });
                return true;
        case NO_PROCESS:
                happen(o, (struct cause){ .kind = CAUSE_REFUSED,
                                          .rank = rank,
                                          .node = bad,
                                          .why = REFUSED_FORK,
                                          .error = EAGAIN });
                return true;
        case HANGS_THERE:
                happen(o, (struct cause){ .kind = CAUSE_HANG, .rank = rank, .node = bad });
                return true;
        case TMP_FULL:
                snprintf(s->buffer, sizeof(s->buffer),
                         "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                         "OSError: [Errno 28] No space left on device: '/tmp/c%d'\n",
                         pick(1000));
                fail_rank(s, o, rank, 1 << 8, s->buffer);
                return true;
        case BUG_SLOW:
                if (s->passes-- <= 0)
                        return false;
                fail_rank(s, o, s->victim < 0 ? rank : s->victim, SIGSEGV, "");
                return true;
        case BAD_MEMORY:
        case FAULTS_SLOWLY:
        case BUG_FAULT:
                fail_rank(s, o, rank, SIGSEGV, "");
                return true;
        case BAD_GPU:
                fail_rank(s, o, rank, 1 << 8,
                          "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                          "RuntimeError: CUDA error: uncorrectable ECC error encountered\n");
                return true;
        case BUG_TEXT:
                snprintf(s->buffer, sizeof(s->buffer),
                         "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                         "ValueError: bad shard %d of /data/%x\n",
                         pick(1000), pick(30000));
                fail_rank(s, o, rank, 1 << 8, s->buffer);
                return true;
        case BUG_CODE:
                fail_rank(s, o, rank, 3 << 8, "");
                return true;
        case GIVES_UP:
                fail_rank(s, o, rank, 93 << 8, "");
                return true;
        case DISK_FULL:
                fail_rank(s, o, rank, 1 << 8,
                          "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                          "OSError: [Errno 28] No space left on device: '/ckpt/step'\n");
                return true;
        default:
                if (s->passes-- <= 0)
                        return false;
                if (pick(2))
                        fail_rank(s, o, rank, SIGKILL, "");
                else
                        fail_rank(s, o, rank, 1 << 8,
                                  "RuntimeError: NCCL error: remote process "
                                  "exited or there was a network error\n");
                return true;
        }
}

static void put_spare_in(struct storm *s, int host)
{
        for (int i = 0; i < NODES; i++)
                if (s->place[i] == host)
                        s->place[i] = s->next_spare;
        for (int i = 0; i < NODES * PPN; i++)
                if (s->plan.ranks[i].node == host)
                        s->plan.ranks[i].node = s->next_spare;
        s->next_spare++;
}

/* Whether the evidence of the attempts proves that the program fails. */
static bool is_certain(const struct storm *s, size_t attempts)
{
        return s->trouble == GIVES_UP ? attempts >= 1
               : s->trouble == BUG_TEXT || s->trouble == BUG_CODE || s->trouble == DISK_FULL
                       ? attempts >= 2
                       : s->trouble == BUG_FAULT && attempts >= 3;
}

/* Runs a job to its end. Returns whether that is a success. */
static bool run_job(struct storm *s)
{
        const struct restart_limits limits = { 93, 3, true };
        bool wins = s->trouble == FAULTS_SLOWLY || s->trouble == BUG_SLOW;
        struct evidence_facts facts = { &s->plan, &s->hosts, 93, wins, ask, NULL };
        struct restart_past *past = calloc(ATTEMPTS_MAX, sizeof(*past));
        bool well = false, stopped = false;
        size_t n = 0;

        while (!well && !stopped && n < ATTEMPTS_MAX) {
                struct restart_history h = { past, n };
                struct outcome o = OUTCOME_INIT;
                struct restart_decision d;
                struct evidence e;

                s->sure += is_certain(s, n);
                well = !run_attempt(s, &o);
                outcome_finalize(&o, NULL, read_words, s);
                evidence_collect(&e, &o, &facts);
                outcome_finish(&o);
                if (well)
                        continue;
                restart_decide(&d, &h, &e, &limits);
                past[n++] = (struct restart_past){ e, d.verb };
                stopped = d.verb == RESTART_STOP;
                for (size_t i = 0; d.acquits && i < n; i++)
                        if (restart_acquits(&past[i], &e))
                                s->retired[past[i].evidence.node] = false;
                if (d.verb == RESTART_HOST_OUT) {
                        s->retired[e.node] = true;
                        stopped = s->next_spare == NODES + SPARES;
                        if (!stopped)
                                put_spare_in(s, e.node);
                }
        }
        free(past);
        return well;
}

static void set_up_storm(struct storm *s, int round)
{
        memset(s->bad, 0, sizeof(s->bad));
        memset(s->retired, 0, sizeof(s->retired));
        s->trouble = (enum trouble)(round % TROUBLES);
        s->next_spare = NODES;
        s->passes = 1 + pick(2);
        s->victim = s->trouble == BUG_SLOW && pick(2) ? pick(NODES * PPN) : -1;
        if (s->trouble == BUG_SLOW)
                s->passes = 4 + pick(12);
        for (int i = 0; i < NODES; i++)
                s->place[i] = i;
        for (int i = 0; i < NODES * PPN; i++)
                s->plan.ranks[i].node = i / PPN;
        if (s->trouble <= HANGS_THERE) {
                /* Several bad hosts only where the failure cannot be the program's. */
                int many = s->trouble == HOST_DIES ? 3 : s->trouble == BAD_GPU ? 2 : 1;

                for (int i = 1 + pick(many); i > 0; i--)
                        s->bad[pick(NODES)] = true;
        }
}

TEST(a_thousand_failures_blame_the_right_hosts)
{
        int bad = 0, found = 0, innocent = 0, ended_well = 0, should = 0;
        struct storm s = { .plan = { .world_size = NODES * PPN } };

        seed = 20261128;
        s.plan.ranks = calloc(NODES * PPN, sizeof(*s.plan.ranks));
        for (int i = 0; i < NODES + SPARES; i++) {
                char name[16];

                snprintf(name, sizeof(name), "gpu%03d", i);
                hosts_add(&s.hosts)->name = strdup(name);
        }
        for (int round = 0; round < ROUNDS; round++) {
                bool well;

                set_up_storm(&s, round);
                well = run_job(&s);
                ended_well += well;
                should += s.trouble <= HANGS_THERE || s.trouble == BUG_SLOW || s.trouble == PASSES;
                for (int i = 0; i < NODES + SPARES; i++) {
                        bad += s.bad[i];
                        found += s.bad[i] && s.retired[i];
                        innocent += !s.bad[i] && s.retired[i];
                }
        }
        free(s.plan.ranks);
        hosts_finish(&s.hosts);
        print_message("%d of %d bad hosts put out, %d innocent ones, %d of %d jobs finished\n",
                      found, bad, innocent, ended_well, should);
        assert_true(bad > 400);
        assert_true(found * 100 >= bad * 99);
        assert_int_equal(innocent, 0);
        assert_int_equal(ended_well, should);
        assert_int_equal(s.sure, 0);
}
