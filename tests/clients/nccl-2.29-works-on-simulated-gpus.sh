#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests with GPUs, with the code of NCCL 2.29 itself, on simulated ones.
exec sh "$(dirname "$0")/../gpu/run.sh" --fake 2.29
