/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token: random text for the names of runs and the passwords of endpoints
 */
#pragma once

#include <stddef.h>

/* Writes @len random characters and a NUL to @to, 5 bits each from the kernel's generator: small
 * letters and digits without 0, 1, l and o, which are easily misread. Exits with 125 when the
 * kernel has no generator. */
void token_make(char *to, size_t len);
