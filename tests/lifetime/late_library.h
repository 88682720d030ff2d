#ifndef HAK_TEST_LATE_LIBRARY_H
#define HAK_TEST_LATE_LIBRARY_H

/* The block that the library's constructor allocated, 300 times 'c'; the caller frees it. */
char *late_library_take(void);

#endif
