/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of OpenSSH: * and ?, no classes and no escapes. ssh_pattern_matches() keeps the place
 * of the last star and the text behind that star, so the time is at most the product of both
 * lengths. A list holds when a pattern matches and no negated pattern does.
 */
#include "head/ssh/files/ssh_pattern.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"

/* Without recursion: after a mismatch the last star takes another character. */
bool ssh_pattern_matches(const char *pattern, size_t pattern_len, const char *text, size_t len)
{
        const char *p = pattern, *p_end = pattern + pattern_len, *end = text + len;
        const char *star = NULL, *mark = NULL;

        while (text < end) {
                /* A star takes nothing at first, and more with each mismatch behind. */
                if (p < p_end && *p == '*') {
                        star = p++;
                        mark = text;
                } else if (p < p_end && (*p == '?' || *p == *text)) {
                        p++;
                        text++;
                } else if (star) {
                        p = star + 1;
                        text = ++mark;
                } else {
                        return false;
                }
        }
        while (p < p_end && *p == '*')
                p++;
        return p == p_end;
}

bool ssh_pattern_list_matches(const char *list, const char *text)
{
        bool found = false;

        for (size_t n; *list; list += n + (list[n] == ',')) {
                bool negated = *list == '!';

                n = strcspn(list, ",");
                if (!ssh_pattern_matches(list + negated, n - negated, text, strlen(text)))
                        continue;
                if (negated) /* excludes, whatever comes behind */
                        return false;
                found = true;
        }
        return found;
}

void ssh_name_lower(char *name)
{
        for (; *name; name++)
                *name = (char)tolower((unsigned char)*name);
}

bool ssh_name_list_matches(const char *list, const char *name)
{
        CLEANUP(free_textp) char *lower_list = xstrdup(list);
        CLEANUP(free_textp) char *lower_name = xstrdup(name);

        ssh_name_lower(lower_list);
        ssh_name_lower(lower_name);
        return ssh_pattern_list_matches(lower_list, lower_name);
}
