/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hold/hold_match.h"

#include <sodium.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/unit.h"

static char alice[] = "alice", bob_name[] = "bob", gpu7[] = "gpu7", gate[] = "gate",
            srun[] = "srun";

static json_t *settings(struct options *o)
{
        return hold_match_settings(o, "/proc/self/exe", NULL);
}

static char *key_of(const char *a, const char *b, json_t *s)
{
        json_t *hosts = json_pack("[s, s]", a, b);
        char *key = hold_match_key(s, hosts);

        json_decref(hosts);
        return key;
}

TEST(a_key_is_of_hosts_in_any_order)
{
        struct options o = { 0 };
        json_t *s = settings(&o);
        CLEANUP(free_textp)
        char *key = key_of("gpu1", "gpu2", s), *turned = key_of("gpu2", "gpu1", s);
        CLEANUP(free_textp)
        char *other = key_of("gpu1", "gpu3", s), *cut = key_of("gpu1g", "pu2", s);

        assert_int_equal(strlen(key), 16);
        assert_string_equal(key, turned);
        assert_string_not_equal(key, other);
        assert_string_not_equal(key, cut);
        json_decref(s);
}

TEST(hosts_carry_user_and_port)
{
        const struct {
                struct host host;
                const char *text;
        } cases[] = {
                { { .name = gpu7 }, "gpu7" },
                { { .name = gpu7, .user = alice }, "alice@gpu7" },
                { { .name = gpu7, .port = 2222 }, "gpu7:2222" },
                { { .name = gpu7, .user = alice, .port = 2222 }, "alice@gpu7:2222" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(free_textp) char *text = hold_match_host(&cases[i].host);

                assert_string_equal(text, cases[i].text);
        }
}

static void assert_difference(struct options *a, struct options *b, const char *text)
{
        json_t *mine = settings(a), *its = settings(b);
        CLEANUP(free_textp)
        char *names = hold_match_difference(mine, its), *back = hold_match_difference(its, mine);

        assert_string_equal(names, text);
        assert_string_equal(back, text);
        json_decref(mine);
        json_decref(its);
}

TEST(options_that_differ_are_named)
{
        struct options none = { 0 };
        struct options user = { .user = alice }, bob = { .user = bob_name };
        struct options port = { .port = 22 }, key = { .accept_new = true };
        struct options jump = { .jump = gate }, via = { .via = srun };
        /* How long a login may take makes no other agent. */
        struct options slow = { .connect_timeout_ms = 7, .verbose = 2 };

        assert_difference(&none, &none, "");
        assert_difference(&none, &slow, "");
        assert_difference(&user, &none, "--user");
        assert_difference(&user, &bob, "--user");
        assert_difference(&port, &none, "--ssh-port");
        assert_difference(&key, &none, "--host-key");
        assert_difference(&jump, &none, "--jump");
        assert_difference(&via, &none, "--start-with");
}

TEST(an_edited_ssh_configuration_is_another_setting)
{
        char path[] = "/tmp/hold-match-XXXXXX";
        int fd = mkstemp(path);
        struct options o = { .ssh_config = path };
        json_t *before = settings(&o), *after;
        CLEANUP(free_textp) char *names = NULL;

        assert_int_equal(write(fd, "Host x\n", 7), 7);
        after = settings(&o);
        names = hold_match_difference(before, after);
        assert_string_equal(names, "--ssh-config");
        json_decref(before);
        json_decref(after);
        close(fd);
        unlink(path);
}

int main(void)
{
        return sodium_init() < 0 ? 1 : unit_run(NULL, NULL);
}
