/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unit.h"

/* Of a library: linked unless the file of the tests has a main() of its own. */
int main(void)
{
        return unit_run(NULL, NULL);
}
