/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 5 bits of a random byte choose one of 32 characters, so no value is more likely than another.
 * getrandom() without flags waits until the kernel's generator is seeded.
 */
#include "base/token.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/exit_code.h"

void token_make(char *to, size_t len)
{
        uint8_t bytes[32]; /* getrandom() gives up to 256 bytes in one piece */

        for (size_t i = 0; i < len; i++) {
                if (i % sizeof(bytes) == 0 && getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
                        fputs("hnlaunch: cannot get random bytes from the kernel  (exit 125)\n",
                              stderr);
                        _exit(EX_FAILED);
                }
                to[i] = "abcdefghijkmnpqrstuvwxyz23456789"[bytes[i % sizeof(bytes)] % 32];
        }
        to[len] = '\0';
}
