/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/memory.h"
#include "head/hosts/filter.h"
#include "head/hosts/hostfile.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

static void add_numbers(struct buf *out, const char *sign, const struct intlist *l)
{
        for (size_t i = 0; i < l->n; i++)
                buf_printf(out, "%s%d", i ? "," : sign, l->v[i]);
}

/* "a b+0,2 c-1": b keeps the slots 0 and 2, c drops 1; malloc'ed. */
static char *described(const struct hosts *h)
{
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < h->n; i++) {
                buf_printf(&out, "%s%s", i ? " " : "", h->v[i].name);
                assert_int_equal(h->v[i].filtered, h->v[i].keep.n || h->v[i].drop.n);
                add_numbers(&out, "+", &h->v[i].keep);
                add_numbers(&out, "-", &h->v[i].drop);
        }
        return buf_steal(&out);
}

/* Specs with ";" between. */
static void add_specs(struct strv *to, const char *specs)
{
        const char *end;

        for (; specs; specs = *end ? end + 1 : NULL) {
                end = strchrnul(specs, ';');
                strv_push_mem(to, specs, (size_t)(end - specs));
        }
}

static int run_filter(struct hosts *h, const char *list, const char *include, const char *exclude,
                      int nodes, struct diags *d)
{
        struct strv in = STRV_INIT, ex = STRV_INIT;
        int r;

        assert_int_equal(hostlist_parse(h, list, d), 0);
        add_specs(&in, include);
        add_specs(&ex, exclude);
        r = filter_apply(h, &in, &ex, nodes, d);
        strv_finish(&in);
        strv_finish(&ex);
        return r;
}

