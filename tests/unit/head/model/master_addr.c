/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of rank 0's node: selection, order, and the final choice. */
#include <stdio.h>

#include "head/model/master_addr.h"
#include "lib/unit.h"

#define NODE(list, ssh)                                                                            \
        {                                                                                          \
                .ssh_addr = ssh, .addrs = list, .n_addrs = ARRAY_SIZE(list)                        \
        }

static struct msg_addr first[] = {
        { "docker0", "172.17.0.1", 16 }, { "eth0", "fe80::1", 64 },
        { "eth2", "203.0.113.7", 24 },   { "ib0", "2001:db8:8::7", 64 },
        { "ib0", "10.8.0.7", 16 },       { "eth0", "192.0.2.7", 24 },
        { "lo0", "127.0.0.2", 8 },       { "eth3", "169.254.3.3", 16 },
        { "bond0", "198.51.100.7", 24 },
};
static struct msg_addr second[] = {
        { "docker0", "172.17.0.1", 16 }, { "eth0", "192.0.2.8", 24 },     { "ib0", "10.8.0.8", 16 },
        { "ib0", "2001:db8:8::8", 64 },  { "bond0", "198.51.100.7", 24 }, /* the same on both */
};
static struct msg_addr third[] = {
        { "ib1", "10.8.99.9", 16 },
        { "eth0", "192.0.2.9", 24 },
        { "ib1", "2001:DB8:8::9", 64 },
};

static const struct hello one = NODE(first, "192.0.2.7");
static const struct hello two = NODE(second, "192.0.2.8");
static const struct hello three = NODE(third, "192.0.2.9");
static const struct hello *const all[] = { &one, &two, &three };

/* "addr addr ...", or the error. */
static const char *list(const struct host *host, const struct hello *const *nodes, size_t n,
                        const char *iface)
{
        static char text[1024];
        struct master_addr_list l;
        struct error err;
        size_t at = 0;

        if (master_addr_candidates(&l, host, nodes, n, iface, &err) < 0)
                return strcpy(text, err.text);
        text[0] = '\0';
        for (size_t i = 0; i < l.n; i++)
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "",
                                       l.v[i].addr);
        return text;
}

static const struct host plain = { .name = (char *)"a" };

TEST(the_network_that_all_share_comes_before_the_others)
{
        assert_string_equal(list(&plain, all, 3, NULL),
                            "192.0.2.7 10.8.0.7 2001:db8:8::7 203.0.113.7 172.17.0.1 198.51.100.7");
}

TEST(an_address_that_only_ssh_knows_is_tried_first)
{
        struct hello nat = NODE(first, "198.51.100.99");
        const struct hello *nodes[] = { &nat, &two, &three };

        assert_string_equal(list(&plain, nodes, 3, NULL),
                            "198.51.100.99 10.8.0.7 192.0.2.7 2001:db8:8::7 203.0.113.7 172.17.0.1 "
                            "198.51.100.7");
}

TEST(ssh_through_loopback_names_no_address)
{
        struct hello tunnel = NODE(first, "127.0.0.1");
        const struct hello *nodes[] = { &tunnel, &two };

        assert_string_equal(list(&plain, nodes, 2, NULL),
                            "10.8.0.7 192.0.2.7 2001:db8:8::7 203.0.113.7 172.17.0.1 198.51.100.7");
}

TEST(addr_of_the_hostfile_stands_alone)
{
        struct host host = { .name = (char *)"a",
                             .addr = (char *)"203.0.113.4",
                             .iface = (char *)"ib0" };
        struct master_addr_list l;
        struct error err;

        assert_string_equal(list(&host, all, 3, "eth0"), "203.0.113.4");
        host.addr = (char *)"10.8.0.7";
        assert_int_equal(master_addr_candidates(&l, &host, all, 3, NULL, &err), 0);
        assert_string_equal(l.v[0].iface, "ib0");
        assert_true(l.given);
        host.addr = (char *)"no.such.name.invalid";
        assert_string_equal(list(&host, all, 3, NULL), "no.such.name.invalid");
        assert_false(master_addr_is_numeric("no.such.name.invalid"));
}

#define HAS                                                                                        \
        "; it has docker0 172.17.0.1, eth0 fe80::1, eth2 203.0.113.7, ib0 2001:db8:8::7, "         \
        "ib0 10.8.0.7, eth0 192.0.2.7, lo0 127.0.0.2, eth3 169.254.3.3, bond0 198.51.100.7"

