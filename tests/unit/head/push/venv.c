/* SPDX-License-Identifier: Apache-2.0 */
#include "head/push/venv.h"

#include <sodium/crypto_hash_sha256.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/fd.h"
#include "head/push/hash_memory.h"
#include "lib/files.h"
#include "lib/unit.h"

static char *top, *site; /* v/lib/pythonX.Y/site-packages */

static char *in(const char *name)
{
        return xasprintf("%s/%s", top, name);
}

static void put(const char *name, const char *text)
{
        CLEANUP(free_textp) char *path = in(name);

        write_file(path, text);
}

/* A virtual environment without pip, as `python3 -m venv` makes it, in a folder of this name. */
static int make_venv(const char *name)
{
        CLEANUP(free_textp)
        char *made = xasprintf("%s/%s.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", name);
        CLEANUP(free_textp) char *command = NULL;
        FILE *p;
        char line[256] = "";

        umask(022);
        assert_non_null(mkdtemp(made));
        top = realpath(made, NULL);
        command = xasprintf("python3 -m venv --without-pip '%s/v' && cd '%s/v' && echo "
                            "lib/python*/site-packages",
                            top, top);
        p = popen(command, "r");
        assert_non_null(p);
        assert_non_null(fgets(line, sizeof(line), p));
        assert_int_equal(pclose(p), 0);
        line[strcspn(line, "\n")] = '\0';
        site = xasprintf("v/%s", line);
        return 0;
}

static int setup(void **state UNUSED)
{
        return make_venv("hnvenv");
}

static int setup_with_blank(void **state UNUSED)
{
        return make_venv("hn venv");
}

static int teardown(void **state UNUSED)
{
        int r = remove_tree(top);

        free(top);
        free(site);
        return r;
}

static uint32_t find_entry(const struct manifest *p, const char *place)
{
        for (uint32_t i = 0; i < p->manifest.n; i++)
                if (!strcmp(p->manifest.v[i].path, place))
                        return i;
        fail_msg("%s is not in the manifest", place);
        return 0;
}

/* Returns what is sent for a file, malloc'ed. */
static char *sent(struct manifest *p, const char *place)
{
        uint32_t i = find_entry(p, place);
        size_t n = (size_t)p->manifest.v[i].size;
        char *text = xcalloc(1, n + 1);
        unsigned char sha[PUSH_SHA];
        struct error err;

        assert_int_equal(manifest_read(p, i, 0, text, n, &err), 0);
        crypto_hash_sha256(sha, (unsigned char *)text, n);
        assert_memory_equal(sha, p->manifest.v[i].sha, PUSH_SHA);
        assert_null(strstr(text, top)); /* the place of the environment is not in it */
        return text;
}

static void is_sent(struct manifest *p, const char *place, const char *want)
{
        CLEANUP(free_textp) char *text = sent(p, place);

        assert_string_equal(text, want);
}

static void no_tick(void *ctx UNUSED, uint64_t bytes UNUSED)
{
}

static int pack(struct manifest *p, struct diags *d, struct hash_memory *memory)
{
        const struct manifest_watch watch = { .tick = no_tick, .memory = memory };

        return venv_pack(p, "v", top, memory ? &watch : NULL, d);
}

/* The forms of pip and uv, and of bin/activate. */
TEST_WITH(setup_with_blank, teardown, the_path_may_have_blanks)
{
        static const char form[] =
                "#!/bin/sh\n'''exec' %c%s/v/bin/python3%c \"$0\" \"$@\"\n' '''\n1\n";
        static const char moved[] =
                "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' "
                "\"$0\" \"$@\"\n' '''\n1\n";
        CLEANUP(free_textp) char *pip = xasprintf(form, '"', top, '"');
        CLEANUP(free_textp) char *uv = xasprintf(form, '\'', top, '\'');
        CLEANUP(free_textp) char *activate = NULL;
        struct manifest p = MANIFEST_INIT;
        struct diags d = DIAGS_INIT;

        put("v/bin/pip", pip);
        put("v/bin/uv", uv);
        assert_int_equal(pack(&p, &d, NULL), 0);
        is_sent(&p, "bin/pip", moved);
        is_sent(&p, "bin/uv", moved);
        activate = sent(&p, "bin/activate"); /* without the path */
        assert_int_equal(d.n, 0);
        manifest_finish(&p);
        diags_finish(&d);
}

