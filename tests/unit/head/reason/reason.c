/* SPDX-License-Identifier: Apache-2.0 */
#include "head/reason/reason.h"
#include "base/memory.h"

#include "lib/unit.h"

enum { ABORTED = 128 + 6, SEGFAULT = 128 + 11 };

static void expect(const char *words, int code, enum reason_source source, const char *text)
{
        struct reason r;

        reason_find(&r, words, code);
        assert_string_equal(r.text, text);
        assert_int_equal(r.source, source);
}

static void known(const char *words, int code, const char *text)
{
        expect(words, code, REASON_KNOWN, text);
}

static void line(const char *words, int code, const char *text)
{
        expect(words, code, REASON_LINE, text);
}

#define HEAD      "Traceback (most recent call last):\n"
#define FRAME     "  File \"train.py\", line 7, in <module>\n    load()\n    ~~~~^^\n"
#define TRACEBACK HEAD FRAME
#define DURING    "\nDuring handling of the above exception, another exception occurred:\n\n"
#define BECAUSE   "\nThe above exception was the direct cause of the following exception:\n\n"

TEST(python_ends_with_an_exception)
{
        known(TRACEBACK "ValueError: no shard\n", 1, "ValueError: no shard");
        known(TRACEBACK "mod.f.<locals>.MyError: no shard\n", 1,
              "mod.f.<locals>.MyError: no shard");
        known(TRACEBACK "ValueError: one\ntwo\nthree\n", 1, "ValueError: one");
        known(TRACEBACK "ValueError: noted\na note\n", 1, "ValueError: noted");
        known(TRACEBACK "hydra.errors.X: Error in call to 'f':\nRuntimeError('no file')\n", 1,
              "hydra.errors.X: Error in call to 'f': RuntimeError('no file')");
        known("  File \"t.py\", line 1\n    def (\n        ^\nSyntaxError: invalid syntax\n", 1,
              "SyntaxError: invalid syntax");
        /* The head is lost with the oldest bytes. */
        known("ain.py\", line 3, in f\n    g()\n" FRAME "KeyError: 'x'\n", 42, "KeyError: 'x'");
        known("[rank3]: " HEAD "[rank3]:   File \"t.py\", line 1, in <module>\n[rank3]:     f()\n"
              "[rank3]: RuntimeError: of PyTorch\n[rank3]:[W1120 10:00:00.123 ProcessGroupNCCL.cpp:"
              "1250] Warning: WARNING: process group has NOT been destroyed before we destruct\n",
              1, "RuntimeError: of PyTorch");
        known("(RayTrainWorker pid=17, ip=10.0.0.1) " HEAD "(RayTrainWorker pid=17, ip=10.0.0.1)   "
              "File \"t.py\", line 1, in f\n(RayTrainWorker pid=17, ip=10.0.0.1) KeyError: 'a'\n",
              1, "KeyError: 'a'");
        known(HEAD "  File \033[35m\"<string>\"\033[0m, line \033[35m1\033[0m, in \033[35m<module>"
                   "\033[0m\n    raise\n\033[1;35mValueError\033[0m: \033[35ma\033[0m\n",
              1, "ValueError: a");
        known("\033[31m╭─\033[0m\033[31m───\033[0m\033[31m \033[0m\033[1;31mTraceback (most recent "
              "call last)\033[0m\033[31m ───╮\033[0m\n│ t.py:3 in <module>  │\n│ ❱ 3 raise │\n"
              "╰──────╯\n\033[1;91mValueError: \033[0mno shard\n",
              1, "ValueError: no shard");
}

TEST(lines_behind_an_exception_hide_nothing)
{
        known(TRACEBACK
              "ValueError: no shard\n/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: "
              "UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to "
              "clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '\n",
              42, "ValueError: no shard");
        known(TRACEBACK "ValueError: no shard\nwandb: \nwandb: Run history: loss 1\n2026-11-20 "
                        "10:00:00,123 INFO upload done\nINFO:root:bye\n[W1120 10:00:00.123 "
                        "socket.cpp:12] Warning: slow\n",
              42, "ValueError: no shard");
        known(TRACEBACK "ValueError: no shard\nupload done\n", 1, "ValueError: no shard");
        line(TRACEBACK "ValueError: tried again\nepoch 1\nno more data\n", 3, "no more data");
        line("no shard 12\nwandb: Synced 5 files\n", 3, "no shard 12");
        line("no shard 12\nwandb: ERROR disk full\n", 3, "wandb: ERROR disk full");
        line("epoch 1\nWARNING: the disk is full\n", 3, "WARNING: the disk is full");
}

