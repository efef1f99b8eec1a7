/* SPDX-License-Identifier: Apache-2.0 */
/* Each form of a reference, texts that stay as they are, what is to be reserved, and errors. */
#include "head/model/role_book.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/memory.h"
#include "lib/diag_text.h"
#include "lib/unit.h"
#include "wire/port_name.h"

enum { TRAINER, INFER, ROUTER, EMPTY };

/* Four roles: trainer on gpu1, gpu1 and gpu2, infer with IPv6 addresses, router, and one without
 * instances. */
static int set_up(void **state)
{
        struct role_book *b = role_book_create();

        role_book_add(b, "trainer");
        role_book_add(b, "infer");
        role_book_add(b, "router-1");
        role_book_add(b, "empty");
        assert_int_equal(role_book_add_instance(b, TRAINER, "gpu1", "10.0.0.1"), 0);
        assert_int_equal(role_book_add_instance(b, TRAINER, "gpu1", "10.0.0.1"), 1);
        assert_int_equal(role_book_add_instance(b, TRAINER, "gpu2", "10.0.0.2"), 2);
        role_book_add_instance(b, INFER, "gpu3", "fd00::3");
        role_book_add_instance(b, INFER, "gpu4", "fd00::4");
        role_book_add_instance(b, ROUTER, "login", NULL);
        for (int i = 0; i < 3; i++)
                role_book_set_port(b, TRAINER, i, "rdzv", (uint32_t)(5000 + i));
        role_book_set_port(b, INFER, 0, "http", 8000);
        role_book_set_port(b, INFER, 1, "http", 1);
        role_book_set_port(b, INFER, 1, "http", 8001);
        role_book_set_port(b, ROUTER, 0, "http", 0);
        *state = b;
        return 0;
}

static int tear_down(void **state)
{
        role_book_destroy(*state);
        return 0;
}

static struct role_text make_text(const char *text, int role)
{
        return (struct role_text){ .text = text, .place = "argument 1", .role = role };
}

/* Returns the words of an argument, each in front of a bar; malloc'ed. */
static char *expand(const struct role_book *b, const char *text, int role, int instance)
{
        struct role_text t = make_text(text, role);
        struct strv words = STRV_INIT;
        struct diags d = DIAGS_INIT;
        struct buf out = BUF_INIT;

        assert_int_equal(role_book_expand(b, &t, instance, &words, &d), 0);
        assert_int_equal(d.n, 0);
        for (size_t i = 0; i < words.n; i++)
                buf_printf(&out, "%s|", words.v[i]);
        strv_finish(&words);
        return buf_len(&out) ? buf_steal(&out) : strdup("");
}

static void assert_words(const struct role_book *b, const char *text, const char *words)
{
        CLEANUP(free_textp) char *got = expand(b, text, TRAINER, 1);

        assert_string_equal(got, words);
}

#define TEST_BOOK(name) TEST_OF(set_up, tear_down, struct role_book *b, name)

TEST_BOOK(references_give_addresses_and_ports)
{
        assert_words(b, "{trainer.addr}", "10.0.0.1|");
        assert_words(b, "{trainer.addr}:{trainer.port:rdzv}", "10.0.0.1:5000|");
        assert_words(b, "--s=[{trainer.addr}]", "--s=[10.0.0.1]|");
        assert_words(b, "{trainer.hosts}", "gpu1,gpu2|");
        assert_words(b, "{infer.hosts}/{router-1.hosts}", "gpu3,gpu4/login|");
        assert_words(b, "{infer.port:http}{infer.port:http}", "80008000|");
        assert_words(b, "{router-1.addr}", "login|");
        /* of the instance that reads */
        assert_words(b, "{port:rdzv}", "5001|");
        assert_words(b, "-p{port:rdzv},{infer.port:http}", "-p5001,8000|");
}

