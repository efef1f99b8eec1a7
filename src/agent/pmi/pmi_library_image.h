/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_library_image: libhnlaunch-pmi.so for this machine, as bytes (src/embed.sh)
 */
#pragma once

#include <stddef.h>

extern const unsigned char pmi_library_image[];
extern const size_t pmi_library_image_size;
