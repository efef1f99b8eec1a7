/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks are read from what py-spy 0.4.1, eu-stack 0.188 and gdb 13.1 have printed. */
#include "head/why/stack_text.h"

#include "base/memory.h"
#include "lib/unit.h"

static const char py_spy[] = "Process 8004: /usr/bin/python3 g.py\n"
                             "Python v3.11.2 (/usr/bin/python3.11)\n"
                             "\n"
                             "Thread 8010 (idle): \"Thread-1 (serve)\"\n"
                             "    wait (threading.py:320)\n"
                             "    _bootstrap (threading.py:995)\n"
                             "Thread 8004 (idle): \"MainThread\"\n"
                             "    all_reduce (torch/distributed/distributed_c10d.py:1541)\n"
                             "    wrapper (torch/distributed/c10d_logger.py:47)\n"
                             "    train (/home/me/g.py:9)\n"
                             "    <lambda> (g (1).py:4)\n"
                             "    <module> (g.py:10)\n"
                             "    _run_module_code (<frozen runpy>:98)\n";

static const char eu_stack[] = "PID 6610 - process\n"
                               "TID 6610:\n"
                               "#0  0x00007fe2d15be2ad read\n"
                               "    ../sysdeps/unix/sysv/linux/read.c:26:10\n"
                               "#1  0x0000557a0e486183 load_batch\n"
                               "    /tmp/st/w.c:4:75\n"
                               "#2  0x00007f3976fa9b4e\n"
                               "#3  0x0000557a0e48618f main\n"
                               "    /tmp/st/w.c:5:16\n"
                               "#4  0x00007fe2d14ed24a __libc_start_call_main\n"
                               "    ../sysdeps/nptl/libc_start_call_main.h:58:16\n"
                               "#5  0x00007fe2d14ed305 __libc_start_main@@GLIBC_2.34\n"
                               "#6  0x0000557a0e486081 _start\n"
                               "TID 6611:\n"
                               "#0  0x00007fe2d15be2ad poll\n";

static const char gdb[] =
        "[Thread debugging using libthread_db enabled]\n"
        "0x00007fe2d15be2ad in __GI___libc_read (fd=3, nbytes=1) at ../sysdeps/linux/read.c:26\n"
        "\n"
        "Thread 2 (Thread 0x7fe2d14c3741 (LWP 6611) \"wc\"):\n"
        "#0  0x00007fe2d15be2ad in poll ()\n"
        "\n"
        "Thread 1 (Thread 0x7fe2d14c3740 (LWP 6610) \"wc\"):\n"
        "#0  0x00007fe2d15be2ad in __GI___libc_read (fd=3) at ../sysdeps/linux/read.c:26\n"
        "#1  0x0000557a0e486183 in load_batch (from=0x7ffe \"look at me\") at src/w.c:4\n"
        "#2  main () at w.c:5\n"
        "[Inferior 1 (process 6610) detached]\n";

static const char cpp[] =
        "TID 8006:\n"
        "#0  0x00007f3977bbff16 __futex_abstimed_wait_common\n"
        "#1  0x00007f3977bc25d8 pthread_cond_wait@@GLIBC_2.3.2\n"
        "#2  0x00007f39736c2843 c10d::Work::wait(std::chrono::duration<long, std::ratio<1l> >)\n"
        "#3  0x0000000000517fc3 _PyObject_MakeTpCall\n";

static void assert_line(const char *text, const char *want)
{
        CLEANUP(stack_finish) struct stack s;
        CLEANUP(free_textp) char *line = NULL;

        stack_parse(&s, text);
        line = stack_line(&s, 0, 20);
        assert_string_equal(line, want);
}

