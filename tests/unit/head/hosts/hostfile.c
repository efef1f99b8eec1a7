/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/hosts/hostfile.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* Writes a host as a word: "user@name:slots", followed by the other keys. */
static void describe(struct buf *out, const struct host *h)
{
        if (h->user)
                buf_printf(out, "%s@", h->user);
        buf_appends(out, h->name);
        if (h->slots)
                buf_printf(out, ":%d", h->slots);
        else if (h->slots_given)
                buf_appends(out, ":auto");
        if (h->max_slots)
                buf_printf(out, "/%d", h->max_slots);
        if (h->port)
                buf_printf(out, " port=%d", h->port);
        if (h->addr)
                buf_printf(out, " addr=%s", h->addr);
        if (h->iface)
                buf_printf(out, " iface=%s", h->iface);
        for (size_t i = 0; i < h->gpus.n; i++)
                buf_printf(out, "%s%d", i ? "," : " gpus=", h->gpus.v[i]);
        if (h->local)
                buf_appends(out, " local");
        if (h->spare)
                buf_appends(out, " spare");
}

/* Writes all hosts with "; " between; malloc'ed. */
static char *described(const struct hosts *h)
{
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < h->n; i++) {
                if (i)
                        buf_appends(&out, "; ");
                describe(&out, &h->v[i]);
        }
        return buf_steal(&out);
}

static void assert_reads(const char *text, size_t len, const char *want)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *copy = malloc(len + 1), *got = NULL;

        /* An exact allocation, so that a read behind the end is found. */
        memcpy(copy, text, len);
        copy = realloc(copy, len ? len : 1);
        if (hostfile_parse(&h, "hosts.txt", copy, len, &d) < 0) {
                got = diags_text(&d, false);
                fail_msg("%s", got);
        }
        got = described(&h);
        assert_string_equal(got, want);
        assert_int_equal(d.n, 0);
}

/* @place and @fact are of the first error; @more is a part of the message, or NULL. */
static void assert_fails(const char *text, size_t len, size_t errors, const char *place,
                         const char *fact, const char *more)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        char *shown, line[64];

        assert_int_equal(hostfile_parse(&h, "h", text, len, &d), -EINVAL);
        shown = diags_text(&d, false);
        assert_int_equal(diags_errors(&d), errors);
        assert_string_equal(diags_first_error(&d)->fact, fact);
        assert_int_equal(diags_first_error(&d)->exit, 65);
        snprintf(line, sizeof(line), "--> h:%s\n", place);
        if (*place && !strstr(shown, line))
                fail_msg("no %s in:\n%s", line, shown);
        if (more && !strstr(shown, more))
                fail_msg("no %s in:\n%s", more, shown);
        free(shown);
}

