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

static struct bootstrap b;
static struct buf in;
static struct error err;

static int forget(void **state UNUSED)
{
        buf_finish(&in);
        buf_finish(&b.noise);
        b = (struct bootstrap){ 0 };
        return 0;
}

#define TEST_BOOTSTRAP(name) TEST_WITH(NULL, forget, name)

/* Feeds @text byte by byte, as the worst network would, until something happens. */
static enum bootstrap_result feed(const char *text)
{
        enum bootstrap_result r = BOOTSTRAP_MORE;

        for (const char *p = text; *p; p++) {
                buf_append(&in, p, 1);
                r = bootstrap_feed(&b, &agent_binaries, &in, &err);
                if (r != BOOTSTRAP_MORE) {
                        buf_appends(&in, p + 1);
                        break;
                }
        }
        return r;
}

TEST_BOOTSTRAP(noise_before_the_greeting_is_kept_and_skipped)
{
        assert_int_equal(feed("Welcome to HNLAUNCH-\n" MSG_MAGIC "frames"), BOOTSTRAP_GREETED);
        assert_int_equal(buf_len(&in), 6);
        assert_memory_equal(buf_data(&in), "frames", 6);
        assert_int_equal(buf_len(&b.noise), strlen("Welcome to HNLAUNCH-\n"));
}

TEST_BOOTSTRAP(a_node_without_the_agent_gets_it_once)
{
        assert_int_equal(feed("no newline here HNLAUNCH-NEED x86_64\n"), BOOTSTRAP_UPLOAD);
        assert_int_equal(feed("HNLAUNCH-NEED x86_64\n"), BOOTSTRAP_CANNOT_RUN);
}

TEST_BOOTSTRAP(a_node_gets_the_agent_of_its_machine)
{
        assert_int_equal(feed("HNLAUNCH-NEED aarch64\n"), BOOTSTRAP_UPLOAD);
        assert_ptr_equal(b.sent, &agent_binaries.v[1]);
}

TEST_BOOTSTRAP(a_machine_without_an_agent_is_refused_by_name)
{
        assert_int_equal(feed("HNLAUNCH-NEED riscv64\n"), BOOTSTRAP_NO_AGENT);
        assert_string_equal(err.text,
                            "is a machine of type riscv64; agents installed: x86_64, aarch64");
        assert_int_equal(feed("HNLAUNCH-NEED \n"), BOOTSTRAP_NO_AGENT);
        assert_string_equal(err.text,
                            "is a machine of type unknown; agents installed: x86_64, aarch64");
}

TEST_BOOTSTRAP(the_reason_of_a_full_disk_is_told)
{
        assert_int_equal(feed("HNLAUNCH-FAIL cannot write /x/agent\n"), BOOTSTRAP_CANNOT_RUN);
        assert_string_equal(err.text, "cannot write /x/agent");
}

TEST_BOOTSTRAP(a_container_that_cannot_be_entered_is_told)
{
        assert_int_equal(feed("motd\nHNLAUNCH-CONTAINER no image\n"), BOOTSTRAP_NO_CONTAINER);
        assert_string_equal(err.text, "no image");
}

TEST_BOOTSTRAP(the_noise_kept_is_bounded)
{
        for (int i = 0; i < 100000; i++) {
                buf_appends(&in, "motd ");
                assert_int_equal(bootstrap_feed(&b, &agent_binaries, &in, &err), BOOTSTRAP_MORE);
        }
        assert_true(buf_len(&b.noise) <= 4096);
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