TEST_BOOK(an_ipv6_address_gets_brackets_in_front_of_a_port)
{
        assert_words(b, "{infer.addr}", "fd00::3|");
        assert_words(b, "{infer.addr}/x", "fd00::3/x|");
        assert_words(b, "{infer.addr}:{infer.port:http}", "[fd00::3]:8000|");
        assert_words(b, "{infer.urls:http}", "http://[fd00::3]:8000,http://[fd00::4]:8001|");
        assert_words(b, "{infer.each:{addr}:{port:http}}", "[fd00::3]:8000|[fd00::4]:8001|");
        assert_words(b, "{infer.each:{addr}}", "fd00::3|fd00::4|");
}

TEST_BOOK(each_gives_words_as_a_whole_argument)
{
        assert_words(b, "{trainer.each:--w {host}:{port:rdzv}}",
                     "--w|gpu1:5000|--w|gpu1:5001|--w|gpu2:5002|");
        assert_words(b, "{trainer.each:  {index}\t{addr}  }", "0|10.0.0.1|1|10.0.0.1|2|10.0.0.2|");
        assert_words(b, "{trainer.each:}", "");
        assert_words(b, "{trainer.each: }", "");
        /* joined with blanks */
        assert_words(b, "x={infer.each:{index}={host} }", "x=0=gpu3  1=gpu4 |");
        assert_words(b, "{infer.each:{host}},", "gpu3 gpu4,|");
        assert_words(b, "{infer.each:{host}}{infer.each:{host}}", "gpu3 gpu4gpu3 gpu4|");
        /* other roles, braces, escapes inside */
        assert_words(b, "{infer.each:{host}@{trainer.addr}}", "gpu3@10.0.0.1|gpu4@10.0.0.1|");
        assert_words(b, "{infer.each:{\"i\":{index}}}", "{\"i\":0}|{\"i\":1}|");
        assert_words(b, "{infer.each:\\{index}{index}{rank}}", "{index}0{rank}|{index}1{rank}|");
        /* no words are split out of what a reference gives */
        assert_words(b, "{router-1.each:--p {port:http}}", "--p|(free port there)|");
}

/* Expects this value for a text of a role; -1 is none. */
static void assert_value(const struct role_book *b, const char *text, int role, const char *value)
{
        struct role_text t = make_text(text, role);
        struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *got = role_book_expand_text(b, &t, 0, &d);

        assert_string_equal(got, value);
        assert_int_equal(d.n, 0);
}

TEST_BOOK(a_value_is_one_text)
{
        assert_value(b, "{infer.each:http://{host}:{port:http}/v1}", TRAINER,
                     "http://gpu3:8000/v1 http://gpu4:8001/v1");
        assert_value(b, "", TRAINER, "");
        assert_words(b, "", "|");
        assert_value(b, "{trainer.addr} {infer.urls:http}", -1,
                     "10.0.0.1 http://[fd00::3]:8000,http://[fd00::4]:8001");
}

TEST_BOOK(other_braces_stay)
{
        static const char *const texts[] = {
                "{}",
                "{",
                "}{",
                "{rank} {host} {addr} {index} {master_addr}",
                "{\"trainer\": {\"addr\": 1}}",
                "{trainer}",
                "{trainer.}",
                "{trainer. addr}",
                "{trainer.addr",
                "{trainer.addr x}",
                "{ trainer.addr}",
                "{.addr}",
                "{trainer .addr}",
                "{cfg.lr} {self.name:>10}",
                "${trainer.addr} ${trainer.lr} ${unknown.addr}",
                "{port}",
                "{port:rdzv",
                "\\n \\{x} \\\\",
                "{\"a.addr\": 2}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct role_text t = make_text(texts[i], TRAINER);
                struct diags d = DIAGS_INIT;
                CLEANUP(free_textp) char *got = expand(b, texts[i], TRAINER, 0);

                assert_int_equal(role_book_scan(b, &t, &d), 0);
                got[strlen(got) - 1] = '\0';
                assert_string_equal(got, texts[i]);
        }
        assert_int_equal(role_book_ports(b, TRAINER)->n, 0);
}