TEST_WITH(setup, teardown, scripts_and_paths_do_not_depend_on_the_place)
{
        CLEANUP(free_textp) char *script = xasprintf("#!%s/v/bin/python3 -I\nprint(1)\n", top);
        CLEANUP(free_textp) char *own = xasprintf("%s/own.pth", site);
        CLEANUP(free_textp) char *paths = xasprintf("%s/v/src/pkg\nimport os\n/else/where\n", top);
        CLEANUP(free_textp) char *link = xasprintf("%s/v/share", top), *at = in("v/bin/share");
        CLEANUP(free_textp) char *config = NULL, *activate = NULL;
        struct manifest p = MANIFEST_INIT;
        struct diags d = DIAGS_INIT;

        put("v/bin/tool", script);
        put("v/bin/other", "#!/bin/sh\nexit 0\n");
        put(own, paths);
        assert_int_equal(symlink(link, at), 0);
        assert_int_equal(pack(&p, &d, NULL), 0);
        is_sent(&p, "bin/tool",
                "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' -I "
                "\"$0\" \"$@\"\n' '''\nprint(1)\n");
        is_sent(&p, "bin/other", "#!/bin/sh\nexit 0\n");
        is_sent(&p, own + 2, "../../../src/pkg\nimport os\n/else/where\n");
        config = sent(&p, "pyvenv.cfg");
        assert_non_null(strstr(config, "home = "));
        activate = sent(&p, "bin/activate");
        assert_non_null(strstr(activate, "BASH_SOURCE"));
        assert_string_equal(p.manifest.v[find_entry(&p, "bin/share")].target, "../share");
        assert_int_equal(p.manifest.v[find_entry(&p, "bin/python3")].kind, PUSH_LINK);
        assert_true(p.label.python.path && *p.label.python.path == '/' && p.label.python.size);
        assert_int_equal(d.n, 1); /* of /else/where */
        assert_int_equal(d.v[0].id, HN_VENV_LEADS_OUT);
        manifest_finish(&p);
        diags_finish(&d);
}

/* The same environment elsewhere is the same for the nodes. */
TEST_WITH(setup, teardown, a_copy_elsewhere_has_the_same_hash)
{
        CLEANUP(free_textp)
        char *command =
                xasprintf("cd %s && mkdir else && python3 -m venv --without-pip else/v", top);
        CLEANUP(free_textp) char *other = in("else");
        struct manifest p = MANIFEST_INIT, q = MANIFEST_INIT;
        struct diags d = DIAGS_INIT;

        assert_int_equal(system(command), 0);
        assert_int_equal(venv_pack(&p, "v", top, NULL, &d), 0);
        assert_int_equal(venv_pack(&q, "v", other, NULL, &d), 0);
        assert_memory_equal(p.label.sha, q.label.sha, PUSH_SHA);
        manifest_finish(&p);
        manifest_finish(&q);
        diags_finish(&d);
}

/* Checks one .pyc: its time is that of the copies, unless its source is another one. */
static void check_compiled(struct manifest *p, uint32_t i, bool is_stale)
{
        unsigned char head[16], piece[3], time[4];
        struct error err;

        assert_int_equal(manifest_read(p, i, 0, head, sizeof(head), &err), 0);
        assert_int_equal(manifest_read(p, i, 9, piece, sizeof(piece), &err), 0);
        assert_memory_equal(head + 9, piece, sizeof(piece));
        for (int k = 0; k < 4; k++)
                time[k] = (unsigned char)(PUSH_FILE_TIME >> (8 * k));
        /* Python passes over a .pyc whose time is not that of the source. */
        if (is_stale)
                assert_memory_not_equal(head + 8, time, 4);
        else
                assert_memory_equal(head + 8, time, 4);
}

