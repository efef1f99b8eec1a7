#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints a C source with a file, packed, as the carried_image that HEADER declares. usage: embed.sh FILE HEADER >SOURCE
set -eu
name=$(basename "$2" .h)
echo "#include \"$2\""
echo "static const unsigned char deflated[] = {"
# gzip's header without a name has 10 bytes; what follows it is as of RFC 1951.
gzip -9nc <"$1" | tail -c +11 | od -An -v -tu1 | sed 's/  */,/g; s/^,//; s/$/,/'
echo '};'
echo "const struct carried_image $name = { deflated, sizeof(deflated), $(wc -c <"$1") };"