TEST_BOOK(a_backslash_keeps_a_reference)
{
        assert_words(b, "\\{trainer.addr}", "{trainer.addr}|");
        assert_words(b, "\\\\{trainer.addr}", "\\{trainer.addr}|");
        assert_words(b, "\\{infer.each:{addr} {infer.addr}}", "{infer.each:{addr} {infer.addr}}|");
        assert_words(b, "\\{port:rdzv}", "{port:rdzv}|");
        /* also one that would be an error */
        assert_words(b, "\\{trainer.adr} \\{nothing.addr}", "{trainer.adr} {nothing.addr}|");
        assert_words(b, "\\{infer.each:{infer.addr}", "{infer.each:fd00::3|");
}

TEST_BOOK(ones_own_port_may_be_left_to_the_agent)
{
        CLEANUP(free_textp)
        char *got = expand(b, "{port:rdzv} \\{port:rdzv} {trainer.port:rdzv}", TRAINER, -1);

        assert_string_equal(got, "{port:rdzv} \\{port:rdzv} 5000|");
}

TEST_BOOK(the_first_pass_finds_ports_and_roles)
{
        struct role_text t = make_text("--orch {trainer.addr}:{trainer.port:rdzv} {port:http} "
                                       "{infer.each:{port:metrics}} {infer.urls:http} \\{port:no} "
                                       "\\{infer.port:no} ${infer.port:no} {router-1.hosts}",
                                       INFER);
        struct diags d = DIAGS_INIT;

        assert_int_equal(role_book_scan(b, &t, &d), 0);
        assert_int_equal(role_book_scan(b, &t, &d), 0);
        assert_int_equal(d.n, 0);
        assert_int_equal(role_book_ports(b, TRAINER)->n, 1);
        assert_string_equal(role_book_ports(b, TRAINER)->v[0], "rdzv");
        assert_int_equal(role_book_ports(b, INFER)->n, 2);
        assert_string_equal(role_book_ports(b, INFER)->v[0], "http");
        assert_string_equal(role_book_ports(b, INFER)->v[1], "metrics");
        assert_int_equal(role_book_ports(b, ROUTER)->n, 0);
        /* itself is no other role */
        assert_int_equal(role_book_referred(b, INFER)->n, 2);
        assert_int_equal(role_book_referred(b, INFER)->v[0], TRAINER);
        assert_int_equal(role_book_referred(b, INFER)->v[1], ROUTER);
        assert_int_equal(role_book_referred(b, TRAINER)->n, 0);

        t = make_text("{infer.port:extra}", -1); /* of no role */
        assert_int_equal(role_book_scan(b, &t, &d), 0);
        assert_int_equal(role_book_ports(b, INFER)->n, 3);
}

TEST_BOOK(ports_are_limited)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        struct role_text t = make_text("a {infer.port:last}", TRAINER);
        CLEANUP(free_textp) char *text = NULL;
        char name[16];

        for (int i = 0; i < PORT_NAMES_MAX; i++) {
                snprintf(name, sizeof(name), "p%d", i);
                assert_int_equal(role_book_need_port(b, INFER, name), 0);
        }
        assert_int_equal(role_book_need_port(b, INFER, "p0"), 0);
        assert_int_equal(role_book_need_port(b, INFER, "last"), -E2BIG);
        assert_int_equal(role_book_need_port(b, INFER, "8000"), -EINVAL);
        assert_int_equal(role_book_need_port(b, TRAINER, "last"), 0);
        assert_int_equal(role_book_scan(b, &t, &d), -EINVAL);
        text = diags_text(&d, false);
        assert_non_null(strstr(
                text, "error[HN411]: `last` is one port more than role infer may have: 64\n"));
}

