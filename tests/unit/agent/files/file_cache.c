/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/file_cache.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/files/cache_dir.h"
#include "agent/files/stage_copies.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strv.h"
#include "lib/files.h"
#include "lib/unit.h"

static char *home;
static struct pushed why; /* of the last call */
static uint32_t holder;

/* What some file systems lack: these stand before libc's. */
static bool no_locks;
static int looks_of_others; /* so many exclusive locks are held by another node for a moment */
static unsigned links_left = UINT_MAX; /* to a file */
static bool files_stay;                /* unlinkat() fails */
static int folders_seen, blind_at;     /* the folder that cannot be read; 0 = none */

int flock(int fd, int operation)
{
        if (operation & LOCK_EX && looks_of_others) {
                looks_of_others--;
                errno = EWOULDBLOCK;
                return -1;
        }
        if (!no_locks)
                return (int)syscall(SYS_flock, fd, operation);
        errno = ENOLCK;
        return -1;
}

int link(const char *from, const char *to)
{
        struct stat st;

        if (lstat(from, &st) == 0 && st.st_nlink >= links_left) {
                errno = EMLINK;
                return -1;
        }
        return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* Places beside the test's own hold the copies of the user and of other tests. */
int lstat(const char *path, struct stat *st)
{
        if (!home || !strstr(path, "/hnlaunch-stage-") || !strncmp(path, home, strlen(home)))
                return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
        errno = ENOENT;
        return -1;
}

int unlinkat(int dir, const char *name, int how)
{
        if (!files_stay)
                return (int)syscall(SYS_unlinkat, dir, name, how);
        errno = EIO;
        return -1;
}

DIR *fdopendir(int fd)
{
        static DIR *(*real)(int);

        if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "fdopendir");
        if (++folders_seen != blind_at)
                return real(fd);
        errno = ENOMEM;
        return NULL;
}

static int setup(void **state UNUSED)
{
        no_locks = files_stay = false;
        blind_at = 0;
        links_left = UINT_MAX;
        home = xasprintf("%s/hnstash.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        assert_non_null(mkdtemp(home));
        return setenv("HNLAUNCH_STAGE_DIR", home, 1);
}

/* Fails, and so the test, when something of a push is left. */
static int teardown(void **state UNUSED)
{
        CLEANUP(free_textp) char *folder = cache_dir(0);
        int r = 0;

        if (rmdir(folder) < 0 && errno != ENOENT)
                r = -1;
        if (rmdir(home) < 0)
                r = -1;
        free(home);
        return r;
}

/* A file "a" and a twin of it in a folder. */
static struct push_offer offer(const char *run, uint32_t node, const char *text)
{
        struct push_offer m = { .node = node,
                                .manifest = { xcalloc(3, sizeof(struct push_entry)), 3 } };
        static const char *const names[] = { "a", "d", "d/twin" };

        strcpy(m.run_id, run);
        for (int i = 0; i < 3; i++) {
                struct push_entry *e = &m.manifest.v[i];

                e->kind = i == 1 ? PUSH_FOLDER : PUSH_FILE;
                e->mode = i == 1 ? 0755 : 0644;
                e->path = xstrdup(names[i]);
                e->size = i == 1 ? 0 : strlen(text);
                if (i != 1)
                        crypto_hash_sha256(e->sha, (const unsigned char *)text, strlen(text));
        }
        return m;
}

static struct file_cache open_stash(const char *run, uint32_t node, const char *text)
{
        struct file_cache s = FILE_CACHE_INIT;
        struct push_offer m = offer(run, node, text);

        file_cache_offer(&s, &m);
        return s;
}

static int put(struct file_cache *s, uint64_t offset, const char *text)
{
        struct push_chunk c = { .entry = s->missing[s->at],
                                .offset = offset,
                                .data = (const unsigned char *)text,
                                .len = strlen(text) };

        return file_cache_put(s, &c, &why);
}

/* The only content that is missing comes. */
static void complete(struct file_cache *s)
{
        assert_int_equal(put(s, 0, "hello"), 0);
        assert_int_equal(file_cache_finish(s, &why), 0);
}

/* Returns with all files in the cache. */
static void fetch(struct file_cache *s)
{
        assert_int_equal(file_cache_look(s, false, &holder, &why), 0);
        complete(s);
}

static void has(const struct file_cache *s, const char *name, const char *text)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", s->tree, name), *got = NULL;

        assert_int_equal(fd_read_file(path, 100, &got, NULL), 0);
        assert_string_equal(got, text);
}

