#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints a C source with the bytes of a program as pmix_image[]. usage: embed.sh PROGRAM >SOURCE
set -eu
echo '#include "agent/pmix/pmix_image.h"'
echo 'const unsigned char pmix_image[] = {'
od -An -v -tu1 "$1" | sed 's/  */,/g; s/^,//; s/$/,/'
echo '};'
echo 'const size_t pmix_image_size = sizeof(pmix_image);'
