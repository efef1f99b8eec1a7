# SPDX-License-Identifier: Apache-2.0
"""One rank of an MPI program fails; usage: ending_mpi.py VICTIM HOW

HOW  raise    an exception; run with -m mpi4py, or the rank waits in MPI_Finalize()
     late     an exception, and the exit code 42 two seconds later; the others abort, since they miss it
     leave    an exception that is printed, and exit code 0 without MPI_Finalize()
"""
import os
import sys
import time
import traceback

from mpi4py import MPI

world = MPI.COMM_WORLD
VICTIM, HOW = int(sys.argv[1]), sys.argv[2]
world.barrier()
if world.rank == VICTIM and HOW == "raise":
    raise ValueError("sample 17 has no label")
if world.rank == VICTIM:
    try:
        raise ValueError("sample 17 has no label")
    except ValueError:
        traceback.print_exc()
    open("gone", "w").close()
    if HOW == "leave":
        os._exit(0)
    time.sleep(2)
    os._exit(42)
if HOW == "late":
    while not os.path.exists("gone"):
        time.sleep(0.01)
    time.sleep(0.2)
    sys.stderr.write("Fatal error in internal_Recv: Communication error with rank %d\n" % VICTIM)
    sys.stderr.flush()
    time.sleep(0.2)
    world.Abort(5)
world.barrier()