TEST(the_main_thread_is_read)
{
        assert_line(py_spy, "all_reduce (torch/distributed/distributed_c10d.py:1541) <- "
                            "wrapper (torch/distributed/c10d_logger.py:47) <- train (g.py:9) <- "
                            "<lambda> (g (1).py:4) <- <module> (g.py:10)");
        assert_line(eu_stack, "read <- load_batch (w.c:4) <- main (w.c:5)");
        assert_line(gdb, "read <- load_batch (src/w.c:4) <- main (w.c:5)");
        assert_line(cpp, "__futex_abstimed_wait_common <- pthread_cond_wait <- c10d::Work::wait");
        assert_line("TID 9:\n#0  0x1 __flock\n#1  0x2 take_lock\n    w.c:4:1\n#2  0x2 main\n"
                    "    w.c:9:3\n#3  0x3 __libc_start_main_impl\n",
                    "flock <- take_lock (w.c:4) <- main (w.c:9)");
        assert_line("#0  0x1 ___pthread_mutex_lock\n#1  0x2 __GI___poll\n#2  0x3 __libc_read\n"
                    "#3  0x4 __my_lock\n#4  0x5 _read\n",
                    "pthread_mutex_lock <- poll <- read <- __my_lock <- _read");
        assert_line("#0  0x1 clock_nanosleep@@GLIBC_2.17 - libc.so.6\n#1  0x2 - /usr/bin/sleep\n"
                    "#2  0x3 main - /home/ada/w\n    ../w.c:3:1\n#3  0x4 in ?? () from /lib/x.so\n",
                    "clock_nanosleep <- main (w.c:3) <- ??");
        /* py-spy of a program without the module threading; gdb of a static program. */
        assert_line("Thread 20142 (idle)\n    load_batch (lb.py:3)\nThread 20143 (idle)\n"
                    "    serve (lb.py:9)\n",
                    "load_batch (lb.py:3)");
        assert_line("Thread 2 (process 19644 \"st\"):\n#0  0x1 in poll ()\n"
                    "Thread 1 (process 19643 \"st\"):\n#0  0x2 in load_batch ()\n",
                    "load_batch");
}

static void assert_wait(const char *text, const char *operation, const char *library,
                        const char *caller)
{
        struct stack_wait w = { 0 };
        CLEANUP(stack_finish) struct stack s;
        char *where;

        stack_parse(&s, text);
        assert_int_equal(stack_find_wait(&s, &w), operation != NULL);
        if (operation) {
                where = stack_where(&s, w.frame + 1);
                assert_string_equal(w.operation, operation);
                assert_string_equal(w.library, library);
                assert_string_equal(where, caller);
                free(where);
        }
}

TEST(calls_that_wait_are_known)
{
        assert_wait(py_spy, "all_reduce", "torch.distributed", "train (g.py:9)");
        assert_wait(cpp, "c10d::Work::wait", "torch.distributed", "");
        assert_wait("#0  0x1 opal_progress\n#1  0x2 PMPI_Allreduce\n#2  0x3 step\n    /a/b.c:7:1\n",
                    "MPI_Allreduce", "MPI", "step (b.c:7)");
        assert_wait("#0  0x1 poll\n#1  0x2 hn_barrier\n#2  0x3 main\n", "hn_barrier", "libhnlaunch",
                    "main");
        assert_wait(eu_stack, NULL, NULL, NULL);
        assert_wait("", NULL, NULL, NULL);
}

TEST(the_place_is_the_programs)
{
        static const struct {
                const char *text, *where;
        } cases[] = {
                { eu_stack, "load_batch (w.c:4)" },
                { "#0  0x1 clock_nanosleep\n#1  0x2 usleep\n#2  0x3 fetch\n#3  0x4 main\n",
                  "fetch" },
                { "#0  0x1 poll - libc.so.6\n    ../sysdeps/unix/poll.c:29:1\n"
                  "#1  0x2 std::condition_variable::wait - /home/ada/w\n"
                  "    /usr/include/c++/12/condition_variable:102:1\n"
                  "#2  0x2 fetch - /home/ada/w\n    ../src/w.cc:9:1\n",
                  "fetch (src/w.cc:9)" },
                { "#0  0x1 read\n", "read" },
                { "#0  0x1 open64 - libc.so.6\n#1  0x2 _io_FileIO___init___impl - "
                  "/usr/bin/python3.11\n#2  0x3 run_eval_code_obj - /usr/bin/python3.11\n",
                  "open64" },
                { "", "" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                CLEANUP(stack_finish) struct stack s;
                CLEANUP(free_textp) char *where = NULL;

                stack_parse(&s, cases[i].text);
                where = stack_where(&s, 0);
                assert_string_equal(where, cases[i].where);
        }
}

/* Each text, cut anywhere and with any byte changed, is read without harm. */
TEST(damaged_texts_do_no_harm)
{
        static const char cut[] = "#0  0x00007f0000000001 (anonymous";
        static const char *const texts[] = { py_spy, eu_stack, gdb, cpp, cut };

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                size_t len = strlen(texts[i]);

                for (size_t at = 0; at < len; at++)
                        for (const char *byte = "\n (:#\xff"; *byte; byte++) {
                                CLEANUP(free_textp) char *text = malloc(len + 1);
                                struct stack_wait w;
                                CLEANUP(stack_finish) struct stack s;

                                memcpy(text, texts[i], len + 1);
                                text[at] = *byte;
                                text[len - at] = '\0';
                                stack_parse(&s, text);
                                stack_find_wait(&s, &w);
                                free(stack_where(&s, 0));
                                free(stack_crash(&s));
                        }
        }
}