TEST_WITH(setup, teardown, compiled_files_get_the_time_of_the_copies)
{
        CLEANUP(free_textp)
        char *command = xasprintf("cd %s/%s && echo 'x = 1' >m.py && echo 'y = 1' >stale.py && "
                                  "python3 -m compileall -q . && touch -d '1 hour ago' stale.py",
                                  top, site);
        CLEANUP(free_textp) char *cache = in("cache");
        struct manifest p = MANIFEST_INIT, q = MANIFEST_INIT;
        struct hash_memory *memory;
        struct diags d = DIAGS_INIT;
        int seen = 0;

        assert_int_equal(system(command), 0);
        mkdir(cache, 0700);
        setenv("XDG_CACHE_HOME", cache, 1);
        memory = hash_memory_open();
        assert_int_equal(pack(&p, &d, memory), 0);
        for (uint32_t i = 0; i < p.manifest.n; i++) {
                const char *name = strstr(p.manifest.v[i].path, "__pycache__/");

                if (!name || !strstr(name, ".pyc"))
                        continue;
                check_compiled(&p, i, strstr(name, "stale"));
                seen++;
        }
        assert_int_equal(seen, 2);
        assert_int_equal(pack(&q, &d, memory), 0);
        assert_memory_equal(p.label.sha, q.label.sha, PUSH_SHA);
        hash_memory_close(memory);
        manifest_finish(&p);
        manifest_finish(&q);
        diags_finish(&d);
}

TEST_WITH(setup, teardown, what_leads_out_is_told)
{
        CLEANUP(free_textp) char *finder = xasprintf("%s/__editable___pkg_finder.py", site);
        CLEANUP(free_textp) char *set_id = in("v/bin/su"), *folder = in("v/lib/away");
        struct manifest p = MANIFEST_INIT;
        struct diags d = DIAGS_INIT;

        put(finder, "MAPPING: dict[str, str] = {'pkg': '/home/me/pkg'}\n");
        put("v/bin/su", "x");
        assert_int_equal(chmod(set_id, 04755), 0);
        assert_int_equal(symlink("/etc", folder), 0);
        assert_int_equal(pack(&p, &d, NULL), 0);
        assert_int_equal(d.n, 2);
        assert_int_equal(d.v[0].id, HN_VENV_LEADS_OUT);
        assert_int_equal(d.v[1].id, HN_VENV_SET_USER_ID);
        assert_int_equal(diags_errors(&d), 0);
        assert_int_equal(p.manifest.v[find_entry(&p, "bin/su")].mode, 0755);
        manifest_finish(&p);
        diags_finish(&d);
}

TEST_WITH(setup, teardown, no_environment_and_one_of_conda_are_refused)
{
        CLEANUP(free_textp) char *empty = in("empty"), *conda = in("v/conda-meta");
        struct manifest p = MANIFEST_INIT;
        struct diags d = DIAGS_INIT;

        mkdir(empty, 0755);
        assert_true(venv_pack(&p, "empty", top, NULL, &d) < 0);
        assert_true(venv_pack(&p, "nothing", top, NULL, &d) < 0);
        assert_int_equal(d.n, 2);
        assert_int_equal(d.v[0].id, HN_VENV_NOT_ONE);
        assert_int_equal(d.v[1].id, HN_VENV_NOT_ONE);
        mkdir(conda, 0755);
        assert_true(pack(&p, &d, NULL) < 0);
        assert_int_equal(d.v[2].id, HN_VENV_CONDA);
        manifest_finish(&p);
        diags_finish(&d);
}

TEST(scripts_of_long_paths_are_moved_and_those_of_others_are_not)
{
        static const char rest[] = "import sys\n";
        static const struct {
                const char *text, *want;
        } cases[] = {
                { "#!/bin/sh\n'''exec' /no/v/bin/python3.12 \"$0\" \"$@\"\n' '''\nimport sys\n",
                  "python3.12" },
                { "#!/bin/sh\n'''exec' \"/no/v/bin/python\" -I \"$0\" \"$@\"\n' '''\nimport sys\n",
                  "python" },
                { "#!/no/v/bin/python\nimport sys\n", "python" },
                { "#!/usr/bin/env python\nimport sys\n", NULL },
                { "#!/usr/bin/python3\nimport sys\n", NULL },
                { "#!/no/v/bin/bash\nimport sys\n", NULL },
                { "#!/no/v/bin/python", NULL },
                { "import sys\n", NULL },
                { "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                size_t len = 0;
                CLEANUP(free_textp)
                char *got = venv_move_script("/no/v", cases[i].text, strlen(cases[i].text), &len);
                CLEANUP(free_textp)
                char *name = cases[i].want ? xasprintf("/'%s'", cases[i].want) : NULL;

                if (!name) {
                        assert_null(got);
                        continue;
                }
                assert_non_null(got);
                assert_int_equal(len, strlen(got));
                assert_non_null(strstr(got, name));
                assert_string_equal(got + len - strlen(rest), rest);
        }
}
