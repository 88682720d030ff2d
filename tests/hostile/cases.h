/* The cases of hostile_test.c. */
#ifndef HAK_TEST_HOSTILE_CASES_H
#define HAK_TEST_HOSTILE_CASES_H

#include <stddef.h>
#include <stdint.h>

struct hostile_case {
    const char *name;
    void (*action)(uintptr_t value); /* in a child */
    uintptr_t value;
};

/* Limits that are reached while the program runs, and lifted again. */
extern const struct hostile_case limit_cases[];
extern const size_t limit_case_count;

/* Kernels that refuse, or lay the address space out in another way. */
extern const struct hostile_case kernel_cases[];
extern const size_t kernel_case_count;

/* Starts this program afresh; it runs the workload and ends. */
void hostile_become_workload(void);

#endif