TEST(every_dialect_is_read)
{
        static const struct {
                const char *text, *hosts;
        } cases[] = {
                /* the same line in the dialects of four launchers */
                { "a slots=4", "a:4" },
                { "a:4", "a:4" },
                { "a", "a" },
                { "a\na", "a:2" },
                { "a\nb\na\na", "a:3; b" },
                { "a slots=4 # x", "a:4" },
                { "a slots=auto", "a:auto" },
                { "a slots = 4", "a:4" },
                { "a slots=4 max_slots=8", "a:4/8" },
                { "a slots=4 max_slots=4", "a:4/4" },
                { "u@a slots=4", "u@a:4" },
                { "n[01-02] slots=4", "n01:4; n02:4" },
                { "[fe80::1] slots=4", "fe80::1:4" },
                { "# c\na", "a" },
                /* Open MPI */
                { "a count=2", "a:2" },
                { "a cpu=2", "a:2" },
                { "a slots=1 slots-max=2", "a:1/2" },
                { "a max-slots=2", "a:2/2" },
                { "a count_max=2", "a:2/2" },
                { "a max_cpu=2", "a:2/2" },
                { "a user-name=bob", "bob@a" },
                { "a username=bob port=2222", "bob@a port=2222" },
                { "a // c", "a" },
                { "a /* c */ slots=2", "a:2" },
                { "a /* c\nslots=2 */\nc", "a; c" },
                { "a slots=4// c", "a:4" },
                { "15 slots=2", "15:2" },
                { "a:*", "a:auto" },
                /* MPICH */
                { "a:2#x", "a:2" },
                { "a:8 user=ci", "ci@a:8" },
                { "u@a:2", "u@a:2" },
                { "  a:2  ", "a:2" },
                /* our own */
                { "a:auto", "a:auto" },
                { "gpu[001-002,070]:8", "gpu001:8; gpu002:8; gpu070:8" },
                { "al.i-ce_1@gpu[1-2]", "al.i-ce_1@gpu1; al.i-ce_1@gpu2" },
                { "[2001:db8::7]:8", "2001:db8::7:8" },
                { "u@[2001:db8::7]", "u@2001:db8::7" },
                { "[fe80::1%eth0]", "fe80::1%eth0" },
                { "[1-2]:3", "1:3; 2:3" },
                { "a gpus=0,2,4-6", "a gpus=0,2,4,5,6" },
                { "a gpus=6,0 slots=2", "a:2 gpus=6,0" },
                { "a slots=2 spare tags=x\nb spare", "a:2 spare; b spare" },
                { "a addr=10.0.0.1 iface=ib0 numa=0,1 tags=x,y-z", "a addr=10.0.0.1 iface=ib0" },
                { "a numa=0 tags=x\na numa=1 tags=y", "a:2" },
                { "a addr=[fd00::1]", "a addr=fd00::1" },
                { "a addr=fd00::1", "a addr=fd00::1" },
                { "n[1-2] addr=10.0.0.[8-9]", "n1 addr=10.0.0.8; n2 addr=10.0.0.9" },
                { "a iface=10.8.0.0/16", "a iface=10.8.0.0/16" },
                { "n[1,1,2]", "n1:2; n2" },
                { "a slots=1024", "a:1024" },
                /* this machine */
                { "localhost", "localhost local" },
                { "LocalHost:2", "LocalHost:2 local" },
                { "127.0.0.1 slots=2", "127.0.0.1:2 local" },
                { "[::1]", "::1 local" },
                { "localhost port=2222", "localhost port=2222" },
                { "bob@localhost", "bob@localhost" },
                { "127.0.0.2", "127.0.0.2" },
                /* texts */
                { "\xef\xbb\xbf"
                  "a\r\nb slots=2\r\n",
                  "a; b:2" },
                { "a\rb\r", "a; b" },
                { "\n\n \t\n a\t slots\t=\t2 \n\n", "a:2" },
                { "a#", "a" },
                { "a\n#", "a" },
                { "a /**/", "a" },
                { "a#\xff\x01\xe4\nb", "a; b" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_reads(cases[i].text, strlen(cases[i].text), cases[i].hosts);
}

TEST(wrong_lines_say_where_and_why)
{
        static const struct {
                const char *text, *place, *fact, *more;
        } cases[] = {
                /* lines that other launchers accept silently, or break on */
                { "fe80::1 slots=4", "1:1", "an IPv6 address must stand in brackets",
                  "write it as [fe80::1]" },
                { "", "", "no hosts in h", "gpu001 slots=8" },
                { "# only\n\n", "", "no hosts in h", NULL },
                { "a slots=2\na slots=2", "2:1", "a has two slot counts",
                  " 1 | a slots=2\n   | - first given here\n 2 | a slots=2\n   | ^ and again "
                  "here" },
                { "a slots=2\nA:2", "2:1", "a has two slot counts", NULL },
                { "a\na slots=2", "2:1", "a is given once with slots and once without", NULL },
                { "a:2\na", "2:1", "a is given once with slots and once without", NULL },
                { "a slots=auto\na slots=2", "2:1", "a has two slot counts", NULL },
                { "a\na port=22", "2:1", "the lines of a differ in `port`", NULL },
                { "u@a\nv@a", "2:1", "the lines of a differ in `user`", NULL },
                { "a\na gpus=1", "2:1", "the lines of a differ in `gpus`", NULL },
                { "a iface=x\na iface=y", "2:1", "the lines of a differ in `iface`", NULL },
                { "a 8", "1:3", "expected `key=value`", "did you mean `slots=8`?" },
                { "a b", "1:3", "expected `key=value`", "goes with -w" },
                { "a slots", "1:3", "expected `key=value`", "`slots` has no value" },
                { "a:4:mlx5_0", "1:4", "only one `:` may follow a host, before its slots", NULL },
                { "a:0", "1:3", "`slots` must be a number from 1 to 1024", NULL },
                { "a:x", "1:3", "`slots` must be a number from 1 to 1024", NULL },
                { "a:-3", "1:3", "`slots` must be a number from 1 to 1024", NULL },
                { "a:", "1:3", "`slots` must be a number from 1 to 1024", NULL },
                { "a slots=1025", "1:9", "`slots` must be a number from 1 to 1024", NULL },
                { "a slots=99999999999", "1:9", "`slots` must be a number from 1 to 1024", NULL },
                { "a slots=abc", "1:9", "`slots` must be a number from 1 to 1024", "^^^\n" },
                { "^a", "1:1", "a host name has letters, digits, `.`, `_` and `-` only",
                  "--exclude" },
                { "+n2", "1:1", "a host name has letters, digits, `.`, `_` and `-` only",
                  "allocation" },
                { "\"a\"", "1:1", "a host name has letters, digits, `.`, `_` and `-` only",
                  "without quotes" },
                { "a,b slots=2", "1:2", "a host name has letters, digits, `.`, `_` and `-` only",
                  "-w" },
                { "ssh://a", "1:5", "`slots` must be a number from 1 to 1024", NULL },
                /* keys */
                { "a slot=8", "1:3", "unknown key `slot`", "^^^^ did you mean `slots`?" },
                { "a Slots=8", "1:3", "unknown key `Slots`", "did you mean `slots`?" },
                { "a binding=user:0", "1:3", "unknown key `binding`", "remove it" },
                { "a color=red", "1:3", "unknown key `color`", "keys are slots" },
                { "a slots=", "1:8", "`slots` has no value", NULL },
                { "a =8", "1:1", "expected a host name", NULL },
                { "slots=8", "1:1", "expected a host name", "^^^^^\n" },
                { "a slots=1 count=2", "1:11", "`slots` is given twice", "- first given here" },
                { "a:1 slots=1", "1:5", "`slots` is given twice", NULL },
                { "u@a user=v", "1:5", "`user` is given twice", NULL },
                { "a slots=4 max_slots=2", "1:11", "`max_slots` 2 is below the 4 slots", NULL },
                { "a slots=4 gpus=0,1", "1:11", "4 slots, but `gpus` names 2 GPUs", NULL },
                { "a:2 gpus=0", "1:5", "2 slots, but `gpus` names 1 GPU", NULL },
                { "a gpus=1,1", "1:10", "1 is named twice", NULL },
                { "a gpus=x", "1:8", "expected a number", NULL },
                { "a port=0", "1:8", "`port` must be a number from 1 to 65535", NULL },
                { "a port=65536", "1:8", "`port` must be a number from 1 to 65535", NULL },
                { "a addr=1;2", "1:9", "a host name has letters, digits, `.`, `_` and `-` only",
                  NULL },
                { "n[1-3] addr=10.0.0.[1-2]", "1:13", "2 addresses for 3 hosts", "range" },
                { "n[1-3] addr=10.0.0.1", "1:13", "1 address for 3 hosts", NULL },
                { "a iface=`x`", "1:9", "`iface` has letters, digits and `._-:/` only", NULL },
                { "a numa=0;1", "1:9", "`numa` has letters, digits and `,-` only", NULL },
                { "a numa=0 numa=1", "1:10", "`numa` is given twice", "- first given here" },
                { "a tags=$x", "1:8", "`tags` has letters, digits and `._-,` only", NULL },
                /* names */
                { "-oProxyCommand=x", "1:1", "expected a host name", NULL },
                { "-a", "1:1", "a host name must not begin with `-`", NULL },
                { ".a", "1:1", "a host name must not begin with `.`", NULL },
                { "-u@a", "1:1", "a user name must not begin with `-`", NULL },
                { "u;v@a", "1:2", "a user name has letters, digits, `.`, `_` and `-` only", NULL },
                { "@a", "1:1", "a user name is missing here", NULL },
                { "u@", "1:3", "a host name is missing here", NULL },
                { "u@v@a", "1:4", "a host has one user only", NULL },
                { "a$(id)", "1:2", "a host name has letters, digits, `.`, `_` and `-` only", NULL },
                { "a`id`", "1:2", "a host name has letters, digits, `.`, `_` and `-` only", NULL },
                { "h\xc3\xb6st", "1:2", "a host name has letters, digits, `.`, `_` and `-` only",
                  NULL },
                { "[fe80::zz]", "1:1", "this is not an IPv6 address", NULL },
                { "[fe80::1%;x]", "1:1", "this is not an IPv6 address", NULL },
                { "[fe80::1]x", "1:10", "only `:slots` may follow the address", NULL },
                { "n[01-", "1:2", "this `[` has no `]`", NULL },
                { "u@n[3-1]", "1:5", "the range runs backwards", NULL },
                { "n[1-65536]\nm", "2:1", "more than 65536 hosts", NULL },
                /* texts */
                { "a\nb /* x", "2:3", "this comment has no end", NULL },
                { "\xef\xbb\xbf"
                  "a 8",
                  "1:3", "expected `key=value`", NULL },
                { "a\r\nb x\r\n", "2:3", "expected `key=value`", " 2 | b x\n" },
                { "\xff\xfe"
                  "ab",
                  "1:1", "h is written in UTF-16", "iconv" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_fails(cases[i].text, strlen(cases[i].text), 1, cases[i].place, cases[i].fact,
                             cases[i].more);
}

TEST(all_errors_of_a_file_are_told_at_once)
{
        static const char text[] = "gpu001 slots=8\ngpu002 slots=8\ngpu003 slot=8\n"
                                   "gpu004 slots=8\ngpu005 slots=eight\n\n\n\ngpu002 slots=4\n";
        static const char want[] = "error[HN110]: unknown key `slot`\n"
                                   "  --> hosts.txt:3:8\n"
                                   "   |\n"
                                   " 3 | gpu003 slot=8\n"
                                   "   |        ^^^^ did you mean `slots`?\n"
                                   "\n"
                                   "error[HN111]: `slots` must be a number from 1 to 1024\n"
                                   "  --> hosts.txt:5:14\n"
                                   "   |\n"
                                   " 5 | gpu005 slots=eight\n"
                                   "   |              ^^^^^\n"
                                   "\n"
                                   "error[HN114]: gpu002 has two slot counts\n"
                                   "  --> hosts.txt:9:1\n"
                                   "   |\n"
                                   " 2 | gpu002 slots=8\n"
                                   "   | ------ first given here\n"
                                   " 9 | gpu002 slots=4\n"
                                   "   | ^^^^^^ and again here\n"
                                   "\n";
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *got = NULL;

        assert_int_equal(hostfile_parse(&h, "hosts.txt", text, strlen(text), &d), -EINVAL);
        got = diags_text(&d, false);
        assert_string_equal(got, want);
}

TEST(one_line_may_have_many_errors)
{
        static const char text[] = "-v port=99999 gpus=1,1 iface=`x` foo=bar";

        assert_fails(text, strlen(text), 5, "1:1", "a host name must not begin with `-`", NULL);
}

TEST(a_hundred_errors_are_enough)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(buf_finish) struct buf text = BUF_INIT;
        CLEANUP(free_textp) char *shown = NULL;

        for (int i = 0; i < 1000; i++)
                buf_printf(&text, "n%d x\n", i);
        assert_int_equal(hostfile_parse(&h, "h", (const char *)buf_data(&text), buf_len(&text), &d),
                         -EINVAL);
        assert_int_equal(d.n, 100);
        shown = diags_text(&d, false);
        assert_non_null(strstr(shown, "= note: 900 more errors in h\n"));
        assert_int_equal(diags_hidden(&d), 900);
}

TEST(a_binary_file_is_one_error)
{
        static const char binary[] = "\x7f"
                                     "ELF\2\1\1\0\0\0\0\0\0\0\0\n@@@\n???\n";

        assert_fails(binary, sizeof(binary) - 1, 1, "1:8",
                     "h is not a text file: it has a NUL byte", NULL);
        assert_fails("a\nb\0c", 5, 1, "2:2", "h is not a text file: it has a NUL byte", NULL);
}

TEST(places_of_hosts_are_kept)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;

        assert_int_equal(hostfile_parse(&h, "x", "\n  a\nb[1-2]\n", 12, &d), 0);
        assert_int_equal(h.n, 3);
        assert_int_equal(h.v[0].line, 2);
        assert_int_equal(h.v[0].col, 3);
        assert_int_equal(h.v[2].line, 3);
        assert_string_equal(h.v[2].file, "x");
}

TEST(files_and_lists_merge)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *got = NULL;

        assert_int_equal(hostfile_parse(&h, "one", "a\nb:2\n", 6, &d), 0);
        assert_int_equal(hostfile_parse(&h, "two", "a\nc\n", 4, &d), 0);
        assert_int_equal(hostlist_parse(&h, "c,d:4", &d), 0);
        got = described(&h);
        assert_string_equal(got, "a:2; b:2; c:2; d:4");
        free(got);

        assert_int_equal(hostfile_parse(&h, "three", "\nb:2\n", 5, &d), -EINVAL);
        got = diags_text(&d, false);
        assert_non_null(strstr(got, "error[HN114]: b has two slot counts\n  --> three:2:1\n"));
        assert_non_null(strstr(got, "= note: first given at one:2:1\n"));
}

TEST(lists_are_read)
{
        static const struct {
                const char *text, *hosts;
        } cases[] = {
                { "gpu7", "gpu7" },
                { "gpu[01-02]:8", "gpu01:8; gpu02:8" },
                { "alice@gpu7,gpu9", "alice@gpu7; gpu9" },
                { "gpu[1,3],n[5-6]:2", "gpu1; gpu3; n5:2; n6:2" },
                { "a, b ,c d", "a; b; c; d" },
                { " a ", "a" },
                { "a,a,b", "a:2; b" },
                { "[2001:db8::7]:8,[::1]", "2001:db8::7:8; ::1 local" },
                { "a:*,b:auto", "a:auto; b:auto" },
                { "localhost:2", "localhost:2 local" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                struct diags d = DIAGS_INIT;
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(hostlist_parse(&h, cases[i].text, &d), 0);
                got = described(&h);
                assert_string_equal(got, cases[i].hosts);
        }
}

TEST(wrong_lists_show_the_word)
{
        static const struct {
                const char *text, *shown;
        } cases[] = {
                { "", "error[HN112]: a host name is missing here\n"
                      "  --> -w, column 1\n   |\n   |\n   | ^\n" },
                { "a,,b", "error[HN112]: a host name is missing here\n"
                          "  --> -w, column 3\n   |\n   | a,,b\n   |   ^\n" },
                { "a,", "error[HN112]: a host name is missing here\n"
                        "  --> -w, column 3\n   |\n   | a,\n   |   ^\n" },
                { "a:9999", "error[HN111]: `slots` must be a number from 1 to 1024\n"
                            "  --> -w, column 3\n   |\n   | a:9999\n   |   ^^^^\n" },
                { "a:1,b,a:2", "error[HN114]: a has two slot counts\n"
                               "  --> -w, column 7\n   |\n   | a:1,b,a:2\n"
                               "   | --- first given here\n   |       ^^^ and again here\n" },
                { "a=8", "error[HN112]: a host name has letters, digits, `.`, `_` and `-` only\n"
                         "  --> -w, column 2\n   |\n   | a=8\n   |  ^\n   |\n"
                         "   = help: slots are given as host:8 here\n" },
                { "dir/hosts", "error[HN112]: a host name has letters, digits, `.`, `_` and `-` "
                               "only\n"
                               "  --> -w, column 4\n   |\n   | dir/hosts\n   |    ^\n   |\n"
                               "   = help: a file of hosts is given with -H\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(hostlist_parse(&h, cases[i].text, &d), -EINVAL);
                got = diags_text(&d, false);
                assert_string_equal(got, cases[i].shown);
                assert_int_equal(d.v[0].exit, 64);
        }
}

/* ---- loading ---- */

static void assert_load_fails(const char *path, int exit_code, const char *shown)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *got = NULL;

        assert_int_equal(hostfile_load(&h, path, &d), -EINVAL);
        got = diags_text(&d, false);
        if (!strstr(got, shown))
                fail_msg("no %s in:\n%s", shown, got);
        assert_int_equal(diags_first_error(&d)->exit, exit_code);
}

TEST(unreadable_files_exit_66)
{
        assert_load_fails("/nonexistent/hosts", 66, "there is no such file");
        assert_load_fails("/tmp", 66, "cannot read the hostfile /tmp: Is a directory");
        assert_load_fails("", 66, "there is no such file");
}

TEST(a_list_in_place_of_a_file_is_noticed)
{
        assert_load_fails("nosuchgpu[01-04]", 66, "= help: use -w nosuchgpu[01-04]\n");
        assert_load_fails("nosuch1:8,nosuch2:8", 66, "= help: use -w nosuch1:8,nosuch2:8\n");
        assert_load_fails("nosuch@nosuch", 66, "= help: use -w nosuch@nosuch\n");
}

TEST(a_file_that_is_too_large_is_wrong)
{
        assert_load_fails("/dev/zero", 65, "/dev/zero is larger than 16 MiB");
}

TEST(standard_input_is_a_hostfile)
{
        int saved = dup(STDIN_FILENO), ends[2];
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "a slots=2\nb x\n", 14), 14);
        close(ends[1]);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        assert_int_equal(hostfile_load(&h, "-", &d), -EINVAL);
        dup2(saved, STDIN_FILENO);
        close(saved);

        assert_int_equal(h.n, 1);
        assert_int_equal(h.v[0].slots, 2);
        assert_int_equal(d.n, 1);
        assert_string_equal(h.v[0].file, "<stdin>");
}

