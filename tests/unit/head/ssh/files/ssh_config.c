/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no comparison with ssh(1) shows: requests of the command line, texts for users, many threads
 * with one config. tests/ssh/ssh-config-means-what-ssh-reads.sh has the rest.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "head/ssh/files/ssh_config.h"
#include "lib/unit.h"

static struct ssh_config *parse(const char *text)
{
        struct ssh_config *c;
        struct error err;

        if (ssh_config_parse(&c, text, strlen(text), &err) < 0)
                fail_msg("%s: %s", text, err.text);
        return c;
}

static struct ssh_host find(const char *text, const struct ssh_host_request *request)
{
        struct ssh_config *c = parse(text);
        struct ssh_host h;
        struct error err;

        if (ssh_config_lookup(c, request, &h, NULL, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        ssh_config_free(c);
        return h;
}

TEST(the_command_line_wins)
{
        CLEANUP(strv_finish) struct strv keys = STRV_INIT;
        struct ssh_host_request request = { "n1", "me", 2222, &keys };
        CLEANUP(ssh_host_finish) struct ssh_host h;

        strv_push(&keys, "/mine");
        h = find("User you\nPort 3\nIdentityFile /theirs/%r\nMatch user me\nHostKeyAlias ME\n",
                 &request);
        assert_string_equal(h.user, "me");
        assert_int_equal(h.port, 2222);
        assert_int_equal(h.identities.n, 2);
        assert_string_equal(h.identities.v[0], "/mine");
        assert_string_equal(h.identities.v[1], "/theirs/me");
        assert_string_equal(h.host_key_alias, "me");
}

TEST(a_sealed_config_opens_and_runs_nothing)
{
        struct ssh_host h = find("Include /etc/passwd\nMatch exec true\nPort 7\nMatch !exec "
                                 "false\nUser x\n",
                                 &(struct ssh_host_request){ .alias = "n1" });

        assert_int_equal(h.port, 22);
        assert_string_equal(h.user, "x");
        ssh_host_finish(&h);
}

TEST(names_that_reach_shells_are_refused)
{
        static const char *const names[] = { "",    "-o",    "a b",  "a;b",   "$(id)", "`id`",
                                             "a\n", "a'b",   "a\"b", "a&b",   "a|b",   "*",
                                             "a#b", "a<b>c", "a\\b", "a\x7f", "!a",    "{a}" };
        struct ssh_config *c = parse("Port 22\n"), *through;
        struct ssh_host h;
        struct error err;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct ssh_host_request request = { .alias = names[i] };

                if (ssh_config_lookup(c, &request, &h, NULL, &err) != -EINVAL)
                        fail_msg("'%s' is taken", names[i]);
        }
        ssh_config_free(c);
        through = parse("HostName \"a;b\"\n");
        assert_int_equal(ssh_config_lookup(through, &(struct ssh_host_request){ .alias = "n1" }, &h,
                                           NULL, &err),
                         -EINVAL);
        ssh_config_free(through);
}

TEST(logins_of_variables_are_checked_as_by_ssh)
{
        static const char *const bad[] = { "",   "-o",   "a;b", "$(id)", "`id`",   "a\n", "a'b",
                                           "{a", "a -b", "a&b", "a<b",   "CORP\\", "a|b" };
        static const char *const good[] = { "me", "CORP\\me", "me@corp", "svc$", "a b" };
        struct ssh_host_request request = { .alias = "n1" };
        struct ssh_config *c = parse("Port 22\nUser ${HN_TEST_LOGIN}\n");
        CLEANUP(ssh_host_finish) struct ssh_host h;
        struct error err;

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                setenv("HN_TEST_LOGIN", bad[i], 1);
                if (ssh_config_lookup(c, &request, &h, NULL, &err) != -EINVAL)
                        fail_msg("'%s' is taken", bad[i]);
                assert_int_equal(err.number, HN_SSH_CONFIG_LINE);
        }
        assert_non_null(strstr(err.text, "text: line 2: User: 'a|b' is not a user name"));
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                setenv("HN_TEST_LOGIN", good[i], 1);
                assert_int_equal(ssh_config_lookup(c, &request, &h, NULL, &err), 0);
                assert_string_equal(h.user, good[i]);
                ssh_host_finish(&h);
        }
        ssh_config_free(c);
        /* A name in the file itself is not checked. */
        h = find("User \"CORP (me)\"\n", &request);
        assert_string_equal(h.user, "CORP (me)");
}

TEST(texts_name_the_place)
{
        struct ssh_config *c =
                parse("User a\nSetEnv A=b\nForwardAgent yes\nHost n2\nRemoteCommand ls\n");
        struct ssh_unobeyed unobeyed = { 0 };
        struct ssh_host h;
        struct error err;

        assert_int_equal(ssh_config_lookup(c, &(struct ssh_host_request){ .alias = "n1" }, &h,
                                           &unobeyed, &err),
                         0);
        ssh_host_finish(&h);
        assert_int_equal(unobeyed.told.n, 1);
        assert_string_equal(unobeyed.told.v[0],
                            "text: line 2: SetEnv is not obeyed: the variables of ranks "
                            "are those of --export and --env");
        assert_int_equal(unobeyed.aside.n, 1);
        assert_non_null(strstr(unobeyed.aside.v[0], "line 3: ForwardAgent is not obeyed: "));
        assert_int_equal(ssh_config_lookup(c, &(struct ssh_host_request){ .alias = "n2" }, &h,
                                           &unobeyed, &err),
                         -EINVAL);
        assert_int_equal(err.number, HN_SSH_CONFIG_LINE);
        assert_string_equal(err.text,
                            "text: line 5: RemoteCommand is not obeyed: the command is hnlaunch's, "
                            "and ssh(1) refuses to run two\n--ssh-command ssh obeys it, or remove "
                            "the line for this host");
        strv_finish(&unobeyed.told);
        strv_finish(&unobeyed.aside);
        ssh_config_free(c);
}

static void *look_up_often(void *config)
{
        for (int i = 0; i < 200; i++) {
                char name[16];
                CLEANUP(ssh_host_finish) struct ssh_host h;
                struct error err;

                snprintf(name, sizeof(name), "n%d", i % 20);
                if (ssh_config_lookup(config, &(struct ssh_host_request){ .alias = name }, &h, NULL,
                                      &err) < 0 ||
                    h.port != (i % 20 == 7 ? 7 : 9) || strcmp(h.hostname, name) != 0)
                        return config; /* not what was asked for */
        }
        return NULL;
}

TEST(lookups_run_in_threads)
{
        struct ssh_config *c = parse("Host n7\nPort 7\nMatch final\nPort 9\nIdentityFile "
                                     "~root/%C-%j\n");
        pthread_t threads[4];
        void *failed;

        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, look_up_often, c), 0);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
                pthread_join(threads[i], &failed);
                assert_null(failed);
        }
        ssh_config_free(c);
}
