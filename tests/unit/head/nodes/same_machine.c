/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/same_machine.h"

#include "lib/unit.h"

/* What is told of these hosts: the number of errors, the first one in @diags. */
static size_t find(const char *const *names, const char *const *machines, size_t n,
                   struct diags *diags)
{
        struct hosts hosts = HOSTS_INIT;
        size_t found;

        for (size_t i = 0; i < n; i++) {
                struct host *h = hosts_add(&hosts);

                h->name = xstrdup(names[i]);
                h->file = xstrdup("hosts.txt");
                h->line = (int)i + 1;
        }
        found = same_machine_find(&hosts, machines, diags);
        assert_int_equal(diags_errors(diags), found);
        hosts_finish(&hosts);
        return found;
}

TEST(different_machines_are_fine)
{
        const char *names[] = { "a", "b", "c", "d" };
        const char *machines[] = { "x/1", "x/2", "", "" }; /* two that are not known */
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(find(names, machines, 4, &d), 0);
}

TEST(two_names_of_one_are_told_with_their_lines)
{
        const char *names[] = { "node001", "node002", "10.0.0.1" };
        const char *machines[] = { "x/1", "y/1", "x/1" };
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        const char *body;

        assert_int_equal(find(names, machines, 3, &d), 1);
        assert_int_equal(d.v[0].exit, 65);
        assert_string_equal(d.v[0].fact, "node001 and 10.0.0.1 are the same machine");
        buf_append(&d.v[0].body, "", 1);
        body = (const char *)buf_data(&d.v[0].body);
        assert_non_null(strstr(body, "hosts.txt:1"));
        assert_null(strstr(body, "hosts.txt:2"));
        assert_non_null(strstr(body, "hosts.txt:3"));
}

TEST(each_machine_is_told_once)
{
        const char *names[] = { "a", "b", "c", "d", "e" };
        const char *machines[] = { "y", "x", "x", "y", "x" };
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(find(names, machines, 5, &d), 2);
        assert_string_equal(d.v[0].fact, "b, c and 1 more are the same machine");
        assert_string_equal(d.v[1].fact, "a and d are the same machine");
}

TEST(names_of_the_loopback_interface_may_stand_together)
{
        const char *names[] = { "localhost", "127.0.0.1", "::1", "127.0.1.1", "myself" };
        const char *machines[] = { "x", "x", "x", "x", "x" };
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(find(names, machines, 4, &d), 0);
        assert_int_equal(find(names, machines, 5, &d), 1);
}
