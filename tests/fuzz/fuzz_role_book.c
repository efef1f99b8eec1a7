/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes as an argument and as a value of a role. Errors come with a message each, ports
 * that the first pass has found are all that the second one needs, and what has neither a brace nor
 * a backslash stays as it is.
 */
#include "fuzz.h"

#include <string.h>

#include "base/error_number.h"
#include "head/model/role_book.h"
#include "head/term/diag.h"
#include "wire/port_name.h"

enum { ROLES = 3, INSTANCES = 3 };

static struct role_book *make_book(void)
{
        static const char *const names[ROLES] = { "a", "infer", "r-1" };
        struct role_book *b = role_book_create();

        for (int r = 0; r < ROLES; r++)
                require(role_book_add(b, names[r]) == r);
        return b;
}

/* Adds the instances, with the ports that texts have named. */
static void fill_book(struct role_book *b)
{
        for (int r = 0; r < ROLES; r++) {
                const struct strv *ports = role_book_ports(b, r);

                require(ports->n <= PORT_NAMES_MAX);
                for (int i = 0; i < INSTANCES; i++) {
                        role_book_add_instance(b, r, i ? "h1" : "h0", i ? "fd00::1" : NULL);
                        for (size_t k = 0; k < ports->n; k++) {
                                require(port_name_is_valid(ports->v[k], strlen(ports->v[k])));
                                role_book_set_port(b, r, i, ports->v[k], (uint32_t)(k + i));
                        }
                }
        }
}

static void expand(const struct role_book *b, const struct role_text *t, int instance, bool valid)
{
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        bool plain = !strpbrk(t->text, "{\\"), split;
        CLEANUP(free_textp) char *text = role_book_expand_text(b, t, instance, &d);

        require(!text == (diags_errors(&d) > 0));
        require(text || !valid);
        require(!plain || !strcmp(text, t->text));
        diags_finish(&d);
        split = role_book_expand(b, t, instance, &words, &d) == 0;
        require(split == !diags_errors(&d));
        require(split || !valid);
        require(split || !words.n);
        require(!plain || (words.n == 1 && !strcmp(words.v[0], t->text)));
}

static void read_text(const char *text, int role)
{
        struct role_book *b = make_book();
        struct role_text t = { .text = text, .place = "argument 1", .role = role };
        struct diags d = DIAGS_INIT;
        bool valid = role_book_scan(b, &t, &d) == 0;

        require(valid == !diags_errors(&d));
        for (size_t i = 0; i < d.n; i++)
                require(d.v[i].id == HN_BAD_PORT_NAME || d.v[i].id == HN_ROLE_REFERENCE);
        diags_finish(&d);
        fill_book(b);
        for (int i = -1; i < INSTANCES; i++)
                expand(b, &t, i, valid);
        role_book_destroy(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = strndup((const char *)data, size);

        read_text(text, 1);
        read_text(text, -1);
        free(text);
        return 0;
}
