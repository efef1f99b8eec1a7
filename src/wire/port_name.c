/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/port_name.h"

#include <string.h>

#include "base/memory.h"
#include "wire/env_names.h"

#define LOWER_CASE "abcdefghijklmnopqrstuvwxyz"

/* isalpha(3) would depend on the locale. Lower case only: the variable has the name in upper case,
 * so two names must not differ in case alone. */
bool port_name_is_valid(const char *name, size_t len)
{
        if (!len || len > PORT_NAME_MAX || !memchr(LOWER_CASE, *name, strlen(LOWER_CASE)))
                return false;
        for (size_t i = 0; i < len; i++)
                if (!memchr(LOWER_CASE "0123456789_", name[i], strlen(LOWER_CASE) + 11))
                        return false;
        return true;
}

char *port_name_variable(const char *name)
{
        char *variable = xasprintf("%s%s", HN_PORT_PREFIX, name);

        for (char *c = variable + strlen(HN_PORT_PREFIX); *c; c++)
                if (*c >= 'a' && *c <= 'z')
                        *c = (char)(*c - 'a' + 'A');
        return variable;
}
