/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair test: the node's part of the tests between nodes (`hnlaunch check`): takes MEASURE
 *
 * Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "agent/core/uplink.h"
#include "wire/frame.h"

struct pair_test;

/* @up gets the answers, and is borrowed. */
struct pair_test *pair_test_create(uv_loop_t *loop, struct uplink *up);
/* Takes an order; @test is the pair_test. */
void pair_test_on_measure(void *test, const struct frame *f);
/* Ends a test. The loop must turn before pair_test_destroy(). */
void pair_test_close(struct pair_test *t);
void pair_test_destroy(struct pair_test *t);