TEST(of_a_chain_the_exception_that_ended_the_program_counts)
{
        known(TRACEBACK "KeyError: 'a'\n" DURING TRACEBACK "RuntimeError: no file\n", 1,
              "RuntimeError: no file");
        known(TRACEBACK "KeyError: 'a'\n" BECAUSE TRACEBACK "RuntimeError: no file\n", 1,
              "RuntimeError: no file, caused by KeyError: 'a'");
        known("multiprocessing.pool.RemoteTraceback: \n\"\"\"\n" TRACEBACK
              "ValueError: in 2\n\"\"\"\n" BECAUSE TRACEBACK "ValueError: in 2\n",
              1, "ValueError: in 2");
        /* An echo while it is handled, but not once the program has gone on. */
        known(TRACEBACK "ValueError: no label\n" DURING TRACEBACK
                        "RuntimeError: Connection closed by peer [192.0.2.7]:4711\n",
              1, "ValueError: no label");
        known(TRACEBACK "ValueError: retried\nepoch 1\n" TRACEBACK
                        "RuntimeError: Connection closed by peer [192.0.2.7]:4711\n",
              1, "RuntimeError: Connection closed by peer [192.0.2.7]:4711");
        known(TRACEBACK "RuntimeError: Caught KeyError in DataLoader worker process 0.\nOriginal "
                        "Traceback (most recent call last):\n" FRAME "KeyError: 'x'\n",
              1, "KeyError: 'x'");
        known(TRACEBACK "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 "
                        "terminated with the following error:\n" TRACEBACK "ValueError: inner\n",
              1, "ValueError: inner");
}

TEST(of_a_group_the_first_exception_counts)
{
        known("  + Exception Group " HEAD
              "  |   File \"g.py\", line 6, in <module>\n  |     raise\n"
              "  | ExceptionGroup: many (2 sub-exceptions)\n  +-+---------------- 1 "
              "----------------\n"
              "    | ExceptionGroup: nested (1 sub-exception)\n"
              "    +-+---------------- 1 ----------------\n      | " HEAD
              "      |   File \"g.py\", line 4, in <module>\n      |     try: a()\n"
              "      |          ^^^\n      | ValueError: inner a\n"
              "      +------------------------------------\n"
              "    +---------------- 2 ----------------\n    | KeyError: 'b'\n"
              "    +------------------------------------\n",
              1, "ValueError: inner a");
        known("  + Exception Group " HEAD "  |   File \"g.py\", line 6, in <module>\n"
              "  | ExceptionGroup: cut (1 sub-exception)\n",
              1, "ExceptionGroup: cut (1 sub-exception)");
}

TEST(exceptions_that_end_nothing_are_weaker)
{
        known(TRACEBACK
              "ValueError: main\nException in thread Thread-4 (_pin_memory_loop):\n" TRACEBACK
              "ConnectionResetError: [Errno 104] gone\n",
              1, "ValueError: main");
        known("Exception in thread Thread-1 (f):\n" TRACEBACK "KeyError: 'k'\n" TRACEBACK
              "ValueError: main\n",
              1, "ValueError: main");
        known("Exception in thread Thread-1 (f):\n" TRACEBACK "KeyError: 'k'\n", 1,
              "KeyError: 'k'");
        known(TRACEBACK
              "RuntimeError: main\nException ignored in atexit callback: <function f>\n" TRACEBACK
              "ZeroDivisionError: division by zero\n",
              42, "RuntimeError: main");
        known(TRACEBACK
              "RuntimeError: main\nException ignored in: <function D.__del__ at 0x7f>\n" TRACEBACK
              "KeyError: 'del'\nterminate called without an active exception\n",
              ABORTED, "RuntimeError: main");
        known("--- Logging error ---\n" TRACEBACK "TypeError: not all arguments converted\nCall "
              "stack:\n" FRAME "Message: 'x'\nArguments: (1,)\n" TRACEBACK "ValueError: main\n",
              1, "ValueError: main");
        line("no shard\nException ignored in: <function D.__del__ at 0x7f>\n" TRACEBACK
             "KeyError: 'del'\n",
             3, "no shard");
}

