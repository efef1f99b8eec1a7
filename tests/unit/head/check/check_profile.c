/* SPDX-License-Identifier: Apache-2.0 */
#include "head/check/check_profile.h"

#include <stdio.h>

#include "base/error_number.h"
#include "base/memory.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

static struct check_profile profile;
static struct diags diags;

static bool has_check(const char *name, bool *ret_fact)
{
        *ret_fact = strcmp(name, "net.peers") != 0;
        return !*ret_fact || !strcmp(name, "thp") || !strcmp(name, "gpu.driver");
}

static bool parse(const char *text)
{
        check_profile_finish(&profile);
        diags_finish(&diags);
        check_profile_init(&profile);
        return check_profile_parse(&profile, "site.ini", text, has_check, &diags);
}

static void assert_diag_has(const struct diags *d, const char *part)
{
        CLEANUP(free_textp) char *text = diags_text(d, false);

        if (!strstr(text, part))
                fail_msg("`%s` is missing in\n%s", part, text);
}

static void expect_error(const char *text, int id, int line, const char *fact)
{
        const struct diag *first;
        char place[32];

        assert_false(parse(text));
        first = diags_first_error(&diags);
        assert_non_null(first);
        assert_int_equal(first->id, id);
        snprintf(place, sizeof(place), "site.ini:%d:", line);
        assert_diag_has(&diags, fact);
        assert_diag_has(&diags, place);
}

TEST(limits_values_and_levels_are_read)
{
        assert_true(parse(""));
        assert_true(profile.limits[CHECK_SHM_PER_RANK] == 64 << 20);
        assert_true(profile.limits[CHECK_TMP_FREE] == 100e6);
        assert_true(parse("# of the site\n\n[limit]\nshm_per_rank = 256M\n  tmp_free=2 GB \r\n"
                          "files = 65536\nclock = 50ms\nib_errors = 0\n; more\n[expect]\n"
                          "gpu.driver = \"575.57*\"\n[check]\nthp = ignore\ngpu.driver = fail"));
        assert_true(profile.limits[CHECK_SHM_PER_RANK] == 256 << 20);
        assert_true(profile.limits[CHECK_TMP_FREE] == 2e9);
        assert_true(profile.limits[CHECK_FILES] == 65536);
        assert_true(profile.limits[CHECK_PROCESSES] == 4096);
        assert_true(profile.limits[CHECK_CLOCK] == 0.05);
        assert_true(profile.limits[CHECK_IB_ERRORS] == 0);
        assert_string_equal(strv_env_get(&profile.expected, "gpu.driver"), "575.57*");
        assert_string_equal(strv_env_get(&profile.moves, "thp"), "ignore");
        assert_string_equal(strv_env_get(&profile.moves, "gpu.driver"), "fail");
}

TEST(mistakes_are_told_with_their_place)
{
        expect_error("[limits]\n", HN_CONFIG_KEY, 1, "unknown section [limits]");
        expect_error("[limit]\nshm_per_rnk = 1G\n", HN_CONFIG_KEY, 2, "unknown key `shm_per_rnk`");
        assert_diag_has(&diags, "did you mean `shm_per_rank`?");
        expect_error("[limit]\nshm_per_rank = much\n", HN_CONFIG_VALUE, 2,
                     "shm_per_rank: `much` is no size");
        expect_error("[limit]\nshm_per_rank = 5 X\n", HN_CONFIG_VALUE, 2,
                     "shm_per_rank: `5 X` is no size");
        expect_error("[limit]\nfiles = 5M\n", HN_CONFIG_VALUE, 2, "files: `5M` is no number");
        expect_error("[limit]\nfiles = -5\n", HN_CONFIG_VALUE, 2, "files: `-5` is no number");
        expect_error("[limit]\nclock =\n", HN_CONFIG_VALUE, 2, "clock has no value");
        expect_error("[limit]\nclock = 5h\n", HN_CONFIG_VALUE, 2, "clock: `5h` is no time");
        expect_error("\n\nfiles = 5\n", HN_CONFIG_KEY, 3, "unknown key `files`");
        expect_error("[check]\nthp = maybe\n", HN_CONFIG_VALUE, 2,
                     "thp: `maybe` is not ignore, warn or fail");
        expect_error("[check]\nthq = warn\n", HN_CONFIG_KEY, 2, "unknown key `thq`");
        expect_error("[expect]\ngpu = 8\n", HN_CONFIG_KEY, 2, "unknown key `gpu`");
        expect_error("[expect]\n net.peers = 5 peers\n", HN_CONFIG_KEY, 2,
                     "cannot expect a value of net.peers");
        assert_diag_has(&diags, "site.ini:2:2");
        assert_true(parse("[check]\nnet.peers = warn\n"));
        expect_error("[expect]\ngpu.driver\n", HN_CONFIG_LINE, 2,
                     "expected key = value or [section]");
        assert_false(parse("[limit]\nfiles = x\nprocesses = y\n"));
        assert_int_equal(diags_errors(&diags), 2);
}

TEST(a_file_that_cannot_be_read_is_told)
{
        parse("");
        assert_false(check_profile_read(&profile, "/no/such/profile", has_check, &diags));
        assert_int_equal(diags_first_error(&diags)->id, HN_CONFIG_UNREADABLE);
        check_profile_finish(&profile);
        diags_finish(&diags);
}
