/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first matching row counts, so exceptions to a row stand above it. Rows have the words printed
 * by the tools themselves. The text of a row without a reason must not begin any error message of a
 * program.
 */
#include "head/reason/reason_forms.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/macros.h"
#include "head/reason/reason_lines.h"

/* clang-format off */
#define NOISE(t)         { .text = t, .kind = LINE_NOISE }
#define NOISE_WITH(t)    { .text = t, .kind = LINE_NOISE, .make = ANYWHERE }
#define CHATTER(t)       { .text = t, .kind = LINE_CHATTER }
#define CHATTER_WITH(t)  { .text = t, .kind = LINE_CHATTER, .make = ANYWHERE }
#define LAUNCHER(t)      { .text = t, .kind = LINE_LAUNCHER }
#define LAUNCHER_WITH(t) { .text = t, .kind = LINE_LAUNCHER, .make = ANYWHERE }
#define HEAD(t, k)       { .text = t, .kind = k }
#define FATAL(t, e)      { .text = t, .kind = LINE_REASON, .ends = e }
#define WEAK(t, e)       { .text = t, .kind = LINE_WEAK, .ends = e }

static const struct reason_form forms[] = {
        /* C++ */
        { "terminate called after throwing an instance of '", NULL, LINE_REASON, END_SIGNAL, BEHIND | NAME, "what():", NULL },
        WEAK("terminate called without an active exception", END_SIGNAL),
        WEAK("terminate called recursively", END_SIGNAL),
        FATAL("libc++abi: terminating", END_SIGNAL),
        NOISE("Exception raised from "),
        NOISE("frame #"),
        NOISE("C++ CapturedTraceback:"),
        NOISE("CUDA kernel errors might be asynchronously reported"),
        NOISE("For debugging consider passing"),
        NOISE("Compile with `TORCH_USE_CUDA_DSA`"),
        NOISE("Search for `cuda"),
        NOISE("Device-side assertion tracking was not enabled"),

        /* Python */
        WEAK("Fatal Python error: _enter_buffered_busy", END_SIGNAL),
        WEAK("Fatal Python error: could not acquire lock", END_SIGNAL),
        { "Fatal Python error: Aborted", NULL, LINE_WEAK, END_SIGNAL, OWN, "File \"", "Current thread" },
        { "Fatal Python error: ", NULL, LINE_REASON, END_SIGNAL | END_1, OWN, "File \"", "Current thread" },
        FATAL("Timeout (0:", END_1),
        HEAD("Exception ignored in", LINE_IGNORED),
        HEAD("--- Logging error ---", LINE_IGNORED),
        HEAD("Call stack:", LINE_IGNORED),
        HEAD("Exception in thread Thread", LINE_THREAD),
        HEAD("Exception in threading.", LINE_THREAD),
        HEAD("Error in atexit._run_exitfuncs:", LINE_THREAD),
        HEAD("Task exception was never retrieved", LINE_THREAD),
        CHATTER("Message: "),
        CHATTER("Arguments: ("),
        CHATTER("During handling of the above exception"),
        CHATTER("The above exception was the direct cause"),
        CHATTER("Python runtime state: "),
        NOISE("  warnings.warn("),
        NOISE_WITH("Warning: resource_tracker: "),
        NOISE_WITH("process group has NOT been destroyed"),
        CHATTER_WITH("Warning: "),
        NOISE("  File \""),
        NOISE("Extension modules: "),
        NOISE("Current thread "),
        NOISE("Thread 0x"),
        NOISE("<no Python frame>"),
        NOISE("  <no Python frame>"),
        NOISE("  Binary file \""),

        /* Rust and Go */
        { "thread '", "panicked at ", LINE_REASON, END_101 | END_SIGNAL, FROM | UNFINISHED, NULL, NULL },
        FATAL("fatal runtime error: ", END_SIGNAL),
        NOISE("note: run with `RUST_BACKTRACE"),
        NOISE("note: Some details are omitted"),
        NOISE("stack backtrace:"),
        FATAL("panic: ", END_1 | END_2),
        FATAL("fatal error: ", END_2),
        FATAL("SIGSEGV: segmentation violation", END_2),
        NOISE("[signal SIG"),
        NOISE("goroutine "),
        NOISE("created by "),
        CHATTER("exit status "),

        /* Java, JavaScript, .NET */
        { "Exception in thread \"", NULL, LINE_REASON, END_1, BEHIND | LAST | NAME, "Caused by: ", NULL },
        FATAL("Unhandled exception. ", END_SIGNAL),
        NOISE("Caused by: "),
        NOISE("\tat "),
        NOISE("\t... "),
        NOISE("    at "),
        NOISE("   at "),
        NOISE("Node.js v"),
        NOISE("(Use `node "),

        /* Julia, R, Perl, Ruby, Lua, Haskell, OCaml, PHP */
        { "ERROR: LoadError: ", NULL, LINE_REASON, END_1, UNFINISHED | BEHIND | LAST, "caused by: ", NULL },
        NOISE("Stacktrace:"),
        NOISE("   @ "),
        NOISE("in expression starting at "),
        { "Error in ", ") :", LINE_REASON, END_1, UNFINISHED, NULL, NULL },
        NOISE("Calls: "),
        NOISE("Execution halted"),
        NOISE("\tfrom "),
        { "\t", " called at ", LINE_NOISE, 0, 0, NULL, NULL },
        NOISE("stack traceback:"),
        NOISE("Stack trace:"),
        NOISE("CallStack (from "),
        NOISE("  error, called at "),
        FATAL("Fatal error: exception ", END_2),
        NOISE("Raised at "),
        NOISE("Called from "),
        FATAL("PHP Fatal error: ", END_ANY),

        /* Fortran */
        { "At line ", " of file ", LINE_REASON, END_ANY, 0, "Fortran runtime error: ", NULL },
        FATAL("Fortran runtime error: ", END_ANY),
        FATAL("ERROR STOP", END_ANY),
        FATAL("forrtl: severe ", END_ANY),
        FATAL("fatal Fortran runtime error", END_ANY),
        WEAK("Program received signal SIG", END_SIGNAL),
        NOISE("Error termination. Backtrace:"),
        NOISE("Backtrace for this error:"),

        /* libraries of C, and the loader */
        { "*** ", " ***: terminated", LINE_REASON, END_SIGNAL, 0, NULL, NULL },
        FATAL("*** Error in `", END_SIGNAL),
        FATAL("malloc(): ", END_SIGNAL),
        FATAL("malloc_consolidate(): ", END_SIGNAL),
        FATAL("free(): ", END_SIGNAL),
        FATAL("realloc(): ", END_SIGNAL),
        FATAL("munmap_chunk(): ", END_SIGNAL),
        FATAL("mremap_chunk(): ", END_SIGNAL),
        FATAL("double free or corruption", END_SIGNAL),
        FATAL("corrupted size vs. prev_size", END_SIGNAL),
        FATAL("corrupted double-linked list", END_SIGNAL),
        FATAL("tcache_thread_shutdown(): ", END_SIGNAL),
        FATAL("Fatal glibc error: ", END_SIGNAL),
        { ": Assertion `", "' failed.", LINE_REASON, END_SIGNAL, ANYWHERE, NULL, NULL },
        FATAL("Assertion failed: ", END_SIGNAL),
        FATAL("Assertion failed in file ", END_ANY),
        { ": error while loading shared libraries: ", NULL, LINE_REASON, END_ANY, ANYWHERE, NULL, NULL },
        { ": symbol lookup error: ", NULL, LINE_REASON, END_ANY, ANYWHERE, NULL, NULL },
        { ": relocation error: ", NULL, LINE_REASON, END_ANY, ANYWHERE, NULL, NULL },
        { ": version `", "' not found (required by ", LINE_REASON, END_ANY, ANYWHERE, NULL, NULL },
        NOISE("======= Backtrace: "),
        NOISE("======= Memory map: "),

        /* sanitizers */
        { "==", "ERROR: ", LINE_REASON, END_ANY, FROM, NULL, NULL },
        NOISE("SUMMARY: UndefinedBehaviorSanitizer: "),
        { "SUMMARY: ", "Sanitizer: ", LINE_REASON, END_ANY, 0, NULL, NULL },
        { ": runtime error: ", NULL, LINE_REASON, END_1 | END_SIGNAL, ANYWHERE, NULL, NULL },
        NOISE("Shadow byte"),
        NOISE("=>0x"),
        NOISE("==>"),
        NOISE("AddressSanitizer:DEADLYSIGNAL"),
        NOISE("AddressSanitizer can not provide additional info"),
        NOISE("ThreadSanitizer: reported "),

        /* MPI */
        { "Fatal error in ", NULL, LINE_REASON, END_ANY, ANYWHERE | FROM | ERROR_STACK | UNFINISHED, NULL, NULL },
        { "application called MPI_Abort(", NULL, LINE_WEAK, END_ANY, ANYWHERE, NULL, NULL },
        { "*** An error occurred in MPI_Init", "An error", LINE_WEAK, END_ANY, ANYWHERE | FROM, NULL, NULL },
        { "*** An error occurred in ", "An error", LINE_REASON, END_ANY, ANYWHERE | FROM, "MPI_ERR_", NULL },
        { "MPI_ABORT was invoked on rank ", NULL, LINE_WEAK, END_ANY, PARAGRAPH, NULL, NULL },
        NOISE("NOTE: invoking MPI_ABORT causes"),
        NOISE("You may or may not see output from other processes"),
        NOISE("exactly when Open MPI kills them."),
        { "] Signal: ", "(", LINE_WEAK, END_SIGNAL, ANYWHERE, NULL, NULL },
        NOISE_WITH("] Signal code: "),
        NOISE_WITH("] Failing at address: "),
        NOISE_WITH("] *** "),
        NOISE_WITH(" [0x"),
        NOISE_WITH(")[0x"),
        NOISE_WITH(" NCCL INFO "),

        /* launchers */
        LAUNCHER("slurmstepd: error: "),
        LAUNCHER("YOUR APPLICATION TERMINATED WITH THE EXIT STRING"),
        LAUNCHER("=   "),
        LAUNCHER("[proxy:"),
        LAUNCHER("[mpiexec@"),
        LAUNCHER_WITH(" noticed that process rank "),
        LAUNCHER_WITH(" detected that one or more processes exited"),
        LAUNCHER_WITH(" has exited due to process rank "),
        LAUNCHER("Primary job  terminated normally, but"),
        LAUNCHER_WITH("[launch.py:"),
        LAUNCHER_WITH("torch.distributed.elastic.multiprocessing.api"),
        LAUNCHER_WITH("torch/distributed/elastic/multiprocessing/api.py"),
        LAUNCHER("Failures:"),
        { "Root Cause (first observed failure):", NULL, LINE_WEAK, END_ANY, 0, "exitcode  : ", NULL },
        NOISE("  time      : "),
        NOISE("  host      : "),
        NOISE("  rank      : "),
        NOISE("  exitcode  : "),
        NOISE("  error_file: "),
        NOISE("  <NO_OTHER_FAILURES>"),
        NOISE("  traceback : To enable traceback see"),
        { "  traceback : Signal ", "Signal ", LINE_WEAK, END_ANY, FROM, NULL, NULL },
        LAUNCHER("srun: "),
        NOISE("This typically refers to a problem with your application"),
        NOISE("Please see the FAQ page"),

        /* lines of logs, and of shells */
        { .text = "wandb: ERROR", .kind = LINE_PLAIN },
        NOISE("wandb:"),
        CHATTER("INFO:"),
        CHATTER("DEBUG:"),
        CHATTER("WARNING:"),
        CHATTER_WITH("[INFO]"),
        CHATTER_WITH("[WARNING]"),
        { ": ", " (ignored)", LINE_CHATTER, 0, ANYWHERE, NULL, NULL }, /* Open MPI, about parts not needed */
        CHATTER_WITH(" INFO "),
        CHATTER_WITH(" DEBUG "),
        CHATTER_WITH(" WARNING "),
        LAUNCHER("make: *** "),
        LAUNCHER("make[1]: *** "),
        LAUNCHER("timeout: the monitored command dumped core"),
        LAUNCHER("npm ERR! "),
        { ": line ", " Aborted ", LINE_CHATTER, 0, ANYWHERE, NULL, NULL },
        { ": line ", " Segmentation fault ", LINE_CHATTER, 0, ANYWHERE, NULL, NULL },
        { ": line ", " Killed ", LINE_CHATTER, 0, ANYWHERE, NULL, NULL },
        CHATTER("Aborted"),
        CHATTER("Segmentation fault"),
        CHATTER_WITH("(core dumped)"),
};
/* clang-format on */

