/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_image: the program hnlaunch-pmix for this machine, as bytes (src/embed.sh)
 */
#pragma once

#include <stddef.h>

extern const unsigned char pmix_image[];
extern const size_t pmix_image_size;
