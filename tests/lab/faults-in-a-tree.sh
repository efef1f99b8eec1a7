#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Rows of fault-matrix.sh with four nodes in a chain: node 2, which is hit, carries 3 and 4.
TREE=1 ONLY=${ONLY-'* @(starting|running|stopping) * 2'} exec bash "$(dirname "$0")/fault-matrix.sh"