TEST(an_interface_is_a_name_or_a_network)
{
        struct host eth2 = { .name = (char *)"a", .iface = (char *)"eth2" };
        static const struct {
                const char *iface, *want;
        } rows[] = {
                { "ib0", "10.8.0.7 2001:db8:8::7" },
                { "10.8.0.0/16", "10.8.0.7" },
                { "10.0.0.0/8", "10.8.0.7" },
                { "10.8.0.0/29", "10.8.0.7" },
                { "10.8.0.8/29", "a has no address on 10.8.0.8/29" HAS },
                { "10.14.0.0/13", "10.8.0.7" },
                { "10.16.0.0/13", "a has no address on 10.16.0.0/13" HAS },
                { "0.0.0.0/0", "192.0.2.7 10.8.0.7 203.0.113.7 172.17.0.1 198.51.100.7" },
                { "2001:db8::/32", "2001:db8:8::7" },
                { "docker0", "172.17.0.1" },
                { "10.9.0.0/16", "a has no address on 10.9.0.0/16" HAS },
                { "10.8.0.0/", "a has no address on 10.8.0.0/" HAS },
                { "10.8.0.0/x", "a has no address on 10.8.0.0/x" HAS },
                { "10.8.0.0/129", "a has no address on 10.8.0.0/129" HAS },
                { "10.8.0.0/33", "a has no address on 10.8.0.0/33" HAS },
                { "eth9", "a has no address on eth9" HAS },
                { "ib", "a has no address on ib" HAS },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_string_equal(list(&plain, all, 3, rows[i].iface), rows[i].want);
        assert_string_equal(list(&eth2, all, 3, "ib0"), "203.0.113.7");
}

TEST(at_most_sixteen_and_the_best_of_them)
{
        struct msg_addr many[40];
        struct hello h = { .ssh_addr = "192.0.2.200", .addrs = many, .n_addrs = 40 };
        const struct hello *nodes[] = { &h, &two };
        struct master_addr_list l;
        struct error err;

        for (unsigned i = 0; i < 40; i++) {
                many[i] = (struct msg_addr){ .iface = "eth9", .prefix = 24 };
                snprintf(many[i].addr, sizeof(many[i].addr), "203.0.%u.1", i);
        }
        strcpy(many[39].addr, "192.0.2.200");
        strcpy(many[38].addr, "10.8.0.3");
        assert_int_equal(master_addr_candidates(&l, &plain, nodes, 2, NULL, &err), 0);
        assert_int_equal(l.n, MASTER_ADDR_MAX);
        assert_string_equal(l.v[0].addr, "192.0.2.200");
        assert_string_equal(l.v[1].addr, "10.8.0.3");
        assert_string_equal(l.v[2].addr, "203.0.0.1");
        assert_string_equal(l.v[15].addr, "203.0.13.1");
        assert_false(l.given);

        strcpy(h.ssh_addr, "198.51.100.1");
        master_addr_candidates(&l, &plain, nodes, 2, NULL, &err);
        assert_int_equal(l.n, MASTER_ADDR_MAX);
        assert_string_equal(l.v[0].addr, "198.51.100.1");
}

TEST(without_a_network_there_is_loopback)
{
        const struct hello bare = { .n_addrs = 0 };
        const struct hello *nodes[] = { &bare, &bare };

        assert_string_equal(list(&plain, nodes, 2, NULL), "127.0.0.1");
        assert_string_equal(list(&plain, nodes, 2, "eth0"),
                            "a has no address on eth0; it has none but loopback");
}

TEST(the_first_address_that_all_reached_is_chosen)
{
        struct probe_result good_good[] = { { 0, "e", 5 }, { 0, "e", 6 }, { 0, "e", 6 } },
                            bad_good[] = { { 111, "e", 0 }, { 0, "e", 6 }, { 0, "e", 6 } },
                            good_bad[] = { { 0, "e", 1 }, { 110, "e", 0 }, { 0, "e", 6 } };
        struct probed a = { good_good, 3 }, b = { bad_good, 3 }, c = { good_bad, 3 };
        const struct probed *ab[] = { &a, &a }, *mixed[] = { &a, &b, &c }, *silent[] = { &a, NULL };

        assert_int_equal(master_addr_pick(ab, 2, 3), 0);
        assert_int_equal(master_addr_pick(mixed, 2, 3), 1);
        assert_int_equal(master_addr_pick(mixed, 3, 3), 2);
        assert_int_equal(master_addr_pick(mixed, 3, 2), -1);
        assert_int_equal(master_addr_pick(silent, 2, 3), -1);
        assert_int_equal(master_addr_nearest(mixed, 3, 3), 2);
        assert_int_equal(master_addr_nearest(mixed, 2, 1), 0);
}

TEST(a_node_has_an_interface_towards_the_master)
{
        const struct master_addr ib = { "10.8.0.7", "ib0", 16 },
                                 far = { "203.0.113.7", "eth2", 24 };
        const struct hello bare = { .ssh_addr = "192.0.2.9" };

        assert_string_equal(master_addr_iface(&three, &ib), "ib1");
        assert_string_equal(master_addr_iface(&three, &far), "eth0"); /* that of ssh */
        assert_string_equal(master_addr_iface(&bare, &far), "");
}

TEST(another_shared_network_is_suggested)
{
        const struct master_addr eth = { "192.0.2.7", "eth0", 24 }, ib = { "10.8.0.7", "ib0", 16 };
        const struct hello bare = { .n_addrs = 0 };
        char to[64];

        master_addr_other_network(to, sizeof(to), &two, &one, &eth);
        assert_string_equal(to, "10.8.0.0/16");
        master_addr_other_network(to, sizeof(to), &three, &one, &ib);
        assert_string_equal(to, "192.0.2.0/24");
        master_addr_other_network(to, sizeof(to), &bare, &one, &ib);
        assert_string_equal(to, "");
}