/* Checks the messages of the first pass, or of the second where that finds none. */
static void assert_error(struct role_book *b, const char *text, int role, const char *messages)
{
        struct role_text t = make_text(text, role);
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT, again = DIAGS_INIT;
        bool first = role_book_scan(b, &t, &d) < 0;
        CLEANUP(free_textp) char *got = NULL;

        assert_int_equal(first, d.n > 0);
        assert_int_equal(role_book_expand(b, &t, role < 0 ? -1 : 0, &words, first ? &again : &d),
                         first && role < 0 && again.n == 0 ? 0 : -EINVAL);
        assert_int_equal(words.n && again.n, 0);
        got = diags_text(&d, false);
        assert_string_equal(got, messages);
}

TEST_BOOK(errors_have_a_place_and_a_caret)
{
        assert_error(b, "--s {infr.addr}:1", TRAINER,
                     "error[HN414]: there is no role `infr`\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | --s {infr.addr}:1\n"
                     "   |      ^^^^ did you mean `infer`?\n"
                     "   |\n"
                     "   = note: the roles of the job are trainer, infer, router-1, empty\n"
                     "   = help: a backslash in front keeps the text as it is: \\{infr...}\n");
        assert_error(
                b, "{trainer.adr}", TRAINER,
                "error[HN414]: a role has no `adr`\n"
                "  --> argument 1\n"
                "   |\n"
                "   | {trainer.adr}\n"
                "   |          ^^^ did you mean `addr`?\n"
                "   |\n"
                "   = help: the forms are {ROLE.addr}, {ROLE.hosts}, {ROLE.port:NAME}, "
                "{ROLE.urls:NAME} and {ROLE.each:TEXT}; a backslash in front keeps the text as it "
                "is\n");
        assert_error(b, "{x} {infer.each:--w {addr}:{port:http}", TRAINER,
                     "error[HN414]: a brace has no end\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | {x} {infer.each:--w {addr}:{port:http}\n"
                     "   |     ^^^^^^^^^^^ not closed\n"
                     "   |\n"
                     "   = help: a backslash in front keeps the text as it is: \\{...\n");
        assert_error(b, "{infer.each:{trainer.each:{addr}}}", TRAINER,
                     "error[HN414]: {ROLE.each:TEXT} cannot stand inside of another one\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | {infer.each:{trainer.each:{addr}}}\n"
                     "   |                      ^^^^\n");
        assert_error(b, "{infer.port:Http}", TRAINER,
                     "error[HN411]: `Http` is no valid name of a port\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | {infer.port:Http}\n"
                     "   |             ^^^^\n"
                     "   |\n"
                     "   = help: a name is a lower-case letter and up to 31 lower-case letters, "
                     "digits and _; a backslash in front keeps the text as it is\n");
        assert_error(b, "{port:http}", -1,
                     "error[HN411]: {port:http} stands outside of a role\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | {port:http}\n"
                     "   |       ^^^^ whose port?\n"
                     "   |\n"
                     "   = help: {ROLE.port:http} is the port of the first instance of ROLE\n");
}

TEST_BOOK(errors_of_the_second_pass)
{
        assert_error(b, "-p {infer.each:{port:grpc}}", TRAINER,
                     "error[HN411]: role infer has no port `grpc` on gpu3\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | -p {infer.each:{port:grpc}}\n"
                     "   |                      ^^^^ not reserved\n");
        assert_error(b, "{infer.urls:grpc}", TRAINER,
                     "error[HN411]: role infer has no port `grpc` on gpu3\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | {infer.urls:grpc}\n"
                     "   |             ^^^^ not reserved\n");
        assert_error(b, "{port:grpc}", TRAINER,
                     "error[HN411]: role trainer has no port `grpc` on gpu1\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | {port:grpc}\n"
                     "   |       ^^^^ not reserved\n");
        assert_error(b, "{empty.each:x}", TRAINER,
                     "error[HN414]: role empty has no instance\n"
                     "  --> argument 1\n"
                     "   |\n"
                     "   | {empty.each:x}\n"
                     "   | ^^^^^^^^^^^^^^\n");
}

