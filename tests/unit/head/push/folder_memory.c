/* SPDX-License-Identifier: Apache-2.0 */
#include "head/push/folder_memory.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/files.h"
#include "lib/unit.h"

enum { FEW = 5, MANY = 300 }; /* entries; many are for several threads */

static time_t ahead; /* of the clock, in this process */

/* The C library's, for what is tested as well. */
time_t time(time_t *at)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        now.tv_sec += ahead;
        if (at)
                *at = now.tv_sec;
        return now.tv_sec;
}

static int setup(void **state)
{
        ahead = 0;
        return make_scratch(state) < 0 ? -1 : setenv("XDG_CACHE_HOME", scratch, 1);
}

static void run(const char *folder, const char *command)
{
        CLEANUP(free_textp) char *text = xasprintf("cd '%s/%s' && %s", scratch, folder, command);

        assert_int_equal(system(text), 0);
}

static struct folder_memory *open_memory(const char *folder)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", scratch, folder);

        return folder_memory_open(path, NULL);
}

/* Makes a folder with a file, a link and a folder of @n files. */
static void make_folder(const char *folder, int n)
{
        CLEANUP(free_textp)
        char *command = xasprintf("mkdir -p %s/sub && cd %s && echo 1 >file && ln -s file link && "
                                  "cd sub && seq 1000 %d | xargs touch",
                                  folder, folder, 999 + n);

        run("", command);
}

static void add_path(struct folder_memory *m, const char *folder, const char *place)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s/%s", scratch, folder, place);
        struct push_entry sent = { .kind = PUSH_FILE, .sha = { (unsigned char)strlen(place) } };
        struct folder_entry e = { 0 };
        struct stat st;

        assert_int_equal(lstat(path, &st), 0);
        e.key = hash_memory_key(&st);
        e.mode = st.st_mode;
        sent.path = (char *)place;
        sent.target = S_ISLNK(st.st_mode) ? (char *)"file" : NULL;
        folder_memory_add(m, &e, &sent, &(struct folder_source){ .top = "" });
}

static void remember(const char *folder, int n)
{
        const struct folder_sum sum = { .sha = { 7 }, .wire_bytes = 77 };
        struct folder_memory *m = open_memory(folder);

        folder_memory_begin(m, &sum, true);
        add_path(m, folder, "file");
        add_path(m, folder, "link");
        add_path(m, folder, "sub");
        for (int i = 0; i < n; i++) {
                char place[32];

                snprintf(place, sizeof(place), "sub/%d", 1000 + i);
                add_path(m, folder, place);
        }
        folder_memory_save(m);
        folder_memory_close(m);
}

static bool is_true(const char *folder)
{
        struct folder_memory *m = open_memory(folder);
        bool r = folder_memory_is_true(m);

        folder_memory_save(m);
        folder_memory_close(m);
        return r;
}

/* What is younger than two seconds, counted in whole ones, is not remembered. */
static void become_old(void)
{
        ahead += 3;
}

TEST_WITH(setup, remove_scratch, each_change_is_noticed)
{
        static const char *const changes[] = {
                "true", /* unlike all others */
                "echo 2 >file",
                "touch -r file ../time && echo 2 >file && touch -r ../time file",
                "chmod 600 file",
                "echo x >new",
                "rm sub/1003",
                "mv sub/1150 sub/1150.old",
                "chmod 700 sub",
                "echo 2 >sub/1299",
                "echo 2 >other && mv other file",
                "rm link && echo 1 >link",
                "rm file && mkdir file",
                "chmod 700 .",
        };
        char name[32];

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                snprintf(name, sizeof(name), "%zu", i);
                make_folder(name, MANY);
        }
        become_old();
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                snprintf(name, sizeof(name), "%zu", i);
                assert_false(is_true(name));
                remember(name, MANY);
                assert_true(is_true(name));
                run(name, changes[i]);
                if (is_true(name) != !i)
                        fail_msg("not noticed: %s", changes[i]);
        }
}

