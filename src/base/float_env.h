/*
 * Floating-point arithmetic that the program does not notice. malloc may be called with any rounding, with traps that make SIGFPE of an
 * inexact result, and between a calculation and the look at its flags.
 *
 *     struct float_env programs = float_env_begin();
 *     computes();
 *     float_env_end(&programs);
 *
 * What computes is a function that is not inlined, and reads or writes memory: in one function with these two, the compiler may move
 * arithmetic past them.
 */
#ifndef HAK_BASE_FLOAT_ENV_H
#define HAK_BASE_FLOAT_ENV_H

#include <stdint.h>

#if defined(__x86_64__)

/* MXCSR: control and flags. */
struct float_env {
    uint32_t control;
};

enum { FLOAT_CONTROL_DEFAULT = 0x1f80 }; /* all traps are masked, to nearest, no flag is set */

static inline void float_env_set(uint32_t control)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(control) : "memory");
}

static inline struct float_env float_env_begin(void)
{
    struct float_env programs;
    __asm__ volatile("stmxcsr %0" : "=m"(programs.control) : : "memory");
    float_env_set(FLOAT_CONTROL_DEFAULT);
    return programs;
}

static inline void float_env_end(const struct float_env *programs)
{
    float_env_set(programs->control);
}

#elif defined(__aarch64__)

struct float_env {
    uint64_t control;
    uint64_t status;
};

static inline void float_env_set(struct float_env env)
{
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(env.control), "r"(env.status) : "memory");
}

static inline struct float_env float_env_begin(void)
{
    struct float_env programs;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(programs.control), "=r"(programs.status) : : "memory");
    float_env_set((struct float_env){0});
    return programs;
}

static inline void float_env_end(const struct float_env *programs)
{
    float_env_set(*programs);
}

#else
#error "hakmem needs to know this processor's floating-point control"
#endif

#endif