TEST(fatal_errors_of_python_have_their_place)
{
        known("Fatal Python error: Segmentation fault\n\nThread 0x00007f01 (most recent call "
              "first):\n"
              "  File \"/lib/threading.py\", line 300 in wait\n\nCurrent thread 0x00007f00 (most "
              "recent "
              "call first):\n  File \"/t/s.py\", line 3 in crash\n  File \"/t/s.py\", line 4 in "
              "<module>\n\nExtension modules: numpy.core._multiarray_umath, torch._C (total: 2)\n",
              SEGFAULT,
              "Fatal Python error: Segmentation fault: File \"/t/s.py\", line 3 in crash");
        known("Fatal Python error: Segmentation fault\n\nThread 0x0 (most recent call first):\n"
              "  File \"/t/other.py\", line 9 in serve\n\n"
              "Current thread 0x1 (most recent call first):\n"
              "  Garbage-collecting\n"
              "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n"
              "  File \"/v/lib/python3.11/site-packages/mesh/io.py\", line 4 in read\n"
              "  File \"/home/ada/train.py\", line 8 in load\n"
              "  File \"/home/ada/train.py\", line 20 in <module>\n",
              SEGFAULT,
              "Fatal Python error: Segmentation fault: File \"/home/ada/train.py\", line 8 in "
              "load");
        known("Fatal Python error: Segmentation fault\n\n"
              "Current thread 0x1 (most recent call first):\n"
              "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n"
              "  File \"/v/lib/python3.11/site-packages/mesh/io.py\", line 4 in read\n"
              "  File \"/v/bin/mesh\", line 8 in <module>\n",
              SEGFAULT,
              "Fatal Python error: Segmentation fault: File \"/v/lib/python3.11/site-packages/mesh/"
              "io.py\", line 4 in read");
        known("Fatal Python error: Segmentation fault\n\n"
              "Current thread 0x1 (most recent call first):\n  <no Python frame>\n\n"
              "Thread 0x0 (most recent call first):\n  File \"/t/other.py\", line 9 in serve\n",
              SEGFAULT, "Fatal Python error: Segmentation fault");
        known("malloc(): corrupted top size\nFatal Python error: Aborted\n\nCurrent thread 0x0 "
              "(most "
              "recent call first):\n  File \"/t/s.py\", line 3 in crash\n",
              ABORTED, "malloc(): corrupted top size");
        known("Fatal Python error: Aborted\n\nCurrent thread 0x0 (most recent call first):\n"
              "  <no Python frame>\n",
              ABORTED, "Fatal Python error: Aborted");
}

#define FRAME_OF_C "frame #6: clone + 0x44 (0x7f in /lib/libc.so.6)\n"

TEST(cpp_tells_what)
{
        known("terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: "
              "out "
              "of memory\nCUDA kernel errors might be asynchronously reported at some other API "
              "call, so the stacktrace below might be incorrect.\nFor debugging consider passing "
              "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side "
              "assertions.\n\nException raised from c10_cuda_check at x.cpp:44 (most recent call "
              "first):\n" FRAME_OF_C FRAME_OF_C FRAME_OF_C FRAME_OF_C FRAME_OF_C FRAME_OF_C "\n",
              ABORTED, "c10::Error: CUDA error: out of memory");
        known("terminate called after throwing an instance of 'std::runtime_error'\n  what():  "
              "one\n"
              "two\n",
              ABORTED, "std::runtime_error: one");
        known("terminate called after throwing an instance of 'int'\n", ABORTED,
              "terminate called after throwing an instance of 'int'");
        known("terminate called after throwing an instance of 'E'\nterminate called recursively\n  "
              "what():  late\n",
              ABORTED, "E: late");
        known("terminate called without an active exception\n", ABORTED,
              "terminate called without an active exception");
        /* A frame alone is no reason. */
        line("bad mesh\n" FRAME_OF_C, ABORTED, "bad mesh");
        expect(FRAME_OF_C, ABORTED, REASON_LINE, "frame #6: clone + 0x44 (0x7f in /lib/libc.so.6)");
}

