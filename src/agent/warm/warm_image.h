/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm_image: interpreter.py
 */
#pragma once

#include "agent/core/carried_image.h"

extern const struct carried_image warm_image;
