/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nvml_image: the program hnlaunch-nvml for this machine
 */
#pragma once

#include "agent/core/carried_image.h"

extern const struct carried_image nvml_image;
