/* SPDX-License-Identifier: Apache-2.0 */
#include "head/push/hash_memory.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "lib/files.h"
#include "lib/unit.h"

static char file[64];

static int setup(void **state)
{
        int r = make_scratch(state);

        snprintf(file, sizeof(file), "%s/hnlaunch/hashes", scratch);
        return r < 0 ? r : setenv("XDG_CACHE_HOME", scratch, 1);
}

static struct hash_key key_of(uint64_t ino)
{
        return (struct hash_key){ .dev = 1, .ino = ino, .size = 5, .mtime_ns = 7, .ctime_ns = 8 };
}

static bool knows(const struct hash_key *key)
{
        struct hash_memory *m = hash_memory_open();
        unsigned char sha[PUSH_SHA];
        bool stamped, found = hash_memory_find(m, key, sha, &stamped);

        if (found) {
                assert_int_equal(sha[0], (unsigned char)key->ino);
                assert_int_equal(stamped, key->ino & 1);
        }
        hash_memory_close(m);
        return found;
}

static void add(uint64_t first, uint64_t n)
{
        struct hash_memory *m = hash_memory_open();

        for (uint64_t i = first; i < first + n; i++) {
                const struct hash_key key = key_of(i);
                const unsigned char sha[PUSH_SHA] = { (unsigned char)i };

                hash_memory_add(m, &key, sha, i & 1);
        }
        hash_memory_close(m);
}

TEST_WITH(setup, remove_scratch, what_is_added_is_found_by_all_of_its_key)
{
        struct hash_key key = key_of(3);

        assert_false(knows(&key));
        add(0, 5000);
        add(5000, 10);
        for (uint64_t i = 0; i < 5010; i += 501) {
                key = key_of(i);
                assert_true(knows(&key));
        }
        key = key_of(5010);
        assert_false(knows(&key));
        for (int i = 0; i < 6; i++) {
                key = key_of(3);
                key.dev += i == 0;
                key.ino += i == 1 ? 6000 : 0;
                key.size += i == 2;
                key.mtime_ns += i == 3;
                key.ctime_ns += i == 4;
                key.stamp += i == 5;
                assert_false(knows(&key));
        }
}

TEST_WITH(setup, remove_scratch, a_file_that_has_just_changed_is_not_remembered)
{
        const unsigned char sha[PUSH_SHA] = { 3 };
        struct hash_memory *m = hash_memory_open();
        struct hash_key key = key_of(3);

        key.ctime_ns = (int64_t)time(NULL) * 1000000000;
        hash_memory_add(m, &key, sha, false);
        hash_memory_close(m);
        assert_false(knows(&key));
}

TEST_WITH(setup, remove_scratch, a_damaged_memory_is_empty)
{
        struct hash_key key = key_of(3);
        FILE *f;

        for (long at = 0; at < 4; at++) {
                add(0, 10);
                assert_true(knows(&key));
                f = fopen(file, "r+");
                assert_non_null(f);
                if (at < 3) {
                        fseek(f, at * 200, SEEK_SET);
                        fputc(0x55, f);
                } else {
                        assert_int_equal(ftruncate(fileno(f), 300), 0);
                }
                fclose(f);
                assert_false(knows(&key));
        }
        add(0, 10);
        assert_true(knows(&key));
}

TEST_WITH(setup, remove_scratch, no_place_is_no_error)
{
        struct hash_key key = key_of(3);

        setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
        add(0, 10);
        assert_false(knows(&key));
}