/* Whether a line is a frame by its shape: "#0  0x7f...", "    #1 0x...", "  3: core::panic",
 * " [1] f(x::Int64)", or the line of a log of glog ("W1120 10:00:00 ..."). */
static const struct reason_form *find_by_shape(const char *line)
{
        static const struct reason_form frame = { .kind = LINE_NOISE },
                                        log = { .kind = LINE_CHATTER };
        const char *p = line + strspn(line, " ");
        size_t n;

        /* A rule, or the carets below a line of Python. */
        if (*p && !p[strspn(p, "-=*~^#+| {}()\"")])
                return &frame;
        if (*p == '#' && isdigit((unsigned char)p[1]))
                return &frame;
        n = strspn(p, "0123456789");
        if (p > line && n && p[n] == ':' && p[n + 1] == ' ')
                return &frame;
        if (p > line && *p == '[' && (n = strspn(p + 1, "0123456789")) && p[n + 1] == ']')
                return &frame;
        p = line + (*line == '[');
        return *p && strchr("IWE", *p) && strspn(p + 1, "0123456789") == 4 ? &log : NULL;
}

/* Whether the line has the words of a row: .text in its place, and .with behind. */
static bool fits_form(const char *line, const struct reason_form *f)
{
        const char *at = line;

        if (f->make & ANYWHERE)
                at = strstr(line, f->text);
        else if (strncmp(line, f->text, strlen(f->text)) != 0)
                at = NULL;
        return at && (!f->with || strstr(at, f->with));
}

const struct reason_form *reason_forms_find(const char *line)
{
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
                if (fits_form(line, &forms[i]))
                        return forms[i].kind == LINE_PLAIN ? NULL : &forms[i];
        return find_by_shape(line);
}

enum reason_kind reason_forms_weigh(const char *text)
{
        /* A peer is gone: gloo, NCCL, PyTorch's store, sockets. */
        static const char *const peer[] = {
                "Connection reset by peer",
                "Connection closed by peer",
                "Connection refused",
                "Broken pipe",
                "ncclRemoteError",
                "Socket closed",
                "recvBytes",
                "remote process exited",
                "HN_ERR_PEER",
                "failed to recv, got 0 bytes",
        };
        /* A process or thread of the program has failed, and has printed the reason above. */
        static const char *const weak[] = {
                "ChildFailedError",       "CalledProcessError: Command ",
                "value: Any { .. }",      "PoisonError",
                "DataLoader worker (pid", "Pin memory thread exited unexpectedly",
                "BrokenProcessPool",
        };

        if (reason_has_phrase(text, weak, ARRAY_SIZE(weak)))
                return LINE_WEAK;
        return reason_has_phrase(text, peer, ARRAY_SIZE(peer)) ? LINE_PEER : LINE_REASON;
}
