/* SPDX-License-Identifier: Apache-2.0 */
#include "head/push/manifest.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/files.h"
#include "lib/unit.h"

static char *top, *here;

static int setup(void **state UNUSED)
{
        top = xasprintf("%s/hnparcel.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        umask(022); /* modes are part of what is described */
        assert_non_null(mkdtemp(top));
        assert_int_equal(chdir(top), 0);
        mkdir("in", 0755);
        mkdir("out", 0755);
        mkdir("in/data", 0755);
        mkdir("in/data/sub", 0755);
        write_file("in/data/x", "hello");
        write_file("in/data/sub/y", "");
        write_file("in/prog", "#!/bin/sh\n");
        chmod("in/prog", 0755);
        write_file("out/z", "z");
        assert_int_equal(chdir("in"), 0);
        here = getcwd(NULL, 0);
        return 0;
}

static int teardown(void **state UNUSED)
{
        int r = chdir("/") | remove_tree(top);

        free(here);
        free(top);
        return r;
}

/* The entries' paths with blanks between them, or the numbers of the errors. */
static char *packed(struct manifest *p, const char *a, const char *b)
{
        struct diags d = DIAGS_INIT;
        struct strv paths = STRV_INIT;
        struct buf out = BUF_INIT;

        strv_push(&paths, a);
        if (b)
                strv_push(&paths, b);
        if (manifest_pack(p, &paths, here, NULL, &d) == 0)
                for (uint32_t i = 0; i < p->manifest.n; i++)
                        buf_printf(&out, "%s%s", i ? " " : "", p->manifest.v[i].path);
        for (size_t i = 0; i < d.n; i++)
                buf_printf(&out, "%sHN%d", i ? " " : "", d.v[i].id);
        diags_finish(&d);
        strv_finish(&paths);
        return buf_steal(&out);
}

TEST_WITH(setup, teardown, things_land_where_they_are)
{
        static const char whole[] = "data data/sub data/sub/y data/x prog";
        CLEANUP(free_textp) char *absolute = xasprintf("%s/data/sub", here);
        const struct {
                const char *a, *b, *want;
        } cases[] = {
                { "data", NULL, "data data/sub data/sub/y data/x" },
                { "data/", "data", "data data/sub data/sub/y data/x" },
                { ".", NULL, whole },
                { "../in", NULL, whole },
                { ".", "data", whole },
                { "./data//sub/../x", NULL, "data data/x" },
                { "data/sub/y", NULL, "data data/sub data/sub/y" },
                { absolute, NULL, "data data/sub data/sub/y" },
                { "../out", "prog", "out out/z prog" },
                { "../out/z", NULL, "z" },
                { "nothing", NULL, "HN230" },
                { "", NULL, "HN230" },
                { "/", NULL, "HN232" },
                { "/dev/null", "nothing", "HN232 HN230" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
                CLEANUP(free_textp) char *got = packed(&p, cases[i].a, cases[i].b);

                assert_string_equal(got, cases[i].want);
        }
}

TEST_WITH(setup, teardown, a_file_is_described_by_size_mode_and_hash)
{
        /* sha256sum of "hello" */
        static const unsigned char start[] = { 0x2c, 0xf2, 0x4d, 0xba };
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        char text[6] = "";
        struct error err;

        free(packed(&p, "data/x", "prog"));
        assert_int_equal(p.manifest.n, 3);
        assert_int_equal(p.files, 2);
        assert_int_equal(p.bytes, 15);
        assert_int_equal(p.manifest.v[1].size, 5);
        assert_int_equal(p.manifest.v[1].mode, 0644);
        assert_int_equal(p.manifest.v[2].mode, 0755);
        assert_memory_equal(p.manifest.v[1].sha, start, sizeof(start));
        assert_int_equal(manifest_read(&p, 1, 1, text, 4, &err), 0);
        assert_string_equal(text, "ello");
        assert_string_equal(manifest_place(&p, here, "./prog"), "prog");
        assert_null(manifest_place(&p, here, "./data/y"));
}

TEST_WITH(setup, teardown, links_stay_links_when_they_lead_inside)
{
        static const struct {
                const char *target;
                int kind; /* 0 = refused */
        } cases[] = {
                { "x", PUSH_LINK },           { "sub/../x", PUSH_LINK },
                { "not/there", PUSH_LINK },   { "../data/x", PUSH_LINK },
                { "../prog", PUSH_FILE },     { "../../out/z", PUSH_FILE },
                { "/etc/passwd", PUSH_FILE }, { "/etc", 0 },
                { "../../out", 0 },           { "../../nothing", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
                CLEANUP(free_textp) char *got = NULL;

                unlink("data/l");
                assert_int_equal(symlink(cases[i].target, "data/l"), 0);
                got = packed(&p, "data", NULL);
                if (!cases[i].kind) {
                        assert_string_equal(got, "HN232");
                } else {
                        assert_string_equal(p.manifest.v[1].path, "data/l");
                        assert_int_equal(p.manifest.v[1].kind, cases[i].kind);
                }
        }
        unlink("data/l");
        assert_int_equal(symlink("../out", "o"), 0);
        {
                CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
                CLEANUP(free_textp) char *got = packed(&p, "o", NULL);

                assert_string_equal(got, "o o/z"); /* named by the user */
        }
}

/* Whichever way leads to it, a folder on the way to a file keeps its own mode. */
TEST_WITH(setup, teardown, folders_on_the_way_keep_their_mode)
{
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        CLEANUP(free_textp)
        char *got = NULL, *other_way = xasprintf("%s/a-longer-name-of-here/data/sub/y", top);

        assert_int_equal(symlink("in", "../a-longer-name-of-here"), 0);
        assert_int_equal(chmod("data", 0700), 0);
        got = packed(&p, other_way, NULL);
        assert_string_equal(got, "data data/sub data/sub/y");
        assert_int_equal(p.manifest.v[0].mode, 0700);
        assert_int_equal(chmod("data", 0755), 0);
}

TEST_WITH(setup, teardown, two_things_in_one_place_are_refused)
{
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        CLEANUP(free_textp) char *got = NULL;

        write_file("z", "another");
        got = packed(&p, "z", "../out/z");
        assert_string_equal(got, "HN233");
}

/* Python reads the .pyc of a copy only if it has the time of the copied source. */
TEST_WITH(setup, teardown, compiled_files_get_the_time_of_copies_for_reading)
{
        if (system("cd data && echo 'x = 1' >m.py && python3 -m compileall -q . && "
                   "mv __pycache__/m.*.pyc __pycache__/m.pyc") != 0)
                skip();
        for (int use = PUSH_RANKS; use <= PUSH_STAGE; use++) {
                CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
                unsigned char head[12];
                struct error err;
                uint32_t i = 0;

                p.label.use = (uint8_t)use;
                free(packed(&p, "data", NULL));
                while (!strstr(p.manifest.v[i].path, "m.pyc"))
                        i++;
                assert_int_equal(manifest_read(&p, i, 0, head, sizeof(head), &err), 0);
                assert_int_equal(memcmp(head + 8, (unsigned char[]){ 0x80, 0x43, 0x6d, 0x38 }, 4) ==
                                         0,
                                 use == PUSH_STAGE);
        }
}

/* --- paths that an earlier launch has listed --- */

static uint64_t hashed;
static size_t n_paths;

static void count_tick(void *ctx UNUSED, uint64_t bytes)
{
        hashed = bytes;
}

/* Packs paths as a launch does, with memories or without. Returns a part of the hash. */
static uint64_t pack_paths(struct hash_memory *memory)
{
        static const char *const all[] = { "data", "lead", "../out/z", "deep/er/x", "." };
        const struct manifest_watch watch = { .tick = count_tick, .memory = memory };
        struct manifest p = MANIFEST_INIT;
        struct strv paths = STRV_INIT;
        struct diags d = DIAGS_INIT;
        struct error err;
        uint64_t sum;

        hashed = 0;
        for (size_t i = 0; i < n_paths; i++)
                strv_push(&paths, all[i]);
        assert_int_equal(manifest_pack(&p, &paths, here, &watch, &d), 0);
        for (uint32_t i = 0; i < p.manifest.n; i++)
                if (p.manifest.v[i].kind == PUSH_FILE)
                        assert_int_equal(manifest_check(&p, i, &err), 0);
        memcpy(&sum, p.label.sha, sizeof(sum));
        strv_finish(&paths);
        manifest_finish(&p);
        diags_finish(&d);
        return sum;
}

/* With memories and without, which must make no difference. Returns the bytes hashed with them. */
static uint64_t packs_equally(void)
{
        struct hash_memory *memory = hash_memory_open();
        uint64_t sum = pack_paths(memory), n = hashed;

        hash_memory_close(memory);
        assert_int_equal(sum, pack_paths(NULL));
        return n;
}

static void change(const char *command)
{
        assert_int_equal(system(command), 0);
}

/* Packs by the list: of all files only the one behind a link is read. */
static void recall(void)
{
        change("rm -f $XDG_CACHE_HOME/hnlaunch/hashes");
        assert_int_equal(packs_equally(), 4);
}

/* Waits until all is old enough to be remembered, and remembers it. */
static void remember(void)
{
        time_t begin = time(NULL);

        while (time(NULL) < begin + 3)
                usleep(20000);
        packs_equally();
        recall();
}

TEST_WITH(setup, teardown, what_an_earlier_launch_has_listed_is_right)
{
        static const char *const changes[] = {
                "echo more >data/x",
                "echo new >data/sub/new",
                "rm data/sub/new",
                "echo 3 >../out/z",
                "mv data/many/7 data/many/a",
                "ln -sfn ../out/other lead",
                "chmod 700 deep/er/x",
                "chmod 700 deep",
        };
        CLEANUP(free_textp) char *cache = xasprintf("%s/cache", top);

        mkdir(cache, 0700);
        setenv("XDG_CACHE_HOME", cache, 1);
        change("mkdir -p data/many ../out/one/sub ../out/other deep/er && seq 300 >deep/er/x && "
               "(cd data/many && seq 300 | xargs touch) && echo one >../out/one/sub/f && "
               "echo two >../out/other/f && ln -s ../out/one lead && echo 123 >../out/l && "
               "ln -s ../../out/l data/l && ln -s x data/y");
        n_paths = 4;
        remember();
        change("touch beside deep/beside ../out/beside"); /* not sent */
        recall();
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                change(changes[i]);
                packs_equally();
        }
        change("rm lead"); /* leads out of the current folder */
        change("mkdir lead");
        n_paths = 5;
        remember();
        change("touch new");
        packs_equally();
}

TEST_WITH(setup, teardown, a_change_is_noticed)
{
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        struct error err;
        char text[5];

        free(packed(&p, "data/x", NULL));
        assert_int_equal(manifest_check(&p, 1, &err), 0);
        write_file("data/x", "other");
        assert_true(manifest_check(&p, 1, &err) < 0);
        assert_int_equal(err.number, HN_PUSH_CHANGED);
        assert_true(manifest_read(&p, 1, 0, text, 5, &err) < 0);
        assert_int_equal(err.number, HN_PUSH_CHANGED);
        unlink("data/x");
        assert_true(manifest_check(&p, 1, &err) < 0);
        assert_int_equal(err.number, HN_PUSH_CHANGED);
        assert_true(manifest_read(&p, 1, 0, text, 5, &err) < 0);
        assert_int_equal(err.number, HN_PUSH_CHANGED);
}