TEST(panics_have_their_text)
{
        known("\nthread 'main' (21) panicked at x.rs:1:81:\nindex out of bounds: the len is "
              "3\nnote: run "
              "with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
              101, "panicked at x.rs:1:81: index out of bounds: the len is 3");
        known("thread 'main' panicked at 'no rows', src/main.rs:2:5\nnote: run with "
              "`RUST_BACKTRACE=1` "
              "environment variable to display a backtrace\n",
              101, "panicked at 'no rows', src/main.rs:2:5");
        known("thread '<unnamed>' (3) panicked at y.rs:1:54:\nworker broke\nstack backtrace:\n   "
              "0: "
              "std::panicking::begin_panic::<&str>\n             at /rustc/5980/library/std:689:5\n"
              "\nthread 'main' (2) panicked at y.rs:1:91:\ncalled `Result::unwrap()` on an `Err` "
              "value: Any { .. }\nstack backtrace:\n   3: y::main\n",
              101, "panicked at y.rs:1:54: worker broke");
        known("panic: runtime error: invalid memory address or nil pointer dereference\n[signal "
              "SIGSEGV: "
              "segmentation violation code=0x1 addr=0x0 pc=0x45]\n\ngoroutine 1 [running]:\n"
              "main.main()\n\t/t/x.go:5 +0x1d\nexit status 2\n",
              2, "panic: runtime error: invalid memory address or nil pointer dereference");
        known("fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n"
              "main.main()\n\t/t/x.go:5 +0x1d\n",
              2, "fatal error: all goroutines are asleep - deadlock!");
        line("thread 'worker' panicked at w.rs:1:2:\nlost a page\nno more pages\n", 3,
             "no more pages");
}

TEST(other_languages_are_read)
{
        known("Exception in thread \"main\" java.lang.IllegalStateException: no settings\n\tat "
              "X.f(X.java:"
              "1)\n\tat X.main(X.java:1)\n",
              1, "Exception in thread \"main\" java.lang.IllegalStateException: no settings");
        known("Exception in thread \"main\" java.lang.IllegalStateException: no settings\n\tat "
              "X.f(X.java:"
              "1)\nCaused by: java.io.IOException: disk\n\tat X.g(X.java:2)\n\t... 1 more\n",
              1,
              "java.lang.IllegalStateException: no settings, caused by java.io.IOException: disk");
        known("/t/x.js:1\nfunction f(){ throw new TypeError(\"no rows\"); }\n              ^\n\n"
              "TypeError: no rows\n    at f (/t/x.js:1:21)\n    at node:internal/main:28:49 {\n  "
              "code: 'ENOENT'\n}\n\nNode.js v20.20.2\n",
              1, "TypeError: no rows");
        known("ERROR: LoadError: DomainError with -1.0:\nsqrt was called with a negative real "
              "argument\n"
              "Stacktrace:\n [1] throw_complex(f::Symbol, x::Float64)\n   @ Base.Math "
              "./math.jl:33\nin "
              "expression starting at /t/x.jl:3\n",
              1,
              "ERROR: LoadError: DomainError with -1.0: sqrt was called with a negative real "
              "argument");
        known("ERROR: no rows\nStacktrace:\n [1] error(s::String)\n   @ Base ./error.jl:35\n", 1,
              "ERROR: no rows");
        known("At line 3 of file x.f90 (unit = 10)\nFortran runtime error: Cannot open file "
              "'a'\n\nError "
              "termination. Backtrace:\n#0  0x7f70526218c2 in ???\n#6  0x56024ae0f2ab in "
              "main\n\tat "
              "/t/x.f90:5\n",
              2,
              "At line 3 of file x.f90 (unit = 10): Fortran runtime error: Cannot open file 'a'");
        known("ERROR STOP no convergence\n\nError termination. Backtrace:\n#0  0x7f in ???\n", 1,
              "ERROR STOP no convergence");
        known("Error in f(1) : \n  no rows in a table that is long\nCalls: f\nExecution halted\n",
              1, "Error in f(1) : no rows in a table that is long");
        line("no rows at x.pl line 1.\n\tmain::f(1) called at x.pl line 3\n", 255,
             "no rows at x.pl line 1.");
        line("x.rb:1:in `f': no rows (RuntimeError)\n\tfrom x.rb:3:in `<main>'\n", 1,
             "x.rb:1:in `f': no rows (RuntimeError)");
}

