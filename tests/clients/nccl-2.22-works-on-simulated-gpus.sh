#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests with GPUs, with the code of NCCL 2.22 itself, on simulated ones: those that depend on its version. All of
# them run with 2.29.
exec sh "$(dirname "$0")/../gpu/run.sh" --fake 2.22 collectives during-setup ras-answers why-asks masks-stay train-learns
