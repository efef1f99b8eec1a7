/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of PyTorch 1.9 to 2.0: the number of the first command comes alone.
 */
#include "fuzz_tcpstore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        return fuzz_tcpstore(data, size, 1);
}