static char *content_of(const struct file_cache *s)
{
        char sha[2 * PUSH_SHA + 1];

        for (int i = 0; i < PUSH_SHA; i++)
                snprintf(sha + 2 * i, 3, "%02x", s->offer.manifest.v[0].sha[i]);
        return xasprintf("%s/file/%s.444", s->root, sha);
}

TEST_WITH(setup, teardown, twins_are_fetched_once)
{
        struct file_cache s = open_stash("run", 0, "hello");
        char *left;

        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_int_equal(s.n_missing, 1);
        assert_false(file_cache_complete(&s));
        assert_int_equal(put(&s, 0, "he"), 0);
        assert_int_equal(put(&s, 2, "llo"), 0);
        assert_true(file_cache_complete(&s));
        assert_int_equal(file_cache_finish(&s, &why), 0);
        assert_string_equal(why.folder, s.tree);
        has(&s, "a", "hello");
        has(&s, "d/twin", "hello");
        file_cache_close(&s, &left);
        assert_null(left);
}

TEST_WITH(setup, teardown, a_wrong_content_is_never_stored)
{
        struct file_cache s = open_stash("run", 0, "hello");
        char *path;

        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        path = xasprintf("%s/a", s.tree);
        assert_int_equal(put(&s, 0, "hellO"), -EBADMSG);
        assert_int_equal(why.error, EBADMSG);
        assert_int_not_equal(access(path, F_OK), 0);
        free(path);
        file_cache_close(&s, NULL);
}

TEST_WITH(setup, teardown, pieces_that_do_not_fit_are_refused)
{
        struct file_cache s = open_stash("run", 0, "hello");
        struct push_chunk other = { .entry = 1, .data = (const unsigned char *)"x", .len = 1 };

        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_int_equal(file_cache_put(&s, &other, &why), -EPROTO);
        assert_int_equal(put(&s, 1, "h"), -EPROTO);
        assert_int_equal(put(&s, 0, "hello!"), -EPROTO);
        assert_int_equal(put(&s, 0, ""), -EPROTO);
        assert_int_equal(put(&s, 0, "hel"), 0);
        assert_int_equal(put(&s, 0, "hel"), -EPROTO);
        file_cache_close(&s, NULL);
}

TEST_WITH(setup, teardown, who_shares_the_folder_waits_for_the_first)
{
        struct file_cache one = open_stash("run", 4, "hello"), two = open_stash("run", 9, "hello");

        assert_int_equal(file_cache_look(&one, false, &holder, &why), 0);
        assert_int_equal(file_cache_look(&two, false, &holder, &why), FILE_CACHE_SHARED);
        assert_int_equal(holder, 4);
        complete(&one);
        assert_int_equal(file_cache_look(&two, true, &holder, &why), 0);
        assert_true(file_cache_complete(&two));
        assert_int_equal(file_cache_finish(&two, &why), 0);
        file_cache_close(&one, NULL);
        has(&two, "d/twin", "hello");
        file_cache_close(&two, NULL);
}

TEST_WITH(setup, teardown, what_is_kept_is_found_and_what_was_changed_is_not)
{
        struct file_cache s = open_stash("run", 0, "hello");
        CLEANUP(free_textp) char *path = NULL, *keep = NULL;

        s.offer.keep = 1;
        fetch(&s);
        path = xasprintf("%s/a", s.tree);
        keep = xasprintf("%s/%s.keep", s.root, s.id);
        file_cache_close(&s, NULL);
        assert_int_equal(access(path, F_OK), 0);

        s = open_stash("run2", 0, "hello");
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_int_equal(s.n_missing, 0);
        file_cache_close(&s, NULL);

        assert_int_equal(chmod(path, 0600), 0);
        s = open_stash("run3", 0, "hello");
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_int_equal(s.n_missing, 1);
        complete(&s);
        has(&s, "a", "hello");
        assert_int_equal(unlink(keep), 0);
        file_cache_close(&s, NULL);
}

