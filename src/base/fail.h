/* The ways the library speaks: one line before it ends the process, one line of warning; and lines that were asked for. */
#ifndef HAK_BASE_FAIL_H
#define HAK_BASE_FAIL_H

#include <stdbool.h>

#include "base/compiler.h"

/* Writes "hakmem: fatal: MESSAGE" to stderr in one write and aborts. Allocates nothing, takes no lock. */
_Noreturn void fail(const char *format, ...) PRINTF_LIKE(1, 2) COLD;

/* Called between the two, if there is one. Set at the start of the program. */
extern HIDDEN void (*fail_also)(void);

/* Writes "hakmem: warning: MESSAGE" to stderr in one write. errno is kept. */
void warn(const char *format, ...) PRINTF_LIKE(1, 2) COLD;

/* Writes "MESSAGE" in one write, of a report that the user has asked for: to the end of the report's file, or, if
 * there is none or it does not take the line, to stderr. errno is kept. */
void note(const char *format, ...) PRINTF_LIKE(1, 2) COLD;

/* The same, a line of three parts, of any length. */
void note_joined(const char *before, const char *middle, const char *after) COLD;

/* From now on reports go to this file. False: the path is not absolute, or too long. */
bool fail_report_to(const char *path);

/* That file; "": reports go to stderr. */
const char *fail_report_file(void);

/* What must hold inside the allocator; checked in the debug build, compiled in every build. */
#define ASSERT(condition)                                                                              \
    do {                                                                                               \
        if (HAK_DEBUG && UNLIKELY(!(condition)))                                                       \
            fail("internal: %s, at %s:%d", #condition, __FILE__, __LINE__);                            \
    } while (0)

#endif