/* ---- hostfile.example ---- */

static char *example_path(char *path, size_t size)
{
        const char *root = getenv("SOURCE_ROOT");

        snprintf(path, size, "%s/hostfile.example", root ? root : ".");
        return path;
}

TEST(the_example_is_four_processes_here)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        char path[4096], *got;

        assert_int_equal(hostfile_load(&h, example_path(path, sizeof(path)), &d), 0);
        got = described(&h);
        assert_string_equal(got, "localhost:4 local");
        free(got);
}

TEST(every_form_in_the_example_is_read)
{
        char path[4096], *text, *line, *rest;
        size_t len, forms = 0;

        assert_int_equal(fd_read_file(example_path(path, sizeof(path)), 65536, &text, &len), 0);
        for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                struct hosts h = HOSTS_INIT;
                struct diags d = DIAGS_INIT;

                if (strncmp(line, "#:", 2))
                        continue;
                if (hostfile_parse(&h, path, line + 2, strlen(line + 2), &d) < 0)
                        fail_msg("%s", diags_text(&d, false));
                assert_true(h.n > 0);
                hosts_finish(&h);
                forms++;
        }
        assert_true(forms >= 20);
        free(text);
}

/* ---- hosts ---- */

TEST(hosts_are_found_in_any_case)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;

        assert_null(hosts_find(&h, "a"));
        assert_int_equal(hostlist_parse(&h, "GPU[1-1000]", &d), 0);
        assert_ptr_equal(hosts_find(&h, "gpu1000"), &h.v[999]);
        assert_null(hosts_find(&h, "gpu1001"));
        hosts_add(&h)->name = strdup("late");
        assert_ptr_equal(hosts_find(&h, "LATE"), &h.v[1000]);
}