TEST_WITH(setup, teardown, files_of_ranks_stay)
{
        struct file_cache s = open_stash("run", 0, "hello");
        CLEANUP(free_textp) char *path = NULL, *left = NULL, *want = NULL;
        CLEANUP(free_textp) char *root = NULL, *tree = NULL;

        fetch(&s);
        root = xstrdup(s.root);
        path = xasprintf("%s/d/result", s.tree);
        write_file(path, "");
        tree = xstrdup(s.tree);
        folders_seen = 0;
        blind_at = 2; /* the first walk does not see the file */
        file_cache_close(&s, &left);
        want = xasprintf("files that ranks wrote beside pushed ones are left in %s", tree);
        assert_string_equal(left, want);
        assert_int_equal(unlink(path), 0);
        *strrchr(path, '/') = '\0';
        assert_int_equal(rmdir(path), 0); /* so a and d/twin are gone */
        assert_int_equal(rmdir(tree), 0);
        assert_int_equal(rmdir(root), 0);
}

TEST_WITH(setup, teardown, what_cannot_be_removed_is_told_and_used_again)
{
        struct file_cache s = open_stash("run", 0, "hello");
        CLEANUP(free_textp) char *left = NULL, *want = NULL;

        fetch(&s);
        want = xasprintf("cannot remove all pushed files in %s: %s", s.root, strerror(EIO));
        files_stay = true;
        file_cache_close(&s, &left);
        assert_string_equal(left, want);
        free_textp(&left);
        files_stay = false;
        s = open_stash("later", 0, "hello");
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_int_equal(s.n_missing, 0);
        file_cache_close(&s, &left);
        assert_null(left);
}

TEST_WITH(setup, teardown, files_of_a_dead_agent_are_removed)
{
        struct file_cache s = open_stash("run", 0, "hello");

        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_int_equal(put(&s, 0, "he"), 0);
        assert_null(file_cache_abandoned(s.root, s.id, "run")); /* it lives: nothing happens */
        assert_int_equal(put(&s, 2, "llo"), 0);
        s.lock = fd_close(s.lock); /* as the kernel would */
        s.owner = fd_close(s.owner);
        assert_null(file_cache_abandoned(s.root, s.id, "run"));
        assert_int_not_equal(access(s.root, F_OK), 0);
        file_cache_close(&s, NULL);
}

TEST_WITH(setup, teardown, no_place_is_a_failure_with_its_name)
{
        CLEANUP(free_textp) char *file = xasprintf("%s/hnlaunch", home);

        write_file(file, "");
        assert_int_equal(cache_dir_open(file, false, "w", &why), -ENOTDIR);
        assert_int_equal(why.error, ENOTDIR);
        assert_string_equal(why.folder, file);
        assert_int_equal(unlink(file), 0);
}

static void remove_folder(const char *root, const char *name)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", root, name);

        assert_int_equal(rmdir(path), 0);
}

/* Another job that ends removes ROOT/file, and ROOT, when they are empty: between any two steps of
 * ours. */
TEST_WITH(setup, teardown, folders_that_another_job_removed_are_made_again)
{
        CLEANUP(free_textp) char *folder = cache_dir(0);
        struct file_cache s = open_stash("run", 0, "hello");

        assert_int_equal(cache_dir_open(folder, false, "w", &why), 0);
        remove_folder(folder, "file");
        remove_folder(folder, "");
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        remove_folder(s.root, "file");
        complete(&s);
        has(&s, "d/twin", "hello");
        file_cache_close(&s, NULL);
}

/* We have linked what is there, and somebody who found it to be nobody's takes its name away. */
TEST_WITH(setup, teardown, a_content_that_loses_its_name_gets_it_back)
{
        struct file_cache one = open_stash("run", 0, "hello"), two = open_stash("run2", 0, "hello");
        CLEANUP(free_textp) char *content = NULL;

        fetch(&one);
        assert_int_equal(file_cache_look(&two, false, &holder, &why), 0);
        assert_true(file_cache_complete(&two));
        content = content_of(&two);
        assert_int_equal(unlink(content), 0);
        assert_int_equal(file_cache_finish(&two, &why), 0);
        assert_int_equal(access(content, F_OK), 0);
        file_cache_close(&one, NULL);
        has(&two, "a", "hello");
        file_cache_close(&two, NULL);
}

