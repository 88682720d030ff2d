/*
 * Checks that may fail on any thread and at any time, before main and after exit included, where cmocka's
 * cannot. A failed check writes one line to stderr without allocating and aborts.
 */
#ifndef HAK_TEST_CHECK_H
#define HAK_TEST_CHECK_H

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

__attribute__((noreturn)) void check_failed(const char *file, int line, const char *condition);

/* This function's case cannot be tried here: says so in a line that `hakmem test` counts. The caller returns. */
#define CANNOT_TRY(reason) check_skipped(__func__, (reason))

void check_skipped(const char *what, const char *reason);

/* A line that check_failed writes too, to say how to repeat the run. The string must stay alive. */
void check_set_note(const char *note);

#endif
