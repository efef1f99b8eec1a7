/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of PMI: two nodes with two ranks each, in front of relays and a real store server.
 * Programs of real MPI libraries are in tests/clients.
 */
#include <errno.h>
#include <stdio.h>

#include "agent/pmi/pmi.h"
#include "base/buf.h"
#include "base/memory.h"
#include "head/job/store_server.h"
#include "lib/relays.h"
#include "lib/unit.h"

enum { NODES = 2, PER_NODE = 2, RANKS = NODES * PER_NODE };

static const uint32_t nodes[RANKS] = { 0, 0, 1, 1 }, ranks[RANKS] = { 0, 1, 2, 3 };
static struct relays *rs;
static struct pmi *pmis[NODES];
static struct buf said[RANKS];

static void on_send(void *ctx, uint32_t index, const void *bytes, size_t len)
{
        size_t node = (size_t)((struct pmi **)ctx - pmis);

        buf_append(&said[node * PER_NODE + index], bytes, len);
}

static int set_up_engines(void **state)
{
        relays_now = 1000000000;
        rs = relays_create(NODES, PER_NODE);
        for (uint32_t i = 0; i < NODES; i++) {
                struct pmi_config config = { .relay = relays_at(rs, (int)i),
                                             .world = { nodes, RANKS, NODES, i },
                                             .ranks = ranks + i * PER_NODE,
                                             .n_ranks = PER_NODE,
                                             .job = "job",
                                             .mapping = "(vector,(0,2,2))",
                                             .only_version1 = *state != NULL };

                pmis[i] = pmi_create(&config, (struct pmi_ops){ on_send }, &pmis[i]);
                assert_non_null(pmis[i]);
        }
        return 0;
}

static int tear_down_engines(void **state UNUSED)
{
        for (int i = 0; i < NODES; i++)
                pmi_destroy(pmis[i]);
        for (int i = 0; i < RANKS; i++)
                buf_finish(&said[i]);
        relays_settle(rs);
        relays_destroy(rs);
        return 0;
}

static int say(int rank, const char *text)
{
        struct error err;

        return pmi_receive(pmis[rank / PER_NODE], (uint32_t)(rank % PER_NODE), text, strlen(text),
                           &err);
}

static void leave(int rank)
{
        pmi_left(pmis[rank / PER_NODE], (uint32_t)(rank % PER_NODE));
}

static bool is_unfinished(int rank)
{
        return pmi_is_unfinished(pmis[rank / PER_NODE], (uint32_t)(rank % PER_NODE));
}

static void expect(int rank, const char *want)
{
        buf_append(&said[rank], "", 1);
        assert_string_equal((const char *)buf_data(&said[rank]), want);
        buf_clear(&said[rank]);
}

static void ask(int rank, const char *text, const char *want)
{
        assert_int_equal(say(rank, text), 0);
        expect(rank, want);
}

/* A message of PMI-2 with its length in front; one answer at a time. */
static const char *frame(const char *body)
{
        static char text[512];

        snprintf(text, sizeof(text), "%6zu%s", strlen(body), body);
        return text;
}

static void ask2(int rank, const char *body, const char *want)
{
        char answer[512];

        snprintf(answer, sizeof(answer), "%s", *want ? frame(want) : "");
        ask(rank, frame(body), answer);
}