TEST_WITH(setup, teardown, a_content_with_all_its_links_is_copied)
{
        struct file_cache one = open_stash("run", 0, "hello"), two = FILE_CACHE_INIT;
        struct push_offer other = offer("run2", 0, "hello");

        links_left = 3; /* one is its name */
        fetch(&one);
        other.manifest.v[1].mode = 0700; /* so it is another folder, with the same files */
        file_cache_offer(&two, &other);
        assert_string_not_equal(one.id, two.id);
        assert_int_equal(file_cache_look(&two, false, &holder, &why), 0);
        assert_string_equal(one.root, two.root);
        assert_int_equal(two.n_missing, 1);
        complete(&two);
        has(&one, "d/twin", "hello");
        has(&two, "d/twin", "hello");
        file_cache_close(&one, NULL);
        has(&two, "d/twin", "hello");
        file_cache_close(&two, NULL);
}

/* Its lock was removed with the folder, and both were made anew by somebody else. */
TEST_WITH(setup, teardown, a_lock_that_was_removed_is_worth_nothing)
{
        struct file_cache one = open_stash("run", 0, "hello"), two = open_stash("run2", 0, "hello");
        char *lock;

        assert_int_equal(file_cache_look(&one, false, &holder, &why), 0);
        lock = xasprintf("%s/%s.lock", one.root, one.id);
        assert_int_equal(unlink(lock), 0);
        free(lock);
        assert_int_equal(file_cache_look(&two, true, &holder, &why), 0);
        complete(&two);
        file_cache_close(&one, NULL);
        has(&two, "a", "hello");
        file_cache_close(&two, NULL);
}

/* Without locks nobody can tell whether a folder is in use. */
TEST_WITH(setup, teardown, a_place_without_locks_is_passed_over)
{
        CLEANUP(free_textp) char *folder = cache_dir(0);

        no_locks = true;
        assert_int_equal(cache_dir_open(folder, false, "w", &why), -ENOLCK);
        assert_int_equal(why.error, ENOLCK);
        assert_non_null(strstr(why.what, "locks"));
        no_locks = false;
        assert_int_equal(cache_dir_open(folder, false, "w", &why), 0);
        remove_folder(folder, "file");
        remove_folder(folder, "");
}

/* Everybody can make names in /var/tmp: this one leads elsewhere. */
TEST_WITH(setup, teardown, nothing_is_written_into_a_folder_of_others)
{
        CLEANUP(free_textp) char *elsewhere = xasprintf("%s/elsewhere", home);
        CLEANUP(free_textp) char *folder = xasprintf("%s/link", home);

        assert_int_equal(mkdir(elsewhere, 0700), 0);
        assert_int_equal(symlink(elsewhere, folder), 0);
        assert_int_equal(cache_dir_open(folder, false, "w", &why), -ENOTDIR);
        assert_int_equal(unlink(folder), 0);
        assert_int_equal(rmdir(elsewhere), 0); /* it is empty */
}

/* The same files as a copy that stays. */
static struct file_cache open_staged(const char *run, uint32_t node, bool full)
{
        struct file_cache s = FILE_CACHE_INIT;
        struct push_offer m = offer(run, node, "hello");
        struct buf b = BUF_INIT;

        m.label.use = PUSH_STAGE;
        m.label.name = xstrdup("/from");
        push_manifest_put(&b, &m.manifest);
        crypto_hash_sha256(m.label.sha, buf_data(&b), buf_len(&b));
        m.later = full ? 0 : (uint32_t)buf_len(&b);
        buf_finish(&b);
        if (!full)
                push_manifest_finish(&m.manifest);
        file_cache_offer(&s, &m);
        return s;
}

static void stage(const char *run)
{
        struct file_cache s = open_staged(run, 0, true);

        fetch(&s);
        has(&s, "d/twin", "hello");
        file_cache_close(&s, NULL);
}

