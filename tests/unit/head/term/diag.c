/* SPDX-License-Identifier: Apache-2.0 */
#include "head/term/diag.h"

#include "base/memory.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* Prints and empties @d; malloc'ed. */
static char *printed(struct diags *d, bool color)
{
        char *text = diags_text(d, color);

        diags_finish(d);
        return text;
}

static void assert_prints(struct diags *d, const char *want)
{
        CLEANUP(free_textp) char *got = printed(d, false);

        assert_string_equal(got, want);
}

TEST(every_part_has_its_place)
{
        struct diags diags = DIAGS_INIT;
        struct diag *d = diag_add(&diags, 110, 65, "unknown key `%s`", "slot");

        diag_place(d, "%s:%d:%d", "hosts.txt", 3, 8);
        diag_source(d, 3, "gpu003 slot=8", 8, 4, '^', "did you mean `slots`?");
        diag_note(d, "a note");
        diag_help(d, "a help\nof two lines");
        assert_prints(&diags, "error[HN110]: unknown key `slot`\n"
                              "  --> hosts.txt:3:8\n"
                              "   |\n"
                              " 3 | gpu003 slot=8\n"
                              "   |        ^^^^ did you mean `slots`?\n"
                              "   |\n"
                              "   = note: a note\n"
                              "   = help: a help\n"
                              "           of two lines\n");
}

TEST(rows_on_the_screen_are_left_out_there)
{
        struct diags diags = DIAGS_INIT;
        struct diag *d = diag_add(&diags, 502, 0, "rank 3 exited with code 7");
        char *text;
        size_t len;
        FILE *f = open_memstream(&text, &len);

        assert_non_null(f);
        diag_place(d, "rank 3");
        diag_row_on_screen(d, "words of %s", "rank 3");
        diag_note(d, "a note");
        diags_print_on_screen(&diags, f, false);
        fclose(f);
        assert_string_equal(text, "error[HN502]: rank 3 exited with code 7\n"
                                  "   --> rank 3\n"
                                  "    |\n"
                                  "    = note: a note\n");
        free(text);
        assert_prints(&diags, "error[HN502]: rank 3 exited with code 7\n"
                              "   --> rank 3\n"
                              "    |\n"
                              "    | words of rank 3\n"
                              "    |\n"
                              "    = note: a note\n");
}

TEST(rows_stand_between_bars)
{
        struct diags diags = DIAGS_INIT;
        struct diag *d = diag_add(&diags, 301, 69, "40 ranks wanted, 32 slots available");

        diag_row(d, "-n 40           command line");
        diag_row(d, "4 × slots=8     hosts.txt:1-4");
        diag_help(d, "-n 32, add a host, or --oversubscribe");
        assert_prints(&diags, "error[HN301]: 40 ranks wanted, 32 slots available\n"
                              "    |\n"
                              "    | -n 40           command line\n"
                              "    | 4 × slots=8     hosts.txt:1-4\n"
                              "    |\n"
                              "    = help: -n 32, add a host, or --oversubscribe\n");
}

TEST(bars_of_the_caller_are_not_doubled)
{
        struct diags diags = DIAGS_INIT;
        struct diag *d = diag_add(&diags, 601, 69, "fact");

        diag_place(d, "gpu044");
        diag_row(d, "%s", "");
        diag_row(d, "one\ntwo");
        diag_row(d, "%s", "");
        diag_note(d, "n");
        assert_prints(&diags, "error[HN601]: fact\n"
                              "   --> gpu044\n"
                              "    |\n"
                              "    | one\n"
                              "    | two\n"
                              "    |\n"
                              "    = note: n\n");
}

TEST(the_gutter_is_as_wide_as_the_largest_number)
{
        struct diags diags = DIAGS_INIT;
        struct diag *d = diag_add(&diags, 114, 65, "a has two slot counts");

        diag_place(d, "h:1234:1");
        diag_source(d, 9, "a slots=8", 1, 1, '-', "first given here");
        diag_source(d, 1234, "a slots=4", 1, 1, '^', "and again here");
        assert_prints(&diags, "error[HN114]: a has two slot counts\n"
                              "     --> h:1234:1\n"
                              "      |\n"
                              "    9 | a slots=8\n"
                              "      | - first given here\n"
                              " 1234 | a slots=4\n"
                              "      | ^ and again here\n");
}

