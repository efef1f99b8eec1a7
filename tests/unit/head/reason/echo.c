/* SPDX-License-Identifier: Apache-2.0 */
#include "head/reason/echo.h"

#include <stdio.h>

#include "head/model/outcome.h"
#include "lib/unit.h"

static void expect(const char *const *lines, size_t n, enum echo want)
{
        for (size_t i = 0; i < n; i++) {
                enum echo got = echo_of_text(lines[i], 1);

                if (got != want)
                        fail_msg("%d, not %d: %s", got, want, lines[i]);
        }
}

TEST(what_tells_of_a_peer_that_is_gone)
{
        static const char *const lines[] = {
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection "
                "closed by peer [10.0.0.2]:1234",
                "ConnectionResetError: [Errno 104] Connection reset by peer",
                "BrokenPipeError: [Errno 32] Broken pipe",
                "EOFError",
                "ncclRemoteError: A call failed possibly due to a network error or a remote "
                "process exiting prematurely.",
                "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was "
                "likely closed. Did the remote server shutdown or crash?",
                "RuntimeError: Application timeout caused pair closure",
                "MPIDU_Complete_posted_with_error(1137): Process failed",
                "mpi4py.MPI.Exception: MPIX_ERR_PROC_FAILED: Process failed",
                "PMPI_Barrier(289)........: Communication error with rank 2",
                "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: Socket closed",
                "Fatal error: another task died",
                "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.",
                "thread 'main' panicked: Os { code: 104, kind: ConnectionReset }",
                "rank 1: rank 2 has died",
                "lost rank 3",
                "rank 1: no answer from rank 0, giving up",
                "error: peer 2 hung up",
                "rank 1: barrier `world`: rank 77 (node004) was killed by SIGSEGV (Segmentation "
                "fault)",
                "rank 1: barrier `world`: rank 7 (node004) exited with code 7",
                "hnlaunch._library.PeerFailed: all_gather `world`: rank 3 (node004) has already "
                "exited",
        };

        expect(lines, ARRAY_SIZE(lines), ECHO_PEER);
}

/* The head sends these words to the peers of a rank that has failed, and clients print them. */
TEST(own_words_for_the_end_of_a_rank_tell_of_a_peer_that_is_gone)
{
        static const struct cause causes[] = {
                { .kind = CAUSE_SIGNAL, .signal = 11 }, { .kind = CAUSE_EXIT, .code = 7 },
                { .kind = CAUSE_EXIT, .code = 139 },    { .kind = CAUSE_UNFINALIZED },
                { .kind = CAUSE_ABORT, .code = 3 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
                char end[80], line[200];
                const char *lines[] = { line };

                outcome_describe(&causes[i], end, sizeof(end));
                snprintf(line, sizeof(line), "rank 1: barrier `world`: rank 7 (node004) %s", end);
                expect(lines, 1, ECHO_PEER);
        }
}

TEST(what_tells_of_a_wait_in_vain)
{
        static const char *const lines[] = {
                "RuntimeError: Timed out waiting 1800000ms for recv operation to complete",
                "[Rank 3] Watchdog caught collective operation timeout: ran for 600 milliseconds "
                "before timing out.",
                "RuntimeError: Socket Timeout",
                "RuntimeError: Rank 1 failed to pass monitoredBarrier in 30000 ms",
        };

        expect(lines, ARRAY_SIZE(lines), ECHO_WAIT);
}

TEST(what_is_a_reason_of_its_own)
{
        static const char *const lines[] = {
                "ValueError: sample 17 has no label",
                "rank 1 failed to read its shard",
                "RuntimeError: preprocess failed: bad file",
                "EOFError: Ran out of input",
                "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.",
                "psycopg2.OperationalError: connection to server at \"db\", port 5432 failed: "
                "Connection refused",
                "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443): Max "
                "retries exceeded",
                "subprocess.TimeoutExpired: Command 'make' timed out after 10 seconds",
                "license server: Connection refused",
        };

        expect(lines, ARRAY_SIZE(lines), ECHO_NONE);
}

TEST(what_tells_of_the_order_to_end)
{
        static const char *const lines[] = {
                "RuntimeError: DataLoader worker (pid 77) is killed by signal: Terminated.",
                "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got "
                "signal: 15",
                "KeyboardInterrupt",
        };

        expect(lines, ARRAY_SIZE(lines), ECHO_STOP);
}

static enum echo of_words(const char *words, const char *reason, const char *want_root)
{
        char *root;
        enum echo told = echo_of_words(words, reason, 1, &root);

        if (want_root)
                assert_string_equal(root, want_root);
        else
                assert_null(root);
        free(root);
        return told;
}

#define FRAMES                                                                                     \
        "Traceback (most recent call last):\n  File \"t.py\", line 7, in <module>\n    run()\n"
#define DURING "\nDuring handling of the above exception, another exception occurred:\n\n"
#define LOST   "RuntimeError: Connection closed by peer"

TEST(a_chain_is_judged_by_its_first_exception)
{
        assert_int_equal(of_words(FRAMES LOST "\n" DURING FRAMES "ValueError: no sum\n",
                                  "ValueError: no sum", NULL),
                         ECHO_PEER);
        assert_int_equal(of_words(FRAMES "ValueError: no sum\n" DURING FRAMES LOST "\n", LOST,
                                  "ValueError: no sum"),
                         ECHO_NONE);
        assert_int_equal(of_words("[rank1]: " FRAMES "[rank1]: ValueError: no sum\n" DURING FRAMES
                                  "[rank1]: " LOST "\n",
                                  LOST, "ValueError: no sum"),
                         ECHO_NONE);
        /* An earlier traceback that is no part of the chain. */
        assert_int_equal(
                of_words(FRAMES "ValueError: old\nnext try\n" FRAMES LOST "\n", LOST, NULL),
                ECHO_PEER);
}

TEST(only_what_explains_the_end_is_judged)
{
        assert_int_equal(of_words("connect: Connection refused\n" FRAMES "ValueError: no\n"
                                  "BrokenPipeError: [Errno 32] Broken pipe\n",
                                  "ValueError: no", NULL),
                         ECHO_NONE);
        assert_int_equal(of_words("Connection reset by peer\n1\n2\n3\n4\n5\n6\n7\n8\n", NULL, NULL),
                         ECHO_NONE);
        assert_int_equal(of_words("Connection reset by peer\ngiving up\n", NULL, NULL), ECHO_PEER);
        assert_int_equal(of_words("[W socket.cpp:601] Connection refused\nbad mesh\n", NULL, NULL),
                         ECHO_NONE);
        assert_int_equal(of_words("", NULL, NULL), ECHO_NONE);
}

TEST(lines_that_look_like_errors)
{
        assert_true(echo_is_error_line("solver: FATAL: cell 12"));
        assert_true(echo_is_error_line("cannot open mesh.dat"));
        assert_false(echo_is_error_line("step 12 of 20"));
        assert_false(echo_is_error_line(""));
        assert_true(echo_is_of_order(FRAMES "  File \"t.py\", line 3, in on_term\nEnd\n"));
        assert_false(echo_is_of_order(FRAMES "ValueError: no\n"));
}
