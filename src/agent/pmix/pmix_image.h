/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_image: the program hnlaunch-pmix for this machine
 */
#pragma once

#include "agent/core/carried_image.h"

extern const struct carried_image pmix_image;