TEST(two_places_of_one_line_share_it)
{
        struct diags diags = DIAGS_INIT;
        struct diag *d = diag_add(&diags, 119, 65, "fact");

        diag_source(d, 0, "a b", 1, 1, '-', NULL);
        diag_source(d, 0, "a b", 3, 1, '^', NULL);
        assert_prints(&diags, "error[HN119]: fact\n"
                              "   |\n"
                              "   | a b\n"
                              "   | -\n"
                              "   |   ^\n");
}

TEST(terminal_controls_are_shown_escaped)
{
        struct diags diags = DIAGS_INIT;
        struct diag *d = diag_add(&diags, 112, 65, "a\033[31mb\nc");

        diag_place(d, "x\ny");
        diag_source(d, 1, "\t\033\xff\xc3\xa4\xe2\x80\xaez!", 9, 1, '^', "\a");
        diag_row(d, "\x7f\r\xc2\x9b");
        assert_prints(&diags, "error[HN112]: a\\x1b[31mb\\x0ac\n"
                              "  --> x\\x0ay\n"
                              "   |\n"
                              " 1 |     \\x1b\\xff\xc3\xa4<U+202E>z!\n"
                              "   |                      ^ \\x07\n"
                              "   | \\x7f\\x0d<U+009B>\n");
}

TEST(a_long_line_is_shown_around_its_mark)
{
        struct diags diags = DIAGS_INIT;
        char line[1001], want[1200];

        memset(line, 'x', 1000);
        line[1000] = '\0';
        line[500] = '!';
        diag_source(diag_add(&diags, 1, 65, "f"), 7, line, 501, 900, '^', NULL);
        snprintf(want, sizeof(want),
                 "error[HN001]: f\n   |\n 7 | ...%.80s!%.79s...\n   | %83s"
                 "^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
                 "^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n",
                 line, line, "");
        assert_prints(&diags, want);
}

TEST(a_mark_behind_the_end_is_one_caret)
{
        struct diags diags = DIAGS_INIT;

        diag_source(diag_add(&diags, 1, 65, "f"), 7, "ab", 99, 5, '^', NULL);
        assert_prints(&diags, "error[HN001]: f\n   |\n 7 | ab\n   |   ^\n");
}

TEST(warnings_are_no_errors)
{
        struct diags diags = DIAGS_INIT;
        CLEANUP(free_textp) char *text = NULL;

        diag_help(diag_warn(&diags, 305, "careful"), "slow down");
        assert_int_equal(diags_errors(&diags), 0);
        assert_null(diags_first_error(&diags));
        diag_add(&diags, 301, 69, "stop");
        diag_add(&diags, 302, 64, "more");
        assert_int_equal(diags_errors(&diags), 2);
        assert_int_equal(diags_first_error(&diags)->exit, 69);
        text = printed(&diags, true);
        assert_string_equal(text, "\033[1;33mwarning\033[0m[HN305]: careful\n"
                                  "    = \033[36mhelp\033[0m: slow down\n\n"
                                  "\033[1;31merror\033[0m[HN301]: stop\n\n"
                                  "\033[1;31merror\033[0m[HN302]: more\n\n");
}

TEST(a_diag_that_is_not_there_takes_everything)
{
        diag_place(NULL, "p");
        diag_source(NULL, 1, "s", 1, 1, '^', NULL);
        diag_row(NULL, "r");
        diag_note(NULL, "n");
        diag_help(NULL, "h");
}

TEST(the_nearest_word_is_suggested)
{
        static const char *const words[] = { "slots", "gpus", "port", "user", "gpu044" };
        static const struct {
                const char *word, *near;
        } cases[] = {
                { "slot", "slots" },   { "Slots", "slots" }, { "SLTOS", "slots" },
                { "slost", "slots" },  { "prot", "port" },   { "gpu44", "gpu044" },
                { "xyz", NULL },       { "us", NULL },       { "", NULL },
                { "usre", "user" },    { "gpus", "gpus" },   { "slooots", "slots" },
                { "slooooots", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *near = diag_did_you_mean(cases[i].word, words, ARRAY_SIZE(words));

                if (cases[i].near)
                        assert_string_equal(near ? near : cases[i].word, cases[i].near);
                else
                        assert_null(near);
        }
        assert_null(diag_did_you_mean("slots", NULL, 0));
}
