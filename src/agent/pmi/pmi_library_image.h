/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_library_image: libhnlaunch-pmi.so for this machine
 */
#pragma once

#include "agent/core/carried_image.h"

extern const struct carried_image pmi_library_image;