static void remove_staged(void)
{
        const struct stage_order all = { .remove = 1, .limit = 1 };
        CLEANUP(staged_finish) struct staged left;

        stage_copies_run(&all, &left);
        assert_int_equal(left.n, 1);
        assert_string_equal(left.v[0].name, "/from");
        assert_int_equal(left.v[0].bytes, 10);
        assert_int_equal(left.v[0].files, 2);
        assert_true(left.v[0].removed);
}

TEST_WITH(setup, teardown, a_staged_folder_is_found_by_its_hash)
{
        struct file_cache s = open_staged("run", 0, false);
        struct stat st;

        assert_int_equal(file_cache_look(&s, false, &holder, &why), FILE_CACHE_UNKNOWN);
        file_cache_close(&s, NULL);
        stage("run");
        s = open_staged("run2", 3, false);
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_true(file_cache_complete(&s));
        assert_int_equal(file_cache_finish(&s, &why), 0);
        has(&s, "a", "hello");
        assert_int_equal(stat(s.tree, &st), 0);
        assert_int_equal(st.st_mode & 0222, 0);
        file_cache_close(&s, NULL);
        remove_staged();
}

TEST_WITH(setup, teardown, a_staged_folder_in_use_is_not_removed)
{
        const struct stage_order all = { .remove = 1, .limit = 1, .max_age_s = 1 };
        struct file_cache s;
        struct staged left;

        stage("run");
        s = open_staged("run2", 0, false);
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        stage_copies_run(&all, &left);
        assert_true(left.n == 1 && left.v[0].in_use && !left.v[0].removed);
        staged_finish(&left);
        has(&s, "a", "hello");
        file_cache_close(&s, NULL);
        remove_staged();
}

TEST_WITH(setup, teardown, nodes_of_a_shared_folder_do_not_see_each_other_as_users)
{
        const struct stage_order list = { 0 };
        struct staged copies;

        stage("run");
        looks_of_others = 1;
        stage_copies_run(&list, &copies);
        assert_int_equal(looks_of_others, 0);
        assert_true(copies.n == 1 && !copies.v[0].in_use);
        staged_finish(&copies);
        remove_staged();
}

/* As a service would that removes from /tmp what nobody has read for ten days. */
static void lose_a_file(void)
{
        CLEANUP(free_textp) char *root = cache_dir(0);
        struct file_cache s = open_staged("look", 0, false);
        CLEANUP(free_textp) char *note = xasprintf("%s/%s.keep", root, s.id);
        CLEANUP(free_textp) char *folder = xasprintf("%s/%s/d", root, s.id);
        CLEANUP(free_textp) char *twin = xasprintf("%s/twin", folder);

        write_file(note, "1 10 2 0 1000 /from"); /* last looked at in 1970 */
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(unlink(twin), 0);
        file_cache_close(&s, NULL);
}

TEST_WITH(setup, teardown, a_staged_folder_that_has_lost_a_file_is_made_whole)
{
        struct file_cache s;

        stage("run");
        lose_a_file();
        s = open_staged("run2", 0, false);
        assert_int_equal(file_cache_look(&s, false, &holder, &why), FILE_CACHE_UNKNOWN);
        file_cache_close(&s, NULL);
        s = open_staged("run2", 0, true);
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_true(file_cache_complete(&s)); /* the content is there under its other name */
        assert_int_equal(file_cache_finish(&s, &why), 0);
        has(&s, "d/twin", "hello");
        file_cache_close(&s, NULL);
        s = open_staged("run3", 0, false);
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        has(&s, "d/twin", "hello");
        file_cache_close(&s, NULL);
        remove_staged();
}

/* Writes a file as ranks of root can. */
static void write_in_copy(const char *name)
{
        CLEANUP(free_textp) char *root = cache_dir(0);
        struct file_cache s = open_staged("look", 0, false);
        CLEANUP(free_textp) char *folder = xasprintf("%s/%s/d", root, s.id);
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", folder, name);

        assert_int_equal(chmod(folder, 0700), 0);
        write_file(path, "");
        file_cache_close(&s, NULL);
}

