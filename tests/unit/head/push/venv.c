/* SPDX-License-Identifier: Apache-2.0 */
#include "head/push/venv.h"

#include <sodium/crypto_hash_sha256.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error_number.h"
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

        return venv_pack(p, "v", NULL, top, memory ? &watch : NULL, d);
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
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        put("v/bin/pip", pip);
        put("v/bin/uv", uv);
        assert_int_equal(pack(&p, &d, NULL), 0);
        is_sent(&p, "bin/pip", moved);
        is_sent(&p, "bin/uv", moved);
        activate = sent(&p, "bin/activate"); /* without the path */
        assert_int_equal(d.n, 0);
}

TEST_WITH(setup, teardown, scripts_and_paths_do_not_depend_on_the_place)
{
        CLEANUP(free_textp) char *script = xasprintf("#!%s/v/bin/python3 -I\nprint(1)\n", top);
        CLEANUP(free_textp) char *own = xasprintf("%s/own.pth", site);
        CLEANUP(free_textp) char *paths = xasprintf("%s/v/src/pkg\nimport os\n/else/where\n", top);
        CLEANUP(free_textp) char *link = xasprintf("%s/v/share", top), *at = in("v/bin/share");
        CLEANUP(free_textp) char *config = NULL, *activate = NULL;
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

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
}

/* The same environment elsewhere is the same for the nodes. */
TEST_WITH(setup, teardown, a_copy_elsewhere_has_the_same_hash)
{
        CLEANUP(free_textp)
        char *command =
                xasprintf("cd %s && mkdir else && python3 -m venv --without-pip else/v", top);
        CLEANUP(free_textp) char *other = in("else");
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT, q = MANIFEST_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(system(command), 0);
        assert_int_equal(venv_pack(&p, "v", NULL, top, NULL, &d), 0);
        assert_int_equal(venv_pack(&q, "v", NULL, other, NULL, &d), 0);
        assert_memory_equal(p.label.sha, q.label.sha, PUSH_SHA);
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
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT, q = MANIFEST_INIT;
        struct hash_memory *memory;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
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
}

/* --- an environment that an earlier launch has listed --- */

static uint64_t hashed;
static const struct strv *staged; /* paths of --stage; NULL = none */

static void count_tick(void *ctx UNUSED, uint64_t bytes)
{
        hashed = bytes;
}

/* Packs with the memories in @top/cache, as a launch does. Sets @hashed. */
static void pack_as_launch(struct manifest *p, struct diags *d)
{
        struct manifest_watch watch = { .tick = count_tick, .memory = hash_memory_open() };

        hashed = 0;
        assert_int_equal(venv_pack(p, "v", staged, top, &watch, d), 0);
        hash_memory_close(watch.memory);
}

static void forget_hashes(void)
{
        CLEANUP(free_textp) char *path = in("cache/hnlaunch/hashes");

        unlink(path); /* young files are in none */
}

static void entries_are_equal(const struct manifest *p, const struct manifest *q)
{
        struct error err;

        for (uint32_t i = 0; i < p->manifest.n; i++) {
                const struct push_entry *a = &p->manifest.v[i], *b = &q->manifest.v[i];
                const struct manifest_source *s = &p->sources[i], *t = &q->sources[i];

                assert_string_equal(a->path, b->path);
                assert_int_equal(a->kind, b->kind);
                assert_int_equal(a->mode, b->mode);
                assert_int_equal(a->size, b->size);
                assert_memory_equal(a->sha, b->sha, PUSH_SHA);
                assert_string_equal(a->target ? a->target : "", b->target ? b->target : "");
                assert_string_equal(s->content ? s->content : "", t->content ? t->content : "");
                assert_int_equal(s->stamped, t->stamped);
                if (a->kind != PUSH_FILE)
                        continue;
                assert_true(hash_memory_same(&s->key, &t->key));
                assert_int_equal(manifest_check(p, i, &err), 0);
        }
}

/* Packs with memories and without, which must make no difference, apart from the warning of run
 * paths, which is for files that are read. */