TEST(hosts_fold_into_ranges)
{
        static const struct {
                const char *list, *folded;
        } cases[] = {
                { "gpu1", "gpu1" },
                { "gpu[001-064,070]", "gpu[001-064,070]" },
                { "gpu[098-102]", "gpu[098-102]" },
                { "n[8-12]", "n[8-12]" },
                { "n[1,3,5]", "n[1,3,5]" },
                { "n[3,1,2]", "n[1-3]" },
                { "gpu[009-010,031],gpu-064", "gpu[009-010,031],gpu-064" },
                { "a,b,c", "a,b,c" },
                { "n[1-2].ib,n[1-2]", "n[1-2].ib,n[1-2]" },
                { "r[1-2]n[1-2]", "r1n[1-2],r2n[1-2]" },
                { "10.0.0.[1-3]", "10.0.0.[1-3]" },
                { "[2001:db8::7],a", "[2001:db8::7],a" },
                { "n1,n01,n2", "n[1-2],n01" },
                { "x99999999999", "x99999999999" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                struct diags d = DIAGS_INIT;
                size_t index[128];
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(hostlist_parse(&h, cases[i].list, &d), 0);
                for (size_t k = 0; k < h.n; k++)
                        index[k] = k;
                got = hosts_fold(&h, index, h.n);
                assert_string_equal(got, cases[i].folded);
        }
}

TEST(hosts_are_shown_with_their_lines)
{
        static const struct {
                const char *file; /* NULL = a list */
                const char *text, *shown;
        } cases[] = {
                { "h", "n1\nn2\nn3\n", "n[1-3]  (h:1-3)" },
                { "h", "n[1-2]\n\nn4\nn9\n", "n[1-2,4,9]  (h:1,3-4)" },
                { "$SLURM_JOB_NODELIST", "n1\nn2\n", "n[1-2]  ($SLURM_JOB_NODELIST)" },
                { NULL, "n[1-4]", "n[1-4]" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *text = cases[i].text;
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                struct diags d = DIAGS_INIT;
                size_t index[4] = { 0, 1, 2, 3 };
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(cases[i].file
                                         ? hostfile_parse(&h, cases[i].file, text, strlen(text), &d)
                                         : hostlist_parse(&h, text, &d),
                                 0);
                got = hosts_locate(&h, index, h.n);
                assert_string_equal(got, cases[i].shown);
        }
}