static void assert_crash(const char *text, const char *want)
{
        CLEANUP(free_textp) char *got = NULL;
        CLEANUP(stack_finish) struct stack s;

        stack_parse(&s, text);
        got = stack_crash(&s);
        assert_string_equal(got, want);
}

TEST(a_crash_is_placed)
{
        assert_crash(
                "PID 9 - core\nTID 9:\n#0  0x1 exchange_halo\n    /home/ada/halo.c:88:9\n"
                "#1  0x2 step\n#2  0x3 main\n    /home/ada/solver.c:40:1\n"
                "#3  0x4 __libc_start_main@@GLIBC_2.34\n#4  0x5 _start\nTID 10:\n#0  0x6 poll\n",
                "exchange_halo (halo.c:88), called in main (solver.c:40)");
        assert_crash(
                "TID 9:\n#0  0x1 __strlen_evex\n    ../sysdeps/x86_64/strlen.S:77\n#1  0x2 load\n"
                "    w.c:4:1\n#2  0x3 main\n    w.c:9:1\n",
                "load (w.c:4) calling strlen, called in main (w.c:9)");
        assert_crash("TID 9:\n#0  0x1 __memmove_avx512_unaligned_erms - libc.so.6\n"
                     "    ../sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S:279\n"
                     "#1  0x2 copy - /home/ada/a b/w\n    ../src/w.c:4:1\n"
                     "#2  0x3 main - /home/ada/a b/w\n    ./w.c:9:1\n"
                     "#3  0x4 __libc_start_call_main - libc.so.6\n    ../sysdeps/nptl/x.h:58:16\n",
                     "copy (src/w.c:4) calling memmove, called in main (w.c:9)");
        assert_crash(
                "TID 9:\n#0  0x1 std::vector<int, std::allocator<int> >::at(unsigned long) - "
                "/home/ada/v\n    /usr/include/c++/12/bits/stl_vector.h:1153:2\n"
                "#1  0x1 Mesh<double>::operator()(int) - /home/ada/v\n    /home/ada/v.cc:7:1\n",
                "Mesh::operator() (v.cc:7) calling std::vector::at");
        assert_crash("#0  0x1 operator<< <char>(int) - /home/ada/v\n    v.cc:7:1\n",
                     "operator<<  (v.cc:7)");
        assert_crash("TID 9:\n#0  0x1 step - /home/ada/w\n    /home/ada/w.c:3:1\n"
                     "#1  0x2 msort_with_tmp - libc.so.6\n    ./stdlib/msort.c:64:9\n"
                     "#2  0x3 main - /home/ada/w\n    /home/ada/w.c:8:1\n",
                     "step (w.c:3), called in main (w.c:8)");
        assert_crash("TID 9:\n#0  0x1 __strlen_evex - libc.so.6\n#1  0x2 load - /home/ada/w\n"
                     "#2  0x3 main - /home/ada/w\n",
                     "load calling strlen, called in main");
        assert_crash("#0  0x1 in strlen () from /lib/x86_64-linux-gnu/libc.so.6\n"
                     "#1  0x2 in load (from=0x0) at ../src/w.c:4\n#2  main () at w.c:9\n",
                     "load (src/w.c:4) calling strlen, called in main (w.c:9)");
        assert_crash("#0  0x1 in strlen () from /lib/x86_64-linux-gnu/libc.so.6\n", "strlen");
        assert_crash("#0  0x1 in __pthread_kill_implementation ()\n#1  0x2 in raise () from "
                     "/lib/libc.so.6\n"
                     "#2  0x3 in abort ()\n#3  0x4 in main (n=1) at w.c:4\n",
                     "main (w.c:4)");
        assert_crash(
                "TID 9:\n#0  0x1 raise\n#1  0x2 faulthandler_fatal_error\n#2  0x3 __restore_rt\n"
                "#3  0x4 smooth\n#4  0x5 main\n#5  0x6 _start\n",
                "smooth, called in main");
        assert_crash("#0  load (n=1) at w.c:4\n4       n = *p;\n#0  load (n=1) at w.c:4\n",
                     "load (w.c:4)");
        assert_crash("#0  0x1 abort\n", "abort");
        assert_crash("", "");
}
