#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints a C source with the bytes of a file as NAME[], declared in HEADER. usage: embed.sh FILE HEADER >SOURCE
set -eu
name=$(basename "$2" .h)
echo "#include \"$2\""
echo "const unsigned char $name[] = {"
od -An -v -tu1 "$1" | sed 's/  */,/g; s/^,//; s/$/,/'
echo '};'
echo "const size_t ${name}_size = sizeof($name);"