TEST(filters_narrow_the_list)
{
        static const struct {
                const char *list, *include, *exclude;
                int nodes;
                const char *left;
        } cases[] = {
                { "a,b,c", NULL, NULL, 0, "a b c" },
                { "a,b,c", "c,a", NULL, 0, "a c" },
                { "a,b,c", NULL, "b", 0, "a c" },
                { "a,b,c", "a;b", NULL, 0, "a b" },
                { "a,b,c", "a@b", NULL, 0, "a b" },
                { "a,b,c", "a , b", NULL, 0, "a b" },
                { "a,b,c", "a b ", NULL, 0, "a b" },
                { "A,b", "a", NULL, 0, "A" },
                { "gpu[01-04]:8", "gpu[02-03]", NULL, 0, "gpu02 gpu03" },
                { "gpu[01-03]:8", "gpu[01-02]:0,2", NULL, 0, "gpu01+0,2 gpu02+0,2" },
                { "gpu[01-03]:8", "gpu01:4-6,0,gpu03", NULL, 0, "gpu01+4,5,6,0 gpu03" },
                { "gpu[009-031],gpu-064", NULL, "gpu[009-029,031],gpu-064", 0, "gpu030" },
                /* DeepSpeed */
                { "h1:4,h2:4,h3:4", "h1@h2:0,2", NULL, 0, "h1 h2+0,2" },
                { "h1:4,h2:4,h3:4", "h1:0,1@h2:2,3", NULL, 0, "h1+0,1 h2+2,3" },
                { "h1:4,h2:4", NULL, "h2:0", 0, "h1 h2-0" },
                /* whole wins, excluding comes after including */
                { "a:4,b:4", "a:0;a", NULL, 0, "a" },
                { "a:4,b:4", "a;a:0", NULL, 0, "a" },
                { "a:4,b:4", "a:0;a:1,0", NULL, 0, "a+0,1" },
                { "a:4,b:4,c:4", "a,b", "b", 0, "a" },
                { "a:4,b:4,c:4", "a", "b", 0, "a" },
                { "a:4,b:4", "a", "a:3", 0, "a-3" },
                { "a:4,b:4", "a:0-2", "a:1", 0, "a+0,1,2-1" },
                { "a:4,b:4", NULL, "a:1;a", 0, "b" },
                /* unknown slots */
                { "a,b", "a:7", NULL, 0, "a+7" },
                { "[fe80::1]:2,b", "[fe80::1]:1", NULL, 0, "fe80::1+1" },
                { "[fe80::1]:2,b", NULL, "[fe80::1]", 0, "b" },
                /* --nodes */
                { "a,b,c", NULL, NULL, 2, "a b" },
                { "a,b,c", NULL, NULL, 3, "a b c" },
                { "a,b,c", NULL, "a", 1, "b" },
                { "a,b,c", "c,b", NULL, 1, "b" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                struct diags d = DIAGS_INIT;
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(run_filter(&h, cases[i].list, cases[i].include, cases[i].exclude,
                                            cases[i].nodes, &d),
                                 0);
                got = described(&h);
                assert_string_equal(got, cases[i].left);
                assert_int_equal(d.n, 0);
        }
}

TEST(wrong_filters_get_suggestions)
{
        static const struct {
                const char *list, *include, *exclude;
                int nodes;
                const char *shown;
        } cases[] = {
                { "gpu[001-064]", NULL, "gpu001,gpu64", 0,
                  "error[HN140]: no host `gpu64` in the list\n"
                  "  --> --exclude, column 8\n   |\n   | gpu001,gpu64\n"
                  "   |        ^^^^^ did you mean `gpu064`?\n" },
                { "a,b", "zebra", NULL, 0,
                  "error[HN140]: no host `zebra` in the list\n"
                  "  --> --include, column 1\n   |\n   | zebra\n   | ^^^^^\n" },
                { "a:4", "a:0,4", NULL, 0,
                  "error[HN142]: a has no slot 4, its slots are 0-3\n"
                  "  --> --include, column 3\n   |\n   | a:0,4\n   |   ^^^\n" },
                { "a:4", NULL, "a:", 0,
                  "error[HN113]: a number is missing here\n"
                  "  --> --exclude, column 3\n   |\n   | a:\n   |   ^\n" },
                { "a:4", "a:x", NULL, 0,
                  "error[HN113]: expected a number\n"
                  "  --> --include, column 3\n   |\n   | a:x\n   |   ^\n" },
                { "a", "a[", NULL, 0,
                  "error[HN113]: this `[` has no `]`\n"
                  "  --> --include, column 2\n   |\n   | a[\n   |  ^\n" },
                { "a", "", NULL, 0,
                  "error[HN113]: a name is missing here\n"
                  "  --> --include, column 1\n   |\n   |\n   | ^\n" },
                { "a", "a,", NULL, 0,
                  "error[HN113]: a name is missing here\n"
                  "  --> --include, column 3\n   |\n   | a,\n   |   ^\n" },
                { "a,b", NULL, "a,b", 0,
                  "error[HN143]: --exclude leaves none of the 2 hosts\n"
                  "    = help: exclude fewer hosts, or add some\n" },
                { "a,b", "a", "a", 0,
                  "error[HN143]: --include and --exclude leave none of the 2 hosts\n"
                  "    = help: exclude fewer hosts, or add some\n" },
                { "a", NULL, "a", 0,
                  "error[HN143]: --exclude leaves no host\n"
                  "    = help: exclude fewer hosts, or add some\n" },
                { "a,b", NULL, NULL, 3,
                  "error[HN144]: --nodes 3, but there are only 2\n"
                  "    = help: --nodes 2, or add hosts\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(run_filter(&h, cases[i].list, cases[i].include, cases[i].exclude,
                                            cases[i].nodes, &d),
                                 -EINVAL);
                got = diags_text(&d, false);
                assert_string_equal(got, cases[i].shown);
                assert_int_equal(d.v[0].exit, 64);
        }
}

TEST(all_errors_are_told_up_to_a_limit)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(run_filter(&h, "a,b", "x,a[],y:9999", "z", 0, &d), -EINVAL);
        assert_int_equal(diags_errors(&d), 4);
        diags_finish(&d);
        hosts_finish(&h);

        assert_int_equal(run_filter(&h, "a,b", "nosuch[1-65536]", NULL, 0, &d), -EINVAL);
        assert_int_equal(diags_errors(&d), 20);
        assert_int_equal(h.n, 2);
}

TEST(devices_count_as_slots)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(strv_finish) struct strv in = STRV_INIT;

        assert_int_equal(hostfile_parse(&h, "h", "a gpus=4-7\n", 11, &d), 0);
        strv_push(&in, "a:4");
        assert_int_equal(filter_apply(&h, &in, NULL, 0, &d), -EINVAL);
        assert_string_equal(d.v[0].fact, "a has no slot 4, its slots are 0-3");
}

