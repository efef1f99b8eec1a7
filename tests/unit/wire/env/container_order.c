/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/env/container_order.h"

#include "lib/unit.h"

TEST(values_of_the_option)
{
        static const struct {
                const char *value;
                enum container_kind kind;
                const char *name; /* NULL = an error, with */
                const char *why;
        } cases[] = {
                { "docker:nvcr.io/nvidia/pytorch:24.01-py3", CONTAINER_DOCKER,
                  "nvcr.io/nvidia/pytorch:24.01-py3", NULL },
                { "podman:localhost/a", CONTAINER_PODMAN, "localhost/a", NULL },
                { "apptainer:./a b.sif", CONTAINER_APPTAINER, "./a b.sif", NULL },
                { "charliecloud:/var/tmp/img", CONTAINER_CHARLIECLOUD, "/var/tmp/img", NULL },
                { "exec:box", CONTAINER_EXEC, "box", NULL },
                { "enroot:x", CONTAINER_NONE, NULL, "`enroot` is no kind of container" },
                { "dock:x", CONTAINER_NONE, NULL, "`dock` is no kind of container" },
                { "", CONTAINER_NONE, NULL, "`` is no kind of container" },
                { "docker", CONTAINER_NONE, NULL, "the image is missing" },
                { "docker:", CONTAINER_NONE, NULL, "the image is missing" },
                { "exec:", CONTAINER_NONE, NULL, "the name of the container is missing" },
                { "docker:-v/:/", CONTAINER_NONE, NULL, "the name `-v/:/` begins with a dash" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(container_order_finish) struct container_order o = { 0 };
                struct error err = { 0 };
                int r = container_order_parse(&o, cases[i].value, &err);

                assert_int_equal(r == 0, cases[i].name != NULL);
                if (cases[i].name) {
                        assert_int_equal(o.kind, cases[i].kind);
                        assert_string_equal(o.name, cases[i].name);
                } else {
                        assert_string_equal(err.text, cases[i].why);
                }
        }
}

/* Any byte survives, and what no shell may touch is not there. */
TEST(there_and_back)
{
        static const char *const texts[] = {
                "", "-", "--", "/a", "%2d", "it's \"$HOME\" `x` \\!\n\t", "\x01\x7f\xff%", "a b  c"
        };
        struct container_order o = { .kind = CONTAINER_DOCKER, .name = xstrdup("a:b 'c'") }, back;
        struct error err;
        char *text;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                free(o.dir);
                o.dir = xstrdup(texts[i]);
                strv_push(&o.args, texts[i]);
                text = container_order_encode(&o);
                assert_null(strpbrk(text, "'\"\\`$!\n\t;&|<>()*?[]{}~#"));
                back = (struct container_order){ 0 };
                assert_int_equal(container_order_decode(&back, text, &err), 0);
                assert_int_equal(back.kind, o.kind);
                assert_string_equal(back.name, o.name);
                assert_string_equal(back.dir, o.dir);
                assert_int_equal(back.args.n, o.args.n);
                for (size_t k = 0; k < o.args.n; k++)
                        assert_string_equal(back.args.v[k], o.args.v[k]);
                container_order_finish(&back);
                free(text);
        }
        container_order_finish(&o);
}

TEST(damaged_orders)
{
        static const char *const texts[] = { "",
                                             "docker:a",
                                             "docker:a %",
                                             "docker:a %2",
                                             "docker:a %g0",
                                             "docker:a %0g",
                                             "docker: -",
                                             "x:a -",
                                             "docker:a - %4" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                CLEANUP(container_order_finish) struct container_order o = { 0 };
                struct error err = { 0 };

                assert_true(container_order_decode(&o, texts[i], &err) < 0);
                assert_true(*err.text);
        }
}