static void assert_whole(const char *run)
{
        struct file_cache s = open_staged(run, 0, false);

        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        has(&s, "a", "hello");
        has(&s, "d/twin", "hello");
        file_cache_close(&s, NULL);
}

TEST_WITH(setup, teardown, a_copy_with_files_of_ranks_stays_whole)
{
        const struct stage_order all = { .remove = 1, .limit = 1 };
        CLEANUP(free_textp) char *root = cache_dir(0);
        CLEANUP(free_textp) char *path = NULL;
        struct staged left;

        stage("run");
        write_in_copy("result");
        stage_copies_run(&all, &left);
        assert_true(left.n == 1 && !left.v[0].removed);
        path = xasprintf("%s/d/result", left.v[0].folder);
        staged_finish(&left);
        assert_whole("run2");
        assert_int_equal(unlink(path), 0);
        remove_staged();
}

TEST_WITH(setup, teardown, a_copy_goes_with_compiled_python_of_ranks)
{
        stage("run");
        write_in_copy("twin.cpython-311.pyc");
        remove_staged();
}

/* Twice, since files of ranks stay hidden in place of the first. */
TEST_WITH(setup, teardown, a_copy_with_files_of_ranks_is_replaced)
{
        CLEANUP(free_textp) char *root = cache_dir(0);

        stage("run");
        for (int i = 0; i < 2; i++) {
                write_in_copy("result");
                lose_a_file();
                stage("run2");
                assert_whole("run3");
        }
        for (int i = 0; i < 2; i++) {
                struct file_cache s = open_staged("look", 0, false);
                CLEANUP(free_textp)
                char *hidden = xasprintf("%s/.gone.%s.%d/d/result", root, s.id, i);

                assert_int_equal(unlink(hidden), 0);
                file_cache_close(&s, NULL);
        }
        remove_staged();
}

TEST_WITH(setup, teardown, the_place_is_locked_while_it_is_used)
{
        struct file_cache s;
        int fd;

        stage("run");
        s = open_staged("run2", 0, false);
        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        fd = open(s.root, O_RDONLY | O_DIRECTORY);
        assert_true(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0);
        file_cache_close(&s, NULL);
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
        close(fd);
        remove_staged();
}

/* The agent and its guard were killed, so that nobody has cleaned up. */
TEST_WITH(setup, teardown, an_unfinished_folder_goes_with_the_next_start)
{
        struct file_cache s = open_staged("run", 0, true);

        assert_int_equal(file_cache_look(&s, false, &holder, &why), 0);
        assert_int_equal(put(&s, 0, "he"), 0);
        s.lock = fd_close(s.lock); /* as the kernel would */
        s.owner = fd_close(s.owner);
        assert_int_equal(access(s.tree, F_OK), 0);
        stage("run2");
        assert_int_not_equal(access(s.tree, F_OK), 0);
        assert_int_not_equal(access(s.temp, F_OK), 0);
        assert_int_not_equal(access(s.claim, F_OK), 0);
        remove_staged();
        file_cache_close(&s, NULL);
}

TEST_WITH(setup, teardown, another_python_is_told_and_the_same_is_read_once)
{
        static const char text[] = "a Python";
        CLEANUP(free_textp) char *path = xasprintf("%s/python", home);
        CLEANUP(free_textp) char *note = xasprintf("%s/id.python", home);
        struct push_python python = { .path = path, .size = strlen(text) };

        write_file(path, text);
        crypto_hash_sha256(python.sha, (const unsigned char *)text, strlen(text));
        assert_int_equal(stage_check_python(&python, home, "id", &why), 0);
        python.sha[0] ^= 1; /* is not compared any more */
        assert_int_equal(stage_check_python(&python, home, "id", &why), 0);
        assert_int_equal(stage_check_python(&python, NULL, NULL, &why), -ELIBBAD);
        assert_string_equal(why.folder, path);
        python.size++;
        assert_int_equal(stage_check_python(&python, home, "id", &why), -ELIBBAD);
        unlink(path);
        assert_int_equal(stage_check_python(&python, home, "id", &why), -ENOPKG);
        unlink(note);
}