TEST_WITH(setup, remove_scratch, what_is_remembered_is_found)
{
        const unsigned char sha[PUSH_SHA] = { 5 };
        struct hash_key python = { .ino = 3 };
        unsigned char found[PUSH_SHA];
        struct folder_memory *m;

        make_folder("v", MANY);
        become_old();
        remember("v", MANY);
        m = open_memory("v");
        assert_true(folder_memory_is_true(m));
        assert_int_equal(folder_memory_entries(m), MANY + 3);
        assert_int_equal(folder_memory_sum(m)->sha[0], 7);
        assert_int_equal(folder_memory_sum(m)->wire_bytes, 77);
        for (uint32_t i = 0; i < MANY + 3; i++) {
                const struct folder_entry *e = folder_memory_entry(m, i);
                const char *place = folder_memory_text(m, e->place);

                assert_int_equal(e->sha[0], strlen(place));
                assert_string_equal(folder_memory_text(m, e->target), i == 1 ? "file" : "");
        }
        assert_string_equal(folder_memory_text(m, folder_memory_entry(m, MANY)->place), "sub/1297");
        /* The Python is remembered beside the same entries. */
        assert_false(folder_memory_find_python(m, &python, found));
        folder_memory_set_python(m, &python, sha);
        folder_memory_save(m);
        folder_memory_close(m);
        m = open_memory("v");
        assert_true(folder_memory_find_python(m, &python, found));
        assert_int_equal(found[0], 5);
        python.ctime_ns++;
        assert_false(folder_memory_find_python(m, &python, found));
        assert_true(folder_memory_is_true(m));
        folder_memory_save(m);
        folder_memory_close(m);
}

TEST_WITH(setup, remove_scratch, a_folder_that_has_just_changed_is_not_remembered)
{
        make_folder("v", FEW);
        remember("v", FEW);
        assert_false(is_true("v"));
}

/* Returns the paths of all memories, and their number. */
static size_t find_memories(char paths[32][4096])
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/hnlaunch/folders", scratch);
        DIR *d = opendir(folder);
        struct dirent *e;
        size_t n = 0;

        while (d && n < 32 && (e = readdir(d)))
                if (*e->d_name != '.')
                        snprintf(paths[n++], 4096, "%s/%s", folder, e->d_name);
        if (d)
                closedir(d);
        return n;
}

TEST_WITH(setup, remove_scratch, a_damaged_memory_is_empty)
{
        static char paths[32][4096];
        struct stat st;
        FILE *f;

        make_folder("v", MANY);
        become_old();
        for (long part = 0; part < 6; part++) {
                remember("v", MANY);
                assert_true(is_true("v"));
                assert_int_equal(find_memories(paths), 1);
                assert_int_equal(stat(paths[0], &st), 0);
                f = fopen(paths[0], "r+");
                assert_non_null(f);
                if (part < 5) {
                        fseek(f, (st.st_size - 1) * part / 4, SEEK_SET);
                        fputc(0x55, f);
                } else {
                        assert_int_equal(ftruncate(fileno(f), st.st_size / 2), 0);
                }
                fclose(f);
                assert_false(is_true("v"));
        }
}

TEST_WITH(setup, remove_scratch, the_longest_unused_is_forgotten)
{
        static char paths[32][4096];
        char name[32];

        for (int i = 0; i < 10; i++) {
                snprintf(name, sizeof(name), "%d", i);
                make_folder(name, FEW);
        }
        become_old();
        for (int i = 0; i < 10; i++) {
                snprintf(name, sizeof(name), "%d", i);
                remember(name, FEW);
                usleep(20000);
                assert_true(is_true("0")); /* in use */
                usleep(20000);
        }
        assert_int_equal(find_memories(paths), 8);
        assert_true(is_true("0"));
        assert_false(is_true("1"));
        assert_false(is_true("2"));
        assert_true(is_true("3"));
        assert_true(is_true("9"));
}

TEST_WITH(setup, remove_scratch, no_place_is_no_error)
{
        make_folder("v", FEW);
        setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
        become_old();
        remember("v", FEW);
        assert_false(is_true("v"));
}
