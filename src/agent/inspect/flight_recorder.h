/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight_recorder: orders dumps of PyTorch's flight recorder from living ranks
 *
 * The monitor thread of a rank's default group makes the FIFO PIPES<rank>.pipe, looks there about
 * once a second, and writes a dump to DUMPS<rank> when there is a byte (PyTorch 2.4 and newer;
 * ProcessGroupNCCL.cpp, FlightRecorder.cpp). Ranks may put anything there: links, devices and long
 * files are not read. A dump is removed after reading, or the end of the job would take the dump
 * for a sign of a failure.
 */
#pragma once

#include "agent/inspect/inspector.h"

/* Writes the DUMP messages to @to, at the latest @o->limit_ms from now. */
void flight_recorder_run(const struct inspect_order *o, const struct inspector_paths *paths,
                         int to);
