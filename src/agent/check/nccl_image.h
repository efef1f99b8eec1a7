/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nccl_image: the program hnlaunch-nccl for this machine
 */
#pragma once

#include "agent/core/carried_image.h"

extern const struct carried_image nccl_image;
