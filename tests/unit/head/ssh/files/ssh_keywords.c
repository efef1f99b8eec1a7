/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "head/ssh/files/ssh_keywords.h"
#include "lib/unit.h"

TEST(each_keyword_is_found_and_has_a_reason)
{
        const struct ssh_keyword *k;
        size_t n;

        for (n = 0; (k = ssh_keyword_at(n)); n++) {
                if (ssh_keyword_find(k->name) != k)
                        fail_msg("%s is there twice", k->name);
                if ((k->use == KEYWORD_OBEYED) != !k->why)
                        fail_msg("%s: a reason belongs to what is not obeyed", k->name);
                if ((k->value == VALUE_CHOICE) != !!k->choices)
                        fail_msg("%s: choices", k->name);
                if ((k->fine || k->only_if) && k->use < KEYWORD_ASIDE)
                        fail_msg("%s: is obeyed, or says nothing", k->name);
        }
        assert_true(n > 110);
        assert_null(ssh_keyword_find("Frobnicate"));
        assert_null(ssh_keyword_find(""));
        assert_ptr_equal(ssh_keyword_find("hostNAME"), ssh_keyword_find("HostName"));
        assert_ptr_equal(ssh_keyword_find("tisauthentication"),
                         ssh_keyword_find("KbdInteractiveAuthentication"));
        assert_ptr_equal(ssh_keyword_find("rsaminsize"), ssh_keyword_find("RequiredRSASize"));
}

/* The conditions name keywords of the table. */
TEST(conditions_name_flags)
{
        const struct ssh_keyword *k, *of;
        char name[64];

        for (size_t n = 0; (k = ssh_keyword_at(n)); n++) {
                if (!k->only_if)
                        continue;
                assert_int_equal(sscanf(k->only_if + (*k->only_if == '!'), "%63s yes", name), 1);
                of = ssh_keyword_find(name);
                if (!of || of->value != VALUE_FLAG || strcmp(of->name, name) != 0)
                        fail_msg("%s: only if %s", k->name, k->only_if);
        }
}

TEST(ports_and_lists)
{
        assert_int_equal(ssh_keyword_port("1"), 1);
        assert_int_equal(ssh_keyword_port("65535"), 65535);
        assert_int_equal(ssh_keyword_port("0"), -1);
        assert_int_equal(ssh_keyword_port("65536"), -1);
        assert_int_equal(ssh_keyword_port("-22"), -1);
        assert_int_equal(ssh_keyword_port("22x"), -1);
        assert_int_equal(ssh_keyword_port(""), -1);
        assert_int_equal(ssh_keyword_port("no-such-service"), -1);
        assert_true(ssh_keyword_list_has("a|bc", "BC"));
        assert_false(ssh_keyword_list_has("a|bc", "b"));
        assert_false(ssh_keyword_list_has("a|bc", ""));
        assert_false(ssh_keyword_list_has(NULL, "a"));
}
