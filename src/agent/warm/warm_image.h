/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm_image: interpreter.py, packed by gzip
 */
#pragma once

#include <stddef.h>

extern const unsigned char warm_image[];
extern const size_t warm_image_size;