TEST(libraries_and_sanitizers_are_read)
{
        known("step 1\nmalloc(): corrupted top size\nsh: line 1: 12 Aborted (core dumped) ./a\n",
              ABORTED, "malloc(): corrupted top size");
        known("*** stack smashing detected ***: terminated\n", ABORTED,
              "*** stack smashing detected ***: terminated");
        known("as: as.c:5: main: Assertion `c==5' failed.\nlate word\n", ABORTED,
              "as: as.c:5: main: Assertion `c==5' failed.");
        known("./a: error while loading shared libraries: liba.so: cannot open shared object file: "
              "No "
              "such file or directory\n",
              127,
              "./a: error while loading shared libraries: liba.so: cannot open shared object file: "
              "No "
              "such file or directory");
        known("=====\n==31==ERROR: AddressSanitizer: heap-use-after-free on address 0x60 at pc "
              "0x5\nREAD of "
              "size 4\n    #0 0x5 in main as.c:5\n\nSUMMARY: AddressSanitizer: heap-use-after-free "
              "as.c:5 in main\nShadow bytes around the buggy address:\n  0x0c04: 00 00\n=>0x0c04: "
              "fa\n"
              "Shadow byte legend (one shadow byte represents 8 application bytes):\n  "
              "Addressable:  "
              "         00\n==31==ABORTING\n",
              1, "SUMMARY: AddressSanitizer: heap-use-after-free as.c:5 in main");
        known("==31==ERROR: AddressSanitizer: SEGV on unknown address 0x0\n    #0 0x5 in main\n", 1,
              "ERROR: AddressSanitizer: SEGV on unknown address 0x0");
        known("x.c:5:10: runtime error: signed integer overflow: 1 + 2\nSUMMARY: "
              "UndefinedBehaviorSanitizer: undefined-behavior x.c:5:10 in\n",
              1, "x.c:5:10: runtime error: signed integer overflow: 1 + 2");
}

#define DASHES "--------------------------------------------------------------------------\n"

TEST(mpi_is_read)
{
        known("Abort(872509702) on node 0 (rank 0 in comm 0): Fatal error in internal_Send: "
              "Invalid rank, "
              "error stack:\ninternal_Send(120): MPI_Send(buf=0x7f, count=1) "
              "failed\ninternal_Send(78)."
              ": Invalid rank has value 5 but must be nonnegative\n",
              6, "Fatal error in internal_Send: Invalid rank has value 5 but must be nonnegative");
        known("Abort(5) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, "
              "5) - "
              "process 1\n",
              5,
              "Abort(5) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, "
              "5)"
              " - process 1");
        known("[n1:123] *** An error occurred in MPI_Send\n[n1:123] *** reported by process "
              "[1,1]\n[n1:123]"
              " *** on communicator MPI_COMM_WORLD\n[n1:123] *** MPI_ERR_RANK: invalid "
              "rank\n[n1:123] "
              "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n[n1:123] "
              "***"
              "    and potentially your MPI job)\n",
              6, "An error occurred in MPI_Send: MPI_ERR_RANK: invalid rank");
        known(DASHES
              "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode "
              "5.\n\n"
              "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\nYou may or "
              "may not see output from other processes, depending on\nexactly when Open MPI "
              "kills them.\n" DASHES,
              5,
              "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD with errorcode 5.");
        known(TRACEBACK "ValueError: no mesh\n" DASHES
                        "MPI_ABORT was invoked on rank 1 in communicator "
                        "MPI_COMM_WORLD\nwith errorcode 1.\n" DASHES,
              5, "ValueError: no mesh");
        known(DASHES "There are not enough slots available in the system to satisfy the 4\nslots "
                     "that were "
                     "requested by the application:\n\n  ./a.out\n\nEither request fewer.\n" DASHES,
              1,
              "There are not enough slots available in the system to satisfy the 4 slots that were "
              "requested by the application:");
        line("no mesh\n" DASHES
             "Primary job  terminated normally, but 1 process returned\na non-zero exit "
             "code. Per user-direction, the job has been aborted.\n" DASHES,
             7, "no mesh");
        known("terminate called after throwing an instance of 'E'\n  what():  no mesh\n[n1:9] *** "
              "Process "
              "received signal ***\n[n1:9] Signal: Aborted (6)\n[n1:9] Signal code:  (-6)\n[n1:9] "
              "[ 0] "
              "/lib/libc.so.6(+0x3c)[0x7f]\n[n1:9] *** End of error message ***\n",
              ABORTED, "E: no mesh");
}

