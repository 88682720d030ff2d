/* The cases of hostile_test.c. */
#ifndef HAK_TEST_HOSTILE_CASES_H
#define HAK_TEST_HOSTILE_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct child;

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

/* What holds for the whole machine while it runs, and must run by itself. Returns how many cases failed. */
int hostile_change_machine(void);

/* Prints how a case ended; was it well? */
bool hostile_report(const char *name, const struct child *child);

/* Starts this program afresh; it runs the workload and ends. */
void hostile_become_workload(void);

#endif
