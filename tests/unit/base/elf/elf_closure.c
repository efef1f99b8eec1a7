/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elf/elf_closure.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>

#include "lib/unit.h"

struct loaded {
        const struct elf_closure *closure;
        size_t n, found;
};

static bool is_same_file(const char *a, const char *b)
{
        char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
        bool same = real_a && real_b && !strcmp(real_a, real_b);

        free(real_a);
        free(real_b);
        return same;
}

static int on_loaded_object(struct dl_phdr_info *info, size_t size UNUSED, void *ctx)
{
        const char *slash = strrchr(info->dlpi_name, '/');
        const char *name = slash ? slash + 1 : "";
        struct loaded *l = ctx;

        /* Not the program, the kernel's pages and glibc. */
        if (!*name || !strncmp(name, "libc.", 5) || !strncmp(name, "ld-", 3) ||
            !strncmp(name, "libm.", 5) || !strncmp(name, "libdl.", 6) ||
            !strncmp(name, "librt.", 6) || !strncmp(name, "libresolv.", 10) ||
            !strncmp(name, "libpthread.", 11))
                return 0;
        l->n++;
        for (size_t i = 0; i < l->closure->n; i++)
                if (l->closure->v[i].path && is_same_file(l->closure->v[i].path, info->dlpi_name))
                        l->found++;
        return 0;
}

/* The loader itself tells which libraries this process has. */
TEST(the_loader_agrees)
{
        struct elf_closure c;
        struct loaded l = { .closure = &c };

        assert_int_equal(elf_closure_read(&c, "/proc/self/exe", getenv("LD_LIBRARY_PATH")), 0);
        dl_iterate_phdr(on_loaded_object, &l);
        assert_true(l.n > 3); /* cmocka, and those of the head */
        assert_int_equal(l.found, l.n);
        assert_int_equal(c.n, l.n);
        elf_closure_finish(&c);
        assert_int_equal(c.n, 0);
}

TEST(no_program_has_no_libraries)
{
        CLEANUP(elf_closure_finish) struct elf_closure c;

        assert_int_equal(elf_closure_read(&c, "/no/such/file", NULL), -ENOENT);
        assert_int_equal(c.n, 0);
        elf_closure_finish(&c);
        assert_int_equal(elf_closure_read(&c, "/etc/passwd", ":::"), -ENOEXEC);
        assert_int_equal(c.n, 0);
}