static void packs_equally(void)
{
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT, q = MANIFEST_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT, e = DIAGS_INIT;

        pack_as_launch(&p, &d);
        assert_int_equal(venv_pack(&q, "v", staged, top, NULL, &e), 0);
        assert_int_equal(p.manifest.n, q.manifest.n);
        assert_int_equal(p.files, q.files);
        assert_int_equal(p.bytes, q.bytes);
        assert_int_equal(p.wire_bytes, q.wire_bytes);
        assert_string_equal(p.label.name, q.label.name);
        assert_string_equal(p.label.python.path, q.label.python.path);
        assert_memory_equal(p.label.python.sha, q.label.python.sha, PUSH_SHA);
        entries_are_equal(&p, &q);
        assert_memory_equal(p.label.sha, q.label.sha, PUSH_SHA);
        assert_int_equal(d.n, e.n);
        for (size_t i = 0; i < d.n; i++)
                assert_int_equal(d.v[i].id, e.v[i].id);
}

static void change(const char *command)
{
        CLEANUP(free_textp) char *text = xasprintf("cd '%s' && site=%s && %s", top, site, command);

        assert_int_equal(system(text), 0);
}

/* Waits until all is old enough to be remembered, and remembers it. */
static void remember(void)
{
        time_t begin = time(NULL);

        while (time(NULL) < begin + 3)
                usleep(20000);
        packs_equally();
}

/* Packs by the list of the environment: no file in it is read, only the one outside. */
static void recall(void)
{
        forget_hashes();
        packs_equally();
        assert_int_equal(hashed, 2);
}

TEST_WITH(setup, teardown, what_an_earlier_launch_has_listed_is_right)
{
        /* The list stays right, but a link, a file behind one and a script lead elsewhere. */
        static const char *const outside[] = {
                "true",
                "echo 3 >outside",
                "chmod 600 outside",
                "ln -sfn other to",
                "ln -sfn other way", /* by which a script no longer finds the Python */
        };
        static const char *const inside[] = {
                "touch -d yesterday $site/m.py", /* of which the .pyc is stale then */
                "echo 'x = 2' >$site/m.py",
                "mv $site/m.py $site/n.py",
                "rm -r $site/pkg",
                "echo /else >$site/own.pth",
                "chmod 755 v/bin/su",
                "ln -sf \"$PWD/base/python3.own\" v/bin/python3",
        };
        CLEANUP(free_textp) char *cache = in("cache"), *script = NULL;

        mkdir(cache, 0700);
        setenv("XDG_CACHE_HOME", cache, 1);
        script = xasprintf("#!%s/way/v/bin/python3\n1\n", top);
        put("v/bin/tool", script);
        change("mkdir base data other $site/pkg && ln -s . way && echo 1 >outside && "
               "echo 'x = 1' >$site/m.py && python3 -m compileall -q $site && "
               "echo /where >$site/own.pth && ln -s data to && "
               "ln -s ../../../../outside $site/sent && ln -s \"$PWD/to\" $site/to && "
               "cp \"$(readlink -f v/bin/python3)\" base/python3.own && "
               "cp v/bin/tool v/bin/su && chmod 4755 v/bin/su");
        remember();
        for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
                change(outside[i]);
                packs_equally();
                recall();
        }
        for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
                change(inside[i]);
                packs_equally();
        }
        remember();
        recall();
}

static void leads(const struct manifest *p, const char *place, const char *want)
{
        assert_string_equal(p->manifest.v[find_entry(p, place)].target, want);
}

