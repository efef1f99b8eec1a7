/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nvml_image: the program hnlaunch-nvml for this machine, as bytes (src/embed.sh)
 */
#pragma once

#include <stddef.h>

extern const unsigned char nvml_image[];
extern const size_t nvml_image_size;