/* Chooses hosts by @lists (with ";" between); returns "name", "name:slots", "user@name"; malloc'ed.
 */
static char *chosen(const char *file, const char *lists, struct diags *d)
{
        struct hosts h = HOSTS_INIT;
        struct strv specs = STRV_INIT;
        struct buf out = BUF_INIT;

        assert_int_equal(hostfile_parse(&h, "h", file, strlen(file), d), 0);
        add_specs(&specs, lists);
        if (filter_choose(&h, &specs, d) < 0)
                buf_appends(&out, "error");
        else
                for (size_t i = 0; i < h.n; i++) {
                        const struct host *one = &h.v[i];

                        buf_printf(&out, "%s%s%s%s", i ? " " : "", one->user ? one->user : "",
                                   one->user ? "@" : "", one->name);
                        if (one->slots)
                                buf_printf(&out, ":%d", one->slots);
                        if (one->local)
                                buf_appends(&out, "!");
                }
        strv_finish(&specs);
        hosts_finish(&h);
        return buf_steal(&out);
}

TEST(lists_choose_among_the_hosts_of_a_file)
{
        static const struct {
                const char *file, *lists, *left, *fault;
        } cases[] = {
                { "a:4\nb:4\nc", "c,a", "a:4 c", NULL },
                { "a:4\nb:4\nc", "c;a", "a:4 c", NULL },
                { "a:4\nb:4", "B", "b:4", NULL },
                { "n[1-9]:8", "n[2-3],n9:2", "n2:8 n3:8 n9:2", NULL },
                { "a:4\nb", "a:2,b:3", "a:2 b:3", NULL },
                { "a:4\nb", "a:*", "a:4", NULL },
                { "a:4\nb:4", "b,b", "b:2", NULL }, /* repeated: a slot each, as in a file */
                { "a:4\nb:4", "b;b;b", "b:3", NULL },
                { "bob@a:4\nb", "alice@a", "alice@a:4", NULL },
                { "localhost:4\nb", "localhost:1", "localhost:1!", NULL },
                { "localhost:4\nb", "alice@localhost", "alice@localhost:4", NULL },
                { "a gpus=0,2,4", "a:2", "a:2", NULL },
                { "[fe80::1]:4\nb", "[fe80::1]:1", "fe80::1:1", NULL },
                { "a:4", "a:5", "error", "-w takes 5 slots of a, which has 4" },
                { "a gpus=0,2", "a:3", "error", "-w takes 3 slots of a, which has 2" },
                { "a:4", "a,b", "error", "no host `b` in the list" },
                { "a:4", "a[", "error", "this `[` has no `]`" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
                CLEANUP(free_textp) char *got = chosen(cases[i].file, cases[i].lists, &d);

                assert_string_equal(got, cases[i].left);
                assert_int_equal(diags_errors(&d), cases[i].fault ? 1 : 0);
                if (cases[i].fault)
                        assert_string_equal(d.v[0].fact, cases[i].fault);
        }
}

TEST(hosts_a_file_lacks_are_shown)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *got = chosen("gpu1\ngpu2", "gpu1, bob@gpu[2-3]:4", &d);
        char *text = diags_text(&d, false);

        assert_string_equal(got, "error");
        assert_string_equal(text, "error[HN140]: no host `gpu3` in the list\n"
                                  "  --> -w, column 11\n"
                                  "   |\n"
                                  "   | gpu1, bob@gpu[2-3]:4\n"
                                  "   |           ^^^^^^^^ did you mean `gpu1`?\n"
                                  "   |\n"
                                  "   = help: beside -H, -w chooses among the hosts of the file; "
                                  "a second -H adds hosts: -H h -H FILE\n");
        free(text);
        free(got);
        diags_finish(&d);
        got = chosen("a", "nosuch[1-65536]", &d);
        assert_int_equal(diags_errors(&d), 20);
}

TEST(hosts_can_be_added_after_filtering)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;

        assert_int_equal(run_filter(&h, "n[1-9]", NULL, "n[4-9]", 0, &d), 0);
        assert_int_equal(hostlist_parse(&h, "m[1-9]", &d), 0);
        assert_int_equal(h.n, 12);
        assert_ptr_equal(hosts_find(&h, "m9"), &h.v[11]);
        assert_null(hosts_find(&h, "n4"));
}
