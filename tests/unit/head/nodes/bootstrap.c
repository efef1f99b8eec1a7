/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/bootstrap.h"
#include "base/memory.h"
#include "lib/unit.h"
#include "wire/msg.h"

static const struct agent_binaries agent_binaries = {
        .v = { { .id = "0123456789abcdef0123456789abcdef", .len = 4, .arch = "x86_64" },
               { .id = "f123456789abcdef0123456789abcdef", .len = 5, .arch = "aarch64" } },
        .n = 2,
};

/* Feeds @text byte by byte, as the worst network would, until something happens. */
static enum bootstrap_result feed(struct bootstrap *b, struct buf *in, const char *text,
                                  struct error *err)
{
        enum bootstrap_result r = BOOTSTRAP_MORE;

        for (const char *p = text; *p; p++) {
                buf_append(in, p, 1);
                r = bootstrap_feed(b, &agent_binaries, in, err);
                if (r != BOOTSTRAP_MORE) {
                        buf_appends(in, p + 1);
                        break;
                }
        }
        return r;
}

TEST(noise_before_the_greeting_is_kept_and_skipped)
{
        struct bootstrap b = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;

        assert_int_equal(feed(&b, &in, "Welcome to HNLAUNCH-\n" MSG_MAGIC "frames", &err),
                         BOOTSTRAP_GREETED);
        assert_int_equal(buf_len(&in), 6);
        assert_memory_equal(buf_data(&in), "frames", 6);
        assert_int_equal(buf_len(&b.noise), strlen("Welcome to HNLAUNCH-\n"));
        buf_finish(&b.noise);
}

TEST(a_node_without_the_agent_gets_it_once)
{
        struct bootstrap b = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;

        assert_int_equal(feed(&b, &in, "no newline here HNLAUNCH-NEED x86_64\n", &err),
                         BOOTSTRAP_UPLOAD);
        assert_int_equal(feed(&b, &in, "HNLAUNCH-NEED x86_64\n", &err), BOOTSTRAP_CANNOT_RUN);
        buf_finish(&b.noise);
}

TEST(a_node_gets_the_agent_of_its_machine)
{
        struct bootstrap b = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;

        assert_int_equal(feed(&b, &in, "HNLAUNCH-NEED aarch64\n", &err), BOOTSTRAP_UPLOAD);
        assert_ptr_equal(b.sent, &agent_binaries.v[1]);
        buf_finish(&b.noise);
}

TEST(a_machine_without_an_agent_is_refused_by_name)
{
        struct bootstrap b = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;

        assert_int_equal(feed(&b, &in, "HNLAUNCH-NEED riscv64\n", &err), BOOTSTRAP_NO_AGENT);
        assert_string_equal(err.text,
                            "is a machine of type riscv64; agents installed: x86_64, aarch64");
        assert_int_equal(feed(&b, &in, "HNLAUNCH-NEED \n", &err), BOOTSTRAP_NO_AGENT);
        assert_string_equal(err.text,
                            "is a machine of type unknown; agents installed: x86_64, aarch64");
        buf_finish(&b.noise);
}

TEST(the_reason_of_a_full_disk_is_told)
{
        struct bootstrap b = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;

        assert_int_equal(feed(&b, &in, "HNLAUNCH-FAIL cannot write /x/agent\n", &err),
                         BOOTSTRAP_CANNOT_RUN);
        assert_string_equal(err.text, "cannot write /x/agent");
        buf_finish(&b.noise);
}

TEST(a_container_that_cannot_be_entered_is_told)
{
        struct bootstrap b = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;

        assert_int_equal(feed(&b, &in, "motd\nHNLAUNCH-CONTAINER no image\n", &err),
                         BOOTSTRAP_NO_CONTAINER);
        assert_string_equal(err.text, "no image");
        buf_finish(&b.noise);
}

TEST(the_noise_kept_is_bounded)
{
        struct bootstrap b = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;

        for (int i = 0; i < 100000; i++) {
                buf_appends(&in, "motd ");
                assert_int_equal(bootstrap_feed(&b, &agent_binaries, &in, &err), BOOTSTRAP_MORE);
        }
        assert_true(buf_len(&b.noise) <= 4096);
        buf_finish(&b.noise);
}

TEST(the_command_is_safe_in_every_login_shell)
{
        static const char *const containers[] = { NULL, "docker:a%20b /p" };

        for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
                CLEANUP(free_textp) char *line = bootstrap_command(&agent_binaries, containers[i]);
                char *body = strchr(line, '\'');

                assert_non_null(body);
                assert_ptr_equal(strrchr(line, '\''), line + strlen(line) - 1);
                body[strlen(body) - 1] = '\0';
                assert_null(strpbrk(body + 1, "'\\\n!"));
                assert_int_equal(strstr(line, "HNLAUNCH_ENTER=\"docker:a%20b /p\"") != NULL,
                                 i == 1);
        }
}
