#include "step.h"

#if defined(__x86_64__)

enum { TRAP_FLAG = 0x100 };

/* The red zone below the stack pointer is the compiler's. */
static inline __attribute__((always_inline)) void change_flags(unsigned long clear, unsigned long set)
{
    unsigned long flags;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tpopq %0\n\tlea 128(%%rsp), %%rsp" : "=r"(flags) : : "memory");
    flags = (flags & ~clear) | set;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushq %0\n\tpopfq\n\tlea 128(%%rsp), %%rsp" : : "r"(flags) : "cc", "memory");
}

bool step_begin(void)
{
    change_flags(0, TRAP_FLAG);
    return true;
}

void step_end(void)
{
    change_flags(TRAP_FLAG, 0);
}

#else

bool step_begin(void)
{
    return false;
}

void step_end(void)
{
}

#endif
