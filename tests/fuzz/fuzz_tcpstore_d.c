/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of PyTorch 2.5 and later, which begin with VALIDATE and PING.
 */
#include "fuzz_tcpstore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        return fuzz_tcpstore(data, size, 0);
}
