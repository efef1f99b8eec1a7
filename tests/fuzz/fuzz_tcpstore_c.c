/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of PyTorch 2.2 to 2.4, which begin with VALIDATE.
 */
#include "fuzz_tcpstore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        return fuzz_tcpstore(data, size, size);
}
