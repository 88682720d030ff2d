#include "where.h"

#include "block.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local size_t current_round, current_thread;
static _Thread_local const char *current_phase = "start";
static uint64_t run_seed;
static size_t run_threads;
static atomic_flag told = ATOMIC_FLAG_INIT;

/* Tells `what`, unless another thread has told something already. */
static void tell(const struct block *block, const char *what)
{
    static const struct block none;
    const struct block *b = block != NULL ? block : &none;
    if (atomic_flag_test_and_set(&told)) {
        return;
    }
    char line[512];
    const int length = snprintf(line, sizeof line,
                                "soak: failed: %s: round %zu, phase %s, thread %zu, address %p, size %zu, alignment %zu, "
                                "content %#llx; repeat with --seed %llu --threads %zu\n",
                                what, current_round, current_phase, current_thread, (void *)b->at, b->size, b->alignment,
                                (unsigned long long)b->seed, (unsigned long long)run_seed, run_threads);
    const ssize_t written = write(STDERR_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    (void)written;
}

static void on_signal(int number)
{
    char what[64];
    snprintf(what, sizeof what, "ended by signal %d", number);
    tell(NULL, what);
    signal(number, SIG_DFL);
    raise(number);
}

void where_begin(uint64_t seed, size_t threads, bool catch_signals)
{
    run_seed = seed;
    run_threads = threads;
    if (catch_signals) {
        signal(SIGABRT, on_signal);
        signal(SIGSEGV, on_signal);
        signal(SIGBUS, on_signal);
    }
}

void where_set(size_t round, const char *phase, size_t thread)
{
    current_round = round;
    current_phase = phase;
    current_thread = thread;
}

void failed(const struct block *block, const char *format, ...)
{
    char what[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    tell(block, what);
    _exit(1);
}