TEST_BOOK(forms_with_and_without_a_colon_are_told_apart)
{
        static const struct {
                const char *text, *label;
        } cases[] = {
                { "{infer.port}", "   |        ^^^^ a colon and a name follow\n" },
                { "{infer.each}", "   |        ^^^^ a colon and a name follow\n" },
                { "{infer.addr:x}", "   |        ^^^^ the brace ends behind it\n" },
                { "{infer.nothing:x}", "   |        ^^^^^^^ no such word\n" },
                { "{xyz.hosts}", "   |  ^^^ no such role\n" },
                { "{xyz.each:{addr}}", "   |  ^^^ no such role\n" },
                { "{infer.port:http", "   | ^^^^^^^^^^^ not closed\n" },
                { "{infer.port:}", "   |             ^\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct role_text t = make_text(cases[i].text, TRAINER);
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(role_book_scan(b, &t, &d), -EINVAL);
                assert_int_equal(d.n, 1);
                got = diags_text(&d, false);
                assert_non_null(strstr(got, cases[i].label));
        }
}

TEST_BOOK(all_errors_of_a_text_are_told)
{
        struct role_text t = make_text("{a.addr} {b.addr} {infer.x} {infer.port:9}", TRAINER);
        struct diags d = DIAGS_INIT;

        assert_int_equal(role_book_scan(b, &t, &d), -EINVAL);
        assert_int_equal(d.n, 4);
        diags_finish(&d);
        assert_int_equal(role_book_scan(b, &t, NULL), -EINVAL);
}

TEST_BOOK(a_caret_stands_in_the_line_of_the_file)
{
        struct role_text t = { .text = "{infr.addr}",
                               .place = "rl.ini:12",
                               .source = "program = x -s {infr.addr}",
                               .at = 15,
                               .line = 12,
                               .role = TRAINER };
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *got = NULL;

        assert_int_equal(role_book_scan(b, &t, &d), -EINVAL);
        got = diags_text(&d, false);
        assert_non_null(strstr(got, "  --> rl.ini:12\n"
                                    "    |\n"
                                    " 12 | program = x -s {infr.addr}\n"
                                    "    |                 ^^^^ did you mean `infer`?\n"));
}

TEST_BOOK(roles_are_found_by_their_whole_name)
{
        assert_int_equal(role_book_find(b, "infer"), INFER);
        assert_int_equal(role_book_find(b, "router-1"), ROUTER);
        assert_int_equal(role_book_find(b, "infe"), -1);
        assert_int_equal(role_book_find(b, "inferx"), -1);
        assert_int_equal(role_book_find(b, ""), -1);
}

TEST_BOOK(the_book_as_json)
{
        json_t *j = role_book_json(b);
        CLEANUP(free_textp) char *text = json_dumps(j, JSON_COMPACT);

        assert_string_equal(
                text,
                "{\"trainer\":{\"instances\":["
                "{\"index\":0,\"host\":\"gpu1\",\"addr\":\"10.0.0.1\",\"ports\":{\"rdzv\":5000}},"
                "{\"index\":1,\"host\":\"gpu1\",\"addr\":\"10.0.0.1\",\"ports\":{\"rdzv\":5001}},"
                "{\"index\":2,\"host\":\"gpu2\",\"addr\":\"10.0.0.2\",\"ports\":{\"rdzv\":5002}}]},"
                "\"infer\":{\"instances\":["
                "{\"index\":0,\"host\":\"gpu3\",\"addr\":\"fd00::3\",\"ports\":{\"http\":8000}},"
                "{\"index\":1,\"host\":\"gpu4\",\"addr\":\"fd00::4\",\"ports\":{\"http\":8001}}]},"
                "\"router-1\":{\"instances\":["
                "{\"index\":0,\"host\":\"login\",\"addr\":\"login\",\"ports\":{\"http\":0}}]},"
                "\"empty\":{\"instances\":[]}}");
        json_decref(j);
}

TEST(a_book_may_be_empty)
{
        struct role_book *b = role_book_create();
        json_t *j = role_book_json(b);

        assert_int_equal(json_object_size(j), 0);
        json_decref(j);
        role_book_destroy(b);
        role_book_destroy(NULL);
}
