/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format.h"

#include "lib/unit.h"

TEST(durations_are_short_words)
{
        static const struct {
                int64_t us;
                const char *text;
        } rows[] = { { 9000, "9ms" },
                     { 1100000, "1.1s" },
                     { 521000000, "8m41s" },
                     { 7260000000, "2h01m" } };
        char to[32];

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                format_duration(to, sizeof(to), rows[i].us);
                assert_string_equal(to, rows[i].text);
        }
}

TEST(round_spans_are_as_in_options)
{
        assert_string_equal(format_span(0).text, "0s");
        assert_string_equal(format_span(340).text, "340ms");
        assert_string_equal(format_span(12300).text, "12.3s");
        assert_string_equal(format_span(120000).text, "120s");
        assert_string_equal(format_span(123000).text, "123s");
        assert_string_equal(format_span(600000).text, "10m");
        assert_string_equal(format_span(630000).text, "10m30s");
        assert_string_equal(format_span(3600000).text, "1h00m");
}

TEST(sizes_are_readable)
{
        char text[32];

        format_size(text, sizeof(text), 1);
        assert_string_equal(text, "1 byte");
        format_size(text, sizeof(text), 999);
        assert_string_equal(text, "999 bytes");
        format_size(text, sizeof(text), 1500);
        assert_string_equal(text, "1.5 kB");
        format_size(text, sizeof(text), 123400000000);
        assert_string_equal(text, "123 GB");
}

TEST(times_of_day_have_milliseconds)
{
        char text[32];

        setenv("TZ", "XXX-2", 1);
        format_time_of_day(text, sizeof(text), INT64_C(1700000000007999));
        assert_string_equal(text, "00:13:20.007");
        unsetenv("TZ");
}