TEST_WITH(setup, teardown, the_python_outside_comes_along_when_it_is_staged)
{
        CLEANUP(free_textp) char *cache = in("cache"), *config = NULL, *script = NULL;
        struct manifest p = MANIFEST_INIT;
        CLEANUP(strv_finish) struct strv paths = STRV_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        mkdir(cache, 0700);
        setenv("XDG_CACHE_HOME", cache, 1);
        change("mkdir -p opt/own/bin opt/own/lib/own/config && ln -s opt/own named && "
               "cp \"$(readlink -f v/bin/python3)\" opt/own/bin/python3.own && "
               "ln -s \"$PWD/opt/own/bin/python3.own\" opt/own/bin/python3 && "
               "ln -s ../../lib.a opt/own/lib/own/config/lib.a && echo a >opt/own/lib/lib.a && "
               "ln -sf \"$PWD/named/bin/python3\" v/bin/python3 && "
               "sed -i \"s,^home.*,home = $PWD/named/bin,\" v/pyvenv.cfg");
        script = xasprintf("#!%s/opt/own/bin/python3 -I\nprint(1)\n", top);
        put("opt/own/bin/pip", script);
        strv_push(&paths, "v"); /* without the Python */
        staged = &paths;
        pack_as_launch(&p, &d);
        assert_int_equal(*p.label.python.path, '/');
        manifest_finish(&p);

        strv_push(&paths, "opt");
        pack_as_launch(&p, &d);
        assert_string_equal(p.label.python.path, ".base-python/bin/python3.own");
        assert_int_equal(p.label.python.size, 0);
        leads(&p, "bin/python3", "../.base-python/bin/python3.own");
        leads(&p, ".base-python/bin/python3", "../bin/python3.own");
        leads(&p, ".base-python/lib/own/config/lib.a", "../../lib.a");
        is_sent(&p, ".base-python/lib/lib.a", "a\n");
        is_sent(&p, ".base-python/bin/pip",
                "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' -I "
                "\"$0\" \"$@\"\n' '''\nprint(1)\n");
        config = sent(&p, "pyvenv.cfg");
        assert_null(strstr(config, "home ="));
        assert_null(strstr(config, "executable ="));
        assert_non_null(strstr(config, "include-system-site-packages = "));
        manifest_finish(&p);
        remember();
        forget_hashes();
        packs_equally();
        assert_int_equal(hashed, 0);
        change("echo b >opt/own/lib/lib.a");
        packs_equally();
        change("echo c >opt/own/lib/new");
        packs_equally();
        assert_int_equal(d.n, 0);
        staged = NULL;
}

/* The run path of a program with its libpython beside it. */
TEST_WITH(setup, teardown, run_paths_into_the_python_become_relative)
{
        static const char moved[] = "\0$ORIGIN/../lib:/else/where";
        CLEANUP(free_textp) char *bytes = NULL;
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        CLEANUP(strv_finish) struct strv paths = STRV_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        struct error err;
        size_t n;
        uint32_t i;

        if (system("cc --version >/dev/null 2>&1") != 0)
                skip();
        change("mkdir -p own/bin own/lib && echo 'int main(void) { return 0; }' >main.c && "
               "cc -o own/bin/python3 main.c -Wl,-rpath,$PWD/own/lib:/else/where && "
               "ln -sf \"$PWD/own/bin/python3\" v/bin/python3");
        strv_push(&paths, "own");
        assert_int_equal(venv_pack(&p, "v", &paths, top, NULL, &d), 0);
        i = find_entry(&p, ".base-python/bin/python3");
        n = p.manifest.v[i].size;
        bytes = xcalloc(1, n);
        assert_int_equal(manifest_read(&p, i, 0, bytes, n, &err), 0);
        assert_null(memmem(bytes, n, top, strlen(top)));
        assert_non_null(memmem(bytes, n, moved, sizeof(moved)));
        assert_int_equal(d.n, 0);
}

TEST_WITH(setup, teardown, what_leads_out_is_told)
{
        CLEANUP(free_textp) char *finder = xasprintf("%s/__editable___pkg_finder.py", site);
        CLEANUP(free_textp) char *set_id = in("v/bin/su"), *folder = in("v/lib/away");
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

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
}

TEST_WITH(setup, teardown, no_environment_and_one_of_conda_are_refused)
{
        CLEANUP(free_textp) char *empty = in("empty"), *conda = in("v/conda-meta");
        CLEANUP(manifest_finish) struct manifest p = MANIFEST_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        mkdir(empty, 0755);
        assert_true(venv_pack(&p, "empty", NULL, top, NULL, &d) < 0);
        assert_true(venv_pack(&p, "nothing", NULL, top, NULL, &d) < 0);
        assert_int_equal(d.n, 2);
        assert_int_equal(d.v[0].id, HN_VENV_NOT_ONE);
        assert_int_equal(d.v[1].id, HN_VENV_NOT_ONE);
        mkdir(conda, 0755);
        assert_true(pack(&p, &d, NULL) < 0);
        assert_int_equal(d.v[2].id, HN_VENV_CONDA);
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
