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
static const char *repeat_with = "";
static atomic_flag told = ATOMIC_FLAG_INIT;

/* Tells `what`, unless another thread has told something already. */
static void tell(const struct block *block, const char *what)
{
    char about[160] = "", line[512];
    if (atomic_flag_test_and_set(&told)) {
        return;
    }
    if (block != NULL) {
        snprintf(about, sizeof about, ", address %p, size %zu, alignment %zu, content's seed %#llx", (void *)block->at,
                 block->size, block->alignment, (unsigned long long)block->seed);
    }
    const int length = snprintf(line, sizeof line, "soak: failed: %s: round %zu, phase %s, thread %zu%s; repeat with %s\n",
                                what, current_round, current_phase, current_thread, about, repeat_with);
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

void where_begin(const char *arguments, bool catch_signals)
{
    repeat_with = arguments;
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
