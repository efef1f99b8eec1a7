/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices: the GPUs that CUDA shows to this process, one a line: "INDEX UUID PCI-ADDRESS NAME"
 *
 * Asks the driver alone, so it is built without CUDA. Exits with 1 when there is no driver, with a
 * line about it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *driver;

static void *call(const char *name)
{
        void *symbol = dlsym(driver, name);

        if (symbol)
                return symbol;
        fprintf(stderr, "the NVIDIA driver has no %s\n", name);
        exit(1);
}

static void print_uuid(const unsigned char *uuid)
{
        printf("GPU-");
        for (int i = 0; i < 16; i++)
                printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

int main(void)
{
        int (*init)(unsigned), (*count)(int *), (*get)(int *, int);
        int (*uuid_of)(unsigned char[16], int), (*address_of)(char *, int, int);
        int (*name_of)(char *, int, int), n = 0, device, error;
        unsigned char uuid[16];
        char address[32], name[128];

        driver = dlopen("libcuda.so.1", RTLD_NOW);
        if (!driver)
                return fprintf(stderr, "no NVIDIA driver: %s\n", dlerror()), 1;
        *(void **)&init = call("cuInit");
        *(void **)&count = call("cuDeviceGetCount");
        *(void **)&get = call("cuDeviceGet");
        *(void **)&uuid_of = call("cuDeviceGetUuid");
        *(void **)&address_of = call("cuDeviceGetPCIBusId");
        *(void **)&name_of = call("cuDeviceGetName");
        error = init(0);
        if (error == 100) /* CUDA_ERROR_NO_DEVICE: CUDA_VISIBLE_DEVICES may say so */
                return 0;
        if (error != 0 || count(&n) != 0)
                return fprintf(stderr, "cuInit gives %d\n", error), 1;
        for (int i = 0; i < n; i++) {
                if (get(&device, i) || uuid_of(uuid, device) ||
                    address_of(address, (int)sizeof(address), device) ||
                    name_of(name, (int)sizeof(name), device))
                        return fprintf(stderr, "GPU %d does not answer\n", i), 1;
                printf("%d ", i);
                print_uuid(uuid);
                printf(" %s %s\n", address, name);
        }
        return 0;
}
