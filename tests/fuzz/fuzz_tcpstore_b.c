/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of PyTorch 2.1: a command comes in one piece.
 */
#include "fuzz_tcpstore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        return fuzz_tcpstore(data, size, 1 << 20);
}