TEST(launchers_are_asked_last)
{
        static const char box[] =
                "E1120 10:00:00.123 5 torch/distributed/elastic/multiprocessing/api.py:869] failed "
                "(exitcode: 1) local_rank: 1 (pid: 12) of binary: python\n" TRACEBACK
                "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
                "\n=====\ntrain.py "
                "FAILED\n-----\nFailures:\n  <NO_OTHER_FAILURES>\n-----\nRoot Cause (first "
                "observed "
                "failure):\n[0]:\n  time      : 2026-11-20_10:00:00\n  host      : n1\n  rank      "
                ": 1 "
                "(local_rank: 1)\n  exitcode  : 1 (pid: 12)\n  error_file: <N/A>\n  traceback : To "
                "enable "
                "traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n=====\n";
        CLEANUP(free_textp)
        char *with = xasprintf("[rank1]: " HEAD "[rank1]:   File \"t.py\", line 1, in f\n[rank1]: "
                               "ValueError: no label\nepoch 2\n%s",
                               box);

        known(with, 1, "ValueError: no label");
        known(box, 1, "Root Cause (first observed failure): exitcode  : 1 (pid: 12)");
        known(TRACEBACK
              "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nRoot Cause "
              "(first observed failure):\n[0]:\n  exitcode  : 1 (pid: 12)\n  error_file: /e.json"
              "\n  traceback : " HEAD "    File \"t.py\", line 7, in main\n      raise\n  "
              "ValueError: no label\n  \n=====\n",
              1, "ValueError: no label");
        line("no mesh\nsrun: error: n1: task 1: Exited with exit code 7\n", 7, "no mesh");
        known("as: as.c:5: main: Assertion `c==5' failed.\nrun.sh: line 3: 4711 Aborted            "
              "     "
              "./as\nmake: *** [Makefile:2: run] Error 134\n",
              2, "as: as.c:5: main: Assertion `c==5' failed.");
        line("srun: error: n1: task 1: Exited with exit code 7\n", 7,
             "srun: error: n1: task 1: Exited with exit code 7");
}

TEST(without_a_known_form_the_last_line_tells)
{
        line("one\ntwo \n\n  \n", 7, "two");
        line(" 10%\r 20%\r\n", 7, "20%");
        line("node1:12:34 [0] NCCL WARN Cuda failure 'out of memory'\nnode1:12:34 [0] NCCL INFO "
             "x.cc:1 -> "
             "1\n",
             1, "node1:12:34 [0] NCCL WARN Cuda failure 'out of memory'");
        line("run.sh: line 3: foo: command not found\n", 127,
             "run.sh: line 3: foo: command not found");
        expect("\n", 7, REASON_NONE, "");
        expect("", 7, REASON_NONE, "");
}

TEST(of_a_long_reason_both_parts_are_seen)
{
        struct reason r;
        char *words = xasprintf(
                "terminate called after throwing an instance of '%0300d'\n  what():  %0800d\n", 1,
                2);

        reason_find(&r, words, ABORTED);
        assert_non_null(strstr(r.text, "...: 0000"));
        assert_in_range(strlen(r.text), 500, sizeof(r.text) - 1);
        free(words);
}

TEST(two_hundred_frames_hide_nothing)
{
        CLEANUP(free_textp) char *words = xcalloc(32768, 1);

        strcpy(words, "terminate called after throwing an instance of 'E'\n  what():  no mesh\n");
        for (int i = 0; i < 200; i++)
                strcat(words, FRAME_OF_C);
        known(words, ABORTED, "E: no mesh");
}