static void init_all(void)
{
        for (int i = 0; i < RANKS; i++)
                ask(i, "cmd=init pmi_version=1 pmi_subversion=1\n",
                    "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
}

static void init2(int rank)
{
        char want[256];

        ask(rank, "cmd=init pmi_version=2 pmi_subversion=0\n",
            "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n");
        snprintf(want, sizeof(want),
                 "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=%d;size=4;appnum=0;"
                 "debugged=FALSE;pmiverbose=FALSE;rc=0;",
                 rank);
        ask2(rank, "cmd=fullinit;pmijobid=job;pmirank=0;threaded=FALSE;", want);
}

static void say_all(const char *text)
{
        for (int i = 0; i < RANKS; i++)
                assert_int_equal(say(i, text), 0);
}

static void expect_all(const char *want)
{
        for (int i = 0; i < RANKS; i++)
                expect(i, want);
}

static void barrier(void)
{
        say_all("cmd=barrier_in\n");
        relays_settle(rs);
        expect_all("cmd=barrier_out rc=0\n");
}

/* --- PMI-1 ------------------------------------------------------------------------------------ */

TEST_WITH(set_up_engines, tear_down_engines, a_rank_learns_about_the_job)
{
        init_all();
        ask(2, "cmd=get_maxes\n", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n");
        ask(2, "cmd=get_appnum\n", "cmd=appnum rc=0 appnum=0\n");
        ask(2, "cmd=get_my_kvsname\n", "cmd=my_kvsname rc=0 kvsname=job\n");
        ask(2, "cmd=get_universe_size\n", "cmd=universe_size rc=0 size=4\n");
        ask(2, "cmd=get kvsname=job key=PMI_process_mapping\n",
            "cmd=get_result rc=0 value=(vector,(0,2,2))\n");
        ask(2, "cmd=get kvsname=job key=PMI_dead_processes\n",
            "cmd=get_result rc=1 msg=unknown_key\n");
}

TEST_WITH(set_up_engines, tear_down_engines, keys_cross_nodes_with_a_barrier)
{
        init_all();
        ask(0, "cmd=put kvsname=job key=a value=with spaces = and more \n",
            "cmd=put_result rc=0\n");
        ask(1, "cmd=get kvsname=job key=a\n",
            "cmd=get_result rc=0 value=with spaces = and more \n");
        ask(3, "cmd=get kvsname=job key=a\n", "cmd=get_result rc=1 msg=unknown_key\n");
        barrier();
        assert_int_equal(relays_sent(rs, 1, STORE_FETCH), 0);
        say(2, "cmd=get kvsname=job key=a\n");
        say(3, "cmd=get kvsname=job key=b\n");
        relays_settle(rs);
        expect(2, "cmd=get_result rc=0 value=with spaces = and more \n");
        expect(3, "cmd=get_result rc=1 msg=unknown_key\n");
        ask(3, "cmd=get kvsname=job key=c\n", "cmd=get_result rc=1 msg=unknown_key\n");
        assert_int_equal(relays_sent(rs, 1, STORE_FETCH), 1);
        ask(3, "cmd=put kvsname=job key=a value=new\n", "cmd=put_result rc=0\n");
        barrier();
        say(0, "cmd=get kvsname=job key=other\n");
        relays_settle(rs);
        expect(0, "cmd=get_result rc=1 msg=unknown_key\n");
        ask(0, "cmd=get kvsname=job key=a\n", "cmd=get_result rc=0 value=new\n");
}

TEST_WITH(set_up_engines, tear_down_engines, a_barrier_costs_a_node_one_message)
{
        init_all();
        for (int i = 0; i < 5; i++)
                barrier();
        assert_int_equal(relays_sent(rs, 0, STORE_BARRIER), 5);
        assert_int_equal(relays_sent(rs, 0, STORE_SET), 0);
        assert_int_equal(relays_sent(rs, 0, STORE_FETCH), 0);
}

TEST_WITH(set_up_engines, tear_down_engines, bad_keys_are_refused)
{
        char line[400];

        init_all();
        ask(0, "cmd=put kvsname=job key=PMI_process_mapping value=x\n",
            "cmd=put_result rc=1 msg=reserved_key\n");
        ask(0, "cmd=put kvsname=job value=x\n", "cmd=put_result rc=1 msg=invalid_key\n");
        snprintf(line, sizeof(line), "cmd=put kvsname=job key=%0300d value=x\n", 0);
        ask(0, line, "cmd=put_result rc=1 msg=invalid_key\n");
}

TEST_WITH(set_up_engines, tear_down_engines, lines_may_come_in_pieces)
{
        const char *line = "cmd=init pmi_version=1 pmi_subversion=1\n";

        for (const char *p = line; *p; p++) {
                const char piece[] = { *p, '\0' };

                expect(0, "");
                assert_int_equal(say(0, piece), 0);
        }
        expect(0, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
}

TEST_WITH(set_up_engines, tear_down_engines, finalize_ends_it)
{
        init_all();
        assert_true(is_unfinished(1));
        ask(0, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
        assert_false(is_unfinished(0));
        leave(0);
        leave(1);
        assert_false(is_unfinished(0));
        assert_true(is_unfinished(1));
        ask(2, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
        ask(2, "cmd=init pmi_version=1 pmi_subversion=1\n",
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
        assert_true(is_unfinished(2));
}

TEST_WITH(set_up_engines, tear_down_engines, who_never_asks_is_finished)
{
        leave(0);
        assert_false(is_unfinished(0));
}

TEST_WITH(set_up_engines, tear_down_engines, spawn_is_refused_once)
{
        init_all();
        ask(0, "mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=2\nspawnssofar=1\nendcmd\n", "");
        ask(0, "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nendcmd\n",
            "cmd=spawn_result rc=1 msg=spawn_is_not_supported\n");
        ask(0, "cmd=get_appnum\n", "cmd=appnum rc=0 appnum=0\n");
}

TEST_WITH(set_up_engines, tear_down_engines, names_are_published)
{
        init_all();
        say(0, "cmd=publish_name service=the ocean port=tag#0$x\n");
        relays_settle(rs);
        expect(0, "cmd=publish_result info=ok rc=0\n");
        say(3, "cmd=lookup_name service=the ocean\n");
        relays_settle(rs);
        expect(3, "cmd=lookup_result info=ok rc=0 port=tag#0$x\n");
        for (int again = 0; again < 2; again++) {
                say(1, "cmd=unpublish_name service=the ocean\n");
                relays_settle(rs);
                expect(1, again ? "cmd=unpublish_result info=failed rc=1 msg=unknown_service\n"
                                : "cmd=unpublish_result info=ok rc=0\n");
        }
        say(3, "cmd=lookup_name service=the ocean\n");
        relays_settle(rs);
        expect(3, "cmd=lookup_result info=failed rc=1 msg=unknown_service\n");
}

/* --- failures --------------------------------------------------------------------------------- */

TEST_WITH(set_up_engines, tear_down_engines, a_rank_that_leaves_ends_a_barrier)
{
        init_all();
        say(0, "cmd=barrier_in\n");
        say(2, "cmd=barrier_in\n");
        say(3, "cmd=barrier_in\n");
        relays_settle(rs);
        expect_all("");
        leave(1);
        store_server_rank_exited(relays_store_server(rs), 1);
        relays_settle(rs);
        expect(0, "cmd=barrier_out rc=1 msg=barrier_failed\n");
        expect(2, "cmd=barrier_out rc=1 msg=barrier_failed\n");
        expect(3, "cmd=barrier_out rc=1 msg=barrier_failed\n");
        say(0, "cmd=barrier_in\n");
        relays_settle(rs);
        expect(0, "cmd=barrier_out rc=1 msg=barrier_failed\n");
}

TEST_WITH(set_up_engines, tear_down_engines, abort_goes_to_the_head)
{
        init_all();
        say(1, "cmd=barrier_in\n");
        assert_int_equal(say(1, "cmd=abort exitcode=42 message=it is over\n"), 0);
        relays_settle(rs);
        expect(1, "");
        assert_int_equal(relays_sent(rs, 0, STORE_ABORT), 1);
        assert_false(is_unfinished(1));
        assert_int_equal(relays_sent(rs, 0, STORE_HELLO), 2);
}

TEST_WITH(set_up_engines, tear_down_engines, who_breaks_a_rule_is_not_heard_again)
{
        static const char *const wrong[] = {
                "cmd=get_maxes\n",
                "nothing\n",
                "cmd=init pmi_version=x\n",
                "cmd=init\n",
                "\n",
                "cmd=init pmi_version=1 =\n",
                "mcmd=spawn\n",
                "cmd=abort exitcode=1\n",
                "cmd=init pmi_version=1\ncmd=init pmi_version=1\n",
                "cmd=init pmi_version=1\ncmd=nonsense\n",
                "cmd=init pmi_version=1\ncmd=barrier_in\ncmd=get_maxes\n",
                "cmd=init pmi_version=2\nxxxxxxxx",
                "cmd=init pmi_version=2\n999999",
                "cmd=init pmi_version=2\n    14cmd=kvs-fence;",
        };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                assert_int_not_equal(say(0, wrong[i]), 0);
                assert_int_not_equal(say(0, "cmd=init pmi_version=1\n"), 0);
                assert_true(is_unfinished(0));
                tear_down_engines(NULL);
                set_up_engines(state);
        }
}

TEST_WITH(set_up_engines, tear_down_engines, an_endless_line_is_refused)
{
        CLEANUP(free_textp) char *text = calloc(1, 100001);
        int ret = 0;

        memset(text, 'x', 100000);
        for (int i = 0; i < 3 && ret == 0; i++)
                ret = say(0, text);
        assert_int_not_equal(ret, 0);
}

/* --- PMI-2 ------------------------------------------------------------------------------------ */

TEST_WITH(set_up_engines, tear_down_engines, pmi2_exchanges_keys)
{
        for (int i = 0; i < RANKS; i++)
                init2(i);
        ask2(0, "cmd=job-getid;thrid=5;", "cmd=job-getid-response;thrid=5;jobid=job;rc=0;");
        ask2(0, "cmd=info-getjobattr;key=PMI_process_mapping;",
             "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,2,2));");
        ask2(0, "cmd=info-getjobattr;key=universeSize;",
             "cmd=info-getjobattr-response;rc=0;found=TRUE;value=4;");
        ask2(0, "cmd=info-getjobattr;key=none;", "cmd=info-getjobattr-response;rc=0;found=FALSE;");
        ask2(0, "cmd=kvs-put;key=k;value=a;;b=c;", "cmd=kvs-put-response;rc=0;");
        say_all(frame("cmd=kvs-fence;"));
        relays_settle(rs);
        expect_all(frame("cmd=kvs-fence-response;rc=0;"));
        say(3, frame("cmd=kvs-get;jobid=job;srcid=-1;key=k;"));
        relays_settle(rs);
        expect(3, frame("cmd=kvs-get-response;rc=0;found=TRUE;value=a;;b=c;"));
        ask2(3, "cmd=spawn;ncmds=1;", "cmd=spawn-response;rc=1;errmsg=spawn is not supported;");
        ask2(3, "cmd=finalize;", "cmd=finalize-response;rc=0;");
        assert_false(is_unfinished(3));
}

/* Slurm's client puts the number to the left. */
TEST_WITH(set_up_engines, tear_down_engines, pmi2_lengths_may_stand_left)
{
        ask(0, "cmd=init pmi_version=2 pmi_subversion=0\n",
            "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n");
        assert_int_equal(say(0, "13    cmd=fullinit;"), 0);
        buf_clear(&said[0]);
        ask2(0, "cmd=job-getid;", "cmd=job-getid-response;jobid=job;rc=0;");
}

TEST_WITH(set_up_engines, tear_down_engines, pmi2_waits_for_attributes_of_the_node)
{
        for (int i = 0; i < RANKS; i++)
                init2(i);
        ask2(0, "cmd=info-getnodeattr;key=x;wait=FALSE;",
             "cmd=info-getnodeattr-response;rc=0;found=FALSE;");
        ask2(0, "cmd=info-getnodeattr;key=x;wait=TRUE;", "");
        ask2(2, "cmd=info-putnodeattr;key=x;value=elsewhere;",
             "cmd=info-putnodeattr-response;rc=0;");
        expect(0, "");
        ask2(1, "cmd=info-putnodeattr;key=x;value=1;", "cmd=info-putnodeattr-response;rc=0;");
        expect(0, frame("cmd=info-getnodeattr-response;rc=0;found=TRUE;value=1;"));
}

static int set_up_version1(void **state)
{
        *state = &rs;
        return set_up_engines(state);
}

TEST_WITH(set_up_version1, tear_down_engines, pmi2_can_be_refused)
{
        ask(0, "cmd=init pmi_version=2 pmi_subversion=0\n",
            "cmd=response_to_init rc=1 pmi_version=1 pmi_subversion=1\n");
        init_all();
}

static int claim(int node, const char *text)
{
        struct error err;
        char line[64];
        size_t len = (size_t)snprintf(line, sizeof(line), "%s", text);

        return pmi_parse_claim(pmis[node], line, len, &err);
}

TEST_WITH(set_up_engines, tear_down_engines, a_client_of_the_port_names_its_rank)
{
        assert_int_equal(claim(1, "cmd=initack pmiid=3"), 1);
        assert_int_equal(claim(0, "cmd=initack pmiid=3"), -ENOENT); /* of the other node */
        assert_int_equal(claim(1, "cmd=initack pmiid=-1"), -ENOENT);
        assert_int_equal(claim(1, "cmd=initack pmiid=4294967299"), -EPROTO);
        assert_int_equal(claim(1, "cmd=initack pmiid="), -EPROTO);
        assert_int_equal(claim(1, "cmd=initack"), -EPROTO);
        assert_int_equal(claim(1, "cmd=init pmi_version=2 pmi_subversion=0"), -EPROTO);
        assert_int_equal(claim(1, ""), -EPROTO);
        leave(3);
        assert_int_equal(claim(1, "cmd=initack pmiid=3"), -ENOENT);
}

TEST_WITH(set_up_engines, tear_down_engines, a_rank_begins_at_the_port)
{
        assert_true(pmi_may_begin(pmis[1], 0));
        pmi_begin(pmis[1], 0);
        expect(2, "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n");
        assert_int_equal(say(2, "cmd=in"), 0); /* a program that ends early */
        assert_true(pmi_may_begin(pmis[1], 0));
        pmi_begin(pmis[1], 0);
        buf_clear(&said[2]);
        ask(2, "cmd=init pmi_version=1 pmi_subversion=1\n",
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
        assert_false(pmi_may_begin(pmis[1], 0));
        ask(2, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
        assert_true(pmi_may_begin(pmis[1], 0));
        leave(2);
        assert_false(pmi_may_begin(pmis[1], 0));
}
