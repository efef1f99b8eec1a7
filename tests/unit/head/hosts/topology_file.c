/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/topology_file.h"

#include "base/error_number.h"
#include "base/memory.h"
#include "head/hosts/hostfile.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* Returns "a1 leaf1 core/leaf1 2" of each host of @list that the text places; malloc'ed. */
static char *placed(const char *text, const char *list)
{
        struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        struct switch_tree *t = topology_parse("net.txt", text, strlen(text), &d);
        struct buf out = BUF_INIT;
        char *errors = diags_text(&d, false);

        assert_string_equal(errors, "");
        free(errors);
        assert_non_null(t);
        assert_int_equal(hostlist_parse(&h, list, &d), 0);
        topology_place(t, &h);
        for (size_t i = 0; i < h.n; i++) {
                const struct host_site *s = h.v[i].site;

                if (s->number < 0)
                        continue;
                buf_printf(&out, "%s%s %s %s %d", buf_len(&out) ? ", " : "", h.v[i].name, s->group,
                           s->path ? s->path : "-", s->number);
        }
        topology_destroy(t);
        hosts_finish(&h);
        diags_finish(&d);
        return buf_steal(&out);
}

TEST(hosts_have_the_switches_of_the_file)
{
        static const struct {
                const char *text, *list, *want;
        } cases[] = {
                { "s1: a1,a2\n", "a[1-2],b", "a1 s1 s1 0, a2 s1 s1 0" },
                { "# net\n\n  s1 :\ta[1-2]  b1 # x\r\ncore: s[1-2]\ns2: c1\n", "c1,b1,a2",
                  "c1 s2 core/s2 2, b1 s1 core/s1 1, a2 s1 core/s1 1" },
                { "SwitchName=s1 Nodes=a[1-2] LinkSpeed=1\nSwitchName=top Switches=s[1-2]\n"
                  "switchname=s2 NODES=a[3-4]\n",
                  "a4,a1", "a4 s2 top/s2 2, a1 s1 top/s1 1" },
                /* scontrol show topology */
                { "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=a[1-2]\n"
                  "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=a[1-4] Switches=s[0-1]\n"
                  "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=a[3-4] Switches=(null)\n",
                  "a1,a3", "a1 s0 s2/s0 1, a3 s1 s2/s1 2" },
                { "BlockName=b1 Nodes=a[1-2]\nBlockName=b2 Nodes=a[3-4]\nBlockSizes=2\n"
                  "AggregatedBlock=b1,b2 BlockIndex=2 BlockSize=4 Nodes=a[1-4]\n",
                  "a2,a3", "a2 b1 - 0, a3 b2 - 1" },
                { "s1: a[1-4]\nBlockName=b1 Nodes=a[1-2]\nBlockName=b2 Nodes=a[3-4]\n", "a1,a3",
                  "a1 b1 s1 0, a3 b2 s1 0" },
                { "s1: a1\n", "A1,a1.example.org", "A1 s1 s1 0, a1.example.org s1 s1 0" },
                { "s1: a1\ns1x: a2\ntop: s1,s1x\nother: s1x\n", "a2", "a2 s1x top/s1x 2" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(free_textp) char *got = placed(cases[i].text, cases[i].list);

                assert_string_equal(got, cases[i].want);
        }
}

TEST(mistakes_have_number_line_and_mark)
{
        static const struct {
                const char *text;
                int id;
                const char *want; /* parts, with a newline between */
        } cases[] = {
                { "", HN_TOPOLOGY_LINE, "no switch with hosts in net.txt" },
                { "core: s1\ns1:\n", HN_TOPOLOGY_LINE,
                  "a switch without hosts\nnet.txt:2:1\n2 | s1:" },
                { "s1: a1\na2 a3\n", HN_TOPOLOGY_LINE,
                  "expected `switch: hosts`\nnet.txt:2:1\n^^^^^" },
                { "s1: a[1-\n", 113, "net.txt:1:" },
                { "s1: a:8\n", HN_TOPOLOGY_LINE,
                  "expected the name of a host or switch\nnet.txt:1:5" },
                { "s[1-2]: a1\n", HN_TOPOLOGY_LINE, "expected the name of a switch\nnet.txt:1:1" },
                { "s1: a[1-3]\ns2: b1 a2\n", HN_TOPOLOGY_TWICE,
                  "a2 is in two switches, s1 and s2\nnet.txt:2:8\n1 | s1: a[1-3]\n------\n^^" },
                { "s1: a1\ns1: a2\n", HN_TOPOLOGY_TWICE,
                  "the switch s1 has two lines\nnet.txt:2:1" },
                { "BlockName=b Nodes=a1\nBlockName=c Nodes=a1\n", HN_TOPOLOGY_TWICE,
                  "a1 is in two blocks, b and c\nnet.txt:2:19" },
                { "BlockName= Nodes=a1\n", HN_TOPOLOGY_LINE,
                  "expected the name of a switch\nnet.txt:1:1\n^^^^^^^^^^" },
                { "s1: a1\nNodes=a1 SwitchName=\n", HN_TOPOLOGY_LINE,
                  "expected the name of a switch\nnet.txt:2:10\n^^^^^^^^^^^" },
                { "SwitchName=s1 Switches=s9\n", HN_TOPOLOGY_LINE,
                  "there is no switch s9\nnet.txt:1:24" },
                { "a: b\nb: c x1\nc: a\n", HN_TOPOLOGY_CIRCLE, "is below itself\nnet.txt:1:1" },
                { "a: a x\n", HN_TOPOLOGY_CIRCLE, "the switch a is below itself" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
                char *parts = strdup(cases[i].want), *text, *save = NULL;

                assert_null(topology_parse("net.txt", cases[i].text, strlen(cases[i].text), &d));
                text = diags_text(&d, false);
                assert_int_equal(diags_first_error(&d)->id, cases[i].id);
                assert_int_equal(diags_first_error(&d)->exit, 65);
                for (char *p = strtok_r(parts, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
                        if (!strstr(text, p))
                                fail_msg("case %zu: no \"%s\" in\n%s", i, p, text);
                free(text);
                free(parts);
        }
}

TEST(deep_chains_are_refused)
{
        CLEANUP(buf_finish) struct buf text = BUF_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        for (int i = 0; i < 100000; i++)
                buf_printf(&text, "s%d: s%d\n", i, i + 1);
        buf_printf(&text, "s100000: a1\n");
        assert_null(topology_parse("net.txt", (const char *)buf_data(&text), buf_len(&text), &d));
        assert_int_equal(diags_first_error(&d)->id, HN_TOPOLOGY_CIRCLE);
}

TEST(missing_file_is_told)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_null(topology_load("/nonexistent/net.txt", &d));
        assert_int_equal(diags_first_error(&d)->id, HN_TOPOLOGY_UNREADABLE);
        assert_int_equal(diags_first_error(&d)->exit, 66);
}
