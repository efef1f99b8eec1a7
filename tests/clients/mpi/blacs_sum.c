/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums the numbers of all processes with BLACS, the communication of ScaLAPACK, which calls
 * MPI_Init() itself: this program names no function of MPI. Each process prints its number, the
 * count of all, and the sum.
 */
#include <stdio.h>

void Cblacs_pinfo(int *me, int *all);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cdgsum2d(int context, const char *scope, const char *topology, int m, int n, double *a,
              int lda, int row, int column);
void Cblacs_exit(int go_on);

int main(void)
{
        int me, all, context;
        double sum;

        Cblacs_pinfo(&me, &all);
        Cblacs_get(-1, 0, &context);
        Cblacs_gridinit(&context, "Row", 1, all);
        sum = me;
        Cdgsum2d(context, "All", " ", 1, 1, &sum, 1, -1, -1);
        printf("%d %d %.0f\n", me, all, sum);
        Cblacs_exit(0);
        return 0;
}
