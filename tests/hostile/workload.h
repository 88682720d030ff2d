/* What the tests of hostile surroundings run in them. */
#ifndef HAK_TEST_WORKLOAD_H
#define HAK_TEST_WORKLOAD_H

#include <stddef.h>

/* Some of everything, which needs about 40 MiB: small, large, aligned, growing blocks, threads, a fork, a trim.
 * Every request must succeed, and every block keep its content. */
void workload_run(void);

/* The same, where requests may be refused: with ENOMEM. Returns how many were. */
size_t workload_try(void);

/* As workload_run, without threads, a fork, a trim, and large blocks, which needs about 10 MiB. */
void workload_run_alone(void);

/* Blocks with a pattern, to be looked at again when the worst is over. */
void workload_hold(void);
void workload_check_held(void);

#endif
